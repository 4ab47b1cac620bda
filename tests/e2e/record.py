"""Play the scenarios against a real etcd and kube-apiserver, and keep what was printed as golden.

    python -m tests.e2e.record --etcd PATH --apiserver PATH [SCENARIO]...

No controller and no kubelet runs beside them, so scenarios that name parts of the control plane are
left out. Every scenario gets a server of its own, with an empty store.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.clients import RELEASES, programs
from tests.e2e.scenario_runner import Target, play, write_kubeconfig
from tests.e2e.transcripts import Scenario, scenarios, write_golden
from tests.real_server import POD_GROUPS, TOKEN, RealServer, real_server


async def record(etcd: Path, apiserver: Path, chosen: Iterable[Scenario]) -> None:
    """Write the golden transcripts of scenarios, for every release of kubectl."""
    for scenario in chosen:
        for release in RELEASES:
            async with real_server(
                etcd, apiserver, "--unsafe-no-fsync", serving=POD_GROUPS
            ) as server:
                target = _target(server)
                exchanges = await play(scenario, programs(release), target, _home(target))
            write_golden(release, scenario.name, exchanges)


def _target(server: RealServer) -> Target:
    kubeconfig = write_kubeconfig(server.directory / "kubeconfig", server.url, TOKEN)
    return Target(server.url, kubeconfig, TOKEN)


def _home(target: Target) -> Path:
    """Return an empty directory beside the server's own."""
    path = target.kubeconfig.with_name("home")
    path.mkdir()
    return path


def main() -> None:
    """Read the command line and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--etcd", type=Path, required=True)
    parser.add_argument("--apiserver", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    alone = [scenario for scenario in scenarios() if scenario.run == "none"]
    chosen = [s for s in alone if not options.names or s.name in options.names]
    if not chosen:
        sys.exit(f"no such scenario: {options.names}")
    asyncio.run(record(options.etcd, options.apiserver, chosen))


if __name__ == "__main__":
    main()
