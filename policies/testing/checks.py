"""Check plugins and policies against the laws of decisions, on random small clusters.

The clusters are the same in every run. A test of a plugin is one line::

    def test_most_idle() -> None:
        check_plugin(most_idle, [pod("a", annotations={"example.com/rate": "7"}), pod("b")])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Final

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.snapshot import Pod
from policies.plugins import (
    SAMPLE_POD,
    CostPlugin,
    EvaluationError,
    GuardPlugin,
    PluginCallError,
)
from policies.preemption.costs.candidate_criteria import CostCriterion
from policies.preemption.guards.victim_guard import unreadable_cost
from policies.preemption.policy import KUBE_SCHEDULER, Policy, SchedulerRules
from policies.testing.full_clusters import full_clusters
from policies.testing.laws import LAWS, PLAIN_LAWS, Case, Law
from policies.testing.strategies import clusters, rich_clusters
from policies.testing.worked_clusters import cases

EXAMPLES: Final = 50


def check_plugin(
    plugin: CostPlugin | GuardPlugin, pods: Sequence[Pod] = (), examples: int = EXAMPLES
) -> None:
    """Check that a plugin is pure, and that decisions with it obey the laws.

    The pods of the clusters are like ``pods``, if there are any: they have their labels,
    annotations, owners and other fields that policies read. ``examples`` is the number of clusters
    of each kind. Raise AssertionError with a line for each violation.
    """

    def violations(case: Case) -> Iterator[str]:
        for state in case.snapshot.nodes.values():
            for pod in state.pods:
                yield from plugin_violations(plugin, pod)

    _raise([each for pod in (SAMPLE_POD, *pods) for each in plugin_violations(plugin, pod)])
    rules = SchedulerRules(policy=_policy_with(plugin))
    _check(rules, pods, examples, violations)


def check_policy(policy: Policy, pods: Sequence[Pod] = (), examples: int = EXAMPLES) -> None:
    """Check that decisions by a policy obey the laws; see ``check_plugin``.

    ``find_policy`` of :mod:`extender.config.preemption_policy` loads the policies of a file, one
    for each rule.
    """
    _check(SchedulerRules(policy=policy), pods, examples)


def plugin_violations(plugin: CostPlugin | GuardPlugin, pod: Pod) -> Iterator[str]:
    """Yield why a plugin is not a pure function of a pod and of the annotations it declares.

    A plugin may raise EvaluationError for a pod that has no value. Any other exception is an error.
    """
    before = deepcopy(pod)
    first, second = _outcome(plugin, pod), _outcome(plugin, pod)
    if isinstance(first, PluginCallError):
        yield f"{pod.key}: {first}"
    elif str(first) != str(second):
        yield f"{pod.key}: {first}, then {second}; expected the same value for the same pod"
    if pod != before:
        yield f"{before.key}: the plugin changes the pod"
    declared = {k: text for k, text in before.annotations.items() if k in plugin.annotations}
    third = _outcome(plugin, structs.replace(before, annotations=declared))
    if str(first) == str(second) != str(third):
        undeclared = ", ".join(sorted(before.annotations.keys() - declared))
        yield f"{pod.key}: {third} without {undeclared}; expected declared annotations"


def _outcome(plugin: CostPlugin | GuardPlugin, pod: Pod) -> int | EvaluationError:
    try:
        return plugin.evaluate(pod)
    except EvaluationError as error:
        return error


def _policy_with(plugin: CostPlugin | GuardPlugin) -> Policy:
    name = getattr(plugin.function, "__name__", "plugin")
    if isinstance(plugin, GuardPlugin):
        return replace(KUBE_SCHEDULER, name=name, victim_guards=(plugin.guard(name),))
    cost = plugin.cost(name)
    return replace(
        KUBE_SCHEDULER,
        name=name,
        candidates=(CostCriterion(name, cost), *KUBE_SCHEDULER.candidates),
        victim_guards=(unreadable_cost(cost),),
    )


def _check(rules: SchedulerRules, pods: Sequence[Pod], examples: int, *first: Law) -> None:
    plain = st.one_of(clusters(), full_clusters())
    _check_laws((*first, *PLAIN_LAWS), cases(plain, st.just(rules), pods), examples)
    _check_laws((*first, *LAWS), cases(rich_clusters(), st.just(rules), pods), examples)


def _check_laws(laws: Sequence[Law], drawn: st.SearchStrategy[Case], examples: int) -> None:
    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        # The clusters are small: to look for smaller ones takes longer than it helps, and the lines
        # of the error are shorter than a cluster.
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(drawn)
        for law in laws:
            _raise([f"{law.__name__}: {each}" for each in law(case)])

    check()


def _raise(violations: Sequence[str]) -> None:
    if violations:
        raise AssertionError("\n".join(violations))
