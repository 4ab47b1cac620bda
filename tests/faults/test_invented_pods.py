"""Calls for invented pods change no decision about others."""

from __future__ import annotations

from random import Random

import pytest
from structlog.testing import capture_logs

from extender.server.http_handlers import handle_verb
from extender.server.service import Service, VerbCall
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, pod_json
from tests.extender.conftest import HandClock, live_cluster, preempt_body
from tests.faults.table import INVENTED, noted

NODES = ("node-1", "node-2", "node-3")


@pytest.mark.parametrize("seed", INVENTED.seeds)
async def test_calls_for_invented_pods_leave_the_snapshot_as_it_was(seed: int) -> None:
    rng = Random(seed)
    cluster = live_cluster(
        *(node(name, cpu="1") for name in NODES),
        *(pod(f"web-{name}", on=name, cpu="1") for name in NODES),
        pod("honest", cpu="1", priority=10),
    )
    service = Service(cluster, VectorizedEngine(), HandClock())
    body = preempt_body(pod_json("honest", cpu="1", priority=10), node_1=["web-node-1"])
    with noted(seed), capture_logs():
        await handle_verb(service, VerbCall("preempt", body, 0.0))
        before = cluster.snapshot().nodes
        for _ in range(8):
            name, uid, priority = rng.choice(
                [
                    ("invented", f"uid-{rng.randrange(9)}", 2**31 - 1),
                    ("invented", "honest", 10),
                    ("honest", "another", 10),
                    ("honest", "honest", rng.randrange(11, 2**31)),
                    ("web-node-2", "web-node-2", 2**31 - 1),
                ]
            )
            invented = pod_json(name, uid=uid, cpu="1", priority=priority)
            offers = {each.replace("-", "_"): [f"web-{each}"] for each in NODES}
            body = preempt_body(invented, **offers)
            response = await handle_verb(service, VerbCall("preempt", body, 0.0))
            assert response.status == 200
            assert cluster.snapshot().nodes == before
