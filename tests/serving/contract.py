"""The vectors of the wire contract, read from the shared folder where it is present."""

import importlib.util
import os
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("LEADTIME_SHARED", _ROOT.parent / "shared"))


def vector_file(name: str) -> Path:
    """Return the path of a vector file, or skip the test and say what is missing."""
    path = SHARED / "contract" / name
    if not path.is_file():
        pytest.skip(f"no {name}: set LEADTIME_SHARED to the folder that holds contract/")
    return path


@cache
def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hpa_port() -> ModuleType:
    """Return the HPA's arithmetic as it was agreed with the real controller."""
    return _module(vector_file("hpa_port.py"))
