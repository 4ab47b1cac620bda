"""The token that gives access to the pages and tools of a ledger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from extender.config.strict_decoding import ConfigError

VARIABLE: Final = "REPRIEVE_TOKEN"
_LEAST: Final = 16


def read_token(file: str) -> str:
    """Return the token of a file, or that of the environment variable if ``file`` is empty.

    Return "" if there is none. Raise ConfigError if the file cannot be read, or the token is short.
    """
    if not file:
        token = os.environ.get(VARIABLE, "").strip()
        return token and _valid(token, f"${VARIABLE}")
    try:
        return _valid(Path(file).read_text(encoding="ascii").strip(), file)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: expected a token of ASCII characters") from None


def _valid(token: str, source: str) -> str:
    if len(token) < _LEAST or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{source}: expected a token of at least {_LEAST} characters without spaces"
        )
    return token
