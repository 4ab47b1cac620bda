"""Integers in text that others write: labels, annotations, versions, paths.

Python refuses to convert more than 4,300 digits, and takes long for fewer. So the length is
compared with that of the largest number allowed before a text is converted, and no other module
converts text to integers (tests/architecture/test_integers.py).
"""

from __future__ import annotations

import re
from typing import Final

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
UINT64_MAX: Final = 2**64 - 1

_DECIMAL: Final = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]+)", re.ASCII)


def parse_integer(text: str, largest: int = INT64_MAX) -> int | None:
    """Return the decimal integer that ``text`` is, with an optional sign.

    Return None if it is no integer, or beyond ``largest`` or ``-largest - 1``.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None or len(match["digits"]) > len(str(largest)):
        return None
    number = int(match["sign"] + match["digits"])
    return number if -largest - 1 <= number <= largest else None
