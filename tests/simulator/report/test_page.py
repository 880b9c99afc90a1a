"""The page: it asks nobody for anything, and nobody's text becomes markup."""

import base64
import hashlib
import re

from adapter.simulator.report.page import Section, details, facts, page, paragraph, table
from adapter.simulator.report.style import CSS


def a_page() -> str:
    body = table(("", "a <b>"), [("row & one", "1")], caption='a "table"') + paragraph("x < y")
    return page("Backtest of <policy>", [Section("Part <one>", body)], lead="lead", foot="foot")


def test_everything_is_inside_and_the_policy_allows_nothing_else():
    text = a_page()

    digest = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert f"<style>{CSS}</style>" in text
    assert not re.findall(r"<(script|link|img|iframe|object|embed)\b", text)
    assert not re.findall(r"""(?:src|href|url)\s*[=(]""", text)


def test_no_style_stands_in_an_attribute():
    """The policy would refuse it."""
    assert not re.findall(r"\sstyle=", a_page())


def test_text_is_text():
    text = a_page()

    assert "<h1>Backtest of &lt;policy&gt;</h1>" in text
    assert "<h2>Part &lt;one&gt;</h2>" in text
    assert '<th scope="row">row &amp; one</th><td>1</td>' in text
    assert "<p>x &lt; y</p>" in text


def test_light_and_dark_know_every_colour():
    light, dark = CSS.split("@media (prefers-color-scheme:dark)")[:2]

    names = re.compile(r"--([a-z0-9]+):")
    assert set(names.findall(light)) == set(names.findall(dark.split("}")[0]))
    assert {f"c{n}" for n in range(8)} <= set(names.findall(light))


def test_a_wide_table_scrolls_by_keyboard_and_has_a_name():
    assert 'tabindex="0" role="region" aria-label="a &quot;table&quot;"' in a_page()


def test_facts_notes_and_details_are_what_they_say():
    assert facts([("in time", "99 %")]) == (
        '<dl class="facts"><div><dt>in time</dt><dd>99 %</dd></div></dl>'
    )
    assert paragraph("careful", note=True) == '<p class="note" role="note">careful</p>'
    assert details("more", "<p>x</p>") == "<details><summary>more</summary><p>x</p></details>"


def test_lead_and_foot_may_be_left_out():
    text = page("Title", [])

    assert "lead" not in text.split("</style>")[1]
    assert "<footer>" not in text
