"""From options to a supposed pool, refused in words."""

import argparse
from typing import Final

from adapter.cli.supposing.numbers import Supposed, SupposedError, ratios, shared_out
from adapter.fleet.units import Seconds
from adapter.policy.document import Policy
from adapter.scaling.duration import parse_duration

MOST: Final = 10_000
"""Replicas; an HPA's target is smaller by far, and a typing error should not take minutes."""

LONGEST: Final = Seconds(86_400.0)
DEFAULT_STOOD: Final = "1m"

_QUANTILES: Final = {"ttft_p50": 0.5, "ttft_p90": 0.9, "ttft_p95": 0.95, "ttft_p99": 0.99}


def supposed_of(arguments: argparse.Namespace, policy: Policy) -> Supposed:
    """Return the pool that the options describe.

    Raises:
        SupposedError: an option that cannot be, or that the policy has no use for.
    """
    serving, loading = arguments.serving, arguments.loading
    if not 0 < serving + loading <= MOST:
        raise SupposedError(
            f"--serving {serving} --loading {loading}: a pool has from 1 to {MOST} replicas"
        )
    stood_for = _duration(arguments.stood_for or DEFAULT_STOOD, "--for")
    if stood_for > LONGEST:
        raise SupposedError(f"--for {arguments.stood_for}: at most 24h")
    return Supposed(
        serving=serving,
        loading=loading,
        published=arguments.published or serving + loading,
        running=shared_out(arguments.running, serving, option="--running"),
        waiting=shared_out(arguments.waiting, serving, option="--waiting"),
        kv=ratios(arguments.kv, serving, option="--kv"),
        ttft=_first_token(arguments, policy),
        stood_for=stood_for,
    )


def _first_token(arguments: argparse.Namespace, policy: Policy) -> Seconds | None:
    given = {
        name: text
        for name in ("ttft", *_QUANTILES)
        if (text := getattr(arguments, name)) is not None
    }
    if not given:
        return None
    if len(given) > 1:
        raise SupposedError(f"{_options(given)}: give one of them")
    section = policy.spec.signals.ttft
    name, text = next(iter(given.items()))
    option = _options(given)
    if section is None:
        raise SupposedError(f"{option}: the policy has no signals.ttft to read it; leave it out")
    if _QUANTILES.get(name, section.quantile) != section.quantile:
        raise SupposedError(
            f"{option}: the policy watches quantile {section.quantile:g}; give --ttft for that one"
        )
    seconds = _duration(text, option)
    if seconds <= 0:
        raise SupposedError(f"{option} {text}: a first token takes longer than that")
    return seconds


def _options(given: dict[str, str]) -> str:
    return " ".join(f"--{name.replace('_', '-')}" for name in given)


def _duration(text: str, option: str) -> Seconds:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise SupposedError(f"{option}: {error}") from error
