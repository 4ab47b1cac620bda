"""A running extender with shadow policies, and one that observes: answers, metrics, log, ledger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from extender.config.component_config import Config, Mode
from extender.config.strict_decoding import ConfigError
from extender.ledger.entry import LedgerRecord
from extender.ledger.storage.queries import Kind, Ledger, Selection
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from extender.protocol.verb_context import Search
from tests.builders import Document, node_json, pod_json
from tests.extender.conftest import Extender, filter_body, following, preempt_body
from tests.extender.go_decoder import filtered, preempted
from tests.extender.secure_serving.raw_clients import wait_until
from tests.extender.server.test_ledger import CALM, OBJECTS, OFFER, VIP, keeping
from tests.extender.server.test_policy_reload import Mounted, ReloadClock, Served

HEAD: Final = "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\n"
FEWEST: Final = f"""{HEAD}metadata: {{name: fewest}}
rules: [{{name: all, candidates: [fewest victims, smallest sum of priorities]}}]
"""
LEAST: Final = f"""{HEAD}metadata: {{name: least}}
rules: [{{name: all, candidates: [lowest priority of the first victim]}}]
"""
CAREFUL: Final = f"""{HEAD}metadata: {{name: careful}}
rules: [{{name: all, guards: {{protect: [{{name: all, namespaces: [default]}}]}}}}]
"""
SHARED: Final[Mapping[str, Any]] = {
    "deadline_milliseconds": CALM,
    "shadow_cpu_share": 1.0,
    "port": 0,
}


def written(folder: Path, **policies: str) -> dict[str, str]:
    """Write policies to files, and return their paths by name."""
    paths = {name: folder / f"{name}.yaml" for name in policies}
    for name, text in policies.items():
        paths[name].write_text(text)
    return {name: str(path) for name, path in paths.items()}


async def series(extender: Extender, name: str) -> dict[str, float]:
    """Return the values of a metric of shadow policies by its labels."""
    lines = (await extender.get("/metrics")).text.splitlines()
    named = [each for each in lines if each.startswith(f"reprieve_shadow_{name}")]
    return {
        labels.partition("{")[2].rstrip("}").replace('"', ""): float(value)
        for labels, _, value in (each.rpartition(" ") for each in named)
    }


async def wait_decided(extender: Extender, decisions: int) -> None:
    """Return when each shadow policy has made so many decisions."""
    registry = extender.service.metrics.registry
    assert extender.service.shadows is not None
    names = [each.policy.name for each in extender.service.shadows.rules]

    def decided() -> bool:
        made = [
            registry.get_sample_value("reprieve_shadow_decisions_total", {"policy": name})
            for name in names
        ]
        return all(each == decisions for each in made)

    await wait_until(decided)


async def records(path: Path, selection: Selection | None = None) -> list[LedgerRecord]:
    """Return the records of a ledger, the newest first."""
    ledger = Ledger(await open_sqlite(path, Access.READ))
    try:
        return list(await ledger.records(selection or Selection(), 100))
    finally:
        await ledger.close()


def choices(record: LedgerRecord) -> dict[str, tuple[str | None, list[str]]]:
    """Return node and victims of the shadow policies by name, and of the decision by ""."""
    every = {"": record.entry, **{each.policy: each.entry for each in record.shadows}}
    return {
        name: (entry.node, [pod.name for pod in entry.victims]) for name, entry in every.items()
    }


async def test_differences_are_in_metrics_in_the_log_and_in_the_ledger(tmp_path: Path) -> None:
    paths = written(tmp_path, least=LEAST, careful=CAREFUL)
    config = Config(shadow=("kube-scheduler", *paths.values()), **SHARED)
    path = tmp_path / "ledger.db"
    with capture_logs() as logs:
        async with keeping(path, config=config) as it:
            first = await series(it.extender, "victims_total")
            reply = await it.extender.post("/preempt", preempt_body(VIP, **OFFER))
            await wait_decided(it.extender, 1)
            counted = {
                name: await series(it.extender, f"{name}_total")
                for name in ("differences", "victims", "budget_violations", "refusals")
            }
            dropped = await series(it.extender, "decisions_dropped_total")
            live = [*preempted(reply.body, it.extender.service.cluster.snapshot())]
    assert live == ["node-1"]
    assert set(first.values()) == {0}
    assert len(first) == 6
    assert dropped == {"": 0}
    assert counted["differences"] == {
        "policy=kube-scheduler": 0, "policy=least": 1, "policy=careful": 1,
    }  # fmt: skip
    assert counted["victims"] == {
        "choice=live,policy=kube-scheduler": 1, "choice=shadow,policy=kube-scheduler": 1,
        "choice=live,policy=least": 1, "choice=shadow,policy=least": 2,
        "choice=live,policy=careful": 1, "choice=shadow,policy=careful": 0,
    }  # fmt: skip
    assert counted["budget_violations"]["choice=shadow,policy=least"] == 1
    assert counted["refusals"]["choice=shadow,policy=careful"] == 1
    assert sum(counted["refusals"].values()) == 1
    assert [
        (each["policy"], each["node"], each["live_node"], each["live_victims"])
        for each in logs
        if each["event"] == "shadow"
    ] == [("least", "node-2", "node-1", ["default/a"]), ("careful", None, "node-1", ["default/a"])]
    [record] = await records(path)
    assert choices(record) == {
        "": ("node-1", ["a"]),
        "kube-scheduler": ("node-1", ["a"]),
        "least": ("node-2", ["b2", "b"]),
        "careful": (None, []),
    }
    assert record.shadows[0].entry.protected == {"all": 3}
    assert [*await records(path, Selection(kind=Kind.DIFFERENCES))] == [record]
    for policy, found in (("least", [record]), ("kube-scheduler", []), ("unknown", [])):
        selection = Selection(kind=Kind.DIFFERENCES, shadow=policy)
        assert await records(path, selection) == found


async def test_observing_answers_with_what_was_offered_and_records_the_policy(
    tmp_path: Path,
) -> None:
    paths = written(tmp_path, least=LEAST, fewest=FEWEST)
    config = Config(
        mode=Mode.OBSERVE, policy=paths["least"], shadow=(paths["fewest"],), events=True, **SHARED
    )
    path = tmp_path / "ledger.db"
    offers = {"node_1": ["a"], "node_2": ["b2", "b"]}
    async with keeping(path, config=config) as it:
        reply = await it.extender.post("/preempt", preempt_body(VIP, **offers))
        snapshot = it.extender.service.cluster.snapshot()
        answer = {name: each.uids for name, each in preempted(reply.body, snapshot).items()}
        large = filter_body(pod_json("large", cpu="99"), "node-1", "node-2", "node-9")
        passed = await it.extender.post("/filter", large)
        await wait_decided(it.extender, 1)
        assert it.extender.service.cluster.assumed_count == 0
        assert it.extender.service.preemption_events is None
    assert answer == {"node-1": ("a",), "node-2": ("b2", "b")}
    names = ["node-1", "node-2", "node-9"]
    assert filtered(passed.body, names, cached=True).names == names
    [record] = await records(path)
    assert (record.entry.observed, record.entry.policy) == (True, "kube-scheduler")
    assert choices(record) == {
        "": ("node-2", ["b2", "b"]),
        "least": ("node-2", ["b2", "b"]),
        "fewest": ("node-1", ["a"]),
    }


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("preempt", preempt_body(VIP, node_1=["a"], node_7=["unknown"])),
        ("filter", filter_body(pod_json("p", cpu="99"), *(f"node-{n}" for n in range(3000)))),
    ],
)
async def test_observing_passes_calls_through_before_the_cluster_is_known(
    verb: str, body: bytes
) -> None:
    async with following(OBJECTS, Config(port=0, mode=Mode.OBSERVE)) as it:
        reply = await it.extender.post(f"/{verb}", body)
        assert (await it.extender.get("/readyz")).status == 503
    assert reply.status == 200
    assert ("unknown" if verb == "preempt" else "node-2999") in reply.text
    assert it.extender.service.metrics.registry.get_sample_value(
        "reprieve_degraded_total", {"verb": verb, "case": "stale", "answer": "echo"}
    )


async def test_candidates_that_are_not_known_are_passed_through_and_noted(tmp_path: Path) -> None:
    config = Config(mode=Mode.OBSERVE, search=Search.OFFERED, **SHARED)
    path = tmp_path / "ledger.db"
    async with keeping(path, config=config) as it:
        body = preempt_body(VIP, node_1=["gone"], node_2=["b2", "b"], node_9=["x"])
        reply = await it.extender.post("/preempt", body)
    assert all(f'"{name}"' in reply.text for name in ("node-1", "node-2", "node-9"))
    [record] = await records(path)
    assert record.entry.node == "node-2"
    assert record.entry.notes == (
        "left out: victim gone is not on node node-1",
        "left out: node node-9 is not known",
    )


def objects() -> list[Document]:
    """Return two nodes with a pod each."""
    pods = [
        pod_json(name, on=f"node-{number}", cpu="1", priority=number, labels={"app": name})
        for number, name in enumerate(("one", "two"), 1)
    ]
    return [node_json("node-1", cpu="1"), node_json("node-2", cpu="1"), *pods]


@pytest.mark.parametrize("mode", Mode)
async def test_a_changed_file_of_a_shadow_policy_is_used(tmp_path: Path, mode: Mode) -> None:
    file, clock = Mounted(tmp_path), ReloadClock()
    file.write(FEWEST)
    policies: Mapping[str, Any] = (
        {"policy": file.path} if mode is Mode.OBSERVE else {"shadow": (file.path,)}
    )
    config = Config(mode=mode, promise_seconds=0, **policies, **SHARED)
    async with following(objects(), config, clock=clock) as made:
        await made.let_it_sync()
        it = Served(made, file, clock)
        shadows = it.extender.service.shadows
        assert shadows is not None
        for content, name in ((CAREFUL, "careful"), ("rules: []", "careful"), (LEAST, "least")):
            await it.change(content)
            await clock.reload()
            assert [each.policy.name for each in shadows.rules] == [name]
            warned = [line for line in await it.warnings() if "policy not reloaded" in line]
            assert bool(warned) == (content == "rules: []")
        await it.answer()
        await wait_decided(it.extender, 1)


async def test_a_reload_cannot_give_two_shadow_policies_one_name(tmp_path: Path) -> None:
    file, clock = Mounted(tmp_path), ReloadClock()
    file.write(FEWEST)
    config = Config(shadow=("kube-scheduler", file.path), **SHARED)
    async with following(objects(), config, clock=clock) as made:
        await made.let_it_sync()
        it = Served(made, file, clock)
        await it.change(FEWEST.replace("fewest", "kube-scheduler", 1))
        await clock.reload()
        [warning] = [line for line in await it.warnings() if "not reloaded" in line]
    assert "'kube-scheduler' is the name of another shadow policy" in warning


async def test_policies_of_one_name_are_refused_at_the_start() -> None:
    config = Config(shadow=("kube-scheduler", "kube-scheduler"), **SHARED)
    with pytest.raises(ConfigError, match="expected another name"):
        async with following([], config):
            pass
