"""The users behind a router: who sends the requests, and how long they wait for a first token."""

import math
from collections import deque
from collections.abc import Iterator
from statistics import fmean
from typing import Final

from adapter.cli.demonstration import scene
from adapter.cli.demonstration.deployment import Deployment
from adapter.cli.demonstration.moment import Traffic
from adapter.fleet.snapshot import Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.engine import Request
from adapter.simulator.workload import Arrival

PROMISE: Final = Seconds(2.0)
PREFILLS: Final = 2.0
"""In time is a first token within 2 s plus twice the prefill that the prompt takes alone: no
fleet can keep an absolute promise for the longest prompts."""

_RECENT: Final = Seconds(60.0)
_QUANTILE: Final = 0.95


class Users:
    """Sends each arrival to the serving pod with the fewest requests in flight.

    While no pod serves, requests wait at the router, and their time to first token runs.
    """

    def __init__(
        self, arrivals: Iterator[Arrival], *, begin: Timestamp, deployment: Deployment
    ) -> None:
        self._arrivals, self._begin, self._deployment = arrivals, begin, deployment
        self._next = next(arrivals, None)
        self._unsent: deque[Request] = deque()
        self._awaiting: list[Request] = []
        self._arrived = _Recent()
        self._waits = _Recent()
        self.judged = 0
        """Requests whose first token came, or is overdue."""

        self.good = 0
        """The part of them whose first token came in time."""

    def advance(self, now: Timestamp) -> None:
        """Send what arrived until ``now``, let the engines work until then, and judge."""
        self._receive(now)
        self._send()
        for pod in self._deployment.pods:
            pod.engine.advance(now)
        self._judge(now)

    def give_up(self, now: Timestamp) -> None:
        """Judge those who still wait: who is overdue was not served in time, the rest is open."""
        waiting = (*self._unsent, *self._awaiting)
        self.judged += sum(now - request.arrived_at > _limit(request) for request in waiting)

    def traffic(self, now: Timestamp) -> Traffic:
        """Return what the users meet around ``now``."""
        serving = self._deployment.phase(Phase.SERVING)
        inside = sum(pod.engine.in_flight for pod in self._deployment.pods)
        waits = sorted(self._waits.since(now - _RECENT))
        return Traffic(
            load=len(self._arrived.since(now - _RECENT)) / _RECENT,
            in_flight=len(self._unsent) + inside,
            kv_usage=fmean(pod.engine.kv_usage for pod in serving) if serving else 0.0,
            ttft_p95=Seconds(waits[math.ceil(_QUANTILE * len(waits)) - 1]) if waits else None,
        )

    def _receive(self, now: Timestamp) -> None:
        while self._next is not None and self._begin + self._next.after <= now:
            arrived_at = Timestamp(self._begin + self._next.after)
            self._unsent.append(
                Request(arrived_at, self._next.prompt_tokens, self._next.output_tokens)
            )
            self._arrived.add(arrived_at, 1.0)
            self._next = next(self._arrivals, None)

    def _send(self) -> None:
        serving = self._deployment.phase(Phase.SERVING)
        while serving and self._unsent:
            pod = min(serving, key=lambda pod: pod.engine.in_flight)
            request = self._unsent.popleft()
            pod.engine.submit(request)
            self._awaiting.append(request)

    def _judge(self, now: Timestamp) -> None:
        for request in self._awaiting:
            if request.first_token_at is not None:
                wait = request.first_token_at - request.arrived_at
                self._waits.add(request.first_token_at, wait)
                self.judged += 1
                self.good += wait <= _limit(request)
        self._awaiting = [r for r in self._awaiting if r.first_token_at is None]


def _limit(request: Request) -> float:
    return PROMISE + PREFILLS * scene.PRESET.isolated_prefill_seconds(request.prompt_tokens)


class _Recent:
    """Numbers with their moments; the old ones are dropped when the recent ones are read."""

    def __init__(self) -> None:
        self._entries: deque[tuple[Timestamp, float]] = deque()

    def add(self, at: Timestamp, number: float) -> None:
        self._entries.append((at, number))

    def since(self, moment: float) -> list[float]:
        while self._entries and self._entries[0][0] < moment:
            self._entries.popleft()
        return [number for _, number in self._entries]
