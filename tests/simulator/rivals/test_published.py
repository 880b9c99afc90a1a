"""Several metrics and both target types, through one HPA."""

import pytest

from adapter.fleet.units import Timestamp
from adapter.simulator.hpa import HpaSpec, HpaState, Scale
from adapter.simulator.rivals.port import DEFAULT_BEHAVIOR, ExternalMetric, Published, TargetType
from adapter.simulator.rivals.published import sync


def synced(*metrics: ExternalMetric, count: int, ready: int | None = None, behavior=None):
    verdict, _ = sync(
        HpaSpec(1, 1000, behavior=behavior),
        Scale(count, count),
        wish=Published(metrics),
        ready=count if ready is None else ready,
        at=Timestamp(0.0),
        state=HpaState(),
    )
    return verdict


@pytest.mark.parametrize(("total", "wanted"), [(21, 20), (22, 20), (23, 23), (24, 24)])
def test_peers_vector_of_the_default_tolerance_at_twenty(total, wanted):
    """peers.md 5.0: S=20, T=1."""
    assert synced(ExternalMetric(total, 1.0), count=20).wanted == wanted


def test_the_largest_of_several_proposals_counts():
    verdict = synced(ExternalMetric(10.0, 5.0), ExternalMetric(30.0, 5.0), count=3)

    assert verdict.wanted == 6


def test_a_proposal_inside_its_tolerance_still_outweighs_a_lower_one():
    """21 of 20 stays 20; beside it 10 would halve."""
    verdict = synced(ExternalMetric(21.0, 1.0), ExternalMetric(10.0, 1.0), count=20)

    assert verdict.replicas == verdict.wanted == 20


def test_a_failing_metric_forbids_the_way_down():
    verdict = synced(ExternalMetric(2.0, 1.0), ExternalMetric(None, 1.0), count=8)

    assert verdict.replicas == 8
    assert verdict.wanted is None
    assert verdict.because.startswith("FailedGetExternalMetric")


def test_a_failing_metric_does_not_forbid_the_way_up():
    verdict = synced(ExternalMetric(12.0, 1.0), ExternalMetric(None, 1.0), count=8)

    assert verdict.replicas == 12


def test_without_any_value_the_count_stays():
    assert synced(ExternalMetric(None, 1.0), count=8).replicas == 8


def test_a_value_target_multiplies_the_ready_replicas():
    """KAITO's 2 with 4 ordered and 3 ready: 6."""
    metric = ExternalMetric(2.0, 1.0, TargetType.VALUE)

    assert synced(metric, count=4, ready=3).wanted == 6


def test_windows_and_limits_of_the_hpa_apply():
    """From 4 the default lets 8 in one sync, and nothing down for 300 s."""
    assert synced(ExternalMetric(20.0, 1.0), count=4, behavior=DEFAULT_BEHAVIOR).replicas == 8
    assert synced(ExternalMetric(1.0, 1.0), count=4, behavior=DEFAULT_BEHAVIOR).replicas == 4
