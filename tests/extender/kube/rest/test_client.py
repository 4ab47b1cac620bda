"""Verbs, paging and watches over a scripted server."""

from __future__ import annotations

import msgspec
import pytest

from extender.kube.rest.api_errors import ApiError, MalformedError, NestedTooDeeplyError
from extender.kube.rest.client import Client, ObjectList, PatchType, Selection
from extender.kube.rest.resources import NODES, PODS
from extender.kube.rest.transport import Response, TransportError
from tests.extender.kube.conftest import (
    Lost,
    Reply,
    ScriptedApi,
    SteppedClock,
    Thing,
    TooLong,
    Watch,
    a_list,
    a_refusal,
    a_watch,
    added,
    an_object,
    bookmark,
    thing,
)

WEB = PODS.object("web", "shop")


def scripted(*script: Reply) -> tuple[Client, ScriptedApi]:
    api = ScriptedApi(SteppedClock(), *script)
    return Client(api), api


async def listing(
    *script: Reply, version: str = "", selection: Selection | None = None
) -> tuple[ObjectList[Thing], ScriptedApi]:
    client, api = scripted(*script)
    found = await client.list(PODS, thing, selection or Selection(), resource_version=version)
    return found, api


@pytest.mark.parametrize("verb", ["get", "create", "update", "patch"])
async def test_the_returned_object_is_decoded(verb: str) -> None:
    client, api = scripted(Response(201, an_object("web", 5)))
    calls = {
        "get": lambda: client.get(WEB, thing),
        "create": lambda: client.create(PODS.collection("shop"), b"{}", thing),
        "update": lambda: client.update(WEB, b"{}", thing),
        "patch": lambda: client.patch(WEB, PatchType.MERGE, b"{}", thing),
    }
    assert await calls[verb]() == Thing("web", "5")
    methods = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH"}
    assert api.requests[0].request.method == methods[verb]
    assert api.requests[0].request.body == (None if verb == "get" else b"{}")


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        (PatchType.MERGE, "application/merge-patch+json"),
        (PatchType.STRATEGIC, "application/strategic-merge-patch+json"),
        (PatchType.JSON, "application/json-patch+json"),
    ],
)
async def test_a_patch_has_a_content_type(kind: PatchType, content_type: str) -> None:
    client, api = scripted(Response(200, an_object("web", 5)))
    await client.patch(WEB.subresource("status"), kind, b"[]", thing)
    assert api.requests[0].request.content_type == content_type
    assert api.requests[0].request.path == "/api/v1/namespaces/shop/pods/web/status"


async def test_a_deletion_may_have_a_uid_and_a_grace_period() -> None:
    client, api = scripted(Response(200, b"{}"), Response(202, b"{}"))
    await client.delete(WEB)
    await client.delete(WEB, uid="u-1", grace_period_seconds=0)
    bodies = [msgspec.json.decode(each.request.body or b"") for each in api.requests]
    assert bodies == [{}, {"gracePeriodSeconds": 0, "preconditions": {"uid": "u-1"}}]


async def test_a_refusal_has_the_request_and_the_message() -> None:
    client, _ = scripted(a_refusal(404, "NotFound"))
    with pytest.raises(ApiError, match="GET /api/v1/nodes/n9: 404 NotFound: it is NotFound"):
        await client.get(NODES.object("n9"), thing)


async def test_an_unreachable_server_is_not_a_refusal() -> None:
    client, _ = scripted(Lost())
    with pytest.raises(TransportError):
        await client.get(WEB, thing)


async def test_a_list_consists_of_its_pages() -> None:
    found, api = await listing(
        a_list(9, an_object("a", 1), token="t1"),
        a_list(9, token="t2"),
        a_list(9, an_object("b", 2)),
        selection=Selection("", "app=web", ""),
    )
    assert found == ObjectList("9", [Thing("a", "1"), Thing("b", "2")])
    assert [each.query for each in api.requests] == [
        {"labelSelector": "app=web", "limit": "500"},
        {"labelSelector": "app=web", "limit": "500", "continue": "t1"},
        {"labelSelector": "app=web", "limit": "500", "continue": "t2"},
    ]


@pytest.mark.parametrize("before", [a_list(9, token="t"), a_list(9, an_object("a", 1), token="t")])
async def test_a_list_with_an_expired_token_is_repeated_without_pages(before: Reply) -> None:
    found, api = await listing(
        before, a_refusal(410, "Expired"), a_list(12, an_object("b", 11)), version="0"
    )
    assert found == ObjectList("12", [Thing("b", "11")])
    assert api.requests[2].query == {"resourceVersion": "0"}


async def test_a_list_that_expired_on_its_first_page_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        await listing(a_refusal(410, "Expired"), version="5")
    assert refused.value.expired


@pytest.mark.parametrize(
    ("version", "query"),
    [
        ("", {"limit": "500"}),
        ("0", {"resourceVersion": "0", "limit": "500"}),
        ("77", {"resourceVersion": "77"}),
    ],
)
async def test_a_list_at_least_as_new_as_a_version_has_no_limit(
    version: str, query: dict[str, str]
) -> None:
    _, api = await listing(a_list(80), version=version)
    assert api.requests[0].query == query


async def test_null_items_are_an_empty_list() -> None:
    found, _ = await listing(Response(200, b'{"metadata":{"resourceVersion":"4"},"items":null}'))
    assert found == ObjectList("4", [])


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items":[]}', b'{"metadata":{},"items":[{]}'])
async def test_a_response_that_is_no_list_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError, match="GET /api/v1/pods"):
        await listing(Response(200, body))


async def test_a_list_with_an_object_nested_too_deeply_is_malformed() -> None:
    with pytest.raises(NestedTooDeeplyError, match=r"GET /api/v1/pods.* nested too deeply"):
        await listing(a_list(9, _nested_deeply()))


async def test_a_frame_with_an_object_nested_too_deeply_is_malformed() -> None:
    client, _ = scripted(a_watch(b'{"type":"ADDED","object":%s}' % _nested_deeply()))
    async with client.watch(PODS, resource_version="2", timeout_seconds=60) as events:
        with pytest.raises(NestedTooDeeplyError, match="an object is nested too deeply"):
            await anext(events)


async def test_large_lists_are_decoded_whole_and_in_order() -> None:
    names = [f"pod-{number}" for number in range(1201)]
    found, _ = await listing(a_list(9, *(an_object(name, 1) for name in names)))
    assert [item.name for item in found.items] == names


async def test_a_watch_returns_events_until_the_server_ends_it() -> None:
    client, api = scripted(a_watch(added("a", 3), bookmark(8)))
    async with client.watch(PODS, resource_version="2", timeout_seconds=60) as events:
        found = [(event.type, event.resource_version) async for event in events]
    assert found == [("ADDED", "3"), ("BOOKMARK", "8")]
    assert api.requests[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "2",
        "timeoutSeconds": "60",
    }
    assert api.requests[0].request.idle_timeout == 90


async def test_a_refused_watch_is_an_error_on_entering() -> None:
    client, _ = scripted(Watch((b"try later",), 503, {"retry-after": "4"}))
    with pytest.raises(ApiError, match="503 Service Unavailable: try later") as refused:
        async with client.watch(PODS, resource_version="2", timeout_seconds=60):
            pass
    assert refused.value.retry_after == 4


async def test_a_frame_over_the_limit_is_malformed() -> None:
    client, _ = scripted(a_watch(TooLong()))
    async with client.watch(PODS, resource_version="2", timeout_seconds=60) as events:
        with pytest.raises(MalformedError, match="a line too long to hold"):
            await anext(events)


async def test_closing_the_client_closes_its_transport() -> None:
    client, api = scripted()
    await client.close()
    assert api.played.is_set()


def _nested_deeply() -> bytes:
    levels = 100_000
    spec = b'{"a":' * levels + b"1" + b"}" * levels
    return b'{"metadata":{"name":"a","resourceVersion":"3"},"spec":%s}' % spec
