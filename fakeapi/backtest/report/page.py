"""The report as one HTML file, which loads nothing and has no script."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from extender.ledger_page.documents import render_document
from fakeapi.backtest.report.compared_rows import (
    class_rows,
    compared_rows,
    difference_headings,
    tenant_rows,
)
from fakeapi.backtest.report.comparison import Comparison
from fakeapi.backtest.report.plots import WIDTH, measure_plots, queueing_plot, tenant_plot
from fakeapi.backtest.report.sentences import (
    READING,
    conclusions,
    missing_sentences,
    workload_facts,
)

_MOST_GROUPS: Final = 30


def render_html(comparison: Comparison) -> str:
    """Return the report as one HTML document; of tenants, it has the 30 with most disruptions."""
    template = files("fakeapi.backtest.report").joinpath("report.html").read_text()
    workload = comparison.workload
    return render_document(
        template,
        workload=workload,
        policies=list(comparison.policies),
        facts=list(workload_facts(comparison)),
        missing=list(missing_sentences(comparison)),
        conclusions=list(conclusions(comparison)),
        reading=READING,
        plots=measure_plots(comparison),
        group_plots=[p for p in (queueing_plot(comparison), tenant_plot(comparison)) if p],
        width=WIDTH,
        headings=difference_headings(comparison.policies),
        measures=[("", compared_rows(comparison.measures))],
        classes=class_rows(comparison.classes),
        tenants=tenant_rows(comparison.tenants[:_MOST_GROUPS]),
        more_tenants=len(comparison.tenants) - _MOST_GROUPS,
        groups=tenant_rows(comparison.groups[:_MOST_GROUPS]),
        more_groups=len(comparison.groups) - _MOST_GROUPS,
        decisions={
            policy: [each for each in comparison.decisions if each.policy == policy]
            for policy in comparison.policies[1:]
        },
    )
