"""Large calls: refused before they are decoded, or decoded while other calls are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from extender.protocol.request_size import MAX_OBJECT_VALUES, SMALL_BYTES
from extender.server.fallback_policy import FallbackPolicy, FallbackReason
from extender.server.http_handlers import handle_verb
from extender.server.service import Service, VerbCall
from policies.kubernetes.selectors import LabelSelector, label_requirement
from policies.kubernetes.snapshot import AffinityTerm, Pod
from policies.preemption.time_limit import PODS_PER_STEP
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import encoded, node, node_json, pod, pod_json
from tests.extender.conftest import HandClock, filter_body, live_cluster, preempt_body
from tests.extender.go_decoder import filtered

KNOWN: Final = 100
MANY: Final = 200_000
POD: Final = pod_json("vip", cpu="1", priority=10)
NAMES: Final = [f"node-{number}" for number in range(KNOWN)]
LARGE_NODES: Final = {
    "Pod": POD,
    "Nodes": {
        "items": [
            node_json(name, cpu="2", labels={f"label-{n}": "x" * 60 for n in range(100)})
            for name in NAMES
        ]
    },
    "NodeNames": None,
}


def serve(clock: HandClock | None = None, seconds: float = 1.0) -> Service:
    """Return an extender for a cluster with some nodes and a pod on each."""
    pods = [pod(f"web-{name}", on=name, cpu="1") for name in NAMES]
    cluster = live_cluster(*(node(name, cpu="2") for name in NAMES), *pods)
    deadlines = FallbackPolicy(dict.fromkeys(("filter", "preempt"), seconds))
    engine = VectorizedEngine()
    return Service(cluster, engine, clock or HandClock(), fallback_policy=deadlines)


async def call(service: Service, verb: str, body: bytes) -> tuple[int, str]:
    response = await handle_verb(service, VerbCall(verb, body, service.clock.monotonic()))
    return response.status, response.text or ""


def container_requests(resources: Any) -> dict[str, Any]:
    """Return a pod whose container has some resources."""
    return POD | {"spec": {**POD["spec"], "containers": [{"name": "c", "resources": resources}]}}


def claiming(*names: str) -> dict[str, Any]:
    """Return a pod with some resource claims."""
    claims = [{"name": f"c{n}", "resourceClaimName": name} for n, name in enumerate(names)]
    return POD | {"spec": {**POD["spec"], "resourceClaims": claims}}


def offers(key: str, value: Any) -> dict[str, Any]:
    return {"Pod": POD, key: value}


VICTIM: Final = {"UID": "u"}
TOO_LARGE: Final[dict[str, tuple[str, Any, str]]] = {
    "nodes": (
        "filter",
        {"Pod": POD, "Nodes": {"items": [{"metadata": {"name": "n"}}] * MANY}},
        "ExtenderArgs: too many nodes; expected at most 1125",
    ),
    "empty nodes": (
        "filter",
        {"Pod": POD, "Nodes": {"items": [{}] * MANY}},
        "ExtenderArgs: too many nodes; expected at most 1125",
    ),
    "names": (
        "filter",
        {"Pod": POD, "Nodes": None, "NodeNames": ["n"] * MANY},
        "ExtenderArgs: too many node names; expected at most 1125",
    ),
    "names before the pod": (
        "filter",
        {"NodeNames": ["n"] * MANY, "Pod": POD},
        "ExtenderArgs: too many node names; expected at most 1125",
    ),
    "fields": (
        "filter",
        dict.fromkeys(map(str, range(MANY)), 1),
        "ExtenderArgs: too many fields; expected at most 1000",
    ),
    "offers": (
        "preempt",
        offers("NodeNameToMetaVictims", {f"n{n}": {"Pods": [VICTIM]} for n in range(MANY)}),
        "ExtenderPreemptionArgs: too many nodes; expected at most 1125",
    ),
    "victims": (
        "preempt",
        offers("NodeNameToMetaVictims", {"node-1": {"Pods": [VICTIM] * MANY}}),
        "ExtenderPreemptionArgs: too many victims; expected at most 100125",
    ),
    "victims without pods": (
        "preempt",
        offers("NodeNameToVictims", {"node-1": {"Pods": [None] * MANY}}),
        "ExtenderPreemptionArgs: too many victims; expected at most 100125",
    ),
    "fields of nodes": (
        "preempt",
        offers("NodeNameToVictims", {"node-1": dict.fromkeys(map(str, range(MANY)), 1)}),
        "ExtenderPreemptionArgs: too many fields of nodes; expected at most 4500",
    ),
    "containers": (
        "filter",
        {"Pod": {"spec": {"containers": [{}] * MANY}}, "NodeNames": []},
        f"Pod: too many values; expected at most {MAX_OBJECT_VALUES}",
    ),
    "taints": (
        "filter",
        {"Pod": POD, "Nodes": {"items": [{"spec": {"taints": [{}] * MANY}}]}},
        f"Nodes.items[0]: too many values; expected at most {MAX_OBJECT_VALUES}",
    ),
    "bytes of a node": (
        "filter",
        {"Pod": POD, "Nodes": {"items": [{"x": "x" * 2**22}]}},
        f"Nodes.items[0]: {2**22 + 8} bytes; expected at most {3 * 2**20}",
    ),
    "keys of another casing": (
        "preempt",
        offers("nodeNameToVictims", {"n": {"pods": [{"x": "x" * SMALL_BYTES}]}}),
        "NodeNameToVictims: a field is missing; expected Pods and NumPDBViolations",
    ),
}


@pytest.mark.parametrize(("verb", "document", "problem"), TOO_LARGE.values(), ids=TOO_LARGE)
async def test_a_call_larger_than_the_cluster_is_refused_in_one_line(
    verb: str, document: Any, problem: str
) -> None:
    body = json.dumps(document, separators=(",", ":")).encode()
    assert await call(serve(), verb, body) == (400, f"reprieve: {problem}\n")


@pytest.mark.parametrize("names", [1125, 1126])
async def test_a_call_may_have_nodes_that_the_watch_does_not_show_yet(names: int) -> None:
    body = filter_body(POD, *(f"node-{number}" for number in range(names)))
    status, _ = await call(serve(), "filter", body)
    assert status == (200 if names == 1125 else 400)


LONG_NAME: Final = "n" * 240
RESOURCES: Final = {"requests": {f"example.com/{'r' * 50}{n}": "1" for n in range(5_000)}}
HOSTILE: Final[dict[str, tuple[str, Any]]] = {
    "resources": (
        "filter",
        {"Pod": container_requests(RESOURCES), "Nodes": None, "NodeNames": NAMES},
    ),
    "resources of a preemptor": (
        "preempt",
        {
            "Pod": container_requests(RESOURCES),
            "NodeNameToMetaVictims": {name: {"Pods": [{"UID": f"web-{name}"}]} for name in NAMES},
        },
    ),
    "claims": (
        "preempt",
        {
            "Pod": claiming(*(f"{LONG_NAME}{number}" for number in range(3_000))),
            "NodeNameToMetaVictims": {"node-1": {"Pods": [{"UID": "web-node-1"}]}},
        },
    ),
    "nodes that are not known": (
        "preempt",
        offers(
            "NodeNameToMetaVictims",
            {f"{LONG_NAME}{n}": {"Pods": [VICTIM], "NumPDBViolations": 0} for n in range(1_000)},
        ),
    ),
    "the name of a node": (
        "filter",
        {"Pod": POD, "Nodes": {"items": [node_json("n" * 100_000)]}, "NodeNames": None},
    ),
}


@pytest.mark.parametrize(("verb", "document"), HOSTILE.values(), ids=HOSTILE)
async def test_what_is_answered_and_kept_of_a_call_is_bounded(verb: str, document: Any) -> None:
    service, body = serve(), encoded(document)
    status, text = await call(service, verb, body)
    await asyncio.sleep(0)  # the decision is recorded after the answer
    assert status == 200, text
    assert len(text) < 2_000 * len(NAMES)
    kept = service.decision_history.document()
    assert json.loads(kept)["decisions"]
    assert len(kept) < 40_000


async def test_a_resource_with_a_name_longer_than_kubernetes_allows_is_refused() -> None:
    hostile = container_requests({"requests": {"r" * 318: "1"}})
    status, text = await call(serve(), "filter", filter_body(hostile, "node-1"))
    assert status == 400
    assert "resources.requests: expected str of length <= 317" in text


async def test_a_pod_with_thousands_of_init_containers_and_resources_is_decoded() -> None:
    containers = [
        {"name": f"c{n}", "resources": {"requests": {f"example.com/{n}": "1"}}}
        for n in range(2_500)
    ]
    init = pod_json("vip") | {"spec": {"initContainers": containers}}
    status, _ = await call(serve(), "filter", filter_body(init, "node-1"))
    assert status == 200


async def test_a_large_call_of_nodes_is_answered_as_one_by_name() -> None:
    service, body = serve(), encoded(LARGE_NODES)
    assert len(body) > SMALL_BYTES
    status, text = await call(service, "filter", body)
    assert status == 200
    assert filtered(text.encode(), NAMES, cached=False).nodes == NAMES


async def test_a_small_call_is_answered_while_a_large_one_is_decoded() -> None:
    service = serve()
    order: list[str] = []

    async def record(name: str, body: bytes) -> None:
        await call(service, "filter", body)
        order.append(name)

    await asyncio.gather(
        record("large", encoded(LARGE_NODES)), record("small", filter_body(POD, "node-1"))
    )
    assert order == ["small", "large"]


async def test_decoding_ends_at_the_deadline() -> None:
    service = serve(HandClock(step=0.1), seconds=0.35)
    late = "late: the body was not decoded before the deadline"
    assert await call(service, "filter", encoded(LARGE_NODES)) == (503, f"reprieve: {late}\n")
    degraded = service.metrics.degraded.labels("filter", FallbackReason.LATE.value, "error")
    assert [each.value for [metric] in [degraded.collect()] for each in metric.samples[:1]] == [1]


HOSTNAME: Final = "kubernetes.io/hostname"


def constrained(**spec: Any) -> dict[str, Any]:
    """Return a pod with constraints that concern all pods."""
    return POD | {"spec": POD["spec"] | spec}


def term(number: int) -> dict[str, Any]:
    expression = {"key": f"label-{number}", "operator": "DoesNotExist"}
    return {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": [expression]}}


def affinity(kind: str, terms: int) -> dict[str, Any]:
    """Return a pod with terms that select all pods, of podAffinity or podAntiAffinity."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term(n) for n in range(terms)]}
    return constrained(affinity={kind: required})


def spread(constraints: int) -> dict[str, Any]:
    """Return a pod with topology spread constraints that count all pods."""
    rest = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return constrained(topologySpreadConstraints=[term(n) | rest for n in range(constraints)])


def sent(pod: dict[str, Any]) -> bytes:
    """Build a filter call with all nodes as objects, which the reference engine decides."""
    items = [node_json(name, cpu="2", labels={HOSTNAME: name}) for name in NAMES]
    return encoded({"Pod": pod, "Nodes": {"items": items}, "NodeNames": None})


def preempting(pod: dict[str, Any]) -> bytes:
    return preempt_body(pod, **{name: [f"web-{name}"] for name in NAMES})


CLUSTER_WIDE: Final[dict[str, tuple[str, bytes, float]]] = {
    f"{verb} {kind}": (verb.partition(" ")[0], build(pod), seconds)
    for kind, pod in {
        "affinity": affinity("podAffinity", 20),
        "anti-affinity": affinity("podAntiAffinity", 20),
        "topology spread": spread(20),
    }.items()
    for verb, build, seconds in (
        ("filter by name", lambda pod: filter_body(pod, *NAMES), 0.15),
        ("filter of sent nodes", sent, 0.01 * (KNOWN + 15)),
        ("preempt", preempting, 0.15),
    )
} | {
    "deferral": ("preempt", preempting(affinity("podAffinity", 1)), 0.01 * KNOWN),
}
"""Calls, and a deadline that the other parts of their decisions keep; a step takes 10 ms."""


@pytest.mark.parametrize(("verb", "body", "seconds"), CLUSTER_WIDE.values(), ids=CLUSTER_WIDE)
async def test_the_parts_of_a_decision_about_all_nodes_heed_the_deadline(
    verb: str, body: bytes, seconds: float
) -> None:
    service = serve(HandClock(step=0.01), seconds=seconds)
    late = "late: the search did not finish before the deadline"
    assert await call(service, verb, body) == (503, f"reprieve: {late}\n")


async def test_the_pods_that_repel_a_pod_are_counted_until_the_deadline() -> None:
    def repelling(number: int) -> Pod:
        selector = LabelSelector((label_requirement(f"label-{number}", "DoesNotExist", ()),))
        repelled = AffinityTerm(selector, frozenset(["default"]), None, f"key-{number}")
        name = NAMES[number % KNOWN]
        return pod(f"repelling-{number}", on=name, anti_affinity=(repelled,))

    nodes = [node(name, cpu="2") for name in NAMES]
    cluster = live_cluster(*nodes, *map(repelling, range(6 * PODS_PER_STEP)))
    deadlines = FallbackPolicy({"filter": 0.08})
    clock = HandClock(step=0.01)
    service = Service(cluster, VectorizedEngine(), clock, fallback_policy=deadlines)
    status, text = await call(service, "filter", filter_body(POD, *NAMES))
    assert (status, "late" in text) == (503, True)


TERMS: Final = {
    "required terms of podAffinity": partial(affinity, "podAffinity"),
    "required terms of podAntiAffinity": partial(affinity, "podAntiAffinity"),
    "topologySpreadConstraints": spread,
}


@pytest.mark.parametrize("verb", ["filter", "preempt"])
@pytest.mark.parametrize(("what", "build"), TERMS.items(), ids=TERMS)
async def test_a_pod_has_a_hundred_terms_of_each_kind_at_most(
    verb: str, what: str, build: Callable[[int], dict[str, Any]]
) -> None:
    def body(terms: int) -> bytes:
        return filter_body(build(terms), *NAMES) if verb == "filter" else preempting(build(terms))

    problem = f"reprieve: Pod: 101 {what}; expected at most 100\n"
    assert await call(serve(), verb, body(101)) == (400, problem)
    status, _ = await call(serve(), verb, body(100))
    assert status == 200
