"""The reviews that webhooks receive: one for each operation, subresource and object."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.wire.http_messages import User
from tests.builders import Document, controller_spec, pod_request
from tests.fakeapi.admission_webhooks import add, answered, answering, patching
from tests.fakeapi.api_requests import ACCOUNTS, DEPLOYMENTS, MAPS, PODS, Ask, send
from tests.fakeapi.apiserver.admission.conftest import Configure

MAP = {"metadata": {"name": "m"}, "data": {"a": "1"}}
POD = pod_request()
DEPLOYMENT = {"metadata": {"name": "d"}, "spec": controller_spec({"app": "d"}, replicas=1)}


def test_a_create_review_has_the_whole_object(ask: Ask, configure: Configure) -> None:
    recorder = configure("validating")
    _, made = ask("POST", MAPS, MAP, fieldManager="me", fieldValidation="Strict")
    [request] = recorder.requests
    assert request == {
        "uid": request["uid"],
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "m",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {
            "username": "kubernetes-admin",
            "groups": ["system:masters", "system:authenticated"],
        },
        "object": request["object"],
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
            "fieldValidation": "Strict",
        },
    }
    del made["metadata"]["resourceVersion"]
    assert request["object"] == made


def test_every_review_has_a_uid_of_its_own(ask: Ask, configure: Configure) -> None:
    recorders = [configure("mutating"), configure("validating", name="a.b.c")]
    ask("POST", MAPS, MAP)
    ask("POST", MAPS, {"metadata": {"name": "n"}})
    uids = [uid for recorder in recorders for uid in recorder.seen("uid")]
    assert len(set(uids)) == 4


def test_a_review_names_the_user(api: Api, configure: Configure) -> None:
    recorder = configure("mutating")
    user = User("ada", "u-1", ("team",), {"scopes": ("all",)})
    send(api, "POST", MAPS, MAP, user=user)
    expected = {"username": "ada", "uid": "u-1", "groups": ["team"], "extra": {"scopes": ["all"]}}
    assert recorder.seen("userInfo") == [expected]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_an_update_review_has_the_old_object(ask: Ask, configure: Configure, method: str) -> None:
    ask("POST", MAPS, MAP)
    recorder = configure("validating")
    changed = {"metadata": {"name": "m"}, "data": {"a": "2"}}
    ask(method, f"{MAPS}/m", changed)
    [request] = recorder.requests
    assert request["operation"] == "UPDATE"
    assert request["options"]["kind"] == "UpdateOptions"
    assert (request["oldObject"]["data"], request["object"]["data"]) == ({"a": "1"}, {"a": "2"})
    assert request["oldObject"]["kind"] == request["object"]["kind"] == "ConfigMap"


def test_a_delete_review_has_the_deleted_object(ask: Ask, configure: Configure) -> None:
    ask("POST", MAPS, MAP)
    recorder = configure("validating")
    ask("DELETE", f"{MAPS}/m", {"propagationPolicy": "Background", "gracePeriodSeconds": 3})
    [request] = recorder.requests
    assert (request["operation"], request["name"], request["object"]) == ("DELETE", "m", None)
    assert request["oldObject"]["data"] == {"a": "1"}
    assert request["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 3,
        "propagationPolicy": "Background",
    }


def test_a_repeated_delete_calls_no_webhooks(ask: Ask, configure: Configure) -> None:
    ask("POST", PODS, pod_request(nodeName="n"))
    recorder = configure("validating", "pods")
    for _ in range(2):
        ask("DELETE", f"{PODS}/p")
    assert recorder.seen("operation") == ["DELETE"]
    ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert recorder.seen("operation") == ["DELETE"] * 2


def test_a_collection_is_deleted_one_by_one_until_one_is_held(
    ask: Ask, configure: Configure
) -> None:
    for name in "abc":
        ask("POST", MAPS, {"metadata": {"name": name}})

    def hold_b(review: Any) -> Any:
        kept = review["request"]["oldObject"]["metadata"]["name"] == "b"
        return answered(review, allowed=not kept)

    recorder = configure("validating", answer=hold_b)
    status, refusal = ask("DELETE", MAPS)
    assert (status, "denied the request" in refusal["message"]) == (400, True)
    assert recorder.seen("name", "namespace") == [(None, "default")] * 2
    _, left = ask("GET", MAPS)
    assert [each["metadata"]["name"] for each in left["items"]] == ["b", "c"]


class Write(NamedTuple):
    """A write through a subresource, and the operation and kind of its review."""

    method: str
    path: str
    body: Document
    operation: str
    kind: str

    @property
    def subresource(self) -> str:
        return self.path.rpartition("/")[2]


BINDING = {"metadata": {"name": "p"}, "target": {"name": "n"}}
REPLICAS = {"spec": {"replicas": 3}}
EPHEMERAL = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}
WRITES = pytest.mark.parametrize(
    "write",
    [
        Write("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, "UPDATE", "Pod"),
        Write("POST", f"{PODS}/p/binding", BINDING, "CREATE", "Binding"),
        Write("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}, "CREATE", "Eviction"),
        Write("PATCH", f"{DEPLOYMENTS}/d/scale", REPLICAS, "UPDATE", "Scale"),
        Write(
            "PUT",
            f"{DEPLOYMENTS}/d/scale",
            {"metadata": {"name": "d"}} | REPLICAS,
            "UPDATE",
            "Scale",
        ),
        Write("POST", f"{ACCOUNTS}/s/token", {}, "CREATE", "TokenRequest"),
        Write("PATCH", f"{PODS}/p/ephemeralcontainers", EPHEMERAL, "UPDATE", "Pod"),
    ],
    ids=lambda write: f"{write.method} {write.subresource}",
)


class TestSubresources:
    @pytest.fixture(autouse=True)
    def objects(self, ask: Ask) -> None:
        ask("POST", PODS, POD)
        ask("POST", DEPLOYMENTS, DEPLOYMENT)
        ask("POST", ACCOUNTS, {"metadata": {"name": "s"}})

    @pytest.mark.parametrize("role", ["mutating", "validating"])
    @WRITES
    def test_a_subresource_is_reviewed_by_webhooks_that_name_it(
        self, ask: Ask, configure: Configure, role: str, write: Write
    ) -> None:
        recorder = configure(role, f"*/{write.subresource}")
        others = configure(role, "*", name="whole.example.com")
        status, answer = ask(write.method, write.path, write.body)
        assert status < 300, answer
        [request] = recorder.requests
        assert (request["operation"], request["kind"]["kind"]) == (write.operation, write.kind)
        assert request["subResource"] == request["requestSubResource"] == write.subresource
        assert request["object"]["kind"] == write.kind
        assert request["name"] == write.path.split("/")[-2]
        assert (request["oldObject"] is None) is (write.operation == "CREATE")
        assert not others.requests

    @WRITES
    def test_a_subresource_can_be_refused(
        self, ask: Ask, configure: Configure, api: Api, write: Write
    ) -> None:
        configure("validating", f"*/{write.subresource}", answer=answering(allowed=False))
        before = api.store.version
        status, refusal = ask(write.method, write.path, write.body)
        assert (status, "denied the request" in refusal["message"]) == (400, True)
        assert api.store.version == before

    def test_a_scale_may_be_changed(self, ask: Ask, configure: Configure) -> None:
        patch = patching({"op": "replace", "path": "/spec/replicas", "value": 5})
        recorder = configure("mutating", "deployments/scale", answer=answering(**patch))
        path = f"{DEPLOYMENTS}/d"
        _, scale = ask("PATCH", f"{path}/scale", REPLICAS)
        assert scale["spec"] == {"replicas": 5}
        assert ask("GET", path)[1]["spec"]["replicas"] == 5
        [(before, after)] = recorder.seen("oldObject", "object")
        assert (before["spec"], after["spec"]) == ({"replicas": 1}, {"replicas": 3})

    def test_a_binding_may_be_changed(self, ask: Ask, configure: Configure) -> None:
        patch = patching(add("/target/name", "other"))
        configure("mutating", "pods/binding", answer=answering(**patch))
        ask("POST", f"{PODS}/p/binding", BINDING)
        assert ask("GET", f"{PODS}/p")[1]["spec"]["nodeName"] == "other"

    def test_a_status_may_be_changed(self, ask: Ask, configure: Configure) -> None:
        patch = patching(add("/status/message", "seen"))
        configure("mutating", "pods/status", answer=answering(**patch))
        ask("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}})
        status = ask("GET", f"{PODS}/p")[1]["status"]
        assert (status["phase"], status["message"]) == ("Running", "seen")


def test_reviews_are_reviewed_too(ask: Ask, configure: Configure) -> None:
    recorder = configure("validating", "selfsubjectreviews", answer=answering(allowed=False))
    assert ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})[0] == 400
    assert recorder.seen("operation") == ["CREATE"]


def test_reads_call_no_webhooks(ask: Ask, configure: Configure) -> None:
    recorder = configure("validating", "*/*")
    ask("GET", MAPS)
    assert not recorder.requests


def test_a_request_refused_earlier_calls_no_webhooks(ask: Ask, configure: Configure) -> None:
    recorder = configure("validating", "*")
    assert ask("POST", "/api/v1/namespaces/nowhere/configmaps", MAP)[0] == 404
    assert ask("DELETE", f"{MAPS}/nobody")[0] == 404
    assert ask("DELETE", "/api/v1/namespaces/default")[0] == 403
    assert not recorder.requests


def test_a_put_that_creates_is_a_create(ask: Ask, configure: Configure) -> None:
    recorder = configure("validating", "leases")
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    assert ask("PUT", path, {"metadata": {"name": "l"}})[0] == 201
    assert recorder.seen("operation", "name") == [("CREATE", "l")]
