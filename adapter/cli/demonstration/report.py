"""What came of it: the closing summary for people, the document for scripts."""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from adapter.cli.demonstration.moment import Moment
from adapter.fleet.units import Seconds


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one play; every number is counted, none is assumed."""

    moments: tuple[Moment, ...]
    """Every tick, in order."""

    first_replicas: int
    judged: int
    """Requests whose first token came, or is overdue."""

    good: int
    """The part of them whose first token came in time."""

    pod_seconds: float
    """Pods that existed, summed over time: loading and draining ones are paid as well."""

    started: int
    stopped: int
    reads: int
    """Answers that the HPA got over TLS."""

    failed_reads: int
    """The part of them without a value."""

    played: Seconds
    """Fleet time that passed."""

    planned: Seconds
    wall: Seconds
    """Wall time that passed."""

    @property
    def attainment(self) -> float | None:
        """Return the share of the requests that were served in time; None without any."""
        return self.good / self.judged if self.judged else None

    @property
    def max_desired(self) -> int | None:
        """Return the highest count that was wanted; None without a tick."""
        return max((moment.decision.desired for moment in self.moments), default=None)

    @property
    def final_desired(self) -> int | None:
        """Return the count that was wanted last; None without a tick."""
        return self.moments[-1].decision.desired if self.moments else None

    @property
    def served(self) -> bool:
        """Return whether the main job was done: the HPA read a count at least once."""
        return self.reads > self.failed_reads

    def document(self) -> dict[str, object]:
        """Return the report for scripts."""
        return {
            "ticks": len(self.moments),
            "maxDesired": self.max_desired,
            "finalDesired": self.final_desired,
            "sloAttainment": None if self.attainment is None else round(self.attainment, 4),
            "decisions": [_entry(moment) for moment in self.moments],
        }

    @property
    def problem(self) -> str:
        """Return why nothing was shown; empty when the main job was done."""
        if self.served:
            return ""
        return (
            f"the HPA never read a count in {self.wall:.1f} s; give it more --seconds, and if that "
            f"does not help, run 'leadtime --debug demo' and report what it says"
        )

    def text(self) -> str:
        """Return the report for people."""
        facts = {
            "served in time": self._attainment_text(),
            "replicas": (
                f"{self.first_replicas} at first, {self.max_desired} wanted at the most, "
                f"{self.final_desired} at the end; "
                f"{self.started} started, {self.stopped} stopped"
            ),
            "replica-hours": self._hours_text(),
            "decisions": f"{len(self.moments)}, {self._changes()} changed the published count",
            "HPA reads over TLS": f"{self.reads}, {self.failed_reads} of them without a value",
            "fleet time": self._time_text(),
        }
        return "\n".join(f"{name:<20}{fact}" for name, fact in facts.items())

    def _attainment_text(self) -> str:
        if self.attainment is None:
            return "no request came due"
        limit = "first token within 2 s + twice its prefill alone"
        return f"{self.attainment:.2%} of {self.judged:,} requests ({limit})"

    def _hours_text(self) -> str:
        """Compare with the fleet that the peak needs, standing there all the time."""
        static = (self.max_desired or 0) * self.played
        saved = 1 - self.pod_seconds / static
        return (
            f"{self.pod_seconds / 3600:.2f}; {self.max_desired} replicas all the time would be "
            f"{static / 3600:.2f} ({saved:.0%} saved)"
        )

    def _changes(self) -> int:
        counts = [moment.decision.published for moment in self.moments]
        return sum(one != other for one, other in pairwise(counts))

    def _time_text(self) -> str:
        text = f"{self.played / 60:.1f} min in {self.wall:.0f} s"
        if self.played >= self.planned - 1:
            return text
        return f"{text}; the machine was too busy for the {self.planned / 60:.1f} min planned"


def _entry(moment: Moment) -> dict[str, object]:
    decision, traffic = moment.decision, moment.traffic
    return {
        "at": datetime.fromtimestamp(decision.at, UTC).isoformat().replace("+00:00", "Z"),
        "desired": decision.desired,
        "published": decision.published,
        "ready": decision.census.serving,
        "loading": decision.census.loading,
        "replicas": moment.replicas,
        "because": moment.why,
        "holds": [{"reason": hold.reason, "because": hold.because} for hold in decision.holds],
        "refusal": decision.refusal,
        "requestsPerSecond": round(traffic.load, 2),
        "inFlight": traffic.in_flight,
        "kvUsage": round(traffic.kv_usage, 4),
        "ttftP95": traffic.ttft_p95 and round(traffic.ttft_p95, 3),
    }
