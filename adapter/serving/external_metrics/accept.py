"""The ``Accept`` header: 406 only for those who could not read JSON at all."""

from functools import lru_cache
from typing import Final

from adapter.serving.external_metrics.status import Status, StatusError

_JSON: Final = {"application/json", "application/*", "*/*"}


@lru_cache(maxsize=256)
def check_accepts_json(accept: str) -> None:
    """Pass any header that plain JSON satisfies; a missing one is an empty text.

    The HPA asks for protobuf or ``*/*`` and is fine with JSON.

    Raises:
        StatusError: 406.
    """
    choices = [_parsed(part) for part in accept.split(",") if part.strip()]
    if not choices or any(kind in _JSON and not shaped for kind, shaped in choices):
        return
    if any(kind in _JSON for kind, _ in choices):
        message = "only the following media types are accepted: application/json"
        raise StatusError(Status(406, message))
    message = "406: Not Acceptable\n\nAvailable representations: application/json"
    raise StatusError(Status(406, message, {}))


@lru_cache(maxsize=256)
def accepts_aggregated(accept: str) -> bool:
    """Return whether the v2 discovery document is asked for by name."""
    wanted = {"g=apidiscovery.k8s.io", "v=v2", "as=apigroupdiscoverylist"}
    return any(
        wanted <= {piece.strip().lower() for piece in part.split(";")[1:]}
        for part in accept.split(",")
        if part.split(";")[0].strip() == "application/json"
    )


def _parsed(part: str) -> tuple[str, bool]:
    """Return the media type, and whether it asks for another shape than the plain object."""
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    refused = any(parameter in {"q=0", "q=0.0", "q=0.00", "q=0.000"} for parameter in parameters)
    shaped = any(parameter.startswith("as=") for parameter in parameters)
    return ("" if refused else kind), shaped
