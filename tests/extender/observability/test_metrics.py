"""Counters start at 0, so that the first event is an increase."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml

from extender.config.component_config import Config, DegradedConfig, FallbackConfig
from extender.protocol.verb_context import FallbackKind
from extender.secure_serving.connection_limits import Phase
from extender.server.fallback_policy import configured_fallbacks
from extender.server.service import Service
from fakeapi.testing.fake_cluster import FakeCluster
from policies.preemption.filtering.status import Code
from policies.preemption.reference_engine import ReferenceEngine
from tests.builders import node, pod, pod_json
from tests.commands import ROOT, serving
from tests.extender.conftest import HandClock, filter_body, live_cluster, preempt_body, served

ALERTS: Final = ROOT / "deploy/kustomize/components/monitoring/prometheusrule.yaml"
OPERATIONS: Final = ROOT / "docs/operations.md"

_SERIES: Final = re.compile(r"^(reprieve_\w+?)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_KIND: Final = re.compile(r"^# TYPE (reprieve_\w+) (\w+)$", re.MULTILINE)
_DOCUMENTED: Final = re.compile(r"`(reprieve_\w+)(?:\{([\w,]+)\})?`")
_COUNTED: Final = re.compile(r"(?:increase|rate)\((reprieve_\w+?)(?:_bucket)?\{")

Labels = Mapping[str, str]

VERBS: Final = ("filter", "preempt")
CASES: Final = ("late", "stale", "overloaded")
REFUSED: Final = ("400", "408", "413", "500", "503")
OPEN: Final = {"namespace", "priority_class", "guard"}
"""Labels whose values the cluster, or the policy, brings with it."""


def all_of(**values: Iterable[str]) -> list[Labels]:
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


BY_VERB: Final = all_of(verb=VERBS)
SHADOW: Final = "kube-scheduler"
CHOICES: Final = ("live", "shadow")
SHADOWS: Final = all_of(policy=(SHADOW,))
BY_SHADOW: Final = ("decisions_total", "differences_total", "seconds_count")
BY_CHOICE: Final = (
    "refusals_total",
    "victims_total",
    "budget_violations_total",
    "lost_core_seconds_total",
    "lost_device_seconds_total",
)
FROM_THE_START: Final = {
    "reprieve_requests_total": [
        *all_of(verb=VERBS, status=("200", *REFUSED)),
        *all_of(verb=("unknown",), status=("404", *REFUSED)),
    ],
    "reprieve_request_seconds_count": BY_VERB,
    "reprieve_queue_seconds_count": BY_VERB,
    "reprieve_overdue_answers_total": BY_VERB,
    "reprieve_searches_cut_short_total": all_of(verb=("preempt",)),
    "reprieve_degraded_total": all_of(verb=VERBS, case=CASES, answer=("error",)),
    "reprieve_rejected_nodes_total": all_of(
        verb=VERBS, reason=[code.name.lower() for code in Code]
    ),
    "reprieve_connections_cut_total": all_of(phase=[phase.value for phase in Phase]),
    **{f"reprieve_shadow_{name}": SHADOWS for name in BY_SHADOW},
    **{f"reprieve_shadow_{name}": all_of(policy=(SHADOW,), choice=CHOICES) for name in BY_CHOICE},
}
"""The initial label values of each metric with labels, with a shadow policy."""


def series(text: str, name: str) -> dict[frozenset[tuple[str, str]], float]:
    """Return the values of a figure by their labels."""
    return {
        frozenset(_LABEL.findall(labels)): float(value)
        for found, labels, value in _SERIES.findall(text)
        if found == name
    }


def counts(text: str, name: str) -> dict[frozenset[tuple[str, str]], float]:
    """Return the value of a counter, or the number of a histogram's observations."""
    return series(text, name) or series(text, f"{name}_count")


def at_zero(labels: Iterable[Labels]) -> dict[frozenset[tuple[str, str]], float]:
    return {frozenset(each.items()): 0.0 for each in labels}


def documented() -> dict[str, set[str]]:
    """Return the labels of figures, as they are documented."""
    found = _DOCUMENTED.findall(OPERATIONS.read_text())
    return {name: set(filter(None, of.split(","))) for name, of in found}


def counted_by_alerts() -> set[str]:
    """Return the metrics whose growth an alert evaluates."""
    [group] = yaml.safe_load(ALERTS.read_text())["spec"]["groups"]
    return {name for rule in group["rules"] for name in _COUNTED.findall(rule["expr"])}


async def figures_of(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        return await response.text()


@pytest.mark.slow
async def test_all_metrics_of_a_new_process_are_zero_and_documented(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"shadow: [{SHADOW}]\n")
    async with FakeCluster(run="none") as cluster:
        ledger = str(tmp_path / "ledger.db")
        options = ("--server", cluster.url, "--config", str(config), "--ledger", ledger)
        async with serving("serve", *options) as url:
            text = await figures_of(url)
    for name, labels in FROM_THE_START.items():
        assert series(text, name) == at_zero(labels), name
    kinds = dict(_KIND.findall(text))
    shown = {name for name in kinds if not name.endswith("_created")}
    assert shown == {name for name in documented() if "certificate" not in name}
    growing = {name for name in shown if kinds[name] != "gauge"}
    named_beforehand = {name for name in growing if not documented()[name] & OPEN}
    for name in named_beforehand | counted_by_alerts():
        assert set(counts(text, name).values()) == {0.0}, name
    labelled = {name for name in named_beforehand if documented()[name]}
    assert labelled == {name.removesuffix("_count") for name in FROM_THE_START}


def test_alerts_read_increases() -> None:
    assert {"reprieve_degraded_total", "reprieve_overdue_answers_total"} <= counted_by_alerts()


def test_configured_fallbacks_start_at_zero() -> None:
    stale = FallbackConfig(filter=FallbackKind.VETO, preempt=FallbackKind.ECHO)
    degradation = configured_fallbacks(Config(degraded=DegradedConfig(stale=stale)))
    service = Service(
        live_cluster(node()), ReferenceEngine(), HandClock(), fallback_policy=degradation
    )
    assert series(service.scrape().decode(), "reprieve_degraded_total") == at_zero(
        [
            *all_of(verb=VERBS, case=("late", "overloaded"), answer=("error",)),
            *all_of(verb=("filter",), case=("stale",), answer=("veto",)),
            *all_of(verb=("preempt",), case=("stale",), answer=("echo",)),
        ]
    )


async def test_counters_add_to_earlier_values() -> None:
    clock = HandClock()
    async with served(live_cluster(node("node-1")), clock, body_limit=2**12) as extender:
        before = (await extender.get("/metrics")).text
        fine = filter_body(pod_json(), "node-1", "node-2")
        for path, body in (
            ("/filter", fine),
            ("/filter", b"{"),
            ("/filter", b" " * 2**13),
            ("/nonsense", b"{}"),
            ("/nonsense", b" " * 2**13),
        ):
            await extender.post(path, body)
        clock.breaks = 1
        await extender.post("/preempt", b"{}")
        after = (await extender.get("/metrics")).text
    for name, added in (
        ("reprieve_requests_total", 6.0),
        ("reprieve_rejected_nodes_total", 1.0),
        ("reprieve_request_seconds_count", 1.0),
    ):
        was, is_now = series(before, name), series(after, name)
        assert was.keys() == is_now.keys()
        assert sum(was.values()) == 0.0
        assert sum(is_now.values()) == added


@pytest.mark.parametrize(
    ("label", "texts", "series_of_their_own"),
    [("namespace", 230, 200), ("priority_class", 30, 20)],
    ids=["namespaces", "priority classes"],
)
async def test_texts_beyond_the_limit_of_a_label_are_counted_together(
    label: str, texts: int, series_of_their_own: int
) -> None:
    fields: list[dict[str, Any]] = [{label: f"text-{n:03}"} for n in range(texts)]
    victims = [pod(f"web-{n}", on="node-1", cpu="1", **each) for n, each in enumerate(fields)]
    cluster = live_cluster(node("node-1", cpu=str(texts), pods=texts), *victims)
    async with served(cluster) as extender:
        asking = pod_json("vip", cpu=str(texts), priority=10)
        await extender.post("/preempt", preempt_body(asking, node_1=[v.uid for v in victims]))
        counted = series((await extender.get("/metrics")).text, "reprieve_victims_by_class_total")
    values = Counter[str]()
    for labels, number in counted.items():
        values[dict(labels)[label]] += int(number)
    assert values.pop("other") == texts - series_of_their_own
    assert list(values.values()) == [1] * series_of_their_own
