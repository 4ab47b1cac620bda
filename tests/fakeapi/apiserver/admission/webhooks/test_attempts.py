"""A create that is suspended and repeated ends as one that is not suspended."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.kube.rest.clock import SystemClock
from fakeapi.apiserver.endpoints import Api, IdAndTimeSources, Request, Response
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.webhooks.client import CallDispatcher, WebhookConnections
from tests.fakeapi.admission_webhooks import (
    Review,
    add,
    answering,
    configuration,
    patching,
    webhook,
)
from tests.fakeapi.api_requests import MAPS
from tests.properties.sampling import examples

NAME = "label.example.com"

METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["m", "n", "M"]),
        "generateName": st.just("m-"),
        "namespace": st.sampled_from(["default", "elsewhere"]),
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from(["1", "-"]), max_size=2),
        "resourceVersion": st.sampled_from(["", "0", "7"]),
        "managedFields": st.sampled_from([[], [{}], [{"manager": "me"}]]),
        "finalizers": st.lists(st.sampled_from(["example.com/a", "b"]), max_size=1),
    },
)
BODIES = st.fixed_dictionaries(
    {"metadata": METADATA},
    optional={
        "kind": st.sampled_from(["ConfigMap", "Pod"]),
        "data": st.dictionaries(st.sampled_from("xy"), st.sampled_from(["1", 2, None]), max_size=2),
        "immutable": st.sampled_from([True, None, "yes"]),
        "unknown": st.just(1),
    },
)
QUERIES = st.sampled_from(
    [{}, {"fieldValidation": "Strict"}, {"dryRun": "All"}, {"fieldManager": "me"}]
)
SEES = answering(**patching(add("/metadata/annotations", {"seen": "yes"})))


async def sees_later(review: Review) -> Review:
    """Answer as SEES, after other tasks have run."""
    await asyncio.sleep(0)
    return SEES(review)


def created(hook: Any, body: Any, query: dict[str, str]) -> Response:
    """Create an object with a webhook in the way."""
    drawn = {name: count() for name in ("time", "uid", "suffix", "now")}
    sources = IdAndTimeSources(
        lambda _seconds: f"2026-01-01T00:00:{next(drawn['time']) % 60:02}Z",
        lambda: f"uid-{next(drawn['uid'])}",
        lambda: f"{next(drawn['suffix']):05}",
        lambda: next(drawn["now"]),
    )
    api = Api(Store(history=100), sources)
    api.load([configuration("mutating", webhook(NAME, "configmaps"))])
    api.webhooks.handlers[NAME] = hook
    errands = CallDispatcher(api.pending_calls, WebhookConnections().post, SystemClock())
    request = Request("POST", MAPS, query, orjson.dumps(body), "application/json")
    answer = asyncio.run(errands.run(lambda: api.handle(request)))
    assert isinstance(answer, Response)
    return answer


@settings(max_examples=examples(150), deadline=None)
@given(BODIES, QUERIES)
def test_suspended_or_not_the_answer_is_the_same(body: Any, query: dict[str, str]) -> None:
    assert created(sees_later, body, query) == created(SEES, body, query)
