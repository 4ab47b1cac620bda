"""Pods that wait for one status: decided as if each had come when the last one was written."""

from __future__ import annotations

import asyncio
from itertools import count

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.controllers.webhooks.status_batch import BATCH_SIZE, Decide, PendingPod, decide_batch
from extender.kube.workloadspread.pod_injection import InjectionResult, inject_placed_pod
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import (
    StoredWorkloadSpread,
    decode_workloadspread,
    encode_status,
)
from fakeapi import VirtualCluster
from fakeapi.testing.faults import fault
from policies.workloadspread.model import SECOND, WorkloadSpreadStatus
from policies.workloadspread.pod_admission import AdmissionContext, PodAdmission, admit_release
from policies.workloadspread.spread_lookup import OwnerLookup
from tests.builders.workloadspread import NOW_NS, pod_of, spread_json
from tests.extender.controllers.webhooks.stages import KRUISE, counts, processes
from tests.extender.controllers.webhooks.test_conflicts import SLOW, subset_of
from tests.sampling import examples
from tests.stage import Stage

LIMITS = st.lists(st.integers(0, 3), min_size=1, max_size=3)
COMING = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "s0", "s1"]), st.integers(0, 10)),
    max_size=8,
)


def decides(name: str, leaves: str, later: int) -> Decide:
    """Decide about a pod that comes, or about one that leaves a subset."""
    asking = AdmissionContext(OwnerLookup(), lambda _spread: None, NOW_NS + later * SECOND)
    document = pod_of(f"web-{name}", leaves or None)
    pod = decode_spread_pod(msgspec.json.encode(document))
    numbers = count()

    def decide(current: StoredWorkloadSpread) -> InjectionResult:
        if leaves:
            return InjectionResult(admit_release(pod, current.spread, asking), {})
        new_id = lambda: f"id-{next(numbers)}"  # noqa: E731 - as short as can be
        return inject_placed_pod(pod, document, current, asking, new_id, None)

    return decide


def one_by_one(
    current: StoredWorkloadSpread, pods: list[Decide]
) -> tuple[list[InjectionResult], StoredWorkloadSpread]:
    """Decide about each pod when the status of the last one has been written and read."""
    answers = []
    for decide in pods:
        answers.append(decide(current))
        status = answers[-1].admission.status
        if status is not None:
            document = {**current.document, "status": encode_status(status)}
            current = decode_workloadspread(msgspec.json.encode(document))
    return answers, current


@settings(max_examples=examples(150))
@given(LIMITS, COMING)
async def test_together_is_as_one_by_one(
    limits: list[int], pods: list[tuple[str, str, int]]
) -> None:
    subsets = ({"name": f"s{n}", "maxReplicas": limit} for n, limit in enumerate(limits))
    current = decode_workloadspread(msgspec.json.encode(spread_json(*subsets, {"name": "last"})))
    together = [PendingPod(decides(*each)) for each in pods]
    status, depending = await decide_batch(current, together)
    answers, after = one_by_one(current, [decides(*each) for each in pods])
    for each in depending:
        each.resolve(each.answer)
    assert [each.result() for each in together] == answers
    written = encode_status(status) if status is not None else encode_status(WorkloadSpreadStatus())
    assert written == encode_status(after.spread.status)


async def test_the_mistake_of_one_is_no_matter_of_the_others() -> None:
    def mistaken(_current: StoredWorkloadSpread) -> InjectionResult:
        raise LookupError("nobody has thought of that")

    def counted(_current: StoredWorkloadSpread) -> InjectionResult:
        return InjectionResult(PodAdmission(status=WorkloadSpreadStatus(observed_generation=1)), {})

    current = decode_workloadspread(msgspec.json.encode(spread_json({"name": "a"})))
    one, wrong, other = together = [PendingPod(each) for each in (counted, mistaken, counted)]
    status, depending = await decide_batch(current, together)
    assert (status, depending) == (WorkloadSpreadStatus(observed_generation=1), [one, other])
    assert wrong.is_resolved


async def test_pods_that_come_while_a_status_is_written_share_the_next_write() -> None:
    cluster = VirtualCluster(run="none")
    all_of_them = 1 + BATCH_SIZE + 5
    first = {"name": "a", "maxReplicas": all_of_them - 2}
    cluster.load([*KRUISE, spread_json(first, {"name": "b"})])
    async with cluster, processes(cluster) as [process]:
        cluster.faults.plan(SLOW)
        pods = [pod_of(f"web-{n}") for n in range(all_of_them)]
        asking = [asyncio.create_task(process.admit(pod)) for pod in pods]
        for done in (1, 1 + BATCH_SIZE, all_of_them):
            await cluster.clock.advance(1.1)
            waiting = all_of_them - done
            assert [each.done() for each in asking] == done * [True] + waiting * [False]
        subsets = [subset_of(await each) for each in asking]
        assert subsets == (all_of_them - 2) * ["a"] + 2 * ["b"]
        assert await counts(Stage(cluster)) == {"versionIgnored": {"a": 0, "b": -1}}


async def test_a_cancelled_request_is_not_counted_and_blocks_no_other() -> None:
    cluster = VirtualCluster(run="none")
    cluster.load([*KRUISE, spread_json({"name": "a", "maxReplicas": 20}, {"name": "b"})])
    async with cluster, processes(cluster) as [process]:
        cluster.faults.plan(SLOW)
        asking = [asyncio.create_task(process.admit(pod_of(f"web-{n}"))) for n in range(4)]
        await cluster.clock.advance(0.5)
        asking[1].cancel()  # it would have made the next write
        await cluster.clock.advance(2)
        assert [subset_of(await asking[n]) for n in (0, 2, 3)] == ["a", "a", "a"]
        assert await counts(Stage(cluster)) == {"versionIgnored": {"a": 17, "b": -1}}


async def test_a_write_that_fails_fails_all_that_waited_for_it() -> None:
    cluster = VirtualCluster(run="none")
    cluster.load([*KRUISE, spread_json({"name": "a", "maxReplicas": 20}, {"name": "b"})])
    async with cluster, processes(cluster) as [process]:
        refusing = fault("403").on("update", "workloadspreads", subresources="status")
        cluster.faults.plan(refusing.by("hooks-*"))
        asking = [asyncio.create_task(process.admit(pod_of(f"web-{n}"))) for n in range(4)]
        await cluster.clock.advance(1)
        assert [(await each)["allowed"] for each in asking] == 4 * [False]
        assert await counts(Stage(cluster)) == {}
