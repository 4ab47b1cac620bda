"""Pods as eviction sees them: every field, absent, null and set, by the rules of a release."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.kubelet.pods import (
    decode_evictable_pod,
    decode_undefaulted_evictable_pod,
    static_pod_uid,
)
from extender.kube.decoders.typed_decoder import ObjectError
from policies.eviction.kubelet_releases import EVICTION_RELEASES, NEWEST_EVICTION
from policies.eviction.pods import Container, EvictablePod, Volume
from policies.eviction.signals import Quantity, read_quantity
from tests.builders import Document, encoded, pod_json, toleration

MI = 2**20
STORAGE = "ephemeral-storage"


def decode(document: Document, release: str = NEWEST_EVICTION.name) -> EvictablePod:
    return decode_evictable_pod(encoded(document), EVICTION_RELEASES[release])


def with_spec(release: str = NEWEST_EVICTION.name, **spec: Any) -> EvictablePod:
    return decode(pod_json(spec=spec), release)


def container_with(name: str = "main", **resources: Any) -> Document:
    return {"name": name, "resources": resources}


def sidecar(name: str = "sidecar", **resources: Any) -> Document:
    return {**container_with(name, **resources), "restartPolicy": "Always"}


def test_a_minimal_pod_is_decoded() -> None:
    bare = decode_evictable_pod(b'{"metadata":{"name":"x"},"spec":{}}', NEWEST_EVICTION)
    assert bare == EvictablePod("default", "x", "", best_effort=True)


def test_null_everywhere_is_the_same_as_absent() -> None:
    nothing = dict.fromkeys(
        [
            "containers",
            "initContainers",
            "overhead",
            "resources",
            "tolerations",
            "volumes",
            "priority",
            "terminationGracePeriodSeconds",
        ]
    )
    meta = dict.fromkeys(["namespace", "uid", "annotations", "generation"])
    document = {"metadata": {"name": "x", **meta}, "spec": nothing, "status": None}
    assert decode(document) == EvictablePod("default", "x", "", best_effort=True)


def test_identity_and_priority_of_a_pod() -> None:
    pod = decode(
        pod_json(
            "web",
            namespace="shop",
            uid="u",
            priority=7,
            metadata={"generation": 3},
            spec={"terminationGracePeriodSeconds": 30, "tolerations": [{"key": "k"}]},
        )
    )
    assert (pod.key, pod.uid, pod.priority, pod.generation) == ("shop/web", "u", 7, 3)
    assert (pod.grace_seconds, pod.tolerations) == (30, (toleration("k"),))


@pytest.mark.parametrize(
    ("annotations", "source", "mirror"),
    [
        ({}, None, False),
        ({"kubernetes.io/config.source": "file"}, "file", False),
        ({"kubernetes.io/config.source": "api"}, "api", False),
        ({"kubernetes.io/config.mirror": "abc"}, None, True),
    ],
)
def test_the_source_of_a_pod_is_an_annotation(
    annotations: dict[str, str], source: str | None, *, mirror: bool
) -> None:
    pod = decode(pod_json(metadata={"annotations": annotations}))
    assert (pod.source, pod.mirror) == (source, mirror)


@pytest.mark.parametrize(
    ("annotations", "uid"),
    [
        ({"kubernetes.io/config.mirror": "abc", "kubernetes.io/config.hash": "abc"}, "abc"),
        ({"kubernetes.io/config.hash": "abc"}, ""),
        ({"kubernetes.io/config.mirror": "abc"}, ""),
        ({}, ""),
    ],
)
def test_a_mirror_pod_has_the_uid_of_the_static_pod(annotations: dict[str, str], uid: str) -> None:
    assert static_pod_uid(encoded(pod_json(metadata={"annotations": annotations}))) == uid


def test_requests_are_summed_and_kept_for_each_container() -> None:
    pod = with_spec(
        containers=[
            container_with("a", requests={"memory": "100Mi", "ephemeral-storage": "1.5Gi"}),
            container_with("b", requests={"memory": "1024Mi"}),
        ],
        initContainers=[sidecar(requests={"memory": "50Mi"})],
        overhead={"memory": "10Mi"},
    )
    assert (pod.memory_request, pod.storage_request) == (1184 * MI, 1536 * MI)
    assert pod.containers == (
        Container("a", read_quantity("100Mi"), read_quantity("1536Mi")),
        Container("b", read_quantity("1Gi")),
        Container("sidecar", read_quantity("50Mi")),
    )
    assert pod.containers[1].memory_request.text == "1Gi"


def test_older_releases_neither_count_nor_report_sidecars() -> None:
    spec: Document = {
        "containers": [container_with(requests={"memory": "100Mi"})],
        "initContainers": [sidecar(requests={"memory": "50Mi"}, limits={STORAGE: "1"})],
    }

    def decoded(release: str) -> tuple[int, list[str], bool]:
        pod = with_spec(release, **spec)
        limited = any(each.storage_limit for each in pod.containers)
        return pod.memory_request // MI, [each.name for each in pod.containers], limited

    assert decoded("1.31") == (100, ["main"], False)
    assert decoded("1.33") == (100, ["main", "sidecar"], False)
    assert decoded("1.36") == (150, ["main", "sidecar"], False)
    assert decoded("1.37") == (150, ["main", "sidecar"], True)


def test_the_limit_of_an_ordinary_init_container_is_ignored() -> None:
    pod = with_spec(initContainers=[container_with("init", limits={STORAGE: "1Gi"})])
    assert pod.containers[-1] == Container("init")


def test_pod_level_requests_count_in_newer_releases() -> None:
    spec: Document = {
        "containers": [container_with(requests={"memory": "100Mi", "ephemeral-storage": "1Gi"})],
        "resources": {"requests": {"memory": "2048Mi"}},
    }
    new, old = with_spec(**spec), with_spec("1.33", **spec)
    assert (new.memory_request, new.storage_request) == (2048 * MI, 0)
    assert new.pod_memory_request == read_quantity("2Gi")
    assert (old.memory_request, old.storage_request) == (100 * MI, 1024 * MI)
    assert old.pod_memory_request is None
    assert with_spec(resources={"limits": {"memory": "1Gi"}}).pod_memory_request is None


@pytest.mark.parametrize(
    ("limits", "total", "text"),
    [
        ([None], None, ""),
        (["800Mi"], 800 * MI, "800Mi"),
        (["800Mi", None], 800 * MI, "800Mi"),
        (["512Mi", "512Mi"], 1024 * MI, "1Gi"),
        (["0", "1Gi"], 1024 * MI, "1Gi"),
        (["1G", "1G"], 2 * 10**9, "2G"),
        (["0"], 0, "0"),
        ([0], 0, "0"),
        ([1000], 1000, "1k"),
    ],
)
def test_limits_of_storage_are_summed_in_the_same_format(
    limits: list[str | None], total: int | None, text: str
) -> None:
    pod = with_spec(
        containers=[
            container_with(
                f"c{index}", limits={} if limit is None else {"ephemeral-storage": limit}
            )
            for index, limit in enumerate(limits)
        ]
    )
    expected = None if total is None else Quantity(total * 10**9, text)
    assert pod.storage_limit == expected
    assert pod.storage_limit is None or pod.storage_limit.text == text


@pytest.mark.parametrize(
    ("containers", "init", "text"),
    [
        ([container_with(limits={STORAGE: "1G"})], [], "1G"),
        (
            [container_with(limits={STORAGE: "1G"})],
            [container_with("init", limits={STORAGE: "2Gi"})],
            "2Gi",
        ),
        (
            [container_with(limits={STORAGE: "2Gi"})],
            [container_with("init", limits={STORAGE: "1G"})],
            "2Gi",
        ),
        ([container_with()], [sidecar(limits={STORAGE: "1Gi"}), container_with("init")], "1Gi"),
        (
            [container_with()],
            [sidecar(limits={STORAGE: "1Gi"}), container_with("init", limits={STORAGE: "1G"})],
            "2073741824",
        ),
    ],
)
def test_the_sum_has_the_format_of_the_first_limit(
    containers: list[Document], init: list[Document], text: str
) -> None:
    limit = with_spec(containers=containers, initContainers=init).storage_limit
    assert limit is not None
    assert limit.text == text


@pytest.mark.parametrize(
    ("source", "volume"),
    [
        ({"emptyDir": {}}, Volume("v", local=True)),
        ({"emptyDir": {"medium": ""}}, Volume("v", local=True)),
        (
            {"emptyDir": {"sizeLimit": "1024Mi"}},
            Volume("v", local=True, size_limit=read_quantity("1Gi")),
        ),
        (
            {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            Volume("v", size_limit=read_quantity("1Gi"), in_memory=True),
        ),
        ({"emptyDir": {"medium": "HugePages"}}, Volume("v")),
        ({"hostPath": {"path": "/"}}, Volume("v", local=True)),
        ({"gitRepo": {"repository": "x"}}, Volume("v", local=True)),
        ({"configMap": {"name": "x"}}, Volume("v", local=True)),
        ({"secret": {"secretName": "x"}}, Volume("v")),
        ({"persistentVolumeClaim": {"claimName": "x"}}, Volume("v")),
    ],
)
def test_some_volumes_use_the_disks_of_the_node(source: Document, volume: Volume) -> None:
    assert with_spec(volumes=[{"name": "v", **source}]).volumes == (volume,)


@pytest.mark.parametrize(
    ("document", "best_effort"),
    [
        (pod_json(), True),
        (pod_json(cpu="1"), False),
        (pod_json(cpu="0"), True),
        (pod_json(cpu="1", status={"qosClass": "BestEffort"}), True),
        (pod_json(status={"qosClass": "Burstable"}), False),
        (pod_json(spec={"resources": {"limits": {"memory": "1Gi"}}}), False),
    ],
)
def test_the_quality_of_service_is_that_of_the_status_or_computed(
    document: Document, *, best_effort: bool
) -> None:
    assert decode(document).best_effort is best_effort


def test_a_handwritten_pod_gets_the_api_server_s_defaults() -> None:
    document = pod_json(spec={"containers": [container_with(limits={"memory": "1Gi"})]})
    written = decode_undefaulted_evictable_pod(encoded(document), NEWEST_EVICTION)
    assert (written.memory_request, written.grace_seconds) == (1024 * MI, 30)
    assert (decode(document).memory_request, decode(document).grace_seconds) == (0, None)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"containers": [container_with(requests={"memory": "much"})]},
            "spec.containers[0].resources.requests.memory: 'much' is not a quantity",
        ),
        (
            {"initContainers": [container_with(limits={STORAGE: "x"})]},
            "spec.initContainers[0].resources.limits.ephemeral-storage: 'x' is not",
        ),
        ({"overhead": {"memory": "x"}}, "spec.overhead.memory: 'x' is not"),
        (
            {"volumes": [{"name": "v"}, {"name": "w", "emptyDir": {"sizeLimit": "x"}}]},
            "spec.volumes[1].emptyDir.sizeLimit: 'x' is not",
        ),
        ({"resources": {"limits": {"memory": "x"}}}, "spec.resources.limits.memory: 'x' is not"),
        ({"priority": "high"}, "spec.priority: expected"),
        ({"volumes": [{"name": "v", "emptyDir": 1}]}, "spec.volumes[0].emptyDir: expected"),
    ],
)
def test_an_invalid_field_is_reported(spec: Document, problem: str) -> None:
    with pytest.raises(ObjectError) as raised:
        with_spec(**spec)
    assert str(raised.value).startswith(f"Pod default/pod: {problem}")
