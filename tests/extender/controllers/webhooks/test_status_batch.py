"""Pods that share a write of the status are decided as if each had its own write."""

from __future__ import annotations

from itertools import count

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
from fakeapi.testing.faults import fault
from policies.workloadspread.model import SECOND, WorkloadSpreadStatus
from policies.workloadspread.pod_admission import AdmissionContext, PodAdmission, admit_release
from policies.workloadspread.spread_lookup import OwnerLookup
from tests.builders import encoded
from tests.builders.workloadspread import NOW_NS, pod_of, spread_json
from tests.extender.controllers.webhooks.stages import process_stage
from tests.extender.controllers.webhooks.test_conflicts import SLOW, subset_of
from tests.properties.sampling import examples

LIMITS = st.lists(st.integers(0, 3), min_size=1, max_size=3)
PODS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "s0", "s1"]), st.integers(0, 10)),
    max_size=8,
)


def decision(name: str, leaves: str, later: int) -> Decide:
    """Return the decision about a pod that is created, or deleted from a subset."""
    context = AdmissionContext(OwnerLookup(), lambda _spread: None, NOW_NS + later * SECOND)
    document = pod_of(f"web-{name}", leaves or None)
    pod = decode_spread_pod(encoded(document))
    numbers = count()

    def decide(current: StoredWorkloadSpread) -> InjectionResult:
        if leaves:
            return InjectionResult(admit_release(pod, current.spread, context), {})
        return inject_placed_pod(
            pod, document, current, context, lambda: f"id-{next(numbers)}", None
        )

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
            current = decode_workloadspread(encoded(document))
    return answers, current


@settings(max_examples=examples(150))
@given(LIMITS, PODS)
async def test_a_batch_is_decided_as_pod_by_pod(
    limits: list[int], pods: list[tuple[str, str, int]]
) -> None:
    subsets = ({"name": f"s{n}", "maxReplicas": limit} for n, limit in enumerate(limits))
    current = decode_workloadspread(encoded(spread_json(*subsets, {"name": "last"})))
    together = [PendingPod(decision(*each)) for each in pods]
    status, decided = await decide_batch(current, together)
    answers, after = one_by_one(current, [decision(*each) for each in pods])
    for each in decided:
        each.resolve(each.answer)
    assert [each.result() for each in together] == answers
    written = encode_status(status) if status is not None else encode_status(WorkloadSpreadStatus())
    assert written == encode_status(after.spread.status)


async def test_an_error_of_one_decision_affects_no_other() -> None:
    def failing(_current: StoredWorkloadSpread) -> InjectionResult:
        raise LookupError("unexpected")

    def counted(_current: StoredWorkloadSpread) -> InjectionResult:
        return InjectionResult(PodAdmission(status=WorkloadSpreadStatus(observed_generation=1)), {})

    current = decode_workloadspread(encoded(spread_json({"name": "a"})))
    one, wrong, other = together = [PendingPod(each) for each in (counted, failing, counted)]
    status, decided = await decide_batch(current, together)
    assert (status, decided) == (WorkloadSpreadStatus(observed_generation=1), [one, other])
    assert wrong.is_resolved


TWO = ({"name": "a", "maxReplicas": 20}, {"name": "b"})


async def test_pods_that_are_created_while_a_status_is_written_share_the_next_write() -> None:
    total = 1 + BATCH_SIZE + 5
    first = {"name": "a", "maxReplicas": total - 2}
    async with process_stage(spread_json(first, {"name": "b"})) as stage:
        stage.plan_faults(SLOW)
        responses = [stage.admit(f"web-{n}") for n in range(total)]
        for done in (1, 1 + BATCH_SIZE, total):
            await stage.passes(1.1)
            waiting = total - done
            assert [each.done() for each in responses] == done * [True] + waiting * [False]
        subsets = [subset_of(await each) for each in responses]
        assert subsets == (total - 2) * ["a"] + 2 * ["b"]
        assert await stage.missing() == {"versionIgnored": {"a": 0, "b": -1}}


async def test_a_cancelled_request_is_not_counted_and_blocks_no_other() -> None:
    async with process_stage(spread_json(*TWO)) as stage:
        stage.plan_faults(SLOW)
        responses = [stage.admit(f"web-{n}") for n in range(4)]
        await stage.passes(0.5)
        responses[1].cancel()  # it would have made the next write
        await stage.passes(2)
        assert [subset_of(await responses[n]) for n in (0, 2, 3)] == ["a", "a", "a"]
        assert await stage.missing() == {"versionIgnored": {"a": 17, "b": -1}}


async def test_a_write_that_fails_refuses_all_pods_that_wait_for_it() -> None:
    async with process_stage(spread_json(*TWO)) as stage:
        forbidden = fault("403").on("update", "workloadspreads", subresources="status")
        stage.plan_faults(forbidden.by("hooks-*"))
        responses = [stage.admit(f"web-{n}") for n in range(4)]
        await stage.passes()
        assert [(await each)["allowed"] for each in responses] == 4 * [False]
        assert await stage.missing() == {}
