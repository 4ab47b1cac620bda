"""Subresources for which no real server's answer was recorded."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64decode
from copy import deepcopy
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints import Api, Request, Response
from fakeapi.apiserver.registry.subresources.scale import selector_text
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.simulation.world import create_api
from tests.builders import Document, controller_spec, manifest, pod_request
from tests.builders.certificate_requests import pkcs10
from tests.fakeapi.api_requests import ACCOUNTS, DEFAULT, MAPS, NODES, PODS, SETS, Ask, send
from tests.fakeapi.apiserver.endpoints.subresource_requests import requests
from tests.properties.sampling import examples

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CERTIFICATE = b64encode(b"-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n").decode()


def pod(name: str = "p", *, status: Document | None = None, **spec: Any) -> Document:
    made = pod_request(name, labels={"app": "e"}, **spec)
    made["metadata"]["namespace"] = "default"
    return made if status is None else made | {"status": status}


def budget(selector: Any, status: Document, **spec: Any) -> Document:
    return manifest(
        "PodDisruptionBudget",
        "b",
        metadata={"generation": 1},
        spec={"selector": selector, **spec},
        status={"observedGeneration": 1, "disruptionsAllowed": 0, **status},
    )


EVERY: Document = {}
APP = {"matchLabels": {"app": "e"}}
OTHER = {"matchLabels": {"app": "f"}}
NOT_OTHER = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["f"]}]}
BROKEN = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["f"]}]}


@pytest.mark.parametrize(
    ("selector", "status", "ready", "spec", "code"),
    [
        (EVERY, {}, "True", {}, 429),
        (APP, {}, "True", {}, 429),
        (NOT_OTHER, {}, "True", {}, 429),
        (OTHER, {}, "True", {}, 201),
        (BROKEN, {}, "True", {}, 201),
        (None, {}, "True", {}, 201),
        (APP, {"disruptionsAllowed": 1}, "True", {}, 201),
        (APP, {"disruptionsAllowed": -1}, "True", {}, 403),
        (APP, {"observedGeneration": 0, "disruptionsAllowed": 1}, "True", {}, 429),
        (APP, {}, "False", {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, 201),
        (APP, {"currentHealthy": 1, "desiredHealthy": 2}, "False", {}, 429),
        (APP, {"currentHealthy": 2, "desiredHealthy": 2}, "False", {}, 201),
        (APP, {"currentHealthy": 0, "desiredHealthy": 0}, "False", {}, 429),
    ],
)
def test_a_budget_limits_the_eviction_of_its_pods(
    api: Api, ask: Ask, selector: Any, status: Document, ready: str, spec: Document, code: int
) -> None:
    conditions = [{"type": "Ready", "status": ready}]
    running = {"phase": "Running", "conditions": conditions}
    api.load([pod(nodeName="n", status=running), budget(selector, status, **spec)])
    answer = ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    assert answer[0] == code, answer
    assert ("deletionTimestamp" in ask("GET", f"{PODS}/p")[1]["metadata"]) is (code == 201)


def test_a_budget_is_used_up(api: Api, ask: Ask) -> None:
    pods = [pod(name, nodeName="n", status={"phase": "Running"}) for name in "pqr"]
    api.load([*pods, budget(APP, {"disruptionsAllowed": 2})])
    codes = [
        ask("POST", f"{PODS}/{name}/eviction", {"metadata": {"name": name}})[0] for name in "pqr"
    ]
    assert codes == [201, 201, 429]
    _, left = ask("GET", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")
    assert sorted(left["status"]["disruptedPods"]) == ["p", "q"]


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": []},
        {"metadata": {"name": "p"}, "deleteOptions": 1},
        {"kind": "Binding", "metadata": {"name": "p"}},
        {"apiVersion": "policy/v2", "metadata": {"name": "p"}},
        {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": "x"}},
    ],
)
def test_an_invalid_eviction_is_refused(api: Api, ask: Ask, body: Document) -> None:
    api.load([pod()])
    assert ask("POST", f"{PODS}/p/eviction", body)[0] == 400
    assert ask("GET", f"{PODS}/p")[0] == 200


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"a": "b", "0": "c"}, "0=c,a=b"),
        ({"matchLabels": {"b": "c", "a": "b"}}, "a=b,b=c"),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]},
            "a in (x,y)",
        ),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a"),
    ],
)
def test_a_scale_shows_its_selector_as_text(selector: Document, text: str) -> None:
    assert selector_text(selector) == text


@pytest.mark.parametrize("replicas", ["x", True, 1.5])
def test_replicas_are_a_whole_number(ask: Ask, replicas: Any) -> None:
    ask("POST", SETS, {"metadata": {"name": "s"}, "spec": controller_spec({"app": "w"})})
    body = {"metadata": {"name": "s"}, "spec": {"replicas": replicas}}
    assert ask("PUT", f"{SETS}/s/scale", body)[0] == 400
    assert ask("GET", f"{SETS}/s")[1]["metadata"]["generation"] == 1


async def test_a_token_authenticates_its_account_until_it_expires(
    ask: Ask, clock: VirtualClock
) -> None:
    _, account = ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    _, request = ask("POST", f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 600}})
    token = request["status"]["token"]
    assert request["status"]["expirationTimestamp"] == "2026-01-01T00:10:00Z"
    claims = orjson.loads(urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == "system:serviceaccount:default:robot"
    assert claims["exp"] - claims["iat"] == 600
    review = ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    status = ask(*review)[1]["status"]
    assert status["authenticated"] is True
    assert status["user"]["uid"] == account["metadata"]["uid"]
    assert "system:serviceaccounts:default" in status["user"]["groups"]
    await clock.advance(601)
    assert ask(*review)[1]["status"]["error"] == "invalid bearer token"


def test_a_token_names_the_pod_and_node_it_is_bound_to(api: Api, ask: Ask) -> None:
    ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    api.load([pod(nodeName="n", serviceAccountName="robot")])
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    _, request = ask("POST", f"{ACCOUNTS}/robot/token", {"spec": {"boundObjectRef": bound}})
    user = api.identify(request["status"]["token"])
    assert user is not None
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert user.extra["authentication.kubernetes.io/node-name"] == ("n",)
    other_pod = {"spec": {"boundObjectRef": {**bound, "uid": "z"}}}
    assert ask("POST", f"{ACCOUNTS}/robot/token", other_pod)[0] == 409


def pod_of_robot(**metadata: Any) -> Document:
    document = pod(nodeName="n", serviceAccountName="robot")
    return document | {"metadata": document["metadata"] | metadata}


NEEDED = [
    ("ServiceAccount", manifest("ServiceAccount", "robot"), f"{ACCOUNTS}/robot"),
    ("Pod", pod_of_robot(), f"{PODS}/p"),
    ("Secret", manifest("Secret", "s"), f"{DEFAULT}/secrets/s"),
    ("Node", manifest("Node", "n"), f"{NODES}/n"),
]


@pytest.mark.parametrize("loss", ["deleted", "deleted and created again", "reset"])
@pytest.mark.parametrize(("kind", "document", "path"), NEEDED, ids=[row[0] for row in NEEDED])
def test_a_token_ends_with_its_account_and_with_the_object_it_is_bound_to(
    api: Api, ask: Ask, kind: str, document: Document, path: str, loss: str
) -> None:
    ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    api.load([deepcopy(document)])
    reference = {"kind": kind, "apiVersion": "v1", "name": document["metadata"]["name"]}
    spec = {} if kind == "ServiceAccount" else {"boundObjectRef": reference}
    _, request = ask("POST", f"{ACCOUNTS}/robot/token", {"spec": spec})
    token = request["status"]["token"]
    assert api.identify(token) is not None
    if loss == "reset":
        api.reset()
    else:
        ask("DELETE", path, {"gracePeriodSeconds": 0})
    if loss == "deleted and created again":
        api.load([deepcopy(document)])
    assert api.identify(token) is None


def test_a_token_of_a_pod_is_valid_until_a_minute_after_its_grace_period(
    api: Api, ask: Ask
) -> None:
    ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    for deleted, valid in (("2025-12-31T23:59:01Z", True), ("2025-12-31T23:58:59Z", False)):
        api.load([pod_of_robot()])
        _, request = ask("POST", f"{ACCOUNTS}/robot/token", {"spec": {"boundObjectRef": bound}})
        token, uid = request["status"]["token"], ask("GET", f"{PODS}/p")[1]["metadata"]["uid"]
        api.load([pod_of_robot(uid=uid, deletionTimestamp=deleted)])
        assert (api.identify(token) is not None) is valid


def test_an_approval_changes_conditions_and_nothing_else(api: Api, ask: Ask) -> None:
    spec = {"signerName": "a.com/b", "request": pkcs10(), "usages": ["client auth"]}
    kind, certificate = "CertificateSigningRequest", {"certificate": CERTIFICATE}
    version = "certificates.k8s.io/v1"
    request = manifest(kind, "c", version=version, namespace="", spec=spec, status=certificate)
    api.load([request])
    approved = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
    status = {"conditions": [approved], "certificate": ""}
    patch = {"spec": {"username": "z"}, "status": status, "metadata": {"labels": {"a": "b"}}}
    _, answer = ask("PATCH", f"{REQUESTS}/c/approval", patch)
    assert answer["metadata"]["labels"] == {"a": "b"}
    assert "username" not in answer["spec"]
    now = "2026-01-01T00:00:00Z"
    stamped = {**approved, "lastUpdateTime": now, "lastTransitionTime": now}
    assert answer["status"] == {"certificate": CERTIFICATE, "conditions": [stamped]}
    both = {"status": {"conditions": [approved, {"type": "Denied", "status": "True"}]}}
    code, refusal = ask("PATCH", f"{REQUESTS}/c/approval", both)
    assert code == 422
    assert "must specify at most one of" in refusal["message"]


@pytest.mark.parametrize("below", ["exec", "attach", "portforward", "proxy"])
def test_exec_and_port_forward_are_not_served(api: Api, below: str) -> None:
    api.load([pod()])
    for method in ("GET", "POST"):
        assert send(api, method, f"{PODS}/p/{below}").status == 501


def test_a_taken_name_is_not_generated(api: Api, ask: Ask) -> None:
    suffixes = iter(["aaaaa", "aaaaa", "bbbbb"])
    sources = api.registry.sources
    object.__setattr__(sources, "suffix", lambda: next(suffixes))
    names = [
        ask("POST", MAPS, {"metadata": {"generateName": "x-"}})[1]["metadata"]["name"]
        for _ in range(2)
    ]
    assert names == ["x-aaaaa", "x-bbbbb"]
    object.__setattr__(sources, "suffix", lambda: "bbbbb")
    status, answer = ask("POST", MAPS, {"metadata": {"generateName": "x-"}})
    assert (status, answer["details"]["retryAfterSeconds"]) == (409, 1)
    assert answer["message"].endswith(
        "the server was not able to generate a unique name for the object"
    )


@given(st.lists(requests(), max_size=25))
@settings(max_examples=examples(60), deadline=None)
def test_no_request_to_a_subresource_breaks_the_server(asked: list[Request]) -> None:
    api = create_api(VirtualClock(), Random(7))
    for request in asked:
        answer = api.handle(request)
        assert isinstance(answer, Response)
        upstream_too = b"target." in answer.body or b"resourceVersion should" in answer.body
        assert answer.status < 500 or upstream_too, answer.body
