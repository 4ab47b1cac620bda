"""Garbage collection under any interleaving: it deletes all garbage, and only garbage.

Objects are created with any owners (present, deleted, of the wrong name or in the wrong namespace),
change owners, are deleted with every propagation policy and lose finalizers, while the collector is
stopped between any two of its steps. Few owners and finalizers make collisions frequent.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from extender.kube.rest.client import Propagation
from tests.builders import Document, thing
from tests.fakeapi.controlplane.state_machine import WorldMachine
from tests.properties.sampling import examples
from tests.stage import CONFIG_MAPS

NAMESPACES = ("default", "kube-system")
HELD = "example.com/hold"

Key = tuple[str, str]


class CollectedWorld(WorldMachine):
    """Config maps that own each other."""

    run = "gc"

    def __init__(self) -> None:
        super().__init__()
        self._created: list[Document] = []
        self._deleted: dict[str, None] = {}

    @rule(data=st.data(), namespace=st.sampled_from(NAMESPACES), held=st.booleans())
    def an_object_is_created(self, data: st.DataObject, namespace: str, held: bool) -> None:  # noqa: FBT001
        document = thing(f"m{len(self._created)}", namespace=namespace)
        document["metadata"]["ownerReferences"] = self._owners(data, "")
        document["metadata"]["finalizers"] = [HELD] if held else []
        self._created.append(self.do(self.stage.create(CONFIG_MAPS, document)))

    @rule(data=st.data())
    def an_object_changes_owners(self, data: st.DataObject) -> None:
        if one := self._pick(data):
            meta = one["metadata"]
            owners = _as_named(meta, self._owners(data, meta["uid"]))
            self._patch(one, {"ownerReferences": owners or None})

    @rule(data=st.data(), how=st.sampled_from(Propagation))
    def an_object_is_deleted(self, data: st.DataObject, how: Propagation) -> None:
        if one := self._pick(data):
            meta = one["metadata"]
            self._deleted[meta["uid"]] = None
            self.do(self.stage.delete(CONFIG_MAPS, meta["name"], how, meta["namespace"]))

    @rule(data=st.data())
    def a_finalizer_is_removed(self, data: st.DataObject) -> None:
        if one := self._pick(data):
            self._patch(one, {"finalizers": _others(one)})

    def _owners(self, data: st.DataObject, own: str) -> list[Document]:
        """Draw references to other objects that were ever created, some of them wrong.

        An object that blocks its own deletion is never deleted, as upstream.
        """
        others = [each for each in self._created if each["metadata"]["uid"] != own]
        if not others:
            return []
        chosen = data.draw(st.lists(st.sampled_from(others), max_size=2, unique_by=id))
        return [self._reference(data, each["metadata"]) for each in chosen]

    def _reference(self, data: st.DataObject, meta: Document) -> Document:
        kind = data.draw(st.sampled_from(["ConfigMap", "ConfigMap", "ConfigMap", "Secret"]))
        reference = {"apiVersion": "v1", "kind": kind, "name": meta["name"], "uid": meta["uid"]}
        return {**reference, "blockOwnerDeletion": data.draw(st.booleans())}

    def _pick(self, data: st.DataObject) -> Document | None:
        present = list(self._present().values())
        return data.draw(st.sampled_from(present)) if present else None

    def _patch(self, one: Document, metadata: Document) -> None:
        meta = one["metadata"]
        change = {"metadata": metadata}
        self.do(self.stage.patch(CONFIG_MAPS, meta["name"], change, meta["namespace"]))

    def _present(self) -> Mapping[str, Document]:
        return {each["metadata"]["uid"]: each for each in self.listed("configmaps")}

    def check(self) -> None:
        for _ in range(2):
            for one in self._present().values():
                if HELD in one["metadata"].get("finalizers", ()):
                    self._patch(one, {"finalizers": _others(one)})
            self.wait_idle(60)
        self._check_that_only_garbage_was_deleted()
        self._check_that_all_garbage_was_deleted()

    def _check_that_only_garbage_was_deleted(self) -> None:
        history = self.cluster.history("configmaps")
        present: dict[str, Document] = {}
        for change in history:
            meta = change.object["metadata"]
            begins = "deletionTimestamp" in meta and (
                "deletionTimestamp" not in present.get(meta["uid"], {"metadata": {}})["metadata"]
            )
            if (begins or change.type == "DELETED") and meta["uid"] not in self._deleted:
                before = present[meta["uid"]]["metadata"]
                if "deletionTimestamp" not in before:
                    assert before.get("ownerReferences"), change
                    assert not any(map(_stays, _live_owners(before, present))), change
            if change.type == "DELETED":
                del present[meta["uid"]]
            else:
                present[meta["uid"]] = change.object

    def _check_that_all_garbage_was_deleted(self) -> None:
        present = self._present()
        for one in present.values():
            meta = one["metadata"]
            assert "deletionTimestamp" not in meta, one
            named = meta.get("ownerReferences", ())
            assert not named or _live_owners(meta, present), one


def _as_named(meta: Document, references: list[Document]) -> list[Document]:
    """Return references with the kinds by which an object names its owners already.

    Upstream ignores changes of a reference that keep its UID, and does not sync the object again
    (graph_builder.go, referencesDiffs and its use).
    """
    kinds = {each["uid"]: each["kind"] for each in meta.get("ownerReferences", ())}
    return [{**each, "kind": kinds.get(each["uid"], each["kind"])} for each in references]


def _others(one: Document) -> list[str] | None:
    return [f for f in one["metadata"].get("finalizers", ()) if f != HELD] or None


def _live_owners(meta: Document, present: Mapping[str, Document]) -> list[Document]:
    """Return the existing owners that the references name correctly."""
    found = []
    for reference in meta.get("ownerReferences", ()):
        one = present.get(reference["uid"])
        if one is None or reference["kind"] != "ConfigMap":
            continue
        if one["metadata"]["namespace"] == meta["namespace"]:
            found.append(one)
    return found


def _stays(one: Document) -> bool:
    """Return whether an owner is not waiting for the deletion of its dependents."""
    meta = one["metadata"]
    waits = "foregroundDeletion" in meta.get("finalizers", ())
    return not ("deletionTimestamp" in meta and waits)


TestCollectedWorld = CollectedWorld.TestCase
TestCollectedWorld.settings = settings(
    max_examples=examples(40), stateful_step_count=25, deadline=None
)
