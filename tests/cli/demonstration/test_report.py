import json
from dataclasses import replace

from adapter.scaling.decision import Hold, HoldReason
from tests.cli.demonstration.build import T0, a_moment, a_report


def test_the_document_has_exactly_the_keys_that_scripts_were_promised():
    report = a_report(a_moment(desired=4), a_moment(elapsed=5, desired=9), a_moment(desired=3))

    document = report.document()

    assert list(document) == ["ticks", "maxDesired", "finalDesired", "sloAttainment", "decisions"]
    assert (document["ticks"], document["maxDesired"], document["finalDesired"]) == (3, 9, 3)
    assert document["sloAttainment"] == 0.987
    assert json.loads(json.dumps(document)) == document


def test_a_decision_tells_what_was_decided_and_why():
    hold = Hold(HoldReason.SCALE_DOWN_DELAY, until=T0, because="4 wanted 80 s ago")

    entry = a_report(a_moment(elapsed=5, holds=[hold])).document()["decisions"][0]

    assert entry == {
        "at": "2027-01-15T08:00:05Z",
        "desired": 4,
        "published": 4,
        "ready": 2,
        "loading": 2,
        "replicas": 4,
        "because": "queue wants 4",
        "holds": [{"reason": "ScaleDownDelay", "because": "4 wanted 80 s ago"}],
        "refusal": None,
        "requestsPerSecond": 12.34,
        "inFlight": 57,
        "kvUsage": 0.416,
        "ttftP95": 0.31,
    }


def test_without_a_request_there_is_no_attainment_and_no_zero():
    report = a_report(a_moment(ttft=None), judged=0, good=0)

    assert report.document()["sloAttainment"] is None
    assert report.document()["decisions"][0]["ttftP95"] is None
    assert "no request came due" in report.text()


def test_the_summary_counts_hours_against_the_peak_all_the_time():
    """7,200 pod-seconds in 20 min; 9 replicas all the time would be 3 h: a third saved."""
    text = a_report(a_moment(desired=9), a_moment(desired=3)).text()

    assert "98.70% of 1,000 requests" in text
    assert "2 at first, 9 wanted at the most, 3 at the end; 5 started, 3 stopped" in text
    assert "2.00; 9 replicas all the time would be 3.00 (33% saved)" in text
    assert "2, 1 changed the published count" in text
    assert "40, 1 of them without a value" in text


def test_the_summary_says_when_the_machine_was_too_busy():
    slow = a_report(played=300.0)

    assert a_report().text().endswith("20.0 min in 20 s")
    assert slow.text().endswith(
        "5.0 min in 20 s; the machine was too busy for the 20.0 min planned"
    )


def test_the_main_job_is_done_when_the_hpa_read_a_count():
    assert a_report(reads=2, failed_reads=1).served
    assert not a_report(reads=2, failed_reads=2).served


def test_a_play_too_short_for_any_count_says_so_instead_of_a_summary():
    """No tick at all: null in the document, a sentence for people, no traceback."""
    nothing = replace(a_report(reads=0, failed_reads=0, wall=0.2), moments=())

    assert nothing.document()["maxDesired"] is None
    assert nothing.document()["finalDesired"] is None
    assert nothing.problem.startswith("the HPA never read a count in 0.2 s; give it more --seconds")
    assert a_report().problem == ""
