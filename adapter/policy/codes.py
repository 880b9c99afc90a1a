"""The kinds of findings about the document itself, LT0xx; rules over its numbers are in lint."""

from typing import Final

from adapter.policy.finding import Code, Severity

SYNTAX: Final = Code(
    "LT001",
    Severity.ERROR,
    "the text is not YAML",
    "Nothing can be read past the place shown, up to the next `---` line. A tab in front of a "
    "key, a missing quote and a line indented by one blank too many are the usual causes.",
)
ENCODING: Final = Code(
    "LT002",
    Severity.ERROR,
    "the file is not UTF-8 text",
    "Kubernetes and every YAML reader expect UTF-8. Editors on Windows may save UTF-16 or a "
    "legacy code page: save the file again as UTF-8.",
)
LIMITS: Final = Code(
    "LT003",
    Severity.ERROR,
    "the document is larger or deeper than any policy",
    "A few lines of nested aliases can stand for billions of values. The file is refused before "
    "it can cost memory; a ScalingPolicy needs a few hundred values, four levels deep.",
)
DUPLICATE_KEY: Final = Code(
    "LT004",
    Severity.ERROR,
    "a key stands twice in one section",
    "YAML readers silently take the last of the two, so half of the readers of the file see "
    "another policy than the one that runs. Keep one.",
)
UNKNOWN_KEY: Final = Code(
    "LT005",
    Severity.ERROR,
    "a key that no policy has",
    "A mistyped key would otherwise mean its default, silently. Keys are camelCase; "
    "`leadtime schema` lists them all.",
)
MISSING_KEY: Final = Code(
    "LT006",
    Severity.ERROR,
    "a required key is missing",
    "There is no default that could be right for everyone.",
)
WRONG_VALUE: Final = Code(
    "LT007",
    Severity.ERROR,
    "a value of the wrong type or out of its range",
    "Durations are written `90s`, `5m`, `1h30m` (GEP-2257: no days, no fractions, no bare "
    "numbers), ratios as `0.8`, counts as whole numbers without quotes.",
)
CONTRADICTION: Final = Code(
    "LT008",
    Severity.ERROR,
    "values that exclude each other",
    "Each value is fine by itself, but together they mean nothing, such as a maximum below "
    "the minimum.",
)
WRONG_KIND: Final = Code(
    "LT009",
    Severity.ERROR,
    "almost a ScalingPolicy, but not of this version",
    "The document looks meant for leadtime, but its apiVersion or kind is not one that this "
    "release reads, so it would be skipped without a word.",
)
SAME_NAME: Final = Code(
    "LT010",
    Severity.ERROR,
    "two policies with the same namespace and name",
    "The name is what the HPA selects by, and one answer can come from one policy only.",
)
NOTHING_HERE: Final = Code(
    "LT011",
    Severity.WARNING,
    "no ScalingPolicy in the file",
    "An empty file passes every check. It is said, because it usually is a file that was not "
    "saved, a template that rendered to nothing, or the wrong path.",
)
READ_DIFFERENTLY: Final = Code(
    "LT012",
    Severity.WARNING,
    "a value that YAML readers disagree about",
    "kubectl reads YAML 1.1, in which `off`, `no`, `on` and `yes` without quotes are booleans "
    "and 010 is eight. leadtime reads what is written; quotes make both agree.",
)

DOCUMENT_CODES: Final = (
    SYNTAX,
    ENCODING,
    LIMITS,
    DUPLICATE_KEY,
    UNKNOWN_KEY,
    MISSING_KEY,
    WRONG_VALUE,
    CONTRADICTION,
    WRONG_KIND,
    SAME_NAME,
    NOTHING_HERE,
    READ_DIFFERENTLY,
)
"""Every kind of finding about a document, by number."""
