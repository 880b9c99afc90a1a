from adapter.scaling.decision import Stage, Step
from tests.cli.demonstration.build import a_moment


def test_the_reason_is_what_the_load_asks_for():
    assert a_moment(desired=4).why == "queue wants 4"


def test_what_settled_the_count_comes_after_what_the_load_asks_for():
    """The delay keeps 6 although 4 are enough: both clauses stand there."""
    delay = Step(Stage.STABILIZE, 4, 6, "6 were wanted 20s ago")

    assert a_moment(desired=4, steps=[delay]).why == "queue wants 4; 6 were wanted 20s ago"


def test_a_refusal_is_the_whole_reason():
    assert a_moment(refusal="no metrics for 120 s").why == "no metrics for 120 s"
