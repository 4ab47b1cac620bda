"""Requests are classified by FlowSchemas, whose conditions report missing priority levels."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest

from fakeapi import FakeCluster
from fakeapi.apiserver.endpoints import Request, Response
from fakeapi.apiserver.wire.http_messages import JSON, User

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
AUTHENTICATED = ("system:authenticated",)
NODE = User("system:node:a", groups=("system:nodes", *AUTHENTICATED))
ACCOUNT = User("system:serviceaccount:kube-system:a", groups=("system:serviceaccounts",))
OTHER_ACCOUNT = User("system:serviceaccount:shop:a", groups=("system:serviceaccounts",))


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(bootstrap=True) as cluster:
        yield cluster


def send(cluster: FakeCluster, method: str, path: str, body: dict[str, Any]) -> Any:
    request = Request(method, FLOW + path, body=orjson.dumps(body), content_type=JSON)
    answer = cluster.api.handle(request)
    assert isinstance(answer, Response)
    return orjson.loads(answer.body)


def schema(name: str, level: str, user: str) -> dict[str, Any]:
    rule = {
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/version"]}],
    }
    spec = {"priorityLevelConfiguration": {"name": level}, "rules": [rule]}
    return {"metadata": {"name": name}, "spec": spec}


def flow_of(cluster: FakeCluster, request: Request) -> tuple[str, str]:
    """Return the names of the FlowSchema and of the priority level of a request."""
    headers = cluster.api.flow_control.response_headers(request)
    names = {
        item["metadata"]["uid"]: item["metadata"]["name"]
        for plural in ("flowschemas", "prioritylevelconfigurations")
        for item in send(cluster, "GET", f"/{plural}", {})["items"]
    }
    kinds = ("FlowSchema", "PriorityLevel")
    schema, level = (names[headers[f"X-Kubernetes-PF-{kind}-UID"]] for kind in kinds)
    return schema, level


@pytest.mark.parametrize(
    ("request_", "flow"),
    [
        (Request("GET", "/api/v1/pods"), ("exempt", "exempt")),
        (Request("GET", "/healthz", user=User("a", groups=AUTHENTICATED)), ("probes", "exempt")),
        (
            Request("GET", "/version", user=User("a", groups=AUTHENTICATED)),
            ("global-default", "global-default"),
        ),
        (Request("PATCH", "/api/v1/nodes/a/status", user=NODE), ("system-node-high", "node-high")),
        (Request("GET", "/api/v1/pods", user=NODE), ("system-nodes", "system")),
        (
            Request("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", user=ACCOUNT),
            ("system-leader-election", "leader-election"),
        ),
        (
            Request("GET", "/api/v1/pods", user=ACCOUNT),
            ("kube-system-service-accounts", "workload-high"),
        ),
        (Request("GET", "/api/v1/pods", user=OTHER_ACCOUNT), ("service-accounts", "workload-low")),
        (Request("GET", "/api/v1/pods", user=User("nobody")), ("catch-all", "catch-all")),
        (
            Request("GET", "/version", impersonated=User("a", groups=AUTHENTICATED)),
            ("global-default", "global-default"),
        ),
    ],
    ids=[
        "administrator",
        "probe",
        "other path",
        "node status",
        "node",
        "lease",
        "system account",
        "account",
        "no group",
        "impersonated",
    ],
)
async def test_a_request_belongs_to_the_first_flow_schema_that_matches(
    cluster: FakeCluster, request_: Request, flow: tuple[str, str]
) -> None:
    assert flow_of(cluster, request_) == flow


async def test_a_flow_schema_counts_while_its_priority_level_exists(cluster: FakeCluster) -> None:
    request = Request("GET", "/version", user=User("noxu", groups=AUTHENTICATED))
    send(cluster, "POST", "/flowschemas", schema("mine", "slow", "noxu"))
    [condition] = send(cluster, "GET", "/flowschemas/mine", {})["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "NotFound")
    assert flow_of(cluster, request) == ("global-default", "global-default")
    spec = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    level = {"metadata": {"name": "slow"}, "spec": spec}
    send(cluster, "POST", "/prioritylevelconfigurations", level)
    [condition] = send(cluster, "GET", "/flowschemas/mine", {})["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Found")
    assert flow_of(cluster, request) == ("mine", "slow")


async def test_the_metrics_have_the_seats_of_priority_levels(cluster: FakeCluster) -> None:
    answer = cluster.api.handle(Request("GET", "/metrics"))
    assert isinstance(answer, Response)
    name = b"apiserver_flowcontrol_nominal_limit_seats"
    assert name + b'{priority_level="workload-low"} 245\n' in answer.body


async def test_a_server_without_flow_schemas_sends_no_headers() -> None:
    async with FakeCluster() as cluster:
        assert not cluster.api.flow_control.response_headers(Request("GET", "/version"))


@pytest.mark.parametrize("path", ["/version", "/nothing", "/api/v1/pods?watch=true"])
async def test_responses_and_watches_have_the_headers(cluster: FakeCluster, path: str) -> None:
    expected = cluster.api.flow_control.response_headers(Request("GET", "/version"))
    async with aiohttp.ClientSession() as session, session.get(cluster.url + path) as response:
        assert expected.items() <= response.headers.items()


async def test_a_loaded_flow_schema_without_a_spec_is_not_used(cluster: FakeCluster) -> None:
    header = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1"}
    for kind in ("FlowSchema", "PriorityLevelConfiguration"):
        cluster.api.load([{**header, "kind": kind, "metadata": {"name": "empty"}}])
    assert flow_of(cluster, Request("GET", "/version")) == ("exempt", "exempt")
    metrics = cluster.api.handle(Request("GET", "/metrics"))
    assert isinstance(metrics, Response)
    assert metrics.status == 200
