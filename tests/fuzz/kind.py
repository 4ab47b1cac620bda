"""What one kind of input is: how it is generated, and how it is checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random


class FailedError(AssertionError):
    """The project did not handle an input as it must; the text says what happened."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of input.

    ``generate`` returns an input, ``check`` raises for one that is handled wrongly: any exception
    that it raises is a failure.
    """

    name: str
    generate: Callable[[Random], bytes]
    check: Callable[[bytes], Awaitable[None]]
