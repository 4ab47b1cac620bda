"""The end of namespaces under any interleaving: none goes before its content, none stays behind."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NAMESPACES, PODS
from tests.builders import Document, running_pod, thing
from tests.fakeapi.controlplane.state_machine import WorldMachine
from tests.sampling import examples
from tests.stage import CONFIG_MAPS

NAMES = ("red", "blue")
HELD = "example.com/hold"


class EndingWorld(WorldMachine):
    """Two namespaces that come and go, with config maps and pods in them."""

    run = "gc,namespaces"

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        self._lost: dict[str, None] = {}

    @rule(name=st.sampled_from(NAMES))
    def a_namespace_is_made(self, name: str) -> None:
        if self.do(self.stage.find(NAMESPACES, name)) is None:
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.do(self.stage.create(NAMESPACES, document))

    @rule(name=st.sampled_from(NAMES))
    def a_namespace_is_deleted(self, name: str) -> None:
        if self.do(self.stage.find(NAMESPACES, name)):
            self.do(self.stage.delete(NAMESPACES, name))

    @rule(name=st.sampled_from(NAMES), held=st.booleans(), pod=st.booleans())
    def something_is_made_in_it(self, name: str, held: bool, pod: bool) -> None:  # noqa: FBT001
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
    def something_is_let_go(self, data: st.DataObject) -> None:
        held = [one for one in self._content() if one["metadata"].get("finalizers")]
        if held:
            self._let_go(data.draw(st.sampled_from(held)))

    @rule(data=st.data())
    def a_kubelet_ends_a_pod(self, data: st.DataObject) -> None:
        ending = [p for p in self._pods() if "deletionTimestamp" in p["metadata"]]
        if ending:
            self._end(data.draw(st.sampled_from(ending)))

    @invariant()
    def nothing_is_in_a_namespace_that_is_not_there(self) -> None:
        there = {n["metadata"]["name"] for n in self._listed("namespaces")}
        assert {one["metadata"]["namespace"] for one in self._content()} <= there

    def check(self) -> None:
        for one in self._content():
            self._let_go(one)
        for _ in range(2):
            for pod in self._pods():
                if "deletionTimestamp" in pod["metadata"]:
                    self._end(pod)
            self.come_to_rest(200)
        for namespace in self._listed("namespaces"):
            assert "deletionTimestamp" not in namespace["metadata"]
        self._check_that_only_the_ending_lost_anything()

    def _check_that_only_the_ending_lost_anything(self) -> None:
        ends = [
            change.object["metadata"]["name"]
            for change in self.cluster.history("namespaces")
            if change.type == "DELETED"
        ]
        for kind in ("configmaps", "pods"):
            for change in self.cluster.history(kind):
                if change.type == "DELETED":
                    assert change.object["metadata"]["namespace"] in ends

    def _let_go(self, one: Document) -> None:
        meta = one["metadata"]
        resource = PODS if "containers" in one.get("spec", {}) else CONFIG_MAPS
        change = {"metadata": {"finalizers": None}}
        self.do(self.stage.patch(resource, meta["name"], change, meta["namespace"]))

    def _end(self, pod: Document) -> None:
        meta = pod["metadata"]
        path = PODS.object(meta["name"], meta["namespace"])
        self.do(self.stage.client.delete(path, grace_period_seconds=0))

    def _pods(self) -> list[Document]:
        return self._listed("pods")

    def _content(self) -> list[Document]:
        return [*self._listed("configmaps"), *self._listed("pods")]

    def _listed(self, kind: str) -> list[Document]:
        return list(list(self.cluster.history(kind).states())[-1])


TestEndingWorld = EndingWorld.TestCase
TestEndingWorld.settings = settings(
    max_examples=examples(30), stateful_step_count=25, deadline=None
)
