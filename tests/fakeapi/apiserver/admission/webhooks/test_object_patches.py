"""A patched object equals one that was copied, read and completed as a whole."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch
import jsonpointer
from hypothesis import example, given
from hypothesis import strategies as st

from fakeapi.apiserver.admission.webhooks.attributes import VersionedObjects
from fakeapi.apiserver.admission.webhooks.object_patches import (
    apply_webhook_patch as patched_object,
)
from fakeapi.apiserver.admission.webhooks.object_patches import decode_changes
from fakeapi.apiserver.defaulting.field_defaults import apply_defaults
from fakeapi.apiserver.kinds import BUILTIN, ResourceInfo
from fakeapi.apiserver.kinds.builtin import PODS
from fakeapi.apiserver.objects.patch import json_patch
from fakeapi.apiserver.schema.typed_document import read_document
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.raw_json import json_equal
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError
from tests.builders import Document

MAPS = next(kind for kind in BUILTIN.all if kind.resource == "configmaps")
POD: Document = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "labels": {"a": "b"}},
    "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}],
        "tolerations": [{"key": "k"}],
    },
}
MAP: Document = {"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
HEADERS = {
    PODS: {"kind": "Pod", "apiVersion": "v1"},
    MAPS: {"kind": "ConfigMap", "apiVersion": "v1"},
}
SHAPES = VersionedObjects(BUILTIN, lambda _to, _from, document: document)
PATHS = (
    "/data",
    "/data/a",
    "/data/b~1c",
    "/metadata/annotations",
    "/metadata/labels",
    "/metadata/labels/a",
    "/metadata/more",
    "/more",
    "/spec",
    "/spec/affinity",
    "/spec/containers/0/image",
    "/spec/containers/0/resources/limits/cpu",
    "/spec/containers/-",
    "/spec/hostNetwork",
    "/spec/tolerations",
    "/status",
)
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        7,
        "1000m",
        "text",
        [],
        {},
        {"x": "y"},
        {"x": None},
        {"hostname": "h", "more": 1},
        {"nodeAffinity": {"more": {}}},
        [{"name": "d", "more": 1}],
        [{"key": "k", "operator": "Exists"}],
        {"containers": [{"name": "e", "resources": {"requests": {"cpu": "1000m"}}}]},
    ]
).map(deepcopy)  # values of one patch share nothing, as in what was decoded from JSON
OPERATIONS = st.lists(
    st.builds(
        lambda op, path, value: {"op": op, "path": path, "value": value},
        st.sampled_from(["add", "replace"]),
        st.sampled_from(PATHS),
        VALUES,
    ),
    max_size=3,
)
REMOVING = [{"op": "remove", "path": "/spec/tolerations/0"}]
MOVING = [{"op": "move", "from": "/metadata/labels", "path": "/metadata/annotations"}]


def patched(document: Document, operations: list[Document]) -> Document | None:
    """Return the patched document; None if the patch is refused."""
    try:
        after = json_patch(deepcopy(document), deepcopy(operations))
    except StatusError:
        return None
    assert isinstance(after, dict)
    return after


def outcome(read: Any, document: Document) -> Document | str:
    """Return a document as it is read, or why it cannot be."""
    try:
        read(document)
    except StructDecodeError as error:
        return str(error)
    return document


@given(st.sampled_from([(PODS, POD), (MAPS, MAP)]), OPERATIONS)
@example((PODS, POD), REMOVING)
@example((PODS, POD), MOVING)
def test_reading_set_fields_is_reading_all(of: Any, operations: list[Document]) -> None:
    kind, document = of
    read_document(kind, document := deepcopy(document))
    one, two = patched(document, operations), patched(document, operations)
    if one is None or two is None:
        return
    changes = outcome(lambda each: decode_changes(kind, each, operations), one)
    whole = outcome(lambda each: read_document(kind, each), two)
    assert changes == whole


def copied(
    kind: ResourceInfo, document: Document, operations: list[Document]
) -> Document | str | None:
    """Patch a copy, and read and complete all of it: the readable twin."""
    after = patched_copy(kind, document, operations)
    if after is None:
        return "refused"
    complete = outcome(lambda each: read_document(kind, each), after)
    if isinstance(complete, str) or json_equal(complete, {**HEADERS[kind], **document}):
        return complete if isinstance(complete, str) else None
    complete.setdefault("metadata", {})
    apply_defaults(kind, complete)
    return complete


def patched_copy(
    kind: ResourceInfo, document: Document, operations: list[Document]
) -> Document | None:
    """Return a copy patched by jsonpatch; None if the patch does not apply.

    In a map, a replacement is an addition, also if the member is missing.
    """
    after: Any = {**HEADERS[kind], **deepcopy(document)}
    added = [{**o, "op": "add"} if o["path"][-1] != "-" else o for o in operations]
    try:
        for operation, addition in zip(deepcopy(operations), deepcopy(added), strict=True):
            applied = addition if operation["op"] == "replace" else operation
            after = jsonpatch.JsonPatch([applied]).apply(after)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        return None
    header = {name: after.get(name) for name in ("kind", "apiVersion")}
    return after if isinstance(after, dict) and header == HEADERS[kind] else None


def shared(
    kind: ResourceInfo, document: Document, operations: list[Document]
) -> Document | str | None:
    try:
        return patched_object(SHAPES, kind, kind, document, deepcopy(operations))
    except StatusError as error:
        return error.message


@given(st.sampled_from([(PODS, POD), (MAPS, MAP)]), OPERATIONS.filter(bool))
@example((PODS, POD), REMOVING)
@example((PODS, POD), MOVING)
@example((PODS, POD), [{"op": "add", "path": "/spec/volumes", "value": [{"name": "v"}]}])
def test_patching_a_shared_object_is_patching_a_copy(of: Any, operations: list[Document]) -> None:
    kind, document = of[0], deepcopy(of[1])
    read_document(kind, document)
    apply_defaults(kind, document)
    before = deepcopy(document)
    expected, found = copied(kind, document, operations), shared(kind, document, operations)
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert expected == "refused" or found.endswith(f": {expected}")
    else:
        assert found == expected
    assert document == before
