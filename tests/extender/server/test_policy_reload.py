"""A running extender with a policy: time, annotations, reloads of its file, and what guards did."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from extender.config.component_config import Config
from extender.config.strict_decoding import ConfigError
from extender.kube.rest.client import PatchType
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.resources import PODS, RESOURCE_QUOTAS
from extender.server.policy_reloader import RELOAD_INTERVAL_SECONDS
from extender.server.process import serving_rules
from policies.preemption.costs.candidate_criteria import CostCriterion, GroupCriterion
from policies.preemption.costs.catalog import DELETION_COST, cost_criteria, deletion_cost
from policies.preemption.costs.groupings import OWNERS
from policies.preemption.guards.attempt_guard import preemption_delay
from policies.preemption.guards.candidate_limit import CandidateLimit
from policies.preemption.guards.victim_guard import min_runtime, unreadable_cost
from policies.preemption.policy import KUBE_SCHEDULER, Policy, SchedulerRules
from tests.builders import SECOND, Document, encoded, node_json, pod_json
from tests.extender.conftest import Extender, Following, following, preempt_body
from tests.extender.go_decoder import preempted
from tests.extender.secure_serving.raw_clients import wait_until

VIP: Final = pod_json("vip", cpu="1", priority=10)
OFFERS: Final = {"node_1": ["one"], "node_2": ["two"]}
COST: Final = deletion_cost()
POLICIES: Final = {
    "plain": KUBE_SCHEDULER,
    "patient": Policy(
        "patient", victim_guards=(min_runtime("young", lambda _: True, 60 * SECOND),)
    ),
    "delayed": Policy("delayed", attempt_guards=(preemption_delay(60 * SECOND),)),
    "narrow": Policy(
        "narrow", candidate_limits=(CandidateLimit("owners", GroupCriterion("owners", OWNERS), 0),)
    ),
    "cheap": Policy(
        "cheap",
        candidates=(CostCriterion("lowest deletion cost", COST),),
        victim_guards=(unreadable_cost(COST),),
    ),
    "fair": Policy("fair", candidates=(cost_criteria(COST)["highest quota usage"],)),
}
HEAD: Final = "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\n"
SPARING: Final = f"""{HEAD}
metadata: {{name: sparing}}
rules:
- name: all
  guards: {{protect: [{{name: singles, labels: {{matchLabels: {{app: one}}}}}}]}}
"""
PLAIN: Final = f"{HEAD}metadata: {{name: plain}}\nrules: [{{name: all}}]\n"


class ReloadClock(SystemClock):
    """The system's clock, whose wall time the test sets, and whose reloads the test lets happen."""

    def __init__(self) -> None:
        self.now = 0
        self._turns: asyncio.Queue[None] = asyncio.Queue()
        self._waiting = asyncio.Event()

    def now_ns(self) -> int:
        return self.now * SECOND

    async def sleep(self, seconds: float) -> None:
        if seconds != RELOAD_INTERVAL_SECONDS:
            await super().sleep(seconds)
            return
        self._waiting.set()
        await self._turns.get()

    async def reload(self) -> None:
        """Let the policy file be read once more."""
        await self._waiting.wait()
        self._waiting.clear()
        self._turns.put_nowait(None)
        await self._waiting.wait()


@dataclass(frozen=True)
class Mounted:
    """A policy file as Kubernetes mounts a ConfigMap: behind a symlink that it replaces."""

    folder: Path

    @property
    def path(self) -> str:
        return str(self.folder / "policy.yaml")

    def write(self, content: str) -> None:
        version = self.folder / f"..{len(list(self.folder.iterdir()))}"
        version.mkdir()
        (version / "policy.yaml").write_text(content)
        link = self.folder / "next"
        link.symlink_to(version.name)
        link.rename(self.folder / "..data")
        if not Path(self.path).is_symlink():
            Path(self.path).symlink_to("..data/policy.yaml")


def rules_by_name(config: Config) -> SchedulerRules:
    """Return the rules with the policy of the test that the file names."""
    name = Path(config.policy).read_text()
    if name not in POLICIES:
        raise ConfigError(f"{name}: no such policy")
    return SchedulerRules(policy=POLICIES[name])


@dataclass(frozen=True)
class Served:
    """An extender with a policy file, and its clock."""

    following: Following
    file: Mounted
    clock: ReloadClock

    @property
    def extender(self) -> Extender:
        return self.following.extender

    async def change(self, content: str) -> None:
        """Change the file, and let it be read."""
        self.file.write(content)
        await self.clock.reload()

    async def answer(self) -> list[str]:
        """Return the nodes that a preempt call names, with the victims."""
        reply = await self.extender.post("/preempt", preempt_body(VIP, **OFFERS))
        assert reply.status == 200
        found = preempted(reply.body, self.extender.service.cluster.snapshot())
        return [uid for victims in found.values() for uid in victims.uids]

    async def write_cost(self, pod: str, cost: str) -> None:
        """Write the deletion cost of a pod, and wait until the extender has seen it."""
        pods = self.extender.service.cluster.pods
        before = pods.by_key[f"default/{pod}"]
        change = {
            "metadata": {"annotations": {DELETION_COST: cost}, "labels": {"cost": f"c{cost}"}}
        }
        path = PODS.object(pod, "default")
        await self.following.cluster.client.patch(path, PatchType.MERGE, encoded(change), bytes)
        await wait_until(lambda: pods.by_key[f"default/{pod}"] != before)

    async def last_decision(self) -> Document:
        reply = await self.extender.get("/decisions?limit=1")
        (decision,) = json.loads(reply.text)["decisions"]
        assert isinstance(decision, dict)
        return decision

    async def series(self, name: str) -> dict[str, float]:
        text = (await self.extender.get("/metrics")).text
        found = re.findall(rf"^reprieve_{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
        return {labels: float(value) for labels, value in found}

    async def warnings(self) -> list[str]:
        reply = await self.extender.get("/readyz?verbose")
        assert reply.status == 200
        lines = [line for line in reply.text.splitlines() if line.startswith("[!]")]
        return [line for line in lines if "taken as on" not in line]


Serve = Callable[..., Any]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Return a function that serves two nodes with a pod each, which differ in their costs."""

    @asynccontextmanager
    async def serving(
        content: str, load_rules: Callable[[Config], SchedulerRules] = rules_by_name
    ) -> AsyncIterator[Served]:
        file, clock = Mounted(tmp_path), ReloadClock()
        file.write(content)
        config = Config(port=0, policy=file.path, promise_seconds=0)
        async with following(objects(), config, clock=clock, load_rules=load_rules) as it:
            await it.let_it_sync()
            yield Served(it, file, clock)

    return serving


def objects() -> list[Document]:
    costs: Mapping[str, str] = {"one": "5", "two": "-5"}
    pods = [
        pod_json(
            name,
            on=f"node-{number}",
            cpu="1",
            priority=1,
            started=0,
            labels={"app": name},
            metadata={"annotations": {DELETION_COST: cost}},
        )
        for number, (name, cost) in enumerate(costs.items(), 1)
    ]
    return [node_json("node-1", cpu="1"), node_json("node-2", cpu="1"), *pods]


def about_policies(logs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in logs if each["event"].startswith("policy_")]


async def test_guards_protect_pods_until_a_time_of_the_clock(serve: Serve) -> None:
    async with serve("patient") as it:
        for now, victims, decision in (
            (59, [], {"protected": {"young": 2}}),
            (60, ["one"], {"node": "node-1"}),
        ):
            it.clock.now = now
            assert await it.answer() == victims
            assert decision.items() <= (await it.last_decision()).items()


async def test_a_refused_attempt_names_its_guard(serve: Serve) -> None:
    async with serve("delayed") as it:
        with capture_logs() as logs:
            assert await it.answer() == []
            assert (await it.last_decision())["refusedAttempt"] == "preemptionDelay"
        lines = [each for each in logs if each["event"] == "preempt"]
        assert [each["refused_attempt"] for each in lines] == ["preemptionDelay"]
        label = 'action="attempt",guard="preemptionDelay"'
        assert await it.series("policy_guard_total") == {label: 1}
        it.clock.now = 60
        assert await it.answer() == ["one"]


async def test_nodes_that_a_limit_refuses_are_counted(serve: Serve) -> None:
    async with serve("narrow") as it:
        label = 'action="node",guard="owners"'
        assert await it.series("policy_guard_total") == {label: 0}
        assert await it.answer() == []
        assert (await it.last_decision())["refusedNodes"] == {"owners": 2}
        assert await it.series("policy_guard_total") == {label: 2}


async def test_a_changed_file_is_used_from_the_next_call_on(serve: Serve) -> None:
    async with serve(PLAIN, serving_rules) as it:
        assert await it.answer() == ["one"]
        assert await it.series("policy_info") == {'name="plain"': 1}
        it.file.write(SPARING)
        assert await it.answer() == ["one"]
        with capture_logs() as logs:
            await it.clock.reload()
            await it.clock.reload()
        assert about_policies(logs) == [
            {"event": "policy_reloaded", "policy": "sparing", "log_level": "info"}
        ]
        assert await it.answer() == ["two"]
        assert await it.series("policy_info") == {'name="sparing"': 1}
        assert await it.series("policy_reloads_total") == {"": 1}


FAULTY: Final = {
    "a criterion": (f"{SPARING}  candidates: [best]\n", "unknown criterion 'best'"),
    "two fields": (f"{SPARING}  victims: 5\nprotekt: []\n", "protekt"),
    "the former format": ("name: sparing\n", "the format of policies has changed"),
    "no YAML": ("{", "expected"),
    "empty": ("", "required field rules"),
}


@pytest.mark.parametrize(("content", "problem"), FAULTY.values(), ids=FAULTY)
async def test_a_faulty_file_is_reported_and_the_last_policy_stays(
    serve: Serve, content: str, problem: str
) -> None:
    async with serve(SPARING, serving_rules) as it:
        with capture_logs() as logs:
            await it.change(content)
            await it.clock.reload()
        (line,) = about_policies(logs)
        assert (line["event"], line["policy"]) == ("policy_not_reloaded", "sparing")
        assert problem in line["problem"]
        assert await it.answer() == ["two"]
        assert await it.warnings() == [
            f"[!] policy not reloaded; 'sparing' stays in use: {line['problem']}"
        ]
        assert await it.series("policy_reload_errors_total") == {"": 1}
        await it.change(PLAIN)
        assert (await it.answer(), await it.warnings()) == (["one"], [])


async def test_a_removed_file_is_faulty(serve: Serve) -> None:
    async with serve(SPARING, serving_rules) as it:
        (it.file.folder / "..data").unlink()
        await it.clock.reload()
        assert await it.answer() == ["two"]
        (warning,) = await it.warnings()
        assert "no such file" in warning


async def test_pods_are_decoded_again_for_a_policy_that_reads_other_annotations(
    serve: Serve,
) -> None:
    async with serve("plain") as it:
        pods = it.extender.service.cluster.pods.by_key
        assert pods["default/one"].annotations == {}
        assert await it.answer() == ["one"]
        await it.change("cheap")
        assert pods["default/one"].annotations == {DELETION_COST: "5"}
        assert await it.answer() == ["two"]
        await it.write_cost("one", "-7")
        assert await it.answer() == ["one"]
        await it.write_cost("one", "7")
        await it.change("plain")
        assert await it.answer() == ["one"]


async def test_objects_that_only_the_new_policy_reads_are_watched_from_then_on(
    serve: Serve,
) -> None:
    async with serve("plain") as it:
        service, client = it.extender.service, it.following.cluster.client
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}}
        await client.create(RESOURCE_QUOTAS.collection("default"), encoded(quota), bytes)
        assert "resourcequotas" not in service.informers
        for name in ("fair", "plain", "fair"):
            await it.change(name)
            assert service.informers["resourcequotas"].synced
            [found] = service.cluster.snapshot().policy_objects.quotas["default"]
            assert found.hard == {"cpu": 1000}
            assert await it.answer() == ["one"]


async def test_a_pod_whose_cost_cannot_be_read_is_protected_logged_and_counted(
    serve: Serve,
) -> None:
    async with serve("plain") as it:
        await it.write_cost("two", "cheap")
        with capture_logs() as logs:
            await it.change("cheap")
            await it.write_cost("one", "6")
            assert await it.answer() == ["one"]
        reason = f"deletion cost: annotation {DELETION_COST}: 'cheap' is no integer"
        lines = [each for each in logs if each["event"] == "cost_unreadable"]
        assert [(each["pod"], each["problem"]) for each in lines] == [("default/two", reason)]
        assert await it.series("policy_unreadable_costs") == {"": 1}
        await it.write_cost("two", "-5")
        assert await it.answer() == ["two"]
        assert await it.series("policy_unreadable_costs") == {"": 0}
