"""The errors that cross rooms, by whose fault they are.

    AdapterError
    ├── SourceError            the world did not answer; a gap in the snapshot, never a crash
    └── NotServedError         asked for something we do not publish        404 / NOT_FOUND
        └── NoDecisionYetError a known policy whose first tick has not run  503 / UNAVAILABLE

What is wrong with the operator's own files is no exception: see ``policy.finding``.
"""


class AdapterError(Exception):
    """The root: everything the adapter raises on purpose."""


class SourceError(AdapterError):
    """The world did not answer: names the source, the target and the cause."""


class NotServedError(AdapterError, LookupError):
    """Asked for something we do not publish: maps to 404."""


class NoDecisionYetError(NotServedError):
    """Known, but there is no decision yet: maps to 503."""
