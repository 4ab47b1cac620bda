"""Decisions of kube-scheduler 1.30.14, 1.34.4, 1.36.3 and 1.37.0 on the smallest clusters."""

from __future__ import annotations

import msgspec
import pytest

from extender.kube.decoders.pods import decode_pod
from policies import SchedulerRules, release
from tests.builders import encoded
from tests.builders.recorded import decode_cluster, read_recorded
from tests.differential.case import Case
from tests.differential.comparison import differences
from tests.properties.engines import assert_agreement

RECORDED = {
    name: msgspec.convert(case, Case) for name, case in read_recorded("releases.jsonl.gz").items()
}


@pytest.mark.parametrize("name", RECORDED)
def test_the_decision_is_the_same(name: str) -> None:
    assert differences(RECORDED[name]) == []


@pytest.mark.parametrize("name", RECORDED)
def test_the_engines_agree(name: str) -> None:
    case = RECORDED[name]
    rules = SchedulerRules(release(case.upstream))
    pod = decode_pod(encoded(case.pod), rules.release)
    assert_agreement(pod, decode_cluster(case.items, rules.release), rules)
