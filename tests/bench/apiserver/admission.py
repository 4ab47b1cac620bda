"""The cost of an admission webhook that labels pods, compared with a create without one."""

from __future__ import annotations

import statistics
import time
from base64 import b64encode
from random import Random
from typing import Any

import orjson

from fakeapi.apiserver.endpoints import Api, Request, Response
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.simulation.world import create_api
from tests.bench.budgets import Figure, untimed
from tests.bench.clusters import encoded

_PODS = "/api/v1/namespaces/default/pods"
_NAME = "label.example.com"
_TURNS = 1_000
_ROUNDS = 7
_PATCH = [{"op": "add", "path": "/metadata/annotations", "value": {"seen": "yes"}}]
_SPEC = {
    "containers": [
        {
            "name": "main",
            "image": "nginx:1.27",
            "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        }
    ]
}


def measure() -> dict[str, Figure]:
    """Create pods with and without a webhook in this process, by turns."""
    _turn(_api())
    pairs = [(_turn(_api()), _turn(_watched(_api()))) for _ in range(_ROUNDS)]
    bare, watched = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    ratio = statistics.median(
        watched / bare for bare, watched in pairs
    )  # noise hits both of a pair
    what = "create of a pod, without and with one in-process mutating webhook"
    shown = f"{bare * 1e6:.0f} µs, {watched * 1e6:.0f} µs"
    return {"webhook-create": untimed(what, shown, ratio)}


def _api() -> Api:
    return create_api(VirtualClock(), Random(1))


def _watched(api: Api) -> Api:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"]}
    webhook = {
        "name": _NAME,
        "clientConfig": {"url": "https://127.0.0.1"},
        "rules": [{**rule, "resources": ["pods"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    group = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
    }
    api.load([{**group, "metadata": {"name": "label"}, "webhooks": [webhook]}])
    api.webhooks.handlers[_NAME] = _label
    return api


def _label(review: dict[str, Any]) -> dict[str, Any]:
    patch = b64encode(orjson.dumps(_PATCH)).decode()
    uid = review["request"]["uid"]
    response = {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": patch}
    return {**review, "response": response}


def _turn(api: Api) -> float:
    """Return the seconds that one create takes."""
    bodies = [encoded({"metadata": {"name": f"p{n}"}, "spec": _SPEC}) for n in range(_TURNS)]
    begun = time.perf_counter()
    for body in bodies:
        answer = api.handle(Request("POST", _PODS, body=body, content_type="application/json"))
        if not isinstance(answer, Response) or answer.status != 201:
            raise RuntimeError(f"the pod of the benchmark was not created: {answer}")
    return (time.perf_counter() - begun) / _TURNS
