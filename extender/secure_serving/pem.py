"""Key pairs in PEM, loaded into TLS contexts."""

from __future__ import annotations

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory


class MissingExtraError(RuntimeError):
    """The optional dependencies of a requested feature are not installed."""


def load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a key and a certificate into a context (the ssl module reads them from files only)."""
    with TemporaryDirectory(prefix="fakeapi-") as directory:
        path = Path(directory) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(pem)
        context.load_cert_chain(path)
