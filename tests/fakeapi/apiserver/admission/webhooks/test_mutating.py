"""Mutating webhooks: their order, their patches, and reinvocation."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import manifest, pod_request
from tests.fakeapi.admission_webhooks import Recorder, Review, add, answered, answering, patching
from tests.fakeapi.api_requests import APPLY, MAPS, PODS, Ask, send
from tests.fakeapi.apiserver.admission.conftest import Configure

POD = pod_request()
MAP = {"metadata": {"name": "m"}, "data": {"a": "1"}}


def setting(key: str, value: str) -> Any:
    """Return a hook that sets one key of a map's data."""
    return answering(**patching(add(f"/data/{key}", value)))


def counting(key: str) -> Any:
    """Return a hook that counts its calls in the object."""

    def hook(review: Review) -> Review:
        seen = int(review["request"]["object"]["data"].get(key, "0"))
        return answered(review, **patching(add(f"/data/{key}", str(seen + 1))))

    return hook


def test_each_sees_the_changes_of_the_last_in_order_of_names(
    ask: Ask, configure: Configure
) -> None:
    last = configure("mutating", name="z.example.com", answer=setting("b", "3"))
    configure("mutating", name="a.example.com", answer=setting("b", "2"))
    status, made = ask("POST", MAPS, MAP)
    assert (status, made["data"]) == (201, {"a": "1", "b": "3"})
    [seen] = last.seen("object")
    assert seen["data"] == {"a": "1", "b": "2"}


def test_validating_webhooks_see_the_object_to_be_stored(ask: Ask, configure: Configure) -> None:
    configure("mutating", "pods", answer=answering(**patching(add("/spec/hostname", "web"))))
    validating = configure("validating", "pods")
    ask("POST", PODS, {**POD, "metadata": {"generateName": "p-"}})
    [(name, seen)] = validating.seen("name", "object")
    assert name == seen["metadata"]["name"] != ""
    assert seen["spec"]["hostname"] == "web"
    assert seen["metadata"]["uid"]
    assert seen["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_mutating_webhooks_do_not_see_a_generated_name(ask: Ask, configure: Configure) -> None:
    recorder = configure("mutating", "pods")
    ask("POST", PODS, {**POD, "metadata": {"generateName": "p-", "uid": "mine"}})
    [(name, seen)] = recorder.seen("name", "object")
    assert name is None
    assert {"name", "uid", "creationTimestamp"}.isdisjoint(seen["metadata"])


def test_a_patched_object_gets_defaults(ask: Ask, configure: Configure) -> None:
    sidecar = {"name": "side", "image": "s"}
    configure("mutating", "pods", answer=answering(**patching(add("/spec/containers/-", sidecar))))
    _, made = ask("POST", PODS, POD)
    assert made["spec"]["containers"][1]["terminationMessagePolicy"] == "File"


def test_unknown_fields_of_a_patch_are_pruned(ask: Ask, configure: Configure) -> None:
    patch = patching(add("/spec/colour", "red"), add("/spec/hostname", "web"))
    configure("mutating", "pods", answer=answering(**patch))
    status, made = ask("POST", PODS, POD)
    assert (status, made["spec"]["hostname"], "colour" in made["spec"]) == (201, "web", False)


def test_a_patch_that_makes_the_object_invalid_is_refused(
    ask: Ask, configure: Configure, api: Api
) -> None:
    broken = add("/spec/containers/0/name", "Not A Name")
    configure("mutating", "pods", answer=answering(**patching(broken)))
    before = api.store.version
    status, refusal = ask("POST", PODS, POD)
    assert (status, refusal["reason"]) == (422, "Invalid")
    assert refusal["details"]["causes"][0]["field"] == "spec.containers[0].name"
    assert api.store.version == before


PATCHES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a missing parent": (
        [add("/spec/a/b", 1)],
        'add operation does not apply: doc is missing path: "/spec/a/b": missing value',
    ),
    "no list to replace in": (
        [{"op": "replace", "path": "/items/0", "value": "1"}],
        "replace operation does not apply: doc is missing path: /items/0: missing value",
    ),
    "nothing to remove": (
        [{"op": "remove", "path": "/data/z"}],
        "error in remove for path: '/data/z': Unable to remove nonexistent key: z: missing value",
    ),
    "nothing to move": (
        [{"op": "move", "from": "/data/y", "path": "/data/z"}],
        "move operation does not apply: doc is missing from path: /data/y: missing value",
    ),
    "a test that fails": (
        [{"op": "test", "path": "/data/a", "value": "2"}],
        "testing value /data/a failed: test failed",
    ),
    "no operation": ([{"op": "twist", "path": "/data/a"}], "Unexpected kind: twist"),
    "a value of another type": (
        [add("/data", [1])],
        (
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type "
            "map[string]string"
        ),
    ),
    "another kind": ([add("/kind", "Secret")], "it must stay a ConfigMap of version v1"),
    "no object": ([{"op": "replace", "path": "", "value": 3}], "cannot unmarshal"),
}


@pytest.mark.parametrize(("operations", "message"), PATCHES.values(), ids=PATCHES)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_patch_that_does_not_fit_fails_despite_the_policy(
    ask: Ask, configure: Configure, operations: list[dict[str, Any]], message: str, policy: str
) -> None:
    configure("mutating", failurePolicy=policy, answer=answering(**patching(*operations)))
    status, refusal = ask("POST", MAPS, MAP)
    assert (status, refusal["reason"]) == (500, "InternalError")
    assert refusal["message"].startswith("Internal error occurred: ")
    assert message in refusal["message"]


def test_the_namespace_cannot_be_patched(ask: Ask, configure: Configure) -> None:
    configure("mutating", answer=answering(**patching(add("/metadata/namespace", "other"))))
    status, refusal = ask("POST", MAPS, MAP)
    assert (status, "the namespace of the provided object" in refusal["message"]) == (400, True)


def test_a_name_may_be_given_on_create_but_not_changed(ask: Ask, configure: Configure) -> None:
    configure("mutating", answer=answering(**patching(add("/metadata/name", "other"))))
    assert ask("POST", MAPS, MAP)[1]["metadata"]["name"] == "other"
    status, refusal = ask("PATCH", f"{MAPS}/other", {"data": {"b": "1"}})
    assert status == 200
    assert ask("PUT", f"{MAPS}/other", {"metadata": {"name": "other"}})[0] == 200
    assert refusal["data"] == {"a": "1", "b": "1"}


def test_an_update_is_patched_and_without_a_change_nothing_is_written(
    ask: Ask, configure: Configure, api: Api
) -> None:
    ask("POST", MAPS, MAP)
    configure("mutating", answer=setting("b", "2"))
    _, changed = ask("PUT", f"{MAPS}/m", MAP)
    assert changed["data"] == {"a": "1", "b": "2"}
    before = api.store.version
    assert ask("PUT", f"{MAPS}/m", MAP)[1] == changed
    assert api.store.version == before


def test_an_object_to_be_deleted_cannot_be_patched(ask: Ask, configure: Configure) -> None:
    ask("POST", MAPS, MAP)
    configure("mutating", answer=setting("b", "2"))
    status, refusal = ask("DELETE", f"{MAPS}/m")
    assert status == 500
    assert refusal["message"] == (
        'Internal error occurred: admission webhook "mutating.example.com" attempted to modify '
        "the object, which is not supported for this operation"
    )


def test_a_patch_applies_to_the_version_that_the_webhook_saw(
    ask: Ask, configure: Configure
) -> None:
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    body = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}
    patch = patching(add("/spec/targetCPUUtilizationPercentage", 55))
    configure("mutating", "horizontalpodautoscalers", answer=answering(**patch))
    status, made = ask("POST", path, body)
    assert (status, made["spec"]["targetCPUUtilizationPercentage"]) == (201, 55)
    stored = ask("GET", path.replace("v1", "v2") + "/h")[1]
    assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 55


def test_reinvocation_follows_a_later_change(ask: Ask, configure: Configure) -> None:
    first = configure("mutating", name="a.example.com", reinvocationPolicy="IfNeeded")
    configure("mutating", name="b.example.com", answer=setting("b", "2"))
    ask("POST", MAPS, MAP)
    before, after = first.seen("object")
    assert (before["data"], after["data"]) == ({"a": "1"}, {"a": "1", "b": "2"})


@pytest.mark.parametrize(
    ("policy", "change"),
    [("Never", setting("b", "2")), ("IfNeeded", setting("a", "1")), ("IfNeeded", answering())],
)
def test_without_policy_or_change_nothing_is_reinvoked(
    ask: Ask, configure: Configure, policy: str, change: Any
) -> None:
    first = configure("mutating", name="a.example.com", reinvocationPolicy=policy)
    configure("mutating", name="b.example.com", answer=change)
    ask("POST", MAPS, MAP)
    assert len(first.requests) == 1


def test_an_own_change_does_not_reinvoke_a_webhook(ask: Ask, configure: Configure) -> None:
    own = configure("mutating", reinvocationPolicy="IfNeeded", answer=counting("n"))
    assert ask("POST", MAPS, MAP)[1]["data"]["n"] == "1"
    assert len(own.requests) == 1


def test_webhooks_are_reinvoked_once_and_in_order(ask: Ask, configure: Configure) -> None:
    for name in ("x", "y"):
        configure(
            "mutating",
            name=f"{name}.example.com",
            reinvocationPolicy="IfNeeded",
            answer=counting(name),
        )
    assert ask("POST", MAPS, MAP)[1]["data"] == {"a": "1", "x": "2", "y": "2"}


def test_in_tree_admission_runs_again_and_its_change_reinvokes(
    ask: Ask, configure: Configure
) -> None:
    ask("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": {ZONE: "z"}}})
    patch = patching(add("/spec/nodeName", "n"))
    recorder = configure(
        "mutating", "pods", reinvocationPolicy="IfNeeded", answer=answering(**patch)
    )
    _, made = ask("POST", PODS, POD)
    assert made["metadata"]["labels"] == {ZONE: "z"}
    assert [seen["metadata"].get("labels") for seen in recorder.seen("object")] == [
        None,
        {ZONE: "z"},
    ]


ZONE = "topology.kubernetes.io/zone"


def test_unreadable_managed_fields_are_restored(api: Api, configure: Configure) -> None:
    broken = [
        {"manager": "me", "operation": "Update", "fieldsType": "FieldsV7", "apiVersion": "v1"}
    ]
    configure("mutating", answer=answering(**patching(add("/metadata/managedFields", broken))))
    answer = send(api, "POST", MAPS, MAP, query={"fieldManager": "ada"})
    assert answer.status == 201
    fields = orjson.loads(answer.body)["metadata"]["managedFields"]
    assert [entry["manager"] for entry in fields] == ["ada"]
    [warning] = answer.warnings
    assert warning.startswith(".metadata.managedFields was in an invalid state after admission")


def test_an_empty_patch_changes_nothing(ask: Ask, configure: Configure) -> None:
    configure("mutating", answer=answering(**patching()))
    assert ask("POST", MAPS, MAP)[0] == 201


def test_v1beta1_takes_a_patch_without_its_type_and_any_uid(ask: Ask, configure: Configure) -> None:
    encoded = b64encode(orjson.dumps([add("/data/b", "2")])).decode()

    def old(review: Review) -> Review:
        assert review["apiVersion"] == "admission.k8s.io/v1beta1"
        return {"response": {"allowed": True, "patch": encoded}}

    configure("mutating", admissionReviewVersions=["v7", "v1beta1", "v1"], answer=old)
    assert ask("POST", MAPS, MAP)[1]["data"] == {"a": "1", "b": "2"}


def test_an_apply_is_reviewed_too(ask: Ask, configure: Configure) -> None:
    configure("mutating", answer=setting("b", "2"))
    recorder = configure("validating")
    body = manifest("ConfigMap", "m", data={"a": "1"})
    for expected in (201, 200):
        status, made = ask("PATCH", f"{MAPS}/m", body, APPLY, fieldManager="me")
        assert (status, made["data"]) == (expected, {"a": "1", "b": "2"})
    assert recorder.seen("operation") == ["CREATE", "UPDATE"]
    assert [options["kind"] for options in recorder.seen("options")] == [
        "CreateOptions",
        "UpdateOptions",
    ]


def test_a_recorder_is_a_hook() -> None:
    assert Recorder()({"apiVersion": "", "kind": "", "request": {"uid": "u"}})["response"][
        "allowed"
    ]
