"""The verdict on what one endpoint answered, and on endpoints that should be alike."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.fleet.smoke.ask import Said


class Fault(StrEnum):
    """What is wrong with an endpoint."""

    NO_ANSWER = "NoAnswer"
    IDENTICAL = "IdenticalAnswers"
    """Different inputs, the same output, every time."""

    REPLAYED = "ReplayedAnswer"
    """Two requests, one response id."""

    CACHED = "CachedAnswer"
    """A header says that somebody else's answer was given."""

    NOT_EQUAL = "NotDeterministic"
    UNEXPECTED = "UnexpectedAnswer"
    VERSION = "VersionSkew"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of one endpoint, in words."""

    fault: Fault
    detail: str


def cache_faults(headers: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return what the headers of an answer say of a cache; a miss is fine.

    ``Age`` above 0 says that the answer was stored (RFC 9111); the others are what proxies and
    gateways write.
    """
    found = []
    for name in _CACHE_STATUS:
        value = headers.get(name, "")
        if _HIT in value.lower().replace(",", " ").split():
            found.append(Finding(Fault.CACHED, f"{name}: {value}"))
    age = headers.get("age", "")
    if age.isdigit() and int(age) > 0:
        found.append(Finding(Fault.CACHED, f"age: {age}: the answer was stored {age} s ago"))
    return tuple(found)


_CACHE_STATUS: Final = ("x-cache-status", "x-cache", "cf-cache-status", "x-semantic-cache")
_HIT: Final = "hit"
VERSION_HEADERS: Final = (
    "x-model-hash", "x-model-version", "x-weights-hash", "x-model-revision",
)  # fmt: skip
CACHE_HEADERS: Final = (*_CACHE_STATUS, "cache-control", "age")


def freshness_faults(pairs: Sequence[tuple[Said, Said]]) -> tuple[Finding, ...]:
    """Return whether answers to distinct inputs are answers at all.

    One equal pair may be chance with a small model; equal in every pair is a cache, or an
    engine that no longer reads its input. One id twice is a replay whatever the text.
    """
    ids = Counter(said.id for pair in pairs for said in pair if said.id is not None)
    replayed = [name for name, times in ids.items() if times > 1]
    found = []
    if replayed:
        times = ids[replayed[0]]
        found.append(Finding(Fault.REPLAYED, f"{times} requests were answered as {replayed[0]}"))
    if pairs and all(first.output == second.output for first, second in pairs):
        sample = _shortened(pairs[0][0].output)
        inputs = 2 * len(pairs)
        found.append(
            Finding(Fault.IDENTICAL, f"{inputs} different inputs, and each time {sample!r}")
        )
    return tuple(found)


def determinism_faults(first: Said, again: Said) -> tuple[Finding, ...]:
    """Return whether one input, asked greedily twice, was answered in two ways."""
    if first.output == again.output:
        return ()
    one, other = _shortened(first.output), _shortened(again.output)
    return (Finding(Fault.NOT_EQUAL, f"one input, {one!r} and then {other!r}"),)


def expectation_faults(said: Said, expected: str) -> tuple[Finding, ...]:
    """Return whether the fixed prompt was answered as this version answers it."""
    if said.output.strip().startswith(expected.strip()):
        return ()
    return (Finding(Fault.UNEXPECTED, f"expected {expected!r}, got {_shortened(said.output)!r}"),)


def version_faults(
    versions: Mapping[str, Mapping[str, frozenset[str]]], expected: str | None = None
) -> Mapping[str, tuple[Finding, ...]]:
    """Return by endpoint where its version differs from the others', or from ``expected``.

    ``versions`` is, by endpoint and by field, every value seen in all tries. An endpoint that
    says two things in one field is two servers behind one address.
    """
    found: dict[str, list[Finding]] = {}
    for endpoint, fields in versions.items():
        for field, values in fields.items():
            if len(values) > 1:
                said = " and ".join(sorted(values))
                found.setdefault(endpoint, []).append(
                    Finding(Fault.VERSION, f"{field} is {said}: two versions behind one address")
                )
        if expected is not None and not _tells(fields, expected):
            found.setdefault(endpoint, []).append(
                Finding(Fault.VERSION, f"expected {expected!r}, says {_all(fields)}")
            )
    for field in sorted({field for fields in versions.values() for field in fields}):
        for endpoint, detail in _odd_ones(versions, field):
            found.setdefault(endpoint, []).append(Finding(Fault.VERSION, detail))
    return {endpoint: tuple(findings) for endpoint, findings in found.items()}


def _odd_ones(
    versions: Mapping[str, Mapping[str, frozenset[str]]], field: str
) -> Iterable[tuple[str, str]]:
    """Yield the endpoints that disagree with most about ``field``; in a draw, all."""
    said = {endpoint: fields[field] for endpoint, fields in versions.items() if field in fields}
    counts = Counter(said.values())
    if len(counts) < 2:  # noqa: PLR2004 - all say the same
        return
    (usual, most), (_, second) = counts.most_common(2)
    for endpoint, values in said.items():
        if most == second or values != usual:
            others = " or ".join(sorted({" and ".join(sorted(v)) for v in counts if v != values}))
            yield endpoint, f"{field} is {' and '.join(sorted(values))}, others say {others}"


def _tells(fields: Mapping[str, frozenset[str]], expected: str) -> bool:
    return any(expected in values for values in fields.values())


def _all(fields: Mapping[str, frozenset[str]]) -> str:
    told = (f"{name} {' and '.join(sorted(values))}" for name, values in sorted(fields.items()))
    return ", ".join(told) or "nothing of its version"


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
