"""Disruption budgets under any interleaving: the final status equals a simple count."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import POD_DISRUPTION_BUDGETS, PODS
from tests.builders import Document
from tests.fakeapi.controlplane.controllers.test_disruption_controller import (
    OF_SET,
    SET,
    budget,
    evict,
    figures,
    web,
)
from tests.fakeapi.controlplane.state_machine import WorldMachine
from tests.properties.sampling import examples

SPECS: list[dict[str, Any]] = [
    {"minAvailable": 1, "maxUnavailable": None},
    {"minAvailable": "50%", "maxUnavailable": None},
    {"minAvailable": None, "maxUnavailable": 1},
    {"minAvailable": None, "maxUnavailable": "30%"},
]


class DisruptedWorld(WorldMachine):
    """Pods of a ReplicaSet that are created, changed, deleted and evicted, and their budget."""

    run = "disruption"

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        self.stage.load(SET, budget(minAvailable=1))

    @rule(ready=st.booleans())
    def a_pod_is_created(self, ready: bool) -> None:  # noqa: FBT001
        self._made += 1
        self.stage.load(web(self._made, OF_SET, **_conditions(ready=ready)))

    @rule(data=st.data(), ready=st.booleans())
    def a_pod_changes(self, data: st.DataObject, ready: bool) -> None:  # noqa: FBT001
        if name := self._pick(data):
            self.do(self.stage.patch(PODS, name, {"status": _conditions(ready=ready)}))

    @rule(data=st.data(), seconds=st.sampled_from([0, 30]))
    def a_pod_is_deleted(self, data: st.DataObject, seconds: int) -> None:
        if name := self._pick(data):
            path = PODS.object(name, "default")
            self.do(self.stage.client.delete(path, grace_period_seconds=seconds))

    @rule(data=st.data())
    def a_pod_is_evicted(self, data: st.DataObject) -> None:
        if name := self._pick(data):
            try:
                self.do(evict(self.stage, name))
            except ApiError as error:
                if error.status != 429:
                    raise

    @rule(spec=st.sampled_from(SPECS))
    def the_budget_changes(self, spec: dict[str, Any]) -> None:
        self.do(self.stage.patch(POD_DISRUPTION_BUDGETS, "budget", {"spec": spec}))

    @rule(replicas=st.integers(0, 6), ready=st.booleans())
    def the_set_is_scaled_and_a_pod_is_created(self, replicas: int, ready: bool) -> None:  # noqa: FBT001
        self.stage.load({**SET, "spec": {"replicas": replicas}})
        self.a_pod_is_created(ready)

    @invariant()
    def allowed_disruptions_are_never_negative(self) -> None:
        assert self._budget().get("status", {}).get("disruptionsAllowed", 0) >= 0

    def check(self) -> None:
        self.wait_idle(200)
        document = self._budget()
        pods = self.listed("pods")
        scale = self.listed("replicasets")[0]["spec"]["replicas"] if pods else 0
        healthy = sum(map(_is_healthy, pods))
        expected, desired = _expected_and_desired(document["spec"], len(pods), scale)
        allowed = max(0, healthy - desired) if expected else 0
        assert figures(document["status"]) == (expected, desired, healthy, allowed)
        generation = document["metadata"]["generation"]
        assert document["status"]["observedGeneration"] == generation

    def _pick(self, data: st.DataObject) -> str:
        names = [pod["metadata"]["name"] for pod in self.listed("pods")]
        return data.draw(st.sampled_from(names)) if names else ""

    def _budget(self) -> Document:
        return self.listed("poddisruptionbudgets")[0]


def _conditions(*, ready: bool) -> Document:
    return {"conditions": [{"type": "Ready", "status": str(ready)}]}


def _is_healthy(pod: Document) -> bool:
    ready = pod["status"]["conditions"][0]["status"] == "True"
    return ready and "deletionTimestamp" not in pod["metadata"]


def _expected_and_desired(spec: Document, pods: int, scale: int) -> tuple[int, int]:
    if spec.get("maxUnavailable") == 1:
        return scale, max(0, scale - 1)
    if spec.get("maxUnavailable") == "30%":
        return scale, scale - (3 * scale + 9) // 10
    return (pods, 1) if spec["minAvailable"] == 1 else (scale, (scale + 1) // 2)


TestDisruptedWorld = DisruptedWorld.TestCase
TestDisruptedWorld.settings = settings(
    max_examples=examples(30), stateful_step_count=25, deadline=None
)
