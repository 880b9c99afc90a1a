"""Prometheus text, family by family, as engines' client libraries write it."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from adapter.fleet.histogram import Histogram
from adapter.simulator.engine import SimulatedEngine

Labels = Mapping[str, str]


class ExpositionText:
    """Collects families; a family's samples stand together, below its HELP and TYPE."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def body(self) -> bytes:
        """Return everything so far."""
        return ("\n".join(self._lines) + "\n").encode()

    def family(self, name: str, kind: str, samples: Iterable[tuple[Labels, float]]) -> None:
        """Add a family whose series all have its name."""
        self._head(name, kind)
        self._lines += (f"{name}{_braced(labels)} {value!r}" for labels, value in samples)

    def histogram(self, name: str, series: Iterable[tuple[Labels, Histogram]]) -> None:
        """Add a histogram for each of ``series``."""
        self._head(name, "histogram")
        for labels, histogram in series:
            inside, outside = _inner({**labels, "le": "\0"}), _braced(labels)
            before, after = inside.split("\0")
            head = f"{name}_bucket{{{before}"
            self._lines += (
                f"{head}{_bound(bound)}{after}}} {count!r}"
                for bound, count in zip(histogram.bounds, histogram.counts, strict=True)
            )
            self._lines.append(f"{name}_count{outside} {histogram.count!r}")
            self._lines.append(f"{name}_sum{outside} {histogram.sum_seconds!r}")

    def _head(self, name: str, kind: str) -> None:
        self._lines += (f"# HELP {name} Of a simulated engine.", f"# TYPE {name} {kind}")


def at_the_mean(bounds: Sequence[float], count: float, total: float) -> Histogram:
    """Return a histogram of ``count`` observations of which only the sum is known."""
    first = bisect_left(bounds, total / count) if count else len(bounds)
    counts = (0.0,) * first + (float(count),) * (len(bounds) - first)
    return Histogram((*bounds, float("inf")), (*counts, float(count)), float(total))


def distributions(engine: SimulatedEngine) -> dict[str, Histogram]:
    """Return what the engine counts without a distribution, under vLLM's names."""
    done = engine.totals
    requests, tokens = done.requests, done.prompt_tokens + done.generation_tokens
    first = engine.ttft
    decoding = max(0.0, done.request_seconds - first.sum_seconds)
    working = max(0.0, done.request_seconds - done.queue_seconds)
    later = max(0.0, done.generation_tokens - first.count)
    return {
        "e2e_request_latency_seconds": at_the_mean(_LONG, requests, done.request_seconds),
        "request_queue_time_seconds": at_the_mean(_LONG, requests, done.queue_seconds),
        "request_inference_time_seconds": at_the_mean(_LONG, requests, working),
        "request_prefill_time_seconds": at_the_mean(_LONG, requests, max(0.0, working - decoding)),
        "request_decode_time_seconds": at_the_mean(_LONG, requests, decoding),
        "inter_token_latency_seconds": at_the_mean(_SHORT, later, decoding),
        "request_time_per_output_token_seconds": at_the_mean(
            _SHORT, requests, decoding / max(1.0, later)
        ),
        "iteration_tokens_total": at_the_mean(_BATCH, done.steps, tokens),
        "request_prompt_tokens": at_the_mean(_TOKENS, requests, done.prompt_tokens),
        "request_generation_tokens": at_the_mean(_TOKENS, requests, done.generation_tokens),
        "request_max_num_generation_tokens": at_the_mean(_TOKENS, requests, done.generation_tokens),
        "request_params_max_tokens": at_the_mean(_TOKENS, requests, done.generation_tokens),
        "request_params_n": at_the_mean(_COUNTS, requests, requests),
        "request_num_preemptions": at_the_mean(_RETRIES, requests, 0.0),
        "request_prefill_kv_computed_tokens": at_the_mean(
            _TOKENS,
            requests,
            done.prompt_tokens - done.cached_prompt_tokens,
        ),
    }


_LONG: Final = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
_SHORT: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0),
)
_BATCH: Final = (1.0, *(float(2**power) for power in range(3, 15)))
_TOKENS: Final = tuple(float(digit * 10**power) for power in range(5) for digit in (1, 2, 5))
_COUNTS: Final = (1.0, 2.0, 5.0, 10.0, 20.0)
_RETRIES: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)


def _braced(labels: Labels) -> str:
    return f"{{{_inner(labels)}}}" if labels else ""


def _inner(labels: Labels) -> str:
    return ",".join(f'{name}="{_escaped(labels[name])}"' for name in sorted(labels))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(bound)
