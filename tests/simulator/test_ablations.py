"""Ablations: each differs from ours in what its name says, and in nothing else."""

import pytest

from adapter.simulator.ablations import ABLATIONS, OURS, policy_named


def spec(name: str) -> dict:
    return policy_named(name, most=12).spec.model_dump()


def flat(tree: object, path: str = "") -> dict[str, object]:
    if not isinstance(tree, dict):
        return {path: tree}
    return {k: v for key, sub in tree.items() for k, v in flat(sub, f"{path}.{key}").items()}


def test_ours_says_nothing_but_its_bounds():
    policy = policy_named(OURS, most=12)

    assert policy.spec.model_fields_set == {"target", "source", "replicas"}
    assert (policy.spec.replicas.min, policy.spec.replicas.max) == (1, 12)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("leadtime-fixed-capacity", ".signals.queue.target_in_flight", 16.0),
        ("leadtime-delay-300s", ".scale_down.delay", "5m"),
        ("leadtime-not-only-idle", ".scale_down.only_idle", False),
    ],
)
def test_one_field_differs(name, field, value):
    ours, other = flat(spec(OURS)), flat(spec(name))

    assert {key for key in ours if ours[key] != other[key]} == {field}
    assert other[field] == value


def test_without_first_tokens_the_section_is_off_and_the_others_are_as_ever():
    ours, other = spec(OURS), spec("leadtime-no-ttft")

    assert other["signals"].pop("ttft") is None
    assert ours["signals"].pop("ttft") is not None
    assert ours == other


def test_every_ablation_is_tested_here_and_named_after_ours():
    assert len(ABLATIONS) == 4
    assert all(name.startswith("leadtime-") for name in ABLATIONS)


def test_another_name_is_none_of_ours():
    with pytest.raises(KeyError, match="magic"):
        policy_named("magic", most=1)
