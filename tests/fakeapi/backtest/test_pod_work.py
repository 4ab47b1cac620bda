"""The work of pods: how much is kept when they are stopped."""

from __future__ import annotations

import pytest

from fakeapi.backtest.simulation.pod_work import PodWork, WorkByPod, WorkScript
from fakeapi.backtest.simulation.resource_use import ResourceUse
from fakeapi.backtest.traces.trace import TraceJob

SECOND = 10**9
HOUR = 3600 * SECOND


def job(**fields: object) -> TraceJob:
    values: dict[str, object] = {"priority": 0, "submitted_ns": 0, "run_ns": 100 * SECOND}
    values |= {"requests": {"cpu": 1000}, **fields}
    return TraceJob("job", "team", **values)  # type: ignore[arg-type]


def only_pod(**fields: object) -> PodWork:
    (pod,) = WorkByPod().add(job(**fields))
    return pod


@pytest.mark.parametrize(
    ("checkpoint", "runs", "lost", "left"),
    [
        pytest.param(None, (60, 90), (60, 90), 100, id="no checkpoint"),
        pytest.param(0, (60, 30), (0, 0), 10, id="nothing is ever lost"),
        pytest.param(25, (60, 20), (10, 20), 50, id="the last multiple"),
        pytest.param(25, (60, 30), (10, 5), 25, id="counted over all runs"),
        pytest.param(200, (60,), (60,), 100, id="none was reached"),
    ],
)
def test_a_stopped_pod_loses_the_work_since_its_checkpoint(
    checkpoint: int | None, runs: tuple[int, ...], lost: tuple[int, ...], left: int
) -> None:
    every = None if checkpoint is None else checkpoint * SECOND
    pod = only_pod(checkpoint_ns=every)
    assert tuple(pod.stop(run * SECOND) // SECOND for run in runs) == lost
    assert pod.work_of("next") == left * SECOND


def test_a_replacement_has_one_script_for_its_life() -> None:
    """Its status changes when it is stopped, and the work that is left with it."""
    work = WorkByPod()
    (pod,) = work.add(job(checkpoint_ns=0))
    script = WorkScript(work=work)
    labels = {
        "batch.kubernetes.io/job-name": "job",
        "batch.kubernetes.io/job-completion-index": "0",
    }

    def runs_for(name: str) -> int:
        end = script.for_pod(name, "team", "node", labels).default.runs[0].exit
        assert end is not None
        return end.after // SECOND

    assert runs_for("job-0-first") == 100
    pod.stop(30 * SECOND)
    assert runs_for("job-0-first") == 100
    assert runs_for("job-0-second") == 70


def test_work_is_whole_seconds() -> None:
    pod = only_pod(run_ns=SECOND // 3, checkpoint_ns=1)
    assert (pod.run_ns, pod.checkpoint_ns) == (SECOND, SECOND)


def test_use_is_counted_over_time_and_nodes_may_come_and_go() -> None:
    use = ResourceUse(0, 100 * HOUR)
    use.set_node("a", {"cpu": 8_000, "memory": 2**30, "pods": 110, "hugepages-2Mi": 5}, 0)
    use.add_shape({"cpu": 2_000, "memory": 2**29}, 1)
    use.allocate("a", {"cpu": 2_000, "memory": 2**29}, 10 * SECOND)
    use.set_node("b", {"cpu": 4_000}, 20 * SECOND)
    use.allocate("unknown", {"cpu": 4_000}, 20 * SECOND)
    use.release("a", {"cpu": 2_000, "memory": 2**29}, 30 * SECOND)
    use.set_node("a", {}, 40 * SECOND)
    use.advance(50 * SECOND)
    assert use.capacity() == {"cpu": 40 * 8_000 + 30 * 4_000, "memory": 40 * 1024}
    assert use.allocated() == {"cpu": 20 * 2_000, "memory": 20 * 512}


def test_what_is_free_is_fragmented_as_far_as_pods_do_not_fit() -> None:
    use = ResourceUse(0, 0)
    use.set_node("a", {"cpu": 8_000}, 0)
    use.set_node("b", {"cpu": 2_000}, 0)
    use.add_shape({"cpu": 1_000}, 3)
    use.add_shape({"cpu": 4_000}, 1)
    use.advance(HOUR)
    assert use.fragmented() == {"cpu": 2_000 // 4 * 3600}
