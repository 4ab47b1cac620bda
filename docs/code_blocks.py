"""Code blocks in the site: each has a language, and commands stand apart from their output.

In the repository, a block is a text that is indented by four spaces, and ``$`` marks a command:

    $ kubectl get pods
    NAME    READY

In the site, the command and its output are two blocks. The first one is copied without the prompt,
the second one has no button. Of fenced blocks, only those in the language ``console`` change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import indent
from typing import Final, NamedTuple

PROMPT: Final = "$ "
SHELL: Final = "bash"
OUTPUT: Final = "{.text .no-copy .output}"
TEXT: Final = "text"

_INDENT: Final = "    "
_CONSOLE: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d+\.) ")
_LANGUAGES: Final = (
    ("json", re.compile(r"\{")),
    ("python", re.compile(r"(?:from|import|def|async def|class|with|async with) |@|[a-z][\w.]*\(")),
    ("yaml", re.compile(r"(?:- )?[\w./-]+:(?: |$)")),
    (
        SHELL,
        re.compile(
            r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/\w+|\. \.venv|reprieve|kubectl|helm|make|pip|docker|"
            r"python|pytest|git|curl|openssl|sha256sum)\b"
        ),
    ),
)
"""The languages of blocks, by how their first line begins; any other block is plain text."""


class Block(NamedTuple):
    """A code block: what stands after its fence, and its lines."""

    language: str
    lines: Sequence[str]


def fenced(markdown: str) -> str:
    """Return a page whose indented blocks are fenced blocks with a language."""
    lines: list[str] = []
    indented = _CONSOLE.sub(lambda found: indent(found[1], _INDENT), markdown)
    for is_code, group in groupby(_marked(indented), key=lambda each: each[0]):
        texts = [text for _, text in group]
        if not is_code:
            lines += texts
            continue
        code = [text.removeprefix(_INDENT) for text in texts]
        while code and not code[-1].strip():
            code.pop()
        for block in blocks(code):
            lines += ["", f"```{block.language}", *block.lines, "```"]
        lines.append("")
    return "\n".join(lines) + "\n"


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield the blocks of a code block, without prompts."""
    if not any(line.startswith(PROMPT) for line in lines):
        yield Block(language(lines[0]), lines)
        return
    for is_command, group in groupby(_commands(lines), key=lambda each: each[0]):
        texts = [text.removeprefix(PROMPT) if is_command else text for _, text in group]
        if any(text.strip() for text in texts):
            yield Block(SHELL if is_command else OUTPUT, texts)


def language(line: str) -> str:
    """Return the language of the block that begins with this line."""
    return next((name for name, begins in _LANGUAGES if begins.match(line)), TEXT)


def _commands(lines: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Yield each line, and whether it belongs to a command."""
    continues = False
    for line in lines:
        is_command = continues or line.startswith(PROMPT)
        continues = is_command and line.endswith("\\")
        yield is_command, line


def _marked(markdown: str) -> Iterator[tuple[bool, str]]:
    """Yield each line, and whether it belongs to an indented block; lists have none."""
    after_blank, in_code, in_fence, in_list = True, False, False, False
    for line in markdown.splitlines():
        is_blank = not line.strip()
        if line.lstrip().startswith("```"):
            in_fence = not in_fence
        elif not in_fence and not is_blank and not line.startswith(" "):
            in_list = bool(_ITEM.match(line)) or (in_list and not after_blank)
        may_begin = after_blank and not in_fence and not in_list
        in_code = (in_code and is_blank) or (line.startswith(_INDENT) and (in_code or may_begin))
        yield in_code, line
        after_blank = is_blank
