"""A history of offered work, wherever it comes from, as bins that can be played."""

from collections.abc import Iterable
from typing import Final, Protocol

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.backtest.load import Bin, Drawn, of_bins

PROMPT_TOKENS, OUTPUT_TOKENS = 1200.0, 200.0
"""Mean lengths where a history tells requests and no tokens: a chat's."""

_NO_TOKENS: Final = (
    f"{{count}} of {{all}} bins tell no tokens: requests of {PROMPT_TOKENS:g} and "
    f"{OUTPUT_TOKENS:g} tokens are played there."
)


class Work(Protocol):
    """What a source knows of a span of time; None was not counted."""

    @property
    def start(self) -> Timestamp:
        """Return when it began."""
        ...

    @property
    def seconds(self) -> Seconds:
        """Return how long it is."""
        ...

    @property
    def prompt_tokens(self) -> float | None:
        """Return the prompt tokens that were computed."""
        ...

    @property
    def output_tokens(self) -> float | None:
        """Return the tokens that were generated."""
        ...

    @property
    def requests(self) -> float | None:
        """Return the requests that arrived."""
        ...

    @property
    def masked(self) -> bool:
        """Return whether it is not to be believed."""
        ...


def of_history(name: str, works: Iterable[Work]) -> Drawn:
    """Return the load of a history in the order of time.

    What has no requests is a gap, as what is masked: from tokens alone nobody can tell how many
    they were of. Where only tokens are missing, lengths are a chat's, and a remark says so.

    Raises:
        ValueError: nothing in it can be played; says why.
    """
    every = list(works)
    if not every:
        raise ValueError(f"{name}: no history at all: ask for a span in which it was recorded")
    bins = [_bin(one) for one in every]
    bare = sum(
        one.requests is not None and (one.prompt_tokens is None or one.output_tokens is None)
        for one in every
    )
    remarks = (_NO_TOKENS.format(count=bare, all=len(every)),) if bare else ()
    return of_bins(name, bins, remarks=remarks)


def _bin(one: Work) -> Bin:
    requests = one.requests or 0.0
    prompt, output = one.prompt_tokens, one.output_tokens
    return Bin(
        start=one.start,
        seconds=one.seconds,
        requests=requests,
        prompt_tokens=requests * PROMPT_TOKENS if prompt is None else prompt,
        output_tokens=requests * OUTPUT_TOKENS if output is None else output,
        masked=one.masked or one.requests is None,
    )
