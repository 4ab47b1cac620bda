"""Events of autoscalers, as the recorders of both Event APIs write their times."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.autoscaler_events import decode_autoscaler_event
from policies.kubernetes.policy_objects import AutoscalerEvent
from tests.builders import SECOND, encoded


def at(second: int) -> str:
    return f"1970-01-01T00:00:{second:02}Z"


@pytest.mark.parametrize(
    ("times", "second"),
    [
        ({}, 1),
        ({"firstTimestamp": at(2), "lastTimestamp": at(9), "eventTime": None}, 9),
        ({"eventTime": "1970-01-01T00:00:03.000000Z"}, 3),
        ({"eventTime": at(3), "series": {"count": 2, "lastObservedTime": at(8)}}, 8),
    ],
)
def test_the_last_time_counts(times: dict[str, Any], second: int) -> None:
    event = {
        "metadata": {"name": "p.1", "namespace": "a", "creationTimestamp": at(1)},
        "involvedObject": {"kind": "Pod", "namespace": "a", "name": "p", "uid": "u"},
        "reason": "Nominated",
        **times,
    }
    assert decode_autoscaler_event(encoded(event)) == AutoscalerEvent(
        "a/p.1", "u", "Nominated", second * SECOND
    )


def test_a_pod_without_a_uid_is_named() -> None:
    event = {"metadata": {"name": "p.1"}, "involvedObject": {"name": "p"}}
    assert decode_autoscaler_event(encoded(event)) == AutoscalerEvent(
        "default/p.1", "default/p", "", 0
    )
