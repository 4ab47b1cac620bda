"""The requests of k8s.io/kube-scheduler/extender/v1, decoded as Go does.

Go's structs have no JSON tags, so keys are capitalised Go names, nil pointers and maps are
``null``, and Go's decoder accepts any casing and ignores unknown keys. Embedded pods and nodes are
ordinary Kubernetes JSON and are kept as the received bytes. A call that is encoded exactly as
kube-scheduler does is decoded in one pass.

Source: k8s.io/kube-scheduler/extender/v1/types.go and pkg/scheduler/extender.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec

from extender.kube.decoders.core_v1_types import Name
from extender.protocol.request_size import (
    SMALL_BYTES,
    UNBOUNDED,
    RequestBounds,
    Steps,
    find_excess,
    object_excess,
)
from policies.kubernetes.packed_names import parse_names

T = TypeVar("T")


class ExtenderDecodeError(ValueError):
    """A request body is invalid; the text has the error and what was expected."""


@dataclass(frozen=True, slots=True)
class FilterRequest:
    """A filter request: a pod, and nodes by name or, if not nodeCacheCapable, as objects."""

    pod: bytes
    names: Sequence[str] | None
    nodes: tuple[msgspec.Raw, ...] | None


class CandidateVictims(msgspec.Struct, frozen=True, gc=False):
    """The victims of kube-scheduler on one node: UIDs, and the number of PDB violations."""

    uids: tuple[str, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class PreemptRequest:
    """A preempt request: a pod, and kube-scheduler's own candidates."""

    pod: bytes
    candidates: Mapping[str, CandidateVictims]


def decode_filter(body: bytes, bounds: RequestBounds = UNBOUNDED) -> Steps[FilterRequest]:
    """Decode ExtenderArgs. Raise ExtenderDecodeError, also for one beyond the bounds."""
    names_size = _bounded_names_size(body, bounds)
    excess = yield from find_excess(body[: len(body) - names_size], bounds.filter_levels())
    if excess:
        raise ExtenderDecodeError(f"ExtenderArgs: {excess}")
    by_name = _decode_by_name(body)
    if by_name is not None:
        _require_few_names(len(by_name.names or ()), bounds)
        return by_name
    fields = _fields(body, "ExtenderArgs")
    yield
    names = _decode_field(fields, "NodeNames", list[Name])
    nodes = _decode_field(fields, "Nodes", _NodeListInput)
    yield
    if names is None and nodes is None:
        raise ExtenderDecodeError(
            "ExtenderArgs: neither Nodes nor NodeNames is set; expected one of them"
        )
    return FilterRequest(
        pod=_pod(fields, "ExtenderArgs"),
        names=None if names is None else tuple(names),
        nodes=None if nodes is None else (yield from _checked_nodes(nodes.items or ())),
    )


def decode_preempt(body: bytes, bounds: RequestBounds = UNBOUNDED) -> Steps[PreemptRequest]:
    """Decode ExtenderPreemptionArgs, with victims as pods or UIDs.

    Raise ExtenderDecodeError, also for one beyond the bounds.
    """
    excess = yield from find_excess(body, bounds.preempt_levels())
    if excess:
        raise ExtenderDecodeError(f"ExtenderPreemptionArgs: {excess}")
    as_sent = _decode_by_uid(body)
    yield
    if as_sent is not None:
        offers = yield from _candidates(as_sent.NodeNameToMetaVictims)
        return PreemptRequest(_bounded_pod(as_sent.Pod), offers)
    fields = _fields(body, "ExtenderPreemptionArgs")
    yield
    meta, full = "NodeNameToMetaVictims", "NodeNameToVictims"
    by_uid = yield from _victims(fields, meta, dict[Name, _MetaVictimsInput | None])
    in_full = yield from _victims(fields, full, dict[Name, _VictimsInput | None])
    if by_uid is None and in_full is None:
        raise ExtenderDecodeError(
            "ExtenderPreemptionArgs: neither NodeNameToVictims nor NodeNameToMetaVictims is set; "
            "expected one of them"
        )
    offers = yield from _candidates({**(in_full or {}), **(by_uid or {})})
    return PreemptRequest(_pod(fields, "ExtenderPreemptionArgs"), offers)


class _FilterArgsByName(msgspec.Struct, forbid_unknown_fields=True):
    """A filter call by name, exactly as kube-scheduler encodes it."""

    Pod: msgspec.Raw
    Nodes: None
    NodeNames: tuple[Name, ...]


_BY_NAME = msgspec.json.Decoder(_FilterArgsByName)
_NAMES_KEY = b'"NodeNames":'


def _decode_by_name(body: bytes) -> FilterRequest | None:
    """Decode a filter call by name in one pass; None if it is encoded otherwise, or invalid."""
    written = _raw_names(body)
    names = None if written is None else parse_names(written)
    if written is not None and names is not None:
        # The names need not be parsed, so the parsed body has an empty list in their place.
        body = body[: -len(written) - 1] + b"[]}"
    try:
        found = _BY_NAME.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    pod = _bounded_pod(found.Pod)
    if pod == _NULL:
        return None
    return FilterRequest(pod, found.NodeNames if names is None else names, None)


def _raw_names(body: bytes) -> memoryview | None:
    """Return the JSON list of names if it is the last field of a body, as in kube-scheduler's.

    No JSON string contains the key with unescaped quotes, so the last occurrence is the key.
    """
    found = body.rfind(_NAMES_KEY)
    begin = found + len(_NAMES_KEY)
    ends_with_names = found >= 0 and body.startswith(b"[", begin) and body.endswith(b"]}")
    return memoryview(body)[begin:-1] if ends_with_names else None


def _bounded_names_size(body: bytes, bounds: RequestBounds) -> int:
    """Return the size of a list of names at the end of a body, which need not be counted again.

    Those of a small body are counted once they are decoded.
    """
    written = _raw_names(body) if len(body) > SMALL_BYTES else None
    if written is None:
        return 0
    _require_few_names(body.count(b",", len(body) - len(written)) + 1, bounds)
    return len(written)


def _require_few_names(count: int, bounds: RequestBounds) -> None:
    if count > bounds.nodes:
        problem = f"too many node names; expected at most {bounds.nodes}"
        raise ExtenderDecodeError(f"ExtenderArgs: {problem}")


# An int64 in Go; kube-scheduler uses it as a count, so it is never negative.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _MetaPodArgs(msgspec.Struct, gc=False):
    UID: Name


class _MetaVictimsArgs(msgspec.Struct, gc=False):
    """The victims of one node by UID, exactly as kube-scheduler encodes them."""

    Pods: tuple[_MetaPodArgs, ...]
    NumPDBViolations: _Count

    def uids(self) -> Iterable[str]:
        return [pod.UID for pod in self.Pods]


class _PreemptArgsByUid(msgspec.Struct, forbid_unknown_fields=True):
    """A preempt call with victims by UID, exactly as kube-scheduler encodes it."""

    Pod: msgspec.Raw
    NodeNameToVictims: None
    NodeNameToMetaVictims: dict[Name, _MetaVictimsArgs]


_BY_UID = msgspec.json.Decoder(_PreemptArgsByUid)


def _decode_by_uid(body: bytes) -> _PreemptArgsByUid | None:
    """Decode victims by UID in one pass; None if they are encoded otherwise, or invalid."""
    try:
        found = _BY_UID.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if bytes(found.Pod) == _NULL else found


class _NodeListInput(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _MetaPodInput(msgspec.Struct):
    UID: Name | msgspec.UnsetType | None = msgspec.UNSET


class _MetaVictimsInput(msgspec.Struct):
    Pods: list[_MetaPodInput | None] | msgspec.UnsetType | None = msgspec.UNSET
    NumPDBViolations: _Count | msgspec.UnsetType | None = msgspec.UNSET

    def uids(self) -> Iterable[str]:
        return ((pod and pod.UID) or _NO_UID for pod in self.Pods or ())

    def has_other_casing(self) -> bool:
        # Go always encodes every key, so a missing one suggests another casing.
        return msgspec.UNSET in (self.Pods, self.NumPDBViolations) or any(
            pod is not None and pod.UID is msgspec.UNSET for pod in self.Pods or ()
        )


class _VictimMeta(msgspec.Struct):
    uid: Name | None = None


class _VictimPod(msgspec.Struct):
    metadata: _VictimMeta | None = None


class _VictimsInput(msgspec.Struct):
    Pods: list[_VictimPod | None] | msgspec.UnsetType | None = msgspec.UNSET
    NumPDBViolations: _Count | msgspec.UnsetType | None = msgspec.UNSET

    def uids(self) -> Iterable[str]:
        return ((pod and pod.metadata and pod.metadata.uid) or _NO_UID for pod in self.Pods or ())

    def has_other_casing(self) -> bool:
        return msgspec.UNSET in (self.Pods, self.NumPDBViolations)


O = TypeVar("O", _MetaVictimsInput, _VictimsInput)  # noqa: E741

_STEP_BYTES = 2**20
_OFFERS_PER_STEP = 1_000
# A null victim keeps its position, so that the other victims do not count as the complete list.
_NO_UID = ""
_RAW_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NULL = b"null"
_GO_KEYS = {name.lower(): name for name in ("Pods", "NumPDBViolations", "UID")}


def _fields(body: bytes, what: str) -> dict[str, msgspec.Raw]:
    """Split a JSON object into its fields by lower-case key, without those that are null."""
    try:
        raw = _RAW_FIELDS.decode(body)
    except msgspec.ValidationError:
        raise ExtenderDecodeError(f"{what}: expected a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ExtenderDecodeError(f"{what}: not JSON: {error}") from None
    except RecursionError:
        raise ExtenderDecodeError(f"{what}: nested too deeply") from None
    return {name.lower(): value for name, value in raw.items() if bytes(value) != _NULL}


def _pod(fields: Mapping[str, msgspec.Raw], what: str) -> bytes:
    raw = fields.get("pod")
    if raw is None:
        raise ExtenderDecodeError(f"{what}: Pod is missing; expected the pod to schedule")
    return _bounded_pod(raw)


def _bounded_pod(raw: msgspec.Raw) -> bytes:
    pod = bytes(raw)
    excess = object_excess(pod)
    if excess:
        raise ExtenderDecodeError(f"Pod: {excess}")
    return pod


def _checked_nodes(nodes: Iterable[msgspec.Raw]) -> Steps[tuple[msgspec.Raw, ...]]:
    """Return nodes that can be sent back; also their undecoded fields must be UTF-8."""
    sent, checked = tuple(nodes), 0
    for index, node in enumerate(sent):
        raw = bytes(node)
        _decode_or_raise(f"Nodes.items[{index}]", raw.decode)
        excess = object_excess(raw)
        if excess:
            raise ExtenderDecodeError(f"Nodes.items[{index}]: {excess}")
        checked += len(raw)
        if checked > _STEP_BYTES:
            checked = 0
            yield
    return sent


def _decode_field(fields: Mapping[str, msgspec.Raw], name: str, kind: type[T]) -> T | None:
    raw = fields.get(name.lower())
    if raw is None:
        return None
    return _decode_or_raise(name, lambda: msgspec.json.decode(raw, type=kind))


def _decode_or_raise(name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except msgspec.ValidationError as error:
        problem = f"{name}: {error}".replace("`", "").replace(" - at $", " at ")
        raise ExtenderDecodeError(problem) from None
    except UnicodeDecodeError as error:
        raise ExtenderDecodeError(f"{name}: not UTF-8: {error.reason}") from None
    except RecursionError:
        raise ExtenderDecodeError(f"{name}: nested too deeply") from None


def _victims(
    fields: Mapping[str, msgspec.Raw], name: str, kind: type[dict[str, O | None]]
) -> Steps[dict[str, O | None] | None]:
    offers = _decode_field(fields, name, kind)
    if offers is None:
        return None
    for number, offer in enumerate(offers.values()):
        if offer is not None and offer.has_other_casing():
            break
        if number % _OFFERS_PER_STEP == 0:
            yield
    else:
        return offers
    written = fields[name.lower()]
    if len(bytes(written)) > SMALL_BYTES:
        raise ExtenderDecodeError(f"{name}: a field is missing; expected Pods and NumPDBViolations")
    return _decode_or_raise(
        name, lambda: msgspec.convert(_with_go_keys(msgspec.json.decode(written)), kind)
    )


def _candidates(
    offers: Mapping[str, _MetaVictimsArgs | _MetaVictimsInput | _VictimsInput | None],
) -> Steps[dict[str, CandidateVictims]]:
    """Return the candidates of a call, without those that are null."""
    candidates: dict[str, CandidateVictims] = {}
    for number, (node, offer) in enumerate(offers.items()):
        if offer is not None:
            candidates[node] = CandidateVictims(tuple(offer.uids()), offer.NumPDBViolations or 0)
        if number % _OFFERS_PER_STEP == 0:
            yield
    return candidates


def _with_go_keys(victims: dict[str, dict[str, object] | None]) -> object:
    """Return the victims with Go's names for keys of any casing.

    The keys of a pod itself are kept: they are Kubernetes JSON, where ``uid`` is in lower case.
    """
    return {node: offer and _victims_with_go_keys(offer) for node, offer in victims.items()}


def _victims_with_go_keys(offer: dict[str, object]) -> dict[str, object]:
    named = _with_go_names(offer)
    pods = named.get("Pods")
    if isinstance(pods, list):
        named["Pods"] = [_with_go_names(pod) if isinstance(pod, dict) else pod for pod in pods]
    return named


def _with_go_names(value: dict[str, object]) -> dict[str, object]:
    return {_GO_KEYS.get(key.lower(), key): each for key, each in value.items()}
