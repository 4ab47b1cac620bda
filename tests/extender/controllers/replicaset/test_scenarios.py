"""ReplicaSets in a simulated cluster: its state, and the Events."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from extender.kube.rest.client import Propagation
from extender.kube.rest.resources import NAMESPACES, PODS, REPLICA_SETS
from policies.replicaset import DELETION_COST
from tests.builders import Document, manifest
from tests.builders.replicas import a_pod, a_replica_set, controlled_by
from tests.fakeapi.admission_webhooks import Review, answered, configuration, webhook
from tests.stage import Stage, decode, opener

RUN = "gc,namespaces,replicaset"
QUOTA = "quota.example.com"


class ReplicaSetStage(Stage):
    """A cluster in which the ReplicaSet controller runs."""

    async def scale(self, replicas: int, name: str = "web") -> None:
        await self.set_replicas(replicas, name)
        await self.passes()

    async def pods(self, **labels: str) -> list[Document]:
        listed = await self.all(PODS)
        return [
            each for each in listed if labels.items() <= each["metadata"].get("labels", {}).items()
        ]

    async def pod_names(self, **labels: str) -> list[str]:
        """Return the sorted names of the pods with these labels."""
        return sorted(each["metadata"]["name"] for each in await self.pods(**labels))

    async def terminating(self) -> list[str]:
        """Return the names of the terminating pods."""
        metadata = [each["metadata"] for each in await self.pods()]
        return [each["name"] for each in metadata if "deletionTimestamp" in each]

    async def status(self, name: str = "web") -> Document:
        return await self.status_of(REPLICA_SETS, name)

    async def start(self, names: Iterable[str], node: str = "n") -> None:
        """Bind pods to a node and make them ready now."""
        for name in names:
            await self.bind(name, node)
            await self.make_ready(name)
        await self.passes(0)

    async def version(self) -> str:
        """Return the version that the cluster has reached; every write increases it."""
        return (await self.client.list(PODS, decode)).resource_version

    async def event_counts(self) -> Counter[str]:
        """Count the Events by reason."""
        return Counter(reason for reason, _, _ in await self.list_events())


Build = Callable[..., Awaitable[ReplicaSetStage]]


@pytest.fixture
async def build() -> AsyncIterator[Build]:
    """Return a function that opens stages with these objects; they end with the test."""
    async with opener(ReplicaSetStage, run=RUN) as open_stage:

        async def create(*objects: Document, **options: Any) -> ReplicaSetStage:
            stage = await open_stage(**options)
            stage.load(*objects)
            await stage.passes()
            return stage

        yield create


async def test_scaling_up_and_down(build: Build) -> None:
    stage = await build(a_replica_set(replicas=0))
    assert (await stage.status())["replicas"] == 0
    for replicas in (1, 10, 600, 10, 1, 0):
        await stage.scale(replicas)
        assert len(await stage.pods()) == replicas
        status = await stage.status()
        assert (status["replicas"], status.get("fullyLabeledReplicas", 0)) == (replicas, replicas)
        found = await stage.get(REPLICA_SETS, "web")
        assert status["observedGeneration"] == found["metadata"]["generation"]


async def test_a_pod_is_created_from_the_template(build: Build) -> None:
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
    stage = await build(a_replica_set(template=template))
    (pod,) = await stage.pods()
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
    stage = await build(a_replica_set(replicas=2))
    made = await stage.pod_names()
    await stage.scale(0)
    assert set(await stage.list_events()) == {
        *(("SuccessfulCreate", "web", f"Created pod: {name}") for name in made),
        *(("SuccessfulDelete", "web", f"Deleted pod: {name}") for name in made),
    }


async def test_orphans_are_adopted_before_pods_are_created(build: Build) -> None:
    orphans = [a_pod(name, labels={"app": "web"}) for name in ("a", "b")]
    stage = await build(*orphans, a_pod("stranger", "db"), a_replica_set(replicas=3))
    pods = await stage.pods(app="web")
    assert len(pods) == 3
    assert all(
        each["metadata"]["ownerReferences"] == [controlled_by("web", "web")] for each in pods
    )
    assert {"a", "b"} < set(await stage.pod_names(app="web"))
    assert await stage.event_counts() == {"SuccessfulCreate": 1}


async def test_a_surplus_orphan_is_adopted_and_one_pod_deleted(build: Build) -> None:
    stage = await build(a_replica_set(replicas=2))
    stage.load(a_pod("late", labels={"app": "web"}, node="n"))
    await stage.passes()
    assert len(await stage.pods()) == 2
    assert "late" in await stage.pod_names()  # it has a node, and the others have none


async def test_a_relabelled_pod_is_released_and_replaced(build: Build) -> None:
    stage = await build(a_replica_set(replicas=2))
    name = (await stage.pod_names())[0]
    await stage.patch(PODS, name, {"metadata": {"labels": {"app": "debug"}}})
    await stage.passes()
    released = await stage.get(PODS, name)
    assert "ownerReferences" not in released["metadata"]
    assert len(await stage.pods(app="web")) == 2
    await stage.patch(PODS, name, {"metadata": {"labels": {"app": "web"}}})
    await stage.passes()
    assert len(await stage.pods()) == 2


async def test_a_failed_pod_is_replaced_and_stays(build: Build) -> None:
    stage = await build(a_replica_set(replicas=2))
    name = (await stage.pod_names())[0]
    await stage.patch(PODS, name, {"status": {"phase": "Failed"}})
    await stage.passes()
    assert len(await stage.pods()) == 3
    assert (await stage.status())["replicas"] == 2


async def test_a_terminating_pod_is_replaced_at_once_and_counted_separately(build: Build) -> None:
    stage = await build(a_replica_set(replicas=2))
    names = await stage.pod_names()
    await stage.start(names)
    await stage.delete(PODS, names[0])
    await stage.passes()
    assert len(await stage.pods()) == 3
    status = await stage.status()
    assert (status["replicas"], status["terminatingReplicas"]) == (2, 1)
    await stage.end(names[0])
    await stage.passes()
    assert (await stage.status())["terminatingReplicas"] == 0


async def test_pods_on_the_node_with_the_most_related_pods_are_deleted_first(build: Build) -> None:
    stage = await build(
        a_replica_set("new", {"app": "d", "hash": "new"}, replicas=3, deployment="d"),
        a_replica_set("old", {"app": "d", "hash": "old"}, replicas=2, deployment="d"),
        run="replicaset",
    )
    new = await stage.pod_names(hash="new")
    for name, node in zip(new, ("lonely", "lonely", "crowded"), strict=True):
        await stage.start([name], node)
    await stage.start(await stage.pod_names(hash="old"), "crowded")
    await stage.scale(2, "new")
    assert await stage.terminating() == [new[2]]


async def test_no_pods_are_created_in_a_terminating_namespace(build: Build) -> None:
    stage = await build(manifest("Namespace", "shop"), run="replicaset")
    await stage.delete(NAMESPACES, "shop")
    stage.load(a_replica_set(replicas=3, namespace="shop"))
    await stage.passes(299)
    found = await stage.get(REPLICA_SETS, "web", "shop")
    assert found["status"]["replicas"] == 0
    assert "conditions" not in found["status"]
    assert await stage.list_events() == []


async def test_a_namespace_with_replica_sets_is_removed(build: Build) -> None:
    stage = await build(manifest("Namespace", "shop"), a_replica_set(replicas=3, namespace="shop"))
    assert len(await stage.pods()) == 3
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(30)
    assert await stage.pods() == []
    assert await stage.find(NAMESPACES, "shop") is None


class Quota:
    """A webhook that allows so many pods."""

    def __init__(self, pods: int) -> None:
        self.pods = pods
        self.calls = 0

    def __call__(self, review: Review) -> Review:
        self.calls += 1
        self.pods -= 1
        status = {"message": "exceeded quota: pods"}
        return answered(review, allowed=self.pods >= 0, status=status)


async def test_a_quota_limits_the_pods_and_sets_a_condition(build: Build) -> None:
    quota = Quota(10)
    creates = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"]}]
    rules = [{**each, "resources": ["pods"]} for each in creates]
    hooks = configuration("validating", webhook(QUOTA, rules=rules))
    stage = await build(hooks, a_replica_set(replicas=40), webhooks={QUOTA: quota})
    assert len(await stage.pods()) == 10
    (condition,) = (await stage.status())["conditions"]
    refusal = f'admission webhook "{QUOTA}" denied the request: exceeded quota: pods'
    assert (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
    assert (condition["reason"], condition["message"]) == ("FailedCreate", refusal)
    assert ("FailedCreate", "web", f"Error creating: {refusal}") in await stage.list_events()
    calls = quota.calls
    await stage.passes(60)
    assert 0 < quota.calls - calls < 10  # the delay increases
    quota.pods = 1_000
    await stage.passes(120)
    assert len(await stage.pods()) == 40
    assert "conditions" not in await stage.status()


async def test_a_pod_becomes_available_to_the_second(build: Build) -> None:
    stage = await build(a_replica_set(replicas=3, minReadySeconds=10))
    first, second, third = await stage.pod_names()
    await stage.start([first])
    await stage.passes(4)
    await stage.start([second])
    available = []
    for _ in range(12):
        status = await stage.status()
        available.append((status["readyReplicas"], status.get("availableReplicas", 0)))
        await stage.passes()
    assert available == [(2, 0)] * 6 + [(2, 1)] * 4 + [(2, 2)] * 2
    await stage.start([third])
    assert (await stage.status())["availableReplicas"] == 2


@pytest.mark.parametrize("how", [Propagation.BACKGROUND, Propagation.FOREGROUND])
async def test_the_pods_of_a_deleted_replica_set_are_deleted(
    build: Build, how: Propagation
) -> None:
    stage = await build(a_replica_set(replicas=5))
    assert len(await stage.pods()) == 5
    await stage.delete(REPLICA_SETS, "web", how)
    await stage.passes(30)
    assert await stage.pods() == []
    assert await stage.find(REPLICA_SETS, "web") is None
    assert await stage.event_counts() == {"SuccessfulCreate": 5}


async def test_orphaned_pods_stay_and_are_adopted_by_the_next_replica_set(build: Build) -> None:
    stage = await build(a_replica_set(replicas=5))
    names = await stage.pod_names()
    await stage.delete(REPLICA_SETS, "web", Propagation.ORPHAN)
    await stage.passes(30)
    assert await stage.pod_names() == names
    stage.load(a_replica_set(uid="next", replicas=5))
    await stage.passes()
    assert await stage.pod_names() == names
    owners = [each["metadata"]["ownerReferences"] for each in await stage.pods()]
    assert owners == [[controlled_by("web", "next")]] * 5


async def test_nothing_is_written_without_a_change(build: Build) -> None:
    stage = await build(a_replica_set(replicas=3), a_replica_set("db", replicas=2))
    await stage.start(await stage.pod_names())
    await stage.passes(60)
    before = await stage.version()
    await stage.passes(50 * 60)  # before the first Events expire
    assert await stage.version() == before


ODD = {"matchExpressions": [{"key": "app", "operator": "Odd"}]}
BROKEN = [
    ("an invalid selector", {"selector": ODD}, "replica_set_ignored"),
    ("an invalid number", {"replicas": "three"}, "replica_set_ignored"),
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
    stage = await build(a_replica_set("odd", **spec), a_replica_set(replicas=2))
    await stage.passes(600)
    await stage.scale(3)
    assert len(await stage.pods(app="web")) == 3
    assert await stage.pods(app="odd") == []
    [line] = [line for line in capsys.readouterr().out.splitlines() if event in line]
    assert "default/odd" in line


async def test_a_replica_set_that_cannot_create_pods_has_a_condition(build: Build) -> None:
    odd = a_replica_set(selector={"matchLabels": {"app": "other"}})
    bare = a_replica_set("bare", template={"spec": {"containers": []}})
    stage = await build(odd, bare)
    texts = [(await stage.status(name))["conditions"][0]["message"] for name in ("web", "bare")]
    assert texts == [
        "unable to create pods, `selector` does not match template `labels`",
        "unable to create pods, no labels",
    ]


async def test_the_default_is_one_replica(build: Build) -> None:
    stage = await build(a_replica_set())
    assert len(await stage.pods()) == 1


async def test_an_invalid_deletion_cost_is_ignored_and_logged_once(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = await build(a_replica_set(replicas=3))
    names = await stage.pod_names()
    await stage.start(names)
    for name, cost in zip(names, ("-1", "high", "1"), strict=True):
        await stage.patch(PODS, name, {"metadata": {"annotations": {DELETION_COST: cost}}})
    await stage.scale(2)
    await stage.scale(1)
    assert await stage.terminating() == names[:2]
    log = capsys.readouterr().out
    assert log.count("deletion_cost_is_no_number") == 1
    assert f"default/{names[1]}" in log


async def test_a_pod_with_invalid_fields_counts_as_one_without_them(build: Build) -> None:
    odd = a_pod("odd", "web")
    odd["status"] = {"conditions": "none"}
    stage = await build(a_replica_set(replicas=2), odd)
    assert len(await stage.pods()) == 2
    status = await stage.status()
    assert (status["replicas"], status.get("readyReplicas", 0)) == (2, 0)
