"""The prose check: reports wording that the project's documentation avoids.

    python -m tests.architecture.prose [FILE...]    default: all tracked Python and Markdown files

It reads docstrings, comments and Markdown text. To find an expression that continues on the next
line, it searches a copy of the file in which every other character is a placeholder, so positions
stay the same. Code blocks, inline code, link targets and string literals are placeholders.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]

_RULES: Final = (
    (r'(?<=""")give\b', "Return …"),
    (r'(?<=""")tell\b', "Return whether …"),
    (r'(?<=""")say\b', "Return …, or Report …"),
    (r"\bwhoever\b", "name the subject: a client that …, the caller"),
    (r"\bwhom\b", "name the object: the client that …, the pods that …"),
    (r"\bnobody\b", "no client, no process; never"),
    (r"\bsomebody\b", "a client, another process"),
    (r"\bwho goes\b", "which pods are evicted, preempted or deleted"),
    (r"\b(?:is|are) told\b", "is reported, is notified, receives"),
    (r"\bsays so\b", "reports it; the log records it"),
    (r"\bstands in for\b", "replaces; is the fallback for"),
    (r"\bcame of it\b", "the result"),
)
"""Patterns of words to avoid, in lower case, and the advised wording."""

_PATTERNS: Final = tuple(
    (re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), advice) for pattern, advice in _RULES
)

_PLACEHOLDER: Final = "·"
_INLINE_CODE: Final = re.compile(r"(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_FENCE: Final = re.compile(r"^ *(```+|~~~+).*?^ *\1", re.MULTILINE | re.DOTALL)
_INDENTED: Final = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n)+")
_LINK_TARGET: Final = re.compile(r"(?<=\])\([^)\s]*\)")
_LAYOUT: Final = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)


class Finding(NamedTuple):
    """Words to avoid, and the advised wording."""

    line: int
    words: str
    advice: str


def findings(text: str, *, is_python: bool) -> list[Finding]:
    """Return the findings in a Python module or a Markdown page, by line.

    Raise SyntaxError or tokenize.TokenError for invalid Python.
    """
    prose = _python_prose(text) if is_python else _markdown_prose(text)
    return sorted(
        Finding(prose.count("\n", 0, found.start()) + 1, " ".join(found[0].split()), advice)
        for pattern, advice in _PATTERNS
        for found in pattern.finditer(prose)
    )


def _markdown_prose(text: str) -> str:
    for pattern in (_FENCE, _INDENTED, _INLINE_CODE, _LINK_TARGET):
        text = pattern.sub(_hidden, text)
    return text


def _python_prose(text: str) -> str:
    prose = _lines(_hide(text))
    for token in _prose_tokens(text):
        (first, start), (last, end) = token.start, token.end
        shown = token.string.lstrip("#").rjust(len(token.string))
        parts = _lines(_INLINE_CODE.sub(_hidden, shown))
        before, after = prose[first - 1][:start], prose[last - 1][end:]
        parts[0], parts[-1] = before + parts[0], parts[-1] + after
        prose[first - 1 : last] = parts
    return "".join(prose)


def _prose_tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield comments, and strings that are statements: docstrings, also those of attributes."""
    previous = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_statement = token.type == tokenize.STRING and previous == tokenize.NEWLINE
        if is_statement or token.type == tokenize.COMMENT:
            yield token
        if token.type not in _LAYOUT:
            previous = token.type


def _lines(text: str) -> list[str]:
    return io.StringIO(text).readlines()  # str.splitlines would also split at form feeds


def _hide(text: str) -> str:
    return re.sub(r"\S", _PLACEHOLDER, text)


def _hidden(found: re.Match[str]) -> str:
    return _hide(found[0])


def tracked_files() -> list[Path]:
    """Return the Python and Markdown files of the repository that git tracks and that exist."""
    command = ["git", "ls-files", "*.py", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def report(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a line for each finding. Raise OSError for a file that cannot be read."""
    for path in paths:
        name = path.resolve().relative_to(ROOT) if path.resolve().is_relative_to(ROOT) else path
        for line, words, advice in findings(path.read_text(), is_python=path.suffix == ".py"):
            yield f"{name}:{line}: {words!r}: write: {advice}"


def main(arguments: list[str]) -> int:
    """Print the findings in files; return 1 if there are any."""
    lines = list(report([Path(argument) for argument in arguments] or tracked_files()))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
