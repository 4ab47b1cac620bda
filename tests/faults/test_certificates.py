"""Rotations of every kind in any order: a served certificate was valid when it was loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from extender.config.component_config import TlsConfig
from extender.secure_serving.dynamic_certificates import CertificateReloader
from tests.extender.conftest import HandClock
from tests.faults.short_lived_certificates import Pair, self_signed
from tests.faults.table import CERTIFICATES, noted

NOON = 1_800_000_000.0
ROTATIONS = 20


@dataclass
class Mount:
    """The mounted files; ``whole`` is their pair, None if they contain no valid one."""

    folder: Path
    rng: Random
    clock: HandClock
    whole: Pair | None = None
    before: list[Pair] = field(default_factory=list)

    @property
    def tls(self) -> TlsConfig:
        return TlsConfig(str(self.folder / "tls.crt"), str(self.folder / "tls.key"))

    def write(self, certificate: bytes | None, key: bytes | None, whole: Pair | None) -> None:
        for name, content in (("tls.crt", certificate), ("tls.key", key)):
            path = self.folder / name
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
        self.whole = whole

    def renew(self) -> None:
        pair = self.pair(-60, self.rng.uniform(100, 5000))
        self.before.append(pair)
        self.write(pair.certificate, pair.key, pair)

    def pair(self, begins: float, ends: float) -> Pair:
        now = self.clock.seconds
        return self_signed(now + begins, now + ends, self.rng.randrange(4))

    def spoil(self) -> None:
        """Write invalid files, an expired pair, one that is not valid yet, or an old one."""
        pair, other = self.pair(-60, 1000), self_signed(NOON, NOON + 1, 9)
        expired, to_come = self.pair(-900, -1), self.pair(500, 2000)
        place = self.rng.randrange(len(pair.certificate))
        ways: list[Callable[[], None]] = [
            lambda: self.write(pair.certificate, other.key, None),
            lambda: self.write(pair.certificate[:place], pair.key, None),
            lambda: self.write(pair.certificate, pair.key[: place // 4], None),
            lambda: self.write(b"", b"", None),
            lambda: self.write(None, pair.key, None),
            lambda: self.write(pair.certificate, None, None),
            lambda: self.write(expired.certificate, expired.key, expired),
            lambda: self.write(to_come.certificate, to_come.key, to_come),
            lambda: self.write(self.before[0].certificate, self.before[0].key, self.before[0]),
        ]
        self.rng.choice(ways)()

    def content(self) -> tuple[bytes, ...]:
        paths = (self.folder / name for name in ("tls.crt", "tls.key"))
        return tuple(path.read_bytes() if path.exists() else b"(none)" for path in paths)


def rotate(folder: Path, seed: int) -> None:
    """Rotate, let time pass, and reload, many times."""
    clock = HandClock()
    clock.seconds = NOON
    mount = Mount(folder, Random(seed), clock)
    mount.renew()
    rotation = CertificateReloader(mount.tls, clock)
    used, seen = mount.whole, mount.content()
    assert used is not None
    for _ in range(ROTATIONS):
        mount.rng.choice([mount.renew, mount.spoil])()
        clock.seconds += mount.rng.uniform(0, 800)
        before, troubled = rotation.context, bool(rotation.error)
        rotation.reload()
        if mount.content() != seen or troubled:
            if mount.whole is not None and mount.whole.good_at(clock.seconds):
                used, seen = mount.whole, mount.content()
                assert (rotation.error, rotation.not_after) == ("", used.ends)
                assert rotation.context is not before
            else:
                assert rotation.error
                assert "\n" not in rotation.error
        else:
            assert rotation.context is before
        assert rotation.not_after == used.ends
        assert rotation.warning().startswith("expired at ") == (clock.seconds >= used.ends)
    mount.renew()
    rotation.reload()
    assert not rotation.error


@pytest.mark.sampled
def test_a_served_certificate_was_valid_when_loaded(tmp_path: Path) -> None:
    with capture_logs():
        for seed in CERTIFICATES.seeds:
            with noted(seed):
                rotate(tmp_path, seed)
