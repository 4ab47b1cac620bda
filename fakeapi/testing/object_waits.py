"""Waits for the state of one object, as ``kubectl wait --for`` names it, over the lines of a watch.

Ready   condition=Ready=False   jsonpath={.status.phase}=Running   create   delete
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import orjson

from fakeapi.apiserver.printers.json_path import JsonPathError, compile_path
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError

Goal: TypeAlias = str | Callable[[Document], object]
"""A condition, or a function of the object whose result is true in the state waited for."""

_INITIAL_END: Final = "k8s.io/initial-events-end"
_EXPIRED: Final = 410


class WaitTimeoutError(TimeoutError):
    """The object did not reach the state in time; the message has its last state."""


class ObjectWait:
    """Reads the events of one object until it reaches a state; ``last`` is its last state."""

    def __init__(self, goal: Goal, description: str) -> None:
        """Raise ValueError if the condition cannot be parsed."""
        self._reached = _parse(goal) if isinstance(goal, str) else _of_existing(goal)
        self._goal = goal if isinstance(goal, str) else getattr(goal, "__name__", repr(goal))
        self._description = description
        self._exists = False
        self.last: Document = {}

    def feed(self, line: bytes) -> bool:
        """Return whether the object has reached the state; raise StatusError.

        After an expired watch, the next one begins anew.
        """
        event = orjson.loads(line)
        kind, found = event["type"], event["object"]
        if kind == "ERROR":
            if found["code"] != _EXPIRED:
                raise StatusError(found["code"], found["reason"], found["message"])
            return False
        if kind != "BOOKMARK":
            self.last, self._exists = found, kind != "DELETED"
        elif _INITIAL_END not in (found["metadata"].get("annotations") or {}):
            return False
        return self._reached(self.last if self._exists else None)

    def restart(self) -> None:
        """Forget the object before another watch, whose initial events show whether it exists."""
        self._exists = False

    def error(self, seconds: float) -> WaitTimeoutError:
        """Return the error after a timeout."""
        state = "it does not exist"
        if self.last:
            metadata = {k: v for k, v in self.last["metadata"].items() if k != "managedFields"}
            shown = orjson.dumps({**self.last, "metadata": metadata}).decode()
            state = f"its last state{'' if self._exists else ', before it was deleted'}: {shown}"
        return WaitTimeoutError(
            f"{self._description}: not {self._goal} within {seconds:g} s; {state}"
        )


def _parse(text: str) -> Callable[[Document | None], bool]:
    if text in ("create", "delete"):
        return lambda found: (found is None) == (text == "delete")
    kind, separator, rest = text.partition("=")
    if kind == "jsonpath" and separator:
        return _of_existing(_json_path(rest))
    condition, _, status = (rest if kind == "condition" else text).partition("=")
    return _of_existing(partial(_has_condition, condition, status or "True"))


def _json_path(text: str) -> Callable[[Document], bool]:
    path, separator, value = text.rpartition("}=")
    if not separator or not path.startswith("{"):
        raise ValueError(f"jsonpath: expected {{.path}}=value, found {text!r}")
    try:
        find = compile_path(path.removeprefix("{"))
    except JsonPathError as error:
        raise ValueError(f"jsonpath: {error}") from None
    return lambda found: any(_text(each) == value for each in find(found))


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _has_condition(condition: str, status: str, found: Document) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(
        each["type"].lower() == condition.lower() and each["status"].lower() == status.lower()
        for each in conditions
    )


def _of_existing(holds: Callable[[Document], object]) -> Callable[[Document | None], bool]:
    return lambda found: found is not None and bool(holds(found))
