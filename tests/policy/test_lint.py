"""The rules: one bad and one good file each, and the border at which each begins."""

from itertools import pairwise
from pathlib import Path

import pytest

from adapter.cli.output import as_text
from adapter.policy.lint import (
    AROUND,
    CODES,
    RULES,
    engines,
    hpa,
    keda,
    lint,
    lint_around,
    ownership,
    platform,
    pods,
    reach,
    release,
    rollouts,
    sizing,
    timing,
    wiring,
)
from adapter.policy.load import read_files
from adapter.policy.objects import Landscape, read_objects
from adapter.policy.reference import lint_page, policy_page
from tests.policy.build import STATIC, a_policy, marked, the_policy

CASES = Path(__file__).parent / "cases"
ROOT = Path(__file__).parents[2]
PODS = "  target: {kind: Deployment, name: chat}\n  source: {pods: {interval: %s}}\n"


def judged(path: Path) -> tuple:
    placed, found = read_files({path.name: path.read_bytes()})
    around = Landscape(placed, read_objects(path.read_text(errors="replace"), path.name))
    return tuple(sorted((*found, *lint(placed), *lint_around(around))))


def codes(*lines: str, **parts: str) -> list[str]:
    """Return the codes of the rules that a policy breaks, without those of this release."""
    found = lint([the_policy(a_policy(*lines, **parts))])
    return [finding.code for finding in found if finding.code < "LT190"]


@pytest.mark.parametrize("code", [code.id for code in CODES])
def test_the_bad_file_is_met_with_these_words(code):
    """The file of words is what people see: read it when it changes."""
    found = judged(CASES / code / "bad.yaml")

    assert code in {finding.code for finding in found}
    assert as_text(found) == (CASES / code / "expected.txt").read_text()


@pytest.mark.parametrize("code", [code.id for code in CODES])
def test_the_good_file_is_met_with_silence(code):
    found = judged(CASES / code / "good.yaml")

    assert {finding.code for finding in found} <= {"LT190"} - {code}


@pytest.mark.parametrize("code", [code.id for code in CODES])
def test_every_finding_is_as_severe_as_its_code_says(code):
    severities = {code.id: code.severity for code in CODES}

    for finding in judged(CASES / code / "bad.yaml"):
        assert finding.severity == severities[finding.code]


def test_codes_are_unique_and_sorted():
    ids = [code.id for code in CODES]

    assert all(one < other for one, other in pairwise(ids))


def test_catalogue_cases_and_modules_agree():
    """A rule that is not in the catalogue, or has no case, is a rule that nobody runs."""
    ids = {code.id for code in CODES}
    families = (engines, hpa, keda, ownership, platform, pods, reach, release, rollouts, sizing,
                timing, wiring)  # fmt: skip
    checks = {rule.check for rule in (*RULES, *AROUND)}
    modules = {path.stem for path in (ROOT / "adapter" / "policy" / "lint").glob("*.py")}

    assert ids == {path.name for path in CASES.iterdir()}
    assert modules == {"__init__", "rule"} | {m.__name__.rpartition(".")[2] for m in families}
    assert {check.__module__ for check in checks} == {module.__name__ for module in families}
    assert {rule.code.id for rule in (*RULES, *AROUND)} == {id_ for id_ in ids if id_ >= "LT1"}


def test_the_page_of_codes_is_current():
    """If not: leadtime lint --codes > docs/lint.md."""
    assert (ROOT / "docs" / "lint.md").read_text() == lint_page(CODES)


def test_the_page_of_keys_is_current():
    """If not: leadtime schema -o markdown > docs/policy.md."""
    assert (ROOT / "docs" / "policy.md").read_text() == policy_page()


@pytest.mark.parametrize(
    ("lines", "parts", "broken"),
    [
        ([], {"source": PODS % "15s"}, []),
        ([], {"source": PODS % "15s1ms"}, ["LT101"]),
        ([], {"source": PODS % "1s"}, []),
        ([], {"source": PODS % "999ms"}, ["LT102"]),
        (["loadTime: {default: 5s}"], {}, []),
        (["loadTime: {default: 4s999ms}"], {}, ["LT103"]),
        (["scaleDown: {delay: 4m}"], {}, []),
        (["scaleDown: {delay: 3m59s}"], {}, ["LT104"]),
        (["scaleDown: {delay: 0s}"], {}, ["LT104"]),
        (["scaleDown: {delay: 4m, minDelay: 1m, maxDelay: 9m}"], {}, ["LT105", "LT105"]),
        (["scaleDown: {minDelay: 5m, maxDelay: 5m}"], {}, []),
        (["scaleDown: {minDelay: 31m}"], {}, ["LT106"]),
        (["scaleDown: {maxDelay: 1m}"], {}, ["LT106"]),
        (["scaleDown: {maxDelay: 4m}"], {}, []),
        (["scaleDown: {maxDelay: 3m}"], {}, ["LT107"]),
        (["signals: {ttft: {window: 20s}}"], {}, []),
        (["signals: {ttft: {window: 19s}}"], {}, ["LT108"]),
        (["signals: {ttft: null}"], {"source": PODS % "15s"}, []),
        (["staleAfter: 10s"], {}, []),
        (["staleAfter: 9s"], {}, ["LT109"]),
        (["standby: {floor: 6}"], {}, []),
        (["standby: {floor: 7}"], {}, ["LT120"]),
        (["standby: {ceiling: 6}"], {}, []),
        (["standby: {ceiling: 7}"], {}, ["LT121"]),
        (
            ["standby: {floor: 3, ceiling: 3}"],
            {"replicas": "  replicas: {min: 1, max: 1}\n"},
            ["LT122"],
        ),
        (["signals: {queue: null, kvCache: null}"], {}, []),
        (["model: a_b.c-d"], {}, []),
        ([f"model: {'m' * 63}"], {}, []),
        ([f"model: {'m' * 64}"], {}, ["LT142"]),
        (["model: -m"], {}, ["LT142"]),
    ],
)
def test_each_rule_begins_exactly_where_it_says(lines, parts, broken):
    assert codes(*lines, **parts) == broken


def test_slow_ticks_are_found_in_every_kind_of_source():
    for kind, more in (
        ("pods", ""),
        ("prometheus", "url: http://p, "),
        ("static", "directory: d, "),
    ):
        source = f"  source: {{{kind}: {{{more}interval: 20s}}}}\n"
        (finding,) = [
            finding
            for finding in lint([the_policy(a_policy(source=source))])
            if finding.code == "LT101"
        ]

        assert marked(finding) == "20s"


def test_a_rule_about_a_default_points_at_the_value_that_clashes_with_it():
    """MinDelay is not in the file: the caret stands under maxDelay."""
    (finding,) = lint([the_policy(a_policy("scaleDown: {maxDelay: 1m}"))])

    assert marked(finding) == "1m"


def test_a_delay_under_the_unmeasured_default_says_how_to_state_the_load_time():
    (assumed,) = lint([the_policy(a_policy("scaleDown: {delay: 30s}"))])
    (stated,) = lint([the_policy(a_policy("scaleDown: {delay: 30s}", "loadTime: {default: 1m}"))])

    assert assumed.fix == "delay: auto, or set loadTime.default to what a start takes"
    assert stated.fix == "delay: auto"


@pytest.mark.parametrize(
    ("source", "named"), [("{prometheus: {url: http://p}}", False), ("{pods: {}}", True)]
)
def test_sources_that_serve_does_not_read_yet_are_named(source, named):
    found = lint([the_policy(a_policy(source=f"  source: {source}\n"))])

    assert ("source.pods is valid, but" in "".join(one.message for one in found)) is named


def test_a_policy_of_defaults_breaks_no_rule():
    assert lint([the_policy(a_policy(source=STATIC))]) == ()


def test_findings_of_several_policies_are_sorted_by_place():
    bad = a_policy("staleAfter: 9s")
    placed, _ = read_files({"b.yaml": bad.encode(), "a.yaml": bad.replace("chat", "c").encode()})

    assert [finding.file for finding in lint(placed)] == ["a.yaml", "b.yaml"]
