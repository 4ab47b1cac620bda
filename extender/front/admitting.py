"""Who may ask what, where clients are known by their certificates.

Probes are open: a kubelet asks without a certificate, and learns no more than whether we are ready.
Everything else is for those whom the configuration allows: a client is called by its certificate's
common name, as Kubernetes calls users, and by its DNS names and URIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

OPEN_PATHS: Final = frozenset({"/livez", "/readyz", "/healthz"})


class Doorkeeper:
    """Lets clients in by their certificates; by default all that have one."""

    def __init__(self, allowed_names: Iterable[str] = ()) -> None:
        self._allowed = frozenset(allowed_names)

    def objection(self, path: str, certificate: Mapping[str, Any] | None) -> str:
        """Say why a client may not ask for ``path``, "" if it may.

        ``certificate`` is what Python tells of a verified one; None or empty without any.
        """
        if path in OPEN_PATHS:
            return ""
        if not certificate:
            return "a client certificate is required"
        names = sorted(names_of(certificate))
        if self._allowed and self._allowed.isdisjoint(names):
            return f"the client {', '.join(names) or 'without a name'} is not allowed"
        return ""


def names_of(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of a verified certificate, as :meth:`ssl.SSLSocket.getpeercert` tells it."""
    for part in certificate.get("subject", ()):
        yield from (value for key, value in part if key == "commonName")
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in ("DNS", "URI"):
            yield value
