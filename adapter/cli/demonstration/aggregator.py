"""The other end of the wire: reads the metric as kube-apiserver's aggregator does for the HPA."""

import ssl
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from adapter.controller.errors import SourceError
from adapter.serving.external_metrics.quantity import read_milli

_HPA: Final = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

_HEADERS: Final = (
    ("User-Agent", f"kcm/v1.36.2 (linux/amd64) kubernetes/{_HPA}"),
    ("Accept", "application/vnd.kubernetes.protobuf, */*"),
    ("X-Remote-User", _HPA),
    ("X-Remote-Group", "system:serviceaccounts"),
    ("X-Remote-Group", "system:serviceaccounts:kube-system"),
    ("X-Remote-Group", "system:authenticated"),
)
"""What arrives at an extension API server: the caller by name, for which the front proxy vouches
with its client certificate."""

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)


class AggregatedMetric:
    """One external metric as the HPA controller gets it."""

    def __init__(self, url: str, *, trust: ssl.SSLContext, server_name: str) -> None:
        """``server_name`` is what the aggregator insists on: always ``SERVICE.NAMESPACE.svc``."""
        self.url, self._trust, self._server_name = url, trust, server_name
        self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        self.reads = 0
        self.failed_reads = 0
        """The part of ``reads`` that got no value."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def read(self) -> tuple[int, ...]:
        """Return every item's value in milli.

        Raises:
            SourceError: no answer, an error status with its message, or a body that is no list.
        """
        self.reads += 1
        try:
            return _values(*await self._get())
        except (aiohttp.ClientError, OSError, ValueError) as error:
            self.failed_reads += 1
            raise SourceError(f"{str(error) or type(error).__name__} (GET {self.url})") from error

    async def _get(self) -> tuple[int, Any]:
        async with self._session.get(
            self.url, headers=_HEADERS, ssl=self._trust, server_hostname=self._server_name
        ) as answer:
            return answer.status, await answer.json()


def _values(status: int, body: Any) -> tuple[int, ...]:
    if status != HTTPStatus.OK:
        raise ValueError(f"{body.get('reason')}: {body.get('message')}")
    return tuple(read_milli(item["value"]) for item in body.get("items") or ())
