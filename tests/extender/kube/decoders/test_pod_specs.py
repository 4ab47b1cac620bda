"""Equal specs of pods are decoded once, and as each would be by itself."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.pod_specs import DecodedSpec, compile_spec, decode_spec
from extender.kube.decoders.pods import decode_pod
from extender.kube.decoders.typed_decoder import FieldError
from policies.kubernetes.releases import NEWEST, RELEASES, Release
from tests.builders import encoded, pod_json

TEXTS = (
    *("a", "b", "cpu", "memory", "example.com/gpu", "Always", "Exists", "PodResizePending"),
    *("Infeasible", "DoNotSchedule", "RestartAllContainers"),
)
QUANTITIES = ("1", "1500m", "2Gi", 3)


def values(info: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """Return values of a type; lists and mappings are short."""
    match info:
        case msgspec.inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{each.name: values(each.type) for each in fields})
        case msgspec.inspect.UnionType(types=types):
            if any(isinstance(each, msgspec.inspect.FloatType) for each in types):
                return st.sampled_from(QUANTITIES)
            return st.one_of([values(each) for each in types])
        case msgspec.inspect.ListType(item_type=item):
            return st.lists(values(item), max_size=2)
        case msgspec.inspect.DictType(value_type=value):
            return st.dictionaries(st.sampled_from(TEXTS), values(value), max_size=2)
        case msgspec.inspect.StrType():
            return st.sampled_from(TEXTS)
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType():
            return st.integers(0, 2)
    return st.none()


PODS = values(msgspec.inspect.type_info(core_v1_types.PodV1))


def outcome(pod: core_v1_types.PodV1, release: Release, *, alone: bool) -> DecodedSpec | str:
    try:
        return compile_spec(pod, release) if alone else decode_spec(pod, "ns", release)
    except FieldError as error:
        return str(error)


@given(PODS, st.sampled_from(list(RELEASES.values())))
def test_a_spec_is_decoded_as_by_itself(pod: core_v1_types.PodV1, release: Release) -> None:
    pod = structs.replace(pod, metadata=structs.replace(pod.metadata, namespace="ns"))
    assert outcome(pod, release, alone=False) == outcome(pod, release, alone=True)


def test_replicas_share_what_is_equal() -> None:
    first, second = (
        decode_pod(encoded(pod_json(name, labels={"app": "web"}, cpu="1", on=node)), NEWEST)
        for name, node in (("web-1", "node-1"), ("web-2", "node-2"))
    )
    assert first.requests is second.requests
    assert first.labels is second.labels
    assert (first.node_name, second.node_name) == ("node-1", "node-2")
