"""The problems of a load: one error with one line for each of them.

document 3: Widget default/one: spec.size: Invalid value: 0: spec.size in body should be ...
"""

from __future__ import annotations

from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError


class LoadProblems:
    """Collects the errors about documents."""

    def __init__(self) -> None:
        self._errors: list[StatusError] = []
        self._lines: list[str] = []

    def add(self, index: int, document: Document, error: StatusError) -> None:
        """Add the error about a document."""
        self._errors.append(error)
        where = f"document {index}: {_display_name(document)}"
        self._lines += [f"{where}{text}" for text in _texts(error)]

    def raise_if_any(self) -> None:
        """Raise StatusError with a line for each problem; the code is that of the first one."""
        if self._errors:
            first = self._errors[0]
            raise StatusError(first.code, first.reason, "\n".join(self._lines))


def _display_name(document: Document) -> str:
    """Return kind, namespace and name with a colon; "" if the document has no name."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return ""
    place = (metadata.get("namespace"), metadata["name"])
    return f"{document.get('kind')} {'/'.join(str(part) for part in place if part)}: "


def _texts(error: StatusError) -> list[str]:
    causes = (error.details or {}).get("causes") or ()
    return [f"{each.get('field')}: {each['message']}" for each in causes] or [error.message]
