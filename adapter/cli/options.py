"""Values of options that several verbs take, refused in words."""

import argparse
import math

LAST_PORT = 65_535


def port(text: str) -> int:
    """Return the TCP port in ``text``; 0 asks for a free one.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if text.isascii() and text.isdigit() and int(text) <= LAST_PORT:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 0 to {LAST_PORT}")


def positive(text: str) -> float:
    """Return the number in ``text``, above 0 and finite.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if 0 < number < math.inf:
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")


def whole(text: str) -> int:
    """Return the whole number in ``text``, 0 or above.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")


def count(text: str) -> int:
    """Return the whole number in ``text``, above 0.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    number = whole(text)
    if number > 0:
        return number
    raise argparse.ArgumentTypeError("0 is not a whole number above 0")
