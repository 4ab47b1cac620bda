"""Invalid definitions are refused, in upstream's words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Document
from tests.builders.definitions import (
    ANYTHING,
    DEFINITIONS,
    INTEGER,
    NAME,
    SCALE,
    TEXT,
    WIDGETS,
    definition,
    record,
    version,
    widget,
)
from tests.fakeapi.api_requests import Ask, Define

SCHEMA = "spec.validation.openAPIV3Schema"
SPEC = f"{SCHEMA}.properties[spec]"


def of_schema(schema: Document) -> Document:
    return definition(versions=[version(schema=schema)])


def of_spec(**fields: Document) -> Document:
    return definition(spec=fields)


_APPROVAL = "api-approved.kubernetes.io"


def approved(by: str) -> Document:
    document = definition("apps.k8s.io/v1")
    document["metadata"]["annotations"] = {_APPROVAL: by}
    return document


def listed(kind: str, items: Document, **more: Any) -> Document:
    return {"type": "array", "x-kubernetes-list-type": kind, "items": items, **more}


def webhook(**config: Any) -> Document:
    hook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    return definition(conversion={"strategy": "Webhook", "webhook": hook})


NAMED_ITEMS = record(name=TEXT)
WHOLE_SPEC = [{"jsonPath": ".spec"}]
TEXT_COLUMN = {"name": "A", "type": "text", "jsonPath": ".spec.a"}

REFUSED: dict[str, tuple[Document, str, str]] = {
    "another name": (
        definition(names={"plural": "gadgets"}),
        "metadata.name",
        f'Invalid value: "{NAME}": must be spec.names.plural+"."+spec.group',
    ),
    "a group without a dot": (
        definition(group="example"),
        "spec.group",
        'Invalid value: "example": should be a domain with at least one dot',
    ),
    "a scope of its own": (
        definition(scope="Galaxy"),
        "spec.scope",
        'Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
    ),
    "a kind that is its list's": (
        definition(names={"listKind": "Widget"}),
        "spec.names.listKind",
        'Invalid value: "Widget": kind and listKind may not be the same',
    ),
    "a short name in capitals": (
        definition(names={"shortNames": ["WD"]}),
        "spec.names.shortNames[0]",
        (
            'Invalid value: "WD": a DNS-1035 label must consist of lower case alphanumeric '
            "characters or '-', start with an alphabetic character, and end with an alphanumeric "
            "character (e.g. "
            "'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
        ),
    ),
    "no storage version": (
        definition(versions=[version(storage=False)]),
        "spec.versions",
        (
            'Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,'
            '"DeprecationWarning":null,"Schema":null,"Subresources":null,'
            '"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one '
            "version marked as storage version"
        ),
    ),
    "no schema": (
        definition(versions=[{"name": "v1", "served": True, "storage": True}]),
        "spec.versions[0].schema.openAPIV3Schema",
        "Required value",
    ),
    "a protected group": (
        definition("apps.k8s.io/v1"),
        "metadata.annotations[api-approved.kubernetes.io]",
        (
            "Required value: protected groups must have approval annotation "
            '"api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
        ),
    ),
    "an approval that is no URL": (
        approved("https://[::1"),
        f"metadata.annotations[{_APPROVAL}]",
        (
            'Invalid value: "https://[::1": protected groups must have approval annotation '
            f'"{_APPROVAL}" with either a URL or a reason starting with "unapproved", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        ),
    ),
    "a field without a type": (
        of_spec(size={"minimum": 1}),
        f"{SPEC}.properties[size].type",
        "Required value: must not be empty for specified object fields",
    ),
    "a root without a type": (
        of_schema({"properties": {}}),
        f"{SCHEMA}.type",
        "Required value: must not be empty at the root",
    ),
    "a list without elements": (
        of_spec(sizes={"type": "array"}),
        f"{SPEC}.properties[sizes].items",
        "Required value: must be specified",
    ),
    "a type inside a quantifier": (
        of_spec(size={**INTEGER, "anyOf": [{"type": "integer"}]}),
        f"{SPEC}.properties[size].anyOf[0].type",
        "Forbidden: must be empty to be structural",
    ),
    "a field that only a quantifier knows": (
        of_schema(record(a=TEXT) | {"oneOf": [{"properties": {"b": {}}}]}),
        f"{SCHEMA}.properties[b]",
        f"Required value: because it is defined in {SCHEMA}.oneOf[0].properties[b]",
    ),
    "a pattern that is none": (
        of_spec(name={**TEXT, "pattern": "("}),
        f"{SPEC}.properties[name].pattern",
        (
            'Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing '
            "regexp: missing closing ): `(`"
        ),
    ),
    "metadata with labels": (
        of_schema(record(metadata=record(labels=ANYTHING))),
        f"{SCHEMA}.properties[metadata]",
        (
            "Forbidden: must not specify anything other than name and generateName, but metadata "
            "is implicitly specified"
        ),
    ),
    "an unknown type": (
        of_spec(size={"type": "int"}),
        f"{SPEC}.properties[size].type",
        (
            'Unsupported value: "int": supported values: "array", "boolean", "integer", "number", '
            '"object", "string"'
        ),
    ),
    "unique items": (
        of_spec(sizes={"type": "array", "items": INTEGER, "uniqueItems": True}),
        f"{SPEC}.properties[sizes].uniqueItems",
        (
            "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes "
            "quadratic"
        ),
    ),
    "fields and any fields": (
        of_schema(record(spec=record(a=TEXT) | {"additionalProperties": TEXT})),
        f"{SPEC}.additionalProperties",
        "Forbidden: additionalProperties and properties are mutual exclusive",
    ),
    "a map without keys": (
        of_spec(ports=listed("map", NAMED_ITEMS)),
        f"{SPEC}.properties[ports].x-kubernetes-list-map-keys",
        "Required value: must not be empty if x-kubernetes-list-type is map",
    ),
    "a key that may be missing": (
        of_spec(ports=listed("map", NAMED_ITEMS, **{"x-kubernetes-list-map-keys": ["name"]})),
        f"{SPEC}.properties[ports].items.properties[name].default",
        (
            "Required value: this property is in x-kubernetes-list-map-keys, so it must have a "
            "default or be a required property"
        ),
    ),
    "a set of objects": (
        of_spec(ports=listed("set", NAMED_ITEMS)),
        f"{SPEC}.properties[ports].items.x-kubernetes-map-type",
        "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
    ),
    "a default of another type": (
        of_spec(size={**INTEGER, "default": "x"}),
        f"{SPEC}.properties[size].default",
        'Invalid value: "string":  in body must be of type integer: "string"',
    ),
    "a default with unknown fields": (
        of_spec(inner={**record(a=TEXT), "default": {"b": "x"}}),
        f"{SPEC}.properties[inner].default",
        'Invalid value: {"b":"x"}: must not have unknown fields',
    ),
    "a column of an unknown type": (
        definition(versions=[version(additionalPrinterColumns=[TEXT_COLUMN])]),
        "spec.additionalPrinterColumns[0].type",
        'Invalid value: "text": must be one of boolean,date,integer,number,string',
    ),
    "a scale outside the spec": (
        definition(subresources={"scale": {**SCALE, "specReplicasPath": ".size"}}),
        "spec.subresources.scale.specReplicasPath",
        'Invalid value: ".size": should be a json path under .spec',
    ),
    "a field to select by that is an object": (
        definition(versions=[version("v1", record(spec=NAMED_ITEMS), selectableFields=WHOLE_SPEC)]),
        "spec.selectableFields[0].jsonPath",
        (
            'Invalid value: ".spec": must point to a field of type string, boolean or integer. '
            "Enum string fields and strings with formats are allowed."
        ),
    ),
    "a webhook without an address": (
        webhook(),
        "spec.conversion.webhookClientConfig",
        "Required value: exactly one of url or service is required",
    ),
    "a webhook over http": (
        webhook(url="http://localhost/convert"),
        "spec.conversion.webhookClientConfig.url",
        (
            "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: "
            "https://host[/path]"
        ),
    ),
}


@pytest.mark.parametrize(("made", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_definition_is_refused(
    ask: Ask, made: Document, field: str, message: str
) -> None:
    status, answer = ask("POST", DEFINITIONS, made)
    assert status == 422, answer
    causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert field in causes
    assert message in causes[field]


def test_an_error_of_a_shared_schema_is_reported_once(ask: Ask) -> None:
    schema = record(spec=record(size={"minimum": 1}))
    made = definition(versions=[version(schema=schema), version("v2", schema=schema)])
    _, answer = ask("POST", DEFINITIONS, made)
    [cause] = answer["details"]["causes"]
    assert cause["field"] == f"{SPEC}.properties[size].type"


def test_an_error_of_one_versions_schema_is_reported_with_the_version(ask: Ask) -> None:
    wrong = record(spec=record(size={"minimum": 1}))
    _, answer = ask("POST", DEFINITIONS, definition(versions=[version(), version("v2", wrong)]))
    [cause] = answer["details"]["causes"]
    path = "spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[size].type"
    assert cause["field"] == path


def test_unknown_fields_of_schemas_are_reported(ask: Ask) -> None:
    made = of_spec(sizes={"type": "array", "items": {**INTEGER, "minimun": 1}})
    status, answer = ask("POST", DEFINITIONS, made, fieldValidation="Strict")
    assert status == 400
    path = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.sizes.items.minimun"
    assert f'unknown field "{path}"' in answer["message"]


def test_a_storage_version_needs_a_name(ask: Ask) -> None:
    made = definition(versions=[version("", storage=True)])
    del made["spec"]["versions"][0]["name"]
    status, answer = ask("POST", DEFINITIONS, made)
    assert status == 422
    assert "spec.versions[0].name" in {cause["field"] for cause in answer["details"]["causes"]}


def test_a_rule_with_an_invalid_field_path_is_refused_in_a_schema_with_a_default(ask: Ask) -> None:
    rules = [{"rule": "true", "fieldPath": " "}]
    made = of_spec(size={**INTEGER, "default": 3, "x-kubernetes-validations": rules})
    status, answer = ask("POST", DEFINITIONS, made)
    assert status == 422
    assert "must be a valid path" in answer["message"]


@pytest.mark.parametrize("field", ["apiVersion", "kind"])
def test_a_type_that_is_no_text_is_refused(ask: Ask, define: Define, field: str) -> None:
    define()
    status, answer = ask("POST", WIDGETS, {**widget(), field: {"a": 1}})
    assert status == 400
    assert f"cannot unmarshal object into Go struct field .{field}" in answer["message"]


@pytest.mark.parametrize("items", [3, "x"])
def test_an_invalid_schema_is_refused(ask: Ask, items: Any) -> None:
    status, _ = ask("POST", DEFINITIONS, of_spec(sizes={"type": "array", "items": items}))
    assert status == 400


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Cluster"}, "spec.scope"),
        ({"group": "other.com"}, "spec.group"),
        ({"names": {"plural": "gadgets", "kind": "Widget"}}, "spec.names.plural"),
        ({"names": {"plural": "widgets", "kind": "Gadget"}}, "spec.names.kind"),
    ],
)
def test_group_scope_and_names_are_immutable(
    ask: Ask, define: Define, change: Document, field: str
) -> None:
    made = define()
    made["spec"] |= change
    status, answer = ask("PUT", f"{DEFINITIONS}/{NAME}", made)
    assert status == 422
    causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert causes[field].endswith("field is immutable")


def test_a_stored_version_cannot_be_removed(ask: Ask, define: Define) -> None:
    define(versions=[version(), version("v2")])
    moved = [version(storage=False), version("v2", storage=True)]
    change = {"spec": {"versions": moved}}
    merge = "application/merge-patch+json"
    _, stored = ask("PATCH", f"{DEFINITIONS}/{NAME}", change, merge)
    assert stored["status"]["storedVersions"] == ["v1", "v2"]
    gone = {"spec": {"versions": [version("v2", storage=True)]}}
    status, answer = ask("PATCH", f"{DEFINITIONS}/{NAME}", gone, merge)
    assert status == 422
    [cause] = answer["details"]["causes"]
    assert cause["field"] == "status.storedVersions[0]"
