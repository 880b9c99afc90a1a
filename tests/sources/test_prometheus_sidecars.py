"""Pods with more than one target: a sidecar that is up says nothing of the engine beside it."""

import pytest

from adapter.fleet.reading import Cause, Gap
from adapter.fleet.units import Seconds
from tests.build import T0
from tests.sources.prometheus_answers import Store, an_engine, an_up
from tests.sources.test_prometheus import a_fleet, samples

MESH = {"job": "mesh", "instance": "a:15020"}


@pytest.mark.parametrize("engine_first", [True, False])
async def test_a_down_engine_beside_a_sidecar_is_a_silent_replica(engine_first: bool):  # noqa: FBT001 - a parameter of the test
    """In whatever order the store lists the two targets of pod a; b shows that engines are here."""
    both = [an_up("a", "0"), an_up("a", "1", **MESH)]
    store = Store([*(both if engine_first else reversed(both)), an_up("b")], an_engine("b"))

    async with a_fleet(store.answer) as fleet:
        found = samples(await fleet.snapshot(T0))

    assert set(found) == {"a", "b"}
    gap = found["a"]
    assert isinstance(gap, Gap)
    assert gap.cause is Cause.UNREACHABLE


async def test_a_sidecar_alone_is_no_replica():
    """Its job has no engines."""
    store = Store([an_up("b"), an_up("a", "1", **MESH)], an_engine("b"))

    async with a_fleet(store.answer) as fleet:
        assert set(samples(await fleet.snapshot(T0))) == {"b"}


async def test_a_timeout_is_sent_in_whole_numbers():
    """A Prometheus refuses 2.5s."""
    store = Store([an_up("b")], an_engine("b"))

    async with a_fleet(store.answer, access={"timeout": Seconds(2.5)}) as fleet:
        await fleet.snapshot(T0)

    assert {form["timeout"][0] for form in store.forms} == {"2500ms"}
