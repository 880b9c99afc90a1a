"""One thing wrong in one place, and how to put it right."""

from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is; of the errors, those of the document (LT0xx) keep a policy unused."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding: what the reference page, SARIF and every finding of it share."""

    id: str
    """``LT`` and three digits: 0xx document, 1xx policy, 2xx HPA and KEDA, …; never reused."""

    severity: Severity
    title: str
    """What is wrong, in a few words, without the values of a case."""

    why: str
    """Why it matters and what to do, for the reference page."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Sorts by place; the same wording in lint, on reload and in ``status.conditions``."""

    file: str
    line: int
    column: int
    code: str
    """``LT`` and three digits: 0xx document, 1xx policy, 2xx HPA and KEDA, …"""

    severity: Severity = field(compare=False)
    message: str
    fix: str = ""
    span: int = field(default=1, compare=False)
    """How many characters the caret underlines."""

    excerpt: str = field(default="", compare=False)
    """The source line, for the caret."""

    note: str = field(default="", compare=False)
    """A few words to stand beside the caret; part of ``sentence`` where there is no caret."""

    @property
    def sentence(self) -> str:
        """Return the message with its note, for wherever the line itself is not shown."""
        return f"{self.message}: {self.note}" if self.note else self.message
