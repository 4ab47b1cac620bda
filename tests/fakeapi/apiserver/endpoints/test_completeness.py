"""Created objects and refusals equal those of a kube-apiserver v1.37.

``recorded/created.json`` holds requests and the real answers, ``recorded/refused.json`` requests
that it refuses, with objects that must be there first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import manifest
from tests.fakeapi.api_requests import PODS, SERVICES, Ask

_RECORDED = Path(__file__).parents[2] / "recorded"
_CREATED: list[dict[str, Any]] = orjson.loads((_RECORDED / "created.json").read_bytes())
_REFUSED: dict[str, Any] = orjson.loads((_RECORDED / "refused.json").read_bytes())
_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
_CONTROLLED = ("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection")
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def name_of(recorded: dict[str, Any]) -> str:
    return f"{recorded['request']['kind']} {recorded['request']['metadata']['name']}"


@pytest.mark.parametrize("recorded", _CREATED, ids=name_of)
def test_a_created_object_is_completed_as_upstream_completes_it(
    ask: Ask, recorded: dict[str, Any]
) -> None:
    status, made = ask("POST", recorded["path"], recorded["request"])
    assert status == 201, made
    assert comparable(made) == comparable(without_controllers(recorded["response"]))


@pytest.mark.parametrize(
    "refused",
    _REFUSED["refused"],
    ids=lambda refused: f"{refused['path']} {refused['body']}"[-120:],
)
def test_a_validation_error_has_upstreams_words(ask: Ask, refused: dict[str, Any]) -> None:
    for needed in _REFUSED["setup"]:
        if needed["path"] == refused["path"].rpartition("/")[0]:
            assert ask("POST", needed["path"], needed["body"])[0] == 201
    method, path = refused["method"], refused["path"]
    status, answer = ask(method, path, refused["body"], refused["content"])
    causes = answer.get("details", {}).get("causes", [])
    assert (status, answer["message"]) == (refused["code"], refused["message"])
    assert causes == refused["causes"]


def comparable(document: dict[str, Any]) -> Any:
    """Leave out values that differ between servers: uids, times, allocated addresses."""
    metadata = {k: v for k, v in document["metadata"].items() if k not in _OWN}
    text = orjson.dumps({**document, "metadata": metadata}).decode()
    uid = (document.get("spec") or {}).get("selector", {})
    if isinstance(uid, dict) and "matchLabels" in uid:
        for value in uid["matchLabels"].values():
            text = text.replace(value, "UID") if len(value) == 36 else text
    plain = orjson.loads(text)
    if document["kind"] == "Service":
        anonymous(plain["spec"])
    return plain


def anonymous(spec: dict[str, Any]) -> None:
    for port in spec.get("ports", ()):
        if "nodePort" in port:
            port["nodePort"] = "any"
    if spec.get("clusterIP", "None") != "None":
        spec["clusterIP"], spec["clusterIPs"] = "any", ["any"]


def without_controllers(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields that controllers remove."""
    metadata, spec = document["metadata"], document.get("spec") or {}
    if set(metadata.get("finalizers", ())) & set(_CONTROLLED):
        del metadata["finalizers"]
    document.get("status", {}).pop("lastPhaseTransitionTime", None)
    if _NOT_READY in spec.get("taints", ()):
        spec["taints"].remove(_NOT_READY)
        if not spec["taints"]:
            del spec["taints"]
    return document


def test_a_sparsely_loaded_object_can_be_updated(api: Api, ask: Ask) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "0.5"}}}
    api.load([manifest("Pod", "p", spec={"containers": [container], "nodeName": "n"})])
    path = f"{PODS}/p"
    assert ask("GET", path)[1]["spec"]["containers"] == [container]
    labels = {"metadata": {"labels": {"a": "b"}}}
    status, answer = ask("PATCH", path, labels)
    assert (status, answer["metadata"]["labels"]) == (200, {"a": "b"})
    assert answer["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}


def test_a_service_keeps_its_addresses_when_a_client_leaves_them_out(ask: Ask) -> None:
    body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    _, made = ask("POST", SERVICES, body)
    status, replaced = ask("PUT", f"{SERVICES}/s", body)
    assert (status, replaced["spec"]) == (200, made["spec"])
