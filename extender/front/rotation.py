"""Reloading of certificate files while they are in use, as apiserver's dynamiccertificates.

Kubernetes replaces mounted files by renaming one symlink; other tools rename or overwrite files. So
the contents of the files are compared every ten seconds. Invalid files are not used: the previous
certificate stays in use, and the error is reported until the files are valid again. A certificate
that does not match its key is most often a rotation in progress; the next reload succeeds.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Final

import structlog

from extender.config import TlsConfig
from extender.front.certificates import (
    CertificateError,
    ServingCertificate,
    load_serving_certificate,
    read_key_pair_files,
)
from extender.kube.clock import Clock

RELOAD_INTERVAL_SECONDS: Final = 10.0
EXPIRY_WARNING_SECONDS: Final = 7 * 86400.0


class CertificateReloader:
    """The serving certificate in use. Raises CertificateError if the first load fails.

    ``error`` is the error of the current files, "" if they are in use; ``reloads`` and
    ``failures`` count changes that were loaded, and those that could not be.
    """

    def __init__(self, tls: TlsConfig, clock: Clock) -> None:
        self._tls = tls
        self._clock = clock
        self._seen = read_key_pair_files(tls)
        self._identity = load_serving_certificate(tls, self._now())
        self._log = structlog.get_logger()
        self.error = ""
        self.reloads = 0
        self.failures = 0

    @property
    def context(self) -> ssl.SSLContext:
        """The current SSL context."""
        return self._identity.context

    @property
    def not_after(self) -> int:
        """When the certificate in use expires, in epoch seconds."""
        return self._identity.not_after

    def warning(self) -> str:
        """Return a warning about the certificate, "" if there is none."""
        left = self.not_after - self._now()
        until = datetime.fromtimestamp(self.not_after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if left <= 0:
            return f"expired at {until}; {self.error or 'no newer one is there'}"
        if self.error:
            return f"not reloaded, the one before is served until {until}: {self.error}"
        return f"expires soon, at {until}" if left <= EXPIRY_WARNING_SECONDS else ""

    def reload(self) -> None:
        """Load the files if they have changed; keep the previous ones if they are invalid."""
        try:
            material = read_key_pair_files(self._tls)
            if material == self._seen and not self.error:
                return
            self._use(load_serving_certificate(self._tls, self._now()))
            self._seen = material
        except CertificateError as error:
            self._keep_previous(str(error))

    async def run(self) -> None:
        """Reload the files every ten seconds, until cancelled."""
        while True:
            await self._clock.sleep(RELOAD_INTERVAL_SECONDS)
            self.reload()

    def _use(self, found: ServingCertificate) -> None:
        self._identity = found
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
