"""The sections: their defaults are a whole policy, and what contradicts itself is refused."""

import pytest
from pydantic import ValidationError

from adapter.scaling.signals import Signals
from adapter.scaling.spec import Mode, ScalingSpec
from tests.build import a_spec


def test_bounds_alone_are_a_whole_spec() -> None:
    spec = ScalingSpec.model_validate({"replicas": {"min": 1, "max": 2}})

    assert spec.mode is Mode.ACTIVE
    assert None not in (spec.signals.queue, spec.signals.kv_cache, spec.signals.ttft)
    assert spec.scale_down.delay == "auto"
    assert spec.stale_after == 120


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"replicas": {"min": 3, "max": 2}}, "max 2 is below min 3"),
        ({"replicas": {"min": 0, "max": 2}}, "greater than or equal to 1"),
        ({"standby": {"floor": 3, "ceiling": 2}}, "ceiling 2 is below floor 3"),
        ({"scaleUp": {"maxStep": "0%"}}, "maxStep"),
        ({"scaleUp": {"maxStep": 0}}, "maxStep"),
        ({"signals": {"queue": {"headroom": 0}}}, "headroom"),
        ({"signals": {"cpu": {}}}, "cpu"),
        ({"staleAfter": 120}, "120 has no unit"),
    ],
)
def test_what_cannot_be_meant_is_refused(sections: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        a_spec(**sections)

    assert words in str(refused.value)


def test_a_standby_between_its_bounds_is_fine() -> None:
    assert a_spec(standby={"floor": 2, "ceiling": 2}).standby.ceiling == 2


def test_a_signal_is_turned_off_with_null() -> None:
    signals = Signals.model_validate({"kvCache": None})

    assert signals.kv_cache is None
    assert signals.queue is not None
