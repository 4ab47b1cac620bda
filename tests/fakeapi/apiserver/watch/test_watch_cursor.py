"""Watches: their first event, their events, and their end."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api, Request, Watch
from tests.builders import pod_spec
from tests.fakeapi.api_requests import NODES, PODS, Ask, OpenWatch


def brief(frames: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(kind, thing["metadata"]["name"]) for kind, thing in frames]


def create(ask: Ask, path: str, name: str, **labels: str) -> str:
    body = {"metadata": {"name": name, "labels": labels}, "spec": pod_spec()}
    status, answer = ask("POST", path, body)
    assert status == 201
    return str(answer["metadata"]["resourceVersion"])


def label(ask: Ask, path: str, **labels: str | None) -> str:
    _, answer = ask("PATCH", path, {"metadata": {"labels": labels}})
    return str(answer["metadata"]["resourceVersion"])


@pytest.mark.parametrize("start", [{}, {"resourceVersion": "0"}])
def test_without_a_version_a_watch_begins_with_existing_objects(
    ask: Ask, watch: OpenWatch, start: dict[str, str]
) -> None:
    create(ask, NODES, "a")
    read = watch(NODES, **start)
    create(ask, NODES, "b")
    assert brief(read()) == [("ADDED", "a"), ("ADDED", "b")]
    assert read() == []


def test_from_a_version_a_watch_replays_later_events(ask: Ask, watch: OpenWatch) -> None:
    version = create(ask, NODES, "a")
    label(ask, f"{NODES}/a", x="1")
    create(ask, NODES, "b")
    ask("DELETE", f"{NODES}/a")
    frames = watch(NODES, resourceVersion=version)()
    assert brief(frames) == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    versions = [int(thing["metadata"]["resourceVersion"]) for _, thing in frames]
    assert versions == sorted(set(versions))
    assert frames[0][1]["kind"] == "Node"
    assert frames[0][1]["apiVersion"] == "v1"


def test_a_watch_from_a_future_version_shows_newer_events_only(ask: Ask, watch: OpenWatch) -> None:
    version = create(ask, NODES, "a")
    read = watch(NODES, resourceVersion=str(int(version) + 1))
    create(ask, NODES, "b")
    create(ask, NODES, "c")
    assert brief(read()) == [("ADDED", "c")]


def test_a_namespace_is_watched_alone(ask: Ask, watch: OpenWatch) -> None:
    read = watch(PODS)
    create(ask, "/api/v1/namespaces/kube-system/pods", "elsewhere")
    create(ask, PODS, "here")
    assert brief(read()) == [("ADDED", "here")]


def test_a_selecting_watch_adds_and_deletes_objects_as_they_match(
    ask: Ask, watch: OpenWatch
) -> None:
    create(ask, NODES, "a", team="red")
    read = watch(NODES, labelSelector="team=blue")
    label(ask, f"{NODES}/a", team="blue", note="1")
    label(ask, f"{NODES}/a", note="2")
    left = label(ask, f"{NODES}/a", team="red", note="3")
    label(ask, f"{NODES}/a", note="4")
    frames = read()
    assert brief(frames) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    last = frames[-1][1]["metadata"]
    assert last["labels"] == {"team": "blue", "note": "2"}  # as it was while it matched
    assert last["resourceVersion"] == left


def test_a_single_object_is_watched_by_a_field_selector(ask: Ask, watch: OpenWatch) -> None:
    create(ask, PODS, "p")
    create(ask, PODS, "q")
    read = watch(PODS, fieldSelector="metadata.name=p", resourceVersion="0")
    ask("DELETE", f"{PODS}/p")
    assert brief(read()) == [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]


def test_a_version_older_than_the_history_is_an_error_event(
    api: Api, ask: Ask, watch: OpenWatch
) -> None:
    create(ask, NODES, "a")
    create(ask, NODES, "b")
    api.store.compact(api.store.version)
    frames = watch(NODES, resourceVersion="1")()
    assert [kind for kind, _ in frames] == ["ERROR"]
    status = frames[0][1]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"] == "too old resource version: 1 (8)"


def open_watch(api: Api, **query: str) -> Watch:
    watch = api.handle(Request("GET", NODES, {"watch": "1", **query}))
    assert isinstance(watch, Watch)
    return watch


@pytest.mark.parametrize("start", [{}, {"resourceVersion": "6"}], ids=["initial events", "version"])
def test_a_watch_that_falls_behind_the_history_ends_without_an_error(
    api: Api, ask: Ask, start: dict[str, str]
) -> None:
    create(ask, NODES, "a")
    watch = open_watch(api, **start)
    assert len(watch.read(100)) == 1
    for number in range(200):  # the history holds about 100
        label(ask, f"{NODES}/a", n=str(number))
    assert (watch.read(100), watch.ended) == ([], True)


def test_a_compaction_does_not_end_a_watch_that_has_read_all_events(api: Api, ask: Ask) -> None:
    create(ask, NODES, "a")
    watch = open_watch(api)
    assert len(watch.read(100)) == 1
    create(ask, PODS, "p")
    api.store.compact(api.store.version)
    create(ask, NODES, "b")
    (line,) = watch.read(100)
    assert line.startswith(b'{"type":"ADDED"')


def test_a_watch_expires_with_an_error_if_the_store_is_restored(
    api: Api, ask: Ask, watch: OpenWatch
) -> None:
    create(ask, NODES, "a")
    read = watch(NODES)
    read()
    api.reset()
    assert [kind for kind, _ in read()] == ["ERROR"]


@pytest.mark.parametrize(
    "start",
    [
        {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
        {},
        {"resourceVersion": "0"},
    ],
    ids=["asked for", "from no version", "from any version"],
)
def test_initial_events_end_with_an_annotated_bookmark(
    ask: Ask, watch: OpenWatch, start: dict[str, str]
) -> None:
    version = create(ask, NODES, "a")
    read = watch(NODES, allowWatchBookmarks="true", **start)
    added, bookmark = read()
    assert brief([added]) == [("ADDED", "a")]
    assert bookmark == (
        "BOOKMARK",
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {
                "resourceVersion": version,
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        },
    )
    create(ask, NODES, "b")
    assert brief(read()) == [("ADDED", "b")]


def test_initial_events_end_unmarked_without_bookmarks(ask: Ask, watch: OpenWatch) -> None:
    create(ask, NODES, "a")
    read = watch(NODES, sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    assert brief(read()) == [("ADDED", "a")]


def test_initial_events_can_be_declined(ask: Ask, watch: OpenWatch) -> None:
    create(ask, NODES, "a")
    read = watch(NODES, sendInitialEvents="false", resourceVersionMatch="NotOlderThan")
    create(ask, NODES, "b")
    assert brief(read()) == [("ADDED", "b")]


def test_initial_events_of_a_future_version_are_refused(ask: Ask) -> None:
    query = {"watch": "1", "sendInitialEvents": "1", "resourceVersionMatch": "NotOlderThan"}
    assert ask("GET", NODES, resourceVersion="99", **query)[0] == 504


def test_a_watch_of_a_server_that_ran_before_expires(ask: Ask, watch: OpenWatch) -> None:
    create(ask, NODES, "a")
    [(kind, status)] = watch(NODES, resourceVersion="99")()
    assert (kind, status["code"]) == ("ERROR", 410)


def test_a_bookmark_carries_the_newest_version_and_is_resumed_from(api: Api, ask: Ask) -> None:
    opened = api.handle(Request("GET", NODES, {"watch": "1", "allowWatchBookmarks": "1"}))
    assert isinstance(opened, Watch)
    create(ask, PODS, "p")
    assert b'"resourceVersion":"7"' in opened.bookmark()
    create(ask, NODES, "a")
    assert len(opened.read(10)) == 1


def test_after_a_reset_watches_expire_and_versions_go_on(
    api: Api, ask: Ask, watch: OpenWatch
) -> None:
    version = create(ask, NODES, "a")
    read = watch(NODES, resourceVersion=version)
    api.reset()
    assert [kind for kind, _ in read()] == ["ERROR"]
    assert int(create(ask, NODES, "a")) > int(version)
