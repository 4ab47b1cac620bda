"""The fields of KubeSchedulerConfiguration that change its filters.

``managedResources`` is a field of an extender's entry, ``pluginConfig`` of a profile; both can be
copied unchanged. Of the configurable plugins, three decide which nodes a pod fits:
NodeResourcesFit, NodeAffinity and PodTopologySpread. The arguments of other plugins, and those that
only score, are accepted and ignored.

Sources: pkg/scheduler/apis/config (types_pluginargs.go, validation) and buildExtenders in
pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, TypeAlias

import msgspec

from extender.kube import shapes
from extender.kube.decoding import FieldError
from extender.kube.placement import node_selector
from policies.filtering import Settings
from policies.model import SpreadConstraint
from policies.selectors import NodeSelector

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A section without unknown fields: a misspelt one would change decisions."""


class ManagedResource(_Strict, frozen=True):
    """A resource that an extender manages, and whether kube-scheduler ignores it."""

    name: str
    ignored_by_scheduler: bool = False


class _Args(_Strict, frozen=True):
    api_version: str = ""
    kind: str = ""


class FitArgs(_Args, frozen=True):
    """NodeResourcesFitArgs."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: object = None


class _Expression(_Strict, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def shape(self) -> shapes.Expression:
        return shapes.Expression(self.key, self.operator, list(self.values))


class _Term(_Strict, frozen=True):
    match_expressions: tuple[_Expression, ...] = ()
    match_fields: tuple[_Expression, ...] = ()

    def shape(self) -> shapes.SelectorTerm:
        return shapes.SelectorTerm(
            [each.shape() for each in self.match_expressions],
            [each.shape() for each in self.match_fields],
        )


class _Terms(_Strict, frozen=True):
    node_selector_terms: tuple[_Term, ...]


class _Affinity(
    msgspec.Struct,
    rename={"required": _REQUIRED, "preferred": _PREFERRED},
    forbid_unknown_fields=True,
    frozen=True,
):
    required: _Terms | None = None
    preferred: object = None


class AffinityArgs(_Args, frozen=True):
    """NodeAffinityArgs."""

    added_affinity: _Affinity | None = None


class _Constraint(_Strict, frozen=True):
    max_skew: Annotated[int, msgspec.Meta(ge=1)]
    topology_key: Annotated[str, msgspec.Meta(min_length=1)]
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: Annotated[int, msgspec.Meta(ge=1)] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: tuple[str, ...] = ()


class SpreadArgs(_Args, frozen=True):
    """PodTopologySpreadArgs; constraints that only score are accepted and ignored."""

    default_constraints: tuple[_Constraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


class FitConfig(_Strict, frozen=True, tag_field="name", tag="NodeResourcesFit"):
    """A profile's pluginConfig entry for NodeResourcesFit."""

    args: FitArgs = FitArgs()


class AffinityConfig(_Strict, frozen=True, tag_field="name", tag="NodeAffinity"):
    """A profile's pluginConfig entry for NodeAffinity."""

    args: AffinityArgs = AffinityArgs()


class SpreadConfig(_Strict, frozen=True, tag_field="name", tag="PodTopologySpread"):
    """A profile's pluginConfig entry for PodTopologySpread."""

    args: SpreadArgs = SpreadArgs()


class PreemptionArgs(_Args, frozen=True):
    """DefaultPreemptionArgs: on how many nodes preemption is tried; None: upstream's default."""

    min_candidate_nodes_percentage: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    min_candidate_nodes_absolute: Annotated[int, msgspec.Meta(ge=0)] | None = None


class PreemptionConfig(_Strict, frozen=True, tag_field="name", tag="DefaultPreemption"):
    """An entry that limits the nodes of kube-scheduler's dry run; the extender has no limit."""

    args: PreemptionArgs | None = None


class _Unread(_Strict, frozen=True):
    args: object = None


class InterPodAffinityConfig(_Unread, frozen=True, tag_field="name", tag="InterPodAffinity"):
    """An entry that only scores."""


class BalanceConfig(_Unread, frozen=True, tag_field="name", tag="NodeResourcesBalancedAllocation"):
    """An entry that only scores."""


class BindingConfig(_Unread, frozen=True, tag_field="name", tag="VolumeBinding"):
    """An entry that changes the timeout of binding."""


class DevicesConfig(_Unread, frozen=True, tag_field="name", tag="DynamicResources"):
    """An entry for device claims, which are not evaluated."""


PluginConfig: TypeAlias = (
    FitConfig
    | AffinityConfig
    | SpreadConfig
    | PreemptionConfig
    | InterPodAffinityConfig
    | BalanceConfig
    | BindingConfig
    | DevicesConfig
)


def settings_of(managed: Iterable[ManagedResource], plugins: Iterable[PluginConfig]) -> Settings:
    """Return the settings of the filters. Raise FieldError.

    Resources with ``ignoredByScheduler`` replace NodeResourcesFit's ``ignoredResources``.
    """
    fit, groups = FitArgs(), frozenset[str]()
    added: NodeSelector | None = None
    spread: tuple[SpreadConstraint, ...] = ()
    seen: set[type] = set()
    for index, plugin in enumerate(plugins):
        if type(plugin) in seen:
            raise FieldError(f"pluginConfig[{index}]", "repeats a plugin; expected each only once")
        seen.add(type(plugin))
        place = f"pluginConfig[{index}].args"
        match plugin:
            case FitConfig(args=args):
                fit, groups = args, frozenset(_groups(args.ignored_resource_groups, place))
            case AffinityConfig(args=affinity):
                added = _added(affinity, place)
            case SpreadConfig(args=defaults):
                spread = tuple(_hard(defaults, place))
    left = frozenset(each.name for each in managed if each.ignored_by_scheduler)
    return Settings(
        ignored=left or frozenset(fit.ignored_resources),
        ignored_groups=groups,
        added_affinity=added,
        default_spread=spread,
    )


def _groups(groups: Iterable[str], place: str) -> Iterator[str]:
    for index, group in enumerate(groups):
        if "/" in group:
            raise FieldError(
                f"{place}.ignoredResourceGroups[{index}]",
                f"{group!r}: a group is what stands before the slash",
            )
        yield group


def _added(args: AffinityArgs, place: str) -> NodeSelector | None:
    if args.added_affinity is None or args.added_affinity.required is None:
        return None
    terms = args.added_affinity.required.node_selector_terms
    required = shapes.RequiredTerms([term.shape() for term in terms])
    return node_selector(f"{place}.addedAffinity.{_REQUIRED}", required)


def _hard(args: SpreadArgs, place: str) -> Iterator[SpreadConstraint]:
    constraints = f"{place}.defaultConstraints"
    if args.defaulting_type == "System" and args.default_constraints:
        raise FieldError(constraints, "expected none unless defaultingType is List")
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(args.default_constraints):
        pair = (each.topology_key, each.when_unsatisfiable)
        if pair in seen:
            raise FieldError(f"{constraints}[{index}]", f"repeats {', '.join(pair)}")
        seen.add(pair)
        if each.when_unsatisfiable == "DoNotSchedule":
            yield SpreadConstraint(
                max_skew=each.max_skew,
                topology_key=each.topology_key,
                selector=None,
                min_domains=each.min_domains or 1,
                honors_affinity=each.node_affinity_policy != "Ignore",
                honors_taints=each.node_taints_policy == "Honor",
            )
