"""The newest requests to an API, with what was sent: what a test asks about its client afterwards.

The log keeps so many requests, and so many bytes of bodies; what is older goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakeapi.api.bodies import media_type, read_json
from fakeapi.api.errors import StatusError
from fakeapi.api.protobuf import PREFIX, read_protobuf
from fakeapi.api.yaml_bodies import read_yaml

REMEMBERED_REQUESTS: Final = 10_000
REMEMBERED_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request to the API as it was answered; ``query`` as it was sent.

    ``status`` is what the API said, or 0 if it was never asked; ``fault`` what was injected;
    ``body`` what was sent (JSON if the record comes from another process).
    """

    method: str
    path: str
    query: str
    user_agent: str
    status: int
    fault: str = ""
    content_type: str = ""
    body: bytes = b""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> RequestRecord:
        """Read what :meth:`document` gives."""
        asked = document["method"], document["path"], document["query"]
        told = document["userAgent"], document["status"], document.get("fault", "")
        body = orjson.dumps(document["body"]) if "body" in document else b""
        return cls(*asked, *told, document.get("contentType", ""), body)

    def sent(self) -> Any:
        """Parse the body, be it JSON, YAML or protobuf; None if there is none.

        Raises StatusError (400) if it cannot be read.
        """
        if not self.body:
            return None
        if self.body.startswith(PREFIX):
            return read_protobuf(self.body)
        read = read_yaml if media_type(self.content_type).endswith("yaml") else read_json
        return read(self.body)

    def document(self) -> dict[str, Any]:
        """Return the record as JSON; a body that cannot be read as text."""
        told: dict[str, Any] = {
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "userAgent": self.user_agent,
            "status": self.status,
        }
        if self.fault:
            told["fault"] = self.fault
        if self.body:
            told |= {"contentType": self.content_type, "body": self._readable()}
        return told

    def _readable(self) -> Any:
        try:
            return self.sent()
        except StatusError:
            return self.body.decode(errors="replace")


class RequestLog:
    """Records in the order of their answers, oldest first."""

    def __init__(self) -> None:
        self._records: deque[RequestRecord] = deque()
        self._bytes = 0

    def append(self, record: RequestRecord) -> None:
        """Add the newest record, and let go what is too much."""
        self._records.append(record)
        self._bytes += len(record.body)
        while len(self._records) > REMEMBERED_REQUESTS or self._bytes > REMEMBERED_BYTES:
            self._bytes -= len(self._records.popleft().body)

    def __iter__(self) -> Iterator[RequestRecord]:
        return iter(self._records)
