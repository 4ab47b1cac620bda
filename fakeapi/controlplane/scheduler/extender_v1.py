"""kube-scheduler's side of the extender protocol: encoded requests and decoded responses.

Go's structs have no JSON tags: keys are capitalised Go names, and nil pointers and maps are encoded
as ``null``. Go's decoder reads the first JSON value and ignores the rest; it accepts any casing,
ignores unknown keys, leaves zero values for ``null``, and rejects a value of another type. Pods and
nodes are ordinary Kubernetes JSON, without kind and apiVersion.

Source: k8s.io/kube-scheduler/extender/v1/types.go, pkg/scheduler/extender.go, encoding/json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import msgspec
import orjson

_TYPE_META: Final = ("kind", "apiVersion")
_KINDS: Final = {dict: "object", list: "array", str: "string", bool: "bool"}
_LEAST, _MOST = -(2**63), 2**63 - 1

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ExtenderResponseError(ValueError):
    """kube-scheduler treats a response as an error; the text is its message."""


class FatalResponseError(ExtenderResponseError):
    """A response on which kube-scheduler dereferences a nil pointer, ignorable or not."""


@dataclass(frozen=True, slots=True)
class DecodedFilterResult:
    """ExtenderFilterResult; ``nodes`` are the names of nodes returned as objects."""

    names: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class DecodedMetaVictims:
    """MetaVictims: UIDs, and the extender's number of PDB violations."""

    uids: tuple[str, ...]
    violations: int


def without_type_meta(raw: bytes) -> orjson.Fragment:
    """Return an object as Go embeds it: without kind and apiVersion."""
    fields = _fields.decode(raw)
    for key in _TYPE_META:
        fields.pop(key, None)
    return orjson.Fragment(msgspec.json.encode(fields))


def encode_filter_args(pod: bytes, names: Sequence[str], nodes: Sequence[bytes] | None) -> bytes:
    """Encode ExtenderArgs: by name, or, with ``nodes``, as whole objects."""
    listed = None
    if nodes is not None:
        listed = {"metadata": {}, "items": [without_type_meta(each) for each in nodes]}
    by_name = None if nodes is not None else list(names)
    return orjson.dumps({"Pod": without_type_meta(pod), "Nodes": listed, "NodeNames": by_name})


def encode_preemption_args(
    pod: bytes, victims: Mapping[str, tuple[Sequence[str], int]], whole: Mapping[str, bytes] | None
) -> bytes:
    """Encode ExtenderPreemptionArgs from UIDs and PDB violations by node (sorted, as Go's maps).

    ``whole`` holds the pods by UID if they are to be sent as objects.
    """
    full = meta = None
    if whole is None:
        meta = {
            node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
            for node, (uids, violations) in sorted(victims.items())
        }
    else:
        full = {
            node: {
                "Pods": [without_type_meta(whole[uid]) for uid in uids],
                "NumPDBViolations": violations,
            }
            for node, (uids, violations) in sorted(victims.items())
        }
    args = {"Pod": without_type_meta(pod), "NodeNameToVictims": full, "NodeNameToMetaVictims": meta}
    return orjson.dumps(args)


def encode_binding_args(namespace: str, name: str, uid: str, node: str) -> bytes:
    """Encode ExtenderBindingArgs."""
    return orjson.dumps({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})


def decode_filter_result(body: bytes) -> DecodedFilterResult:
    """Decode ExtenderFilterResult. Raises ExtenderResponseError."""
    what = "ExtenderFilterResult"
    fields = _struct(_first_value(body), what)
    listed = fields.get("nodes")
    nodes = None if listed is None else _struct(listed, f"{what}.Nodes").get("items", [])
    names = fields.get("nodenames")
    return DecodedFilterResult(
        names=None if names is None else _texts(names, f"{what}.NodeNames"),
        nodes=None if nodes is None else _names_of(nodes, f"{what}.Nodes.items"),
        failed=_text_map(fields.get("failednodes"), f"{what}.FailedNodes"),
        unresolvable=_text_map(
            fields.get("failedandunresolvablenodes"), f"{what}.FailedAndUnresolvableNodes"
        ),
        error=_text(fields.get("error"), f"{what}.Error"),
    )


def decode_preemption_result(body: bytes) -> dict[str, DecodedMetaVictims]:
    """Decode ExtenderPreemptionResult. Raises ExtenderResponseError."""
    what = "ExtenderPreemptionResult.NodeNameToMetaVictims"
    document = _struct(_first_value(body), "ExtenderPreemptionResult").get("nodenametometavictims")
    if document is None:
        return {}
    if not isinstance(document, dict):
        _mismatch(document, what, "map[string]*v1.MetaVictims")
    return {node: _victims(node, value) for node, value in document.items()}


def decode_host_priorities(body: bytes) -> list[tuple[str, int]]:
    """Decode a HostPriorityList. Raises ExtenderResponseError."""
    document = _first_value(body)
    if document is None:
        return []
    if not isinstance(document, list):
        _mismatch(document, "", "v1.HostPriorityList")
    entries = [_struct(each, "HostPriority") for each in document if each is not None]
    return [
        (
            _text(each.get("host"), "HostPriority.Host"),
            _int64(each.get("score"), "HostPriority.Score"),
        )
        for each in entries
    ]


def decode_binding_result(body: bytes) -> str:
    """Decode the error of an ExtenderBindingResult. Raises ExtenderResponseError."""
    what = "ExtenderBindingResult"
    return _text(_struct(_first_value(body), what).get("error"), f"{what}.Error")


def _victims(node: str, value: Any) -> DecodedMetaVictims:
    if value is None:
        raise FatalResponseError(f"the victims of node {node} are null, and kube-scheduler panics")
    fields = _struct(value, "MetaVictims")
    pods = fields.get("pods", [])
    if not isinstance(pods, list):
        _mismatch(pods, "MetaVictims.Pods", "[]*v1.MetaPod")
    if None in pods:
        raise FatalResponseError(f"a victim on node {node} is null, and kube-scheduler panics")
    uids = tuple(_text(_struct(pod, "MetaPod").get("uid"), "MetaPod.UID") for pod in pods)
    return DecodedMetaVictims(
        uids, _int64(fields.get("numpdbviolations"), "MetaVictims.NumPDBViolations")
    )


def _first_value(body: bytes) -> Any:
    text = body.decode("utf-8", errors="replace").lstrip(" \t\r\n")
    if not text:
        raise ExtenderResponseError("EOF")
    try:
        value, _ = _decoder.raw_decode(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text):
            raise ExtenderResponseError("unexpected EOF") from None
        what = f"invalid character {text[error.pos]!r} looking for beginning of value"
        raise ExtenderResponseError(what) from None
    except RecursionError:
        raise ExtenderResponseError("exceeded max depth") from None
    return value


def _reject_constant(text: str) -> NoReturn:
    raise ExtenderResponseError(
        f"invalid character {text.lstrip('-')[0]!r} looking for beginning of value"
    )


_decoder: Final = json.JSONDecoder(parse_constant=_reject_constant)


def _struct(value: Any, what: str) -> Mapping[str, Any]:
    """Return the fields by lower-case name; null has none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        _mismatch(value, "", f"v1.{what}")
    return {key.lower(): each for key, each in value.items() if each is not None}


def _names_of(nodes: Any, what: str) -> tuple[str, ...]:
    if not isinstance(nodes, list):
        _mismatch(nodes, what, "[]v1.Node")
    metadata = [_struct(_struct(node, "Node").get("metadata"), "ObjectMeta") for node in nodes]
    return tuple(_text(each.get("name"), "ObjectMeta.name") for each in metadata)


def _texts(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        _mismatch(value, what, "[]string")
    return tuple(_text(each, what) for each in value)


def _text_map(value: Any, what: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        _mismatch(value, what, "map[string]string")
    return {key: _text(each, what) for key, each in value.items()}


def _text(value: Any, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        _mismatch(value, what, "string")
    return value


def _int64(value: Any, what: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not _LEAST <= value <= _MOST:
        _mismatch(value, what, "int64")
    return value


def _mismatch(value: Any, what: str, expected: str) -> NoReturn:
    kind = _KINDS.get(type(value), f"number {value}")
    place = f"Go struct field {what}" if what else "Go value"
    raise ExtenderResponseError(f"json: cannot unmarshal {kind} into {place} of type {expected}")
