"""The three kinds of patch, from a document and a patch to a document."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import StatusError
from fakeapi.apiserver.kinds.builtin import NODES, PODS
from fakeapi.apiserver.objects.patch import (
    MERGE_PATCH,
    STRATEGIC_PATCH,
    apply_patch,
    json_patch,
    merge_patch,
)
from tests.builders import Document
from tests.fakeapi.api_requests import APPLY, JSON


def strategic(document: Any, patch: Any, kind: Any = PODS) -> Any:
    return apply_patch(kind, document, STRATEGIC_PATCH, orjson.dumps(patch))


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # the table of RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([], {"a": {"b": [1]}}),
        ([{"op": "add", "path": "/a/b/-", "value": 2}], {"a": {"b": [1, 2]}}),
        ([{"op": "replace", "path": "/a", "value": 0}], {"a": 0}),
        ([{"op": "replace", "path": "/b~1", "value": 0}], {"a": {"b": [1]}, "b/": 0}),
        ([{"op": "remove", "path": "/a/b/0"}], {"a": {"b": []}}),
        ([{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": [1]}, "c": {"b": [1]}}),
        ([{"op": "move", "from": "/a/b", "path": "/d"}], {"a": {}, "d": [1]}),
        ([{"op": "test", "path": "/a/b/0", "value": 1}], {"a": {"b": [1]}}),
        ([{"op": "test", "path": "/a/c", "value": None}], {"a": {"b": [1]}}),
        ([{"op": "test", "path": "/c"}], {"a": {"b": [1]}}),
    ],
)
def test_json_patch(operations: Any, result: Any) -> None:
    assert json_patch({"a": {"b": [1]}}, operations) == result


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ({}, 400),
        ([1], 400),
        ([{"op": "leap", "path": "/a"}], 422),
        ([{"path": "/a"}], 422),
        ([{"op": "test", "path": "/a", "value": 1}], 422),
        ([{"op": "test", "path": "/a/b", "value": None}], 422),
        ([{"op": "test", "path": "/a/b/1", "value": None}], 422),
        ([{"op": "test", "path": "/c/d", "value": None}], 422),
        ([{"op": "test", "path": "", "value": None}], 422),
        ([{"op": "test", "value": None}], 422),
        ([{"op": "remove", "path": "/nope"}], 422),
        ([{"op": "add", "path": "/a/b/9", "value": 1}], 422),
        ([{"op": "add", "path": "/a/b/x", "value": 1}], 422),
        ([{"op": "add", "path": "a", "value": 1}], 422),
        ([{"op": "add", "path": 3, "value": 1}], 400),
        ([{"op": "add", "path": "/a"}], 422),
        ([{"op": "copy", "path": "/a"}], 422),
        ([{"op": "move", "from": "/a", "path": "/a/b"}], 422),
        ([{"op": "test", "path": "/a/b/0", "value": 1}] * 10_001, 413),
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused(operations: Any, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        json_patch({"a": {"b": [1]}}, operations)
    assert refused.value.code == code


def test_copies_that_double_with_each_operation_are_refused() -> None:
    bomb = [{"op": "copy", "from": "/a", "path": f"/a/b{n}"} for n in range(60)]
    with pytest.raises(StatusError) as refused:
        json_patch({"a": {"text": "x" * 100}}, bomb)
    assert refused.value.code in (413, 422)


def test_operations_that_nest_too_deeply_are_refused() -> None:
    deeper = [{"op": "add", "path": "/a" * n, "value": {}} for n in range(1, 400)]
    with pytest.raises(StatusError) as refused:
        json_patch({}, deeper)
    assert refused.value.code == 422


def containers(*items: str | Document) -> Document:
    """Build a pod with containers; texts are their names."""
    named = [{"name": each} if isinstance(each, str) else each for each in items]
    return {"spec": {"containers": named}}


def container(name: str, *variables: Document, **fields: Any) -> Document:
    return {"name": name, **({"env": list(variables)} if variables else {}), **fields}


X, Y = {"name": "X", "value": "1"}, {"name": "Y", "value": "2"}
READY = {"type": "Ready", "status": "True"}
STRATEGIC_MERGES: dict[str, tuple[Document, Document, Document]] = {
    "maps merge": ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
    "null deletes": ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "keyed lists merge by key": (
        containers(container("a", image="1"), container("b", image="1")),
        containers(container("b", image="2"), "c"),
        containers(container("a", image="1"), container("b", image="2"), "c"),
    ),
    "keyed lists merge inside keyed lists": (
        containers(container("a", X)),
        containers(container("a", Y)),
        containers(container("a", Y, X)),
    ),
    "elements of the patch keep its order, and others stay before their successors": (
        containers("a", "b", "c"),
        containers("new", container("b", image="2")),
        containers("new", "a", container("b", image="2"), "c"),
    ),
    "an element is deleted by its key": (
        containers("a", "b"),
        containers({"name": "a", "$patch": "delete"}),
        containers("b"),
    ),
    "a keyed list is replaced": (
        containers("a", "b"),
        containers("c", {"$patch": "replace"}),
        containers("c"),
    ),
    "a list without a key is replaced": (
        {"spec": {"tolerations": [{"key": "a"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
    ),
    "a set is united": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["b", "c"]}},
        {"metadata": {"finalizers": ["a", "b", "c"]}},
    ),
    "values are deleted from a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    "a map is replaced": (
        {"a": {"b": 1, "c": 2}},
        {"a": {"$patch": "replace", "d": 3}},
        {"a": {"d": 3}},
    ),
    "a map is emptied": ({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}),
    "only the retained keys stay": (
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"spec": {"volumes": [{"$retainKeys": ["name", "secret"], "name": "v", "secret": {}}]}},
        {"spec": {"volumes": [{"name": "v", "secret": {}}]}},
    ),
    "the order of elements is set": (
        {"status": {"conditions": [READY, {"type": "Other"}]}},
        {
            "status": {
                "$setElementOrder/conditions": [{"type": "New"}, {"type": "Ready"}],
                "conditions": [{"type": "New", "status": "False"}],
            }
        },
        {"status": {"conditions": [{"type": "New", "status": "False"}, READY, {"type": "Other"}]}},
    ),
}


@pytest.mark.parametrize(
    ("document", "patch", "result"), STRATEGIC_MERGES.values(), ids=STRATEGIC_MERGES
)
def test_strategic_merge_patch(document: Any, patch: Any, result: Any) -> None:
    assert strategic(document, patch) == result


def test_taints_are_replaced_since_they_have_no_merge_key() -> None:
    document = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    patched = strategic(document, {"spec": {"taints": [{"key": "b"}]}}, NODES)
    assert patched == {"spec": {"taints": [{"key": "b"}]}}


@pytest.mark.parametrize(
    "patch",
    [
        containers({"image": "no name"}),
        {"spec": {"containers": ["a"]}},
        {"spec": {"$patch": "explode"}},
        {"spec": {"$retainKeys": "name"}},
        {"spec": {"$setElementOrder/containers": "a"}},
        [],
    ],
)
def test_an_invalid_strategic_patch_is_refused(patch: Any) -> None:
    with pytest.raises(StatusError) as refused:
        strategic(containers("a"), patch)
    assert refused.value.code == 400


def test_long_lists_merge_in_linear_time() -> None:
    conditions = [{"type": f"c{n}", "status": "True"} for n in range(20_000)]
    patch = {
        "status": {
            "conditions": conditions,
            "$setElementOrder/conditions": [{"type": c["type"]} for c in reversed(conditions)],
        }
    }
    patched = strategic({"status": {"conditions": conditions}}, patch)
    assert patched["status"]["conditions"] == conditions[::-1]


@pytest.mark.parametrize("content_type", [APPLY, JSON, ""])
def test_other_patch_types_are_refused_as_by_a_router(content_type: str) -> None:
    with pytest.raises(StatusError) as refused:
        apply_patch(PODS, {}, content_type, b"{}")
    assert refused.value.code == 415
    assert refused.value.message == "415: Unsupported Media Type"


@pytest.mark.parametrize("body", [b"", b"{", b'{"a":' * 300 + b"1" + b"}" * 300, b"\xff"])
def test_an_invalid_or_too_deep_patch_is_refused(body: bytes) -> None:
    with pytest.raises(StatusError) as refused:
        apply_patch(PODS, {}, MERGE_PATCH, body)
    assert refused.value.code == 400
