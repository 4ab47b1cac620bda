"""A stream gives the same as a list and a watch, which are used if there is no stream."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from extender.kube.informers.watch_list import WatchListReflector
from tests.extender.kube.conftest import (
    Lost,
    Reply,
    Silence,
    Stay,
    Thing,
    a_list,
    a_refusal,
    a_watch,
    added,
    an_error,
    bookmark,
    deleted,
    initial_end,
    modified,
)
from tests.extender.kube.informer_scripts import A1, ScriptRun
from tests.extender.kube.informer_scripts import play as play_any

TOO_NEW = a_refusal(504, "Timeout", cause="ResourceVersionTooLarge")


async def play(*script: Reply) -> ScriptRun:
    return await play_any(*script, kind=WatchListReflector[Thing])


async def test_one_request_gives_the_state_and_what_follows() -> None:
    run = await play(
        a_watch(added("a", 1), added("b", 2), initial_end(5), added("c", 6), deleted("a", 7))
    )
    assert run.store.changes == ["=a1,b2", "+c6", "-a7"]
    assert run.versions == ["stream newest", "7"]
    assert run.informer.synced


async def test_a_stream_is_requested_with_the_parameters_of_upstream() -> None:
    run = await play(a_watch(initial_end(5), bookmark(6)))
    query = run.api.requests[0].query
    timeout = int(query.pop("timeoutSeconds"))
    assert 300 <= timeout < 600
    assert query == {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }


async def test_no_event_and_no_sync_before_the_bookmark() -> None:
    run = await play(a_watch(added("a", 1), Lost()), Lost())
    assert run.store.changes == []
    assert not run.informer.synced


async def test_an_empty_resource_is_synced() -> None:
    run = await play(a_watch(initial_end(9)))
    assert (run.store.changes, run.informer.resource_version) == (["="], "9")
    assert run.versions == ["stream newest", "9"]


async def test_changes_before_the_bookmark_are_delivered_after_the_initial_state() -> None:
    run = await play(
        a_watch(
            added("a", 1),
            added("b", 2),
            modified("a", 3),
            deleted("b", 4),
            added("b", 5),
            initial_end(5),
        )
    )
    assert run.store.changes == ["=a1,b2", "+a3", "-b4", "+b5"]
    assert run.informer.resource_version == "5"


async def test_a_watch_that_ends_is_resumed_and_not_streamed_again() -> None:
    run = await play(a_watch(added("a", 1), initial_end(5), Stay(400)), a_watch(Stay(300)))
    assert run.versions == ["stream newest", "5", "5"]
    assert run.pauses == [400, 300]
    assert (run.informer.relists, run.informer.reconnects) == (0, 1)


async def test_an_expired_watch_is_streamed_again() -> None:
    run = await play(
        a_watch(added("a", 1), initial_end(5), an_error(410, "Expired")),
        a_watch(added("b", 6), initial_end(8), modified("b", 9)),
    )
    assert run.store.changes == ["=a1", "=b6", "+b9"]
    assert run.versions == ["stream newest", "stream 5", "9"]
    assert run.informer.relists == 1


@pytest.mark.parametrize("refusal", [a_refusal(410, "Expired"), TOO_NEW], ids=["410", "504"])
async def test_a_stream_refused_for_its_version_begins_with_the_newest_at_once(
    refusal: Reply,
) -> None:
    run = await play(
        a_watch(initial_end(7), an_error(410, "Expired")),
        refusal,
        a_watch(added("a", 1), initial_end(3), an_error(410, "Expired")),
    )
    assert run.versions == ["stream newest", "stream 7", "stream newest", "stream 3"]
    assert run.pauses[1] == 0
    assert run.store.changes == ["=", "=a1"]


@pytest.mark.parametrize(
    "error",
    [
        a_refusal(422, "Invalid"),
        a_refusal(400, "BadRequest"),
        a_refusal(403, "Forbidden"),
        a_refusal(404, "NotFound"),
        a_refusal(500, "InternalError"),
        a_refusal(503, "ServiceUnavailable"),
        a_watch(an_error(500, "InternalError")),
        a_watch(added("a", 1), Lost()),
        a_watch(added("a", 1)),
        a_watch(added("a", 1), bookmark(4)),
        a_watch(
            b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"4","annotations":7}}}'
        ),
        a_watch(b"not json"),
    ],
    ids=str,
)
async def test_list_and_watch_follow_a_refused_stream_at_once(error: Reply) -> None:
    run = await play(error, a_list(3, A1), a_watch(added("b", 4)))
    assert run.store.changes == ["=a1", "+b4"]
    assert run.versions == ["stream newest", "list 0", "3", "4"]
    assert run.pauses[0] == 0


async def test_a_silent_stream_ends_half_a_minute_after_its_timeout() -> None:
    run = await play(a_watch(added("a", 1), Silence()), a_list(3, A1))
    timeout = int(run.api.requests[0].query["timeoutSeconds"])
    assert run.versions == ["stream newest", "list 0", "3"]
    assert run.pauses[0] == timeout + 30


@pytest.mark.parametrize(
    "error",
    [
        Lost(),
        a_refusal(429, "TooManyRequests", retry_after=45),
        a_watch(added("a", 1), an_error(429, "TooManyRequests")),
    ],
    ids=str,
)
async def test_a_stream_is_retried_later_if_the_server_is_unavailable(error: Reply) -> None:
    run = await play(error, a_watch(added("b", 2), initial_end(4)))
    assert run.versions == ["stream newest", "stream newest", "4"]
    assert run.pauses[0] >= 0.8
    assert run.store.changes == ["=b2"]


async def test_a_list_that_fails_is_repeated_before_a_stream_is_tried_again() -> None:
    run = await play(
        a_refusal(422, "Invalid"),
        Lost(),
        a_list(3, A1),
        a_watch(an_error(410, "Expired")),
        a_watch(added("a", 5), initial_end(6)),
    )
    assert run.versions == ["stream newest", "list 0", "list 0", "3", "stream 3", "6"]
    assert run.store.changes == ["=a1", "=a5"]


async def test_a_server_without_any_known_version_is_listed() -> None:
    run = await play(
        a_watch(initial_end(7), an_error(410, "Expired")), TOO_NEW, TOO_NEW, a_list(3, A1)
    )
    assert run.versions[1:] == ["stream 7", "stream newest", "list newest", "3"]
    assert run.pauses[1:3] == [0, 0]


async def test_a_refused_stream_is_no_error() -> None:
    with capture_logs() as logs:
        await play(a_refusal(422, "Invalid"), a_list(3, A1))
    assert [(line["log_level"], line["event"]) for line in logs] == [
        ("info", "informer_not_streamed"),
        ("info", "informer_listed"),
    ]
