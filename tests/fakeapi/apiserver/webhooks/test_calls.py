"""A request that calls webhooks is suspended, and attempted again with their answers."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.endpoints import IdAndTimeSources
from fakeapi.apiserver.webhooks.calls import (
    CallsPendingError,
    PendingCalls,
    RequestAttempts,
    Review,
    WebhookCall,
    WebhookCallError,
)

A, B = WebhookCall("https://a", b"{}"), WebhookCall("https://b", b"{}")


def test_missing_answers_suspend_the_request_with_all_calls() -> None:
    outbox, attempts = PendingCalls(), RequestAttempts({A: b"1"})
    with outbox.attempt(attempts), pytest.raises(CallsPendingError) as suspended:
        outbox.call_all([A, B])
    assert suspended.value.calls == [B]


def test_known_answers_are_returned_in_order_with_failures() -> None:
    outbox, error = PendingCalls(), WebhookCallError("EOF")
    with outbox.attempt(RequestAttempts({A: b"1", B: error})):
        assert outbox.call_all([B, A]) == [error, b"1"]
        with pytest.raises(WebhookCallError, match="EOF"):
            outbox.call(B)


def test_another_body_is_another_call() -> None:
    outbox = PendingCalls()
    changed = WebhookCall("https://a", b'{"changed":true}')
    with outbox.attempt(RequestAttempts({A: b"1"})), pytest.raises(CallsPendingError):
        outbox.call(changed)


def test_without_a_driver_no_webhook_is_called() -> None:
    with pytest.raises(WebhookCallError, match="only while a request is served"):
        PendingCalls().call(A)


def test_a_plain_hook_is_called_once_for_all_attempts() -> None:
    seen: list[Review] = []

    def hook(review: Review) -> Review:
        seen.append(review)
        return {"response": len(seen), "request": "not read again"}

    outbox, attempts = PendingCalls(), RequestAttempts()
    call = WebhookCall("https://a", b'{"kind":"K"}', hook=hook)
    for _ in range(2):
        with outbox.attempt(attempts):
            assert outbox.call(call) == b'{"response":1}'
    assert seen == [{"kind": "K"}]
    assert outbox.call(call) == b'{"response":2}'


def test_an_async_hook_is_left_to_the_driver() -> None:
    async def hook(review: Review) -> Review:
        return review

    call, outbox = WebhookCall("https://a", b"{}", hook=hook), PendingCalls()
    with outbox.attempt(RequestAttempts()), pytest.raises(CallsPendingError) as suspended:
        outbox.call(call)
    assert suspended.value.calls == [call]


def test_random_values_repeat_in_every_attempt_of_a_request() -> None:
    uids = iter(f"uid-{n}" for n in range(9))
    outbox, attempts = PendingCalls(), RequestAttempts()
    steady = outbox.repeatable(IdAndTimeSources(str, lambda: next(uids), lambda: "s", lambda: 7))
    for _ in range(2):
        with outbox.attempt(attempts):
            assert [steady.uid(), steady.uid()] == ["uid-0", "uid-1"]
    with outbox.attempt(RequestAttempts()):
        assert steady.uid() == "uid-2"
    assert steady.uid() == "uid-3"


def test_a_one_time_effect_happens_in_one_attempt() -> None:
    done: list[str] = []
    outbox, attempts = PendingCalls(), RequestAttempts()
    for _ in range(3):
        with outbox.attempt(attempts):
            for name in ("a", "b"):
                outbox.once(("deleted", name), lambda name=name: done.append(name))  # type: ignore[misc]
    assert done == ["a", "b"]


def test_random_values_of_a_one_time_effect_are_kept() -> None:
    times = iter(range(9))
    outbox, attempts = PendingCalls(), RequestAttempts()
    steady = outbox.repeatable(IdAndTimeSources(str, str, str, lambda: next(times)))
    for _ in range(2):
        with outbox.attempt(attempts):
            assert outbox.once("made", lambda: (steady.now(), steady.now())) == (0, 1)
            assert steady.now() == 2
