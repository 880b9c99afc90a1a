"""How fast an exposition is parsed: whole by the library, and behind the prefilter by us."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from adapter.cli.benchmarks.engine_text import engine_text
from adapter.cli.benchmarks.figure import Figure
from adapter.cli.benchmarks.stopwatch import cpu_seconds, cpu_seconds_of_first
from adapter.controller.errors import AdapterError
from adapter.fleet.engines import ENGINES
from adapter.fleet.exposition import parse, select
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Gap
from adapter.fleet.units import Timestamp

GENERATED: Final = "generated"
TIMES_FASTER: Final = 20.0
"""What is promised: warm, against the library on the whole text."""

FIRST_TIMES: Final = 20


class NoEngineTextError(AdapterError):
    """The given text is not an engine's: exit code 2 at the command line."""


def measure(recorded: Mapping[str, bytes], *, within: float = 0.5) -> tuple[Figure, ...]:
    """Return the figures of a generated text and of each in ``recorded``, by name.

    ``within`` is how long each is measured, in seconds.

    Raises:
        NoEngineTextError: one of them is no engine's.
    """
    texts = {GENERATED: engine_text("llama-70b", engine=0, scrape=0), **recorded}
    wanted = {name: _wanted(name, body) for name, body in texts.items()}
    return tuple(
        figure
        for name, body in texts.items()
        for figure in _figures(name, body, wanted[name], within=within)
    )


def _figures(name: str, body: bytes, wanted: frozenset[str], *, within: float) -> Iterator[Figure]:
    read = partial(read_exposition, engine="auto", at=Timestamp(0.0), target=name)
    unseen = [_with_unseen_labels(body, number) for number in range(FIRST_TIMES)]
    library = cpu_seconds(partial(parse, body), within=within)
    cold = cpu_seconds_of_first(partial(select, text, wanted) for text in unseen)
    warm = cpu_seconds(partial(select, body, wanted), within=within)
    whole = cpu_seconds(partial(read, body, model=None), within=within)
    megabytes = len(body) / 1e6
    yield Figure(f"{name}.kilobytes", len(body) / 1e3)
    yield Figure(f"{name}.libraryMegabytesPerSecond", megabytes / library)
    yield Figure(f"{name}.prefilterColdMegabytesPerSecond", megabytes / cold)
    yield Figure(f"{name}.prefilterWarmMegabytesPerSecond", megabytes / warm)
    yield Figure(f"{name}.coldTimesFaster", library / cold)
    yield Figure(f"{name}.warmTimesFaster", library / warm, at_least=TIMES_FASTER)
    yield Figure(f"{name}.textToReadingMicroseconds", whole * 1e6)


def _wanted(name: str, body: bytes) -> frozenset[str]:
    found = read_exposition(body, engine="auto", model=None, at=Timestamp(0.0), target=name)
    if isinstance(found, Gap):
        raise NoEngineTextError(f"cannot measure it: {found.detail}")
    return next(dialect.wanted for dialect in ENGINES if dialect.engine == found.engine)


def _with_unseen_labels(body: bytes, number: int) -> bytes:
    """Return the text as it is when first met: nothing that was remembered fits it."""
    return re.sub(rb"(?m)^(\w[\w:]*)\{", rb'\1{first="%d",' % number, body)
