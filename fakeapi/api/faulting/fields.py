"""Decoding of a plan field by field, so that every error names the path of its field.

An example of an error:

    faults[2].probability: expected a number from 0 to 1, got 1.5
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import orjson

_SHOWN_CHARS = 80


class PlanError(ValueError):
    """A plan is invalid or can match nothing; the message has the path and the expected value."""


class PlanReader:
    """Reads the fields of an object at the path ``place``; a field that is not read is an error."""

    def __init__(self, document: Any, place: str) -> None:
        if not isinstance(document, dict):
            raise PlanError(f"{place or 'plan'}: expected an object, got {_shown(document)}")
        self.document: dict[str, Any] = document
        self._place = place
        self._known: list[str] = []

    def field_path(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self._place}.{name}" if self._place else name

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        self._known.append(name)
        return self.document.get(name) is not None

    def error(self, name: str, expected: str) -> PlanError:
        """Return the error of a field's value."""
        found = _shown(self.document.get(name))
        return PlanError(f"{self.field_path(name)}: expected {expected}, got {found}")

    def number(self, name: str, default: float, least: float = 0.0) -> float:
        """Return a number of at least ``least``. Raise PlanError."""
        if not self.has(name):
            return default
        value = self.document[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise self.error(name, f"a number of at least {least:g}")
        return float(value)

    def count(self, name: str, default: int, least: int = 0) -> int:
        """Return an integer of at least ``least``. Raise PlanError."""
        if not self.has(name):
            return default
        value = self.document[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(name, f"a whole number of at least {least}")
        return value

    def choice(self, name: str, choices: Collection[str], default: str | None = None) -> str:
        """Return one of ``choices`` (a number counts as its text). Raise PlanError."""
        if not self.has(name) and default is not None:
            return default
        value = self.document.get(name)
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or text not in choices:
            raise self.error(name, f"one of {', '.join(choices)}")
        return text

    def text(self, name: str, default: str) -> str:
        """Return a string. Raise PlanError."""
        if not self.has(name):
            return default
        value = self.document[name]
        if not isinstance(value, str):
            raise self.error(name, "a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a string or a list of strings, none of them empty. Raise PlanError."""
        if not self.has(name):
            return ()
        value = self.document[name]
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            raise self.error(name, "a text or a list of texts that are not empty")
        return tuple(texts)

    def objects(self, name: str) -> Sequence[PlanReader]:
        """Return a reader for each object of a list. Raise PlanError."""
        if not self.has(name) or not isinstance(self.document[name], list):
            raise self.error(name, "a list of objects")
        listed = enumerate(self.document[name])
        return [PlanReader(each, f"{self.field_path(name)}[{index}]") for index, each in listed]

    def finish(self) -> None:
        """Raise PlanError if the object has a field that was not read."""
        for name in self.document:
            if name not in self._known:
                known = ", ".join(dict.fromkeys(self._known))
                raise PlanError(
                    f"{self.field_path(str(name))}: no such field here; there are: {known}"
                )


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = orjson.dumps(value, default=repr).decode()
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
