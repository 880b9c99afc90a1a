"""Rules over durations: what is too slow, too fast, or without effect beside something else."""

from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.lint.rule import Rule
from adapter.policy.load import PlacedPolicy
from adapter.scaling.duration import format_duration

_SLOW_INTERVAL: Final = 15.0
"""Seconds: an HPA looks every 15 s, so a slower tick is what a burst waits for."""

_HASTY_INTERVAL: Final = 1.0
"""Seconds: engines refresh their gauges about once a step, and each scrape costs them time."""

_TICKS_PER_WINDOW: Final = 4
"""Fewer points than this have no trend."""

SLOW_TICKS: Final = Code(
    "LT101",
    Severity.WARNING,
    "the interval is longer than an HPA's own",
    "Scaling up at once begins with seeing the load. A burst waits one interval, then up to 15 s "
    "for the HPA (30 s more with KEDA's default polling), before the load time even begins.",
)
HASTY_TICKS: Final = Code(
    "LT102",
    Severity.WARNING,
    "the interval is below a second",
    "Often a unit that slipped: 5ms for 5m. Each scrape costs the engine time on its event loop, "
    "and its gauges do not change that fast.",
)
TICK_OVER_LOAD_TIME: Final = Code(
    "LT103",
    Severity.WARNING,
    "a replica loads faster than the adapter looks",
    "A load time below the interval is hardly real: it runs from the order to the first good "
    "token, image pull and weights included. The scale-down delay is drawn from it.",
)
DELAY_UNDER_LOAD_TIME: Final = Code(
    "LT104",
    Severity.ERROR,
    "scaleDown.delay is shorter than the load time",
    "A replica given back earlier than a new one takes to load is missing in the next wave, and "
    "costs more to bring back than it saved: the ski-rental break-even is one load time. An error "
    "to `lint`, so that it stops a rollout of the policy; `serve` takes the policy all the same.",
)
BOUNDS_WITHOUT_AUTO: Final = Code(
    "LT105",
    Severity.WARNING,
    "minDelay or maxDelay beside a fixed delay",
    "They bound what `delay: auto` comes to. A delay that is written out is taken as it is.",
)
CROSSED_DELAYS: Final = Code(
    "LT106",
    Severity.ERROR,
    "minDelay is above maxDelay",
    "No delay can be both at least the one and at most the other.",
)
DELAY_CUT_OFF: Final = Code(
    "LT107",
    Severity.WARNING,
    "maxDelay cuts the automatic delay below the load time",
    "`delay: auto` is factor x load time. Below one load time, replicas are given back earlier "
    "than they could be back.",
)
SHORT_WINDOW: Final = Code(
    "LT108",
    Severity.WARNING,
    "signals.ttft.window holds too few ticks",
    "The trend is drawn through the ticks in the window; through fewer than four it is noise.",
)
STALE_TOO_SOON: Final = Code(
    "LT109",
    Severity.WARNING,
    "staleAfter is shorter than two intervals",
    "One missed scrape would turn the last good count into an error. Two intervals outlast it.",
)
LONG_TIMEOUT: Final = Code(
    "LT110",
    Severity.WARNING,
    "a scrape may outlast its interval",
    "A target that hangs then answers for a tick that is already over.",
)


def _slow_ticks(placed: PlacedPolicy) -> Iterator[Finding]:
    interval = placed.policy.spec.source.interval
    if interval > _SLOW_INTERVAL:
        yield placed.finding(
            placed.interval_path,
            SLOW_TICKS,
            message=f"interval {format_duration(interval)} is longer than the 15s of an HPA: "
            "a burst is seen that much later",
            fix="interval: 5s",
        )


def _hasty_ticks(placed: PlacedPolicy) -> Iterator[Finding]:
    interval = placed.policy.spec.source.interval
    if interval < _HASTY_INTERVAL:
        yield placed.finding(
            placed.interval_path,
            HASTY_TICKS,
            message=f"interval {format_duration(interval)} is below a second",
            note="is the unit meant?",
            fix="interval: 5s",
        )


def _tick_over_load_time(placed: PlacedPolicy) -> Iterator[Finding]:
    load_time, interval = placed.policy.spec.load_time.default, placed.policy.spec.source.interval
    if load_time < interval:
        yield placed.finding(
            "loadTime.default",
            TICK_OVER_LOAD_TIME,
            message=f"loadTime.default {format_duration(load_time)} is shorter than the "
            f"interval {format_duration(interval)}",
            note="from the order to the first good token",
            fix="default: 4m, or what your engine's start takes",
        )


def _delay_under_load_time(placed: PlacedPolicy) -> Iterator[Finding]:
    delay, load_time = placed.policy.spec.scale_down.delay, placed.policy.spec.load_time.default
    if delay != "auto" and delay < load_time:
        yield placed.finding(
            "scaleDown.delay",
            DELAY_UNDER_LOAD_TIME,
            message=f"scaleDown.delay {format_duration(delay)} is shorter than "
            f"loadTime.default {format_duration(load_time)}",
            note="a replica removed now could not be back before the next wave",
            fix="delay: auto"
            if placed.says("loadTime.default")
            else "delay: auto, or set loadTime.default to what a start takes",
        )


def _bounds_without_auto(placed: PlacedPolicy) -> Iterator[Finding]:
    if placed.policy.spec.scale_down.delay == "auto":
        return
    for key in ("minDelay", "maxDelay"):
        if placed.says(f"scaleDown.{key}"):
            yield placed.finding(
                f"scaleDown.{key}",
                BOUNDS_WITHOUT_AUTO,
                message=f"scaleDown.{key} has no effect beside a fixed delay",
                note="it bounds delay: auto",
                fix=f"delay: auto, or leave {key} out",
            )


def _crossed_delays(placed: PlacedPolicy) -> Iterator[Finding]:
    down = placed.policy.spec.scale_down
    if down.min_delay > down.max_delay:
        yield placed.finding(
            "scaleDown.minDelay" if placed.says("scaleDown.minDelay") else "scaleDown.maxDelay",
            CROSSED_DELAYS,
            message=f"scaleDown.minDelay {format_duration(down.min_delay)} is above "
            f"maxDelay {format_duration(down.max_delay)}",
            fix="raise maxDelay or lower minDelay",
        )


def _delay_cut_off(placed: PlacedPolicy) -> Iterator[Finding]:
    down, load_time = placed.policy.spec.scale_down, placed.policy.spec.load_time.default
    if down.delay == "auto" and down.min_delay <= down.max_delay < load_time:
        yield placed.finding(
            "scaleDown.maxDelay" if placed.says("scaleDown.maxDelay") else "loadTime.default",
            DELAY_CUT_OFF,
            message=f"scaleDown.maxDelay {format_duration(down.max_delay)} is shorter than "
            f"loadTime.default {format_duration(load_time)}",
            note="a replica removed now could not be back before the next wave",
            fix=f"maxDelay: {format_duration(2 * load_time)}",
        )


def _short_window(placed: PlacedPolicy) -> Iterator[Finding]:
    ttft, interval = placed.policy.spec.signals.ttft, placed.policy.spec.source.interval
    if ttft is not None and ttft.window < _TICKS_PER_WINDOW * interval:
        yield placed.finding(
            "signals.ttft.window",
            SHORT_WINDOW,
            message=f"signals.ttft.window {format_duration(ttft.window)} holds fewer than "
            f"{_TICKS_PER_WINDOW} intervals of {format_duration(interval)}",
            fix=f"window: {format_duration(max(120, 8 * interval))}",
        )


def _stale_too_soon(placed: PlacedPolicy) -> Iterator[Finding]:
    stale, interval = placed.policy.spec.stale_after, placed.policy.spec.source.interval
    if stale < 2 * interval:
        yield placed.finding(
            "staleAfter",
            STALE_TOO_SOON,
            message=f"staleAfter {format_duration(stale)} is shorter than two intervals of "
            f"{format_duration(interval)}",
            note="one missed scrape is no outage",
            fix=f"staleAfter: {format_duration(max(120, 4 * interval))}",
        )


def _long_timeout(placed: PlacedPolicy) -> Iterator[Finding]:
    static = placed.policy.spec.source.static
    if static is not None and static.timeout is not None and static.timeout > static.interval:
        yield placed.finding(
            "source.static.timeout",
            LONG_TIMEOUT,
            message=f"source.static.timeout {format_duration(static.timeout)} is longer than "
            f"the interval {format_duration(static.interval)}",
            fix=f"timeout: {format_duration(static.interval)}",
        )


TIMING: Final = (
    Rule(SLOW_TICKS, _slow_ticks),
    Rule(HASTY_TICKS, _hasty_ticks),
    Rule(TICK_OVER_LOAD_TIME, _tick_over_load_time),
    Rule(DELAY_UNDER_LOAD_TIME, _delay_under_load_time),
    Rule(BOUNDS_WITHOUT_AUTO, _bounds_without_auto),
    Rule(CROSSED_DELAYS, _crossed_delays),
    Rule(DELAY_CUT_OFF, _delay_cut_off),
    Rule(SHORT_WINDOW, _short_window),
    Rule(STALE_TOO_SOON, _stale_too_soon),
    Rule(LONG_TIMEOUT, _long_timeout),
)
"""The family, by number."""
