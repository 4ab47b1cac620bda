"""A pytest plugin that prints a table of suites: how many tests passed, are listed, failed."""

from __future__ import annotations

from collections import defaultdict

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums of the counts that tests have recorded, by suite."""
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for suite, counts in report.user_properties:
                    sums[suite] = [sum(pair) for pair in zip(sums[suite], counts, strict=True)]
    if sums:
        terminalreporter.section("suites")
        terminalreporter.line(f"{'suite':<24}{'passed':>8}{'listed':>8}{'failed':>8}")
    for suite, numbers in sorted(sums.items()):
        row = "".join(f"{number:>8}" for number in numbers)
        terminalreporter.line(f"{suite:<24}{row}")
