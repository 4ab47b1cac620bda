"""The scheduler of a simulation: alone, or with Reprieve and a policy in the same process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from extender.config.component_config import DevicesConfig
from extender.config.preemption_policy import PolicySource
from extender.config.rules_source import RulesSource, build_rules
from extender.observability.decision_history import DecisionHistory, DecisionRecord
from extender.protocol.verb_context import Search
from extender.server.fallback_policy import FallbackPolicy
from fakeapi.controlplane.components import read_scheduler_options
from fakeapi.controlplane.scheduler.configuration import Retries, SchedulerConfiguration
from fakeapi.controlplane.scheduler.options import SchedulerOptions
from fakeapi.testing.extenders import REPRIEVE_URL, InProcessReprieve

STOCK: Final = "stock"
"""The policy's name for kube-scheduler without an extender."""

HISTORY: Final = 2_000
"""How many events of a resource are kept for watches, all of which are in this process."""


@dataclass(frozen=True, slots=True)
class SimulatedPolicy:
    """A policy by the name that reports show; ``source`` is None for STOCK."""

    name: str
    source: PolicySource | None


class LatestDecisions(DecisionHistory):
    """The latest preemption decision for each pod that waits, by its UID."""

    def __init__(self) -> None:
        super().__init__(size=1)
        self._by_pod: dict[str, DecisionRecord] = {}

    def add(self, record: DecisionRecord) -> None:
        """Add a record in place of the older one of its pod."""
        if record.victims:
            self._by_pod[record.pod.uid] = record

    def explain(self, uid: str) -> str:
        """Return what decided the latest preemption for a pod; "" if nothing is known."""
        record = self._by_pod.pop(uid, None)
        return record.decided_by or "" if record else ""


def in_process_reprieve(
    policy: SimulatedPolicy, upstream: str, history: DecisionHistory
) -> InProcessReprieve | None:
    """Return Reprieve with a policy, None for STOCK. Raise ConfigError."""
    if policy.source is None:
        return None
    source = RulesSource(policy.source, upstream, {}, (), (), (), DevicesConfig())
    # A watch without bookmarks is silent while nothing happens.
    never_stale = FallbackPolicy(stale_seconds=inf)
    return InProcessReprieve(
        Search.CLUSTER, build_rules(source), history=history, fallback_policy=never_stale
    )


def scheduler_options(upstream: str, reprieve: InProcessReprieve | None) -> SchedulerOptions:
    """Return the options of a scheduler that leaves preemption to an extender, if there is one.

    A pod that fits nowhere is tried again after an event that may help it. Only a policy that reads
    the time may answer otherwise without an event, so only then it is tried every five minutes.
    """
    extenders = {} if reprieve is None else {REPRIEVE_URL: reprieve}
    extender = {"preemptVerb": "preempt", "nodeCacheCapable": True}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": url, **extender} for url in extenders],
    }
    options = read_scheduler_options(document, "", extenders, upstream)
    configuration = options.configuration or SchedulerConfiguration()
    configuration = replace(configuration, retries=Retries.AFTER_HELPFUL_DEPARTURES)
    if reprieve is None or not reprieve.rules.reads_time:
        configuration = replace(configuration, unschedulable_seconds=None)
    return replace(options, configuration=configuration)
