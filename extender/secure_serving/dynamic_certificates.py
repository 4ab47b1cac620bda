"""Serving certificates: loaded from files, validated before use, and reloaded when files change.

A certificate is validated by a handshake in memory, with a client that trusts only this
certificate. So a certificate in use is known to be readable, to match its key, and to be valid for
serving. The client also yields the validity period and the names, which Python's ssl returns for a
peer only. Go's clients, kube-scheduler among them, ignore the common name, so a certificate without
a DNS name or an IP address in its subject alternative names is refused.

Kubernetes replaces mounted files by renaming one symlink; other tools rename or overwrite files. So
the contents of the files are compared every ten seconds, as apiserver's dynamiccertificates does.
Invalid files are not used: the previous certificate stays in use, and the error is reported until
the files are valid again. A certificate that does not match its key is most often a rotation in
progress; the next reload succeeds.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog

from extender.config.component_config import TlsConfig
from extender.kube.rest.clock import Clock
from policies.kubernetes.input_error import InputError

RELOAD_INTERVAL_SECONDS: Final = 10.0
EXPIRY_WARNING_SECONDS: Final = 7 * 86400.0

# X509_V_FLAG_NO_CHECK_TIME: the validity period is compared with our own clock.
_ANY_TIME: Final = 0x200000
_MAX_HANDSHAKE_STEPS: Final = 10
_HOST_KINDS: Final = frozenset({"DNS", "IP Address"})
_EXPECTED: Final = "expected a certificate chain in PEM, the server's first, and its key"


class CertificateError(InputError):
    """A certificate file is not usable; the text names field, file and what was expected."""


@dataclass(frozen=True, slots=True)
class KeyPairFiles:
    """The bytes of the certificate files; equal until a file is rotated."""

    certificate: bytes
    key: bytes
    client_ca: bytes


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """An SSL context for serving, and its certificate's validity period in epoch seconds."""

    context: ssl.SSLContext
    not_before: int
    not_after: int


def read_key_pair_files(tls: TlsConfig) -> KeyPairFiles:
    """Read the files. Raise CertificateError."""
    return KeyPairFiles(
        _read_file("tls.certificate", tls.certificate),
        _read_file("tls.key", tls.key),
        _read_file("tls.clientCA", tls.client_ca) if tls.client_ca else b"",
    )


def load_serving_certificate(tls: TlsConfig, now: float) -> ServingCertificate:
    """Load the files for serving, and validate them; ``now`` is in epoch seconds.

    Raise CertificateError with the errors of all files.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    errors = [*_load_key_pair(context, tls)]
    if tls.client_ca:
        errors += _request_client_certificates(context, tls.client_ca)
    if errors:
        raise CertificateError(*errors)
    begins, ends = _validity(context, tls)
    if not begins <= now < ends:
        when = "has expired" if now >= ends else "is not valid yet"
        raise CertificateError(f"tls.certificate: {tls.certificate}: {when}; expected a valid one")
    return ServingCertificate(context, begins, ends)


class _EncryptedError(Exception):
    def __str__(self) -> str:
        return "the key is encrypted"


def _no_password() -> str:
    raise _EncryptedError


def _read_file(key: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CertificateError(f"{key}: {path}: cannot be read: {error.strerror}") from None


def _load_key_pair(context: ssl.SSLContext, tls: TlsConfig) -> Iterator[str]:
    """Load the certificate and its key; yield an error if that fails."""
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except (OSError, _EncryptedError) as error:
        place = f"tls.certificate: {tls.certificate} with tls.key {tls.key}"
        yield f"{place}: {_error_reason(error)}; {_EXPECTED}"


def _request_client_certificates(context: ssl.SSLContext, path: str) -> Iterator[str]:
    """Request client certificates; yield an error if the authorities cannot be loaded.

    The certificates are optional, since kubelets that probe have none.
    """
    try:
        context.load_verify_locations(path)
    except OSError as error:
        problem = f"{_error_reason(error)}; expected certificates of authorities in PEM"
        yield f"tls.clientCA: {path}: {problem}"
    context.verify_mode = ssl.CERT_OPTIONAL
    # Most cluster certificates are issued by Go, which omits fields that strict checks require.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT


def _validity(context: ssl.SSLContext, tls: TlsConfig) -> tuple[int, int]:
    try:
        certificate = _handshake_in_memory(context, tls.certificate)
    except OSError as error:
        place = f"tls.certificate: {tls.certificate}"
        raise CertificateError(f"{place}: {_error_reason(error)}; {_EXPECTED}") from None
    if not _HOST_KINDS.intersection(kind for kind, _ in certificate.get("subjectAltName", ())):
        problem = "has no subject alternative name; expected a DNS name or an IP address"
        raise CertificateError(f"tls.certificate: {tls.certificate}: {problem}")
    begins, ends = (str(certificate[name]) for name in ("notBefore", "notAfter"))
    return ssl.cert_time_to_seconds(begins), ssl.cert_time_to_seconds(ends)


def _handshake_in_memory(context: ssl.SSLContext, trusted_file: str) -> dict[str, Any]:
    """Return the server certificate that a client receives, as Python decodes it. Raise OSError."""
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname = False
    client_context.load_verify_locations(trusted_file)
    flags = (client_context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    client_context.verify_flags = ssl.VerifyFlags(flags | _ANY_TIME)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_MAX_HANDSHAKE_STEPS):
        if sum(_is_done(side) for side in (client, server)) == 2:
            break
    return dict(client.getpeercert() or {})


def _is_done(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _error_reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"is not valid for serving: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())


class CertificateReloader:
    """The serving certificate in use. Raises CertificateError if the first load fails.

    ``error`` is the error of the current files, "" if they are in use; ``reloads`` and
    ``failures`` count changes that were loaded, and those that could not be.
    """

    def __init__(self, tls: TlsConfig, clock: Clock) -> None:
        self._tls = tls
        self._clock = clock
        self._files = read_key_pair_files(tls)
        self._serving = load_serving_certificate(tls, self._now())
        self._log = structlog.get_logger()
        self.error = ""
        self.reloads = 0
        self.failures = 0

    @property
    def context(self) -> ssl.SSLContext:
        """The current SSL context."""
        return self._serving.context

    @property
    def not_after(self) -> int:
        """When the certificate in use expires, in epoch seconds."""
        return self._serving.not_after

    def warning(self) -> str:
        """Return a warning about the certificate, "" if there is none."""
        left = self.not_after - self._now()
        until = datetime.fromtimestamp(self.not_after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if left <= 0:
            return f"expired at {until}; {self.error or 'there is no newer one'}"
        if self.error:
            return f"not reloaded; the previous one is served until {until}: {self.error}"
        return f"expires soon, at {until}" if left <= EXPIRY_WARNING_SECONDS else ""

    def reload(self) -> None:
        """Load the files if they have changed; keep the previous ones if they are invalid."""
        try:
            files = read_key_pair_files(self._tls)
            if files == self._files and not self.error:
                return
            self._use(load_serving_certificate(self._tls, self._now()))
            self._files = files
        except CertificateError as error:
            self._keep_previous("; ".join(error.errors))

    async def run(self) -> None:
        """Reload the files every ten seconds, until cancelled."""
        while True:
            await self._clock.sleep(RELOAD_INTERVAL_SECONDS)
            self.reload()

    def _use(self, found: ServingCertificate) -> None:
        self._serving = found
        self.error = ""
        self.reloads += 1
        self._log.info("certificate_reloaded", ends=found.not_after)

    def _keep_previous(self, error: str) -> None:
        if error != self.error:
            self.failures += 1
            self._log.error("certificate_not_reloaded", problem=error, ends=self.not_after)
        self.error = error

    def _now(self) -> float:
        return self._clock.now_ns() / 1e9
