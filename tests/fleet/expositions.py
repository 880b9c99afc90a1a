"""Bodies to read: made up line by line, or one of the recorded dumps."""

import os
from pathlib import Path

import pytest

from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Gap, Reading
from adapter.fleet.units import Timestamp

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = Path(os.environ.get("LEADTIME_SHARED", ROOT.parent / "shared")) / "fixtures"
AT = Timestamp(1_796_092_600.0)
TARGET = "http://10.0.0.7:8000/metrics"


def a_body(*lines: str) -> bytes:
    """Return an exposition of ``lines``."""
    return "".join(f"{line}\n" for line in lines).encode()


def a_vllm_body(*lines: str, running: float = 1, waiting: float = 0, kv: str = "0.5") -> bytes:
    """Return a vLLM 0.12 body of one engine, with ``lines`` added."""
    labels = '{engine="0",model_name="m"}'
    return a_body(
        f"vllm:num_requests_running{labels} {running}",
        f"vllm:num_requests_waiting{labels} {waiting}",
        f"vllm:kv_cache_usage_perc{labels} {kv}",
        *lines,
    )


def a_histogram(name: str, labels: str = "", **buckets: float) -> list[str]:
    """Return the lines of a histogram; bounds are written ``le_0_5`` and ``inf``."""
    lines = []
    for bound, count in buckets.items():
        le = "+Inf" if bound == "inf" else bound.removeprefix("le_").replace("_", ".")
        lines.append(f'{name}_bucket{{{labels}le="{le}"}} {count}')
    return [*lines, f"{name}_sum{{{labels.rstrip(',')}}} 1.5"]


def read(body: bytes, model: str | None = None, *, engine: str = "auto") -> Reading | Gap:
    """Return what ``read_exposition`` makes of ``body``."""
    return read_exposition(body, engine=engine, model=model, at=AT, target=TARGET)


def reading_of(body: bytes, model: str | None = None, *, engine: str = "auto") -> Reading:
    """Return the reading of a body that has one."""
    reading = read(body, model, engine=engine)
    assert isinstance(reading, Reading), reading
    return reading


def gap_of(body: bytes, model: str | None = None, *, engine: str = "auto") -> Gap:
    """Return the gap of a body that has none."""
    gap = read(body, model, engine=engine)
    assert isinstance(gap, Gap), gap
    return gap


def recorded(name: str) -> bytes:
    """Return a recorded dump, or skip the test where the dumps are not at hand."""
    path = FIXTURES / f"{name}.prom"
    if not path.exists():
        pytest.skip(f"no recorded dump {name}: {FIXTURES} is not there, see LEADTIME_SHARED")
    return path.read_bytes()
