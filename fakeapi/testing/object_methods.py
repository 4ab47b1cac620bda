"""The methods of every form of a cluster about objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, overload

from fakeapi.apiserver.store.object_store import Document
from fakeapi.testing.object_calls import ObjectCall, apply_call, items_of, non_empty, watch_call
from fakeapi.testing.object_sources import Model, ObjectSource, ObjectSources, read_objects
from fakeapi.testing.object_waits import Goal, ObjectWait

One = TypeVar("One")
Many = TypeVar("Many")
Nothing = TypeVar("Nothing")

_APPLIED_FIRST: Final = ("CustomResourceDefinition", "Namespace")


class ObjectMethods(Generic[One, Many, Nothing]):
    """Reads, applies, deletes, and waits for objects; no fault affects it, and no log shows it.

    The results are ``One`` object, ``Many`` and ``Nothing``: plain values, or to be awaited.
    """

    def _perform(self, call: ObjectCall) -> Any:
        raise NotImplementedError

    def _perform_all(self, calls: Sequence[ObjectCall]) -> Any:
        raise NotImplementedError

    def _wait(self, call: ObjectCall, wait: ObjectWait, seconds: float) -> Any:
        raise NotImplementedError

    def get(self, kind: str, name: str, namespace: str = "") -> One:
        """Return an object of the kind (``pods``, ``po``, ``Pod``, ``deployments.apps``).

        Without ``namespace`` it is in ``default``. Raises StatusError (404).
        """
        query = non_empty(kind=kind, name=name, namespace=namespace)
        found: One = self._perform(ObjectCall("GET", query))
        return found

    def list(self, kind: str, namespace: str = "", label_selector: str = "") -> Many:
        """Return the objects of a kind, of one namespace or of all; raises StatusError."""
        query = non_empty(kind=kind, namespace=namespace, labelSelector=label_selector)
        found: Many = self._perform(ObjectCall("GET", query, result=items_of))
        return found

    @overload
    def apply(self, objects: Mapping[str, Any] | Model) -> One: ...

    @overload
    def apply(self, objects: str | Path | Iterable[ObjectSource]) -> Many: ...

    def apply(self, objects: ObjectSources) -> One | Many:
        """Create or change objects by server-side apply, and return them.

        It takes what ``load`` takes, in any order with their definitions and namespaces. The result
        for one object is the object, for others a list. Raises ManifestError and StatusError.
        """
        documents, _ = read_objects(objects)
        calls = [apply_call(each) for each in sorted(documents, key=_needs_others)]
        if isinstance(objects, Mapping | Model) and len(calls) == 1:
            applied: One = self._perform(calls[0])
            return applied
        all_applied: Many = self._perform_all(calls)
        return all_applied

    def delete(
        self, kind: str, name: str, namespace: str = "", grace_period_seconds: int | None = None
    ) -> Nothing:
        """Delete an object; raises StatusError (404)."""
        grace = "" if grace_period_seconds is None else str(grace_period_seconds)
        query = non_empty(kind=kind, name=name, namespace=namespace, gracePeriodSeconds=grace)
        deleted: Nothing = self._perform(ObjectCall("DELETE", query, result=lambda _: None))
        return deleted

    def wait_for(
        self, kind: str, name: str, goal: Goal, namespace: str = "", timeout: float = 10.0
    ) -> One:
        """Watch an object until it reaches a state, and return it.

        ``goal`` is a condition (``Ready``, ``condition=Ready=False``, ``create``, ``delete``,
        ``jsonpath={.status.phase}=Running``) or a function of the object. ``timeout`` is in
        seconds. Raises WaitTimeoutError with the object's last state, StatusError, ValueError.
        """
        wait = ObjectWait(goal, f"{kind} {name}")
        reached: One = self._wait(watch_call(kind, name, namespace), wait, timeout)
        return reached


def _needs_others(document: Document) -> bool:
    """Return whether an object may need a definition or a namespace."""
    return document.get("kind") not in _APPLIED_FIRST
