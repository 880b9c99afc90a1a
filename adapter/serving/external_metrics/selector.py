"""Label selectors: the grammar, the matching and the error texts of Go's ``labels.Parse``.

The texts are kept because they are what ``kubectl describe hpa`` shows, and people search for.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final


class SelectorError(ValueError):
    """Not a selector; the text is Go's."""


class Operator(StrEnum):
    """How a label is compared; the value is how it is written."""

    EXISTS = ""
    ABSENT = "!"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    GREATER = ">"
    LESS = "<"


_POSITIVE: Final = {Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN}
_NEGATIVE: Final = {Operator.NOT_EQUALS, Operator.NOT_IN}
_LISTS: Final = {Operator.IN, Operator.NOT_IN}
_ORDERS: Final = {Operator.GREATER, Operator.LESS}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    """Sorted, without doubles."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether ``labels`` meet it; a label that is absent differs from every value."""
        value = labels.get(self.key)
        if self.operator is Operator.ABSENT:
            return value is None
        if self.operator in _NEGATIVE:
            return value is None or value not in self.values
        if value is None:
            return False
        if self.operator in _POSITIVE:
            return value in self.values
        return self.operator is Operator.EXISTS or self._ordered(value)

    def __str__(self) -> str:
        values = ",".join(self.values)
        if self.operator is Operator.ABSENT:
            return f"!{self.key}"
        if self.operator in _LISTS:
            return f"{self.key} {self.operator} ({values})"
        return f"{self.key}{self.operator}{values}"

    def _ordered(self, text: str) -> bool:
        value, limit = _integer(text), _integer(self.values[0])
        if value is None or limit is None:
            return False
        return value > limit if self.operator is Operator.GREATER else value < limit


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions that all must be met, sorted by key; none matches everything."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether ``labels`` meet every condition."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def pinned(self, key: str) -> str | None:
        """Return the one value that ``key`` must have; None when several would do."""
        for requirement in self.requirements:
            if requirement.key == key and requirement.operator in _POSITIVE:
                return requirement.values[0] if len(requirement.values) == 1 else None
        return None

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> Selector:
    """Return the selector in ``text``; HPAs repeat theirs every 15 s, so the last ones are kept.

    Raises:
        SelectorError: not a selector.
    """
    return Selector(tuple(sorted(_Parser(text).parse(), key=lambda found: found.key)))


_TOKENS: Final = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SYMBOLS: Final = {"=", "==", "!=", "!", "(", ")", ",", "<", ">", ""}
_BINARY: Final = {
    operator.value: operator
    for operator in Operator
    if operator not in {Operator.EXISTS, Operator.ABSENT}
}


class _Parser:
    """Recursive descent over words and symbols; the end is the empty text, for ever."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = _TOKENS.findall(text)
        self._at = 0

    def parse(self) -> list[Requirement]:
        """Return the conditions in the order of the text."""
        found: list[Requirement] = []
        while self._peek():
            if self._peek() != "!" and self._peek() in _SYMBOLS:
                raise SelectorError(
                    f"found '{self._peek()}', expected: !, identifier, or 'end of string'"
                )
            found.append(self._requirement())
            word = self._next()
            if word not in {"", ","}:
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            if word == "," and self._peek() != "!" and self._peek() in _SYMBOLS:
                raise SelectorError(f"found '{self._peek()}', expected: identifier after ','")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _requirement(self) -> Requirement:
        try:
            return self._checked()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None

    def _checked(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._next()
        if key in _SYMBOLS:
            raise SelectorError(f"found '{key}', expected: identifier")
        _raise_if([_key_problem(key)])
        if absent:
            return Requirement(key, Operator.ABSENT)
        if self._peek() in {"", ","}:
            return Requirement(key, Operator.EXISTS)
        operator = self._operator()
        values = self._values() if operator in _LISTS else {self._value()}
        return _requirement(key, operator, tuple(sorted(values)))

    def _operator(self) -> Operator:
        word = self._next()
        operator = _BINARY.get(word)
        if operator is None:
            raise SelectorError(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")
        return operator

    def _value(self) -> str:
        if self._peek() in {"", ","}:
            return ""
        word = self._next()
        if word in _SYMBOLS:
            raise SelectorError(f"found '{word}', expected: identifier")
        return word

    def _values(self) -> set[str]:
        word = self._next()
        if word != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        if self._peek() in _SYMBOLS - {",", ")"}:
            raise SelectorError(f"found '{self._peek()}', expected: ',', ')' or identifier")
        found: set[str] = set()
        while True:
            found.add("" if self._peek() in {",", ")"} else self._listed())
            if self._next() == ")":
                return found

    def _listed(self) -> str:
        """Return one value of a list, with what follows it being ``,`` or ``)``."""
        word = self._next()
        if word in _SYMBOLS:
            raise SelectorError(f"found '{word}', expected: ',', or identifier")
        if self._peek() not in {",", ")"}:
            raise SelectorError(f"found '{self._peek()}', expected: ',' or ')'")
        return word


def _requirement(key: str, operator: Operator, values: tuple[str, ...]) -> Requirement:
    problems = []
    if operator in _ORDERS and _integer(values[0]) is None:
        problems.append(
            f"values[0]: Invalid value: {_quoted(values[0])}: "
            f"for 'Gt', 'Lt' operators, the value must be an integer"
        )
    problems += [_value_problem(key, value, index) for index, value in enumerate(values)]
    _raise_if(problems)
    return Requirement(key, operator, values)


def _raise_if(problems: list[str]) -> None:
    found = [problem for problem in problems if problem]
    if found:
        raise SelectorError(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


_MAX_BYTES: Final = 63
_MAX_PREFIX_BYTES: Final = 253
_TOO_LONG: Final = f"must be no more than {_MAX_BYTES} bytes"
_VALUE: Final = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_PREFIX: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_CONSIST: Final = (
    "consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_BAD_VALUE: Final = (
    f"a valid label must be an empty string or {_CONSIST} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_BAD_NAME: Final = (
    f"must {_CONSIST} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_BAD_KEY: Final = (
    f"a valid label key {_BAD_NAME} "
    f"with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_BAD_PREFIX: Final = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'example.com', regex used for validation is '{_PREFIX}')"
)


def _key_problem(key: str) -> str:
    problems = _key_problems(*key.split("/", maxsplit=2))
    return f"<nil>: Invalid value: {_quoted(key)}: {'; '.join(problems)}" if problems else ""


def _key_problems(*parts: str) -> list[str]:
    *prefixes, name = parts
    if len(prefixes) > 1:
        return [_BAD_KEY]
    problems = [problem for prefix in prefixes for problem in _prefix_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif _size(name) > _MAX_BYTES:
        problems.append(f"name part {_TOO_LONG}")
    if not re.fullmatch(_NAME, name):
        problems.append(f"name part {_BAD_NAME}")
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if _size(prefix) > _MAX_PREFIX_BYTES:
        problems.append(f"prefix part must be no more than {_MAX_PREFIX_BYTES} bytes")
    if not re.fullmatch(_PREFIX, prefix):
        problems.append(_BAD_PREFIX)
    return problems


def _value_problem(key: str, value: str, index: int) -> str:
    problems = [_TOO_LONG] if _size(value) > _MAX_BYTES else []
    if not re.fullmatch(_VALUE, value):
        problems.append(_BAD_VALUE)
    where = f"values[{index}][{key}]: Invalid value: {_quoted(value)}"
    return f"{where}: {'; '.join(problems)}" if problems else ""


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _integer(text: str) -> int | None:
    """Return ``text`` as a 64-bit integer, or None."""
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text, re.ASCII):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def _quoted(text: str) -> str:
    """Return ``text`` in double quotes as Go's ``%q`` writes it."""
    return f'"{"".join(_escaped(letter) for letter in text)}"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else repr(letter)[1:-1]
