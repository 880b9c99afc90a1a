"""What a YAML scalar means: YAML 1.2's core schema, and where YAML 1.1 reads it differently.

PyYAML's own resolver is not used: it reads ``off`` as false and ``1:30`` as ninety.
"""

import re
from typing import Final

_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}")
_BASED: Final = re.compile(r"0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ODD_FLOAT: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9_]+")

YAML_1_1_BOOLEANS: Final = {
    word: truth
    for words, truth in (("y yes on", True), ("n no off", False))
    for lower in words.split()
    for word in (lower, lower.capitalize(), lower.upper())
}
"""Words that kubectl, and every YAML 1.1 reader, takes for a boolean when they are not quoted."""


def resolve(text: str) -> str | int | float | bool | None:
    """Return what ``text`` means where it stands without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _ODD_FLOAT.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def is_octal_to_some(text: str) -> bool:
    """Return whether YAML 1.1 reads ``text`` as an octal number and YAML 1.2 as a decimal one."""
    return _LEADING_ZERO.fullmatch(text) is not None
