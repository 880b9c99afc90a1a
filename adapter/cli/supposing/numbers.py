"""Numbers as an operator supposes them: of the whole pool, or one for each serving replica."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adapter.controller.errors import AdapterError
from adapter.fleet.units import Seconds


class SupposedError(AdapterError):
    """Numbers that no pool can have; says which option, and what would do."""


@dataclass(frozen=True, slots=True)
class Supposed:
    """A pool whose numbers have stood for some time; None is a reading that nobody gave."""

    serving: int
    loading: int
    published: int
    running: tuple[float, ...] | None
    """One for each serving replica, as the two below."""

    waiting: tuple[float, ...] | None
    kv: tuple[float, ...] | None
    ttft: Seconds | None
    """At the quantile that the policy watches."""

    stood_for: Seconds

    @property
    def current(self) -> int:
        """Return what the scale target runs, which is what an HPA starts from."""
        return self.serving + self.loading


def shared_out(text: str | None, replicas: int, *, option: str) -> tuple[float, ...] | None:
    """Return whole requests by replica: a total is dealt out evenly, a list is taken as it is.

    Raises:
        SupposedError: not whole numbers, or not as many as there are replicas.
    """
    if text is None:
        return None
    numbers = _numbers(text, option)
    if any(number != math.floor(number) for number in numbers):
        raise SupposedError(f"{option} {text}: requests are whole; give a total, or 4,0,12,1")
    if len(numbers) == 1:
        each, rest = divmod(int(numbers[0]), max(1, replicas))
        return tuple(float(each + (place < rest)) for place in range(replicas))
    return _one_each(numbers, replicas, option)


def ratios(text: str | None, replicas: int, *, option: str) -> tuple[float, ...] | None:
    """Return a ratio by replica: one alone holds for every replica.

    Raises:
        SupposedError: not ratios from 0 to 1, or not as many as there are replicas.
    """
    if text is None:
        return None
    numbers = _numbers(text, option)
    if any(number > 1 for number in numbers):
        raise SupposedError(f"{option} {text}: a ratio is from 0 to 1; for 80 % write 0.8")
    return (numbers[0],) * replicas if len(numbers) == 1 else _one_each(numbers, replicas, option)


def _numbers(text: str, option: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = (math.nan,)
    if not all(0 <= number < math.inf for number in numbers):
        raise SupposedError(
            f"{option} {text}: expected a number from 0 up, or one for each serving replica, "
            f"with commas between"
        )
    return numbers


def _one_each(numbers: Sequence[float], replicas: int, option: str) -> tuple[float, ...]:
    if len(numbers) != replicas:
        raise SupposedError(
            f"{option}: {len(numbers)} numbers for {replicas} serving replicas; give one for "
            f"each, or a single number for all of them together"
        )
    return tuple(numbers)
