"""``leadtime lint``: policy files judged offline, every finding in one run."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from adapter.cli.options import whole

if TYPE_CHECKING:
    from adapter.policy.finding import Finding

FINE, FOUND, UNUSABLE, WARNED = 0, 1, 2, 3

_EPILOG: Final = """\
examples:
  leadtime lint policies/                      every *.yaml and *.yml below the directory
  leadtime lint policies/ manifests/           HPAs, ScaledObjects, workloads, PDBs with them
  leadtime lint chat.yaml -o github            as annotations in a pull request
  helm template chart | leadtime lint -        what a chart renders

exit codes:
  0 no errors   1 errors   2 a path cannot be read, or nothing in it is of a kind that is checked
  3 no errors but warnings, under --fail-on warning
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "lint",
        help="check policies, and the HPAs, ScaledObjects and workloads around them",
        description="Check policies without a cluster: what the adapter would refuse, and what it\n"
        "would accept and you would regret; and, where their manifests are given too, the HPA,\n"
        "ScaledObject, workload, PDB, quota, RBAC and APIService that bend or defeat the number.\n"
        "Findings on stdout, the count on stderr.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", metavar="FILE|DIR|-", help="- reads standard input")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "sarif", "github", "junit"),
        default="text",
        help="default: text",
    )
    parser.add_argument(
        "--fail-on", choices=("error", "warning"), default="error", help="default: error"
    )
    parser.add_argument(
        "--free-gpus", type=whole, metavar="N", help="GPUs that the nodes have left, for rollouts"
    )
    parser.add_argument("--codes", action="store_true", help="explain every finding, and leave")


def run(arguments: argparse.Namespace) -> int:
    """Check every path, print what was found, and return the exit code."""
    # pydantic and yaml take longer to load than `leadtime lint --help` may.
    from adapter.cli.output import render
    from adapter.policy.lint import CODES, lint, lint_around
    from adapter.policy.load import read_files
    from adapter.policy.objects import Landscape, read_objects
    from adapter.policy.reference import lint_page

    if arguments.codes:
        sys.stdout.write(lint_page(CODES))
        return FINE
    if not arguments.paths:
        print("leadtime lint: nothing to check; give a file, a directory or -", file=sys.stderr)
        return UNUSABLE
    files, problems = _gather(arguments.paths)
    for problem in problems:
        print(f"leadtime lint: {problem}", file=sys.stderr)
    if problems:
        return UNUSABLE
    placed, found = read_files(files)
    objects = tuple(
        one
        for name, data in files.items()
        for one in read_objects(data.decode("utf-8", errors="replace"), name)
    )
    around = lint_around(Landscape(placed, objects, free_gpus=arguments.free_gpus))
    findings = sorted((*found, *lint(placed), *around))
    text = render(
        findings, arguments.output, codes=CODES, files=tuple(files), colour=_colour_wanted()
    )
    sys.stdout.write(text)
    counts = {"files": len(files), "policies": len(placed), "objects": len(objects)}
    print(_summary(findings, **counts), file=sys.stderr)
    return _exit_code(findings, read=len(placed) + len(objects), fail_on=arguments.fail_on)


def _gather(paths: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
    """Return every file's bytes by its name for people, and why a path gave none."""
    files: dict[str, bytes] = {}
    problems: list[str] = []
    seen: set[Path] = set()
    for given in paths:
        try:
            if given == "-":
                files["<stdin>"] = _bounded(sys.stdin.buffer)
                continue
            below = _policy_files(Path(given))
            if not below:
                problems.append(f"{given}: no *.yaml or *.yml file in this directory")
            for path in below:
                if path.resolve() not in seen:
                    seen.add(path.resolve())
                    with path.open("rb") as handle:
                        files[_shown(path)] = _bounded(handle)
        except OSError as error:
            problems.append(f"{given}: {error.strerror}; give a file, a directory or -")
    return files, problems


def _policy_files(path: Path) -> list[Path]:
    """Return the file itself, or the YAML files below a directory, sorted.

    Names that begin with a dot are passed over: a mounted ConfigMap holds its files a second and
    a third time below ``..data`` and the directory that this links to.
    """
    if not path.is_dir():
        return [path]
    found = []
    for directory, below, names in os.walk(path, onerror=_raise):
        below[:] = sorted(name for name in below if not name.startswith("."))
        found += [
            Path(directory, name)
            for name in names
            if name.endswith((".yaml", ".yml")) and not name.startswith(".")
        ]
    return sorted(file for file in found if file.is_file())


def _raise(error: OSError) -> None:
    """Stop at a directory that cannot be listed: what is not read is not clean."""
    raise error


def _bounded(handle: BinaryIO) -> bytes:
    """Return the content, cut one byte past the limit that the reader refuses."""
    from adapter.policy.source_text import MAX_BYTES

    return handle.read(MAX_BYTES + 1)


def _shown(path: Path) -> str:
    """Return the name of a file in characters that every output can carry."""
    return str(path).encode("utf-8", "replace").decode("utf-8")


def _colour_wanted() -> bool:
    """Return whether standard output is a terminal that nobody asked to stay plain."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def _summary(findings: "Sequence[Finding]", *, files: int, policies: int, objects: int) -> str:
    severities = [str(finding.severity) for finding in findings]
    parts = [_counted(files, "file"), _counted(policies, "usable policy", "usable policies")]
    parts += [
        _counted(severities.count(word), word, plural)
        for word, plural in (("error", "errors"), ("warning", "warnings"), ("info", "infos"))
        if word in severities or word != "info"
    ]
    if objects:
        parts.insert(2, _counted(objects, "object around", "objects around"))
    nothing = (
        ": nothing was checked"
        if not policies and not objects and "error" not in severities
        else ""
    )
    return ", ".join(parts) + nothing


def _counted(count: int, word: str, plural: str = "") -> str:
    return f"{count} {word if count == 1 else plural or word + 's'}"


def _exit_code(findings: "Sequence[Finding]", *, read: int, fail_on: str) -> int:
    severities = {str(finding.severity) for finding in findings}
    if "error" in severities:
        return FOUND
    if not read:
        return UNUSABLE
    return WARNED if fail_on == "warning" and "warning" in severities else FINE
