"""Operators in other languages, built once for each user.

    python -m tests.e2e.operators.build [LANGUAGE]...

Maven, Cargo and npm build a copy of the sources in the user's cache directory, under a name made of
all of them, so that neither their output nor their lock files, which name registries, appear in
this directory. Cargo keeps what it compiled of other packages next to it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.conformance.build import BuildError, build_once, user_cache

SOURCES: Final = Path(__file__).parent


class NoToolError(LookupError):
    """A tool of a language is not installed."""


@dataclass(frozen=True, slots=True)
class Language:
    """How operators in a language are built and run, in the directory of their sources."""

    tools: Mapping[str, str]
    """Program → what to install if there is none."""
    build: Sequence[str]
    run: Sequence[str]


_NPM_FLAGS: Final = ("--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund")
_LOGGER: Final = "-Dorg.slf4j.simpleLogger"
LANGUAGES: Final[Mapping[str, Language]] = {
    "java": Language(
        {"javac": "a JDK, 17 or newer", "mvn": "Maven 3.8 or newer"},
        ("mvn", "--batch-mode", "--quiet", "compile"),
        (
            *("java", "-cp", "target/classes:target/dependency/*"),
            f"{_LOGGER}.showThreadName=false",
            # It warns when the machine is slow.
            f"{_LOGGER}.log.io.vertx.core.impl.BlockedThreadChecker=off",
            "Operator",
        ),
    ),
    "rust": Language(
        {"cargo": "Rust 1.89 or newer", "cc": "a C compiler"},
        ("cargo", "install", "--quiet", "--debug", "--path", ".", "--root", "."),
        ("./bin/operator",),
    ),
    "node": Language(
        {"node": "Node.js 20 or newer", "npm": "npm"},
        ("npm", "install", "--loglevel=error", *_NPM_FLAGS),
        ("node", "operator.mjs"),
    ),
}


def built(language: str) -> Path:
    """Return the directory of an operator, building it if it is not there; that takes a minute.

    Raises NoToolError or BuildError.
    """
    target = user_cache() / "operators" / f"{language}-{_fingerprint(language)}"
    build_once(target, lambda: _build(language, target))
    return target


def _build(language: str, target: Path) -> None:
    for tool, needed in LANGUAGES[language].tools.items():
        if shutil.which(tool) is None:
            raise NoToolError(f"no {tool} here: install {needed}")
    sys.stderr.write(f"building the operator in {language}, which takes a minute the first time\n")
    unfinished = target.with_name(f"{language}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(SOURCES / language, unfinished)
    command = ("nice", *LANGUAGES[language].build)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target.with_name("cargo"))}
    if subprocess.run(command, cwd=unfinished, env=environment, check=False).returncode:
        raise BuildError(f"the operator in {language} was not built")
    unfinished.rename(target)


def _fingerprint(language: str) -> str:
    sources = sorted(path for path in (SOURCES / language).rglob("*") if path.is_file())
    named = (str(path.relative_to(SOURCES)).encode() + path.read_bytes() for path in sources)
    return sha256(b"\0".join(named)).hexdigest()[:16]


def main() -> None:
    """Build the operators in the languages that are named, or else in all of them."""
    chosen = sys.argv[1:] or list(LANGUAGES)
    if unknown := sorted(set(chosen) - set(LANGUAGES)):
        sys.exit(f"no language {', '.join(unknown)}; there are {', '.join(LANGUAGES)}")
    for language in chosen:
        try:
            print(built(language))  # noqa: T201 - what was asked for
        except NoToolError as error:
            sys.stderr.write(f"{error}; its tests are skipped\n")
        except BuildError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
