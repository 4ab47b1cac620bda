"""Certificates in files."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest

from extender.config.component_config import TlsConfig
from extender.secure_serving.self_signed import CertificateAuthority, KeyPair
from tests.faults.short_lived_certificates import Pair

YEAR_SECONDS = 365 * 86400


@dataclass(frozen=True)
class TlsFiles:
    """The files of one server, as Kubernetes mounts a Secret: behind a symlink that it replaces."""

    folder: Path
    authority: CertificateAuthority
    clients: CertificateAuthority

    @property
    def tls(self) -> TlsConfig:
        """Return the configuration of the files, without client certificates."""
        mounted = self.folder / "data"
        return TlsConfig(str(mounted / "tls.crt"), str(mounted / "tls.key"))

    @property
    def mutual(self) -> TlsConfig:
        """Return the configuration of the files, with client certificates."""
        return TlsConfig(self.tls.certificate, self.tls.key, str(self.folder / "data" / "ca.crt"))

    def mount(self, version: str, pair: KeyPair | Pair, key: bytes | None = None) -> None:
        """Replace all files at once."""
        folder = self.folder / version
        folder.mkdir()
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(key or pair.key)
        (folder / "ca.crt").write_bytes(self.clients.certificate)
        link = self.folder / "next"
        link.symlink_to(version)
        link.rename(self.folder / "data")

    def issue(self) -> KeyPair:
        """Issue a new certificate of 127.0.0.1."""
        return self.authority.issue_server(["127.0.0.1"])

    def client(
        self, name: str = "", authority: CertificateAuthority | None = None
    ) -> ssl.SSLContext:
        """Return a client's context: the authority, and a certificate if it has a name."""
        context = ssl.create_default_context(cadata=self.authority.certificate.decode())
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if name:
            pair = (authority or self.clients).issue_client(name)
            path = self.folder / f"{name}.pem"
            path.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(path)
        return context


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    """Return files with a valid certificate of 127.0.0.1."""
    made = TlsFiles(tmp_path, CertificateAuthority(), CertificateAuthority())
    made.mount("first", made.issue())
    return made
