"""Record the errors of a real kube-apiserver for the expressions of :mod:`cel_expressions`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.fakeapi.apiserver.transcripts.cel_expressions import KINDS, errors_of
from tests.fakeapi.apiserver.transcripts.record import RealServer

ERRORS = Path(__file__).parents[3] / "transcripts" / "cel"


def main() -> None:
    """Record all kinds, or those named after URL and token."""
    url, token, *kinds = sys.argv[1:]
    server = RealServer(url, token)
    for kind in kinds or KINDS:
        found = [errors_of(server.ask(step)[1]) for _, step in KINDS[kind]()]
        expressions = [expression for expression, _ in KINDS[kind]()]
        recorded = zip(expressions, found, strict=True)
        lines = [json.dumps(each, ensure_ascii=False) for each in recorded]
        text = "[\n" + ",\n".join(lines) + "\n]"
        (ERRORS / f"{kind}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
