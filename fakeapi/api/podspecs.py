"""Validation of a pod that is not stored, such as a template with a patch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from fakeapi.api.decoding import StructDecodeError
from fakeapi.api.defaulting import apply_defaults
from fakeapi.api.reading import read_document
from fakeapi.api.validating import object_errors
from fakeapi.kinds.builtin import PODS

_SPEC: Final = "spec."


def pod_spec_errors(pod: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the errors of a pod's spec: the field without ``spec.``, the type, and the rule.

    A pod whose fields have wrong types yields one error, without a field.
    """
    document = {"metadata": {}, "spec": {}, **deepcopy(dict(pod))}
    try:
        read_document(PODS, document)
    except StructDecodeError as error:
        yield "", "Invalid value", f"failed to unmarshal: {error}"
        return
    apply_defaults(PODS, document)
    for cause in object_errors(PODS, document):
        if cause.field.startswith(_SPEC):
            sort = cause.message.partition(":")[0]
            yield cause.field.removeprefix(_SPEC), sort, cause.detail
