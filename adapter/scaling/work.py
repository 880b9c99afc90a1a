"""What one replica has in hand: requests running and waiting, or why nobody can tell."""

from dataclasses import dataclass
from enum import StrEnum

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import increase, seconds_between
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import Replica


class Lack(StrEnum):
    """Why data is missing; the reasons of the condition ``MetricsAvailable``."""

    MISSING = "Missing"
    """No reading, or no series where the engine has one."""

    STALE = "Stale"
    NAN = "NaN"
    """NaN, infinite or impossible."""

    ERROR = "Error"
    """Asked, and no proper answer came."""


@dataclass(frozen=True, slots=True)
class Work:
    """The requests that a replica has in hand."""

    running: float
    """From the gauge, or by Little's law over the last two readings."""

    waiting: float
    by_law: bool = False
    """True when ``running`` comes from Little's law: a mean over ticks, not a count of now."""

    @property
    def in_flight(self) -> float:
        """Return running and waiting together."""
        return self.running + self.waiting


@dataclass(frozen=True, slots=True)
class Silence:
    """Why the work of a replica is unknown."""

    lack: Lack
    detail: str
    unserved: bool = False
    """True: the engine exports nothing that would tell; not a fault."""


def work_of(replica: Replica) -> Work | Silence:
    """Return the work of ``replica``, or why it is unknown.

    An engine without a running gauge (Triton) tells the mean by Little's law: the durations of
    the requests that ended, per second. Where it counts no durations either, the queue must do;
    where there is no queue either, nothing is served that tells the work. An engine that never
    had a request may show no gauge yet: then its counters tell that nothing is in hand.
    """
    if isinstance(replica.sample, Gap):
        return Silence(_LACK_OF_CAUSE[replica.sample.cause], replica.sample.detail)
    reading = replica.sample
    served = [metric for metric in _TELLING if metric not in reading.unserved]
    if not served:
        return Silence(Lack.MISSING, f"{reading.engine} exports no queue or load", unserved=True)
    if _never_used(reading):
        return Work(0.0, 0.0)
    waiting = _gauge(reading, Metric.REQUESTS_WAITING)
    running = _gauge(reading, Metric.REQUESTS_RUNNING)
    if isinstance(waiting, Silence):
        return waiting
    if Metric.REQUESTS_RUNNING in reading.unserved and Metric.REQUEST_SECONDS in served:
        running = _by_littles_law(reading, replica.previous)
        return running if isinstance(running, Silence) else Work(running, waiting, by_law=True)
    return running if isinstance(running, Silence) else Work(running, waiting)


def _never_used(reading: Reading) -> bool:
    """Return whether no gauge is there, and every counter of requests and tokens stands at 0.

    vLLM behind several API servers sets its gauges with the first scheduler step. A standby
    replica of it would otherwise count as busy until somebody happens to send it a request.
    """
    if {*_GAUGES} & (reading.values.keys() | reading.matched.keys() | reading.unserved):
        return False
    counted = [reading.values[metric] for metric in _MOVING if metric in reading.values]
    if reading.ttft is not None:
        counted.append(reading.ttft.count)
    return bool(counted) and not any(counted)


def lack_of(reading: Reading, metric: str) -> Silence:
    """Return why ``reading`` has no value for ``metric``."""
    why = reading.missing.get(metric, "no series in this scrape")
    return Silence(Lack.NAN if why.startswith(_UNUSABLE) else Lack.MISSING, f"{metric}: {why}")


def _gauge(reading: Reading, metric: Metric) -> float | Silence:
    """Return the gauge; 0 where the engine has none, because then others tell the work."""
    if metric in reading.values:
        return reading.values[metric]
    return 0.0 if metric in reading.unserved else lack_of(reading, metric)


def _by_littles_law(reading: Reading, previous: Reading | None) -> float | Silence:
    if Metric.REQUEST_SECONDS not in reading.values:
        return lack_of(reading, Metric.REQUEST_SECONDS)
    if previous is not None:
        busy = increase(reading, previous, Metric.REQUEST_SECONDS)
        elapsed = seconds_between(reading, previous)
        if busy is not None and elapsed > 0:
            return busy / elapsed
    return Silence(Lack.MISSING, "the work in flight takes two readings to tell; this is the first")


_TELLING = (Metric.REQUESTS_RUNNING, Metric.REQUEST_SECONDS, Metric.REQUESTS_WAITING)

_GAUGES = (Metric.REQUESTS_RUNNING, Metric.REQUESTS_WAITING)

_MOVING = (
    Metric.PROMPT_TOKENS,
    Metric.GENERATION_TOKENS,
    Metric.REQUESTS_FINISHED,
    Metric.REQUESTS_REJECTED,
    Metric.ENGINE_STEPS,
)

_UNUSABLE = ("NaN", "+Inf", "-Inf", "impossible", "a division by zero")
"""How the reasons begin that stand in ``Reading.missing`` for a number that cannot be true."""

_LACK_OF_CAUSE = {
    Cause.UNREACHABLE: Lack.ERROR,
    Cause.TIMEOUT: Lack.ERROR,
    Cause.HTTP_STATUS: Lack.ERROR,
    Cause.TOO_LARGE: Lack.ERROR,
    Cause.NOT_METRICS: Lack.ERROR,
    Cause.NO_ENGINE: Lack.MISSING,
    Cause.WRONG_MODEL: Lack.MISSING,
    Cause.SEVERAL_MODELS: Lack.MISSING,
    Cause.STALE: Lack.STALE,
    Cause.NOT_SCRAPED: Lack.MISSING,
}
