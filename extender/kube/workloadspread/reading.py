"""Fields that several of these objects have: owners, node selector terms, tolerations."""

from __future__ import annotations

from collections.abc import Iterable

from extender.kube.shapes import (
    NodeSelectorTermV1,
    OwnerReferenceV1,
    SelectorRequirementV1,
    TolerationV1,
)
from policies.selectors import Toleration
from policies.spreading import model
from policies.spreading.references import WorkloadReference


def uid_or_placeholder(uid: str | None, kind: str, name: str) -> str:
    """Return an object's UID; kind and name replace it for an object from a file."""
    return uid or f"{kind}/{name}"


def owner_of(shape: OwnerReferenceV1) -> WorkloadReference:
    """Convert an owner reference."""
    uid = uid_or_placeholder(shape.uid, shape.kind, shape.name)
    return WorkloadReference(shape.apiVersion, shape.kind, shape.name, uid)


def controller_of(owners: Iterable[OwnerReferenceV1] | None) -> WorkloadReference | None:
    """Return the controller of an object, or None."""
    return next((owner_of(each) for each in owners or () if each.controller), None)


def expression_of(shape: SelectorRequirementV1) -> model.Expression:
    """Convert a selector expression without validation."""
    return model.Expression(shape.key, shape.operator, tuple(shape.values or ()))


def term_of(shape: NodeSelectorTermV1) -> model.NodeTerm:
    """Convert a node selector term without validation."""
    return model.NodeTerm(
        expressions=tuple(map(expression_of, shape.matchExpressions or ())),
        fields=tuple(map(expression_of, shape.matchFields or ())),
    )


def toleration_of(shape: TolerationV1) -> Toleration:
    """Convert a toleration."""
    return Toleration(shape.key or "", shape.operator or "", shape.value or "", shape.effect or "")


def without_empty(value: object) -> object:
    """Return JSON without null, "", [] and {}, which Go's decoder does not distinguish."""
    if isinstance(value, dict):
        below = {key: without_empty(each) for key, each in value.items()}
        return {key: each for key, each in below.items() if not _is_empty(each)}
    if isinstance(value, list):
        return [without_empty(each) for each in value]
    return value


def _is_empty(value: object) -> bool:
    return value is None or value in ("", {}, [])
