"""The four calls of KEDA's external scaler, answered from the board."""

import difflib
import math
import re
from collections.abc import AsyncIterator
from typing import Final

from adapter.controller.board import Board, PolicyKey
from adapter.controller.errors import AdapterError, NoDecisionYetError, NotServedError
from adapter.controller.ports import Clock
from adapter.scaling.decision import Decision
from adapter.serving.external_metrics.metric import DESIRED
from adapter.serving.keda.externalscaler_pb2 import (
    GetMetricSpecResponse,
    GetMetricsRequest,
    GetMetricsResponse,
    IsActiveResponse,
    MetricSpec,
    MetricValue,
    ScaledObjectRef,
)

POLICY: Final = "policy"
"""The one key of a trigger's metadata that we read."""

TARGET: Final = 1
"""One replica per wanted replica: as AverageValue the HPA then wants what we say."""

_INDEX: Final = re.compile(r"s\d+-")
"""What KEDA puts before a metric's name in the HPA, and is meant to take away again."""


class UnfitReferenceError(AdapterError, ValueError):
    """The trigger does not say whose count is wanted: maps to INVALID_ARGUMENT."""


class ExternalScaler:
    """Answers from memory. KEDA asks about twenty times a minute for each ScaledObject."""

    def __init__(self, board: Board, *, clock: Clock) -> None:
        self._board, self._clock = board, clock
        self._spec = GetMetricSpecResponse(
            metricSpecs=[MetricSpec(metricName=DESIRED, targetSize=TARGET, targetSizeFloat=TARGET)]
        )

    def get_metric_spec(self, reference: ScaledObjectRef) -> GetMetricSpecResponse:
        """Return the one metric; needs no decision, because KEDA makes the HPA from this.

        Raises:
            UnfitReferenceError: it names no policy.
            NotServedError: no such policy.
        """
        self._board.find(_key(reference))
        return self._spec

    def get_metrics(self, request: GetMetricsRequest) -> GetMetricsResponse:
        """Return the published count.

        Raises:
            UnfitReferenceError: the reference names no policy.
            NotServedError: no such policy or metric.
            NoDecisionYetError: nothing worth serving; KEDA's fallback needs an error, never a 0.
        """
        count = self._published(_key(request.scaledObjectRef))
        # client-go lower-cases what an HPA asks for, and has sent the prefix along (keda#4954).
        asked = _INDEX.sub("", request.metricName.lower(), count=1)
        if asked != DESIRED:
            raise NotServedError(_unknown_metric(request.metricName))
        # KEDA takes the float if it is above zero and the integer if not; before 2.17 it knows
        # only the integer. Filled both, every version reads the same count.
        value = MetricValue(
            metricName=DESIRED, metricValue=math.ceil(count), metricValueFloat=count
        )
        return GetMetricsResponse(metricValues=[value])

    def is_active(self, reference: ScaledObjectRef) -> IsActiveResponse:
        """Return whether any replica is wanted, which is what takes KEDA from zero to one.

        Raises:
            UnfitReferenceError: it names no policy.
            NotServedError: no such policy.
            NoDecisionYetError: nothing worth serving.
        """
        return IsActiveResponse(result=self._published(_key(reference)) > 0)

    async def activity(self, reference: ScaledObjectRef) -> AsyncIterator[IsActiveResponse]:
        """Yield the state at once, and again whenever it is another one.

        While there is no decision worth serving nothing is said: KEDA evaluates all triggers at
        every message (http-add-on#1793), and ends no state on its own.

        Raises:
            UnfitReferenceError: it names no policy.
            NotServedError: no such policy, or no longer.
        """
        key, said = _key(reference), None
        while True:
            # Found before it is waited for: the board keeps what is waited for, and a caller may
            # make up any name.
            self._board.find(key)
            change = self._board.change(key)
            active = self._active(key)
            if active is not None and active != said:
                said = active
                yield IsActiveResponse(result=active)
            else:
                await change.wait()

    def _active(self, key: PolicyKey) -> bool | None:
        """Return whether any replica is wanted; None while nobody can say."""
        try:
            return self._published(key) > 0
        except NoDecisionYetError:
            return None

    def _published(self, key: PolicyKey) -> int:
        decision: Decision = self._board.decided(key, self._clock.now())
        if decision.published < 0:
            raise AssertionError(f"policy {key}: the count to publish is {decision.published}")
        return decision.published


def _key(reference: ScaledObjectRef) -> PolicyKey:
    """Return whose count is asked for."""
    name = reference.scalerMetadata.get(POLICY, "").strip()
    who = f"ScaledObject {reference.namespace}/{reference.name}"
    if not name:
        near = difflib.get_close_matches(POLICY, reference.scalerMetadata, n=1)
        instead = f" (it has {near[0]!r})" if near and near[0] != POLICY else ""
        raise UnfitReferenceError(
            f"{who}: the trigger names no policy{instead}; "
            f"add `{POLICY}: NAME` to its metadata, a ScalingPolicy of the same namespace"
        )
    if not reference.namespace:
        raise UnfitReferenceError(
            f"{who}: the call says no namespace, and a policy is found by namespace and name; "
            f"KEDA fills it in, so does `namespace` of the request's ScaledObjectRef"
        )
    return PolicyKey(reference.namespace, name)


def _unknown_metric(asked: str) -> str:
    near = difflib.get_close_matches(asked.lower(), [DESIRED], n=1)
    hint = f"did you mean {DESIRED!r}?" if near else f"the one metric here is {DESIRED!r}"
    return f"no metric {asked!r}; {hint}"
