"""Webhooks and custom resources: their versions, schemas and subresources."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders.definitions import (
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
from tests.fakeapi.admission_webhooks import Recorder, add, answering, patching, rule
from tests.fakeapi.api_requests import Ask
from tests.fakeapi.apiserver.admission.conftest import Configure
from tests.fakeapi.apiserver.schema.crds.webhooks import converted, renamed

WIDGETS_V2 = WIDGETS.replace("/v1/", "/v2/")


@pytest.fixture
def plain(api: Api) -> None:
    size = {**INTEGER, "maximum": 9}
    spec = record(size=size, color={**TEXT, "default": "red"})
    schema = record(spec=spec, status=record(size=INTEGER))
    subresources = {"status": {}, "scale": SCALE}
    api.load([definition(versions=[version(schema=schema, subresources=subresources)])])


@pytest.mark.usefixtures("plain")
class TestOneVersion:
    def test_a_patch_is_pruned_and_defaulted_as_a_body_is(
        self, ask: Ask, configure: Configure
    ) -> None:
        patch = patching(add("/spec", {"size": 2, "weight": 3}))
        configure("mutating", "widgets", answer=answering(**patch))
        status, made = ask("POST", WIDGETS, widget(size=1))
        assert (status, made["spec"]) == (201, {"size": 2, "color": "red"})

    def test_a_patch_that_breaks_the_schema_is_refused(
        self, ask: Ask, configure: Configure
    ) -> None:
        configure("mutating", "widgets", answer=answering(**patching(add("/spec/size", 10))))
        status, refusal = ask("POST", WIDGETS, widget(size=1))
        assert (status, refusal["details"]["causes"][0]["field"]) == (422, "spec.size")

    def test_validating_webhooks_see_the_object_to_be_stored(
        self, ask: Ask, configure: Configure
    ) -> None:
        recorder = configure("validating", "widgets", answer=answering(allowed=False))
        assert ask("POST", WIDGETS, widget(size=1))[0] == 400
        [seen] = recorder.seen("object")
        assert (seen["kind"], seen["spec"]) == ("Widget", {"size": 1, "color": "red"})

    def test_the_scale_of_custom_resources_is_reviewed(
        self, ask: Ask, configure: Configure
    ) -> None:
        ask("POST", WIDGETS, widget(size=1))
        patch = patching({"op": "replace", "path": "/spec/replicas", "value": 5})
        recorder = configure("mutating", "widgets/scale", answer=answering(**patch))
        path = f"{WIDGETS}/one"
        _, scale = ask("PATCH", f"{path}/scale", {"spec": {"replicas": 3}})
        assert scale["spec"]["replicas"] == ask("GET", path)[1]["spec"]["size"] == 5
        [(kind, resource)] = recorder.seen("kind", "resource")
        assert (kind["kind"], resource["resource"]) == ("Scale", "widgets")

    def test_the_status_of_custom_resources_is_reviewed(
        self, ask: Ask, configure: Configure
    ) -> None:
        ask("POST", WIDGETS, widget(size=1))
        configure("validating", "widgets/status", answer=answering(allowed=False))
        body = {"status": {"size": 1}}
        assert ask("PATCH", f"{WIDGETS}/one/status", body)[0] == 400
        assert ask("PATCH", f"{WIDGETS}/one", {"spec": {"size": 2}})[0] == 200


class TestSeveralVersions:
    @pytest.fixture(autouse=True)
    def versions(self, api: Api) -> None:
        api.load([converted(url="https://hooks.example.com/convert")])
        api.converters[NAME] = renamed

    @pytest.fixture
    def recorder(self, configure: Configure) -> Recorder:
        patch = patching({"op": "replace", "path": "/spec/size", "value": 7})
        rules = [rule("widgets", apiVersions=["v1"])]
        return configure("mutating", rules=rules, answer=answering(**patch))

    def test_another_version_is_seen_and_patched_converted(
        self, ask: Ask, recorder: Recorder
    ) -> None:
        status, made = ask("POST", WIDGETS_V2, widget(api_version="v2", length=1))
        assert (status, made["spec"]) == (201, {"length": 7, "color": "red"})
        [(seen, kind, asked)] = recorder.seen("object", "kind", "requestKind")
        assert (seen["apiVersion"], seen["spec"]["size"]) == ("example.com/v1", 1)
        assert (kind["version"], asked["version"]) == ("v1", "v2")

    def test_an_update_shows_both_converted(self, ask: Ask, recorder: Recorder) -> None:
        ask("POST", WIDGETS, widget(size=1))
        ask("PATCH", f"{WIDGETS_V2}/one", {"spec": {"length": 2}})
        before, after = recorder.requests[1]["oldObject"], recorder.requests[1]["object"]
        assert (before["spec"]["size"], after["spec"]["size"]) == (7, 2)

    def test_the_version_of_the_request_comes_first(self, ask: Ask, configure: Configure) -> None:
        recorder = configure("validating", "widgets")
        ask("POST", WIDGETS_V2, widget(api_version="v2", length=1))
        assert recorder.seen("object")[0]["spec"] == {"length": 1, "color": "red"}

    def test_a_deleted_object_is_sent_converted(self, ask: Ask, configure: Configure) -> None:
        ask("POST", WIDGETS, widget(size=1))
        rules = [rule("widgets", apiVersions=["v2"], operations=["DELETE"])]
        recorder = configure("validating", rules=rules)
        assert ask("DELETE", f"{WIDGETS}/one")[0] == 200
        [(old, kind)] = recorder.seen("oldObject", "kind")
        assert (old["spec"]["length"], kind["version"]) == (1, "v2")
