"""The cache equals the server, whatever the connection does, and the delays between attempts."""

from __future__ import annotations

import asyncio
import random

import pytest
from structlog.testing import capture_logs

from extender.kube.informers.reflector import (
    OptionalReflector,
    Reflector,
    ReflectorBackoff,
    ReflectorContext,
)
from extender.kube.rest.client import Client, Selection
from extender.kube.rest.resources import PODS
from tests.extender.kube.conftest import (
    Lost,
    Reply,
    ScriptedApi,
    Silence,
    Stay,
    SteppedClock,
    Thing,
    TooLong,
    a_list,
    a_refusal,
    a_watch,
    added,
    an_error,
    bookmark,
    deleted,
    modified,
    thing,
)
from tests.extender.kube.informer_scripts import A1, B2, RecordingStore, play


async def test_the_list_is_followed_by_each_change_in_order() -> None:
    run = await play(a_list(2, A1, B2), a_watch(added("c", 3), modified("a", 4), deleted("b", 5)))
    assert run.store.changes == ["=a1,b2", "+c3", "+a4", "-b5"]
    assert run.store.state == {"a": "4", "c": "3"}
    assert run.versions == ["list 0", "2", "5"]


async def test_it_is_synced_after_the_first_list_and_not_before() -> None:
    before = await play(Lost())
    after = await play(a_list(2, A1, B2))
    assert not before.informer.synced
    assert after.informer.synced
    await after.informer.wait_synced()


async def test_an_empty_resource_is_synced() -> None:
    run = await play(a_list(9))
    assert run.informer.synced
    assert run.store.changes == ["="]


async def test_bookmarks_change_only_the_version_to_resume_from() -> None:
    run = await play(a_list(2, A1), a_watch(bookmark(50)))
    assert run.store.changes == ["=a1"]
    assert run.versions == ["list 0", "2", "50"]
    assert run.informer.resource_version == "50"


async def test_a_watch_requests_bookmarks_and_five_to_ten_minutes() -> None:
    run = await play(a_list(2), *[a_watch(bookmark(n)) for n in range(3, 23)])
    watches = [each.query for each in run.api.requests[1:]]
    timeouts = [int(query["timeoutSeconds"]) for query in watches]
    assert all(query["allowWatchBookmarks"] == "true" for query in watches)
    assert all(300 <= seconds < 600 for seconds in timeouts)
    assert len(set(timeouts)) > 10


async def test_a_selection_narrows_lists_and_watches_alike() -> None:
    some = Selection("shop", "app=web", "spec.nodeName=n1")
    run = await play(a_list(2), selection=some)
    for each in run.api.requests:
        assert each.request.path == "/api/v1/namespaces/shop/pods"
        assert each.query["labelSelector"] == "app=web"
        assert each.query["fieldSelector"] == "spec.nodeName=n1"


async def test_a_watch_that_ends_by_its_timeout_is_resumed_at_once() -> None:
    run = await play(a_list(2), a_watch(added("a", 3), Stay(400)), a_watch(Stay(500)))
    assert run.versions == ["list 0", "2", "3", "3"]
    assert run.pauses == [0, 400, 500]
    assert (run.informer.relists, run.informer.reconnects) == (0, 1)


async def test_a_watch_that_ends_at_once_without_an_event_is_resumed_after_a_delay() -> None:
    run = await play(a_list(2), a_watch(), a_watch(bookmark(2)))
    assert run.versions == ["list 0", "2", "2", "2"]
    assert all(pause >= 0.8 for pause in run.pauses[1:])


@pytest.mark.parametrize(
    "error",
    [
        Lost(),
        a_watch(Lost()),
        a_watch(an_error(500, "InternalError")),
        a_watch(an_error(429, "TooManyRequests")),
        a_refusal(401, "Unauthorized"),
        a_refusal(403, "Forbidden"),
        a_refusal(408, "Timeout"),
        a_refusal(429, "TooManyRequests"),
        a_refusal(500, "InternalError"),
        a_refusal(503, "ServiceUnavailable"),
    ],
    ids=str,
)
async def test_transient_errors_cause_no_list(error: Reply) -> None:
    run = await play(a_list(2, A1), a_watch(added("b", 3)), error, a_watch(added("c", 4)))
    assert run.store.changes == ["=a1", "+b3", "+c4"]
    assert run.versions == ["list 0", "2", "3", "3", "4"]
    assert 0.8 <= run.pauses[2] < 1.6


@pytest.mark.parametrize(
    "error",
    [
        a_refusal(410, "Expired"),
        a_refusal(410, "Gone"),
        a_watch(an_error(410, "Expired")),
        a_refusal(504, "Timeout", cause="ResourceVersionTooLarge"),
        a_refusal(400, "BadRequest"),
        a_refusal(404, "NotFound"),
        a_watch(an_error(0, "Unknown")),
        a_watch(TooLong()),
        a_watch(b"not json"),
        a_watch(b'{"type":"ADDED"}'),
        a_watch(b'{"type":"RENAMED","object":{"metadata":{"resourceVersion":"4"}}}'),
        a_watch(b'{"type":"ADDED","object":{"metadata":{"name":"no version"}}}'),
        a_watch(b'{"type":"ADDED","object":{"metadata":"\xff"}}'),
        a_watch(b'{"type":"ERROR","object":"no status"}'),
    ],
    ids=str,
)
async def test_an_expired_watch_is_listed_again(error: Reply) -> None:
    run = await play(
        a_list(2, A1), a_watch(added("b", 3)), error, a_list(9, B2), a_watch(added("c", 10))
    )
    assert run.store.changes == ["=a1", "+b3", "=b2", "+c10"]
    assert run.versions == ["list 0", "2", "3", "list 3", "9", "10"]
    assert 0.8 <= run.pauses[2] < 1.6
    assert run.informer.relists == 1


async def test_events_before_a_410_are_kept() -> None:
    run = await play(a_list(2, A1), a_watch(added("b", 3), an_error(410, "Expired")), a_list(5, A1))
    assert run.store.changes == ["=a1", "+b3", "=a1"]
    assert run.versions[2] == "list 3"


@pytest.mark.parametrize(
    "refusal",
    [a_refusal(410, "Expired"), a_refusal(504, "Timeout", cause="ResourceVersionTooLarge")],
    ids=["expired", "ahead of the server"],
)
async def test_a_list_refused_for_its_version_is_repeated_at_once_for_the_newest(
    refusal: Reply,
) -> None:
    run = await play(
        a_list(7, A1), a_refusal(410, "Expired"), refusal, a_list(3, B2), a_refusal(410, "Expired")
    )
    assert run.versions == ["list 0", "7", "list 7", "list newest", "3", "list 3"]
    assert run.pauses[2] == 0
    assert run.store.state == {"b": "2"}


async def test_a_refused_list_of_the_newest_is_repeated_after_a_delay() -> None:
    gone = a_refusal(410, "Expired")
    run = await play(a_list(7), gone, gone, gone, gone, a_list(9, A1))
    assert run.versions[2:6] == ["list 7", "list newest", "list newest", "list newest"]
    assert run.pauses[2] == 0
    assert all(pause >= 0.8 for pause in run.pauses[3:5])


async def test_a_failed_list_leaves_the_cache_unchanged() -> None:
    run = await play(
        a_list(2, A1), a_refusal(410, "Expired"), Lost(), a_refusal(500, "InternalError")
    )
    assert run.store.state == {"a": "1"}
    assert run.versions[2:] == ["list 2", "list 2", "list 2"]


async def test_delays_double_up_to_thirty_seconds_and_are_reset_after_two_healthy_minutes() -> None:
    run = await play(a_list(2), *[Lost()] * 9, a_watch(bookmark(3), Stay(121), Lost()))
    bases = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30]
    for pause, base in zip(run.pauses[1:10], bases, strict=True):
        assert base <= pause < 2 * base
    assert 121.8 <= run.pauses[10] < 122.6


async def test_the_server_may_request_a_longer_delay_of_at_most_five_minutes() -> None:
    busy = a_refusal(429, "TooManyRequests", retry_after=45)
    absurd = a_refusal(503, "ServiceUnavailable", retry_after=10**6)
    run = await play(a_list(2), busy, absurd)
    assert run.pauses == [0, 45, 300]


async def test_a_silent_watch_ends_half_a_minute_after_its_timeout() -> None:
    run = await play(a_list(2, A1), a_watch(added("b", 3), Silence()), a_watch(added("c", 4)))
    timeout = int(run.api.requests[1].query["timeoutSeconds"])
    assert run.store.changes == ["=a1", "+b3", "+c4"]
    assert timeout + 30.8 <= run.pauses[1] < timeout + 31.6


async def test_a_resumed_watch_loses_and_repeats_nothing() -> None:
    run = await play(
        a_list(2, A1),
        a_watch(modified("a", 3), modified("a", 4), Lost()),
        a_watch(modified("a", 5)),
        Lost(),
        a_watch(modified("a", 6)),
    )
    assert run.store.changes == ["=a1", "+a3", "+a4", "+a5", "+a6"]
    assert run.versions == ["list 0", "2", "4", "5", "5", "6"]
    assert run.informer.reconnects == 2


async def test_the_last_message_and_the_version_of_the_cache_are_known() -> None:
    run = await play(a_list(2), a_watch(Stay(60), bookmark(8), Stay(90)))
    assert run.informer.last_heard == run.clock.elapsed - 90
    assert run.informer.resource_version == "8"
    assert not run.informer.watching


async def test_watching_is_true_while_a_watch_is_open() -> None:
    clock, reached = SteppedClock(), asyncio.Event()
    informer: Reflector[Thing]

    class Observer(RecordingStore):
        def upsert(self, item: Thing) -> None:
            super().upsert(item)
            seen.append(informer.watching)
            reached.set()

    seen: list[bool] = []
    api = ScriptedApi(clock, a_list(1), a_watch(added("a", 2)))
    context = ReflectorContext(Client(api), clock, random.Random(1))
    informer = Reflector(context, PODS, thing, Observer())
    running = asyncio.create_task(informer.run())
    assert not informer.watching
    await reached.wait()
    running.cancel()
    assert seen == [True]


@pytest.mark.parametrize("code", [401, 403])
async def test_a_refusal_is_logged_once_and_its_end_once(code: int) -> None:
    no = a_refusal(code, "No")
    with capture_logs() as logs:
        await play(no, no, no, a_refusal(503, "ServiceUnavailable"), no, a_list(4, A1), no, no)
    assert [line["event"] for line in logs] == [
        "informer_trouble",
        "informer_trouble",
        "informer_trouble",
        "informer_recovered",
        "informer_listed",
        "informer_trouble",
    ]
    assert {line["resource"] for line in logs} == {"pods"}
    assert str(code) in logs[0]["error"]


async def test_an_expired_watch_is_no_warning_unless_the_newest_list_fails_too() -> None:
    gone = a_refusal(410, "Expired")
    with capture_logs() as logs:
        await play(a_list(2), gone, a_list(4))
        await play(a_list(2), gone, gone, gone)
    errors = [line["log_level"] for line in logs if line["event"] == "informer_trouble"]
    assert errors == ["info", "info"]
    with capture_logs() as logs:
        await play(gone, gone)
    assert [line["log_level"] for line in logs] == ["warning"]


async def test_an_exception_of_the_store_ends_the_informer() -> None:
    with pytest.raises(KeyError):
        await play(a_list(1), a_watch(deleted("never seen", 2)))


@pytest.mark.parametrize("code", [403, 404])
async def test_a_forbidden_optional_resource_does_not_block_the_sync(code: int) -> None:
    no = a_refusal(code, "No")
    optional = await play(no, no, kind=OptionalReflector)
    await optional.informer.wait_settled()
    assert (optional.informer.settled, optional.informer.synced) == (True, False)
    assert optional.store.changes == []
    required = await play(no, no)
    assert not required.informer.settled


async def test_an_optional_resource_is_awaited_while_the_server_fails() -> None:
    errors: list[Reply] = [
        a_refusal(503, "ServiceUnavailable"),
        a_refusal(401, "Unauthorized"),
        Lost(),
    ]
    run = await play(*errors, kind=OptionalReflector)
    assert not run.informer.settled


async def test_an_optional_resource_is_watched_once_it_is_served() -> None:
    no = a_refusal(404, "NotFound")
    run = await play(no, no, a_list(2, A1), a_watch(added("b", 3)), kind=OptionalReflector)
    assert run.store.changes == ["=a1", "+b3"]
    assert run.informer.synced
    assert all(pause >= 0.8 for pause in run.pauses[:2])


class NoJitter(random.Random):
    def random(self) -> float:
        return 0.0


def test_backoff_delays_double_up_to_half_a_minute() -> None:
    backoff = ReflectorBackoff(SteppedClock(), NoJitter())
    assert [backoff.next_delay() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]


def test_jitter_stays_below_twice_the_delay() -> None:
    delays = [
        ReflectorBackoff(SteppedClock(), random.Random(seed)).next_delay() for seed in range(200)
    ]
    assert all(0.8 <= delay < 1.6 for delay in delays)
    assert max(delays) - min(delays) > 0.7


async def test_two_minutes_without_a_delay_reset_the_backoff() -> None:
    clock = SteppedClock()
    backoff = ReflectorBackoff(clock, NoJitter())
    backoff.next_delay()
    await clock.sleep(120)
    assert backoff.next_delay() == 1.6
    await clock.sleep(120.1)
    assert backoff.next_delay() == 0.8


def test_the_same_seed_gives_the_same_delays() -> None:
    first, second = (ReflectorBackoff(SteppedClock(), random.Random(3)) for _ in range(2))
    assert [first.next_delay() for _ in range(5)] == [second.next_delay() for _ in range(5)]


async def test_the_last_error_is_known_until_a_request_succeeds() -> None:
    failed = await play(a_refusal(403, "Forbidden"))
    assert "403 Forbidden" in failed.informer.last_error
    recovered = await play(a_refusal(403, "Forbidden"), a_list(2, A1))
    assert not recovered.informer.last_error


async def test_the_store_does_not_change_while_it_is_locked() -> None:
    clock, store = SteppedClock(), RecordingStore()
    api = ScriptedApi(clock, a_list(2, A1), a_watch(added("c", 3)))
    locked = True
    context = ReflectorContext(Client(api), clock, random.Random(7), is_locked=lambda: locked)
    informer = Reflector(context, PODS, thing, store)
    running = asyncio.create_task(informer.run())
    for _ in range(100):
        await asyncio.sleep(0)
    assert (len(api.requests), store.changes) == (1, [])
    locked = False
    await api.played.wait()
    running.cancel()
    assert store.changes == ["=a1", "+c3"]
