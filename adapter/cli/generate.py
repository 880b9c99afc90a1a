"""``leadtime generate``: the manifests around a policy, as lint wants them."""

import argparse
import base64
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.policy.document import Policy
    from adapter.policy.manifests import Registration

FINE, FOUND, UNUSABLE = 0, 1, 2

KINDS: Final = ("scaledobject", "hpa", "apiservice")

_EPILOG: Final = """\
examples:
  leadtime generate scaledobject -f chat.yaml | kubectl apply -f -
  leadtime generate scaledobject -f chat.yaml --mutual --tls-secret keda-tls
  leadtime generate hpa -f chat.yaml > hpa.yaml; leadtime lint chat.yaml hpa.yaml
  leadtime generate apiservice --ca ca.crt               for HPAs, where no KEDA runs

What comes out passes `leadtime lint` together with its policy, and says why each line is there.

exit codes:
  0 written   1 the policy has errors   2 usage, a file cannot be read, nothing to scale in it
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "generate",
        help="write the ScaledObject, HPA or APIService for a policy",
        description="Write the manifest that reads a policy's count, to standard output.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument(
        "-f",
        "--file",
        metavar="FILE",
        help="the policies; - reads standard input; an APIService needs none",
    )
    keda = parser.add_argument_group("scaledobject")
    keda.add_argument(
        "--address",
        default="leadtime.leadtime.svc:9090",
        metavar="HOST:PORT",
        help="where `leadtime serve --keda-port` answers (%(default)s)",
    )
    keda.add_argument(
        "--tls-secret",
        default="leadtime-keda-tls",
        metavar="NAME",
        help="Secret with ca.crt in the policy's namespace (%(default)s)",
    )
    keda.add_argument(
        "--mutual", action="store_true", help="show the Secret's tls.crt, for --keda-client-ca"
    )
    keda.add_argument("--plain", action="store_true", help="no TLS: for a first try only")
    service = parser.add_argument_group("apiservice")
    service.add_argument(
        "--service", default="leadtime/leadtime", metavar="NAMESPACE/NAME", help="(%(default)s)"
    )
    service.add_argument(
        "--certificate",
        default="leadtime/leadtime-serving",
        metavar="NAMESPACE/NAME",
        help="cert-manager Certificate whose CA is injected (%(default)s)",
    )
    service.add_argument("--ca", type=Path, metavar="FILE", help="put this CA in instead")


def run(arguments: argparse.Namespace) -> int:
    """Print the manifest, or what keeps it from being written."""
    # pydantic and yaml take longer to load than `leadtime generate --help` may.
    from adapter.policy import manifests

    problem = _unusable(arguments)
    if problem:
        return _refused(problem)
    if arguments.file is None:
        sys.stdout.write(manifests.api_service(_registration(arguments)))
        return FINE
    try:
        data = sys.stdin.buffer.read() if arguments.file == "-" else _read(arguments.file)
    except OSError as error:
        return _refused(f"{arguments.file}: {error.strerror}; give a file with policies, or -")
    policies = _policies(arguments.file, data)
    if policies is None:
        return FOUND
    problem = _nothing_to_scale(arguments.file, policies)
    if problem and arguments.kind != "apiservice":
        return _refused(problem)
    sys.stdout.write(_manifest(arguments, policies))
    return FINE


def _unusable(arguments: argparse.Namespace) -> str:
    if arguments.file is None and arguments.kind != "apiservice":
        return f"{arguments.kind} of what? give the policy with -f FILE"
    if arguments.plain and arguments.mutual:
        return "--plain excludes --mutual: drop one"
    for option in ("service", "certificate"):
        namespace, _, name = getattr(arguments, option).partition("/")
        if not (namespace and name):
            return f"--{option} {getattr(arguments, option)}: give NAMESPACE/NAME"
    host, _, number = arguments.address.rpartition(":")
    if not (host and number.isascii() and number.isdigit()):
        return f"--address {arguments.address}: give HOST:PORT"
    if arguments.ca is not None and not arguments.ca.is_file():
        return f"--ca {arguments.ca}: no such file; give the CA of the serving certificate"
    return ""


def _refused(problem: str) -> int:
    print(f"leadtime generate: {problem}", file=sys.stderr)
    return UNUSABLE


def _read(file: str) -> bytes:
    return Path(file).read_bytes()


def _policies(file: str, data: bytes) -> "tuple[Policy, ...] | None":
    """Return the policies of ``file``; None once it is said what is wrong with them."""
    from adapter.cli.output import as_text
    from adapter.policy.load import read_files

    placed, findings = read_files({"<stdin>" if file == "-" else file: data})
    if findings:
        sys.stderr.write(as_text(findings))
    if any(str(finding.severity) == "error" for finding in findings):
        return None
    return tuple(each.policy for each in placed)


def _nothing_to_scale(file: str, policies: "Sequence[Policy]") -> str:
    if not policies:
        return f"{file}: no policy in it; give a file with a ScalingPolicy"
    for policy in policies:
        if policy.spec.target is None:
            key = f"{policy.metadata.namespace}/{policy.metadata.name}"
            return (
                f"policy {key} has no spec.target, so there is nothing to scale: "
                f"add target: {{kind: Deployment, name: NAME}}"
            )
    return ""


def _manifest(arguments: argparse.Namespace, policies: "Sequence[Policy]") -> str:
    from adapter.policy import manifests

    if arguments.kind == "apiservice":
        return manifests.api_service(_registration(arguments))
    if arguments.kind == "hpa":
        return manifests.autoscalers(policies)
    secret = None if arguments.plain else arguments.tls_secret
    scaler = manifests.Scaler(arguments.address, secret, mutual=arguments.mutual)
    return manifests.scaled_objects(policies, scaler)


def _registration(arguments: argparse.Namespace) -> "Registration":
    from adapter.policy.manifests import Registration

    namespace, _, service = arguments.service.partition("/")
    bundle = "" if arguments.ca is None else base64.b64encode(arguments.ca.read_bytes()).decode()
    return Registration(service, namespace, arguments.certificate, bundle)
