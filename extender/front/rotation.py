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

from extender.config import Tls
from extender.front.certificates import CertificateError, Identity, identity, read_material
from extender.kube.clock import Clock

LOOK_SECONDS: Final = 10.0
SOON_SECONDS: Final = 7 * 86400.0


class Rotation:
    """The serving certificate in use. Raises CertificateError if the first load fails.

    ``error`` is the error of the current files, "" if they are in use; ``reloads`` and
    ``failures`` count changes that were loaded, and those that could not be.
    """

    def __init__(self, tls: Tls, clock: Clock) -> None:
        self._tls = tls
        self._clock = clock
        self._seen = read_material(tls)
        self._identity = identity(tls, self._now())
        self._log = structlog.get_logger()
        self.trouble = ""
        self.reloads = 0
        self.failures = 0

    @property
    def context(self) -> ssl.SSLContext:
        """The current SSL context."""
        return self._identity.context

    @property
    def ends(self) -> int:
        """When the certificate in use expires, in epoch seconds."""
        return self._identity.ends

    def alarm(self) -> str:
        """Return a warning about the certificate, "" if there is none."""
        left = self.ends - self._now()
        until = datetime.fromtimestamp(self.ends, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if left <= 0:
            return f"expired at {until}; {self.trouble or 'no newer one is there'}"
        if self.trouble:
            return f"not reloaded, the one before is served until {until}: {self.trouble}"
        return f"expires soon, at {until}" if left <= SOON_SECONDS else ""

    def look(self) -> None:
        """Load the files if they have changed; keep the previous ones if they are invalid."""
        try:
            material = read_material(self._tls)
            if material == self._seen and not self.trouble:
                return
            self._take(identity(self._tls, self._now()))
            self._seen = material
        except CertificateError as error:
            self._keep(str(error))

    async def follow(self) -> None:
        """Reload the files every ten seconds, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            self.look()

    def _take(self, found: Identity) -> None:
        self._identity = found
        self.trouble = ""
        self.reloads += 1
        self._log.info("certificate_reloaded", ends=found.ends)

    def _keep(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.failures += 1
            self._log.error("certificate_not_reloaded", problem=trouble, ends=self.ends)
        self.trouble = trouble

    def _now(self) -> float:
        return self._clock.now_ns() / 1e9
