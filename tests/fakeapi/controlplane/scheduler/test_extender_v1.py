"""Requests to extenders, with their keys in order, and the decoding of responses."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.controlplane.scheduler import extender_v1
from fakeapi.controlplane.scheduler.extender_v1 import (
    DecodedFilterResult,
    DecodedMetaVictims,
    ExtenderResponseError,
    FatalResponseError,
    decode_binding_result,
    decode_filter_result,
    decode_host_priorities,
    decode_preemption_result,
)
from fakeapi.controlplane.scheduler.options import Call
from fakeapi.demo.scenarios import captured_request
from tests.builders import Document


def as_stored(document: Document, kind: str) -> bytes:
    """Return an object as an API server has it."""
    return orjson.dumps({"kind": kind, "apiVersion": "v1", **document})


def captured(name: str) -> Document:
    """Return a body that a real kube-scheduler has sent."""
    body: Document = orjson.loads(captured_request(name))
    return body


def decoded(body: bytes) -> tuple[list[str], Document]:
    """Return a body's keys in their order, and the body."""
    document: Document = orjson.loads(body)
    return list(document), document


@pytest.mark.parametrize(
    "name", ["filter-cache-true", "filter-after-preemption-cache-true", "prioritize-cache-true"]
)
def test_a_call_by_name_is_written_as_kube_scheduler_writes_it(name: str) -> None:
    expected = captured(name)
    sent = extender_v1.encode_filter_args(
        as_stored(expected["Pod"], "Pod"), expected["NodeNames"], None
    )
    assert decoded(sent) == (list(expected), expected)


def test_a_call_with_whole_nodes_is_written_as_kube_scheduler_writes_it() -> None:
    expected = captured("filter-cache-false")
    nodes = [as_stored(each, "Node") for each in expected["Nodes"]["items"]]
    sent = extender_v1.encode_filter_args(as_stored(expected["Pod"], "Pod"), (), nodes)
    assert decoded(sent) == (list(expected), expected)


def test_victims_by_uid_are_written_as_kube_scheduler_writes_them() -> None:
    expected = captured("preempt-cache-true")
    offers = {
        node: ([pod["UID"] for pod in each["Pods"]], each["NumPDBViolations"])
        for node, each in expected["NodeNameToMetaVictims"].items()
    }
    backwards = dict(reversed(offers.items()))
    sent = extender_v1.encode_preemption_args(as_stored(expected["Pod"], "Pod"), backwards, None)
    assert decoded(sent) == (list(expected), expected)
    assert list(decoded(sent)[1]["NodeNameToMetaVictims"]) == sorted(offers)


def test_whole_victims_are_written_as_kube_scheduler_writes_them() -> None:
    expected = captured("preempt-cache-false")
    offered = expected["NodeNameToVictims"]
    pods = {p["metadata"]["uid"]: as_stored(p, "Pod") for v in offered.values() for p in v["Pods"]}
    offers = {
        node: ([pod["metadata"]["uid"] for pod in each["Pods"]], each["NumPDBViolations"])
        for node, each in offered.items()
    }
    sent = extender_v1.encode_preemption_args(as_stored(expected["Pod"], "Pod"), offers, pods)
    assert decoded(sent) == (list(expected), expected)


def test_a_binding_has_four_fields() -> None:
    fields = {"PodName": "p", "PodNamespace": "s", "PodUID": "u", "Node": "n"}
    assert decoded(extender_v1.encode_binding_args("s", "p", "u", "n")) == (list(fields), fields)


@pytest.mark.parametrize("prefix", ["http://h/a/b", "http://h/a/b/", "http://h/a/b//"])
def test_trailing_slashes_of_the_prefix_are_dropped(prefix: str) -> None:
    assert Call(prefix, "filter", b"").url == "http://h/a/b/filter"


FILTER_RESULTS: dict[str, tuple[str, DecodedFilterResult]] = {
    "names": ('{"NodeNames": ["a", "b"]}', DecodedFilterResult(names=("a", "b"))),
    "any casing": ('{"nodenames": ["a"], "ERROR": "no"}', DecodedFilterResult(("a",), error="no")),
    "unknown keys": ('{"NodeNames": [], "Version": 3}', DecodedFilterResult(names=())),
    "nulls": ('{"NodeNames": null, "Nodes": null, "FailedNodes": null}', DecodedFilterResult()),
    "a null document": ("null", DecodedFilterResult()),
    "trailing bytes": ('{"NodeNames": ["a"]} trailing', DecodedFilterResult(names=("a",))),
    "a null for a name": ('{"NodeNames": [null]}', DecodedFilterResult(names=("",))),
    "nodes": (
        '{"Nodes": {"metadata": {}, "items": [{"metadata": {"name": "a"}, "spec": {}}]}}',
        DecodedFilterResult(nodes=("a",)),
    ),
    "no items": ('{"Nodes": {}}', DecodedFilterResult(nodes=())),
    "reasons": (
        '{"FailedNodes": {"a": "x", "b": null}, "FailedAndUnresolvableNodes": {"c": "y"}}',
        DecodedFilterResult(failed={"a": "x", "b": ""}, unresolvable={"c": "y"}),
    ),
}


@pytest.mark.parametrize("name", FILTER_RESULTS)
def test_answers_are_read_as_go_reads_them(name: str) -> None:
    body, answer = FILTER_RESULTS[name]
    assert decode_filter_result(body.encode()) == answer


UNREADABLE: list[tuple[Any, bytes, str]] = [
    (decode_filter_result, b"", "EOF"),
    (decode_filter_result, b"  \n", "EOF"),
    (decode_filter_result, b'{"NodeNames": ["a"', "unexpected EOF"),
    (decode_filter_result, b"<html>", "invalid character '<' looking for beginning of value"),
    (decode_filter_result, b"NaN", "invalid character 'N' looking for beginning of value"),
    (
        decode_filter_result,
        b"[]",
        "json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult",
    ),
    (
        decode_filter_result,
        b'{"NodeNames": "a"}',
        (
            "json: cannot unmarshal string into Go struct field ExtenderFilterResult.NodeNames of "
            "type []string"
        ),
    ),
    (
        decode_filter_result,
        b'{"FailedNodes": ["a"]}',
        (
            "json: cannot unmarshal array into Go struct field ExtenderFilterResult.FailedNodes of "
            "type map[string]string"
        ),
    ),
    (
        decode_preemption_result,
        b'{"NodeNameToMetaVictims": {"n": {"Pods": [], "NumPDBViolations": 1.0}}}',
        (
            "json: cannot unmarshal number 1.0 into Go struct field MetaVictims.NumPDBViolations "
            "of type int64"
        ),
    ),
    (
        decode_host_priorities,
        b"{}",
        "json: cannot unmarshal object into Go value of type v1.HostPriorityList",
    ),
    (
        decode_host_priorities,
        b'[{"Host": "a", "Score": true}]',
        "json: cannot unmarshal bool into Go struct field HostPriority.Score of type int64",
    ),
]


@pytest.mark.parametrize(("read", "body", "problem"), UNREADABLE)
def test_an_answer_that_go_cannot_decode_is_an_error(read: Any, body: bytes, problem: str) -> None:
    with pytest.raises(ExtenderResponseError) as caught:
        read(body)
    assert str(caught.value) == problem


def test_victims_are_read_from_uids_in_their_order() -> None:
    body = {"nodeNameToMetaVictims": {"n": {"pods": [{"uid": "2"}, {"UID": "1"}]}, "m": {}}}
    assert decode_preemption_result(orjson.dumps(body)) == {
        "n": DecodedMetaVictims(("2", "1"), 0),
        "m": DecodedMetaVictims((), 0),
    }
    assert decode_preemption_result(b"{}") == decode_preemption_result(b"null") == {}


@pytest.mark.parametrize(
    "body",
    [
        b'{"NodeNameToMetaVictims": {"n": null}}',
        b'{"NodeNameToMetaVictims": {"n": {"Pods": [null], "NumPDBViolations": 0}}}',
    ],
)
def test_nulls_on_which_kube_scheduler_panics_are_fatal(body: bytes) -> None:
    with pytest.raises(FatalResponseError, match="kube-scheduler panics"):
        decode_preemption_result(body)


def test_scores_and_bindings_are_read() -> None:
    assert decode_host_priorities(b'[{"host": "a", "Score": 7}, {}, null]') == [("a", 7), ("", 0)]
    assert decode_host_priorities(b"null") == []
    assert (decode_binding_result(b'{"Error": "full"}'), decode_binding_result(b"{}")) == (
        "full",
        "",
    )
