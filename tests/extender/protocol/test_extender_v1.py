"""Go's bytes in and out: cases transcribed from upstream, and what Go's decoder accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.decoders.pods import decode_pod
from extender.protocol import extender_results, extender_v1
from extender.protocol.extender_v1 import CandidateVictims, ExtenderDecodeError
from extender.protocol.request_size import at_once
from policies.kubernetes.releases import NEWEST
from tests.builders import encoded, pod_json
from tests.extender.go_decoder import FilterResult, Victims, decode_filter_result
from tests.extender.go_decoder import decode_preemption_result as decode_result

Case = dict[str, Any]

_FILE = Path(__file__).parents[2] / "vectors" / "preemption.json"
_CASES: list[Case] = json.loads(_FILE.read_bytes())["cases"]
_NOT_SERVED = {"HostPriority": "belongs to the prioritize verb, which is not served yet"}


def cases(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in _CASES if case["kind"] == kind]


def wire_bytes(name: str) -> bytes:
    [case] = [case for case in _CASES if case["kind"] == "wire" and case["name"] == name]
    text: str = case["expect"]["json"]
    return text.encode()


def lowered(raw: bytes) -> bytes:
    """Return the JSON in lower case, as the upstream test of casing does."""
    return raw.lower()


TOO_LONG: Final = b"n" * 254
LARGE: Final = b'{"spec":{"x":"%s"}}' % (b" " * 3 * 2**20)
NAMES: Final = st.text('aé"\\\n', max_size=5)


class TestUpstreamCases:
    def test_every_wire_case_is_run_or_named_with_its_reason(self) -> None:
        names = {case["name"] for case in _CASES if case["kind"] == "wire"}
        assert names == {"ExtenderArgs", "ExtenderFilterResult", *_NOT_SERVED}

    def test_the_file_has_no_from_meta_case_to_run(self) -> None:
        # The kind is described there; the wire's way back is tested through the Go decoder.
        assert not cases("from-meta")

    def test_extender_args_keep_every_byte(self) -> None:
        raw = wire_bytes("ExtenderArgs")
        request = at_once(extender_v1.decode_filter(raw))
        assert request.names == ("node1",)
        assert request.nodes is not None
        [node] = request.nodes
        again = b'{"Pod":%s,"Nodes":{"metadata":{},"items":[%s]},"NodeNames":["node1"]}'
        assert again % (request.pod, bytes(node)) == raw

    def test_extender_args_in_lower_case_are_read_the_same(self) -> None:
        request = at_once(extender_v1.decode_filter(lowered(wire_bytes("ExtenderArgs"))))
        assert request.names == ("node1",)
        assert json.loads(request.pod)["metadata"] == {"name": "podname"}
        assert request.nodes is not None
        assert [json.loads(bytes(node))["metadata"]["name"] for node in request.nodes] == [
            "nodename"
        ]

    def test_extender_filter_result_is_written_as_go_writes_it(self) -> None:
        raw = wire_bytes("ExtenderFilterResult")
        assert (
            extender_results.encode(msgspec.json.decode(raw, type=extender_results.FilterResult))
            == raw
        )

    @pytest.mark.parametrize("form", [bytes, lowered])
    def test_extender_filter_result_is_what_go_reads(self, form: Any) -> None:
        assert decode_filter_result(form(wire_bytes("ExtenderFilterResult"))) == FilterResult(
            ["nodename"], ["node1"], {"foo": "bar"}, {"baz": "qux"}, "myerror"
        )

    @pytest.mark.parametrize("case", cases("to-meta"))
    def test_full_victims_become_their_uids(self, case: Case) -> None:
        pods = {pod["metadata"]["name"]: pod for pod in case["pods"]}
        full = {
            node: {
                "Pods": [pods[name] for name in given["victims"]],
                "NumPDBViolations": given["numPDBViolations"],
            }
            for node, given in case["candidatesIn"].items()
        }
        offers = at_once(
            extender_v1.decode_preempt(
                encoded({"Pod": case["preemptor"], "NodeNameToVictims": full})
            )
        ).candidates
        answered = extender_results.PreemptionResult(
            {
                node: extender_results.meta_victims(offer.uids, offer.violations)
                for node, offer in offers.items()
            }
        )
        assert json.loads(extender_results.encode(answered)) == case["expect"]

    @pytest.mark.parametrize("case", cases("interested"))
    def test_a_pod_concerns_an_extender_as_upstream_says(self, case: Case) -> None:
        pod = decode_pod(encoded(case["preemptor"]), NEWEST)
        managed = frozenset(resource["name"] for resource in case["managedResources"])
        assert pod.requests_any_of(managed) is case["expect"]["interested"]


@pytest.mark.parametrize(
    ("requests", "managed", "answer"),
    [
        ({"cpu": "1"}, (), "asked"),
        ({}, ("example.com/gpu",), "left alone"),
        ({"cpu": "1"}, ("example.com/gpu",), "left alone"),
        ({"example.com/gpu": "1"}, ("example.com/gpu",), "asked"),
        ({"example.com/gpu": "0"}, ("example.com/gpu", "example.com/nic"), "asked"),
    ],
)
def test_a_managed_resource_concerns_even_at_zero(
    requests: dict[str, str], managed: tuple[str, ...], answer: str
) -> None:
    document = pod_json()
    for kind in ("requests", "limits"):
        document["spec"]["containers"][0]["resources"] = {kind: requests}
        pod = decode_pod(encoded(document), NEWEST)
        assert pod.requests_any_of(frozenset(managed)) is (answer == "asked")


class TestFilterArgs:
    @pytest.mark.parametrize(
        ("body", "names"),
        [
            ({"Pod": {}, "NodeNames": ["a", "b"]}, ("a", "b")),
            ({"Pod": {}, "Nodes": None, "NodeNames": []}, ()),
            ({"pod": {}, "nodenames": ["a"]}, ("a",)),
            ({"POD": {}, "NODENAMES": ["a"], "New": {"x": [1]}}, ("a",)),
        ],
    )
    def test_names(self, body: Any, names: tuple[str, ...]) -> None:
        request = at_once(extender_v1.decode_filter(encoded(body)))
        assert (request.names, request.nodes) == (names, None)

    @pytest.mark.parametrize(
        "body",
        [
            b'{"Pod":{},"Nodes":null,"NodeNames":["a","b"]}',
            b'{"Pod":{},"Nodes":null,"NodeNames":["a", "b"]}\n',
            b'{"Pod":{},"Nodes":null,"NodeNames":["a","\\u0062"]}',
            b'{"Pod":{},"Nodes":null,"NodeNames":["x"],"NodeNames":["a","b"]}',
            b'{"NodeNames":["a","b"],"Pod":{},"Nodes":null}',
            b'{"NodeNames":["a","b"],"Nodes":null,"Pod":{"NodeNames":["x"]}}',
            b'{"NodeNames":["a","b"],"Nodes":null,"Pod":{"x":[{"NodeNames":["x"]}]}}',
            b'{"Pod":{"NodeNames":["x"]},"Nodes":null,"NodeNames":["a","b"]}',
            b'{"Pod":{"x":"\\"NodeNames\\":[\\"x\\"]"},"Nodes":null,"NodeNames":["a","b"]}',
        ],
    )
    def test_names_at_any_position(self, body: bytes) -> None:
        request = at_once(extender_v1.decode_filter(body))
        assert request.names == ("a", "b")

    @pytest.mark.parametrize(
        ("nodes", "count"),
        [({"metadata": {}, "items": [{}, {}]}, 2), ({"items": None}, 0), ({}, 0)],
    )
    def test_nodes_in_full(self, nodes: Any, count: int) -> None:
        request = at_once(
            extender_v1.decode_filter(encoded({"Pod": {}, "Nodes": nodes, "NodeNames": None}))
        )
        assert request.names is None
        assert request.nodes is not None
        assert len(request.nodes) == count

    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            (b"", "ExtenderArgs: not JSON"),
            (b"{", "ExtenderArgs: not JSON"),
            (b"null", "ExtenderArgs: expected a JSON object"),
            (b"[]", "ExtenderArgs: expected a JSON object"),
            (b'{"Pod":{}} {}', "ExtenderArgs: not JSON"),
            (b'{"Pod":{,"Nodes":null,"NodeNames":["a"]}', "ExtenderArgs: not JSON"),
            (b'{"Pod":{},"Nodes":null,"NodeNames":["a"]', "ExtenderArgs: not JSON"),
            (b'{"Pod":{},"Nodes":null,"NodeNames":["a"]]}', "ExtenderArgs: not JSON"),
            (b'{"Pod":{"Nodes":null,"NodeNames":["a"]}', "ExtenderArgs: not JSON"),
            (b'{"Pod":{},"Nodes":null,"x"NodeNames":["a"]}', "ExtenderArgs: not JSON"),
            (b'{"Pod":{},"Nodes":null,"NodeNames":["a",2]}', "NodeNames: Expected str, got int at"),
            (b'{"Pod":null,"Nodes":null,"NodeNames":["a"]}', "ExtenderArgs: Pod is missing"),
            (b'{"Pod":{}}', "ExtenderArgs: neither Nodes nor NodeNames is set"),
            (b'{"Pod":{},"Nodes":null,"NodeNames":null}', "neither Nodes nor NodeNames"),
            (b'{"NodeNames":[]}', "ExtenderArgs: Pod is missing"),
            (b'{"Pod": null ,"NodeNames":[]}', "ExtenderArgs: Pod is missing"),
            (b'{"Pod":{},"NodeNames":"a"}', "NodeNames: Expected array, got str"),
            (b'{"Pod":{},"NodeNames":["a",1]}', "NodeNames: Expected str, got int at [1]"),
            (b'{"Pod":{},"Nodes":[]}', "Nodes: Expected object, got array"),
            (b'{"Pod":{},"Nodes":{"items":{}}}', "Nodes: Expected array | null, got object"),
            (b'{"Pod":{},"NodeNames":["\xff"]}', "NodeNames: not UTF-8"),
            (b'{"Pod":{},"\xff":1,"NodeNames":[]}', "ExtenderArgs: not JSON"),
            (b'{"Pod":%s,"NodeNames":[]}' % (b"[" * 10**5 + b"]" * 10**5), "nested too deeply"),
            (b'{"Pod":{},"Nodes":null,"NodeNames":["a","%s"]}' % TOO_LONG, "<= 253 at [1]"),
            (b'{"Pod":{},"NodeNames":["a", "%s"]}' % TOO_LONG, "<= 253 at [1]"),
            (b'{"Pod":%s,"Nodes":null,"NodeNames":["a"]}' % LARGE, "expected at most 3145728"),
            (b'{"Pod":%s,"NodeNames": []}' % LARGE, "expected at most 3145728"),
        ],
    )
    def test_a_decoding_error_names_the_expected_type(self, body: bytes, problem: str) -> None:
        with pytest.raises(ExtenderDecodeError) as raised:
            at_once(extender_v1.decode_filter(body))
        assert problem in str(raised.value)


META = "NodeNameToMetaVictims"
FULL = "NodeNameToVictims"


def by_uid(*uids: str | None) -> list[Any]:
    return [uid if uid is None else {"UID": uid} for uid in uids]


def in_full(*uids: str) -> list[Any]:
    return [pod_json(uid, uid=uid) for uid in uids]


class TestPreemptArgs:
    @pytest.mark.parametrize(
        ("field", "entries"),
        [
            (META, {"n": {"Pods": by_uid("x", "y"), "NumPDBViolations": 2}}),
            (FULL, {"n": {"Pods": in_full("x", "y"), "NumPDBViolations": 2}}),
            (META, {"n": {"pods": [{"uid": "x"}, {"Uid": "y"}], "numpdbviolations": 2}}),
            (META, {"n": {"Pods": [{"UID": "x"}, {"uid": "y"}], "NumPDBViolations": 2}}),
            (META, {"n": {"pods": by_uid("x", "y"), "NumPDBViolations": 2}}),
            (FULL, {"n": {"pods": in_full("x", "y"), "numpdbviolations": 2}}),
            (FULL, {"n": {"Pods": in_full("x", "y"), "numPDBViolations": 2}}),
            (META, {"n": {"Pods": by_uid("x", "y"), "NumPDBViolations": 2, "New": 1}, "m": None}),
        ],
    )
    @pytest.mark.parametrize("spelling", [str, str.lower, str.upper])
    def test_offers_in_either_form_and_any_casing(
        self, field: str, entries: Any, spelling: Any
    ) -> None:
        body = {spelling("Pod"): {}, spelling(field): entries, "Unknown": [None]}
        assert at_once(extender_v1.decode_preempt(encoded(body))).candidates == {
            "n": CandidateVictims(("x", "y"), 2)
        }

    @pytest.mark.parametrize(
        ("field", "entry", "offer"),
        [
            (META, {"Pods": [], "NumPDBViolations": 0}, CandidateVictims((), 0)),
            (META, {"Pods": None, "NumPDBViolations": None}, CandidateVictims((), 0)),
            (FULL, {"Pods": None, "NumPDBViolations": 1}, CandidateVictims((), 1)),
            (META, {}, CandidateVictims((), 0)),
            # A victim that is not named keeps its place, so that the offer cannot be verified.
            (
                META,
                {"Pods": by_uid("x", None), "NumPDBViolations": 0},
                CandidateVictims(("x", ""), 0),
            ),
            (META, {"Pods": [{"UID": None}], "NumPDBViolations": 0}, CandidateVictims(("",), 0)),
            (META, {"Pods": [{}], "NumPDBViolations": 0}, CandidateVictims(("",), 0)),
            (FULL, {"Pods": [None], "NumPDBViolations": 0}, CandidateVictims(("",), 0)),
            (
                FULL,
                {"Pods": [{"metadata": None}], "NumPDBViolations": 0},
                CandidateVictims(("",), 0),
            ),
            (FULL, {"Pods": [{"metadata": {"uid": None}}]}, CandidateVictims(("",), 0)),
        ],
    )
    def test_nulls_leave_the_zero_value(
        self, field: str, entry: Any, offer: CandidateVictims
    ) -> None:
        body = encoded({"Pod": {}, field: {"n": entry}})
        assert at_once(extender_v1.decode_preempt(body)).candidates == {"n": offer}

    @given(st.dictionaries(NAMES, st.tuples(st.lists(NAMES), st.integers(0, 2**63 - 1))))
    def test_offers_as_kube_scheduler_encodes_them_are_read_as_in_other_casing(
        self, offers: dict[str, tuple[list[str], int]]
    ) -> None:
        written, lower = (
            {
                node: {pods: [{uid: name} for name in names], count: violations}
                for node, (names, violations) in offers.items()
            }
            for pods, uid, count in (
                ("Pods", "UID", "NumPDBViolations"),
                ("pods", "uid", "numpdbviolations"),
            )
        )
        found, same = (
            at_once(extender_v1.decode_preempt(encoded({"Pod": {}, META: entries}))).candidates
            for entries in (written, lower)
        )
        assert list(found.items()) == list(same.items())

    def test_a_null_map_beside_the_other_form(self) -> None:
        body = encoded({"Pod": {}, FULL: None, META: {"n": {"Pods": by_uid("x")}}})
        assert at_once(extender_v1.decode_preempt(body)).candidates == {
            "n": CandidateVictims(("x",), 0)
        }

    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            (b"{}", "ExtenderPreemptionArgs: neither NodeNameToVictims nor NodeNameToMetaVictims"),
            (b'{"NodeNameToMetaVictims":{}}', "ExtenderPreemptionArgs: Pod is missing"),
            (b'{"Pod":{},"NodeNameToMetaVictims":[]}', "Expected object, got array"),
            (b'{"Pod":{},"NodeNameToMetaVictims":{"n":[]}}', "Expected object | null, got array"),
            (b'{"Pod":{},"NodeNameToVictims":{"n":{"Pods":{}}}}', "got object"),
            (b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"Pods":["x"]}}}', "got str"),
            (b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":1}]}}}', "got int"),
            (b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"NumPDBViolations":"1"}}}', "got str"),
            (b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"NumPDBViolations":1.5}}}', "got float"),
            (b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"NumPDBViolations":-1}}}', ">= 0"),
            (
                b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"NumPDBViolations":9223372036854775808}}}',
                "<= 9223372036854775807",
            ),
            (b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"pods":[{"uid":1}]}}}', "got int"),
            (b'{"Pod":{},"NodeNameToMetaVictims":{"%s":null}}' % TOO_LONG, "<= 253"),
            (b'{"Pod":{},"NodeNameToVictims":{"%s":null}}' % TOO_LONG, "<= 253"),
            (
                b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"%s"}]}}}' % TOO_LONG,
                "<= 253",
            ),
            (b'{"Pod":%s,"NodeNameToMetaVictims":{}}' % LARGE, "expected at most 3145728"),
        ],
    )
    def test_a_decoding_error_names_the_expected_type(self, body: bytes, problem: str) -> None:
        with pytest.raises(ExtenderDecodeError) as raised:
            at_once(extender_v1.decode_preempt(body))
        assert problem in str(raised.value)


def test_results_have_gos_keys_in_gos_order() -> None:
    result = extender_results.FilterResult(None, ["a"], {}, {})
    assert extender_results.encode(result) == (
        b'{"Nodes":null,"NodeNames":["a"],'
        b'"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'
    )
    victims = extender_results.PreemptionResult({"n": extender_results.meta_victims(["x", "y"], 1)})
    expected = (
        b'{"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"x"},{"UID":"y"}],"NumPDBViolations":1}}}'
    )
    assert extender_results.encode(victims) == expected
    assert decode_result(extender_results.encode(victims)) == {"n": Victims(("x", "y"), 1)}
