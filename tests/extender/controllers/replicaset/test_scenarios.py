"""ReplicaSets in a simulated cluster: its state, and the Events."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.client import Propagation
from extender.kube.rest.resources import NAMESPACES, PODS, REPLICA_SETS
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set, controlled_by
from tests.fakeapi.admission_webhooks import Review, answered, configuration, webhook
from tests.stage import Stage, decode, opener

RUN = "gc,namespaces,replicaset"
QUOTA = "quota.example.com"


class World(Stage):
    """A cluster in which the ReplicaSet controller runs, and a kubelet's handiwork."""

    async def scale(self, replicas: int, name: str = "web") -> None:
        await self.patch(REPLICA_SETS, name, {"spec": {"replicas": replicas}})
        await self.passes()

    async def pods(self, **labels: str) -> list[Document]:
        listed = await self.all(PODS)
        return [
            each for each in listed if labels.items() <= each["metadata"].get("labels", {}).items()
        ]

    async def pod_names(self, **labels: str) -> set[str]:
        return {each["metadata"]["name"] for each in await self.pods(**labels)}

    async def status(self, name: str = "web") -> Document:
        status: Document = (await self.get(REPLICA_SETS, name))["status"]
        return status

    async def start(self, names: Iterable[str], node: str = "n") -> None:
        """Bind pods to a node and let them become ready now."""
        for name in names:
            await self.bind(name, node)
            await self.make_ready(name)
        await self.passes(0)

    @property
    def now(self) -> str:
        return format_time(self.cluster.clock.now_ns())

    async def version(self) -> str:
        """Return the version that the cluster has reached; every write moves it on."""
        return (await self.client.list(PODS, decode)).resource_version

    async def counted(self) -> Counter[str]:
        """Count the Events by reason."""
        return Counter(reason for reason, _, _ in await self.told())


Build = Callable[..., Awaitable[World]]


@pytest.fixture
async def build() -> AsyncIterator[Build]:
    """Build worlds with these objects in them; they end with the test."""
    async with opener(World, run=RUN) as open_world:

        async def create(*objects: Document, **options: Any) -> World:
            world = await open_world(**options)
            world.load(*objects)
            await world.passes()
            return world

        yield create


async def test_as_many_pods_as_are_asked_for_up_and_down(build: Build) -> None:
    world = await build(a_replica_set(replicas=0))
    assert (await world.status())["replicas"] == 0
    for replicas in (1, 10, 600, 10, 1, 0):
        await world.scale(replicas)
        assert len(await world.pods()) == replicas
        status = await world.status()
        assert (status["replicas"], status.get("fullyLabeledReplicas", 0)) == (replicas, replicas)
        found = await world.get(REPLICA_SETS, "web")
        assert status["observedGeneration"] == found["metadata"]["generation"]


async def test_a_pod_is_made_as_the_template_says(build: Build) -> None:
    template = {
        "metadata": {
            "name": "ignored",
            "namespace": "ignored",
            "labels": {"app": "web", "tier": "front"},
            "annotations": {"note": "yes"},
            "finalizers": ["example.com/keep"],
        },
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"disk": "fast"}},
    }
    world = await build(a_replica_set(template=template))
    (pod,) = await world.pods()
    meta = pod["metadata"]
    assert meta["generateName"] == "web-"
    assert meta["name"].startswith("web-")
    assert meta["namespace"] == "default"
    assert meta["labels"] == {"app": "web", "tier": "front"}
    assert meta["annotations"] == {"note": "yes"}
    assert meta["finalizers"] == ["example.com/keep"]
    assert meta["ownerReferences"] == [controlled_by("web", "web")]
    assert pod["spec"]["nodeSelector"] == {"disk": "fast"}


async def test_created_and_deleted_pods_are_reported_by_events(build: Build) -> None:
    world = await build(a_replica_set(replicas=2))
    made = await world.pod_names()
    await world.scale(0)
    assert set(await world.told()) == {
        *(("SuccessfulCreate", "web", f"Created pod: {name}") for name in made),
        *(("SuccessfulDelete", "web", f"Deleted pod: {name}") for name in made),
    }


async def test_orphans_are_adopted_before_pods_are_made(build: Build) -> None:
    orphans = [a_pod(name, labels={"app": "web"}) for name in ("a", "b")]
    world = await build(*orphans, a_pod("stranger", "db"), a_replica_set(replicas=3))
    pods = await world.pods(app="web")
    assert len(pods) == 3
    assert all(
        each["metadata"]["ownerReferences"] == [controlled_by("web", "web")] for each in pods
    )
    assert {"a", "b"} < {each["metadata"]["name"] for each in pods}
    assert await world.counted() == {"SuccessfulCreate": 1}


async def test_an_orphan_too_many_is_adopted_and_one_is_deleted(build: Build) -> None:
    world = await build(a_replica_set(replicas=2))
    world.load(a_pod("late", labels={"app": "web"}, node="n"))
    await world.passes()
    assert len(await world.pods()) == 2
    assert "late" in await world.pod_names()  # it has a node, and the others have none


async def test_a_pod_that_is_relabelled_is_released_and_another_takes_its_place(
    build: Build,
) -> None:
    world = await build(a_replica_set(replicas=2))
    name = min(await world.pod_names())
    await world.patch(PODS, name, {"metadata": {"labels": {"app": "debug"}}})
    await world.passes()
    released = await world.get(PODS, name)
    assert "ownerReferences" not in released["metadata"]
    assert len(await world.pods(app="web")) == 2
    await world.patch(PODS, name, {"metadata": {"labels": {"app": "web"}}})
    await world.passes()
    assert len(await world.pods()) == 2


async def test_a_pod_that_fails_is_replaced_and_stays(build: Build) -> None:
    world = await build(a_replica_set(replicas=2))
    name = min(await world.pod_names())
    await world.patch(PODS, name, {"status": {"phase": "Failed"}})
    await world.passes()
    assert len(await world.pods()) == 3
    assert (await world.status())["replicas"] == 2


async def test_a_pod_on_its_way_out_is_replaced_at_once_and_counted_apart(build: Build) -> None:
    world = await build(a_replica_set(replicas=2))
    names = await world.pod_names()
    await world.start(names)
    await world.delete(PODS, min(names))
    await world.passes()
    assert len(await world.pods()) == 3
    status = await world.status()
    assert (status["replicas"], status["terminatingReplicas"]) == (2, 1)
    await world.client.delete(PODS.object(min(names), "default"), grace_period_seconds=0)
    await world.passes()
    assert (await world.status())["terminatingReplicas"] == 0


async def test_of_siblings_pods_on_one_node_the_crowded_ones_go_first(build: Build) -> None:
    world = await build(
        a_replica_set("new", {"app": "d", "hash": "new"}, replicas=3, deployment="d"),
        a_replica_set("old", {"app": "d", "hash": "old"}, replicas=2, deployment="d"),
        run="replicaset",
    )
    new = sorted(await world.pod_names(hash="new"))
    for name, node in zip(new, ("lonely", "lonely", "crowded"), strict=True):
        await world.start([name], node)
    await world.start(await world.pod_names(hash="old"), "crowded")
    await world.scale(2, "new")
    leaving = [each for each in await world.pods() if "deletionTimestamp" in each["metadata"]]
    assert [each["metadata"]["name"] for each in leaving] == [new[2]]


async def test_no_pods_are_created_in_a_terminating_namespace(build: Build) -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    world = await build(shop, run="replicaset")
    await world.delete(NAMESPACES, "shop")
    world.load(a_replica_set(replicas=3, namespace="shop"))
    await world.passes(299)
    found = await world.get(REPLICA_SETS, "web", "shop")
    assert found["status"]["replicas"] == 0
    assert "conditions" not in found["status"]
    assert await world.told() == []


async def test_a_namespace_with_replica_sets_ends(build: Build) -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    world = await build(shop, a_replica_set(replicas=3, namespace="shop"))
    assert len(await world.pods()) == 3
    await world.delete(NAMESPACES, "shop")
    await world.passes(30)
    assert await world.pods() == []
    assert await world.find(NAMESPACES, "shop") is None


class Quota:
    """Admission that lets so many pods through."""

    def __init__(self, pods: int) -> None:
        self.pods = pods
        self.asked = 0

    def __call__(self, review: Review) -> Review:
        self.asked += 1
        self.pods -= 1
        why = {"message": "exceeded quota: pods"}
        return answered(review, allowed=self.pods >= 0, status=why)


async def test_a_quota_limits_the_pods_and_sets_a_condition(
    build: Build,
) -> None:
    quota = Quota(10)
    creates = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"]}]
    rules = [{**each, "resources": ["pods"]} for each in creates]
    hooks = configuration("validating", webhook(QUOTA, rules=rules))
    world = await build(hooks, a_replica_set(replicas=40), webhooks={QUOTA: quota})
    assert len(await world.pods()) == 10
    (condition,) = (await world.status())["conditions"]
    refusal = f'admission webhook "{QUOTA}" denied the request: exceeded quota: pods'
    assert (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
    assert (condition["reason"], condition["message"]) == ("FailedCreate", refusal)
    assert ("FailedCreate", "web", f"Error creating: {refusal}") in await world.told()
    asked = quota.asked
    await world.passes(60)
    assert 0 < quota.asked - asked < 10  # later each time
    quota.pods = 1_000
    await world.passes(120)
    assert len(await world.pods()) == 40
    assert "conditions" not in await world.status()


async def test_a_pod_becomes_available_to_the_second(build: Build) -> None:
    world = await build(a_replica_set(replicas=3, minReadySeconds=10))
    first, second, third = sorted(await world.pod_names())
    await world.start([first])
    await world.passes(4)
    await world.start([second])
    available = []
    for _ in range(12):
        status = await world.status()
        available.append((status["readyReplicas"], status.get("availableReplicas", 0)))
        await world.passes()
    assert available == [(2, 0)] * 6 + [(2, 1)] * 4 + [(2, 2)] * 2
    await world.start([third])
    assert (await world.status())["availableReplicas"] == 2


@pytest.mark.parametrize("how", [Propagation.BACKGROUND, Propagation.FOREGROUND])
async def test_the_pods_of_a_deleted_replica_set_go_with_it(build: Build, how: Propagation) -> None:
    world = await build(a_replica_set(replicas=5))
    assert len(await world.pods()) == 5
    await world.delete(REPLICA_SETS, "web", how)
    await world.passes(30)
    assert await world.pods() == []
    assert await world.find(REPLICA_SETS, "web") is None
    assert await world.counted() == {"SuccessfulCreate": 5}


async def test_pods_that_are_orphaned_stay_and_are_adopted_by_the_next(build: Build) -> None:
    world = await build(a_replica_set(replicas=5))
    names = await world.pod_names()
    await world.delete(REPLICA_SETS, "web", Propagation.ORPHAN)
    await world.passes(30)
    assert await world.pod_names() == names
    world.load(a_replica_set(uid="next", replicas=5))
    await world.passes()
    assert await world.pod_names() == names
    owners = [each["metadata"]["ownerReferences"] for each in await world.pods()]
    assert owners == [[controlled_by("web", "next")]] * 5


async def test_where_nothing_is_to_be_done_nothing_is_written(build: Build) -> None:
    world = await build(a_replica_set(replicas=3), a_replica_set("db", replicas=2))
    await world.start(await world.pod_names())
    await world.passes(60)
    before = await world.version()
    await world.passes(50 * 60)  # before the first Events expire
    assert await world.version() == before


ODD = {"matchExpressions": [{"key": "app", "operator": "Odd"}]}
BROKEN = [
    ("a selector that cannot be read", {"selector": ODD}, "replica_set_ignored"),
    ("a number that is none", {"replicas": "three"}, "replica_set_ignored"),
    (
        "a selector that does not match the template",
        {"selector": {"matchLabels": {"app": "other"}}},
        "no_pods_can_be_made",
    ),
    ("no selector", {"selector": None}, "no_pods_can_be_made"),
    ("no template", {"template": None}, "no_pods_can_be_made"),
]


@pytest.mark.parametrize(("spec", "event"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
async def test_an_invalid_replica_set_is_logged_once_and_blocks_no_other(
    build: Build, capsys: pytest.CaptureFixture[str], spec: Document, event: str
) -> None:
    world = await build(a_replica_set("odd", **spec), a_replica_set(replicas=2))
    await world.passes(600)
    await world.scale(3)
    assert len(await world.pods(app="web")) == 3
    assert await world.pods(app="odd") == []
    said = [line for line in capsys.readouterr().out.splitlines() if event in line]
    assert len(said) == 1
    assert "default/odd" in said[0]


async def test_a_replica_set_that_cannot_make_pods_says_so_in_its_status(build: Build) -> None:
    odd = a_replica_set(selector={"matchLabels": {"app": "other"}})
    bare = a_replica_set("bare", template={"spec": {"containers": []}})
    world = await build(odd, bare)
    texts = [(await world.status(name))["conditions"][0]["message"] for name in ("web", "bare")]
    assert texts == [
        "unable to create pods, `selector` does not match template `labels`",
        "unable to create pods, no labels",
    ]


async def test_a_replica_set_that_leaves_out_what_may_be_left_out_has_one_pod(
    build: Build,
) -> None:
    world = await build(a_replica_set())
    assert len(await world.pods()) == 1


async def test_a_deletion_cost_that_is_no_number_counts_for_nothing_and_is_named_once(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    world = await build(a_replica_set(replicas=3))
    names = sorted(await world.pod_names())
    await world.start(names)
    for name, cost in zip(names, ("-1", "dear", "1"), strict=True):
        annotation = {"controller.kubernetes.io/pod-deletion-cost": cost}
        await world.patch(PODS, name, {"metadata": {"annotations": annotation}})
    await world.scale(2)
    await world.scale(1)
    leaving = [each for each in await world.pods() if "deletionTimestamp" in each["metadata"]]
    assert [each["metadata"]["name"] for each in leaving] == names[:2]
    said = capsys.readouterr().out
    assert said.count("deletion_cost_is_no_number") == 1
    assert f"default/{names[1]}" in said


async def test_a_pod_whose_fields_make_no_sense_counts_as_one_that_says_nothing(
    build: Build,
) -> None:
    odd = a_pod("odd", "web")
    odd["status"] = {"conditions": "none"}
    world = await build(a_replica_set(replicas=2), odd)
    assert len(await world.pods()) == 2
    status = await world.status()
    assert (status["replicas"], status.get("readyReplicas", 0)) == (2, 0)
