"""Who may ask: the port for SubjectAccessReview, and the rules that need no asking."""

import asyncio
from dataclasses import dataclass
from typing import Final, Protocol

from adapter.controller.errors import SourceError
from adapter.controller.ports import Clock
from adapter.fleet.units import Seconds, Timestamp
from adapter.serving.external_metrics.authn import AUTHENTICATED, User
from adapter.serving.external_metrics.status import Status, StatusError

ALWAYS_ALLOWED_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz"})
MASTERS: Final = "system:masters"

HPA_IDENTITIES: Final = frozenset(
    {
        "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
        "system:kube-controller-manager",
    }
)
"""The HPA controller with and without ``--use-service-account-credentials``."""

REMEMBERED: Final = Seconds(10.0)
"""How long an answer is reused; Go's default."""

PATIENCE: Final = Seconds(10.0)
"""How long one review may take; Go's default."""

_MOST_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked for, in the words of a SubjectAccessReview."""

    user: User
    verb: str
    path: str
    """The path itself; what counts when ``resource`` is empty."""

    namespace: str = ""
    resource: str = ""
    """The metric's name; empty for a path that is no resource."""


class Authorizer(Protocol):
    """Answers one SubjectAccessReview."""

    async def allows(self, asked: Attributes) -> bool:
        """Return whether ``asked`` is allowed.

        Raises:
            SourceError: nobody could say; this is then a 500, never an allow.
        """
        ...


class Gate:
    """Asks the authorizer, except for what must work while the API server cannot answer."""

    def __init__(
        self, authorizer: Authorizer, *, clock: Clock, patience: Seconds = PATIENCE
    ) -> None:
        self._authorizer, self._clock, self._patience = authorizer, clock, patience
        self._remembered: dict[Attributes, tuple[bool, Timestamp]] = {}

    async def allows(self, asked: Attributes) -> bool:
        """Return whether ``asked`` is allowed.

        Raises:
            StatusError: 500, nobody could say.
        """
        if asked.path in ALWAYS_ALLOWED_PATHS or MASTERS in asked.user.groups:
            return True
        now = self._clock.now()
        allowed, until = self._remembered.get(asked, (False, Timestamp(now)))
        if now < until <= now + REMEMBERED:
            return allowed
        allowed = await self._ask(asked)
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[asked] = (allowed, Timestamp(now + REMEMBERED))
        return allowed

    async def _ask(self, asked: Attributes) -> bool:
        try:
            async with asyncio.timeout(self._patience):
                return await self._authorizer.allows(asked)
        except TimeoutError as error:
            raise _unknown(f"no answer within {self._patience:g} s") from error
        except SourceError as error:
            raise _unknown(str(error)) from error


def _unknown(cause: str) -> StatusError:
    return StatusError(Status(500, f"it could not be checked whether this is allowed: {cause}"))


class AllowListAuthorizer:
    """Allows by name: the metrics to those listed, discovery to everyone who is authenticated.

    Stands in for RBAC where no API server can be asked for a SubjectAccessReview.
    """

    def __init__(self, readers: frozenset[str] = HPA_IDENTITIES) -> None:
        self._readers = readers

    async def allows(self, asked: Attributes) -> bool:
        """Return whether ``asked`` is allowed; never fails."""
        if asked.resource:
            return asked.verb == "list" and asked.user.name in self._readers
        top = asked.path.split("/")[1]
        known = AUTHENTICATED in asked.user.groups
        return known and asked.verb == "get" and top in {"apis", "openapi", "metrics"}
