"""Validation of the expressions of admission policies, and of webhooks' match conditions.

Source: k8s.io/apiserver/pkg/admission/plugin/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from extender.cel.cel_types import BOOL, CelType, runtime_name
from extender.cel.type_checker import CheckedExpression, check_expression
from fakeapi.apiserver.schema.cel.admission_variables import AUTHORIZER_VARIABLES, VARIABLES
from fakeapi.apiserver.wire.errors import Cause, invalid_value

Variables = Mapping[str, CelType]

_CONDITION_VARIABLES: Final = {**VARIABLES, **AUTHORIZER_VARIABLES}


def condition_causes(source: str, path: str) -> Iterator[Cause]:
    """Yield the error of a match condition of a webhook."""
    return expression_causes(source, _CONDITION_VARIABLES, (BOOL,), path)


def expression_causes(
    source: str, variables: Variables, types: Sequence[CelType], path: str
) -> Iterator[Cause]:
    """Yield the error of an expression that must have one of ``types``; (): any type."""
    checked = check_expression(source, variables)
    if isinstance(checked, CheckedExpression):
        if not types or checked.result in types:
            return
        names = " ".join(map(runtime_name, types))
        wanted = names if len(types) == 1 else f"one of [{names}]"
        checked = f"must evaluate to {wanted} but got {runtime_name(checked.result)}"
    yield invalid_value(path, source, checked)
