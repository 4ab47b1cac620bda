"""The extender's own certificate expires under load, and so does the next one."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

from fakeapi.testing.fake_cluster import FakeCluster
from tests.e2e.faults.extender_processes import Callers, extender, metric, objects, wait_for_page
from tests.faults.short_lived_certificates import Pair, self_signed
from tests.faults.table import OWN_CERTIFICATE


def mount_pair(folder: Path, pair: Pair) -> None:
    """Replace the pair atomically, as Kubernetes does."""
    version = folder / f"version-{pair.ends}-{len(list(folder.iterdir()))}"
    version.mkdir()
    (version / "tls.crt").write_bytes(pair.certificate)
    (version / "tls.key").write_bytes(pair.key)
    link = folder / "next"
    link.symlink_to(version.name)
    link.rename(folder / "data")


async def rotate(folder: Path, server: str) -> None:
    """Rotate to a pair that expires soon, an expired one, and a valid one."""
    (folder / "mounted").mkdir(parents=True)
    now = time.time()
    mount_pair(folder / "mounted", self_signed(now - 60, now + 9000))
    tls = {name: str(folder / "mounted" / "data" / f"tls.{end}") for name, end in FILES}
    blind = ssl.create_default_context()  # kube-scheduler without caData verifies nothing
    blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
    async with (
        extender(folder, server, trusted=blind, tls=tls) as running,
        Callers(running.url, tls=blind).calling(2) as callers,
    ):
        short = self_signed(now - 60, time.time() + 20)
        mount_pair(folder / "mounted", short)
        await wait_for_page(running.url, "/metrics", expiry_metric(short), blind)
        mount_pair(folder / "mounted", self_signed(now - 900, now - 1, 1))
        page = "/readyz?verbose"
        counts = await wait_for_page(running.url, page, "has expired; expected a valid one", blind)
        assert "[!] certificate " in counts
        assert counts.endswith("\nok\n")
        assert await metric(running.url, "reprieve_certificate_trouble", blind) == 1
        await wait_for_page(running.url, page, "[!] certificate expired at ", blind)
        await callers.until(10)
        good = self_signed(now - 60, now + 9000, 2)
        mount_pair(folder / "mounted", good)
        await wait_for_page(running.url, "/metrics", expiry_metric(good), blind)
        trusting = ssl.create_default_context(cadata=good.certificate.decode())
        await wait_for_page(running.url, "/livez", "ok", trusting)
        assert set(callers.counts) == {"right"}


def expiry_metric(pair: Pair) -> str:
    """Return the metric of the expiry of the certificate in use."""
    return f"reprieve_certificate_expires_seconds {f'{pair.ends / 1e9:.9f}'.rstrip('0')}e+09"


FILES = (("certificate", "crt"), ("key", "key"))


async def test_it_expires_under_load(tmp_path: Path) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        async with asyncio.TaskGroup() as lives:
            for run in OWN_CERTIFICATE.seeds:
                lives.create_task(rotate(tmp_path / str(run), cluster.url))
