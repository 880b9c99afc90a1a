"""What was seen and decided at one tick: the row of the table, the entry of the JSON."""

from dataclasses import dataclass

from adapter.fleet.units import Seconds
from adapter.scaling.decision import Decision, Stage
from adapter.simulator.hpa import Verdict


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the users meet, measured at their end and not by the adapter."""

    load: float
    """Requests per second that arrived lately."""

    in_flight: int
    """Requests inside the engines, and those that wait for any."""

    kv_usage: float
    """Mean share of the KV cache in use over the serving engines, 0..1."""

    ttft_p95: Seconds | None
    """Of the first tokens of the last two minutes; None without any."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One tick of the adapter, with the traffic and the HPA around it."""

    elapsed: Seconds
    """Since the demo's begin, in fleet time."""

    decision: Decision
    traffic: Traffic
    replicas: int
    """What the scale target is set to."""

    hpa: Verdict | None
    """The HPA's latest sync; None before its first."""

    @property
    def why(self) -> str:
        """Return what the load asks for, and what settled the count if that is something else."""
        decision = self.decision
        if decision.refusal is not None:
            return decision.refusal
        asked = [step.because for step in decision.steps if step.stage is Stage.COMBINE]
        return "; ".join(dict.fromkeys((*asked, decision.because)))
