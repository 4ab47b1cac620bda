"""The Go decoder of these tests rejects what Go rejects."""

from __future__ import annotations

import pytest

from tests.builders import node, pod, snapshot
from tests.extender.go_decoder import (
    FilterResult,
    GoError,
    Victims,
    decode_filter_result,
    decode_preemption_result,
    filtered,
    preempted,
)


def test_keys_in_any_casing_unknown_keys_and_nulls_are_fine() -> None:
    body = b'{"NODES":null,"nodenames":["a"],"failedNodes":{"b":"why"},"error":null,"new":[1]}'
    assert decode_filter_result(body) == FilterResult(names=["a"], failed={"b": "why"})


def test_a_null_does_not_erase_what_came_before_it() -> None:
    assert decode_filter_result(b'{"NodeNames":["a"],"nodenames":null}').names == ["a"]


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'"text"',
        b'{"NodeNames":"a"}',
        b'{"NodeNames":[1]}',
        b'{"FailedNodes":[]}',
        b'{"FailedNodes":{"a":{}}}',
        b'{"Error":5}',
        b'{"Nodes":[]}',
        b'{"Nodes":{"items":{}}}',
        b'{"Nodes":{"items":["a"]}}',
        b'{"Error":NaN}',
    ],
)
def test_wrong_types_are_errors(body: bytes) -> None:
    with pytest.raises(GoError):
        decode_filter_result(body)


@pytest.mark.parametrize(
    "entry",
    [
        b"null",
        b"[]",
        b'{"Pods":[null]}',
        b'{"Pods":{}}',
        b'{"Pods":["uid"]}',
        b'{"Pods":[{"UID":1}]}',
        b'{"NumPDBViolations":"1"}',
        b'{"NumPDBViolations":1.0}',
        b'{"NumPDBViolations":true}',
        b'{"NumPDBViolations":9223372036854775808}',
    ],
)
def test_victims_that_go_cannot_decode(entry: bytes) -> None:
    with pytest.raises(GoError):
        decode_preemption_result(b'{"NodeNameToMetaVictims":{"n":%s}}' % entry)


def test_victims_as_go_decodes_them() -> None:
    body = b'{"nodenametometavictims":{"n":{"pods":[{"uid":"u"}],"numpdbviolations":null}}}'
    assert decode_preemption_result(body) == {"n": Victims(("u",), 0)}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b'{"NodeNames":["c"]}', "not found in the input"),
        (b'{"NodeNames":["a"]}', "dropped without a status"),
        (b'{"NodeNames":["a","b"],"Error":"no"}', "no"),
    ],
)
def test_the_client_checks_the_filtered_nodes(body: bytes, complaint: str) -> None:
    with pytest.raises(GoError, match=complaint):
        filtered(body, ["a", "b"], cached=True)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (b'"other":{"Pods":[{"UID":"web"}]}', "not found in the snapshot"),
        (b'"node-1":{"Pods":[{"UID":"api"}]}', "not found there"),
    ],
)
def test_the_client_looks_every_victim_up(entry: bytes, complaint: str) -> None:
    moment = snapshot(
        node("node-1"), node("node-2"), pod("web", on="node-1"), pod("api", on="node-2")
    )
    with pytest.raises(GoError, match=complaint):
        preempted(b'{"NodeNameToMetaVictims":{%s}}' % entry, moment)
