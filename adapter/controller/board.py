"""The latest decision of each policy: the one thing that serving reads.

No request ever computes a decision, so no two faces of the adapter can disagree.
"""

import asyncio
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from adapter.controller.errors import NoDecisionYetError, NotServedError
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.scaling.decision import Decision
from adapter.scaling.duration import format_duration

_NO_TICK: Final = "its loop does not tick, see the adapter's log"


@dataclass(frozen=True, slots=True, order=True)
class PolicyKey:
    """A namespace is part of every identity: the same name elsewhere is another policy."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Listing:
    """What is known of one policy."""

    key: PolicyKey
    policy: Policy
    labels: Mapping[str, str]
    """What a metric's label selector is matched against; ``policy`` is always among them."""

    decision: Decision | None = None
    problem: str = ""
    """Why the file on disk is not what runs: it is broken, and the last good one stands."""

    failure: str = ""
    """Why its loop decides nothing: a source that cannot be read, or a crash. The next decision
    ends it; until then the last one is served as long as it is good."""

    tick_at: Timestamp | None = None
    """When the last tick finished; liveness is this being recent."""


class Board:
    """Written by the loop and the supervisor, read by everyone."""

    def __init__(self) -> None:
        self._listings: dict[PolicyKey, Listing] = {}
        self._changes: dict[PolicyKey | None, asyncio.Event] = {}

    def change(self, key: PolicyKey | None) -> asyncio.Event:
        """Return what is set at the next change of ``key``, or of anything for None.

        Take it before reading, and no change is missed.
        """
        return self._changes.setdefault(key, asyncio.Event())

    def list_policy(self, policy: Policy, labels: Mapping[str, str]) -> PolicyKey:
        """Make ``policy`` known before its first tick; keeps the decision of an older version."""
        key = key_of(policy)
        known = self._listings.get(key)
        decision, tick_at = (known.decision, known.tick_at) if known else (None, None)
        self._listings[key] = Listing(
            key, policy, {**labels, "policy": key.name}, decision=decision, tick_at=tick_at
        )
        self._changed(key)
        return key

    def withdraw(self, key: PolicyKey) -> None:
        """Forget a policy that is gone; asking for it is then an error, not an old number."""
        self._listings.pop(key, None)
        self._changed(key)

    def post(self, key: PolicyKey, decision: Decision, tick_at: Timestamp) -> None:
        """Replace the decision of a listed policy; one that is withdrawn stays withdrawn."""
        if key in self._listings:
            listing = self._listings[key]
            self._listings[key] = replace(listing, decision=decision, tick_at=tick_at, failure="")
            self._changed(key)

    def report(self, key: PolicyKey, problem: str) -> None:
        """Say why the policy's file is not what runs; an empty text takes it back."""
        if key in self._listings:
            self._listings[key] = replace(self._listings[key], problem=problem)

    def fail(self, key: PolicyKey, failure: str) -> None:
        """Say why the policy's loop decides nothing, until it does again."""
        if key in self._listings:
            self._listings[key] = replace(self._listings[key], failure=failure)

    def all(self) -> tuple[Listing, ...]:
        """Return every listing, sorted by namespace and name."""
        return tuple(self._listings[key] for key in sorted(self._listings))

    def in_namespace(self, namespace: str) -> tuple[Listing, ...]:
        """Return the listings of one namespace, sorted by name."""
        return tuple(listing for listing in self.all() if listing.key.namespace == namespace)

    def find(self, key: PolicyKey) -> Listing:
        """Return the listing of ``key``.

        Raises:
            NotServedError: no such policy; names the nearest one.
        """
        try:
            return self._listings[key]
        except KeyError:
            raise NotServedError(self._unknown(key)) from None

    def decided(self, key: PolicyKey, now: Timestamp) -> Decision:
        """Return a decision that is fit to serve at ``now``.

        Raises:
            NotServedError: no such policy.
            NoDecisionYetError: known, but without a count worth serving: first tick not
                finished, refused for want of data, or stale; the text says which and since when.
        """
        listing = self.find(key)
        decision = listing.decision
        failure = listing.failure.removeprefix(f"policy {key}: ")
        if failure and (decision is None or decision.refusal is not None):
            raise NoDecisionYetError(f"policy {key} has no decision: {failure}")
        if decision is None:
            raise NoDecisionYetError(f"policy {key} has no decision yet: {_why_none(listing)}")
        if decision.refusal is not None:
            raise NoDecisionYetError(f"policy {key}: {decision.refusal}")
        if now > decision.valid_until:
            age = Seconds(now - decision.at)
            limit = format_duration(decision.valid_until - decision.at)
            raise NoDecisionYetError(
                f"policy {key}: stale: the last decision is {age:.0f} s old, "
                f"spec.staleAfter is {limit}; "
                f"{failure or _NO_TICK}"
            )
        return decision

    def _changed(self, key: PolicyKey) -> None:
        for waited_for in (key, None):
            if waited_for in self._changes:
                self._changes.pop(waited_for).set()

    def _unknown(self, key: PolicyKey) -> str:
        names = [listing.key.name for listing in self.in_namespace(key.namespace)]
        elsewhere = [str(known) for known in self._listings if known.name == key.name]
        if elsewhere:
            return f"no policy {key}; that name exists as {', '.join(sorted(elsewhere))}"
        near = difflib.get_close_matches(key.name, names, n=1)
        if near:
            return f"no policy {key}; did you mean {near[0]!r}?"
        known_here = ", ".join(names) or "none"
        return f"no policy {key}; policies in namespace {key.namespace!r}: {known_here}"


def _why_none(listing: Listing) -> str:
    wait = f"wait one interval ({listing.policy.spec.source.interval:g} s) after start"
    return listing.problem or f"its first tick has not finished; {wait}"


def key_of(policy: Policy) -> PolicyKey:
    """Return the identity of ``policy``."""
    return PolicyKey(policy.metadata.namespace, policy.metadata.name)
