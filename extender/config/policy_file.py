"""The policy file: which pods may preempt which others, and which node is chosen.

A policy has rules. The first rule whose preemptors match a pod applies to it; the last rule has no
preemptors and applies to all others. A file with all fields; only names are required, and what a
comment calls a default applies to a rule without the field::

    apiVersion: reprieve.dev/v1alpha1
    kind: PreemptionPolicy
    metadata:
      name: spare-long-jobs
    rules:                    # the first rule whose preemptors match applies
    - name: interactive       # in logs and explanations
      preemptors:             # the pods that the rule applies to; the last rule has none
        namespaces: [team-a]  # a selector matches a pod that all of its fields match
        labels: {matchLabels: {app: web}}       # as in Kubernetes
        priorityClasses: [interactive]          # by the names of the classes
        owners: [Deployment, Job]               # by the kinds of the workloads; Pod: no controller
        expression: pod.restarts < 3            # in CEL, about the pod; needs the extra cel
      guards:                 # what the rule forbids
        pdb: prefer           # strict: no victim that a disruption budget does not allow to go;
                              # prefer: as kube-scheduler, which may violate budgets
        protect:              # pods that are never victims, by at least one selector
        - name: databases
          labels: {matchExpressions: [{key: role, operator: In, values: [db, cache]}]}
        minRuntime:           # pods that are no victims until they have run for some time
        - for: 30m            # in Go's notation; by default for all pods
          owners: [Job]
        priorityGap: 1        # a victim's priority is lower by at least this; default 1
        maxVictims: 5         # the most victims on a node; by default any number
        maxLostWork:          # the most lost work of all victims together; by default any amount
          amount: 10          # in weighted units times the unit of time
          per: hours          # hours, minutes or seconds
          owners: [Job]       # only that of some pods counts; by default that of all pods
        preemptionDelay: 0s   # a pod waits so long before it preempts; default 0s
        waitForAutoscaler: 2m # a pod waits so long after cluster-autoscaler or Karpenter has
                              # announced a node for it; default 0s
        cooldown:             # workloads rest; by default they do not
          victims: 10m        # of a workload that was preempted no pod is a victim for so long
          preemptors: 1m      # a workload that has preempted does not preempt for so long
        limits:               # the most victims, or lost work, within any window of time
        - victims: 5
          per: 1h             # up to 24h
          by: namespace       # cluster, namespace, owner or priorityClass of the victims
        - lostWork: {amount: 10, per: hours}      # as in maxLostWork
          per: 24h
          by: namespace
        loopBreaker: 1h       # workloads that have preempted each other within this time, directly
                              # or over others, do not so again; by default they may
        minAvailable:         # ready pods of each workload that stay, without a disruption budget
        - replicas: 1
          owners: [Deployment]
        plugins: []           # guards in Python, by their names in installed packages; default none
      lostWork:               # the work that is lost with a victim: weighted requests times time
        weights:              # by resource: per core, GiB, or unit of an extended resource;
          nvidia.com/gpu: 1   # by default, a core counts as a fiftieth of a GPU, which is about
          cpu: 0.02           # the ratio of their prices
        checkpoint: ""        # an annotation with the time of the last checkpoint, in RFC 3339
      cost:                   # what the criterion "lowest cost" adds up; by default it is 0
        expression: int(pod.labels["weight"])   # an integer in CEL, for each pod
      fragmentation:          # what the criterion "least fragmentation" keeps together
        resource: nvidia.com/gpu                # an extended resource, of which nodes have units
      victims: [highest priority, earliest start]     # which pods are reprieved first; or else
                              # {strategy: cheapest, by: least lost work}: the victims of the least
                              # cost on any node, by a criterion that then decides before candidates
      candidates: [least lost work, fewest victims]   # which node is chosen; also costs in Python,
                              # by their names in installed packages
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from policies.kubernetes.selectors import LABEL_OPERATORS
from policies.preemption.consequences.criteria import CONSEQUENCE_CRITERIA
from policies.preemption.costs.catalog import (
    CHEAPEST_CRITERIA,
    COST_CRITERIA,
    POD_COST_CRITERIA,
)
from policies.preemption.costs.fragmentation import LEAST_FRAGMENTATION, NVIDIA_GPU
from policies.preemption.policy import CANDIDATE_CRITERIA, POD_CRITERIA

API_VERSION: Final = "reprieve.dev/v1alpha1"
KIND: Final = "PreemptionPolicy"
VICTIM_CRITERIA: Final = (*POD_CRITERIA, *POD_COST_CRITERIA)
ALL_CANDIDATE_CRITERIA: Final = (
    *CANDIDATE_CRITERIA,
    *COST_CRITERIA,
    LEAST_FRAGMENTATION,
    *CONSEQUENCE_CRITERIA,
)
DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {"nvidia.com/gpu": 1.0, "cpu": 0.02}
MAX_WEIGHT: Final = 1_000_000
_MAX_AMOUNT: Final = 1e9


def _one_of(names: tuple[str, ...]) -> msgspec.Meta:
    """Return the part of the schema for names that are validated with better messages."""
    return msgspec.Meta(extra_json_schema={"enum": list(names)})


_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Names: TypeAlias = Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1)]
_LostWorkAmount: TypeAlias = Annotated[float, msgspec.Meta(ge=0.001, le=_MAX_AMOUNT)]
_TimeUnit: TypeAlias = Literal["hours", "minutes", "seconds"]
_Duration: TypeAlias = Annotated[
    str, msgspec.Meta(extra_json_schema={"pattern": r"^\+?(0|([0-9.]+(ns|us|µs|μs|ms|s|m|h))+)$"})
]
_VictimOrder: TypeAlias = Annotated[
    tuple[Annotated[str, _one_of(VICTIM_CRITERIA)], ...], msgspec.Meta(min_length=1)
]
_PLUGIN_SCHEMA: Final = {"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
"""The names of plugins in a schema, which does not know those that are installed."""
_CandidateOrder: TypeAlias = Annotated[
    tuple[
        Annotated[
            str,
            msgspec.Meta(
                extra_json_schema={
                    "anyOf": [{"enum": list(ALL_CANDIDATE_CRITERIA)}, _PLUGIN_SCHEMA]
                }
            ),
        ],
        ...,
    ],
    msgspec.Meta(min_length=1),
]
_PluginNames: TypeAlias = tuple[Annotated[str, msgspec.Meta(extra_json_schema=_PLUGIN_SCHEMA)], ...]


T = TypeVar("T")


def given(value: T | UnsetType, default: T) -> T:
    """Return a value, or the default of an absent one."""
    return default if value is UNSET else value


def thousandths(number: float) -> Decimal:
    """Return 1000 times a number as it is written."""
    return Decimal(repr(number)) * 1000


class _Section(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A section without unknown fields: a misspelt one would change decisions."""


class LabelSelectorRequirement(_Section, frozen=True):
    """One expression of a label selector."""

    key: str
    operator: Annotated[str, _one_of(LABEL_OPERATORS)]
    values: tuple[str, ...] | UnsetType = UNSET


class LabelSelectorFields(_Section, frozen=True):
    """A label selector."""

    match_labels: dict[str, str] | UnsetType = UNSET
    match_expressions: tuple[LabelSelectorRequirement, ...] | UnsetType = UNSET


class PodSelectorFields(_Section, frozen=True):
    """A selector of the pods that match all of its fields; an absent one matches every pod."""

    namespaces: _Names | UnsetType = UNSET
    labels: LabelSelectorFields | UnsetType = UNSET
    priority_classes: _Names | UnsetType = UNSET
    owners: _Names | UnsetType = UNSET
    expression: _Name | UnsetType = UNSET

    @property
    def matches_all(self) -> bool:
        """Whether the selector has no fields."""
        selecting = (self.namespaces, self.labels, self.priority_classes, self.owners)
        return all(each is UNSET for each in (*selecting, self.expression))


class ProtectedPods(PodSelectorFields, frozen=True, kw_only=True):
    """Pods that are never victims."""

    name: str


class MinRuntime(PodSelectorFields, frozen=True, kw_only=True):
    """Pods that are no victims before they have run for some time."""

    duration: _Duration = msgspec.field(name="for")


class LostWorkAmount(_Section, frozen=True):
    """An amount of lost work, in weighted units times a unit of time."""

    amount: _LostWorkAmount
    per: _TimeUnit


class MaxLostWork(PodSelectorFields, frozen=True, kw_only=True):
    """The most lost work of the selected victims on a node."""

    amount: _LostWorkAmount
    per: _TimeUnit


class Cooldown(_Section, frozen=True):
    """How long workloads rest after a preemption."""

    victims: _Duration = "0s"
    preemptors: _Duration = "0s"


class WindowLimit(_Section, frozen=True, kw_only=True):
    """The most victims of each group, or their most lost work, within any window of time."""

    victims: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | UnsetType = UNSET
    lost_work: LostWorkAmount | UnsetType = UNSET
    per: _Duration
    by: Literal["cluster", "namespace", "owner", "priorityClass"] = "cluster"


class MinAvailable(PodSelectorFields, frozen=True, kw_only=True):
    """Workloads of which some ready pods stay."""

    replicas: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Guards(_Section, frozen=True):
    """What a rule forbids."""

    pdb: Literal["strict", "prefer"] = "prefer"
    protect: tuple[ProtectedPods, ...] = ()
    min_runtime: tuple[MinRuntime, ...] = ()
    priority_gap: Annotated[int, msgspec.Meta(ge=1, le=2**31)] = 1
    max_victims: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | UnsetType = UNSET
    max_lost_work: MaxLostWork | UnsetType = UNSET
    preemption_delay: _Duration = "0s"
    wait_for_autoscaler: _Duration = "0s"
    cooldown: Cooldown = Cooldown()
    limits: tuple[WindowLimit, ...] = ()
    loop_breaker: _Duration = "0s"
    min_available: tuple[MinAvailable, ...] = ()
    plugins: _PluginNames = ()


class ExpressionCost(_Section, frozen=True):
    """A cost of each pod, in CEL."""

    expression: _Name


class LostWork(_Section, frozen=True):
    """How the work that is lost with a victim is measured."""

    weights: Annotated[dict[str, float], msgspec.Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: dict(DEFAULT_WEIGHTS)
    )
    checkpoint: str = ""


class CheapestVictims(_Section, frozen=True):
    """The victims of the least cost, by the criterion that measures it."""

    strategy: Literal["cheapest"]
    by: Annotated[str, _one_of(CHEAPEST_CRITERIA)]


class Fragmentation(_Section, frozen=True):
    """The extended resource whose free units are kept together."""

    resource: str = NVIDIA_GPU


class PolicyRuleFields(_Section, frozen=True):
    """A rule: the pods that it applies to, what it forbids, and what it prefers."""

    name: str
    preemptors: PodSelectorFields | UnsetType = UNSET
    guards: Guards = Guards()
    lost_work: LostWork = LostWork()
    cost: ExpressionCost | UnsetType = UNSET
    fragmentation: Fragmentation = Fragmentation()
    victims: _VictimOrder | CheapestVictims = tuple(POD_CRITERIA)
    candidates: _CandidateOrder = tuple(CANDIDATE_CRITERIA)


class PolicyMetadata(_Section, frozen=True):
    """The name of a policy, in logs and explanations."""

    name: str


class PolicyFile(_Section, frozen=True):
    """A preemption policy: rules, of which the first whose preemptors match applies."""

    api_version: Literal["reprieve.dev/v1alpha1"]
    kind: Literal["PreemptionPolicy"]
    metadata: PolicyMetadata
    rules: Annotated[tuple[PolicyRuleFields, ...], msgspec.Meta(min_length=1)]


def policy_schema() -> str:
    """Return the JSON Schema of policy files, by which editors complete and check them.

    It does not have the rules that relate fields to each other, which ``reprieve policy check``
    validates.
    """
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        **msgspec.json.schema(PolicyFile),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
