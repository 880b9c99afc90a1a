"""KEDA around a trigger: zero and one, failures and what stands in for them."""

import pytest

from adapter.controller.errors import AdapterError, NoDecisionYetError
from adapter.fleet.units import Seconds
from adapter.simulator.hpa import Scale
from adapter.simulator.keda import Fallback, FallbackBehavior, Keda, KedaSpec
from tests.build import T0
from tests.fakes import FakeClock


class Trigger:
    """Answers a count, or fails while it is None."""

    def __init__(self, count: int | None) -> None:
        self.count = count

    async def read(self) -> tuple[int, ...]:
        if self.count is None:
            raise NoDecisionYetError("stale")
        return (1000 * self.count,)


class Target:
    def __init__(self, replicas: int) -> None:
        self.replicas = replicas

    @property
    def scale(self) -> Scale:
        return Scale(self.replicas, self.replicas)

    def set_replicas(self, count: int) -> None:
        self.replicas = count


def a_keda(
    count: int | None, *, current: int, **spec: object
) -> tuple[Keda, Trigger, Target, FakeClock]:
    trigger, target, clock = Trigger(count), Target(current), FakeClock()
    keda = Keda(KedaSpec(**spec), metric=trigger, target=target, clock=clock)  # type: ignore[arg-type]
    return keda, trigger, target, clock


async def test_the_hpa_behind_it_follows_the_trigger():
    keda, _, target, _ = a_keda(7, current=4, min_replicas=1)

    await keda.hpa.sync()

    assert target.replicas == 7


async def test_its_hpa_never_goes_below_one():
    assert KedaSpec(min_replicas=0).hpa.min_replicas == 1
    assert KedaSpec(min_replicas=3).hpa.min_replicas == 3


async def test_an_active_trigger_wakes_a_target_at_zero():
    keda, _, target, _ = a_keda(5, current=0)

    await keda.poll()

    assert target.replicas == 1


async def test_it_wakes_to_the_minimum():
    keda, _, target, _ = a_keda(5, current=0, min_replicas=2)

    await keda.poll()

    assert target.replicas == 2


async def test_the_cooldown_delays_only_the_last_step_to_zero():
    """Idle from 0 s on: one replica stays 300 s after the trigger was last active."""
    keda, trigger, target, clock = a_keda(1, current=1, cooldown=Seconds(300.0))
    await keda.poll()
    trigger.count = 0

    clock.time = T0 + 299
    await keda.poll()
    assert target.replicas == 1
    clock.time = T0 + 300
    await keda.poll()

    assert target.replicas == 0


async def test_what_was_never_active_goes_to_zero_at_once():
    keda, _, target, _ = a_keda(0, current=1)

    await keda.poll()

    assert target.replicas == 0


async def test_an_idle_trigger_leaves_the_minimum():
    keda, _, target, _ = a_keda(0, current=1, min_replicas=2)

    await keda.poll()
    assert target.replicas == 2
    await keda.poll()

    assert target.replicas == 2


async def test_a_failing_trigger_is_not_an_idle_one():
    """Errors never lead to zero."""
    keda, _, target, _ = a_keda(None, current=1, cooldown=Seconds(0.0))

    await keda.poll()

    assert target.replicas == 1


async def test_without_fallback_the_error_reaches_the_hpa_which_holds():
    keda, _, target, _ = a_keda(None, current=4)

    for _ in range(10):
        await keda.hpa.sync()

    assert target.replicas == 4
    assert keda.hpa.verdict is not None
    assert keda.hpa.verdict.because == "FailedGetExternalMetric: stale"


async def test_the_fallback_stands_in_after_more_failures_than_the_threshold():
    keda, _, target, _ = a_keda(None, current=4, min_replicas=1, fallback=Fallback(3, 6))

    for _ in range(3):
        with pytest.raises(AdapterError):
            await keda.read()

    assert await keda.read() == (6000,)
    await keda.hpa.sync()
    assert target.replicas == 6


async def test_polls_count_as_failures_too():
    """Since 2.19: three failed polls, and the HPA's first read gets the fallback."""
    keda, _, _, _ = a_keda(None, current=4, fallback=Fallback(3, 6))
    for _ in range(3):
        await keda.poll()

    assert await keda.read() == (6000,)


async def test_one_success_starts_the_count_anew():
    keda, trigger, _, _ = a_keda(None, current=4, fallback=Fallback(1, 6))
    with pytest.raises(AdapterError):
        await keda.read()
    trigger.count = 5
    assert await keda.read() == (5000,)
    trigger.count = None

    with pytest.raises(AdapterError):
        await keda.read()


@pytest.mark.parametrize(
    ("behavior", "current", "count"),
    [
        (FallbackBehavior.STATIC, 9, 6),
        (FallbackBehavior.CURRENT, 9, 9),
        (FallbackBehavior.CURRENT_IF_HIGHER, 9, 9),
        (FallbackBehavior.CURRENT_IF_HIGHER, 4, 6),
        (FallbackBehavior.CURRENT_IF_LOWER, 9, 6),
        (FallbackBehavior.CURRENT_IF_LOWER, 4, 4),
    ],
)
async def test_each_behavior_has_its_count(behavior, current, count):
    """A static fallback of 6 cuts a fleet of 9 in an outage; currentReplicasIfHigher does not."""
    keda, _, _, _ = a_keda(None, current=current, fallback=Fallback(0, 6, behavior))

    assert await keda.read() == (1000 * count,)
