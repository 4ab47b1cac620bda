"""The mode ``observe``: the scheduler behaves as it does without an extender."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest
import yaml

from extender.config.component_config import Mode
from extender.protocol.verb_context import Search
from fakeapi import VirtualCluster
from fakeapi.testing.extenders import InProcessReprieve
from policies.kubernetes.releases import release
from policies.preemption.policy import SchedulerRules
from tests.builders import Document
from tests.commands import ROOT
from tests.fakeapi.controlplane.scheduler.stages import (
    SchedulerStage,
    X,
    configured,
    node,
    pdb_json,
    pod,
)

RUN: Final = "scheduler,kubelet,disruption"
BUSY: Final = {"app": "busy"}
ONE_EACH: Final = [node(f"n{number}") for number in range(3)]
SCENARIOS: Final[Mapping[str, tuple[Sequence[Document], Sequence[Document]]]] = {
    "pods that fit": (ONE_EACH, [pod("a"), pod("b"), pod("c")]),
    "one that preempts": (ONE_EACH, [pod("vip", "2", priority=100)]),
    "one after another": (
        ONE_EACH,
        [pod(f"vip{number}", "2", priority=100 + number) for number in range(3)],
    ),
    "a budget that allows nothing": (
        [*ONE_EACH, pdb_json("strict", match=BUSY, allowed=0)],
        [pod("vip", "2", priority=100)],
    ),
    "one that fits nowhere": (ONE_EACH, [pod("large", "9", priority=100)]),
    "one that may not preempt": (
        ONE_EACH,
        [pod("calm", "2", priority=100, spec={"preemptionPolicy": "Never"})],
    ),
}


def residents() -> Iterator[Document]:
    """Yield pods that fill three nodes of two CPUs; no two nodes are equally good to preempt on."""
    for number in range(6):
        yield pod(f"p{number}", priority=number, labels=BUSY if number < 2 else {})


async def history(
    objects: Sequence[Document],
    arriving: Sequence[Document],
    extender: InProcessReprieve | None,
    **options: Any,
) -> tuple[list[dict[str, str]], list[tuple[str, str]]]:
    """Return where the pods are after each arrival, and which were preempted for which."""
    config = configured(*([{}] if extender else []))
    extenders = {X: extender} if extender else {}
    async with AsyncExitStack() as stack:
        made = VirtualCluster(run=RUN, extenders=extenders, scheduler=config, seed=3, **options)
        stage = SchedulerStage(await stack.enter_async_context(made))
        if extender:
            await stack.enter_async_context(extender.following(stage.cluster))
        stage.load(*objects)
        await stage.passes(5)
        seen: list[dict[str, str]] = []
        for each in arriving:
            await stage.create_pod({**each, "spec": dict(each["spec"])})
            seen.append(await stage.places(after=2))
        seen.append(await stage.places(after=60))
        assert stage.problems() == []
        return seen, await stage.messages("Preempted")


async def assert_same_history(
    objects: Sequence[Document], arriving: Sequence[Document], upstream: str = "1.38"
) -> int:
    """Compare the histories with and without an extender; return the number of preempted pods."""
    observing = InProcessReprieve(
        Search.CLUSTER, SchedulerRules(release(upstream)), mode=Mode.OBSERVE
    )
    with_extender = await history(objects, arriving, observing, upstream=upstream)
    without = await history(objects, arriving, None, upstream=upstream)
    assert with_extender == without
    return len(without[1])


@pytest.mark.parametrize("upstream", ["1.30", "1.38"])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_placements_and_victims_are_those_without_an_extender(
    name: str, upstream: str
) -> None:
    objects, arriving = SCENARIOS[name]
    preempted = await assert_same_history(objects, [*residents(), *arriving], upstream)
    assert (preempted > 0) == name.startswith(("one that preempts", "one after", "a budget"))


async def test_the_configuration_in_deploy_changes_nothing() -> None:
    """Its candidates are those of kube-scheduler's defaults, and it survives an outage."""
    config = yaml.safe_load((ROOT / "deploy/kube-scheduler/observe.yaml").read_text())
    [entry] = config["extenders"]
    assert (entry["preemptVerb"], entry["ignorable"]) == ("preempt", True)
    assert "filterVerb" not in entry
    assert "profiles" not in config


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(12))
async def test_random_clusters_have_the_same_history(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [node(f"n{number}", cpu=str(rng.randint(2, 6))) for number in range(rng.randint(1, 6))]
    budget = pdb_json("web", match=BUSY, allowed=rng.randint(0, 2))
    # Distinct priorities: among equal candidates kube-scheduler chooses at random.
    priorities = rng.sample(range(1, 1000), 25)
    arriving = [
        pod(
            f"p{number}",
            str(rng.randint(1, 3)),
            priority=priority,
            labels=rng.choice([BUSY, {}]),
        )
        for number, priority in enumerate(priorities)
    ]
    await assert_same_history([*nodes, budget], arriving)
