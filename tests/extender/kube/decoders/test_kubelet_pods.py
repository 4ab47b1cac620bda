"""Pods as eviction sees them: every field, absent, null and set, by the rules of a release."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.kubelet_pods import (
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


def decode(document: Document, release: str = NEWEST_EVICTION.name) -> EvictablePod:
    return decode_evictable_pod(encoded(document), EVICTION_RELEASES[release])


def with_spec(release: str = NEWEST_EVICTION.name, **spec: Any) -> EvictablePod:
    return decode(pod_json(spec=spec), release)


def container(name: str = "main", **resources: Any) -> Document:
    return {"name": name, "resources": resources}


def sidecar(name: str = "sidecar", **resources: Any) -> Document:
    return {**container(name, **resources), "restartPolicy": "Always"}


def test_a_bare_pod() -> None:
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
def test_where_a_pod_comes_from(
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
            container("a", requests={"memory": "100Mi", "ephemeral-storage": "1.5Gi"}),
            container("b", requests={"memory": "1024Mi"}),
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


def test_older_releases_neither_count_sidecars_nor_tell_of_them() -> None:
    spec: Document = {
        "containers": [container(requests={"memory": "100Mi"})],
        "initContainers": [sidecar(requests={"memory": "50Mi"}, limits={"ephemeral-storage": "1"})],
    }

    def seen(release: str) -> tuple[int, list[str], bool]:
        pod = with_spec(release, **spec)
        limited = any(each.storage_limit for each in pod.containers)
        return pod.memory_request // MI, [each.name for each in pod.containers], limited

    assert seen("1.31") == (100, ["main"], False)
    assert seen("1.33") == (100, ["main", "sidecar"], False)
    assert seen("1.36") == (150, ["main", "sidecar"], False)
    assert seen("1.37") == (150, ["main", "sidecar"], True)


def test_an_init_container_that_ends_has_no_limit_that_is_kept_to() -> None:
    pod = with_spec(initContainers=[container("init", limits={"ephemeral-storage": "1Gi"})])
    assert pod.containers[-1] == Container("init")


def test_pod_level_requests() -> None:
    spec: Document = {
        "containers": [container(requests={"memory": "100Mi", "ephemeral-storage": "1Gi"})],
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
def test_limits_of_storage_are_summed_and_spelled_alike(
    limits: list[str | None], total: int | None, text: str
) -> None:
    pod = with_spec(
        containers=[
            container(f"c{index}", limits={} if limit is None else {"ephemeral-storage": limit})
            for index, limit in enumerate(limits)
        ]
    )
    expected = None if total is None else Quantity(total * 10**9, text)
    assert pod.storage_limit == expected
    assert pod.storage_limit is None or pod.storage_limit.text == text


@pytest.mark.parametrize(
    ("containers", "init", "text"),
    [
        ([container(limits={"ephemeral-storage": "1G"})], [], "1G"),
        (
            [container(limits={"ephemeral-storage": "1G"})],
            [container("init", limits={"ephemeral-storage": "2Gi"})],
            "2Gi",
        ),
        (
            [container(limits={"ephemeral-storage": "2Gi"})],
            [container("init", limits={"ephemeral-storage": "1G"})],
            "2Gi",
        ),
        (
            [container()],
            [sidecar(limits={"ephemeral-storage": "1Gi"}), container("init")],
            "1Gi",
        ),
        (
            [container()],
            [
                sidecar(limits={"ephemeral-storage": "1Gi"}),
                container("init", limits={"ephemeral-storage": "1G"}),
            ],
            "2073741824",
        ),
    ],
)
def test_the_sum_is_spelled_like_the_first_of_the_limits_that_make_it(
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
def test_which_volumes_take_room_on_the_nodes_disks(source: Document, volume: Volume) -> None:
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
def test_which_pods_are_best_effort(document: Document, *, best_effort: bool) -> None:
    assert decode(document).best_effort is best_effort


def test_a_pod_written_by_hand_gets_what_an_api_server_adds() -> None:
    document = pod_json(spec={"containers": [container(limits={"memory": "1Gi"})]})
    written = decode_undefaulted_evictable_pod(encoded(document), NEWEST_EVICTION)
    assert (written.memory_request, written.grace_seconds) == (1024 * MI, 30)
    assert (decode(document).memory_request, decode(document).grace_seconds) == (0, None)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"containers": [container(requests={"memory": "much"})]},
            "spec.containers[0].resources.requests.memory: 'much' is not a quantity",
        ),
        (
            {"initContainers": [container(limits={"ephemeral-storage": "x"})]},
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
def test_what_cannot_be_read_is_named(spec: Document, problem: str) -> None:
    with pytest.raises(ObjectError) as raised:
        with_spec(**spec)
    assert str(raised.value).startswith(f"Pod default/pod: {problem}")
