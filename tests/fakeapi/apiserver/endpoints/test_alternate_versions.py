"""Objects in two versions: events of both groups, autoscalers of both versions."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, Watch
from tests.builders import event_json, manifest
from tests.fakeapi.api_requests import JSON_PATCH, MERGE, STRATEGIC, TABLE, Ask, send

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
HPA_V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
HPA_V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


EVENT = event_json()


@pytest.fixture
def event(ask: Ask) -> dict[str, Any]:
    status, made = ask("POST", NEW, EVENT)
    assert status == 201, made
    return dict(made)


def test_an_event_is_answered_as_it_was_sent(event: dict[str, Any]) -> None:
    assert {key: event[key] for key in EVENT if key != "metadata"} == {
        key: value for key, value in EVENT.items() if key != "metadata"
    }


@pytest.mark.usefixtures("event")
def test_an_event_of_the_new_group_is_seen_in_the_core(ask: Ask) -> None:
    seen = ask("GET", f"{CORE}/e")[1]
    assert (seen["kind"], seen["apiVersion"]) == ("Event", "v1")
    assert seen["involvedObject"]["name"] == "p"
    assert (seen["message"], seen["reportingComponent"]) == ("assigned", "default-scheduler")
    assert "note" not in seen


def test_an_event_of_the_core_is_seen_in_the_new_group(ask: Ask) -> None:
    old = {
        "metadata": {"name": "o"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "message": "pulled",
        "source": {"component": "kubelet"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 3,
    }
    assert ask("POST", CORE, old)[0] == 201
    listed = ask("GET", NEW)[1]
    assert (listed["kind"], listed["apiVersion"]) == ("EventList", "events.k8s.io/v1")
    seen = listed["items"][0]
    assert (seen["note"], seen["deprecatedCount"]) == ("pulled", 3)
    assert seen["deprecatedSource"] == {"component": "kubelet"}
    assert seen["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.usefixtures("event")
@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("regarding.name=p", 1),
        ("regarding.name=q", 0),
        ("reason=Scheduled,reportingController=default-scheduler", 1),
        ("regarding.kind!=Pod", 0),
    ],
)
def test_selectors_name_fields_of_the_served_version(ask: Ask, selector: str, found: int) -> None:
    assert len(ask("GET", NEW, fieldSelector=selector)[1]["items"]) == found


def test_a_field_of_the_other_form_is_refused(ask: Ask) -> None:
    status, refused = ask("GET", NEW, fieldSelector="involvedObject.name=p")
    assert (status, refused["message"]) == (400, "field label not supported: involvedObject.name")


@pytest.mark.usefixtures("event")
@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (STRATEGIC, {"note": "again"}),
        (MERGE, {"note": "again"}),
        (JSON_PATCH, [{"op": "replace", "path": "/note", "value": "again"}]),
    ],
)
def test_patches_are_of_the_form_that_is_served(ask: Ask, content_type: str, patch: Any) -> None:
    status, patched = ask("PATCH", f"{NEW}/e", patch, content_type)
    assert (status, patched["note"]) == (200, "again"), patched
    assert ask("GET", f"{CORE}/e")[1]["message"] == "again"


@pytest.mark.usefixtures("event")
def test_a_watch_shows_the_version_of_its_path(api: Api) -> None:
    watch = api.handle(Request("GET", NEW, {"watch": "1"}))
    assert isinstance(watch, Watch)
    shown = orjson.loads(watch.read(10)[0])["object"]
    assert (shown["apiVersion"], shown["note"]) == ("events.k8s.io/v1", "assigned")
    assert orjson.loads(watch.bookmark())["object"]["apiVersion"] == "events.k8s.io/v1"


@pytest.mark.usefixtures("event")
def test_a_table_of_either_form_has_the_same_rows(api: Api) -> None:
    rows = []
    for path in (CORE, NEW):
        answer = send(api, "GET", path, accept=TABLE)
        rows.append([row["cells"] for row in orjson.loads(answer.body)["rows"]])
    assert rows[0] == rows[1] != []


def test_a_refusal_names_the_group_that_was_asked(ask: Ask) -> None:
    status, refused = ask("GET", f"{NEW}/nope")
    assert (status, refused["message"]) == (404, 'events.events.k8s.io "nope" not found')
    assert refused["details"] == {"name": "nope", "group": "events.k8s.io", "kind": "events"}
    assert list(refused["details"]) == ["name", "group", "kind"]


@pytest.mark.usefixtures("event")
def test_an_event_deleted_in_one_group_is_gone_from_the_other(ask: Ask) -> None:
    assert ask("DELETE", f"{NEW}/e")[0] == 200
    assert ask("GET", f"{CORE}/e")[0] == 404


def autoscaler(api_version: str, **spec: Any) -> dict[str, Any]:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    own = {"scaleTargetRef": target, "maxReplicas": 5, **spec}
    return manifest("HorizontalPodAutoscaler", "h", version=api_version, spec=own)


def cpu(share: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": share}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def test_an_autoscaler_of_v1_has_a_metric_in_v2(ask: Ask) -> None:
    made = ask("POST", HPA_V1, autoscaler("autoscaling/v1", targetCPUUtilizationPercentage=60))[1]
    assert made["spec"]["targetCPUUtilizationPercentage"] == 60, made
    seen = ask("GET", f"{HPA_V2}/h")[1]
    assert (seen["apiVersion"], seen["spec"]["metrics"]) == ("autoscaling/v2", [cpu(60)])


def test_an_autoscaler_of_v2_shows_its_cpu_share_in_v1(ask: Ask) -> None:
    assert ask("POST", HPA_V2, autoscaler("autoscaling/v2", metrics=[cpu(70)]))[0] == 201
    seen = ask("GET", HPA_V1)[1]["items"][0]
    assert seen["spec"]["targetCPUUtilizationPercentage"] == 70
    assert "metrics" not in seen["spec"]


def test_both_forms_can_be_loaded(api: Api, ask: Ask) -> None:
    api.load([dict(EVENT), autoscaler("autoscaling/v1", targetCPUUtilizationPercentage=5)])
    assert ask("GET", f"{CORE}/e")[1]["message"] == "assigned"
    assert ask("GET", f"{HPA_V2}/h")[1]["spec"]["metrics"] == [cpu(5)]
