"""What people can have today instead, one rule per file, each from its documented formula.

What belongs: pure decisions with their strongest documented settings, defects included. What does
not: engines, timing and actuation, which are the same for every policy. To add one: write its file
and its line in ``rivals`` below, and its row in docs/rivals.md. Only the simulator imports them.
"""

from typing import Any

from adapter.simulator.rivals.aibrix import AibrixAutoscaler, Build, Strategy
from adapter.simulator.rivals.crane import CraneForecast
from adapter.simulator.rivals.dynamo import DynamoPlanner, Target
from adapter.simulator.rivals.in_flight import InFlightHpa
from adapter.simulator.rivals.kaito import KaitoScaler
from adapter.simulator.rivals.knative import KnativeKpa
from adapter.simulator.rivals.kthena import Kthena
from adapter.simulator.rivals.kv_and_waiting import KvAndWaitingKeda
from adapter.simulator.rivals.llmd_queue import LlmdQueue
from adapter.simulator.rivals.llmd_queue_guard import LlmdQueueGuard
from adapter.simulator.rivals.llmd_saturation import LlmdSaturation
from adapter.simulator.rivals.llmd_slo_aware import LlmdSloAware
from adapter.simulator.rivals.llmd_token_aware import LlmdTokenAware
from adapter.simulator.rivals.moving_p95 import MovingP95
from adapter.simulator.rivals.oracle import Oracle
from adapter.simulator.rivals.port import Calibration, Rival
from adapter.simulator.rivals.ray_serve import RayServe
from adapter.simulator.rivals.sageserve import SageServe
from adapter.simulator.rivals.static import Static
from adapter.simulator.rivals.waiting import WaitingKeda
from adapter.simulator.rivals.wva_v1 import WvaV1
from adapter.simulator.rivals.wva_v2 import WvaV2

HINDSIGHT: tuple[type[Static] | type[Oracle], ...] = (Static, Oracle)
"""Those that need the whole load beforehand: ``static`` and ``bound`` make them for one."""


def rivals(calibration: Calibration) -> tuple[Rival[Any], ...]:
    """Return every rule that could be deployed, set up for one engine."""
    return (
        InFlightHpa(),
        WaitingKeda(),
        KvAndWaitingKeda(),
        LlmdQueue(),
        LlmdSaturation(),
        LlmdQueueGuard(),
        LlmdTokenAware(calibration.prefill_tokens_per_second),
        LlmdSloAware(),
        WvaV1(),
        WvaV2.of(calibration),
        DynamoPlanner.of(calibration, Target.SLA),
        DynamoPlanner.of(calibration, Target.THROUGHPUT),
        KaitoScaler(),
        Kthena(),
        AibrixAutoscaler(Strategy.APA),
        AibrixAutoscaler(Strategy.APA, Build.REPAIRED),
        AibrixAutoscaler(Strategy.KPA),
        AibrixAutoscaler(Strategy.KPA, Build.REPAIRED),
        KnativeKpa(),
        RayServe(),
        SageServe.of(calibration),
        CraneForecast(),
        MovingP95.of(calibration),
    )
