"""The session that docs/mcp.md shows is that of a server: the same responses to the same requests.

Requests begin with `>`, responses with `<`; a message may continue in lines that begin with spaces.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.architecture.test_documented_sessions import is_shown
from tests.builders.ledgers import example_records, write_ledger
from tests.commands import COMMAND, ROOT

_SESSION: Final = re.compile(
    r"<!-- session: (?P<typed>.*) -->\n\n```\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL
)
_SECONDS: Final = 30


def messages(lines: str) -> Iterator[tuple[str, str]]:
    """Yield `>` or `<` and the message of each line, with the lines that continue it."""
    for message in re.split(r"\n(?=[<>] )", lines.strip()):
        yield message[0], " ".join(message[2:].split())


async def test_the_server_sends_what_the_page_shows(tmp_path: Path) -> None:
    session = _SESSION.search((ROOT / "docs/mcp.md").read_text())
    assert session is not None
    await write_ledger(tmp_path / "ledger.db", *example_records())
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *session["typed"].split(),
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": sys.prefix},
        stdin=PIPE,
        stdout=PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    received = []
    async with asyncio.timeout(_SECONDS):
        for direction, message in messages(session["lines"]):
            if direction == ">":
                process.stdin.write(f"{message}\n".encode())
            else:
                response = json.dumps(json.loads(await process.stdout.readline()))
                received.append((is_shown(response, message), response))
        process.stdin.close()
        assert await process.wait() == 0
    assert [response for is_equal, response in received if not is_equal] == []
    assert len(received) == 4
