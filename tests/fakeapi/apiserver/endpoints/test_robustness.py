"""Any requests are answered with a Status or an object, and the invariants hold."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints import Api, IdAndTimeSources, Request, Response, Watch
from fakeapi.apiserver.objects.patch import PATCH_TYPES
from fakeapi.apiserver.store.object_store import Store
from tests.fakeapi.api_requests import send
from tests.properties.sampling import examples

_UPSTREAMS_OWN = ("should not be set on objects", "strconv.ParseUint: parsing")
"""Messages of errors that a real server answers with 500, too."""

COLLECTIONS = (
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/pods",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(("", "n", "team", "default")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "name",
                    "labels",
                    "finalizers",
                    "$patch",
                    "$retainKeys",
                    "conditions",
                    "type",
                    "op",
                )
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
metadata = st.fixed_dictionaries(
    {"name": st.sampled_from("nm")},
    optional={
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
        "finalizers": st.lists(st.sampled_from(("a/a", "b/b")), max_size=2),
        "resourceVersion": st.sampled_from(("", "0", "5", "x")),
        "uid": st.sampled_from(("", "uid-4", 3)),
        "deletionGracePeriodSeconds": json_values,
    },
)
specs = st.dictionaries(st.sampled_from(("nodeName", "finalizers", "replicas")), json_values)
documents = st.fixed_dictionaries(
    {"metadata": metadata}, optional={"spec": specs, "status": specs, "other": json_values}
)
operations = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(("add", "remove", "replace", "move", "copy", "test"))},
        optional={
            "path": st.sampled_from(("", "/spec", "/spec/a", "/metadata", "/metadata/labels/-")),
            "from": st.sampled_from(("/spec", "/metadata/name", "")),
            "value": json_values,
        },
    ),
    min_size=1,
    max_size=4,
)
delete_options = st.fixed_dictionaries(
    {},
    optional={"gracePeriodSeconds": st.integers(-1, 3) | json_values, "preconditions": json_values},
)
queries = st.dictionaries(
    st.sampled_from(
        ("labelSelector", "fieldSelector", "resourceVersion", "limit", "continue", "watch")
    ),
    st.sampled_from(("", "1", "a", "a in (b", "metadata.name=n", "true", "e30")),
    max_size=2,
)
collections = st.sampled_from(COLLECTIONS)
items = st.builds(
    lambda collection, name, below: f"{collection}/{name}{below}",
    collections,
    st.sampled_from("nnnm"),
    st.sampled_from(("", "", "/status")),
)


def written(method: str, paths: Any, bodies: Any, types: Any) -> Any:
    """Build requests with a body, some of them with arbitrary JSON."""
    raw = (bodies | bodies | bodies | json_values).map(orjson.dumps)
    return st.builds(Request, st.just(method), paths, body=raw, content_type=types)


plain = st.just("application/json")
requests = st.one_of(
    written("POST", collections, documents, plain),
    written("POST", collections, documents, plain),
    written("PUT", items, documents, plain),
    written("PATCH", items, documents, st.sampled_from(PATCH_TYPES[1:])),
    written("PATCH", items, operations, st.just(PATCH_TYPES[0])),
    written("DELETE", items, delete_options, plain),
    written("DELETE", collections, delete_options, plain),
    st.builds(Request, st.just("GET"), collections | items, queries),
)


def new_api() -> Api:
    uids = iter(range(10_000))
    sources = IdAndTimeSources(
        lambda offset: f"2026-01-01T00:00:{offset % 60:02}Z",
        lambda: f"uid-{next(uids)}",
        lambda: "abcde",
        lambda: 0,
    )
    api = Api(Store(), sources)
    for collection in COLLECTIONS:
        body = b'{"metadata":{"name":"n","labels":{"a":"x"}},"spec":{}}'
        api.handle(Request("POST", collection, body=body))
    return api


def frames(watch: Watch) -> list[Any]:
    lines: list[bytes] = []
    while more := watch.read(7):
        lines += more
    return list(map(orjson.loads, lines))


def listed(api: Api, path: str) -> dict[str, Any]:
    items = orjson.loads(send(api, "GET", path).body)["items"]
    return {item["metadata"]["uid"]: item for item in items}


@settings(max_examples=examples(200))
@given(st.lists(requests, max_size=25))
def test_no_request_breaks_the_server_and_a_watch_always_equals_the_list(
    script: list[Request],
) -> None:
    api = new_api()
    watched: dict[str, Watch] = {}
    for path in ("/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces"):
        opened = api.handle(Request("GET", path, {"watch": "1"}))
        assert isinstance(opened, Watch)
        watched[path] = opened
    for request in script:
        answer = api.handle(request)
        if isinstance(answer, Response) and answer.status >= 500:
            document = orjson.loads(answer.body)
            assert answer.status == 504 or any(w in document["message"] for w in _UPSTREAMS_OWN)
    for path, opened in watched.items():
        state: dict[str, Any] = {}
        versions = []
        for frame in frames(opened):
            thing = frame["object"]
            versions.append(int(thing["metadata"]["resourceVersion"]))
            del thing["kind"], thing["apiVersion"]
            state[thing["metadata"]["uid"]] = thing
            if frame["type"] == "DELETED":
                del state[thing["metadata"]["uid"]]
        assert versions == sorted(set(versions))
        assert state == listed(api, path)
