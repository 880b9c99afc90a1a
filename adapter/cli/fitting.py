"""What ``fit-engine`` finds out about request logs, and how it is printed."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import yaml

from adapter.simulator.fit import Limits, Prediction, Short, fit, limits_of, predict
from adapter.simulator.presets import EnginePreset
from adapter.simulator.replay import Comparison, Spread, compare
from adapter.simulator.request_log import LoggedRequest

Log = tuple[LoggedRequest, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller knows better than the log; None is what the log shows."""

    preset_name: str | None = None
    kv_tokens: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """One log with its preset."""

    log: str
    short: Short
    preset: EnginePreset
    comparison: Comparison
    prediction: Prediction | None
    """From the other logs; None where there are none."""


def fit_all(logs: Mapping[str, Log], options: Options) -> list[Fitted]:
    """Return each log's preset, and with several logs how each is predicted from the others.

    Raises:
        ValueError: the options leave no engine that could answer a log.
    """
    limits = {path: _limits(log, options) for path, log in logs.items()}
    presets = {
        path: _fit(path, log, limits[path], options.preset_name) for path, log in logs.items()
    }
    return [
        Fitted(
            log=path,
            short=limits[path].short,
            preset=presets[path],
            comparison=compare(log, presets[path]),
            prediction=_predict(path, log, limits[path], presets),
        )
        for path, log in logs.items()
    ]


def render(fitted: Sequence[Fitted], form: str) -> str:
    """Return the outcome as ``text``, ``json`` or ``yaml``; YAML is the presets alone."""
    if form == "yaml":
        documents = [_preset_document(one.preset) for one in fitted]
        return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)
    if form == "json":
        return json.dumps({"fits": [_document(one) for one in fitted]}, indent=2) + "\n"
    text = "\n".join(_block(one) for one in fitted)
    predicted = [one for one in fitted if one.prediction is not None]
    return f"{text}\n{_predictions(predicted)}" if predicted else text


def _limits(log: Log, options: Options) -> Limits:
    limits = limits_of(log)
    known = {
        field: value
        for field, value in asdict(options).items()
        if value is not None and field != "preset_name"
    }
    short = limits.short
    if "kv_tokens" in known and short is Short.KV_CACHE:
        short = Short.NOTHING
    return replace(limits, short=short, **known)


def _fit(path: str, log: Log, limits: Limits, name: str | None) -> EnginePreset:
    stem = Path(path).stem if path != "-" else "stdin"
    source = f"fitted to {len(log)} requests of {Path(path).name if path != '-' else 'stdin'}"
    return fit(log, limits, name=name or stem, source=source)


def _predict(
    path: str, log: Log, limits: Limits, presets: Mapping[str, EnginePreset]
) -> Prediction | None:
    others = [preset for other, preset in presets.items() if other != path]
    if not others:
        return None
    return predict(log, limits, others=others, name=presets[path].name)


def _block(one: Fitted) -> str:
    preset, found = one.preset, one.comparison
    rows = [
        ("", "log p50", "p90", "p99", "model p50", "p90", "p99", "mean error"),
        ("TTFT s", *_cells(found.log_ttft, found.model_ttft), f"{found.ttft_error:.1%}"),
        ("TPOT ms", *_cells(found.log_tpot, found.model_tpot, scale=1000), ""),
        ("e2e", *[""] * 6, f"{found.e2e_error:.1%}"),
    ]
    return (
        f"{one.log}: {found.requests} requests; they waited for {one.short}\n{_table(rows)}"
        f"preset {preset.name}: a {preset.a * 1e3:.4g} ms, b {preset.b * 1e6:.4g} us/seq, "
        f"c {preset.c * 1e9:.4g} ns/context token, e {preset.e * 1e3:.4g} ms, "
        f"alpha {preset.alpha * 1e6:.4g} us/token\n"
        f"limits: {preset.kv_tokens} KV tokens, {preset.max_num_seqs} sequences, "
        f"{preset.max_num_batched_tokens} tokens a step\n"
    )


def _predictions(fitted: Sequence[Fitted]) -> str:
    rows: list[tuple[str, ...]] = [
        ("predicted", "log p50", "p90", "p99", "model p50", "p90", "p99", "TTFT error", "e2e error")
    ]
    rows += [
        (
            one.preset.name,
            *_cells(found.log_ttft, found.model_ttft),
            f"{found.ttft_error:.1%}",
            f"{found.e2e_error:.1%}",
        )
        for one in fitted
        if one.prediction is not None
        for found in [one.prediction.comparison]
    ]
    return (
        "each from the others: b/a and e/a are theirs, a, c and alpha from the log's first third; "
        f"TTFT and errors of the rest\n{_table(rows)}"
    )


def _cells(*spreads: Spread, scale: float = 1.0) -> list[str]:
    values = [value for spread in spreads for value in (spread.p50, spread.p90, spread.p99)]
    return ["-" if math.isnan(value) else f"{value * scale:.3g}" for value in values]


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(f"{'  '.join(_padded(row, widths)).rstrip()}\n" for row in rows)


def _padded(row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
    yield f"{row[0]:<{widths[0]}}"
    for cell, width in zip(row[1:], widths[1:], strict=True):
        yield f"{cell:>{width}}"


def _document(one: Fitted) -> dict[str, object]:
    prediction = one.prediction
    return {
        "log": one.log,
        "waitedFor": str(one.short),
        "preset": _preset_document(one.preset),
        "errors": _errors(one.comparison),
        "predictedFromOthers": prediction
        and {
            "calibratedOn": prediction.calibrated_on,
            "preset": _preset_document(prediction.preset),
            "errors": _errors(prediction.comparison),
        },
    }


def _errors(found: Comparison) -> dict[str, object]:
    return {
        "requests": found.requests,
        "ttftSeconds": {
            "log": _percentiles(found.log_ttft),
            "model": _percentiles(found.model_ttft),
        },
        "tpotSeconds": {
            "log": _percentiles(found.log_tpot),
            "model": _percentiles(found.model_tpot),
        },
        "ttftMeanError": round(found.ttft_error, 5),
        "e2eMeanError": round(found.e2e_error, 5),
    }


def _percentiles(spread: Spread) -> dict[str, float | None]:
    return {
        name: None if math.isnan(value) else round(value, 6)
        for name, value in asdict(spread).items()
    }


def _preset_document(preset: EnginePreset) -> dict[str, object]:
    return {_camel(field): value for field, value in asdict(preset).items()}


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)
