"""YAML text: what is read, what is refused, and where the finding points."""

import pytest
import yaml

from adapter.policy.parse import MAX_BROKEN, MAX_DEPTH, MAX_FINDINGS, parse
from adapter.policy.source_text import MAX_BYTES, SourceText
from adapter.policy.syntax import syntax_finding
from adapter.policy.tree import Json, plain
from tests.policy.build import (
    HEAD,
    REPLICAS,
    STATIC,
    a_policy,
    findings,
    marked,
    read,
    the_finding,
    the_policy,
)


def documents(text: str) -> list[Json]:
    parsed = parse(SourceText.of(text, "p.yaml"))
    return [None if document.root is None else plain(document.root) for document in parsed]


def test_anchors_aliases_and_merge_keys_read_as_everywhere_else():
    """The key that a section writes itself wins over what is merged into it."""
    text = "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: [*x, 5]\n"

    (read_as,) = documents(text)

    assert read_as == {
        "a": {"p": 1, "q": 2},
        "b": {"q": 3, "p": 1},
        "c": [{"p": 1, "q": 2}, 5],
    }


def test_of_several_merged_sections_the_first_wins():
    text = "x: &x {p: 1}\ny: &y {p: 2, q: 2}\nz: {<<: [*x, *y]}\n"

    (read_as,) = documents(text)

    assert read_as["z"] == {"p": 1, "q": 2}


def test_a_merge_of_something_else_than_a_section_is_said():
    finding = the_finding(a_policy("<<: 5"))

    assert finding.code == "LT001"
    assert marked(finding) == "<<"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("~", None),
        ("", None),
        ("True", True),
        ("FALSE", False),
        ("-12", -12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-12-01", "2026-12-01"),
        ("off", "off"),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ('!!int "5"', 5),
        ("9" * 400, float("inf")),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text, value):
    """No sexagesimals, no timestamps, no on and off: what JSON and the API server know."""
    assert documents(f"a: {text}\n") == [{"a": value}]


def test_not_a_number_stays_one_for_the_validator_to_refuse():
    (read_as,) = documents("a: .nan\n")

    assert read_as["a"] != read_as["a"]


@pytest.mark.parametrize("text", ["0777", "-010", "00", "0_7"])
def test_numbers_that_some_readers_take_for_octal_are_refused(text):
    """0777 is 511 to kubectl and 777 to a YAML 1.2 reader."""
    found = findings(a_policy(f"signals: {{queue: {{targetInFlight: {text}}}}}"))

    (finding,) = [finding for finding in found if finding.code == "LT012"]
    assert finding.severity == "error"
    assert marked(finding) == text


def test_a_leading_zero_is_met_with_both_that_may_be_meant():
    finding = the_finding(a_policy("standby: {floor: 0010}"))

    assert finding.fix == 'write it without the leading zero, or as "0010" if it is text'


@pytest.mark.parametrize("tag", ["!!float [1]", "!Ref x", "!!set {a}", "!!binary aGk="])
def test_tags_that_mean_nothing_in_a_policy_are_refused(tag):
    found = findings(a_policy(f"model: {tag}"))

    assert "LT001" in {finding.code for finding in found}
    assert any("tag" in finding.message for finding in found)


def test_duplicate_keys_name_both_places():
    finding = the_finding(a_policy("staleAfter: 2m", "staleAfter: 5m"))

    assert finding.code == "LT004"
    assert (finding.line, finding.column) == (6, 3)
    assert "first at p.yaml:5:3" in finding.message


def test_keys_that_are_no_text_are_read_as_text():
    """Kubectl turns keys into text as well: JSON has no others."""
    placed = the_policy(HEAD.replace("chat}", "chat, labels: {1: a, true: b}}") + REPLICAS + STATIC)

    assert placed.policy.metadata.labels == {"1": "a", "true": "b"}


@pytest.mark.parametrize(
    ("text", "line", "said", "fix"),
    [
        ("a:\n\t- b\n", 2, "a tab indents this line", "blanks"),
        ("a:\n  b: 1\n\tc: 2\n", 3, "a tab indents this line", "blanks"),
        ("a: b: c\n", 1, "a key cannot stand here", "quote"),
        ("a: 1\n  b: 2\n", 2, "indented too deep", "align"),
        ("a:\n  b: 1\n c: 2\n", 3, "not aligned", "exactly like"),
        ("- a\nb: c\n", 2, "not aligned with the list", "indent"),
        ("a: [1, 2\nb: 3\n", 2, "not closed, or a comma", "bracket"),
        ("a: ]\n", 1, "does not match", "bracket"),
        ("a: @x\n", 1, "no value begins with @", "quotes"),
        ("a: `x`\n", 1, "no value begins with `", "quotes"),
        ("a:\n  'x: 1\nb: 2\n", 2, "the quote that opens here", "close it"),
        ('a: "x\n---\nb: 1\n', 1, "the quote that opens here", "close it"),
        ("a: 1\nb\nc: 2\n", 2, "a key without a colon", "colon"),
        ("a: 1\nkey{{ .Values.x }}\nc: 2\n", 2, "a template", "helm template"),
        ("a: {{- if .Values.x }}\n", 1, "template", "helm template"),
        ('a: "\\x"\n', 1, "this is not YAML: ", "quote"),
        ("a: \x07\n", 1, "U+0007 must not stand", "delete"),
        ("a: 1\nb: \x00\n", 2, "U+0000 must not stand", "delete"),
        ("a: \ud800\n", 1, "U+D800 must not stand", "delete"),
        ("%YAML 9.9\n---\na: 1\n", 1, "this is not YAML", "quote"),
        ("a: *nowhere\n", 1, "no complete anchor &nowhere", "mark"),
        ("a: &a [*a]\n", 1, "no complete anchor &a", "mark"),
        ("a: {{ .Values.x }}\n", 1, "a template, not YAML yet", "helm template"),
        ("? [a, b]\n: c\n", 1, "stands where a key is expected", "plain word"),
    ],
)
def test_text_that_is_not_yaml_is_explained_at_its_place(text, line, said, fix):
    found = findings(text)

    assert found[0].code == "LT001"
    assert found[0].line == line
    assert said in found[0].message
    assert fix in found[0].fix


def test_an_error_without_a_place_is_still_a_finding():
    """The reader names no line for a byte that it cannot read."""
    finding, stopped = syntax_finding(yaml.YAMLError(), SourceText.of("a\nb\n", "p.yaml"), 1)

    assert (finding.line, stopped) == (2, 2)
    assert finding.message == "a control character must not stand in YAML"


def test_reading_goes_on_after_a_broken_document():
    """All findings in one run: a broken document does not hide the next one."""
    text = "a: [1\n---\n" + a_policy("staleAfter: 5") + "---\n b: }\n---\n" + a_policy()

    placed, found = read(text)

    assert len(placed) == 1
    assert [finding.code for finding in found] == ["LT001", "LT007", "LT001"]
    assert [finding.line for finding in found] == [2, 7, 11]


def test_a_file_that_is_broken_everywhere_is_given_up_on():
    """20 places are shown; a file of 200 kB with 20,000 of them is read in well under a second."""
    found = findings("\n---\na: [\n" * 20_000)

    assert len(found) == MAX_BROKEN


def test_nesting_is_bounded():
    deep = "a: " + "[" * 70 + "]" * 70

    assert the_finding(deep).code == "LT003"
    assert documents("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))[0] is not None


def test_brackets_without_end_are_refused():
    assert the_finding("[" * 100_000).code == "LT003"


def test_aliases_cannot_stand_for_more_values_than_a_policy_needs():
    """Nine aliases of nine aliases, nine times over, would be 387 million values."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ]

    finding = the_finding("\n".join(lines))

    assert finding.code == "LT003"
    assert finding.line == 5


def test_a_document_that_is_refused_does_not_take_the_next_one_along():
    placed, found = read("a: [*b, {c: d}]\n---\n" + a_policy())

    assert len(placed) == 1
    assert [finding.code for finding in found] == ["LT001"]


def test_findings_in_one_document_are_bounded():
    found = findings(a_policy(*["staleAfter: 2m"] * 500))

    assert len(found) == MAX_FINDINGS


def test_a_file_that_is_too_large_is_not_read():
    finding = the_finding("#" * (MAX_BYTES + 1))

    assert finding.code == "LT003"
    assert "4 MiB" in finding.message


def test_bytes_that_are_not_utf_8_are_shown_at_their_place():
    text = a_policy("# Zuständig: wir").encode("latin-1").decode("utf-8", errors="replace")

    finding = the_finding(text)

    assert (finding.code, finding.line, finding.column) == ("LT002", 5, 9)


def test_utf_16_is_called_by_its_name():
    finding = the_finding(a_policy().encode("utf-16").decode("utf-8", errors="replace"))

    assert finding.code == "LT002"
    assert "UTF-16" in finding.message


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_places_do_not_depend_on_how_lines_end(newline):
    finding = the_finding("\ufeff" + a_policy("staleAfter: 5").replace("\n", newline))

    assert (finding.line, finding.column, finding.excerpt) == (5, 15, "  staleAfter: 5")


def test_a_byte_order_mark_does_not_shift_the_first_line():
    finding = the_finding("\ufeff" + a_policy().replace("leadtime.dev/v1alpha1", "leadtime.dev/v2"))

    assert (finding.line, finding.column) == (1, 13)
    assert marked(finding) == "leadtime.dev/v2"


def test_columns_count_characters_not_bytes():
    finding = the_finding(a_policy('signals: {"queue": {"häufig": 1}}'))

    assert marked(finding) == '"häufig"'
