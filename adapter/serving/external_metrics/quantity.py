"""Kubernetes quantities in integer milli: written canonically, read the way the HPA reads them."""

import math
import re
from typing import Final

MAX_MILLI: Final = 2**63 - 1
"""An HPA adds values up as 64-bit integers of milli."""

_SUFFIXES: Final = ("", "k", "M", "G", "T", "P", "E")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3} | {
    suffix: 3 * power for power, suffix in enumerate(_SUFFIXES)
}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

_SHAPE: Final = re.compile(
    r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII
)
_WRONG_SHAPE: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
_NANO: Final = -9
"""The smallest power of ten that Go keeps; what is smaller is rounded up to it."""

_EXACT_DIGITS: Final = 18
"""Up to so many digits Go computes in a 64-bit integer; beyond, in big decimals."""

_ONE_STEP: Final = {0, 1, 2, 3, 6, 9}
"""Powers of ten that Go multiplies by at once; by others digit by digit, giving 0 on overflow."""

_MOST_DIGITS: Final = 5000
"""Python reads 4300 digits at the most: divided by more, any number is one nano."""

_ALL_ZEROS: Final = 64
"""From this power of ten on the lowest 64 bits of any product are 0."""


def to_milli(replicas: float) -> int:
    """Return ``replicas`` in milli, rounded up: a fraction of a replica is a replica.

    What is less than a millionth of a milli above it is a rounding error of the float.

    Raises:
        ValueError: NaN, infinite, negative or beyond 64 bits; none of them may become a number.
    """
    if not 0 <= replicas <= MAX_MILLI // 1000:
        raise ValueError(f"{replicas:g} is no number of replicas")
    return math.ceil(replicas * 1000 - 1e-6)


def format_milli(milli: int) -> str:
    """Return the canonical DecimalSI text: the largest suffix that leaves no fraction."""
    if milli % 1000:
        return f"{milli}m"
    number, power = milli // 1000, 0
    while number and number % 1000 == 0 and power < len(_SUFFIXES) - 1:
        number, power = number // 1000, power + 1
    return f"{number}{_SUFFIXES[power]}"


def read_milli(text: str) -> int:
    """Return what Go's ``MilliValue`` makes of ``text``: rounded up, away from zero.

    Beyond 64 bits the result is as wrong as there: ``1e16`` is 0 and ``9300000000000000`` is
    negative. That is why nothing of the kind is ever published.

    Raises:
        ValueError: not a quantity, in Go's words.
    """
    shape = _SHAPE.fullmatch(text) if text else None
    if shape is None:
        raise ValueError(_WRONG_SHAPE)
    sign, whole, fraction, suffix = shape.groups(default="")
    digits = (whole or "0") + fraction
    value = -int(digits) if sign == "-" else int(digits)
    if suffix in _BINARY:
        return _milli(value * 2 ** _BINARY[suffix], -len(fraction), most=MAX_MILLI)
    power = _power(suffix) - len(fraction)
    if len(digits) <= _EXACT_DIGITS and power >= _NANO:
        return _fast_milli(value, power + 3)
    return _milli(value, power)


def _power(suffix: str) -> int:
    """Return the power of ten that ``suffix`` stands for."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    scientific = re.fullmatch(r"[eE]([-+]?[0-9]{1,9})", suffix, re.ASCII)
    if scientific is None:
        raise ValueError(_WRONG_SUFFIX)
    return int(scientific[1])


def _fast_milli(value: int, shift: int) -> int:
    """Return ``value * 10**shift`` as Go's 64-bit integers give it."""
    if shift < 0:
        return _away_from_zero(value, 10**-shift)
    if shift in _ONE_STEP:
        return _wrapped(value * 10**shift)
    product = value * 10 ** min(shift, _ALL_ZEROS)
    return product if product == _wrapped(product) else 0


def _milli(value: int, power: int, *, most: int | None = None) -> int:
    """Return the milli of ``value * 10**power`` by big decimals, cut to 64 bits only at the end.

    ``most`` is the largest whole amount, where there is one.
    """
    if power >= _ALL_ZEROS:
        return 0
    shift = max(power - _NANO, -_MOST_DIGITS)
    nano = value * 10**shift if shift >= 0 else _away_from_zero(value, 10**-shift)
    if most is not None:
        nano = max(-most * 10**9, min(most * 10**9, nano))
    return _wrapped(_away_from_zero(nano, 10**6))


def _away_from_zero(value: int, divisor: int) -> int:
    quotient = -(-abs(value) // divisor)
    return -quotient if value < 0 else quotient


def _wrapped(value: int) -> int:
    """Return ``value`` as 64 bits keep it."""
    return (value + 2**63) % 2**64 - 2**63
