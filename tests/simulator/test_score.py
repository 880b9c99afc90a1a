"""What a run is worth: promises kept, windows, quantiles, cost."""

import math
import random

import pytest

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.engine import Request
from adapter.simulator.score import Objective, Score, Scorer, seconds_per_token
from tests.build import T0
from tests.simulator.worlds import ENGINE


def a_request(
    arrived: float, *, ttft: float | None, prompt: int = 100, output: int = 1, e2e: float = 0.0
) -> Request:
    request = Request(Timestamp(T0 + arrived), prompt, output)
    if ttft is not None:
        request.first_token_at = Timestamp(T0 + arrived + ttft)
        request.finished_at = Timestamp(T0 + arrived + max(ttft, e2e))
    return request


def a_scorer(objective: Objective | None = None, *, begin: float = 0.0) -> Scorer:
    return Scorer(objective or Objective(), ENGINE, begin=Timestamp(T0 + begin))


def scored(scorer: Scorer, *, paid: float = 7200.0, starts: int = 3, seconds: float = 3600.0):
    return scorer.score(paid=Seconds(paid), starts=starts, seconds=Seconds(seconds))


def test_the_promise_is_two_seconds_and_twice_the_prompts_own_prefill():
    """30,000 tokens take 3.4 s alone: 8.7 s are in time, for a short prompt 2.1 s are not."""
    scorer = a_scorer()
    alone = ENGINE.isolated_prefill_seconds(30_000)
    assert 3.0 < alone < 4.5

    scorer.finish([a_request(0, ttft=2 + 2 * alone - 0.01, prompt=30_000)])
    scorer.finish([a_request(0, ttft=2 + 2 * alone + 0.01, prompt=30_000)])
    scorer.finish([a_request(0, ttft=2.1)])

    assert (scored(scorer).requests, scored(scorer).in_time) == (3, 1)


def test_refused_lost_and_unfinished_requests_are_misses():
    scorer = a_scorer()
    scorer.finish([a_request(n, ttft=0.1) for n in range(7)])
    scorer.refuse(Timestamp(T0 + 1))
    scorer.lose(Timestamp(T0 + 2), 1)
    scorer.leave(Timestamp(T0 + 3), 1)

    score = scored(scorer)

    assert score.attainment == pytest.approx(0.7)
    assert (score.finished, score.refused, score.lost, score.unfinished) == (7, 1, 1, 1)


def test_the_worst_ten_minutes_do_not_average_out():
    """An hour with one bad window of ten minutes: 5/6 overall, 0 at the worst."""
    scorer = a_scorer()
    for minute in range(60):
        scorer.finish([a_request(60 * minute, ttft=9.0 if 20 <= minute < 30 else 0.1)])

    score = scored(scorer)

    assert score.attainment == pytest.approx(5 / 6)
    assert score.worst_window == 0.0


def test_a_request_counts_in_the_window_in_which_it_arrived():
    """It came at 599 s and was late in the next window: the first one has it."""
    scorer = a_scorer()
    scorer.finish([a_request(599, ttft=60.0), a_request(600, ttft=0.1)])

    assert scored(scorer).worst_window == 0.0
    assert scored(scorer).in_time == 1


def test_what_came_before_scoring_began_is_left_out():
    scorer = a_scorer(begin=100.0)

    scorer.finish([a_request(99, ttft=9.0), a_request(101, ttft=0.1)])
    scorer.refuse(Timestamp(T0 + 50))
    scorer.lose(Timestamp(T0 + 99), 5)

    assert scored(scorer).requests == 1
    assert scored(scorer).attainment == 1.0


def test_the_time_per_token_counts_where_it_is_promised():
    """99 gaps in 9.8 s are within 100 ms, in 10 s they are not; 31 tokens are too few to judge."""
    scorer = a_scorer(Objective(ttft=Seconds(3.0), prefills=0.0, per_token=Seconds(0.1)))

    scorer.finish([a_request(0, ttft=1.0, output=100, e2e=10.8)])
    scorer.finish([a_request(0, ttft=1.0, output=100, e2e=11.0)])
    scorer.finish([a_request(0, ttft=1.0, output=31, e2e=60.0)])

    assert scored(scorer).in_time == 2


def test_without_a_promise_per_token_answers_may_take_their_time():
    scorer = a_scorer()

    scorer.finish([a_request(0, ttft=1.0, output=100, e2e=1000.0)])

    assert scored(scorer).attainment == 1.0


def test_the_time_per_token_of_an_unfinished_answer_is_infinite():
    assert seconds_per_token(a_request(0, ttft=None, output=10)) == math.inf
    assert seconds_per_token(a_request(0, ttft=1.0, output=1, e2e=1.0)) == 0.0


def test_quantiles_are_right_to_one_percent():
    chance = random.Random(7)
    waits = [chance.lognormvariate(-1.0, 1.0) for _ in range(5000)]
    scorer = a_scorer()
    scorer.finish([a_request(0, ttft=wait) for wait in waits])

    score = scored(scorer)

    assert score.ttft_p50 == pytest.approx(sorted(waits)[2499], rel=0.01)
    assert score.ttft_p99 == pytest.approx(sorted(waits)[4949], rel=0.01)


def test_cost_is_replica_hours_and_starts_a_day():
    score = scored(a_scorer(), paid=36_000.0, starts=3, seconds=7200.0)

    assert score.paid_hours == 10.0
    assert score.mean_replicas == 5.0
    assert score.starts_per_day == 36.0


def test_a_run_without_requests_missed_nothing():
    score = scored(a_scorer())

    assert isinstance(score, Score)
    assert (score.attainment, score.worst_window) == (1.0, 1.0)
    assert math.isnan(score.ttft_p50)


def test_a_request_without_a_first_token_is_not_taken_as_finished():
    scorer = a_scorer()

    scorer.finish([a_request(0, ttft=None)])

    assert scored(scorer).requests == 0


def test_what_is_unfinished_at_the_end_is_a_miss_of_the_last_window():
    """A run that ends with a window: one good request, and one that is still in the engine."""
    scorer = a_scorer()
    scorer.finish([a_request(1, ttft=0.1)])

    scorer.leave(Timestamp(T0 + 600), 1)

    score = scored(scorer, seconds=600.0)
    assert (score.requests, score.worst_window, len(score.windows)) == (2, 0.5, 1)
