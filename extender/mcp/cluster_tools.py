"""The tools about a cluster: ``explain`` and ``simulate``, as functions of its objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from extender.config.preemption_policy import BUILT_IN, PolicySource, build_policy
from extender.explain.cluster_files import load_cluster, load_pod
from extender.explain.cluster_objects import SCHEDULING_KINDS, ClusterObjects, only_pod
from extender.explain.decisions import explain_preempt, preempt_document
from extender.kube.decoders.manifests import Manifest, parse_manifests
from extender.mcp.arguments import ExplainArguments, SimulateArguments
from extender.mcp.results import ToolError, ToolResult, counted, quoted, tool_result
from policies.preemption.explanation import PreemptionExplanation
from policies.preemption.policy import SchedulerRules

_VICTIMS_IN_TEXT: Final = 5


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What a decision reads besides its arguments; ``now_ns`` is nanoseconds since the epoch.

    ``unknown_fields`` returns a line for each field of a manifest that its kind does not have.
    """

    objects: ClusterObjects
    rules: SchedulerRules
    now_ns: int
    unknown_fields: Callable[[bytes], Iterable[str]]


def explain_result(arguments: ExplainArguments, context: DecisionContext) -> ToolResult:
    """Return the preemption for a pod of the cluster.

    Raise ToolError, ManifestError and ConfigError.
    """
    found = context.objects.find("Pod", arguments.pod)
    if found is None:
        raise ToolError(f"no pod {quoted(arguments.pod)} in {context.objects.source}")
    return _decide(found, arguments.policy, context, context.objects.problems)


def simulate_result(arguments: SimulateArguments, context: DecisionContext) -> ToolResult:
    """Return the preemption for a pod that the cluster does not have.

    Raise ManifestError and ConfigError.
    """
    manifests = parse_manifests(arguments.pod_manifest.encode(), "pod_manifest")
    changes = parse_manifests(arguments.changes.encode(), "changes")
    warnings = [
        f"{each.source}: {line}"
        for each in (*manifests, *changes)
        for line in context.unknown_fields(each.raw)
    ]
    warnings += [
        f"{each.source}: a {each.kind} has no effect on the decision"
        for each in changes
        if each.kind not in SCHEDULING_KINDS
    ]
    objects = replace(context.objects, manifests=[*context.objects.manifests, *changes])
    pod = only_pod(manifests, "pod_manifest")
    changed = replace(context, objects=objects)
    return _decide(pod, arguments.policy, changed, [*context.objects.problems, *warnings])


def _decide(
    pod: Manifest, policy: str, context: DecisionContext, warnings: Iterable[str]
) -> ToolResult:
    rules = _with_policy(context.rules, policy)
    cluster = load_cluster(context.objects, rules.release, rules.annotations)
    preemptor = load_pod(pod, cluster, rules.release, rules.annotations)
    explanation = explain_preempt(preemptor, cluster.at(context.now_ns), rules, None)
    document = preempt_document(explanation)
    ranked = explanation.order.sort(explanation.decision.candidates.values())
    # The best candidates are those that are kept if there are too many.
    document["candidates"] = {each.node: document["candidates"][each.node] for each in ranked}
    return tool_result(_sentences(explanation), {**document}, [*warnings, *cluster.warnings()])


def _with_policy(rules: SchedulerRules, policy: str) -> SchedulerRules:
    """Return the rules with a built-in policy, or with that of a text, if it is not empty."""
    if not policy:
        return rules
    source = PolicySource(policy) if policy in BUILT_IN else PolicySource("policy", policy)
    found = build_policy(source)
    return replace(rules, policy=found.default, policy_rules=found.rules)


def _sentences(explanation: PreemptionExplanation) -> Iterator[str]:
    decision = explanation.decision
    pod, chosen = quoted(decision.pod.key), decision.chosen
    if chosen is None:
        yield f"No pod is preempted for {pod}: {quoted(decision.reason or decision.message)}."
        return
    victims = chosen.victims.pods
    named = [f"{quoted(each.key)} (priority {each.priority})" for each in victims]
    more = len(named) - _VICTIMS_IN_TEXT
    others = f", and {more} more" if more > 0 else ""
    yield (
        f"Pod {pod} preempts {counted(len(victims), 'pod')} on node {quoted(chosen.node)}: "
        f"{', '.join(named[:_VICTIMS_IN_TEXT])}{others}."
    )
    yield f"Candidates: {len(decision.candidates)}."
    if decision.decided_by is not None:
        yield f"Decided by {quoted(decision.decided_by)}."
    if chosen.victims.violations:
        yield f"Violations of disruption budgets: {chosen.victims.violations}."
    if decision.not_evaluated:
        filters = ", ".join(sorted(decision.not_evaluated))
        yield f"The victims may not suffice; not evaluated: {quoted(filters)}."
