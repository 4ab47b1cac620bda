"""Typed decoding of Kubernetes objects, with errors that name the field, and partial values.

A decoder returns a value or raises :class:`ObjectError`, whose text names the object, the field and
the expected value. :func:`tolerant_decoder` turns that error into a value, :class:`Unreadable`, so
that one malformed object in a cluster is reported by name and does not affect others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

import msgspec

from extender.kube.decoders import core_v1_types
from policies.kubernetes.input_error import InputError
from policies.kubernetes.pod_requests import Amounts
from policies.kubernetes.quantity import QuantityError, parse_quantity
from policies.kubernetes.selectors import (
    LabelSelector,
    Requirement,
    SelectorError,
    label_requirement,
)


class DecodedType(Protocol):
    """A decoded type with metadata, which has the object's name."""

    @property
    def metadata(self) -> core_v1_types.ObjectMetaV1:
        """The object's metadata."""
        ...


S = TypeVar("S", bound=DecodedType)
T = TypeVar("T")
Decode = Callable[[bytes], T]

FINISHED = ("Succeeded", "Failed")
"""Phases of a pod that no longer occupies its node."""

_IDENTITY = re.compile(r"^\$\.?")


class ObjectError(InputError, ValueError):
    """An object cannot be decoded; the text names the object, the field and the expected value."""


class FieldError(ValueError):
    """A field cannot be decoded; ``path`` is written as in ``spec.containers[0].resources``."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that could not be decoded, with the part of its identity that could.

    ``node_name`` is the node that a pod still occupies, ``group`` the PodGroup of such a pod or of
    a pending one ("" for none).
    """

    kind: str
    namespace: str
    name: str
    uid: str
    node_name: str | None
    problem: str
    group: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone for a kind without namespaces."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def tolerant_decoder(kind: str, decode: Decode[T]) -> Decode[T | Unreadable]:
    """Return a decoder that returns an Unreadable where ``decode`` raises ObjectError."""

    def read(raw: bytes) -> T | Unreadable:
        try:
            return decode(raw)
        except ObjectError as error:
            return identify_unreadable(kind, raw, str(error))

    return read


def object_decoder(kind: str, shape: type[S], convert: Callable[[S], T]) -> Decode[T]:
    """Return a decoder of a kind: it decodes to ``shape`` and converts. It raises ObjectError."""
    decoder = msgspec.json.Decoder(shape)

    def decode(raw: bytes) -> T:
        return decode_object(kind, decoder, raw, convert)

    decode.__name__ = f"decode_{kind}"  # for profiles and names of tests
    return decode


def decode_object(
    kind: str, decoder: msgspec.json.Decoder[S], raw: bytes, convert: Callable[[S], T]
) -> T:
    """Decode ``raw`` and ``convert`` it. Raise ObjectError, which names the object."""
    return decode_unnamed_object(kind, decoder, raw, lambda shape: convert(_require_name(shape)))


def decode_unnamed_object(
    kind: str, decoder: msgspec.json.Decoder[S], raw: bytes, convert: Callable[[S], T]
) -> T:
    """Decode an object as ``decode_object`` does, but allow one without a name, before creation."""
    try:
        return convert(decoder.decode(raw))
    except msgspec.ValidationError as error:
        problem = with_field_path(str(error))
    except msgspec.DecodeError as error:
        problem = f"not JSON: {error}"
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: {error.reason}"
    except RecursionError:
        problem = "nested too deeply"
    except FieldError as error:
        problem = str(error)
    key = identify_unreadable(kind, raw, problem).key
    raise ObjectError(f"{kind} {key}: {problem}" if key else f"{kind}: {problem}")


def _require_name(shape: S) -> S:
    # Objects are identified by name; one without a name could be confused with any other.
    if not shape.metadata.name:
        raise FieldError("metadata.name", "required")
    return shape


def with_field_path(message: str) -> str:
    """Convert msgspec's "Expected `str`, got `int` - at `$.spec.x`" to "spec.x: expected str…"."""
    problem, _, place = message.partition(" - at ")
    path = _IDENTITY.sub("", place.strip("`")) or "(the object)"
    return f"{path}: {problem[:1].lower()}{problem[1:]}".replace("`", "")


class _AnyObject(msgspec.Struct):
    metadata: object = None
    spec: object = None
    status: object = None


def identify_unreadable(kind: str, raw: bytes, problem: str) -> Unreadable:
    """Return as much of a malformed object's identity as can be decoded."""
    try:
        found = msgspec.json.decode(raw, type=_AnyObject)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _AnyObject()
    namespace, name, uid = (_text(found.metadata, key) for key in ("namespace", "name", "uid"))
    spec = {} if _text(found.status, "phase") in FINISHED else found.spec
    scheduling_group = spec.get("schedulingGroup") if isinstance(spec, dict) else None
    group = _text(scheduling_group, "podGroupName")
    node = _text(spec, "nodeName") or None
    return Unreadable(kind, namespace, name, uid, node, problem, group)


def _text(fields: object, key: str) -> str:
    value = fields.get(key) if isinstance(fields, dict) else None
    return value if isinstance(value, str) else ""


def reported_amounts(path: str, amounts: core_v1_types.ResourceList | None) -> Amounts | None:
    """Decode a resource list of a status, which may be absent."""
    return None if amounts is None else amounts_of(path, amounts)


def amounts_of(path: str, amounts: core_v1_types.ResourceList | None) -> Amounts:
    """Decode a resource list in nanos; ``path`` is its field path. Raise FieldError."""
    if not amounts:
        return {}
    return {name: nanos_of(f"{path}.{name}", amount) for name, amount in amounts.items()}


def nanos_of(path: str, amount: core_v1_types.Quantity | None) -> int:
    """Decode a quantity in nanos; ``path`` is its field path. Raise FieldError."""
    # As Quantity.UnmarshalJSON: null is zero, and surrounding space is ignored.
    try:
        return 0 if amount is None else _parsed(str(amount).strip())
    except QuantityError as error:
        raise FieldError(path, str(error)) from None


_parsed = lru_cache(maxsize=8192)(parse_quantity)


Compile = Callable[[str, str, Sequence[str]], Requirement]


def compile_requirements(
    path: str,
    compile_one: Compile,
    expressions: Iterable[core_v1_types.SelectorRequirementV1] | None,
) -> tuple[Requirement, ...]:
    """Compile selector expressions with ``compile_one``. Raise FieldError."""
    try:
        return tuple(compile_one(e.key, e.operator, e.values or ()) for e in expressions or ())
    except SelectorError as error:
        raise FieldError(path, str(error)) from None


def label_selector_of(
    path: str, selector: core_v1_types.LabelSelectorV1 | None
) -> LabelSelector | None:
    """Compile a label selector; return None for an absent one. Raise FieldError."""
    if selector is None:
        return None
    equal = [
        core_v1_types.SelectorRequirementV1(k, "In", [v])
        for k, v in (selector.matchLabels or {}).items()
    ]
    expressions = (*equal, *(selector.matchExpressions or ()))
    return LabelSelector(compile_requirements(path, label_requirement, expressions))
