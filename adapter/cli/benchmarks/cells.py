"""Cells of the scaling benchmark, played one after the other or read from where they were kept."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import adapter
from adapter.simulator.matrix import Cell, Outcome

DECIDES: Final = ("controller", "fleet", "policy", "scaling", "simulator")
"""Rooms whose code the outcome of a cell depends on."""

_DIGITS: Final = 10


class KeptCellError(ValueError):
    """A kept result cannot be read; says which, and what to do."""


def outcomes_of(
    cells: Sequence[Cell], play: Callable[[Cell], Outcome], *, results: Path | None
) -> dict[Cell, Outcome]:
    """Return what came of each cell, played now or kept in ``results`` by this very code.

    Raises:
        KeptCellError: a kept result cannot be read.
        OSError: the directory cannot be written.
    """
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
    outcomes: dict[Cell, Outcome] = {}
    for number, cell in enumerate(cells, start=1):
        _tell(f"{number} of {len(cells)}: {name_of(cell)}")
        kept = None if results is None else results / f"{name_of(cell)}_{code()}.json"
        if kept is not None and kept.exists():
            outcomes[cell] = _read(kept)
            continue
        outcomes[cell] = play(cell)
        if kept is not None:
            _keep(kept, outcomes[cell])
    _tell("")
    return outcomes


def _keep(path: Path, outcome: Outcome) -> None:
    """Write all of it or nothing: whoever is interrupted finds no half a cell."""
    half = path.with_suffix(f".{os.getpid()}.half")
    half.write_text(json.dumps(asdict(outcome)) + "\n")
    half.replace(path)


def _read(path: Path) -> Outcome:
    try:
        return Outcome(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise KeptCellError(
            f"{path}: not a cell that this version kept ({error}): delete it to play it again"
        ) from error


def name_of(cell: Cell) -> str:
    """Return a name that differs where anything differs that decides the outcome."""
    course, hours = cell.course, cell.course.hours
    who = cell.policy if cell.fault is None else f"{cell.policy}+{cell.fault}"
    return (
        f"{course.trace}-{hours.since:g}+{hours.warm_up:g}+{hours.judged:g}h_{course.engine}"
        f"_{course.load_time:g}s_{course.fleet}_{who}_{course.seed}"
    )


@cache
def code() -> str:
    """Return a digest of the sources that decide what comes of a cell."""
    return digest(Path(adapter.__file__).parent)


def digest(package: Path) -> str:
    """Return a digest of the files in the rooms of ``package`` that decide, names included."""
    seal = sha256()
    for room in DECIDES:
        for path in sorted((package / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                seal.update(f"{path.relative_to(package).as_posix()}\0".encode())
                seal.update(sha256(path.read_bytes()).digest())
    return seal.hexdigest()[:_DIGITS]


def _tell(what: str) -> None:
    """Say what is being played, on one line of a terminal; say nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)
