"""The errors of a policy file that types do not show: names, durations, contradictory rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from extender.cluster.preemption_history import KEPT_NS
from extender.config.policy_file import (
    ALL_CANDIDATE_CRITERIA,
    MAX_WEIGHT,
    VICTIM_CRITERIA,
    CheapestVictims,
    Guards,
    LabelSelectorFields,
    LostWork,
    PodSelectorFields,
    PolicyFile,
    PolicyRuleFields,
    WindowLimit,
    given,
    thousandths,
)
from extender.config.policy_plugins import InvalidPluginError, load_plugin, plugin_names
from extender.config.source_document import FieldPath, FieldProblem, format_path
from extender.config.strict_decoding import StrictResult
from policies.kubernetes.duration import format_duration, parse_duration
from policies.kubernetes.input_error import similar_name
from policies.kubernetes.name_validation import (
    invalid_dns_label,
    invalid_label_key,
    invalid_subdomain,
)
from policies.kubernetes.selectors import (
    LABEL_OPERATORS,
    Requirement,
    SelectorError,
    label_requirement,
)
from policies.plugins import CostPlugin, GuardPlugin
from policies.preemption.costs.catalog import CHEAPEST_CRITERIA

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)
_KINDS: Final = (
    *("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "JobSet", "Pod"),
    *("ReplicationController", "LeaderWorkerSet", "RayCluster", "PyTorchJob", "CloneSet"),
)
"""Kinds that a misspelt one is compared with; any other kind is valid, too."""
_CORE_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_SELECTORS: Final = "namespaces, labels, priorityClasses, owners or expression"
_EXPECTED_RESOURCES: Final = (
    "expected cpu, memory, ephemeral-storage, or an extended resource such as nvidia.com/gpu"
)
_EARLY_DEFAULT: Final = (
    "a rule without preemptors applies to all pods, so that the rules after it never apply; "
    "expected preemptors, or this rule as the last one"
)
_NO_DEFAULT: Final = "no rule applies to other pods; expected a last rule without preemptors"

_Found = tuple[FieldPath, str]
"""A field of the decoded file, and its error."""


def policy_problems(result: StrictResult[PolicyFile]) -> Iterator[FieldProblem]:
    """Yield the errors of what was decoded of a policy, with the paths of its document."""
    if result.value is None:
        return
    for path, text in _PolicyValidation(result).problems(result.value):
        original = result.original_path(path)
        yield FieldProblem(original, f"{format_path(original)}: {text}")


def requirements_of(labels: LabelSelectorFields) -> Iterator[tuple[FieldPath, Requirement | str]]:
    """Yield the requirements of a label selector by their paths, or the error of an invalid one."""
    equal = given(labels.match_labels, {})
    expressions = given(labels.match_expressions, ())
    for key, value in equal.items():
        yield ("matchLabels", key), _requirement(key, "In", (value,))
    for index, each in enumerate(expressions):
        values = given(each.values, ())
        yield ("matchExpressions", index), _requirement(each.key, each.operator, values)


def _requirement(key: str, operator: str, values: Sequence[str]) -> Requirement | str:
    if operator not in LABEL_OPERATORS:
        return f"unknown operator {operator!r}; expected one of {', '.join(LABEL_OPERATORS)}"
    try:
        return label_requirement(key, operator, values)
    except SelectorError as error:
        return str(error)


class _PolicyValidation:
    """Validates fields together; a field that is not decoded has no further errors."""

    def __init__(self, result: StrictResult[PolicyFile]) -> None:
        self._result = result

    def problems(self, file: PolicyFile) -> Iterator[_Found]:
        """Yield the errors of a policy."""
        if self._is_decoded("metadata") and (reason := invalid_subdomain(file.metadata.name)):
            yield ("metadata", "name"), f"{file.metadata.name!r}: {reason}"
        if self._result.has_all_elements(("rules",)):
            yield from self._order_problems(file.rules)
        yield from self._name_problems(file.rules)
        for index, rule in enumerate(file.rules):
            yield from self._rule_problems(("rules", index), rule)

    def _is_decoded(self, *path: str | int) -> bool:
        return self._result.is_valid(path)

    def _order_problems(self, rules: Sequence[PolicyRuleFields]) -> Iterator[_Found]:
        *others, last = range(len(rules))
        for index in others:
            if rules[index].preemptors is UNSET and self._is_decoded("rules", index, "preemptors"):
                yield ("rules", index), _EARLY_DEFAULT
        if rules[last].preemptors is not UNSET:
            yield ("rules", last, "preemptors"), _NO_DEFAULT

    def _name_problems(self, rules: Sequence[PolicyRuleFields]) -> Iterator[_Found]:
        names: set[str] = set()
        for index, rule in enumerate(rules):
            path = ("rules", index, "name")
            if rule.name in names:
                yield path, f"{rule.name!r} is the name of an earlier rule; expected another name"
            elif not self._is_decoded(*path):
                continue
            elif not rule.name:
                yield path, "is empty; expected a name"
            names.add(rule.name)

    def _rule_problems(self, path: FieldPath, rule: PolicyRuleFields) -> Iterator[_Found]:
        if rule.preemptors is not UNSET:
            yield from self._required_selector_problems((*path, "preemptors"), rule.preemptors)
        yield from self._guard_problems((*path, "guards"), rule.guards)
        yield from _lost_work_problems((*path, "lostWork"), rule.lost_work)
        if rule.cost is not UNSET and self._is_decoded(*path, "cost", "expression"):
            yield from _expression_problems(
                (*path, "cost", "expression"), rule.cost.expression, int
            )
        resource = rule.fragmentation.resource
        if not _is_extended(resource):
            expected = "expected a name such as nvidia.com/gpu"
            problem = f"{resource!r} is no extended resource; {expected}"
            yield (*path, "fragmentation", "resource"), problem
        if isinstance(rule.victims, CheapestVictims):
            inner = (*path, "victims", "by")
            yield from _name_problems(inner, rule.victims.by, CHEAPEST_CRITERIA)
        else:
            yield from _list_problems((*path, "victims"), rule.victims, VICTIM_CRITERIA)
        candidates = (*path, "candidates")
        yield from _plugin_problems(
            candidates, rule.candidates, "criterion", CostPlugin, ALL_CANDIDATE_CRITERIA
        )

    def _guard_problems(self, path: FieldPath, guards: Guards) -> Iterator[_Found]:
        for index, pods in enumerate(guards.protect):
            inner: FieldPath = (*path, "protect", index)
            if not pods.name and self._is_decoded(*inner, "name"):
                yield (*inner, "name"), "is empty; expected a name"
            yield from self._required_selector_problems(inner, pods)
        for index, young in enumerate(guards.min_runtime):
            inner = (*path, "minRuntime", index)
            if self._is_decoded(*inner, "for"):
                yield from _duration_problems((*inner, "for"), young.duration, least_ns=1)
            yield from self._selector_problems(inner, young)
        if guards.max_lost_work is not UNSET:
            yield from self._selector_problems((*path, "maxLostWork"), guards.max_lost_work)
        for index, kept in enumerate(guards.min_available):
            yield from self._selector_problems((*path, "minAvailable", index), kept)
        for index, limit in enumerate(guards.limits):
            yield from self._limit_problems((*path, "limits", index), limit)
        yield from _contradictions((*path, "limits"), guards.limits)
        for field, wait in (
            ("preemptionDelay", guards.preemption_delay),
            ("waitForAutoscaler", guards.wait_for_autoscaler),
        ):
            yield from _duration_problems((*path, field), wait, least_ns=0)
        cooldown = guards.cooldown
        for inner, window in (
            (("cooldown", "victims"), cooldown.victims),
            (("cooldown", "preemptors"), cooldown.preemptors),
            (("loopBreaker",), guards.loop_breaker),
        ):
            yield from _window_problems((*path, *inner), window, least_ns=0)
        yield from _plugin_problems((*path, "plugins"), guards.plugins, "plugin", GuardPlugin)

    def _limit_problems(self, path: FieldPath, limit: WindowLimit) -> Iterator[_Found]:
        limited = limit.victims is not UNSET or limit.lost_work is not UNSET
        if not limited and self._is_decoded(*path):
            yield path, "limits nothing; expected victims or lostWork"
        if self._is_decoded(*path, "per"):
            yield from _window_problems((*path, "per"), limit.per, least_ns=1)

    def _required_selector_problems(
        self, path: FieldPath, pods: PodSelectorFields
    ) -> Iterator[_Found]:
        if pods.matches_all and self._is_decoded(*path):
            yield path, f"selects no pods; expected {_SELECTORS}"
        yield from self._selector_problems(path, pods)

    def _selector_problems(self, path: FieldPath, pods: PodSelectorFields) -> Iterator[_Found]:
        for index, name in enumerate(given(pods.namespaces, ())):
            if reason := invalid_dns_label(name):
                yield (*path, "namespaces", index), f"{name!r}: {reason}"
        for index, kind in enumerate(given(pods.owners, ())):
            if expected := _expected_kind(kind):
                yield (*path, "owners", index), f"{kind!r}; {expected}"
        if pods.expression is not UNSET and self._is_decoded(*path, "expression"):
            yield from _expression_problems((*path, "expression"), pods.expression, bool)
        if pods.labels is UNSET:
            return
        found = list(requirements_of(pods.labels))
        if not found and self._is_decoded(*path, "labels"):
            yield (*path, "labels"), "selects every pod; expected matchLabels or matchExpressions"
        for inner, each in found:
            if isinstance(each, str) and self._is_decoded(*path, "labels", *inner):
                yield (*path, "labels", *inner), each


def _nanoseconds(text: str) -> int:
    """Return a duration; -1 for another text."""
    try:
        return parse_duration(text)
    except ValueError:
        return -1


def _duration_problems(path: FieldPath, text: str, least_ns: int) -> Iterator[_Found]:
    if _nanoseconds(text) < least_ns:
        expected = "a duration above 0" if least_ns else "a duration"
        yield path, f"{text!r} is no such duration; expected {expected}, such as 90s, 30m"


def _contradictions(path: FieldPath, limits: Sequence[WindowLimit]) -> Iterator[_Found]:
    """Yield the limits of which an earlier one is for the same groups and window."""
    earlier: set[tuple[str, str, int]] = set()
    for index, limit in enumerate(limits):
        for field, amount in (("victims", limit.victims), ("lostWork", limit.lost_work)):
            window = field, limit.by, _nanoseconds(limit.per)
            if amount is not UNSET and window in earlier:
                text = f"contradicts an earlier limit per {limit.per} and {limit.by}"
                yield (*path, index, field), f"{text}; expected one limit"
            elif amount is not UNSET:
                earlier.add(window)


def _window_problems(path: FieldPath, text: str, least_ns: int) -> Iterator[_Found]:
    """Yield the errors of a duration that recent preemptions are read for."""
    found = list(_duration_problems(path, text, least_ns))
    if not found and parse_duration(text) > KEPT_NS:
        kept = format_duration(KEPT_NS)
        found = [(path, f"{text!r} is longer than preemptions are kept; expected at most {kept}")]
    yield from found


def _expression_problems(path: FieldPath, source: str, result: type[int]) -> Iterator[_Found]:
    # imported on use: start-up time
    from extender.cel.pod_expression import PodExpressionError, compile_pod_expression

    try:
        compile_pod_expression(source, result)
    except PodExpressionError as error:
        yield path, str(error)


def _expected_kind(kind: str) -> str:
    """Return what to write instead of a kind, "" if the kind may own pods."""
    if kind == "CronJob":
        return "expected Job, which owns the pods of a CronJob"
    if _KIND.fullmatch(kind):
        return ""
    by_lower_case = {each.lower(): each for each in _KINDS}
    similar = similar_name(kind.lower().removesuffix("s"), by_lower_case)
    return f"did you mean {by_lower_case[similar]}?" if similar else "expected a kind, such as Job"


def _lost_work_problems(path: FieldPath, lost_work: LostWork) -> Iterator[_Found]:
    yield from _weight_problems((*path, "weights"), lost_work.weights)
    checkpoint = lost_work.checkpoint
    if checkpoint and (reason := invalid_label_key(checkpoint)):
        yield (*path, "checkpoint"), f"{checkpoint!r}: {reason}"


def _weight_problems(path: FieldPath, weights: Mapping[str, float]) -> Iterator[_Found]:
    for name, weight in weights.items():
        inner = (*path, name)
        if name not in _CORE_RESOURCES and not _is_extended(name):
            yield inner, f"{name!r} is no resource; {_EXPECTED_RESOURCES}"
        if not 0 < weight <= MAX_WEIGHT or thousandths(weight) % 1:
            yield inner, f"{weight:g}; expected from 0.001 to {MAX_WEIGHT}, in thousandths"


def _is_extended(name: str) -> bool:
    return "/" in name and not invalid_label_key(name)


def _plugin_problems(
    path: FieldPath,
    names: Sequence[str],
    noun: str,
    kind: type[CostPlugin | GuardPlugin],
    built_in: Collection[str] = (),
) -> Iterator[_Found]:
    """Yield the errors of names, of which those that are not built in are of plugins."""
    plugins = () if all(name in built_in for name in names) else plugin_names()
    yield from _list_problems(path, names, (*built_in, *plugins), noun)
    for index, name in enumerate(names):
        if name in plugins and name not in built_in:
            try:
                load_plugin(name, kind)
            except InvalidPluginError as error:
                yield (*path, index), str(error)


def _list_problems(
    path: FieldPath, names: Sequence[str], known: Collection[str], noun: str = "criterion"
) -> Iterator[_Found]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield (*path, index), f"repeats {name!r}; expected each {noun} only once"
        else:
            yield from _name_problems((*path, index), name, known, noun)


def _name_problems(
    path: FieldPath, name: str, known: Collection[str], noun: str = "criterion"
) -> Iterator[_Found]:
    if name in known:
        return
    similar = similar_name(name, known)
    names = f"one of {', '.join(known)}" if known else "an installed one; there is none"
    expected = f"did you mean {similar!r}?" if similar else f"expected {names}"
    yield path, f"unknown {noun} {name!r}; {expected}"
