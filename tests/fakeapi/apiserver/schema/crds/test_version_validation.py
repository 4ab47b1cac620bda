"""Objects in several versions: stored in one, converted to the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import Document
from tests.builders.definitions import (
    DEFINITIONS,
    GROUP,
    INTEGER,
    NAME,
    TEXT,
    WIDGETS,
    record,
    version,
    widget,
)
from tests.fakeapi.api_requests import Ask, Define, OpenWatch
from tests.fakeapi.apiserver.schema.crds.webhooks import NEW, OLD, converted, renamed

WIDGETS_V2 = WIDGETS.replace("/v1/", "/v2/")


@pytest.fixture
def hooked(api: Api, ask: Ask) -> Api:
    ask("POST", DEFINITIONS, converted(url="https://localhost:1/convert"))
    api.converters[NAME] = renamed
    return api


def test_without_conversion_only_the_version_changes(ask: Ask, define: Define) -> None:
    define(versions=[version(), version("v2")])
    ask("POST", WIDGETS, widget(size=1))
    _, seen = ask("GET", f"{WIDGETS_V2}/one")
    assert (seen["apiVersion"], seen["spec"]) == (f"{GROUP}/v2", {"size": 1})
    _, written = ask("PATCH", f"{WIDGETS_V2}/one", {"spec": {"size": 2}})
    assert written["apiVersion"] == f"{GROUP}/v2"
    assert ask("GET", f"{WIDGETS}/one")[1]["spec"] == {"size": 2}


def test_each_version_knows_its_own_fields(ask: Ask, define: Define) -> None:
    define(versions=[version(schema=OLD), version("v2", NEW)])
    ask("POST", WIDGETS, widget(size=1))
    assert ask("GET", f"{WIDGETS_V2}/one")[1]["spec"] == {"color": "red"}
    status, answer = ask("PATCH", f"{WIDGETS_V2}/one", {"spec": {"length": "x"}})
    assert (status, answer["details"]["causes"][0]["field"]) == (422, "spec.length")


def test_a_changed_schema_applies_to_stored_objects(ask: Ask, define: Define) -> None:
    define(spec={"size": INTEGER, "label": TEXT})
    ask("POST", WIDGETS, widget(size=1, label="a"))
    newer = record(spec=record(size=INTEGER, color={**TEXT, "default": "red"}))
    change = {"spec": {"versions": [version(schema=newer)]}}
    ask("PATCH", f"{DEFINITIONS}/{NAME}", change)
    assert ask("GET", f"{WIDGETS}/one")[1]["spec"] == {"size": 1, "color": "red"}
    assert ask("GET", WIDGETS)[1]["items"][0]["spec"] == {"size": 1, "color": "red"}


@pytest.mark.usefixtures("hooked")
def test_a_webhook_converts_reads_and_writes(ask: Ask) -> None:
    ask("POST", WIDGETS, widget(size=1))
    assert ask("GET", f"{WIDGETS_V2}/one")[1]["spec"] == {"length": 1, "color": "red"}
    _, made = ask("POST", WIDGETS_V2, widget("two", api_version="v2", length=2))
    assert made["spec"] == {"length": 2, "color": "red"}
    assert ask("GET", f"{WIDGETS}/two")[1]["spec"] == {"size": 2}
    _, found = ask("GET", WIDGETS_V2)
    assert [each["spec"]["length"] for each in found["items"]] == [1, 2]
    assert ask("DELETE", f"{WIDGETS_V2}/two")[0] == 200


@pytest.mark.usefixtures("hooked")
def test_watchers_see_the_requested_version(ask: Ask, watch: OpenWatch) -> None:
    read = watch(WIDGETS_V2)
    ask("POST", WIDGETS, widget(size=1))
    ask("PATCH", f"{WIDGETS}/one", {"spec": {"size": 2}})
    assert [(event, thing["spec"]["length"]) for event, thing in read()] == [
        ("ADDED", 1),
        ("MODIFIED", 2),
    ]


Hook = Callable[[Document], Document]


def responding(status: str = "Success", **fields: Any) -> Hook:
    """Return a webhook whose responses have these fields, for the request's UID."""
    result = {"status": status, **fields.pop("result", {})}
    return lambda review: {
        **review,
        "response": {"uid": review["request"]["uid"], "result": result, **fields},
    }


def unconverted(review: Document) -> Document:
    return responding(convertedObjects=review["request"]["objects"])(review)


FAILURES: list[tuple[Hook, str]] = [
    (lambda review: review, "failed: no response provided"),
    (
        lambda review: {**review, "kind": "Pod"},
        (
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, "
            "got apiextensions.k8s.io/v1, Kind=Pod"
        ),
    ),
    (lambda review: {**review, "response": {"uid": "x"}}, "failed: expected response.uid="),
    (responding("Failure", result={"message": "I will not"}), "failed: I will not"),
    (responding(), "returned 0 objects, expected 1"),
    (
        unconverted,
        (
            "returned invalid converted object at index 0: invalid groupVersion (expected "
            "example.com/v2, received example.com/v1)"
        ),
    ),
]


@pytest.mark.parametrize(("hook", "message"), FAILURES)
def test_a_conversion_that_fails_is_an_error_of_the_server(
    hooked: Api, ask: Ask, hook: Hook, message: str
) -> None:
    ask("POST", WIDGETS, widget(size=1))
    hooked.converters[NAME] = hook
    status, answer = ask("GET", f"{WIDGETS_V2}/one")
    assert status == 500
    assert answer["message"].startswith(f"conversion webhook for {GROUP}/v1, Kind=Widget {message}")


def test_a_conversion_webhook_may_not_rename_objects(hooked: Api, ask: Ask) -> None:
    ask("POST", WIDGETS, widget(size=1))

    def renaming(review: Document) -> Document:
        answered = renamed(review)
        answered["response"]["convertedObjects"][0]["metadata"]["name"] = "other"
        return answered

    hooked.converters[NAME] = renaming
    _, answer = ask("GET", f"{WIDGETS_V2}/one")
    assert "must have the same name: one != other" in answer["message"]


def test_deprecated_versions_have_a_warning(api: Api, define: Define) -> None:
    define(versions=[version(), version("v1beta1", deprecated=True)])
    kind = api.kinds.at(GROUP, "v1beta1", "widgets")
    assert kind is not None
    assert kind.deprecation == (
        "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget"
    )
