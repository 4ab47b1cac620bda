"""Redaction: removes sensitive values from recorded objects, so that recordings can be shared.

These keys are redacted at any depth (in pods, in pod templates of workloads, in patches inside
custom resources), and also in annotations that hold JSON:

    env                 values are removed, names and ``valueFrom`` kept
    args                removed
    command             the program is kept, its arguments are removed
    httpHeaders         values are removed, names kept
    annotations         ``kubectl.kubernetes.io/last-applied-configuration`` is removed, since it
                        repeats the object
    Secrets             values are removed, keys kept

In custom resources these keys may have other types: maps, lists of ``NAME=value``, one string. The
redacted object is still valid: strings become empty, numbers 0. Schemas, which describe fields of
these names, are kept. Other values are kept as well: ConfigMaps, strings in other annotations,
other fields of custom resources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from extender.recording.format import Document

REDACTED_FIELDS: Final = (
    "environment values",
    "arguments of commands",
    "values of probes' HTTP headers",
    "last-applied configurations",
    "data of Secrets",
)

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SCHEMA: Final = "openAPIV3Schema"


def keep_all(document: Document) -> Document:
    """Return an object unchanged."""
    return document


def redact(document: Document) -> Document:
    """Remove sensitive values from an object in place, and return it."""
    if document.get("kind") == "ConfigMap":  # the keys of its data are chosen by users
        _walk(document.get("metadata"))
        return document
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
        for key, each in value.items():
            if isinstance(each, (dict, list)) and key != _SCHEMA:
                _walk(each)


def _drop_values(parent: Document, key: str) -> None:
    """Empty the values in a list or a map of names and values."""
    values = parent[key]
    if isinstance(values, list):
        parent[key] = [_without_value(each) for each in values]
    elif isinstance(values, dict):
        parent[key] = {name: _emptied_value(each) for name, each in values.items()}


def _without_value(entry: Any) -> Any:
    """Return a variable or a header without its value."""
    if isinstance(entry, str):
        name, equals, _ = entry.partition("=")
        return name + equals
    if isinstance(entry, dict) and "value" in entry:
        return {**entry, "value": _emptied_value(entry["value"])}
    return entry


def _emptied_value(value: Any) -> Any:
    """Return the empty value of the same type; keep references to other objects."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return 0
    return "" if isinstance(value, str) else value


def _drop_arguments(parent: Document, key: str) -> None:
    if isinstance(parent[key], list):
        del parent[key]
    else:
        parent[key] = _emptied_tree(parent[key])


def _emptied_tree(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _emptied_tree(each) for key, each in value.items()}
    return [] if isinstance(value, list) else _emptied_value(value)


def _keep_program(parent: Document, key: str) -> None:
    if isinstance(parent[key], list):
        del parent[key][1:]
    if isinstance(parent[key], str):
        parent[key] = next(iter(parent[key].split()), "")


def _redact_annotations(parent: Document, key: str) -> None:
    annotations = parent[key]
    if not isinstance(annotations, dict):
        return
    if annotations.pop(_LAST_APPLIED, None) is not None and not annotations:
        del parent[key]
    for name, text in annotations.items():
        if isinstance(text, str) and text.lstrip()[:1] in ("{", "["):
            annotations[name] = _redacted_json(text)


def _redacted_json(text: str) -> str:
    """Return JSON without its sensitive values; unchanged if there are none.

    Return "" if the JSON is nested too deeply to be walked or encoded again.
    """
    try:
        value, before = orjson.loads(text), orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    try:
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, dict):
                redact(each)
        return text if value == before else orjson.dumps(value).decode()
    except (RecursionError, orjson.JSONEncodeError):
        return ""


def _empty_values(parent: Document, key: str) -> None:
    if isinstance(parent.get(key), dict):
        parent[key] = dict.fromkeys(parent[key], "")


_SENSITIVE: Final[dict[str, Callable[[Document, str], None]]] = {
    "env": _drop_values,
    "args": _drop_arguments,
    "command": _keep_program,
    "httpHeaders": _drop_values,
    "annotations": _redact_annotations,
}
