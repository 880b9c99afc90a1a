"""The machine that figures were measured on: without it they say little."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from adapter import __version__
from adapter.sources.clock import SystemClock


def machine() -> dict[str, str | int | float]:
    """Return what figures depend on, the load of the last minute included."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0
    return {
        "leadtime": __version__,
        "date": datetime.fromtimestamp(SystemClock().now(), UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "loadAverage": round(busy, 2),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def _processor() -> str:
    """Return the processor's model, which on Linux only the kernel's list tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
