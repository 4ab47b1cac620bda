"""Alerts and dashboards query existing metrics by existing labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import promql_parser as promql
import pytest

from tests.builders import Document
from tests.deploy.charts import CHART, DEPLOY, MONITORED, RefusedError, only, rendered
from tests.deploy.cluster_objects import filtered, preempted
from tests.deploy.image import ROOT, Image
from tests.deploy.installation import installed
from tests.deploy.network import Network

DASHBOARD: Final = CHART / "files" / "reprieve.json"
OPERATIONS: Final = ROOT / "docs" / "operations.md"
RUNBOOKS: Final = ROOT / "docs" / "runbooks.md"
PUBLISHED: Final = "https://docs.example/runbooks.html"

_OF_THE_TARGET: Final = {"namespace", "service", "pod"}
_PARTS: Final = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
_FIGURE: Final = re.compile(r"reprieve_\w+")
_DOCUMENTED: Final = re.compile(r"`(reprieve_\w+)(?:\{([\w,]+)\})?`")
_NAMED: Final = re.compile(r"\{\{ ?(?:\$labels\.)?(\w+) ?\}\}")


def alerts(**values: Any) -> list[Document]:
    rule = {"create": True, **values}
    shown = rendered({"monitoring": {**MONITORED["monitoring"], "prometheusRule": rule}})
    [group] = only("PrometheusRule", shown)["spec"]["groups"]
    rules: list[Document] = group["rules"]
    return rules


def dashboard() -> Document:
    read: Document = json.loads(DASHBOARD.read_text())
    return read


def queries() -> Iterator[tuple[str, str]]:
    """Return the dashboard's expressions with their legends, as Grafana sends them."""
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "2m"), target["legendFormat"]


def expressions() -> list[str]:
    return [*(alert["expr"] for alert in alerts()), *(query for query, _ in queries())]


def labels() -> dict[str, set[str]]:
    """Return the documented labels of each metric."""
    found = _DOCUMENTED.findall(OPERATIONS.read_text())
    return {name: set(filter(None, of.split(","))) for name, of in found}


def parts(node: Any) -> Iterator[Any]:
    """Return a parsed expression and its parts."""
    yield node
    inner = [
        getattr(node, name, None) for name in ("expr", "lhs", "rhs", "vector_selector", "param")
    ]
    for part in (*inner, *getattr(node, "args", ())):
        if part is not None and type(part).__module__ == type(node).__module__:
            yield from parts(part)


def name_of(selector: promql.VectorSelector) -> str:
    """Return the name of a selector; all of ours have one."""
    assert selector.name is not None
    return selector.name


def figure(name: str) -> str:
    """Return the metric of a histogram's part."""
    return re.sub("_(bucket|sum|count)$", "", name)


def test_every_expression_can_be_parsed() -> None:
    for text in expressions():
        promql.parse(text)


def test_expressions_select_one_installation_and_group_by_existing_labels() -> None:
    known = labels()
    for text in expressions():
        found = list(parts(promql.parse(text)))
        selectors = [part for part in found if isinstance(part, promql.VectorSelector)]
        assert sorted(name_of(each) for each in selectors) == sorted(_FIGURE.findall(text))
        for selector in selectors:
            of = known[figure(name_of(selector))] | _OF_THE_TARGET
            asked = [matcher.name for matcher in selector.matchers.matchers]
            assert {"namespace", "service"} <= set(asked) <= of, text
        there = set().union(*(known[figure(name_of(each))] for each in selectors)) | _OF_THE_TARGET
        aggregates = [part for part in found if isinstance(part, promql.AggregateExpr)]
        grouped = {label for each in aggregates if each.modifier for label in each.modifier.labels}
        assert grouped <= there | {"le", "exported_namespace"}, text


def test_messages_use_only_labels_that_are_grouped_by() -> None:
    shown_labels = [(alert["expr"], alert["annotations"]["summary"]) for alert in alerts()]
    for text, shown in (*shown_labels, *queries()):
        for label in _NAMED.findall(shown):
            if label not in ("value", "pod"):
                assert re.search(rf"by \([^)]*\b{label}\b", text), text


def test_every_figure_is_served_and_documented(net: Network, image: Image, tmp_path: Path) -> None:
    values = {"ledger": {"mode": "file"}, "shadow": ["kube-scheduler"]}
    with installed(net, image, tmp_path, values) as there:
        there.request("/filter", filtered())
        there.request("/preempt", preempted())
        output = there.request("/metrics").text
    kinds = dict(
        line.split()[2:4] for line in output.splitlines() if line.startswith("# TYPE reprieve")
    )
    served = {f"{name}{part}" for name, kind in kinds.items() for part in _PARTS[kind]}
    asked = {name for text in expressions() for name in _FIGURE.findall(text)}
    assert asked <= served
    assert set(kinds) - {name for name in kinds if name.endswith("_created")} == set(labels())
    for name, of in labels().items():
        samples = re.findall(rf"^{name}(?:_bucket)?\{{(.*)\}}", output, re.MULTILINE)
        for sample in samples:
            assert set(re.findall(r"(\w+)=", sample)) - {"le"} == of, name


def test_panels_have_distinct_names_and_places() -> None:
    panels = dashboard()["panels"]
    for key in ("title", "id"):
        assert len({panel[key] for panel in panels}) == len(panels)
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in panels]
    for index, (x, y, w, h) in enumerate(places):
        assert x + w <= 24
        for x2, y2, w2, h2 in places[:index]:
            assert x >= x2 + w2 or x2 >= x + w or y >= y2 + h2 or y2 >= y + h, "panels overlap"


def test_the_dashboard_is_in_its_directory_and_in_the_chart() -> None:
    assert (DEPLOY / "grafana" / "reprieve.json").read_text() == DASHBOARD.read_text()
    maps = [each for each in rendered(MONITORED) if each["kind"] == "ConfigMap"]
    [delivered] = [each for each in maps if "grafana_dashboard" in each["metadata"]["labels"]]
    assert json.loads(delivered["data"]["reprieve.json"]) == dashboard()


@pytest.mark.parametrize("alert", [alert["alert"] for alert in alerts()])
def test_alerts_have_a_severity_and_a_description(alert: str) -> None:
    [rule] = [each for each in alerts() if each["alert"] == alert]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description"}


def test_every_alert_has_a_section_of_the_runbooks_and_links_to_it() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.MULTILINE)
    shown = alerts(runbookURL=PUBLISHED)
    assert [alert["alert"] for alert in shown] == sections
    links = [alert["annotations"]["runbook_url"] for alert in shown]
    assert links == [f"{PUBLISHED}#{section.lower()}" for section in sections]


@pytest.mark.parametrize("url", ["docs.example/runbooks", f"{PUBLISHED}#alerts"])
def test_the_url_of_the_runbooks_has_a_scheme_and_no_anchor(url: str) -> None:
    with pytest.raises(RefusedError, match="runbookURL"):
        alerts(runbookURL=url)
