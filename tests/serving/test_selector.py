"""Label selectors: Go's grammar, matching and words."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.serving.external_metrics.selector import SelectorError, parse_selector
from tests.serving.contract import vector_file

LABELS: tuple[dict[str, str], ...] = (
    {},
    {"x": "a"},
    {"x": "b"},
    {"x": ""},
    {"x": "3"},
    {"y": "b"},
    {"x": "a", "y": "b"},
    {"a": "2", "b": "1"},
)
"""What the match tables of the vectors are about, in their order."""


def _matching(text: str) -> str:
    selector = parse_selector(text)
    return "".join("x" if selector.matches(labels) else "." for labels in LABELS)


@pytest.mark.parametrize(
    ("text", "canonical", "matching"),
    [
        ("", "", "xxxxxxxx"),
        ("x", "x", ".xxxx.x."),
        ("!x", "!x", "x....x.x"),
        ("x=", "x=", "...x...."),
        ("x==a", "x==a", ".x....x."),
        ("x!=a", "x!=a", "x.xxxx.x"),
        ("x in (b,a)", "x in (a,b)", ".xx...x."),
        ("x in ()", "x in ()", "...x...."),
        ("x in (,)", "x in ()", "...x...."),
        ("x in (a,)", "x in (,a)", ".x.x..x."),
        ("x in (a,,b)", "x in (,a,b)", ".xxx..x."),
        ("x notin (a)", "x notin (a)", "x.xxxx.x"),
        ("x>1", "x>1", "....x..."),
        ("x<5", "x<5", "....x..."),
        ("x>3", "x>3", "........"),
        ("b=1,a=2", "a=2,b=1", ".......x"),
        (" x\t=\r\na ", "x=a", ".x....x."),
        ("in in (in)", "in in (in)", "........"),
        ("notin=in", "notin=in", "........"),
        ("x= in", "x=in", "........"),
        ("x=,y=b", "x=,y=b", "........"),
        ("app.kubernetes.io/name=web", "app.kubernetes.io/name=web", "........"),
    ],
)
def test_a_selector_is_read_sorted_and_matched_as_in_go(text: str, canonical: str, matching: str):
    assert str(parse_selector(text)) == canonical
    assert _matching(text) == matching


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x=a,", "found '', expected: identifier after ','"),
        (",x=a", "found ',', expected: !, identifier, or 'end of string'"),
        ("!x=a", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("x in a", "unable to parse requirement: found 'a' expected: '('"),
        ("x in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("x in (a,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("x in (a,", "unable to parse requirement: found '', expected: ',', or identifier"),
        (
            "x exists",
            "unable to parse requirement: found 'exists', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("x>=1", "unable to parse requirement: found '=', expected: identifier"),
        (
            "x>a",
            'unable to parse requirement: values[0]: Invalid value: "a": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_a_selector_that_is_none_is_refused_in_gos_words(text: str, words: str):
    with pytest.raises(SelectorError) as refused:
        parse_selector(text)

    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("model=meta-llama/Llama-3", 'values[0][model]: Invalid value: "meta-llama/Llama-3"'),
        (f"x={'a' * 64}", "must be no more than 63 bytes"),
        ("x=é", 'Invalid value: "é"'),
        ('x="a"', r'Invalid value: "\"a\""'),
        ("x=a\x00b", r'Invalid value: "a\x00b"'),
        ("x in (a:,b:)", "[values[0][x]: Invalid value"),
        ("x>99999999999999999999", "must be an integer"),
        ("x>9223372036854775808", "must be an integer"),
        ("a/b/c=d", "a valid label key must consist"),
        ("/a=b", "prefix part must be non-empty"),
        ("a/=b", "name part must be non-empty; name part must consist"),
        ("A_B/c=d", "prefix part a lowercase RFC 1123 subdomain"),
        (f"{'a' * 254}/c=d", "prefix part must be no more than 253 bytes"),
        (f"{'k' * 64}=d", "name part must be no more than 63 bytes"),
    ],
)
def test_a_label_that_kubernetes_would_not_take_is_refused(text: str, part: str):
    """Row 19: a value with a slash or over 63 bytes can never be selected through an HPA."""
    with pytest.raises(SelectorError) as refused:
        parse_selector(text)

    assert part in str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("policy=chat", "chat"),
        ("a=b,policy==chat", "chat"),
        ("policy in (chat)", "chat"),
        ("policy in (chat,code)", None),
        ("policy!=chat", None),
        ("policy", None),
        ("", None),
    ],
)
def test_a_selector_tells_whether_one_value_is_asked_for(text: str, value: str | None):
    assert parse_selector(text).pinned("policy") == value


def test_a_number_is_compared_only_with_a_number():
    selector = parse_selector("gpus>1")

    assert selector.matches({"gpus": "8"})
    assert not selector.matches({"gpus": "many"})


@given(st.text(alphabet="xa1 ,=!<>()in\t/.-\0é", max_size=20))
@settings(max_examples=500)
def test_a_selector_written_canonically_reads_the_same(text: str):
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        assert str(error)  # noqa: PT017 - most texts are refused, some are read
    else:
        again = parse_selector(str(selector))
        assert again == selector
        assert [again.matches(labels) for labels in LABELS] == [
            selector.matches(labels) for labels in LABELS
        ]


def test_the_whole_vector_file_of_selectors_passes():
    """Vector 4: input, canonical form or error, and matches, from the real Go library."""
    lines = vector_file("selector_vectors.jsonl").read_text().splitlines()
    vectors = [json.loads(line) for line in lines]

    wrong = [vector for vector in vectors if _observed(vector["in"]) != vector]

    assert len(vectors) > 50
    assert wrong == []


def _observed(text: str) -> dict[str, object]:
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        return {"in": text, "err": str(error)}
    matches = [selector.matches(labels) for labels in LABELS]
    return {"in": text, "canon": str(selector), "match": matches}
