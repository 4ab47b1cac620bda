"""A kube-apiserver for envtest: fakeapi with the certificates that envtest has written.

Clients are identified by the authority of ``--client-ca-file``, and RBAC is enforced. Flags that
are not read here are ignored.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from argparse import ArgumentParser
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from extender.terminal.command_line import stop_signal
from fakeapi.apiserver.auth.authentication import ANONYMOUS_USER
from fakeapi.apiserver.serving.client_access import ClientAccess, create_tls
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.simulation.world import create_world
from fakeapi.testing.fake_cluster import ServedCluster


def read_flags() -> ServedCluster:
    """Return the server that the command line describes."""
    parser = ArgumentParser("kube-apiserver", allow_abbrev=False)
    parser.add_argument("--bind-address", default="127.0.0.1")
    parser.add_argument("--secure-port", type=int, default=6443)
    parser.add_argument("--cert-dir", type=Path, required=True)
    parser.add_argument("--client-ca-file", type=Path)
    flags, _ = parser.parse_known_args()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=flags.client_ca_file)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(flags.cert_dir / "apiserver.crt", flags.cert_dir / "apiserver.key")
    access = ClientAccess(
        replace(create_tls(flags.bind_address), server=context), anonymous_user=ANONYMOUS_USER
    )
    world = create_world(VirtualClock.from_host())
    world.api.enforce_rbac()
    cluster = ServedCluster(world, (), access, flags.bind_address, flags.secure_port)
    cluster.bootstraps = True
    return cluster


async def main() -> None:
    """Serve until a signal ends the process, or its parent has ended without sending one."""
    stop, parent = stop_signal(), os.getppid()
    async with read_flags():
        while not stop.is_set() and os.getppid() == parent:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 1)


if __name__ == "__main__":
    asyncio.run(main())
