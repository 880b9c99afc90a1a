"""Figures as people and as scripts read them, the kept and the broken promises among them."""

import json
from collections.abc import Mapping

from adapter.cli.benchmarks.figure import Figure

Facts = Mapping[str, str | int | float]
Results = Mapping[str, tuple[Figure, ...]]
"""The figures of each part, by the part's name."""


def all_kept(results: Results) -> bool:
    """Return whether every promise is kept."""
    return all(figure.kept for figures in results.values() for figure in figures)


def as_json(machine: Facts, results: Results) -> str:
    """Return an object with ``machine``, ``results`` by part and name, and ``promises``."""
    promises = [
        {
            "figure": f"{part}.{figure.name}",
            "value": figure.value,
            **({} if figure.at_most is None else {"atMost": figure.at_most}),
            **({} if figure.at_least is None else {"atLeast": figure.at_least}),
            "kept": figure.kept,
        }
        for part, figures in results.items()
        for figure in figures
        if _promised(figure)
    ]
    measured = {
        part: {figure.name: figure.value for figure in figures} for part, figures in results.items()
    }
    return json.dumps({"machine": machine, "results": measured, "promises": promises}, indent=2)


def as_text(machine: Facts, results: Results) -> str:
    """Return a line for each fact and each figure."""
    named = [
        (f"{part}.{figure.name}", figure) for part, figures in results.items() for figure in figures
    ]
    width = max(len(name) for name, _ in named)
    about = [f"{name}: {value}" for name, value in machine.items()]
    rows = [f"{name:<{width}} {_short(figure.value)}{_promised(figure)}" for name, figure in named]
    return "\n".join([*about, "", *rows])


def _short(value: float) -> str:
    return f"{value:>10,.0f}" if value >= 100 else f"{value:>10.3g}"  # noqa: PLR2004 - 3 digits


def _promised(figure: Figure) -> str:
    """Return what was promised of it, and whether it is kept; empty if nothing was."""
    limits = (("at most", figure.at_most), ("at least", figure.at_least))
    said = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
    return said and f"   promised: {said}, {'kept' if figure.kept else 'NOT KEPT'}"
