"""The location of a ledger: the path of a SQLite file, or the URL of a PostgreSQL database."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_postgresql(location: str) -> bool:
    """Return whether a location of a ledger is a PostgreSQL database, and no file."""
    return location.startswith(("postgresql://", "postgres://"))


def shown_location(location: str) -> str | None:
    """Return a location for messages: a URL without user, password and parameters.

    Return None for a URL that is cut at a wrong place, because its password has characters such as
    ``/``: parts of the password would be shown.
    """
    if not is_postgresql(location):
        return location
    scheme, _, rest = location.partition("://")
    try:
        parts = urlsplit(location)
        is_complete = "@" not in rest.removeprefix(parts.netloc) and (parts.port or 1) > 0
    except ValueError:
        is_complete = False
    return f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if is_complete else None
