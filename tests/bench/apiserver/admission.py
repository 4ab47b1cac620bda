"""The cost of a webhook that labels pods, and of 20 policies, compared with a create without."""

from __future__ import annotations

import statistics
import time
from base64 import b64encode
from collections.abc import Callable
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
_POLICIES = 20
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
    """Create pods with and without a webhook, or policies, in this process, by turns."""
    return {
        "webhook-create": _compared(_watched, "one in-process mutating webhook"),
        "policies-create": _compared(_ruled, "20 policies of comprehensions over containers"),
    }


def _compared(prepare: Callable[[Api], Api], what: str) -> Figure:
    _turn(_api())
    pairs = [(_turn(_api()), _turn(prepare(_api()))) for _ in range(_ROUNDS)]
    bare, other = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    ratio = statistics.median(other / bare for bare, other in pairs)  # noise hits both of a pair
    shown = f"{bare * 1e6:.0f} µs, {other * 1e6:.0f} µs"
    return untimed(f"create of a pod, without and with {what}", shown, ratio)


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


def _ruled(api: Api) -> Api:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"]}
    constraints = {"resourceRules": [{**rule, "resources": ["pods"]}]}
    group = {"apiVersion": "admissionregistration.k8s.io/v1"}
    for number in range(_POLICIES):
        test = f"object.spec.containers.all(c, c.image != 'image-{number}')"
        spec = {"matchConstraints": constraints, "validations": [{"expression": test}]}
        bound = {"policyName": f"p{number}", "validationActions": ["Deny"]}
        kind = "ValidatingAdmissionPolicy"
        for each, fields in ((kind, spec), (f"{kind}Binding", bound)):
            metadata = {"name": f"p{number}"}
            api.load([{**group, "kind": each, "metadata": metadata, "spec": fields}])
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
