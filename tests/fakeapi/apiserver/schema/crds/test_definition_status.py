"""The status of definitions: names are accepted or not, and instances are deleted first."""

from __future__ import annotations

from typing import Any

from fakeapi.apiserver.endpoints import Api
from tests.builders.definitions import (
    DEFINITIONS,
    GROUP,
    NAME,
    WIDGETS,
    definition,
    version,
    widget,
)
from tests.fakeapi.api_requests import Ask, Define, OpenWatch


def conditions(made: Any) -> dict[str, str]:
    return {each["type"]: each["reason"] for each in made["status"]["conditions"]}


def is_served(api: Api) -> bool:
    return api.kinds.at(GROUP, "v1", "widgets") is not None


def test_a_definition_is_established_after_the_request(ask: Ask) -> None:
    _, answer = ask("POST", DEFINITIONS, definition())
    assert answer["status"]["conditions"] is None
    _, made = ask("GET", f"{DEFINITIONS}/{NAME}")
    assert conditions(made) == {
        "NamesAccepted": "NoConflicts",
        "Established": "InitialNamesAccepted",
    }
    assert made["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert made["status"]["storedVersions"] == ["v1"]


def test_watchers_see_each_condition_of_a_new_definition(ask: Ask, watch: OpenWatch) -> None:
    read = watch(DEFINITIONS)
    ask("POST", DEFINITIONS, definition())
    assert [
        (event, conditions(made) if made["status"]["conditions"] else {}) for event, made in read()
    ] == [
        ("ADDED", {}),
        ("MODIFIED", {"NamesAccepted": "NoConflicts", "Established": "Installing"}),
        ("MODIFIED", {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}),
    ]


def test_names_of_another_definition_are_not_accepted(ask: Ask, define: Define) -> None:
    define(names={"shortNames": ["w"]})
    rival = define(plural="wizards", names={"plural": "wizards", "shortNames": ["w"]})
    assert conditions(rival) == {"NamesAccepted": "ListKindConflict", "Established": "NotAccepted"}
    assert rival["status"]["acceptedNames"] == {"plural": "wizards", "kind": ""}
    assert ask("GET", f"/apis/{GROUP}/v1/wizards")[0] == 404


def test_names_are_accepted_after_their_definition_is_deleted(ask: Ask, define: Define) -> None:
    define()
    define(plural="wizards", names={"plural": "wizards"})
    ask("DELETE", f"{DEFINITIONS}/{NAME}")
    _, made = ask("GET", f"{DEFINITIONS}/wizards.{GROUP}")
    assert conditions(made)["Established"] == "InitialNamesAccepted"
    assert ask("GET", f"/apis/{GROUP}/v1/wizards")[0] == 200


def test_instances_are_deleted_with_their_definition(
    api: Api, ask: Ask, define: Define, watch: OpenWatch
) -> None:
    define()
    ask("POST", WIDGETS, widget())
    read = watch(WIDGETS)
    assert ask("DELETE", f"{DEFINITIONS}/{NAME}")[0] == 200
    assert [event for event, _ in read()] == ["ADDED", "DELETED"]
    assert ask("GET", f"{DEFINITIONS}/{NAME}")[0] == 404
    assert not is_served(api)


def test_an_instance_with_a_finalizer_delays_the_deletion_of_its_definition(
    ask: Ask, define: Define
) -> None:
    define()
    held = widget()
    held["metadata"]["finalizers"] = [f"{GROUP}/hold"]
    ask("POST", WIDGETS, held)
    ask("DELETE", f"{DEFINITIONS}/{NAME}")
    _, made = ask("GET", f"{DEFINITIONS}/{NAME}")
    assert conditions(made)["Terminating"] == "InstanceDeletionInProgress"
    status, answer = ask("POST", WIDGETS, widget("two"))
    assert status == 403
    reason = "create not allowed while custom resource definition is terminating"
    assert answer["message"] == f'{NAME} "two" is forbidden: {reason}'
    ask("PATCH", f"{WIDGETS}/one", {"metadata": {"finalizers": None}})
    assert ask("GET", f"{DEFINITIONS}/{NAME}")[0] == 404


def test_an_unserved_version_is_not_found(ask: Ask, define: Define) -> None:
    define(versions=[version(), version("v2", served=False)])
    assert ask("GET", f"/apis/{GROUP}/v2/widgets")[0] == 404
    assert ask("GET", f"/apis/{GROUP}/v1/widgets")[0] == 200


def test_objects_may_be_loaded_before_their_definition(api: Api, ask: Ask) -> None:
    made = widget(size=1)
    made["metadata"] |= {"namespace": "default", "uid": "u"}
    assert api.load([made, definition()]) == 2
    assert ask("GET", f"{WIDGETS}/one")[1]["metadata"]["uid"] == "u"


def test_a_fork_has_its_own_definitions(api: Api, ask: Ask, define: Define) -> None:
    define()
    ask("POST", WIDGETS, widget())
    saved = api.store.fork()
    ask("DELETE", f"{DEFINITIONS}/{NAME}")
    assert not is_served(api)
    api.store.restore(saved)
    assert ask("GET", f"{WIDGETS}/one")[0] == 200
