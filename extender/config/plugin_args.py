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

from extender.config.strict_decoding import ConfigError
from extender.kube.decoders import core_v1_types
from extender.kube.decoders.pod_specs import node_selector
from extender.kube.decoders.typed_decoder import FieldError
from policies.kubernetes.selectors import NodeSelector, SpreadConstraint
from policies.preemption.filtering import FilterSettings

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _StrictSection(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A section without unknown fields: a misspelt one would change decisions."""


class ManagedResource(_StrictSection, frozen=True):
    """A resource that an extender manages, and whether kube-scheduler ignores it."""

    name: str
    ignored_by_scheduler: bool = False


class _PluginArgs(_StrictSection, frozen=True):
    api_version: str = ""
    kind: str = ""


class NodeResourcesFitArgs(_PluginArgs, frozen=True):
    """NodeResourcesFitArgs."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: object = None


class _NodeSelectorRequirement(_StrictSection, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def to_core_v1(self) -> core_v1_types.SelectorRequirementV1:
        return core_v1_types.SelectorRequirementV1(self.key, self.operator, list(self.values))


class _NodeSelectorTerm(_StrictSection, frozen=True):
    match_expressions: tuple[_NodeSelectorRequirement, ...] = ()
    match_fields: tuple[_NodeSelectorRequirement, ...] = ()

    def to_core_v1(self) -> core_v1_types.NodeSelectorTermV1:
        return core_v1_types.NodeSelectorTermV1(
            [each.to_core_v1() for each in self.match_expressions],
            [each.to_core_v1() for each in self.match_fields],
        )


class _RequiredNodeSelector(_StrictSection, frozen=True):
    node_selector_terms: tuple[_NodeSelectorTerm, ...]


class _AddedAffinity(
    msgspec.Struct,
    rename={"required": _REQUIRED, "preferred": _PREFERRED},
    forbid_unknown_fields=True,
    frozen=True,
):
    required: _RequiredNodeSelector | None = None
    preferred: object = None


class NodeAffinityArgs(_PluginArgs, frozen=True):
    """NodeAffinityArgs."""

    added_affinity: _AddedAffinity | None = None


class _TopologySpreadConstraint(_StrictSection, frozen=True):
    max_skew: Annotated[int, msgspec.Meta(ge=1)]
    topology_key: Annotated[str, msgspec.Meta(min_length=1)]
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: Annotated[int, msgspec.Meta(ge=1)] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: tuple[str, ...] = ()


class PodTopologySpreadArgs(_PluginArgs, frozen=True):
    """PodTopologySpreadArgs; constraints that only score are accepted and ignored."""

    default_constraints: tuple[_TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


class NodeResourcesFitConfig(_StrictSection, frozen=True, tag_field="name", tag="NodeResourcesFit"):
    """A profile's pluginConfig entry for NodeResourcesFit."""

    args: NodeResourcesFitArgs = NodeResourcesFitArgs()


class NodeAffinityConfig(_StrictSection, frozen=True, tag_field="name", tag="NodeAffinity"):
    """A profile's pluginConfig entry for NodeAffinity."""

    args: NodeAffinityArgs = NodeAffinityArgs()


class PodTopologySpreadConfig(
    _StrictSection, frozen=True, tag_field="name", tag="PodTopologySpread"
):
    """A profile's pluginConfig entry for PodTopologySpread."""

    args: PodTopologySpreadArgs = PodTopologySpreadArgs()


class DefaultPreemptionArgs(_PluginArgs, frozen=True):
    """DefaultPreemptionArgs: on how many nodes preemption is tried; None: upstream's default."""

    min_candidate_nodes_percentage: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    min_candidate_nodes_absolute: Annotated[int, msgspec.Meta(ge=0)] | None = None


class DefaultPreemptionConfig(
    _StrictSection, frozen=True, tag_field="name", tag="DefaultPreemption"
):
    """An entry that limits the nodes of kube-scheduler's dry run; the extender has no limit."""

    args: DefaultPreemptionArgs | None = None


class _IgnoredArgs(_StrictSection, frozen=True):
    args: object = None


class InterPodAffinityConfig(_IgnoredArgs, frozen=True, tag_field="name", tag="InterPodAffinity"):
    """An entry that only scores."""


class BalancedAllocationConfig(
    _IgnoredArgs, frozen=True, tag_field="name", tag="NodeResourcesBalancedAllocation"
):
    """An entry that only scores."""


class VolumeBindingConfig(_IgnoredArgs, frozen=True, tag_field="name", tag="VolumeBinding"):
    """An entry that changes the timeout of binding."""


class DynamicResourcesConfig(_IgnoredArgs, frozen=True, tag_field="name", tag="DynamicResources"):
    """An entry for device claims, which are not evaluated."""


PluginConfig: TypeAlias = (
    NodeResourcesFitConfig
    | NodeAffinityConfig
    | PodTopologySpreadConfig
    | DefaultPreemptionConfig
    | InterPodAffinityConfig
    | BalancedAllocationConfig
    | VolumeBindingConfig
    | DynamicResourcesConfig
)


def filter_settings(
    managed: Iterable[ManagedResource], plugins: Iterable[PluginConfig]
) -> FilterSettings:
    """Return the settings of the filters. Raise ConfigError with all errors.

    Resources with ``ignoredByScheduler`` replace NodeResourcesFit's ``ignoredResources``.
    """
    errors: list[str] = []
    fit = NodeResourcesFitArgs()
    added: NodeSelector | None = None
    spread: tuple[SpreadConstraint, ...] = ()
    seen: set[type] = set()
    for index, plugin in enumerate(plugins):
        if type(plugin) in seen:
            errors.append(f"pluginConfig[{index}]: repeats a plugin; expected each only once")
        seen.add(type(plugin))
        place = f"pluginConfig[{index}].args"
        match plugin:
            case NodeResourcesFitConfig(args=args):
                fit = args
                errors.extend(_validate_groups(args.ignored_resource_groups, place))
            case NodeAffinityConfig(args=affinity):
                try:
                    added = _added_affinity(affinity, place)
                except FieldError as error:
                    errors.append(str(error))
            case PodTopologySpreadConfig(args=defaults):
                spread = tuple(_hard_constraints(defaults))
                errors.extend(_validate_constraints(defaults, f"{place}.defaultConstraints"))
    if errors:
        raise ConfigError(*errors)
    left = frozenset(each.name for each in managed if each.ignored_by_scheduler)
    return FilterSettings(
        ignored=left or frozenset(fit.ignored_resources),
        ignored_groups=frozenset(fit.ignored_resource_groups),
        added_affinity=added,
        default_spread=spread,
    )


def _validate_groups(groups: Iterable[str], path: str) -> Iterator[str]:
    for index, group in enumerate(groups):
        if "/" in group:
            place = f"{path}.ignoredResourceGroups[{index}]"
            yield f"{place}: {group!r}: expected a group without a slash"


def _added_affinity(args: NodeAffinityArgs, path: str) -> NodeSelector | None:
    if args.added_affinity is None or args.added_affinity.required is None:
        return None
    terms = args.added_affinity.required.node_selector_terms
    required = core_v1_types.NodeSelectorV1([term.to_core_v1() for term in terms])
    return node_selector(f"{path}.addedAffinity.{_REQUIRED}", required)


def _validate_constraints(args: PodTopologySpreadArgs, path: str) -> Iterator[str]:
    if args.defaulting_type == "System" and args.default_constraints:
        yield f"{path}: expected none unless defaultingType is List"
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(args.default_constraints):
        pair = (each.topology_key, each.when_unsatisfiable)
        if pair in seen:
            yield f"{path}[{index}]: repeats {', '.join(pair)}"
        seen.add(pair)


def _hard_constraints(args: PodTopologySpreadArgs) -> Iterator[SpreadConstraint]:
    for each in args.default_constraints:
        if each.when_unsatisfiable == "DoNotSchedule":
            yield SpreadConstraint(
                max_skew=each.max_skew,
                topology_key=each.topology_key,
                selector=None,
                min_domains=each.min_domains or 1,
                honors_affinity=each.node_affinity_policy != "Ignore",
                honors_taints=each.node_taints_policy == "Honor",
            )
