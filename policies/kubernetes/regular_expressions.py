r"""Regular expressions that others write: patterns of schemas, arguments of CEL functions.

They have Go's syntax. Python's ``re`` tries alternatives one after the other, so that ``^(a+)+$``
takes exponential time. RE2, which Go's package follows, takes time linear in the text. Its errors
are written as Go writes them. It rejects ``\C`` only here, as Go does, and, unlike Go, a pattern
whose program is larger than RE2's default limit of 8 MiB, such as ``\pL{1000}``.

Sources: Go's regexp/syntax (``ErrorCode``), re2/regexp.cc (``kErrorStrings``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

_CACHED: Final = 128
"""A compiled pattern may take up to 8 MiB."""
_ANY_BYTE: Final = re.compile(r"(?:[^\\]|\\[^CQ]|\\Q.*?(?:\\E|\Z))*+\\C", re.DOTALL)
_GO_MESSAGES: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}


class RegularExpression:
    """A compiled regular expression."""

    def __init__(self, pattern: str) -> None:
        """Compile a pattern. Raise ValueError with Go's error text if it is invalid."""
        import re2

        options = re2.Options()
        options.log_errors = False
        if _ANY_BYTE.match(pattern):
            raise ValueError(_error_text("invalid escape sequence: \\C"))
        try:
            self._compiled: Any = re2.compile(_valid(pattern), options)
        except re2.error as error:
            message = error.args[0].decode(errors="replace")
            raise ValueError(_error_text(message)) from None

    def matches(self, text: str) -> bool:
        """Return whether any part of a text matches."""
        return self._compiled.search(_valid(text)) is not None

    def find_all(self, text: str, limit: int | None = None) -> list[str]:
        """Return the parts of a text that match, at most ``limit``, as FindAllString does."""
        return list(islice(self._parts(text), limit))

    def _parts(self, text: str) -> Iterator[str]:
        end = -1
        for match in self._compiled.finditer(_valid(text)):
            if match.end() > end:  # an empty match after another one does not count
                yield match[0]
            end = match.end()


@lru_cache(maxsize=_CACHED)
def compile_pattern(pattern: str) -> RegularExpression:
    """Return a compiled pattern, from a cache. Raise ValueError if it is invalid."""
    return RegularExpression(pattern)


def _valid(text: str) -> str:
    # YAML can express surrogates, which UTF-8 cannot.
    return text.encode(errors="surrogatepass").decode(errors="replace")


def _error_text(message: str) -> str:
    code, _, part = message.partition(": ")
    if code.startswith("pattern too large"):
        return "error parsing regexp: expression too large"
    return f"error parsing regexp: {_GO_MESSAGES.get(code, code)}: `{part}`"
