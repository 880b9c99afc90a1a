"""KEDA's operator in front of many ScaledObjects: three calls for each, once in a period.

``python -m adapter.cli.benchmarks.keda_caller``: a process of its own, so that its work is not
measured as the scaler's. One connection, because KEDA pools them by address.
"""

import argparse
import asyncio
import json
from typing import Any, Final

import grpc

from adapter.serving.external_metrics.metric import DESIRED
from adapter.serving.keda.externalscaler_pb2 import (
    GetMetricSpecResponse,
    GetMetricsRequest,
    GetMetricsResponse,
    IsActiveResponse,
    ScaledObjectRef,
)
from adapter.serving.keda.service import NAME

TIMEOUT_SECONDS: Final = 10.0


class Operator:
    """Asks about ScaledObjects, and remembers how long each answer took."""

    def __init__(self, channel: grpc.aio.Channel, policy: str) -> None:
        self.took: list[float] = []
        self._policy = policy
        self._spec = _call(channel, "GetMetricSpec", GetMetricSpecResponse)
        self._metrics = _call(channel, "GetMetrics", GetMetricsResponse)
        self._active = _call(channel, "IsActive", IsActiveResponse)

    async def evaluate(self, number: int) -> None:
        """Do for the ``number``-th ScaledObject what KEDA does at every poll and HPA read."""
        reference = ScaledObjectRef(
            name=f"pool-{number}", namespace="default", scalerMetadata={"policy": self._policy}
        )
        request = GetMetricsRequest(scaledObjectRef=reference, metricName=f"s0-{DESIRED}")
        await self._timed(self._spec, reference)
        (value,) = (await self._timed(self._metrics, request)).metricValues
        active = await self._timed(self._active, reference)
        if value.metricValue < 1 or not active.result:
            raise ConnectionError(f"not a count: {value} while active is {active.result}")

    async def _timed(self, call: Any, request: Any) -> Any:
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await call(request, timeout=TIMEOUT_SECONDS)
        self.took.append(loop.time() - began)
        return answer


async def percentiles(
    address: str, *, objects: int, period: float, seconds: float
) -> dict[str, float]:
    """Return calls per second and percentiles of ``seconds`` of polling."""
    async with grpc.aio.insecure_channel(address) as channel:
        operator = Operator(channel, "bench")
        await operator.evaluate(0)
        operator.took.clear()
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as polls:
            for number in range(int(objects * seconds / period)):
                await asyncio.sleep(max(0.0, began + number * period / objects - loop.time()))
                polls.create_task(operator.evaluate(number % objects))
        spent = loop.time() - began
    took = sorted(operator.took)
    return {
        "callsPerSecond": len(took) / spent,
        "p50Milliseconds": 1000 * took[len(took) // 2],
        "p99Milliseconds": 1000 * took[len(took) * 99 // 100],
    }


def _call(channel: grpc.aio.Channel, method: str, response: Any) -> Any:
    return channel.unary_unary(
        f"/{NAME}/{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=response.FromString,
    )


def main() -> None:
    """Poll, and print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address", metavar="HOST:PORT")
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--period", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    facts = asyncio.run(
        percentiles(
            options.address,
            objects=options.objects,
            period=options.period,
            seconds=options.seconds,
        )
    )
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
