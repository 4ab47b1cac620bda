"""The rules of pods, asked of a pod that nobody stores: of a template with a patch in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from fakeapi.api.decoding import MismatchError
from fakeapi.api.defaulting import apply_defaults
from fakeapi.api.reading import read_document
from fakeapi.api.validating import faults_of
from fakeapi.kinds.builtin import PODS

_SPEC: Final = "spec."


def pod_spec_faults(pod: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Return what is wrong in a pod's spec: the field without ``spec.``, the sort, and the rule.

    A pod whose fields have wrong types breaks one rule, of no field in particular.
    """
    document = {"metadata": {}, "spec": {}, **deepcopy(dict(pod))}
    try:
        read_document(PODS, document)
    except MismatchError as error:
        yield "", "Invalid value", f"failed to unmarshal: {error}"
        return
    apply_defaults(PODS, document)
    for cause in faults_of(PODS, document):
        if cause.field.startswith(_SPEC):
            sort = cause.message.partition(":")[0]
            yield cause.field.removeprefix(_SPEC), sort, cause.detail
