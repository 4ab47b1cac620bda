"""The load client, a process of its own: ``python -m tests.bench.apiserver --server URL``.

Prints one JSON document of figures, each as it is shown and as a cost in seconds (or bytes).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from tests.bench.apiserver import loads
from tests.bench.apiserver.http_connection import Address

PODS = 5_500
Figures = dict[str, dict[str, Any]]


async def everyday(address: Address) -> Figures:
    """Measure creates, lists, watches and a deletecollection."""
    await loads.prepare(address)
    await loads.create(address, "warm", 50, 5)
    single = await loads.create(address, "one", 450, 1)
    many = await loads.create(address, "many", PODS - 500, 50)
    listed, size = await loads.list_all(address, 7)
    watched = await loads.watch_patches(address, 20, 2_000, 10)
    deleted = await loads.delete_all(address)
    return {
        "create-1": _rate(single),
        "create-50": _rate(many),
        "list": {"shown": f"{listed.seconds:.3f} s, {size / 1e6:.1f} MB", "cost": listed.seconds},
        "patches": {
            "shown": f"{watched.rate:,.0f} patches/s, {watched.rate * 20:,.0f} events/s",
            "cost": 1 / watched.rate,
        },
        "event-latency": {
            "shown": f"p50 {watched.quantile(0.5):.1f} ms, p99 {watched.quantile(0.99):.1f} ms",
            "cost": watched.quantile(0.5) / 1000,
        },
        "deletecollection": {"shown": f"{deleted.seconds:.2f} s", "cost": deleted.seconds},
    }


async def writes(address: Address) -> Figures:
    """Measure what a create and a patch cost, whatever else the store holds."""
    await loads.prepare(address)
    created = await loads.create(address, "w", 500, 1)
    patched = await loads.patch(address, "w-000001", 500)
    await loads.delete_all(address)
    return {
        "create": {"shown": f"{created.quantile(0.5):.2f} ms", "cost": created.quantile(0.5) / 1e3},
        "patch": {"shown": f"{patched.quantile(0.5):.2f} ms", "cost": patched.quantile(0.5) / 1e3},
    }


def _rate(timed: loads.Timed) -> dict[str, Any]:
    quantiles = f"p50 {timed.quantile(0.5):.1f} ms, p99 {timed.quantile(0.99):.1f} ms"
    return {"shown": f"{timed.rate:,.0f}/s, {quantiles}", "cost": 1 / timed.rate}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.apiserver", description=__doc__)
    parser.add_argument("--server", required=True, metavar="URL")
    parser.add_argument("--token", default="")
    parser.add_argument("--what", choices=("everyday", "writes"), default="everyday")
    return parser.parse_args()


if __name__ == "__main__":
    asked = _arguments()
    measure = {"everyday": everyday, "writes": writes}[asked.what]
    figures = asyncio.run(measure(Address(asked.server, asked.token)))
    sys.stdout.write(json.dumps(figures) + "\n")
