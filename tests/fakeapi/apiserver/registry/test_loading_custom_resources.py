"""Custom resources that are loaded: defaulted and validated as created ones are."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations
from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api, StatusError
from tests.builders import manifest
from tests.builders.definitions import INTEGER, TEXT, WIDGETS, definition, record, version, widget
from tests.fakeapi.api_requests import Ask

SIZE = {**INTEGER, "minimum": 1, "default": 3}
COLOR = {**TEXT, "enum": ["blue", "red"]}
SCHEMA = record(spec=record(size=SIZE, color=COLOR), status=record(ready=INTEGER))
DEFINITION = definition(versions=[version(schema=SCHEMA, subresources={"status": {}})])
NO_KIND = "no kind 'Widget' in version 'example.com/v1' is served here"


def loaded(kind: str = "Widget", name: str = "one", **spec: Any) -> dict[str, Any]:
    """Build an object as a file has it, with a kind."""
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_a_loaded_object_has_the_defaults_of_its_definition(api: Api, ask: Ask) -> None:
    api.load([deepcopy(DEFINITION), loaded(color="red")])
    ask("POST", WIDGETS, widget("created", color="red"))
    specs = [each["spec"] for each in ask("GET", WIDGETS)[1]["items"]]
    assert specs == [{"color": "red", "size": 3}] * 2
    [stored] = [e.entry for e in api.store.history() if e.entry.key == "default/one"]
    assert stored.document()["spec"] == {"color": "red", "size": 3}


def test_unknown_fields_are_pruned_and_the_status_is_kept(api: Api, ask: Ask) -> None:
    document = {**loaded(size=2, shape="round"), "status": {"ready": 1}}
    api.load([deepcopy(DEFINITION), document])
    stored = ask("GET", f"{WIDGETS}/one")[1]
    assert (stored["spec"], stored["status"]) == ({"size": 2}, {"ready": 1})


ONE = "document 1: Widget default/one: "
PROBLEMS = {
    "a value out of range": (
        [loaded(size=0)],
        [f"{ONE}spec.size: Invalid value: 0: spec.size in body should be greater than or equal"],
    ),
    "two fields of one object": (
        [loaded(size="big", color="green")],
        [
            f'{ONE}spec.color: Unsupported value: "green": supported values: "blue", "red"',
            f'{ONE}spec.size: Invalid value: "string": spec.size in body must be of type integer',
        ],
    ),
    "metadata of a wrong type": (
        [{**loaded(), "metadata": {"name": "one", "labels": {"a": 1}}}],
        ['document 1: Widget one: Widget in version "v1" cannot be handled as a Widget: json: '],
    ),
    "objects of several kinds": (
        [loaded(size=0), manifest("Node", "n"), loaded("Gadget")],
        [
            f"{ONE}spec.size: Invalid value: 0: ",
            "document 3: Gadget one: no kind 'Gadget' in version 'example.com/v1' is served here; ",
        ],
    ),
}


@pytest.mark.parametrize(("documents", "lines"), PROBLEMS.values(), ids=PROBLEMS)
def test_each_problem_is_one_line_and_nothing_is_loaded(
    api: Api, documents: list[Any], lines: list[str]
) -> None:
    before = api.store.version
    with pytest.raises(StatusError) as raised:
        api.load([deepcopy(DEFINITION), *deepcopy(documents)])
    found = str(raised.value).splitlines()
    assert len(found) == len(lines)
    assert all(map(str.startswith, sorted(found), lines)), found
    assert api.store.version == before


def test_an_object_of_an_unknown_kind_is_refused(api: Api) -> None:
    with pytest.raises(StatusError, match=NO_KIND):
        api.load([loaded()])


@pytest.mark.parametrize(
    "order",
    list(permutations((DEFINITION, manifest("Namespace", "team"), loaded()))),
    ids=lambda order: "-".join(each["kind"] for each in order),
)
def test_the_order_of_a_load_does_not_matter(api: Api, ask: Ask, order: Any) -> None:
    before = api.store.version
    assert api.load(deepcopy(list(order))) == 3
    assert ask("GET", f"{WIDGETS}/one")[1]["spec"] == {"size": 3}
    added = [e.entry.kind.kind for e in api.store.history() if e.version > before]
    assert added.index("Widget") > added.index("Namespace")
    assert added.index("Widget") > added.index("CustomResourceDefinition")


def test_an_object_in_another_version_has_the_defaults_of_its_version(api: Api, ask: Ask) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "default": {"a": 1}}}}
    schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True  # type: ignore[index]
    both = definition(versions=[version("v1"), version("v2", schema)])
    document = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "one"}}
    api.load([both, document])
    assert ask("GET", f"{WIDGETS}/one")[1]["spec"] == {"a": 1}


def test_recorded_objects_are_stored_as_they_are(api: Api) -> None:
    api.load([deepcopy(DEFINITION)])
    api.put_all([loaded(size=0)])
    [stored] = [e.entry for e in api.store.history() if e.entry.key == "default/one"]
    assert stored.document()["spec"] == {"size": 0}
