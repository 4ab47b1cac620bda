"""The base class of all errors in what a user passes, and the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LONGEST_NAME: Final = 100
"""Of a longer name, only the beginning is compared: that takes quadratic time."""


class InputError(Exception):
    """An option or a file is invalid.

    Each of ``errors``, and each line of the text, names source, field and what was expected.
    """

    def __init__(self, *errors: str) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


def similar_name(written: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that is most similar to a name, "" if none is similar enough.

    ``cutoff`` is the least similarity, from 0 to 1.
    """
    found = get_close_matches(written[:_LONGEST_NAME], [*known], 1, cutoff)
    return found[0] if found else ""
