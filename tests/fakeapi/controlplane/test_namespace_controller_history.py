"""Deletion of namespaces under any interleaving: each one is deleted after its content."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NAMESPACES, PODS
from tests.builders import Document, manifest, running_pod, thing
from tests.fakeapi.controlplane.state_machine import WorldMachine
from tests.properties.sampling import examples
from tests.stage import CONFIG_MAPS

NAMES = ("red", "blue")
HELD = "example.com/hold"


class EndingWorld(WorldMachine):
    """Two namespaces that are created and deleted, with config maps and pods in them."""

    run = "gc,namespaces"

    def __init__(self) -> None:
        super().__init__()
        self._made = 0

    @rule(name=st.sampled_from(NAMES))
    def a_namespace_is_created(self, name: str) -> None:
        if self.do(self.stage.find(NAMESPACES, name)) is None:
            self.do(self.stage.create(NAMESPACES, manifest("Namespace", name)))

    @rule(name=st.sampled_from(NAMES))
    def a_namespace_is_deleted(self, name: str) -> None:
        if self.do(self.stage.find(NAMESPACES, name)):
            self.do(self.stage.delete(NAMESPACES, name))

    @rule(name=st.sampled_from(NAMES), held=st.booleans(), pod=st.booleans())
    def an_object_is_created(self, name: str, held: bool, pod: bool) -> None:  # noqa: FBT001
        self._made += 1
        namespace = self.do(self.stage.find(NAMESPACES, name))
        named = f"m{self._made}"
        document = thing(named, namespace=name)
        if pod:
            document = running_pod(named, "node", namespace=name)
        document["metadata"]["finalizers"] = [HELD] if held else []
        going = namespace is not None and "deletionTimestamp" in namespace["metadata"]
        creating = self.stage.create(PODS if pod else CONFIG_MAPS, document)
        if namespace is not None and not going:
            self.do(creating)
            return
        with pytest.raises(ApiError) as refusal:
            self.do(creating)
        assert refusal.value.status == (403 if going else 404)

    @rule(data=st.data())
    def finalizers_are_removed(self, data: st.DataObject) -> None:
        held = [one for one in self._content() if one["metadata"].get("finalizers")]
        if held:
            self._remove_finalizers(data.draw(st.sampled_from(held)))

    @rule(data=st.data())
    def a_kubelet_ends_a_pod(self, data: st.DataObject) -> None:
        ending = [p for p in self.listed("pods") if "deletionTimestamp" in p["metadata"]]
        if ending:
            self._end(data.draw(st.sampled_from(ending)))

    @invariant()
    def every_object_is_in_an_existing_namespace(self) -> None:
        there = {n["metadata"]["name"] for n in self.listed("namespaces")}
        assert {one["metadata"]["namespace"] for one in self._content()} <= there

    def check(self) -> None:
        for one in self._content():
            self._remove_finalizers(one)
        for _ in range(2):
            for pod in self.listed("pods"):
                if "deletionTimestamp" in pod["metadata"]:
                    self._end(pod)
            self.wait_idle(200)
        for namespace in self.listed("namespaces"):
            assert "deletionTimestamp" not in namespace["metadata"]
        self._check_that_only_deleted_namespaces_lost_objects()

    def _check_that_only_deleted_namespaces_lost_objects(self) -> None:
        ends = [
            change.object["metadata"]["name"]
            for change in self.cluster.history("namespaces")
            if change.type == "DELETED"
        ]
        for kind in ("configmaps", "pods"):
            for change in self.cluster.history(kind):
                if change.type == "DELETED":
                    assert change.object["metadata"]["namespace"] in ends

    def _remove_finalizers(self, one: Document) -> None:
        meta = one["metadata"]
        resource = PODS if "containers" in one.get("spec", {}) else CONFIG_MAPS
        change = {"metadata": {"finalizers": None}}
        self.do(self.stage.patch(resource, meta["name"], change, meta["namespace"]))

    def _end(self, pod: Document) -> None:
        meta = pod["metadata"]
        path = PODS.object(meta["name"], meta["namespace"])
        self.do(self.stage.client.delete(path, grace_period_seconds=0))

    def _content(self) -> list[Document]:
        return [*self.listed("configmaps"), *self.listed("pods")]


TestEndingWorld = EndingWorld.TestCase
TestEndingWorld.settings = settings(
    max_examples=examples(30), stateful_step_count=25, deadline=None
)
