"""YAML text to trees: every document of a file, with all that is wrong in the text itself.

Built on libyaml's events rather than on its loader: events carry places and do not recurse, so
depth, aliases and duplicate keys are judged here before they cost anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from adapter.policy.codes import DUPLICATE_KEY, LIMITS, READ_DIFFERENTLY, SYNTAX
from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.scalars import is_octal_to_some, resolve
from adapter.policy.source_text import Place, SourceText
from adapter.policy.syntax import TEMPLATE_FIX, syntax_finding
from adapter.policy.tree import Entry, Items, Keys, Node, Scalar

MAX_DEPTH: Final = 64
"""Documents of other kinds are read as well; theirs is the depth to allow for."""

MAX_ALIASED_VALUES: Final = 10_000
"""What a document may stand for once its aliases are written out."""

MAX_BROKEN: Final = 20
"""After so many places that are not YAML, the rest of a file is not looked at."""

MAX_FINDINGS: Final = 100
"""More findings than this in one document help nobody."""

_SEPARATOR: Final = re.compile(r"---(\s|$)")
_TAG: Final = "tag:yaml.org,2002:"
_ON_ONE_LINE: Final = (yaml.ScalarEvent, yaml.AliasEvent)
_RESOLVED_TAGS: Final = {f"{_TAG}{name}" for name in ("int", "float", "bool", "null")}


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document; ``root`` is None when it is empty or could not be read."""

    root: Node | None
    findings: tuple[Finding, ...] = ()
    """What is wrong in it as YAML; matters only if the document is one of ours."""


def parse(source: SourceText) -> Iterator[Document]:
    """Yield every document; after a broken one, reading goes on at the next ``---``."""
    first = broken = 0
    while first < len(source.lines) and broken < MAX_BROKEN:
        text = "\n".join(source.lines[first:])
        try:
            yield from _Builder(source, first).documents(text)
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            finding, stopped = syntax_finding(error, source, first)
            yield Document(None, (finding,))
            first = _next_document(source, max(first + 1, stopped - 1))
            broken += 1
        else:
            return


def _next_document(source: SourceText, line: int) -> int:
    """Return the first line from ``line`` on that opens a document; past the end if none does."""
    while line < len(source.lines) and not _SEPARATOR.match(source.lines[line]):
        line += 1
    return line


class _RefusedError(Exception):
    """The document is not read any further; carries the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class _Builder:
    """Turns the events of one stream into trees; ``offset`` is the line before its first."""

    def __init__(self, source: SourceText, offset: int) -> None:
        self._source = source
        self._offset = offset
        self._anchors: dict[str, Node] = {}
        self._findings: list[Finding] = []
        self._aliased = 0
        self._events: Iterator[yaml.Event] = iter(())

    def documents(self, text: str) -> Iterator[Document]:
        self._events = yaml.parse(text, Loader=yaml.CSafeLoader)
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                yield self._document()

    def _document(self) -> Document:
        self._anchors, self._findings, self._aliased = {}, [], 0
        try:
            root: Node | None = self._node(next(self._events), 0)
        except _RefusedError as refused:
            root = None
            self._findings.append(refused.finding)
            self._skip_document()
        return Document(root, tuple(self._findings))

    def _skip_document(self) -> None:
        while not isinstance(next(self._events), yaml.DocumentEndEvent):
            pass

    def _node(self, event: yaml.Event, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if depth > MAX_DEPTH:
            raise self._refused(
                event,
                LIMITS,
                message=f"values are nested more than {MAX_DEPTH} deep",
                fix="write the policy as four levels of keys",
            )
        if isinstance(event, yaml.ScalarEvent):
            node: Node = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._items(event, depth)
        elif isinstance(event, yaml.MappingStartEvent):
            node = self._keys(event, depth)
        else:
            raise AssertionError(f"{event} cannot begin a value")
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent) -> Node:
        node = self._anchors.get(event.anchor or "")
        if node is None:
            # An anchor is known once its value is complete, so a value in itself lands here too.
            raise self._refused(
                event,
                SYNTAX,
                message=f"alias *{event.anchor} has no complete anchor &{event.anchor} above it",
                fix=f"mark the value with &{event.anchor} above, or quote a * that is meant",
            )
        self._aliased += node.size
        if self._aliased > MAX_ALIASED_VALUES:
            raise self._refused(
                event,
                LIMITS,
                message=f"the aliases up to here stand for over {MAX_ALIASED_VALUES:,} values",
                fix="write the values out",
            )
        return node

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        place = self._place(event)
        plain = bool(event.implicit[0]) or event.tag in _RESOLVED_TAGS
        self._check_tag(event, {f"{_TAG}str"} | _RESOLVED_TAGS)
        if plain and is_octal_to_some(event.value):
            self._octal(place, event.value)
        value = resolve(event.value) if plain else event.value
        return Scalar(place, event.value, value, plain)

    def _items(self, event: yaml.SequenceStartEvent, depth: int) -> Items:
        self._check_tag(event, {f"{_TAG}seq"})
        items: list[Node] = []
        while not isinstance(following := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(following, depth + 1))
        return Items(self._place(event), tuple(items), 1 + sum(item.size for item in items))

    def _keys(self, event: yaml.MappingStartEvent, depth: int) -> Keys:
        self._check_tag(event, {f"{_TAG}map"})
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        while not isinstance(following := next(self._events), yaml.MappingEndEvent):
            key = self._key(following, depth)
            value = self._node(next(self._events), depth + 1)
            if key.text == "<<" and key.plain:
                merged |= self._merged(key, value)
                continue
            if key.text in own:
                self._duplicate(key, own[key.text].key)
            own[key.text] = Entry(key, value)
        entries = tuple({**own, **{k: e for k, e in merged.items() if k not in own}}.values())
        return Keys(self._place(event), entries, 1 + sum(e.value.size for e in entries))

    def _key(self, event: yaml.Event, depth: int) -> Scalar:
        key = self._node(event, depth + 1)
        if isinstance(key, Scalar):
            return key
        braces = "{{" in self._source.lines[key.place.line - 1]
        raise self._refused(
            event,
            SYNTAX,
            message="a section or list stands where a key is expected"
            + (": {{ is a template, not YAML yet" if braces else ""),
            fix=TEMPLATE_FIX if braces else "write a plain word before the colon",
        )

    def _merged(self, key: Scalar, value: Node) -> dict[str, Entry]:
        """Return what ``<<: *anchor`` brings in; the first of several wins, own keys before all."""
        sections = value.items if isinstance(value, Items) else (value,)
        entries: dict[str, Entry] = {}
        for section in sections:
            if isinstance(section, Keys):
                entries = {**{entry.key.text: entry for entry in section.entries}, **entries}
            else:
                self._report(
                    key.place,
                    SYNTAX,
                    message="<< merges sections, and what it is given is none",
                    fix="write <<: *name, with &name at a section above",
                )
        return entries

    def _duplicate(self, key: Scalar, first: Scalar) -> None:
        self._report(
            key.place,
            DUPLICATE_KEY,
            message=f"key {key.text} stands twice in this section, first at "
            f"{self._source.file}:{first.place.line}:{first.place.column}",
            fix="keep one of the two",
        )

    def _octal(self, place: Place, text: str) -> None:
        self._report(
            place,
            READ_DIFFERENTLY,
            message=f"{text} is octal for kubectl and decimal for newer YAML readers",
            fix=f'write it without the leading zero, or as "{text}" if it is text',
            severity=Severity.ERROR,
        )

    def _check_tag(
        self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, fit: set[str]
    ) -> None:
        if event.tag is None or event.tag == "!" or event.tag in fit:
            return
        self._report(
            self._place(event),
            SYNTAX,
            message=f"tag {event.tag.removeprefix(_TAG)} does not fit a policy's value here",
            fix="write the plain value",
        )

    def _report(
        self,
        place: Place,
        code: Code,
        *,
        message: str,
        fix: str,
        severity: Severity | None = None,
    ) -> None:
        if len(self._findings) < MAX_FINDINGS:
            finding = self._source.finding(place, code, message=message, fix=fix, severity=severity)
            self._findings.append(finding)

    def _refused(self, event: yaml.Event, code: Code, *, message: str, fix: str) -> _RefusedError:
        place = self._place(event)
        return _RefusedError(self._source.finding(place, code, message=message, fix=fix))

    def _place(self, event: yaml.Event) -> Place:
        start, end = event.start_mark, event.end_mark
        if start is None or end is None:
            raise AssertionError("libyaml marks every event")
        one_line = start.line == end.line
        span = end.column - start.column if one_line and isinstance(event, _ON_ONE_LINE) else 1
        return Place(self._offset + start.line + 1, start.column + 1, max(1, span))
