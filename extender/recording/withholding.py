"""What a recording leaves out of objects, so that it can be handed on.

Keys of the following meanings are looked for wherever they stand (in pods, in the templates of
workloads, in patches inside custom resources):

    env                 values go, names and ``valueFrom`` stay
    args                go
    command             the program stays, its arguments go
    httpHeaders         values go, names stay
    annotations         ``kubectl.kubernetes.io/last-applied-configuration`` goes, which repeats all
    Secrets             values go, keys stay

What is left is still a valid object. Values elsewhere are kept: ConfigMaps, other annotations,
other fields of custom resources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

Document: TypeAlias = dict[str, Any]
"""One API object as parsed JSON, whose shape is its maker's."""

LEFT_OUT: Final = (
    "environment values",
    "arguments of commands",
    "values of probes' HTTP headers",
    "last-applied configurations",
    "data of Secrets",
)

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def keep_all(document: Document) -> Document:
    """Give an object as it is."""
    return document


def withhold(document: Document) -> Document:
    """Take what is sensitive out of an object, in place, and give it."""
    _walk(document)
    if document.get("kind") == "Secret" and document.get("apiVersion") == "v1":
        _empty_values(document, "data")
        document.pop("stringData", None)
    return document


def _walk(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _walk(each)
    elif isinstance(value, dict):
        for key in _SENSITIVE.keys() & value.keys():
            _SENSITIVE[key](value, key)
        for each in value.values():
            if isinstance(each, (dict, list)):
                _walk(each)


def _drop_values(parent: Document, key: str) -> None:
    """Empty the values of a list of names and values."""
    for each in parent[key] if isinstance(parent[key], list) else ():
        if isinstance(each, dict) and "value" in each:
            each["value"] = ""


def _drop_arguments(parent: Document, key: str) -> None:
    if isinstance(parent[key], list):
        del parent[key]


def _keep_program(parent: Document, key: str) -> None:
    if isinstance(parent[key], list):
        del parent[key][1:]


def _drop_last_applied(parent: Document, key: str) -> None:
    marks = parent[key]
    if isinstance(marks, dict) and marks.pop(_LAST_APPLIED, None) is not None and not marks:
        del parent[key]


def _empty_values(parent: Document, key: str) -> None:
    if isinstance(parent.get(key), dict):
        parent[key] = dict.fromkeys(parent[key], "")


_SENSITIVE: Final[dict[str, Callable[[Document, str], None]]] = {
    "env": _drop_values,
    "args": _drop_arguments,
    "command": _keep_program,
    "httpHeaders": _drop_values,
    "annotations": _drop_last_applied,
}
