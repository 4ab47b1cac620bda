"""Conversion between the two versions of a WorkloadSpread: v1beta1, which is stored, and v1alpha1.

    v1alpha1                            v1beta1
    subsets[].requiredNodeSelectorTerm    requiredNodeSelector
    subsets[].preferredNodeSelectorTerms  preferredNodeSelector
    a condition without a reason          reason Unknown
    —                                     a condition's observedGeneration

Documents are JSON. All other fields are the same in both.

Source: openkruise/kruise apis/apps/v1alpha1/workloadspread_conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from policies.workloadspread.object_references import KRUISE

V1ALPHA1: Final = f"{KRUISE}/v1alpha1"
V1BETA1: Final = f"{KRUISE}/v1beta1"

_UNKNOWN: Final = "Unknown"
_SELECTORS: Final = {
    "requiredNodeSelectorTerm": "requiredNodeSelector",
    "preferredNodeSelectorTerms": "preferredNodeSelector",
}
_BACK: Final = {new: old for old, new in _SELECTORS.items()}

Document = Mapping[str, Any]
Change = Callable[[Document], dict[str, Any]]


class UnknownVersionError(ValueError):
    """A version that WorkloadSpread does not have; the text lists the versions."""


def convert(document: Document, version: str) -> dict[str, Any]:
    """Return a WorkloadSpread in ``version``, an apiVersion. Raise UnknownVersionError.

    A document without an apiVersion is v1beta1.
    """
    own = document.get("apiVersion") or V1BETA1
    for each in (own, version):
        if each not in (V1ALPHA1, V1BETA1):
            raise UnknownVersionError(f"apiVersion: {each!r}; expected {V1BETA1} or {V1ALPHA1}")
    if own == version:
        return dict(document)
    if version == V1BETA1:
        return _converted(document, version, _renaming(_SELECTORS), _with_reason)
    return _converted(document, version, _renaming(_BACK), _without_generation)


def _converted(
    document: Document, version: str, subset: Change, condition: Change
) -> dict[str, Any]:
    converted = {**document, "apiVersion": version}
    spec, status = document.get("spec"), document.get("status")
    if isinstance(spec, dict):
        converted["spec"] = _each(spec, "subsets", subset)
    if isinstance(status, dict):
        converted["status"] = _status(status, condition)
    return converted


def _status(status: Document, condition: Change) -> dict[str, Any]:
    def entry(each: Document) -> dict[str, Any]:
        return _each(each, "conditions", condition)

    converted = _each(status, "subsetStatuses", entry)
    versions = status.get("versionedSubsetStatuses")
    if isinstance(versions, dict):
        converted["versionedSubsetStatuses"] = {
            version: _list(entries, entry) for version, entries in versions.items()
        }
    return converted


def _each(parent: Document, name: str, change: Change) -> dict[str, Any]:
    if name not in parent:
        return dict(parent)
    return {**parent, name: _list(parent[name], change)}


def _list(entries: Any, change: Change) -> Any:
    if not isinstance(entries, list):
        return entries
    return [change(each) if isinstance(each, dict) else each for each in entries]


def _renaming(names: Mapping[str, str]) -> Change:
    return lambda subset: {names.get(key, key): value for key, value in subset.items()}


def _with_reason(condition: Document) -> dict[str, Any]:
    return {**condition, "reason": condition.get("reason") or _UNKNOWN}


def _without_generation(condition: Document) -> dict[str, Any]:
    return {key: value for key, value in condition.items() if key != "observedGeneration"}
