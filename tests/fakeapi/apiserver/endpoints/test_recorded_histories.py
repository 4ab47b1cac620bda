"""Pod groups, workloads and device claims are stored and refused as by a kube-apiserver v1.37.

Each file holds calls that were made one after the other of a server with the feature gates of
pod groups on, with what it answered: spec and status, or the error. Upstream adds a Go diff to an
error about pods; it is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fakeapi.api_requests import Ask

_RECORDED = Path(__file__).parents[2] / "recorded"


@pytest.mark.parametrize("name", ["podgroups", "devices"])
def test_a_history_of_calls_equals_upstreams(ask: Ask, name: str) -> None:
    steps: list[dict[str, Any]] = orjson.loads((_RECORDED / f"{name}.json").read_bytes())
    differences = [difference for step in steps if (difference := _difference(ask, step))]
    assert not differences


def _difference(ask: Ask, step: dict[str, Any]) -> dict[str, Any]:
    """Make a call; return what differs from the recorded answer, with the call."""
    status, answer = ask(step["method"], step["path"], step.get("body"), step["content"])
    answered = {**answer, "code": status, "causes": answer.get("details", {}).get("causes", [])}
    expected = {k: v for k, v in step.items() if k not in ("method", "path", "body", "content")}
    wrong = {k: (v, answered.get(k)) for k, v in expected.items() if answered.get(k) != v}
    return {"call": (step["method"], step["path"], step.get("body")), **wrong} if wrong else {}
