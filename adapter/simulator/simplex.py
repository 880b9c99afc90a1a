"""Nelder and Mead's simplex search: the least of a function that has no slope to follow."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

Point = tuple[float, ...]


def minimize(
    cost: Callable[[Point], float], start: Sequence[float], *, step: float, evaluations: int
) -> Point:
    """Return the best point found; ``step`` is how far the first simplex reaches from ``start``.

    ``cost`` is asked ``evaluations`` times, and a few more if the last move needs them. The
    coefficients are the original's: reflect 1, expand 2, contract and shrink by half.
    """
    corners = [tuple(start), *(_moved(start, axis, step) for axis in range(len(start)))]
    simplex = sorted((_Corner(cost(corner), corner) for corner in corners), key=_cost)
    asked = len(simplex)
    while asked < evaluations:
        kept, worst = simplex[:-1], simplex[-1]
        centre = tuple(fmean(values) for values in zip(*(one.at for one in kept), strict=True))
        better, tries = _replacement(cost, simplex, centre)
        asked += tries
        if better.cost < worst.cost:
            simplex = sorted([*kept, better], key=_cost)
        else:
            best = simplex[0]
            moved = [_toward(best.at, one.at, 0.5) for one in simplex[1:]]
            simplex = sorted([best, *(_Corner(cost(at), at) for at in moved)], key=_cost)
            asked += len(moved)
    return simplex[0].at


class _Corner(NamedTuple):
    cost: float
    at: Point


def _cost(corner: _Corner) -> float:
    """Return what corners are sorted by: of equal ones the older stays in front."""
    return corner.cost


def _replacement(
    cost: Callable[[Point], float], simplex: Sequence[_Corner], centre: Point
) -> tuple[_Corner, int]:
    """Return the corner to have for the worst one, and how often ``cost`` was asked."""
    worst = simplex[-1]

    def tried(share: float) -> _Corner:
        point = _toward(centre, worst.at, share)
        return _Corner(cost(point), point)

    reflected = tried(-1.0)
    if reflected.cost < simplex[0].cost:
        return min(reflected, tried(-2.0), key=_cost), 2
    if reflected.cost < simplex[-2].cost:
        return reflected, 1
    return min(reflected, tried(-0.5 if reflected.cost < worst.cost else 0.5), key=_cost), 2


def _moved(start: Sequence[float], axis: int, step: float) -> Point:
    return tuple(value + step * (index == axis) for index, value in enumerate(start))


def _toward(origin: Point, point: Point, share: float) -> Point:
    """Return the point at ``share`` of the way from ``origin`` to ``point``; below 0 is beyond."""
    return tuple(o + share * (p - o) for o, p in zip(origin, point, strict=True))
