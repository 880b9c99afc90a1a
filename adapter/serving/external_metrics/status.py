"""Kubernetes ``Status`` objects: the only text of ours that ``kubectl describe hpa`` shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adapter.serving.external_metrics import GROUP

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    413: "RequestEntityTooLarge",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

NOT_FOUND: Final = "the server could not find the requested resource"


@dataclass(frozen=True, slots=True)
class Status:
    """Why a request was not answered with what it asked for."""

    code: int
    message: str
    details: Mapping[str, str] | None = None
    """What the message is about; None leaves the key out, as the Go server does now and then."""

    def document(self) -> dict[str, object]:
        """Return the object as it goes over the wire."""
        about = {} if self.details is None else {"details": dict(self.details)}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": _REASONS.get(self.code, "Unknown"),
            **about,
            "code": self.code,
        }


class StatusError(Exception):
    """Ends a request with ``status``."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def not_found() -> Status:
    """Return what an unknown path gets."""
    return Status(404, NOT_FOUND, {})


def method_not_allowed() -> Status:
    """Return what writing gets: nothing here can be written."""
    return Status(405, "the server does not allow this method on the requested resource", {})


def watch_not_supported() -> Status:
    """Return what ``?watch=true`` gets."""
    message = f'watch is not supported on resources of kind "*.{GROUP}"'
    return Status(405, message, {"group": GROUP, "kind": "*"})


def unauthorized() -> Status:
    """Return what a refused identity gets; it says nothing about the reason, on purpose."""
    return Status(401, "Unauthorized")


def forbidden_path(user: str, verb: str, path: str) -> Status:
    """Return what a user gets who may not read ``path``."""
    return Status(403, f'forbidden: User "{user}" cannot {verb} path "{path}"', {})


def forbidden_metric(user: str, verb: str, namespace: str, metric: str) -> Status:
    """Return what a user gets who may not read ``metric``; names the rule that is missing."""
    message = (
        f'{metric}.{GROUP} is forbidden: User "{user}" cannot {verb} resource "{metric}" '
        f'in API group "{GROUP}" in the namespace "{namespace}"'
    )
    return Status(403, message, {"group": GROUP, "kind": metric})
