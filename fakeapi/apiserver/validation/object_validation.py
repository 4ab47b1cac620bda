"""Validation of objects: the rules that clients meet, with upstream's messages.

This is a subset of upstream's rules: required fields, enums, ranges, duplicate names, labels that
no selector can match. Simple rules are data (:mod:`fakeapi.apiserver.kinds.field_limits`); rules on
several fields are functions.

For each kind a field walk is built once from its structural type, so only places with rules are
visited; errors come in the order of the type's fields.

Sources: pkg/apis/*/validation/validation.go, k8s.io/apimachinery/pkg/api/validation, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final

from fakeapi.apiserver.defaulting.field_defaults import apply_defaults
from fakeapi.apiserver.defaulting.field_walk import FieldWalk, build_field_walk
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import PODS
from fakeapi.apiserver.kinds.field_limits import (
    DNS_LABELS,
    RANGES,
    REQUIRED,
    SUPPORTED_VALUES,
    UNIQUE,
)
from fakeapi.apiserver.objects.metadata import check_common_metadata, check_metadata
from fakeapi.apiserver.objects.object_names import object_name_errors
from fakeapi.apiserver.schema.typed_document import read_document
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.validation.field_rules import FIELD_RULES
from fakeapi.apiserver.validation.resource_rules import NAME_RULES, RESOURCE_RULES, STATUS_RULES
from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    invalid,
    invalid_value,
    required,
    unsupported_value,
)
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError
from policies.kubernetes.name_validation import invalid_dns_label

_CONTENT: Final = frozenset(("spec", "template", "webhooks"))

Check = Callable[[Mapping[str, Any], str], Iterator[Cause]]


def validate_object(kind: ResourceInfo, document: Document, changes: Iterable[Cause] = ()) -> None:
    """Validate an object before it is stored; raise StatusError (422) with all errors.

    ``changes`` are further errors: those of the change from the object that it replaces.
    """
    causes = [*object_errors(kind, document), *changes]
    if causes:
        raise invalid(kind.qualified_kind, document["metadata"].get("name", ""), causes)


def validate_subresource(kind: ResourceInfo, document: Document, old: Mapping[str, Any]) -> None:
    """Validate the metadata and the status that an update of a subresource stores.

    Raise StatusError (422) with all errors.
    """
    rule = STATUS_RULES.get(kind.resource)
    causes = [*check_common_metadata(document["metadata"], "metadata")]
    causes += rule(document, old) if rule is not None else ()
    if causes:
        raise invalid(kind.qualified_kind, document["metadata"].get("name", ""), causes)


def object_errors(kind: ResourceInfo, document: Document) -> Iterator[Cause]:
    """Yield all errors of an object by itself."""
    yield from object_name_errors(kind, document)
    name = NAME_RULES.get(kind.resource)
    if name is not None:
        yield from name(document, "")
    yield from check_metadata(document["metadata"], "metadata")
    for check in RESOURCE_RULES.get(kind.resource, ()):
        yield from check(document, "")
    yield from _walk_errors(_field_walk(kind), document, "")


def _walk_errors(plan: FieldWalk[Check], target: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for check in plan.rules:
        yield from check(target, path)
    for name, below in plan.objects:
        found = target.get(name)
        if isinstance(found, dict):
            yield from _walk_errors(below, found, _join(path, name))
    for name, below in plan.lists:
        for index, element in enumerate(target.get(name) or ()):
            yield from _walk_errors(below, element, f"{_join(path, name)}[{index}]")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _field_walk(kind: ResourceInfo) -> FieldWalk[Check]:
    return build_field_walk(kind, lambda definition: list(_field_checks(definition)), _CONTENT)


def _field_checks(definition: str) -> Iterator[Check]:
    for name in REQUIRED.get(definition, ()):
        yield _required(name)
    for name in DNS_LABELS.get(definition, ()):
        yield _dns_label(name)
    for name, (least, most) in RANGES.get(definition, {}).items():
        yield _range(name, least, most)
    for name, key in UNIQUE.get(definition, {}).items():
        yield _unique(name, key)
    for name, choices in SUPPORTED_VALUES.get(definition, {}).items():
        yield _choice(name, choices)
    yield from FIELD_RULES.get(definition, ())


def _required(name: str) -> Check:
    def check(target: Mapping[str, Any], path: str) -> Iterator[Cause]:
        if not target.get(name):
            yield required(_join(path, name))

    return check


def _dns_label(name: str) -> Check:
    def check(target: Mapping[str, Any], path: str) -> Iterator[Cause]:
        wrong = invalid_dns_label(target[name]) if target.get(name) else ""
        if wrong:
            yield invalid_value(_join(path, name), target[name], wrong)

    return check


def _choice(name: str, choices: tuple[str, ...]) -> Check:
    def check(target: Mapping[str, Any], path: str) -> Iterator[Cause]:
        value = target.get(name)
        if value and value not in choices:
            yield unsupported_value(_join(path, name), value, choices)

    return check


def _range(name: str, least: int | None, most: int | None) -> Check:
    if most is None:
        rule = f"must be greater than or equal to {least}"
    else:
        rule = f"must be between {least} and {most}, inclusive"

    def check(target: Mapping[str, Any], path: str) -> Iterator[Cause]:
        value = target.get(name)
        below = value is not None and least is not None and value < least
        if below or (value is not None and most is not None and value > most):
            yield invalid_value(_join(path, name), value, rule)

    return check


def _unique(name: str, key: str) -> Check:
    def check(target: Mapping[str, Any], path: str) -> Iterator[Cause]:
        seen: set[str] = set()
        for index, element in enumerate(target.get(name) or ()):
            value = element.get(key)
            if value and value in seen:
                yield duplicate(f"{_join(path, name)}[{index}].{key}", value)
            elif value:
                seen.add(value)

    return check


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
