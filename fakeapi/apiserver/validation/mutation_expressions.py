"""Validation of the mutations of MutatingAdmissionPolicies.

Source: validateMutation in pkg/apis/admissionregistration/validation/validation.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from extender.cel.cel_types import CelType, list_of
from extender.cel.patch_types import (
    JSON_PATCH,
    OBJECT,
    PATCH_TYPES,
)
from fakeapi.apiserver.schema.cel.admission_variables import EXPRESSION_FIELDS
from fakeapi.apiserver.validation.admission_expressions import expression_causes
from fakeapi.apiserver.validation.policy_expressions import PolicyVariables
from fakeapi.apiserver.wire.errors import Cause, invalid_value, required, unsupported_value

Object = Mapping[str, Any]

_RESULTS: Final[Mapping[str, CelType]] = {
    "ApplyConfiguration": OBJECT,
    "JSONPatch": list_of(JSON_PATCH),
}


def mutation_errors(spec: Object) -> Iterator[Cause]:
    """Yield the errors of all expressions of a policy, and of its mutations."""
    declared = PolicyVariables(spec)
    yield from declared.errors(spec)
    variables = {**declared.in_expressions, **PATCH_TYPES}
    mutations: Sequence[Object] = spec.get("mutations") or ()
    if not mutations:
        yield required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(mutations):
        yield from _mutation_errors(mutation, variables, f"spec.mutations[{index}]")


def _mutation_errors(
    mutation: Object, variables: Mapping[str, CelType], path: str
) -> Iterator[Cause]:
    patch_type = mutation.get("patchType") or ""
    if not patch_type:
        yield required(f"{path}.patchType")
        return
    if patch_type not in EXPRESSION_FIELDS:
        yield unsupported_value(f"{path}.patchType", patch_type, tuple(EXPRESSION_FIELDS))
        return
    used = EXPRESSION_FIELDS[patch_type]
    if mutation.get(used) is None:
        yield required(f"{path}.{used}", f"must be specified when patchType is {patch_type}")
    else:
        where = f"{path}.{used}.expression"
        source = (mutation[used].get("expression") or "").strip()
        if source:
            yield from expression_causes(source, variables, (_RESULTS[patch_type],), where)
        else:
            yield required(where)
    for other in EXPRESSION_FIELDS.values():
        if other != used and mutation.get(other) is not None:
            detail = f"must not be specified when patchType is {patch_type}"
            yield invalid_value(f"{path}.{other}", f"{{{other}}}", detail)
