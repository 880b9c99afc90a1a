"""The memory: it survives JSON to the last bit, and another layout is not guessed at."""

import json
from dataclasses import replace

import pytest

from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.state import (
    LEVELS,
    STATE_VERSION,
    Carried,
    Progress,
    RatePoint,
    ScalingState,
    StateVersionError,
    TtftPoint,
    dump_state,
    load_state,
    not_ahead_of,
)
from tests.build import T0

FULL = ScalingState(
    published=7,
    started_at=T0,
    good_at=T0,
    gap_began_at=T0,
    gap_ended_at=T0,
    recommendations=((T0, 7), (Timestamp(T0 + 0.1), 3)),
    busy_since=T0,
    progress={"a": Progress(T0, 1.0, None, 3.0, 4.0, T0, Seconds(0.1 + 0.2))},
    ttft=(TtftPoint(T0, (0.5, 1.0), (1.0, 2.0, 3.0), 2.5, 4),),
    rates=(RatePoint(T0, 5.0, 10.0, 9.0, 2, queued=True, busy_seconds=1.5, refused_requests=3),),
    in_flight_peak=31.0,
    carried=Carried("tokens", (0.1 + 0.2,) * LEVELS, late=True, overrun=True, arriving=3.5),
)


@pytest.mark.parametrize("state", [ScalingState(), FULL])
def test_a_memory_survives_being_written_and_read(state: ScalingState) -> None:
    assert load_state(dump_state(state)) == state
    json.loads(dump_state(state))


def test_another_layout_is_refused_with_what_to_do() -> None:
    old = dump_state(ScalingState(version=0))

    with pytest.raises(StateVersionError, match="state has version 0, this release reads 2: start"):
        load_state(old)


def test_a_memory_of_the_last_layout_is_read_and_has_learned_no_work() -> None:
    old = json.loads(dump_state(replace(FULL, version=1)))
    del old["carried"]

    state = load_state(json.dumps(old).encode())

    assert state == replace(FULL, carried=Carried())
    assert state.version == STATE_VERSION


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'{"published": "many"}',
        b'{"published": 0}',
        b'{"in_flight_peak": 0}',
        b'{"in_flight_peak": Infinity}',
        b'{"carried": {"levels": [1.0, 2.0]}}',
        b'{"carried": {"levels": [0,1,1,1,1,1,1,1,1,1,1,1,1]}}',
    ],
)
def test_what_is_no_memory_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        load_state(data)


def test_no_moment_is_ahead_of_the_clock() -> None:
    earlier = Timestamp(T0 - 3600.0)

    state = not_ahead_of(FULL, earlier)

    assert state.started_at == state.good_at == state.gap_ended_at == state.busy_since == earlier
    assert state.gap_began_at == earlier
    assert state.recommendations == ((earlier, 7), (earlier, 3))
    assert not_ahead_of(FULL, Timestamp(T0 + 1.0)) == FULL
    assert not_ahead_of(ScalingState(), T0) == ScalingState()
