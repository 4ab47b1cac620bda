"""Requests that a server refuses or warns about, with the answers of a real kube-apiserver.

    python -m tests.fakeapi.apiserver.transcripts.refusals URL TOKEN [NAME]...

records the answers again. Each file in ``tests/transcripts/refusals`` has one exchange a line. A
line with ``differs`` has another answer here, and says why. To add a request, append a line with a
``request`` only, and record.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fakeapi.apiserver.transcripts import record
from tests.fakeapi.apiserver.transcripts.normalization import normal
from tests.fakeapi.apiserver.transcripts.steps import post

FILES = Path(__file__).parents[3] / "transcripts" / "refusals"
NAMES = sorted(path.stem for path in FILES.glob("*.jsonl"))

_SERVING_SECONDS = 4.0
"""How long a server takes to serve a definition, with its schemas."""


def exchanges(name: str) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, (FILES / f"{name}.jsonl").read_text().splitlines())


def sent(request: dict[str, Any]) -> bytes | None:
    """Return the body of a request; None if there is none."""
    if "bytes" in request:
        return bytes.fromhex(request["bytes"])
    return request["body"].encode() if "body" in request else None


def answered(status: int, body: bytes, warnings: list[str]) -> dict[str, Any]:
    """Return an answer without what differs between runs."""
    try:
        document = json.loads(body)
    except ValueError:
        document = body.decode()
    answer = {"status": status, "answer": normal(document)}
    return answer | {"warnings": warnings} if warnings else answer


def _ask(server: record.RealServer, request: dict[str, Any]) -> dict[str, Any]:
    type_header = {"Content-Type": request.get("contentType", "application/json")}
    headers = type_header | request.get("headers", {})
    query = request.get("query", {})
    status, answer, body = server.send(
        request["method"], request["path"], query, sent(request), headers
    )
    warnings = answer.get_all("Warning", [])
    return answered(status, body, [text.encode("latin-1").decode() for text in warnings])


def _record(url: str, token: str, name: str) -> None:
    server = record.RealServer(url, token)
    record.clear(server)
    server.ask(post("/api/v1/namespaces", {"metadata": {"name": "scene"}}))
    lines = []
    for exchange in exchanges(name):
        kept = {key: exchange[key] for key in ("request", "differs") if key in exchange}
        lines.append(json.dumps(kept | _ask(server, exchange["request"]), ensure_ascii=False))
        if "customresourcedefinitions" in exchange["request"]["path"]:
            time.sleep(_SERVING_SECONDS)
    (FILES / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    record.clear(server)


def main() -> None:
    """Record all files, or those named after URL and token."""
    url, token, *names = sys.argv[1:]
    for name in names or NAMES:
        _record(url, token, name)


if __name__ == "__main__":
    main()
