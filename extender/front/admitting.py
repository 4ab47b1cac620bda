"""Authorization of clients by their certificates.

Probes need no certificate: a kubelet sends none, and learns only whether the server is ready. All
other paths are for the clients that the configuration allows. The names of a client are its
certificate's common name, as for users in Kubernetes, and its DNS names and URIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

OPEN_PATHS: Final = frozenset({"/livez", "/readyz", "/healthz"})


class ClientCertAuthorizer:
    """Authorizes clients by their certificates; by default all that have one."""

    def __init__(self, allowed_names: Iterable[str] = ()) -> None:
        self._allowed = frozenset(allowed_names)

    def denial_reason(self, path: str, certificate: Mapping[str, Any] | None) -> str:
        """Return why a client may not request ``path``, "" if it may.

        ``certificate`` is a verified one as Python decodes it; None or empty if there is none.
        """
        if path in OPEN_PATHS:
            return ""
        if not certificate:
            return "a client certificate is required"
        names = sorted(certificate_names(certificate))
        if self._allowed and self._allowed.isdisjoint(names):
            return f"the client {', '.join(names) or 'without a name'} is not allowed"
        return ""


def certificate_names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a certificate in the form of :meth:`ssl.SSLSocket.getpeercert`."""
    for part in certificate.get("subject", ()):
        yield from (value for key, value in part if key == "commonName")
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in ("DNS", "URI"):
            yield value
