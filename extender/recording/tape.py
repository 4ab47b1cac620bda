"""The recording writer: encodes events as timed lines, and redacts their objects.

Until :meth:`RecordingWriter.begin`, events are buffered, so that a recording begins with one state
of all resources: at time 0 all listed objects, then the changes made while others were listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from extender.kube.clock import Clock
from extender.recording.format import (
    TOO_DEEP,
    Document,
    EventType,
    FormatError,
    Header,
    RecordedResource,
    encode_event,
    encode_header,
    format_start,
)
from extender.recording.withholding import REDACTED_FIELDS, keep_all, redact

Write: TypeAlias = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class RedactionRules:
    """The redaction of objects by ``redact``; ``left_out`` names the removed values."""

    redact: Callable[[Document], Document]
    left_out: tuple[str, ...]


REDACTED: Final = RedactionRules(redact, REDACTED_FIELDS)
UNREDACTED: Final = RedactionRules(keep_all, ())


class RecordingWriter:
    """Writes one recording with ``write``, timed by ``clock``; ``lines`` counts its events."""

    def __init__(self, write: Write, clock: Clock, redaction: RedactionRules) -> None:
        self._write = write
        self._clock = clock
        self._discretion = redaction
        self._start = clock.monotonic()
        self._held: list[tuple[EventType, str, Document]] | None = []
        self.lines = 0

    def begin(
        self, server: str, resources: Sequence[RecordedResource], namespace: str = ""
    ) -> None:
        """Write the header and the buffered events. Raise the errors of :meth:`write_event`."""
        left_out = self._discretion.left_out
        start = format_start(self._clock.now_ns())
        self._start = self._clock.monotonic()
        self._write(encode_header(Header(start, server, namespace, left_out, tuple(resources))))
        held, self._held = self._held or [], None
        for event in sorted(held, key=_is_not_listed):
            self._put(0, *event)

    @property
    def has_begun(self) -> bool:
        """Whether the header has been written."""
        return self._held is None

    def write_event(self, kind: EventType, resource: str, document: Document) -> None:
        """Write one event; ``document`` may be changed.

        Raise FormatError with the object's name if it is nested too deeply, and the errors of
        ``write``.
        """
        if self._held is not None:
            self._held.append((kind, resource, document))
            return
        # Rounded to microseconds: a clock in floats is not reliable below that.
        at_ns = round((self._clock.monotonic() - self._start) * 10**6) * 1000
        self._put(at_ns, kind, resource, document)

    def _put(self, at_ns: int, kind: EventType, resource: str, document: Document) -> None:
        try:
            line = encode_event(at_ns, kind, resource, self._discretion.redact(document))
        except (FormatError, RecursionError):
            raise FormatError(f"{resource} {_key(document)}: {TOO_DEEP}") from None
        self._write(line)
        self.lines += 1


def _key(document: Document) -> str:
    of = document["metadata"]
    return "/".join(filter(None, (of.get("namespace"), of["name"])))


def _is_not_listed(event: tuple[EventType, str, Document]) -> bool:
    return event[0] != "LISTED"
