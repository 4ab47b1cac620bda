"""Custom resources are served as built-in ones: verbs, subresources, tables, discovery."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import Document
from tests.builders.definitions import (
    ANYTHING,
    DEFINITIONS,
    GROUP,
    INTEGER,
    NAME,
    SCALE,
    TEXT,
    WIDGETS,
    record,
    version,
    widget,
)
from tests.fakeapi.api_requests import APPLY, TABLE, Ask, Define, OpenWatch, send

STATUS: dict[str, Any] = {"status": {}}
SIZED = record(spec=record(size=INTEGER), status=record(size=INTEGER, selector=TEXT))


def table(api: Api, path: str) -> Any:
    return orjson.loads(send(api, "GET", path, accept=TABLE).body)


def owners(thing: Any) -> dict[str, Any]:
    return {each["manager"]: each["fieldsV1"] for each in thing["metadata"]["managedFields"]}


def test_unknown_fields_are_pruned_and_defaults_set(ask: Ask, define: Define) -> None:
    define(spec={"size": {**INTEGER, "default": 2}, "inner": record(a=TEXT)})
    _, made = ask("POST", WIDGETS, widget(inner={"a": "x", "b": "y"}, other=1))
    assert made["spec"] == {"inner": {"a": "x"}, "size": 2}


def test_strict_requests_report_unknown_fields(ask: Ask, define: Define) -> None:
    define(spec={"size": INTEGER})
    made = widget(size=1, other=1)
    made["metadata"]["lables"] = {}
    status, answer = ask("POST", WIDGETS, made, fieldValidation="Strict")
    assert status == 400
    assert answer["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown '
        'field "metadata.lables", unknown field "spec.other"'
    )


def test_errors_are_reported_with_their_fields(ask: Ask, define: Define) -> None:
    spec = record(size={**INTEGER, "minimum": 1}) | {"required": ["label"]}
    define(versions=[version(schema=record(spec=spec))])
    status, answer = ask("POST", WIDGETS, widget(size=0))
    assert status == 422
    assert answer["message"] == (
        'Widget.example.com "one" is invalid: [spec.size: Invalid value: 0: spec.size in body '
        "should be greater than or equal to 1, spec.label: Required value]"
    )


def test_an_unchanged_error_is_ignored(ask: Ask, define: Define) -> None:
    define(spec={"size": INTEGER, "label": TEXT})
    ask("POST", WIDGETS, widget(size=20, label="a"))
    strict = record(spec=record(size={**INTEGER, "maximum": 10}, label={**TEXT, "maxLength": 1}))
    change = {"spec": {"versions": [version(schema=strict)]}}
    assert ask("PATCH", f"{DEFINITIONS}/{NAME}", change)[0] == 200
    assert ask("PATCH", f"{WIDGETS}/one", {"spec": {"label": "b"}})[0] == 200
    status, answer = ask("PATCH", f"{WIDGETS}/one", {"spec": {"size": 30}})
    assert (status, answer["details"]["causes"][0]["field"]) == (422, "spec.size")


@pytest.mark.parametrize(
    ("subresources", "change", "generation"),
    [
        ({}, {"spec": {"size": 2}}, 2),
        ({}, {"status": {"size": 2}}, 2),
        ({}, {"metadata": {"labels": {"a": "b"}}}, 1),
        (STATUS, {"spec": {"size": 2}}, 2),
        (STATUS, {"status": {"size": 2}}, 1),
    ],
)
def test_the_generation_counts_changes_of_content(
    ask: Ask, define: Define, subresources: Document, change: Document, generation: int
) -> None:
    define(versions=[version(schema=SIZED, subresources=subresources)])
    ask("POST", WIDGETS, widget(size=1))
    _, changed = ask("PATCH", f"{WIDGETS}/one", change)
    assert changed["metadata"]["generation"] == generation


def test_status_is_written_through_its_subresource_only(ask: Ask, define: Define) -> None:
    define(versions=[version(schema=SIZED, subresources=STATUS)])
    _, made = ask("POST", WIDGETS, {**widget(size=1), "status": {"size": 5}})
    assert "status" not in made
    change = {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 7}, "status": {"size": 3}}
    _, changed = ask("PATCH", f"{WIDGETS}/one/status", change)
    assert (changed["spec"], changed["status"]) == ({"size": 1}, {"size": 3})
    assert "labels" not in changed["metadata"]
    status, answer = ask("PATCH", f"{WIDGETS}/one/status", {"status": {"size": "x"}})
    assert status == 422
    assert answer["details"]["causes"] == [
        {
            "reason": "FieldValueTypeInvalid",
            "message": 'Invalid value: "string": size in body must be of type integer: "string"',
            "field": "status.size",
        }
    ]


def test_scale_reads_and_writes_the_paths_of_the_definition(ask: Ask, define: Define) -> None:
    paths = {**SCALE, "labelSelectorPath": ".status.selector"}
    define(versions=[version(schema=SIZED, subresources={**STATUS, "scale": paths})])
    ask("POST", WIDGETS, widget(size=1))
    ask("PATCH", f"{WIDGETS}/one/status", {"status": {"size": 1, "selector": "a=b"}})
    _, scale = ask("GET", f"{WIDGETS}/one/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 1, "selector": "a=b"})
    _, scale = ask("PATCH", f"{WIDGETS}/one/scale", {"spec": {"replicas": 4}})
    assert scale["spec"] == {"replicas": 4}
    assert ask("GET", f"{WIDGETS}/one")[1]["spec"]["size"] == 4


def test_an_object_without_replicas_has_no_scale(ask: Ask, define: Define) -> None:
    define(versions=[version(schema=SIZED, subresources={"scale": SCALE})])
    ask("POST", WIDGETS, widget())
    status, answer = ask("GET", f"{WIDGETS}/one/scale")
    assert status == 500
    assert answer["message"] == (
        'Internal error occurred: the spec replicas field ".spec.size" does not exist'
    )


def test_tables_have_the_columns_of_the_definition(api: Api, ask: Ask, define: Define) -> None:
    ready = '.status.conditions[?(@.type=="Ready")].status'
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": ready, "priority": 1},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    define(versions=[version(additionalPrinterColumns=columns)])
    conditions = {"conditions": [{"type": "Bad"}, {"type": "Ready", "status": "True"}]}
    ask("POST", WIDGETS, {**widget(size=3), "status": conditions})
    ask("POST", WIDGETS, widget("two"))
    shown = table(api, WIDGETS)
    assert [c["name"] for c in shown["columnDefinitions"]] == ["Name", "Size", "Ready", "Since"]
    assert [row["cells"] for row in shown["rows"]] == [
        ["one", 3, "True", "0s"],
        ["two", None, None, "0s"],
    ]


def test_without_columns_a_table_shows_the_age(api: Api, ask: Ask, define: Define) -> None:
    define()
    ask("POST", WIDGETS, widget())
    shown = table(api, f"{WIDGETS}/one")
    assert [c["name"] for c in shown["columnDefinitions"]] == ["Name", "Age"]
    assert shown["rows"][0]["cells"] == ["one", "0s"]


def test_objects_are_selected_by_the_fields_of_the_definition(
    ask: Ask, define: Define, watch: OpenWatch
) -> None:
    fields = [{"jsonPath": ".spec.size"}]
    define(versions=[version(schema=SIZED, selectableFields=fields)])
    for name, size in (("one", 1), ("two", 2)):
        ask("POST", WIDGETS, widget(name, size=size))
    _, found = ask("GET", WIDGETS, fieldSelector="spec.size=2")
    assert [each["metadata"]["name"] for each in found["items"]] == ["two"]
    read = watch(WIDGETS, fieldSelector="spec.size=1")
    ask("PATCH", f"{WIDGETS}/one", {"spec": {"size": 3}})
    assert [event for event, _ in read()] == ["ADDED", "DELETED"]
    status, answer = ask("GET", WIDGETS, fieldSelector="spec.name=x")
    assert (status, answer["message"]) == (400, "field label not supported: spec.name")


def test_items_of_lists_have_kind_and_version(ask: Ask, define: Define) -> None:
    define()
    ask("POST", WIDGETS, widget())
    _, found = ask("GET", WIDGETS)
    assert (found["kind"], found["items"][0]["kind"]) == ("WidgetList", "Widget")
    assert ask("DELETE", WIDGETS)[1]["items"][0]["apiVersion"] == f"{GROUP}/v1"
    assert ask("GET", WIDGETS)[1]["items"] == []


def test_strategic_patches_are_refused(ask: Ask, define: Define) -> None:
    define()
    ask("POST", WIDGETS, widget())
    strategic = "application/strategic-merge-patch+json"
    status, answer = ask("PATCH", f"{WIDGETS}/one", {"spec": {}}, strategic)
    assert status == 415
    assert answer["message"].endswith(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


def test_an_apply_merges_lists_by_the_keys_of_the_schema(ask: Ask, define: Define) -> None:
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": record(name=TEXT, port=INTEGER) | {"required": ["name"]},
    }
    define(spec={"ports": keyed})
    path = f"{WIDGETS}/one"
    ask("PATCH", path, widget(ports=[{"name": "a", "port": 1}]), APPLY, fieldManager="alice")
    ask("PATCH", path, widget(ports=[{"name": "b", "port": 2}]), APPLY, fieldManager="bob")
    _, made = ask("GET", path)
    assert made["spec"]["ports"] == [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    own = owners(made)["bob"]["f:spec"]["f:ports"]
    assert own == {'k:{"name":"b"}': {".": {}, "f:name": {}, "f:port": {}}}
    wrong = widget(ports=[{"name": "a", "port": 3}])
    status, answer = ask("PATCH", path, wrong, APPLY, fieldManager="bob")
    assert (status, answer["details"]["causes"][0]["field"]) == (409, '.spec.ports[name="a"].port')


def test_applying_an_undeclared_field_is_refused(ask: Ask, define: Define) -> None:
    define(spec={"size": INTEGER})
    status, answer = ask("PATCH", f"{WIDGETS}/one", widget(sise=1), APPLY, fieldManager="alice")
    assert status == 500
    assert answer["message"].endswith(".spec.sise: field not declared in schema")


def test_preserved_unknown_fields_are_applied(ask: Ask, define: Define) -> None:
    define(spec={"free": ANYTHING})
    made = widget(free={"a": {"b": 1}})
    status, applied = ask("PATCH", f"{WIDGETS}/one", made, APPLY, fieldManager="alice")
    assert (status, applied["spec"]) == (201, {"free": {"a": {"b": 1}}})


def test_discovery_and_openapi_follow_definitions(ask: Ask, define: Define) -> None:
    before = ask("GET", "/openapi/v3")[1]["paths"]
    define(spec={"size": {**INTEGER, "description": "How large."}}, names={"shortNames": ["w"]})
    _, found = ask("GET", f"/apis/{GROUP}/v1")
    assert [each["name"] for each in found["resources"]] == ["widgets"]
    assert found["resources"][0]["shortNames"] == ["w"]
    index = ask("GET", "/openapi/v3")[1]["paths"]
    assert set(index) - set(before) == {f"apis/{GROUP}/v1"}
    address = index[f"apis/{GROUP}/v1"]["serverRelativeURL"]
    schemas = ask("GET", address.partition("?")[0])[1]["components"]["schemas"]
    shown = schemas["com.example.v1.Widget"]
    assert shown["properties"]["spec"]["properties"]["size"]["description"] == "How large."
    assert shown["x-kubernetes-group-version-kind"] == [
        {"group": GROUP, "version": "v1", "kind": "Widget"}
    ]
    ask("DELETE", f"{DEFINITIONS}/{NAME}")
    assert ask("GET", "/openapi/v3")[1]["paths"] == before


def test_embedded_objects_need_kind_and_version(ask: Ask, define: Define) -> None:
    define(spec={"template": {**ANYTHING, "x-kubernetes-embedded-resource": True}})
    status, answer = ask("POST", WIDGETS, widget(template={"metadata": {"lables": {}}}))
    assert status == 422
    fields = [cause["field"] for cause in answer["details"]["causes"]]
    assert fields == ["spec.template.apiVersion", "spec.template.kind"]
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "lables": {}}, "a": 1}
    _, made = ask("POST", WIDGETS, widget(template=whole))
    assert made["spec"]["template"] == {**whole, "metadata": {"name": "x"}}


def test_a_cluster_wide_resource_has_no_namespace(ask: Ask, define: Define) -> None:
    define(scope="Cluster")
    assert ask("POST", f"/apis/{GROUP}/v1/widgets", widget())[0] == 201
    assert ask("GET", WIDGETS)[0] == 404


def test_the_spec_may_be_anything_that_the_schema_allows(ask: Ask, define: Define) -> None:
    define(versions=[version(schema=record(spec=TEXT))])
    status, made = ask("POST", WIDGETS, {**widget(), "spec": "text"})
    assert (status, made["spec"]) == (201, "text")


@pytest.mark.parametrize(
    ("header", "status", "message"),
    [
        (
            {"kind": ""},
            400,
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missin",
        ),
        (
            {"apiVersion": "example.com/v9"},
            400,
            (
                "the API version in the data (example.com/v9) does not match the expected API "
                "version (example.com/v1)"
            ),
        ),
        (
            {"apiVersion": "other.com/v1"},
            400,
            (
                "the API version in the data (other.com/v1) does not match the expected API "
                "version (example.com/v1)"
            ),
        ),
        (
            {"apiVersion": "example.com/v2"},
            400,
            (
                "the API version in the data (example.com/v2) does not match the expected API "
                "version (example.com/v1)"
            ),
        ),
        (
            {"kind": "Gadget"},
            422,
            'Gadget.example.com "one" is invalid: kind: Invalid value: "Gadget": must be Widget',
        ),
    ],
)
def test_an_object_of_another_kind_is_refused(
    ask: Ask, define: Define, header: dict[str, Any], status: int, message: str
) -> None:
    define(versions=[version(), version("v2")])
    found, answer = ask("POST", WIDGETS, {**widget(), **header})
    assert found == status
    assert answer["message"].startswith(message)


def test_a_too_deeply_nested_object_is_refused(api: Api, define: Define) -> None:
    define()
    for depth, status in ((230, 201), (246, 400), (260, 400)):
        spec = b'{"a":' * depth + b"1" + b"}" * depth
        body = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one"},"spec":'
        assert send(api, "POST", WIDGETS, body + spec + b"}").status == status
