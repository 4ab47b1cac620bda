"""Any file is a valid configuration, or each of its errors is reported in one line.

The function behind ``reprieve check-config`` runs in this process. A configuration that it accepts
is then used as far as possible without a socket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from extender.cli.config_validation import load_serving_config
from extender.config.component_config import Config, filters_from_config
from extender.config.preemption_policy import find_policy
from extender.config.strict_decoding import ConfigError
from extender.observability.decision_history import DecisionHistory
from extender.secure_serving.connection_limits import ConnectionRegistry
from extender.server.call_queue import CallQueue
from extender.server.fallback_policy import configured_fallbacks
from extender.server.http_handlers import build_app
from extender.server.service import Service
from policies.kubernetes.releases import release
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from tests.builders import pod
from tests.extender.conftest import HandClock, live_cluster
from tests.faults.table import ANY_CONFIGURATION
from tests.faults.test_bodies import STRANGE, often, places, put
from tests.fuzz.sample_files import POLICY

GOOD: Final[dict[str, Any]] = {
    "host": "127.0.0.1",
    "port": 0,
    "pathPrefixes": ["/scheduler"],
    "bodyLimitMiB": 64,
    "policy": "kube-scheduler",
    "search": "offered",
    "upstream": "1.34",
    "promiseSeconds": 30,
    "managedResources": [{"name": "example.com/license", "ignoredByScheduler": True}],
    "pluginConfig": [
        {
            "name": "PodTopologySpread",
            "args": {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ],
            },
        }
    ],
    "limits": {"connections": 256, "headerKiB": 32, "headerSeconds": 10},
    "deadlineMilliseconds": {"filter": 200, "preempt": 200},
    "queueLimit": 64,
    "staleSeconds": 180,
    "degraded": {"late": {"filter": "veto"}},
    "watchSilenceSeconds": 90,
    "shutdownDelaySeconds": 0,
    "decisionsKept": 256,
    "events": False,
}
OTHERS: Final = STRANGE | st.sampled_from(
    [float("nan"), float("inf"), float("-inf"), 10**400, "1.99", "/nowhere", "::"]
)
SCRAPS: Final = [
    b"&a [*a]",
    b"\t",
    b"!!python/object:os.system x",
    b"\xff",
    b"\0",
    b"{",
    b"- ",
    b"%",
]


@st.composite
def files(draw: st.DrawFn, good: Mapping[str, Any]) -> bytes:
    """Return a valid file spoiled in a few ways."""
    document: Any = good
    for _ in range(draw(st.integers(0, 3))):
        found = places(document)
        if found:
            document = put(document, draw(st.sampled_from(found)), draw(OTHERS))
    written = yaml.safe_dump(document).encode()
    if draw(st.booleans()):
        return written
    place = draw(st.integers(0, len(written)))
    return written[:place] + draw(st.sampled_from(SCRAPS)) + written[place:]


def lines(error: ConfigError, path: Path) -> list[str]:
    """Return the errors, each of which must name the file."""
    assert error.errors
    assert all(str(path) in line for line in error.errors), error.errors
    return list(error.errors)


@often(ANY_CONFIGURATION)
@given(written=files(GOOD))
def test_any_configuration_is_used_or_its_errors_are_reported(
    tmp_path_factory: Any, written: bytes
) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "reprieve.yaml"
    path.write_bytes(written)
    try:
        config = load_serving_config(path, {}, HandClock())
    except ConfigError as error:
        lines(error, path)
        return
    put_to_use(config)


def put_to_use(config: Config) -> None:
    """Build from a configuration what ``serve`` builds before it listens."""
    service = Service(
        live_cluster(),
        ReferenceEngine(
            SchedulerRules(
                release(config.upstream),
                filters_from_config(config),
                find_policy(config.policy).default,
            )
        ),
        HandClock(),
        fallback_policy=configured_fallbacks(config),
        call_queue=CallQueue(config.queue_limit),
        decision_history=DecisionHistory(config.decisions_kept),
    )
    build_app(service, config.path_prefixes, config.body_limit_mib * 2**20)
    ConnectionRegistry(config.limits, HandClock()).sweep()


EXTREMES: Final[dict[str, dict[str, Any]]] = {
    "host": {"host": "\0"},
    "a label of a host": {"host": "x" * 64},
    "pathPrefixes[0]": {"pathPrefixes": ["{x"]},
    "pathPrefixes[1]": {"pathPrefixes": ["/a/", "a"]},
    "the root, again": {"pathPrefixes": ["/"]},
    "deadlineMilliseconds.filter": {"deadlineMilliseconds": {"filter": 10**400}},
    "decisionsKept": {"decisionsKept": 2**63},
    "staleSeconds": {"staleSeconds": float("nan")},
    "policy": {"policy": "x" * 300},
}


@pytest.mark.parametrize("extreme", EXTREMES.values(), ids=EXTREMES)
def test_extremes_are_errors(tmp_path: Path, extreme: dict[str, Any]) -> None:
    path = tmp_path / "reprieve.yaml"
    path.write_text(yaml.safe_dump({**GOOD, **extreme}))
    with pytest.raises(ConfigError) as raised:
        load_serving_config(path, {}, HandClock())
    first, *_ = lines(raised.value, path)
    assert re.match(rf"{re.escape(str(path))}:\d+: {next(iter(extreme))}", first)


@often(ANY_CONFIGURATION)
@given(written=files(POLICY))
def test_any_policy_is_used_or_its_errors_are_reported(
    tmp_path_factory: Any, written: bytes
) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "policy.yaml"
    path.write_bytes(written)
    try:
        policy = find_policy(str(path))
    except ConfigError as error:
        lines(error, path)
        return
    web = pod("web")
    for each in (policy.default, *(rule.policy for rule in policy.rules)):
        assert each.protection_of(web, 0) in (None, *each.victim_guards)
        assert each.victims.sort([web]) == [web]
    assert {rule.applies_to(web) for rule in policy.rules} <= {True, False}
