"""The request log: the newest requests to an API, with their bodies, for assertions in tests.

The number of requests and the total size of the bodies are limited; the oldest are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.protobuf import PREFIX, read_protobuf
from fakeapi.apiserver.wire.request_bodies import media_type, read_json
from fakeapi.apiserver.wire.yaml_decoder import read_yaml

MAX_REQUESTS: Final = 10_000
MAX_BODY_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One answered request to the API; ``query`` is as it was sent.

    ``status`` is the API's, or 0 if the request did not reach it; ``fault`` is the injected fault;
    ``body`` is as it was sent (JSON if the record comes from another process).
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
        """Return the record of a document that :meth:`document` returned."""
        request_fields = document["method"], document["path"], document["query"]
        response_fields = document["userAgent"], document["status"], document.get("fault", "")
        body = orjson.dumps(document["body"]) if "body" in document else b""
        return cls(*request_fields, *response_fields, document.get("contentType", ""), body)

    def decoded_body(self) -> Any:
        """Return the decoded body (JSON, YAML or protobuf); None if there is none.

        Raise StatusError (400) if it cannot be decoded.
        """
        if not self.body:
            return None
        if self.body.startswith(PREFIX):
            return read_protobuf(self.body)
        read = read_yaml if media_type(self.content_type).endswith("yaml") else read_json
        return read(self.body)

    def document(self) -> dict[str, Any]:
        """Return the record as JSON; a body that cannot be decoded becomes text."""
        fields: dict[str, Any] = {
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "userAgent": self.user_agent,
            "status": self.status,
        }
        if self.fault:
            fields["fault"] = self.fault
        if self.body:
            fields |= {"contentType": self.content_type, "body": self._readable()}
        return fields

    def _readable(self) -> Any:
        try:
            return self.decoded_body()
        except StatusError:
            return self.body.decode(errors="replace")


class RequestLog:
    """Records in the order of their responses, oldest first."""

    def __init__(self) -> None:
        self._records: deque[RequestRecord] = deque()
        self._bytes = 0

    def append(self, record: RequestRecord) -> None:
        """Append a record, and drop the oldest ones that exceed the limits."""
        self._records.append(record)
        self._bytes += len(record.body)
        while len(self._records) > MAX_REQUESTS or self._bytes > MAX_BODY_BYTES:
            self._bytes -= len(self._records.popleft().body)

    def __iter__(self) -> Iterator[RequestRecord]:
        return iter(self._records)
