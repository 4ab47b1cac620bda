"""Bodies far larger than the cluster are refused before they cost much."""

from __future__ import annotations

import json
from random import Random

import pytest
from structlog.testing import capture_logs

from extender.server.http_handlers import handle_verb
from extender.server.service import Service, VerbCall
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod_json
from tests.extender.conftest import HandClock, filter_body, live_cluster
from tests.faults.table import LARGE_BODY, noted

POD = json.dumps(pod_json("vip", cpu="1", priority=10))
PLACES = {
    "filter": ('"Nodes":{"items":[%s]}', '"NodeNames":[%s]', '"nodenames":[%s],"x":0'),
    "preempt": (
        '"NodeNameToMetaVictims":{"node-1":{"Pods":[%s],"NumPDBViolations":0}}',
        '"NodeNameToVictims":{"node-1":{"NumPDBViolations":0,"Pods":[%s]}}',
    ),
}
FIELDS = {
    "filter": ("%s", '"Nodes":{%s}'),
    "preempt": ("%s", '"NodeNameToMetaVictims":{%s}', '"NodeNameToVictims":{"node-1":{%s}}'),
}
ITEMS = (
    "{}",
    "null",
    "0",
    "[]",
    '""',
    '"a\\"b"',
    '{"metadata":{"name":"n"}}',
    '{"UID":"u"}',
    "[{}]",
)


def large_body(rng: Random) -> tuple[str, bytes]:
    """Return a verb, and a body with 110,000 values or more in one place."""
    verb = rng.choice(("filter", "preempt"))
    count, item = rng.randrange(110_000, 200_000), rng.choice(ITEMS)
    if rng.random() < 0.5:
        place, items = rng.choice(PLACES[verb]), [item] * count
    else:
        place, items = rng.choice(FIELDS[verb]), [f'"{n}":{item}' for n in range(count)]
    parts = [f'"Pod":{POD}', place % rng.choice((",", ", ")).join(items)]
    rng.shuffle(parts)
    return verb, f"{{{','.join(parts)}}}".encode()


@pytest.mark.parametrize("seed", LARGE_BODY.seeds)
async def test_a_large_body_is_refused_and_the_next_call_answered(seed: int) -> None:
    service = Service(live_cluster(node("node-1")), VectorizedEngine(), HandClock())
    with noted(seed), capture_logs():
        refused = await handle_verb(service, VerbCall(*large_body(Random(seed)), 0.0))
        assert refused.status == 400
        assert refused.text is not None
        assert refused.text.count("\n") == 1
        assert "too many " in refused.text
        body = filter_body(None, "node-1")
        assert (await handle_verb(service, VerbCall("filter", body, 0.0))).status == 200
