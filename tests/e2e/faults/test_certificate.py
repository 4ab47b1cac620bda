"""The extender's own certificate: it expires while calls come, and so does the one after it."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

from fakeapi.testing.fake_cluster import FakeCluster
from tests.e2e.faults.extender_processes import Crowd, extender, figure, objects, shown
from tests.faults.short_lived_certificates import Pair, self_signed
from tests.faults.table import OWN_CERTIFICATE


def mount(folder: Path, pair: Pair) -> None:
    """Put a pair in place at a stroke, as Kubernetes does."""
    version = folder / f"version-{pair.ends}-{len(list(folder.iterdir()))}"
    version.mkdir()
    (version / "tls.crt").write_bytes(pair.certificate)
    (version / "tls.key").write_bytes(pair.key)
    link = folder / "next"
    link.symlink_to(version.name)
    link.rename(folder / "data")


async def live(folder: Path, server: str) -> None:
    """Take up one that ends soon, be offered an expired one, and then a good one."""
    (folder / "mounted").mkdir(parents=True)
    now = time.time()
    mount(folder / "mounted", self_signed(now - 60, now + 9000))
    tls = {name: str(folder / "mounted" / "data" / f"tls.{end}") for name, end in FILES}
    blind = ssl.create_default_context()  # kube-scheduler without caData looks at nothing
    blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
    async with (
        extender(folder, server, trusted=blind, tls=tls) as running,
        Crowd(running.url, tls=blind).calling(2) as crowd,
    ):
        short = self_signed(now - 60, time.time() + 20)
        mount(folder / "mounted", short)
        await shown(running.url, "/metrics", told_end(short), blind)
        mount(folder / "mounted", self_signed(now - 900, now - 1, 1))
        page = "/readyz?verbose"
        told = await shown(running.url, page, "has expired; expected a valid one", blind)
        assert "[!] certificate " in told
        assert told.endswith("\nok\n")
        assert await figure(running.url, "reprieve_certificate_trouble", blind) == 1
        await shown(running.url, page, "[!] certificate expired at ", blind)
        await crowd.until(10)
        good = self_signed(now - 60, now + 9000, 2)
        mount(folder / "mounted", good)
        await shown(running.url, "/metrics", told_end(good), blind)
        trusting = ssl.create_default_context(cadata=good.certificate.decode())
        await shown(running.url, "/livez", "ok", trusting)
        assert set(crowd.told) == {"right"}


def told_end(pair: Pair) -> str:
    """Return the figure that says until when a certificate in use is good."""
    return f"reprieve_certificate_expires_seconds {f'{pair.ends / 1e9:.9f}'.rstrip('0')}e+09"


FILES = (("certificate", "crt"), ("key", "key"))


async def test_it_expires_under_load(tmp_path: Path) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        async with asyncio.TaskGroup() as lives:
            for run in OWN_CERTIFICATE.seeds:
                lives.create_task(live(tmp_path / str(run), cluster.url))
