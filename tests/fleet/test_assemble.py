from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.assemble import FleetMemory, Roster, Target, assemble
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import WARMING_SECONDS, FleetSnapshot, LoadTime, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from tests.build import T0, a_gap, a_histogram, a_reading

STALE_AFTER = Seconds(10.0)


def a_target(
    uid: str = "a", phase: Phase | None = None, *, since: float | None = None, version: str = ""
) -> Target:
    return Target(uid, uid, uid, phase, None if since is None else Timestamp(since), version)


def served(at: float, *, tokens: float = 100.0, **more: object) -> Reading:
    """Return the reading of an engine that has generated so many tokens."""
    return a_reading(at=at, more={Metric.GENERATION_TOKENS: tokens}, **more)  # type: ignore[arg-type]


class Watching:
    """Assembles one snapshot after the other, five seconds apart."""

    def __init__(self, *targets: Target) -> None:
        self.targets, self.memory, self.at = targets, FleetMemory(), T0 - 5.0

    def sees(
        self, samples: Mapping[str, Reading | Gap], *, at: float | None = None
    ) -> FleetSnapshot:
        self.at = self.at + 5.0 if at is None else at
        fleet, self.memory = assemble(
            Roster(self.targets),
            samples,
            self.memory,
            at=Timestamp(self.at),
            stale_after=STALE_AFTER,
        )
        return fleet

    def sees_one(self, sample: Reading | Gap | None, *, at: float | None = None) -> Replica:
        uid = self.targets[0].uid
        return self.sees({} if sample is None else {uid: sample}, at=at).replicas[0]


def test_replicas_come_in_order_of_uid_whatever_the_roster_says():
    watching = Watching(a_target("c"), a_target("a"), a_target("b"))

    fleet = watching.sees({})

    assert [replica.uid for replica in fleet.replicas] == ["a", "b", "c"]


def test_what_is_known_of_the_scale_target_passes_through():
    roster = Roster(
        (),
        spec_replicas=3,
        status_replicas=4,
        rollout=True,
        load_time=LoadTime(Seconds(90), starts=7),
        unscheduled="0/4 nodes are available",
    )

    fleet, _ = assemble(roster, {}, FleetMemory(), at=T0, stale_after=STALE_AFTER)

    assert fleet == FleetSnapshot(
        at=T0,
        replicas=(),
        spec_replicas=3,
        status_replicas=4,
        rollout=True,
        load_time=LoadTime(Seconds(90), starts=7),
        unscheduled="0/4 nodes are available",
    )


def test_a_version_stays_with_its_replica():
    watching = Watching(a_target("a", version="7f9"))

    assert watching.sees_one(served(T0)).version == "7f9"


def test_two_distinct_readings_are_remembered():
    watching = Watching(a_target())
    first, second = served(T0, tokens=10), served(T0 + 5, tokens=20)

    assert watching.sees_one(first).previous is None
    assert watching.sees_one(second).previous == first


def test_a_reading_that_did_not_change_keeps_the_one_before_it():
    """A slow target is asked twice and answers once: the pair for its rate stays."""
    watching = Watching(a_target())
    first, second = served(T0, tokens=10), served(T0 + 4, tokens=20)
    watching.sees_one(first)
    watching.sees_one(second)

    again = watching.sees_one(second)

    assert (again.sample, again.previous) == (second, first)


def test_a_gap_between_two_readings_parts_them():
    watching = Watching(a_target())
    watching.sees_one(served(T0))

    gap = watching.sees_one(a_gap(at=T0 + 5))
    back = watching.sees_one(served(T0 + 10))
    again = watching.sees_one(served(T0 + 15))

    assert isinstance(gap.sample, Gap)
    assert gap.previous is None
    assert back.previous is None
    assert again.previous == served(T0 + 10)


def test_the_same_reading_after_a_gap_is_the_first_of_a_new_pair():
    watching = Watching(a_target())
    watching.sees_one(served(T0))
    watching.sees_one(a_gap(at=T0 + 5))

    again = watching.sees_one(served(T0))

    assert again.previous is None


def test_a_counter_that_fell_parts_two_readings():
    watching = Watching(a_target())
    watching.sees_one(served(T0, tokens=500))

    restarted = watching.sees_one(served(T0 + 5, tokens=3))

    assert restarted.previous is None


def test_a_gauge_that_fell_parts_nothing():
    watching = Watching(a_target())
    watching.sees_one(served(T0, running=8))

    emptied = watching.sees_one(served(T0 + 5, running=0))

    assert emptied.previous == served(T0, running=8)


def test_a_later_process_start_parts_two_readings_though_every_counter_grew():
    """PROMETHEUS_MULTIPROC_DIR kept across restarts leaves counters that do not reset."""
    watching = Watching(a_target())

    def started(at: float, *, process: float, tokens: float) -> Reading:
        more = {Metric.PROCESS_START: process, Metric.GENERATION_TOKENS: tokens}
        return a_reading(at=at, more=more)

    watching.sees_one(started(T0, process=100.0, tokens=5))

    same = watching.sees_one(started(T0 + 5, process=100.4, tokens=6))
    other = watching.sees_one(started(T0 + 10, process=160.0, tokens=7))

    assert same.previous is not None
    assert other.previous is None


def test_another_engine_behind_the_same_address_parts_two_readings():
    watching = Watching(a_target())
    watching.sees_one(served(T0, engine="vllm"))

    assert watching.sees_one(served(T0 + 5, engine="sglang")).previous is None


def test_a_clock_that_was_set_back_parts_two_readings():
    """No rate may be taken over a negative time."""
    watching = Watching(a_target())
    watching.sees_one(served(T0))

    back = watching.sees_one(served(T0 - 3600), at=T0 - 3600)

    assert back.sample == served(T0 - 3600)
    assert back.previous is None


def test_a_reading_older_than_the_limit_is_a_gap_that_says_so():
    watching = Watching(a_target())
    watching.sees_one(served(T0))

    in_time = watching.sees_one(served(T0), at=T0 + 10.0)
    late = watching.sees_one(served(T0), at=T0 + 10.5)

    assert in_time.sample == served(T0)
    assert isinstance(late.sample, Gap)
    assert late.sample.cause is Cause.STALE
    assert "a: the last answer is 10 s old, limit 10 s" in late.sample.detail
    assert late.previous is None


def test_a_reading_from_the_future_is_a_gap_too():
    """The clock was set back by an hour: what it said before must not stay fresh for an hour."""
    watching = Watching(a_target())
    watching.sees_one(served(T0))

    after = watching.sees_one(served(T0), at=T0 - 3600)

    assert isinstance(after.sample, Gap)
    assert "3600 s ahead of the clock" in after.sample.detail


def test_a_target_that_was_never_asked_says_so():
    replica = Watching(a_target("http://a")).sees_one(None)

    assert isinstance(replica.sample, Gap)
    assert replica.sample.cause is Cause.NOT_SCRAPED
    assert replica.sample.detail.startswith("http://a: ")


def test_an_address_that_never_answered_is_loading_since_it_was_first_seen():
    """Neither capacity nor awaited for ever: the rules for overdue replicas apply to it."""
    watching = Watching(a_target())
    refused = a_gap(Cause.UNREACHABLE)
    watching.sees_one(refused)

    later = watching.sees_one(refused, at=T0 + 600)

    assert (later.phase, later.since) == (Phase.LOADING, T0)


def test_an_address_that_answered_once_and_falls_silent_is_serving_with_a_gap():
    """Its load did not vanish with its answers; nothing may go down on that."""
    watching = Watching(a_target())
    watching.sees_one(served(T0))

    silent = watching.sees_one(a_gap(Cause.UNREACHABLE, at=T0 + 5))

    assert silent.phase is Phase.SERVING
    assert isinstance(silent.sample, Gap)


def test_an_address_that_starts_to_answer_is_warming_until_its_first_token():
    """Answering proves no generation.

    Trap 22, measured 1 of vLLM.
    """
    watching = Watching(a_target())
    watching.sees_one(a_gap(Cause.UNREACHABLE))

    quiet = watching.sees_one(served(T0 + 5, tokens=0))
    talking = watching.sees_one(served(T0 + 10, tokens=1))

    assert (quiet.phase, quiet.since) == (Phase.WARMING, T0 + 5)
    assert (talking.phase, talking.since) == (Phase.SERVING, T0 + 5)


def test_warming_ends_by_itself_in_an_idle_pool():
    """Without traffic there is no first token; after 60 s the replica counts all the same."""
    watching = Watching(a_target())
    watching.sees_one(a_gap(Cause.UNREACHABLE))
    watching.sees_one(served(T0 + 5, tokens=0))

    before = watching.sees_one(served(T0 + 60, tokens=0), at=T0 + 5 + WARMING_SECONDS - 1)
    after = watching.sees_one(served(T0 + 65, tokens=0), at=T0 + 5 + WARMING_SECONDS)

    assert before.phase is Phase.WARMING
    assert after.phase is Phase.SERVING


def test_what_answers_in_the_first_snapshot_is_not_new():
    """A restart of the adapter must not make an idle pool look like one that just started."""
    assert Watching(a_target()).sees_one(served(T0, tokens=0)).phase is Phase.SERVING


def test_an_engine_that_restarted_behind_a_gap_is_warming_again():
    watching = Watching(a_target())
    watching.sees_one(served(T0, tokens=900))
    watching.sees_one(a_gap(Cause.UNREACHABLE, at=T0 + 5))

    back = watching.sees_one(served(T0 + 10, tokens=0))

    assert (back.phase, back.since) == (Phase.WARMING, T0 + 10)


def test_a_ready_pod_without_a_first_token_is_warming_while_it_is_young():
    """The pod's own ``since`` counts, also in the first snapshot after a restart of the adapter."""
    watching = Watching(a_target("a", Phase.SERVING, since=T0 - 20))

    young = watching.sees_one(served(T0, tokens=0))
    older = watching.sees_one(served(T0 + 40, tokens=0), at=T0 + 40)

    assert (young.phase, young.since) == (Phase.WARMING, T0 - 20)
    assert older.phase is Phase.SERVING


def test_a_first_token_may_show_in_the_ttft_histogram_or_in_finished_requests():
    def starts_with(reading: Reading) -> Phase:
        watching = Watching(a_target())
        watching.sees_one(a_gap(Cause.UNREACHABLE))
        return watching.sees_one(reading).phase

    def finished(count: float) -> Reading:
        return a_reading(at=T0 + 5, more={Metric.REQUESTS_FINISHED: count})

    assert starts_with(a_reading(at=T0 + 5, ttft=a_histogram([]))) is Phase.WARMING
    assert starts_with(a_reading(at=T0 + 5, ttft=a_histogram([0.3]))) is Phase.SERVING
    assert starts_with(finished(0)) is Phase.WARMING
    assert starts_with(finished(2)) is Phase.SERVING


def test_an_engine_that_cannot_tell_its_first_token_is_not_kept_warming():
    watching = Watching(a_target())
    watching.sees_one(a_gap(Cause.UNREACHABLE))

    assert watching.sees_one(a_reading(at=T0 + 5)).phase is Phase.SERVING


def test_the_rosters_word_on_a_phase_stands():
    """A pod that is deleted still answers, and a loading one may: the Pod object is the truth."""
    for phase in (Phase.PENDING, Phase.LOADING, Phase.DRAINING, Phase.ISOLATED):
        watching = Watching(a_target("a", phase, since=T0 - 3))

        replica = watching.sees_one(served(T0, tokens=0))

        assert (replica.phase, replica.since) == (phase, T0 - 3)
        assert replica.sample == served(T0, tokens=0)


def test_a_replica_that_left_is_forgotten_and_starts_anew_when_it_returns():
    watching = Watching(a_target())
    watching.sees_one(served(T0))
    (target,), watching.targets = watching.targets, ()
    assert watching.sees({"a": served(T0)}).replicas == ()

    watching.targets = (target,)
    back = watching.sees_one(served(T0 + 10, tokens=0))

    assert back.previous is None
    assert (back.phase, back.since) == (Phase.WARMING, T0 + 10)


SAMPLES = st.one_of(
    st.none(),
    st.builds(lambda at: a_gap(at=T0 + at), st.integers(-20, 60)),
    st.builds(
        lambda at, tokens: served(T0 + at, tokens=tokens), st.integers(-20, 60), st.integers(0, 9)
    ),
)


@settings(max_examples=200)
@given(st.lists(st.tuples(SAMPLES, st.integers(-15, 15)), max_size=12))
def test_a_pair_of_readings_always_spans_time_and_one_engine(story: list[tuple[object, int]]):
    """Whatever the order of answers, gaps and clock jumps, a rate is never taken over nonsense."""
    watching, at = Watching(a_target()), T0

    for sample, step in story:
        at += step
        replica = watching.sees_one(sample, at=at)  # type: ignore[arg-type]

        if replica.previous is not None:
            assert replica.reading is not None
            assert replica.reading.at > replica.previous.at
            tokens = [
                r.values[Metric.GENERATION_TOKENS] for r in (replica.previous, replica.reading)
            ]
            assert tokens == sorted(tokens)
