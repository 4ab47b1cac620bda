"""Requests for objects in the words of kubectl, and the users of a server."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.endpoints import Api, Request, StatusError
from fakeapi.apiserver.testing.management_api import ManagementApi
from fakeapi.apiserver.testing.object_requests import OBJECTS_PATH, object_request
from fakeapi.apiserver.wire.http_messages import parse_query

PATHS = {
    "kind=po&name=web": "/api/v1/namespaces/default/pods/web",
    "kind=Pod&name=web&namespace=team": "/api/v1/namespaces/team/pods/web",
    "kind=pods": "/api/v1/pods",
    "kind=pods&namespace=team": "/api/v1/namespaces/team/pods",
    "kind=node&name=n&namespace=team": "/api/v1/nodes/n",
    "kind=deployments.apps": "/apis/apps/v1/deployments",
    "kind=hpa": "/apis/autoscaling/v2/horizontalpodautoscalers",
    "kind=hpa.v1.autoscaling": "/apis/autoscaling/v1/horizontalpodautoscalers",
    "kind=Deployment&apiVersion=apps/v1": "/apis/apps/v1/deployments",
}


@pytest.mark.parametrize(("words", "path"), PATHS.items(), ids=PATHS)
def test_words_are_the_path_of_the_api(api: Api, words: str, path: str) -> None:
    query = parse_query(f"{words}&watch=true")
    request = object_request(api.kinds, Request("GET", OBJECTS_PATH, query))
    assert (request.path, request.query) == (path, {"watch": "true"})


@pytest.mark.parametrize("words", ["", "kind=gadget", "kind=pods.apps", "kind=Pod&apiVersion=v2"])
def test_a_kind_that_is_not_served_is_refused(api: Api, words: str) -> None:
    with pytest.raises(StatusError, match=r"no kind '.*' .*is served here"):
        object_request(api.kinds, Request("GET", OBJECTS_PATH, parse_query(words)))


def post_user(api: Api, body: bytes) -> tuple[int, bytes]:
    """Return the status and the body of the answer."""
    answer = ManagementApi(api).handle(Request("POST", "/_fakeapi/users", body=body))
    return answer.status, answer.body


def test_a_user_has_a_token_until_the_groups_are_replaced(api: Api) -> None:
    management = ManagementApi(api)
    token = management.add_user("alice", ["devs"])
    assert management.add_user("alice", ["ops"]) == token
    user = api.tokens.user_of(token)
    assert user is not None
    assert (user.name, user.groups) == ("alice", ("ops", "system:authenticated"))


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"name": "", "groups": []}', b'{"name": "a"}', b"[]"]
)
def test_an_incomplete_user_is_refused(api: Api, body: bytes) -> None:
    assert post_user(api, body)[0] == 400
    assert post_user(api, b'{"name": "alice", "groups": []}')[0] == 200
