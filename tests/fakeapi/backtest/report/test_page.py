"""The report as an HTML file: it loads nothing, escapes names, and has every policy and measure."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from fakeapi.backtest.distribution import Distribution
from fakeapi.backtest.report.comparison import compare
from fakeapi.backtest.report.page import render_html
from fakeapi.backtest.report.plots import Tick, measure_plots, queueing_plot, tenant_plot
from fakeapi.backtest.results import BacktestResults, LeftOut
from fakeapi.backtest.statistics import GroupStatistics, RunStatistics
from tests.builders.backtests import (
    SECOND_NS,
    decided,
    decision,
    disrupted,
    random_results,
    results,
    victim,
    workload,
)
from tests.extender.ledger_page.documents import text_of

HOSTILE = "<script>alert('x')</script>"


class ElementParser(HTMLParser):
    """Collects attributes by element, and elements that are open."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: dict[str, list[dict[str, str | None]]] = {}
        self.open: list[str] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.setdefault(tag, []).append(dict(attributes))
        if tag not in ("meta", "br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.setdefault(tag, []).append(dict(attributes))


def page(of: BacktestResults) -> str:
    return render_html(compare(of))


def test_every_policy_and_measure_is_in_the_page() -> None:
    found = compare(random_results(1, ("default", "cost-aware", "third")))
    text = text_of(render_html(found))
    for each in (*found.policies, *(measure.measure.title for measure in found.measures)):
        assert each in text
    for policy in ("cost-aware", "third"):
        assert f"Decisions in which {policy} differs most from default" in text
    assert "it has no duration 12 openb_pod_list.csv:817" in text
    assert "Pods of one job are interchangeable." in text
    assert "incomplete" not in text


def test_elements_are_closed_tables_have_captions_and_plots_have_texts() -> None:
    found = ElementParser(page(random_results(1, ("default", "cost-aware"))))
    assert found.open == []
    assert len(found.found["caption"]) == len(found.found["table"])
    assert all(each["scope"] in ("col", "row", "rowgroup") for each in found.found["th"])
    plots = [each for each in found.found["svg"] if each.get("class") == "plot"]
    ids = {each["id"] for tag in ("h3", "desc") for each in found.found[tag]}
    assert plots
    for each in plots:
        assert each["role"] == "img"
        assert set(str(each["aria-labelledby"]).split()) <= ids


def test_what_is_missing_is_at_the_top() -> None:
    text = text_of(page(results({"a": [disrupted(3)], "b": []}, missing=1)))
    assert "Backtest of three-jobs The backtest is incomplete: 1 of 2 units have no result." in text


def test_names_are_escaped() -> None:
    run = disrupted(3, f"{HOSTILE}/{HOSTILE}")
    run.decisions = (decision(HOSTILE, HOSTILE, victim(HOSTILE), reason=HOSTILE),)
    summary = replace(
        workload(HOSTILE),
        assumptions=(HOSTILE,),
        left_out=(LeftOut(HOSTILE, 1, HOSTILE),),
        capacity={HOSTILE: 1},
    )
    document = page(results({HOSTILE: [run], f"{HOSTILE}2": [decided()]}, summary))
    assert "<script" not in document
    assert text_of(document).count(HOSTILE) > 20


@pytest.mark.parametrize(
    "of",
    [
        results({}),
        results({"a": []}),
        results({"a": [RunStatistics()], "b": [RunStatistics()]}),
        results({"a": [RunStatistics(capacity={"cpu": 0}, allocated={"cpu": 0})]}),
    ],
)
def test_empty_results_have_a_page(of: BacktestResults) -> None:
    assert "Backtest of three-jobs" in text_of(page(of))


def test_many_tenants_are_counted() -> None:
    text = text_of(page(random_results(1, ("a", "b"), seeds=1, tenants=33)))
    assert "and 3 more with fewer disruptions; -o json has them all" in text
    assert "disruptions by tenant, the 12 tenants of 33 with the most" in text


def test_bars_are_in_proportion_and_have_intervals() -> None:
    runs = {"a": [disrupted(10), disrupted(10)], "b": [disrupted(5), disrupted(5)]}
    plot = measure_plots(compare(results(runs)))[0]
    assert (plot.title, plot.description) == ("disruptions", "a 10 ± 0; b 5 ± 0")
    assert [(row.begin, row.end, row.low, row.high) for row in plot.rows] == [
        (140, 340, 340, 340),
        (140, 240, 240, 240),
    ]


def test_bars_of_zero_have_no_width_and_one_seed_no_interval() -> None:
    (row,) = measure_plots(compare(results({"a": [disrupted(0)]})))[0].rows
    assert (row.begin, row.end, row.low) == (140, 140, None)


def test_long_labels_are_shortened() -> None:
    name = "protect-production-and-research"
    (row,) = measure_plots(compare(results({name: [disrupted(1)]})))[0].rows
    assert (row.label, row.full_label) == ("protect-productio…", name)


def queued(*seconds: float) -> RunStatistics:
    queueing = Distribution()
    for each in seconds:
        queueing.add(int(each * SECOND_NS))
    return RunStatistics(groups={"team/batch": GroupStatistics(queueing=queueing)})


def test_queueing_delays_are_on_a_logarithmic_scale() -> None:
    plot = queueing_plot(compare(results({"a": [queued(0, 0, 12)]})))
    assert plot is not None
    heading, row = plot.rows
    assert (heading.label, row.label, row.text) == ("batch", "a", "0.0 s to 12 s")
    assert row.begin == 140  # less than the 0.1 s with which the scale begins
    assert plot.description == "batch, a 0.0 s to 12 s"
    assert plot.ticks[:2] == (Tick(140, "0.1 s"), Tick(212, "1 s"))
    assert plot.ticks[-1].x <= 340


def test_pods_without_a_tenant_have_a_heading() -> None:
    found = compare(results({"a": [disrupted(2, "batch")]}))
    plot = tenant_plot(found)
    assert plot is not None
    assert plot.description == "(none), a 2"
    assert "(none) disruptions 2" in text_of(render_html(found))


def test_plots_without_values_are_left_out() -> None:
    found = compare(results({"a": [RunStatistics()]}))
    assert queueing_plot(found) is None
    assert tenant_plot(found) is None
