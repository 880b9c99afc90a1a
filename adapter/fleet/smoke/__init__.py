"""Smoke requests: one tiny real generation, how to ask each protocol for it, how to judge it.

Belongs here: request bodies, the meaning of answers, the verdict on a set of them. Does not: a
socket, a clock, randomness; nonces are arguments. Used by ``cli/verify`` and ``cli/probe``.
"""

from typing import Final

from adapter.fleet.smoke.ask import Protocol
from adapter.fleet.smoke.openai import OPENAI, OPENAI_CHAT
from adapter.fleet.smoke.sglang import SGLANG
from adapter.fleet.smoke.triton import TRITON

PROTOCOLS: Final[tuple[Protocol, ...]] = (OPENAI, OPENAI_CHAT, SGLANG, TRITON)
"""One file each, but for the two faces of OpenAI's API."""
