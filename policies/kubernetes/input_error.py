"""The base class of all errors in what a user passes: options, files and names."""

from __future__ import annotations


class InputError(Exception):
    """An option or a file is invalid.

    Each of ``errors``, and each line of the text, names source, field and what was expected.
    """

    def __init__(self, *errors: str) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors
