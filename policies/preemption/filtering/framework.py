"""The scheduling framework: how filters are prepared once per pod and then run on each node.

A :class:`Filter` first reads the pod and the snapshot (upstream's PreFilter) and returns a
:class:`PreFilter`: nothing to check, a conflict that refuses every node, or a :class:`FilterPlugin`
for single nodes (upstream's Filter), possibly with the only nodes that can pass.

A filter plugin may depend on the whole cluster (topology spread, inter-pod affinity). It then
carries its own counts, and :meth:`FilterPlugin.removing` and :meth:`FilterPlugin.adding` return the
plugin after a pod has left or joined a node (upstream's PreFilterExtensions). A plugin that reads
only the node's state returns itself. Filter plugins are values: a dry run on one node never affects
another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self, TypeGuard

from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.preemption.time_limit import HasTimeLeft, no_deadline


class FilterPlugin(Protocol):
    """One filter, prepared for one pod."""

    def refuse(self, node: NodeState) -> Rejection | None:
        """Return why the pod does not fit ``node``, or None if it does."""
        ...

    def removing(self, pod: Pod, node: NodeState) -> FilterPlugin:
        """Return the plugin after ``pod`` has left ``node``."""
        ...

    def adding(self, pod: Pod, node: NodeState) -> FilterPlugin:
        """Return the plugin after ``pod`` has joined ``node``."""
        ...


class NodeOnlyPlugin:
    """A filter plugin that reads only the state of the node, which lacks or contains the pod."""

    __slots__ = ()

    def removing(self, pod: Pod, node: NodeState) -> Self:  # noqa: ARG002 - see FilterPlugin
        """Return itself."""
        return self

    def adding(self, pod: Pod, node: NodeState) -> Self:  # noqa: ARG002 - see FilterPlugin
        """Return itself."""
        return self


class LabelValues(NamedTuple):
    """Values of one node label."""

    key: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class NodeFilter(NodeOnlyPlugin):
    """A filter plugin with one rule for the node.

    ``reads`` are the keys of the node labels that the rule reads, if it reads nothing else (None:
    it may read anything of the node). Nodes with one of the values ``passes`` fit; of the others it
    says nothing.
    """

    rule: Callable[[NodeState], Rejection | None]
    reads: frozenset[str] | None = None
    passes: LabelValues | None = None

    def refuse(self, node: NodeState) -> Rejection | None:
        """Apply the rule."""
        return self.rule(node)


@dataclass(frozen=True, slots=True)
class PreFilter:
    """The result of a filter's PreFilter; with nothing set there is nothing to check.

    ``conflict`` refuses every node at once. ``only`` limits the nodes that are evaluated.
    """

    plugin: FilterPlugin | None = None
    conflict: Rejection | None = None
    only: frozenset[str] | None = None


NOTHING_TO_CHECK = PreFilter()


class Filter(Protocol):
    """An in-tree filter."""

    @property
    def name(self) -> str:
        """The plugin's name, as in kube-scheduler's configuration."""
        ...

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Read the pod and the snapshot before any single node (upstream: PreFilter)."""
        ...


class CountingFilter(Protocol):
    """A filter whose PreFilter counts pods of the whole cluster, which takes long."""

    def count(
        self, pod: Pod, snapshot: Snapshot, release: Release, has_time_left: HasTimeLeft
    ) -> PreFilter:
        """Do the same as ``pre_filter``.

        Raise DeadlineExceededError if ``has_time_left`` returns false.
        """
        ...


def _is_counting(each: Filter | CountingFilter) -> TypeGuard[CountingFilter]:
    # As isinstance of a protocol does, which takes longer than most PreFilters.
    return hasattr(each, "count")


_FILTERS_OF_RESIZES = frozenset(["NodeName", "DeferredPodScheduling", "NodeResourcesFit"])
"""The filters that judge a pod whose in-place resize is deferred; all others skip it."""


def is_recorded(nominated: Pod, pod: Pod, scheduler_names: frozenset[str]) -> bool:
    """Return whether the scheduler of ``pod`` knows that another pod is nominated to a node.

    kube-scheduler records the nominations of the pods that it schedules: their schedulerName is
    that of one of its profiles. It has the profile of ``pod`` and, if that is one of
    ``scheduler_names``, the profiles of these. Source: addPod and responsibleForPod in
    pkg/scheduler/eventhandlers.go.
    """
    if nominated.scheduler_name == pod.scheduler_name:
        return True
    return scheduler_names.issuperset((nominated.scheduler_name, pod.scheduler_name))


def has_to_fit_beside(nominated: Pod, pod: Pod, scheduler_names: frozenset[str]) -> bool:
    """Return whether ``pod`` has to fit a node beside another pod that is nominated to it.

    These are the pods of at least its own priority, and those that may be assumed on the node: in
    kube-scheduler's snapshot they are on it, at any priority. Source: addGENominatedPods in
    pkg/scheduler/framework/runtime/framework.go.
    """
    return nominated.uid != pod.uid and is_counted_beside(nominated, pod, scheduler_names)


def is_counted_beside(nominated: Pod, pod: Pod, scheduler_names: frozenset[str]) -> bool:
    """Return the same for another pod like ``nominated``, whatever the UID of that one is."""
    return (nominated.priority >= pod.priority or nominated.may_be_assumed) and is_recorded(
        nominated, pod, scheduler_names
    )


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All filters prepared for one pod, in kube-scheduler's order.

    ``only`` are the nodes left to evaluate (None: all) and ``limited_by`` the filters that limit
    them. ``ran`` are the filters whose PreFilters ran: with a conflict, those up to its filter.
    ``scheduler_names`` are the profiles of the scheduler (see :func:`is_recorded`).
    """

    pod: Pod
    plugins: tuple[FilterPlugin, ...]
    conflict: Rejection | None = None
    only: frozenset[str] | None = None
    limited_by: tuple[str, ...] = ()
    ran: Sequence[Filter] = ()
    scheduler_names: frozenset[str] = frozenset()

    def refuse(self, node: NodeState) -> Rejection | None:
        """Return the first rejection of ``node``, with and without the pods nominated to it.

        It must fit beside the nominated pods (see :func:`has_to_fit_beside`), and without them too,
        since they may be scheduled elsewhere. Source: RunFilterPluginsWithNominatedPods in
        pkg/scheduler/framework/runtime/framework.go.
        """
        nominated = [
            pod for pod in node.nominated if has_to_fit_beside(pod, self.pod, self.scheduler_names)
        ]
        if nominated:
            pipeline, with_nominated = self, node
            for pod in nominated:
                with_nominated = with_nominated.with_pod(pod)
                pipeline = pipeline.adding(pod, with_nominated)
            rejection = pipeline.first_rejection(with_nominated)
            if rejection is not None:
                return rejection
        return self.first_rejection(node)

    def first_rejection(self, node: NodeState) -> Rejection | None:
        """Return the first rejection of ``node``, without its nominated pods."""
        if node.unreadable:
            return unresolvable(Code.UNREADABLE_POD, ", ".join(node.unreadable))
        for plugin in self.plugins:
            rejection = plugin.refuse(node)
            if rejection is not None:
                return rejection
        return None

    def evaluate(self, node: NodeState) -> Rejection | None:
        """Do the same as :meth:`refuse`, after the conflicts and limits of the PreFilters.

        The limits do not hold for the node that the pod is nominated to, which is always evaluated,
        and first. Source: evaluateNominatedNode in pkg/scheduler/schedule_one.go.
        """
        if self.conflict is not None:
            return self.conflict
        name = node.node.name
        if self.only is not None and name not in self.only and name != self.pod.nominated_node:
            return unresolvable(Code.NOT_EXAMINED, " ".join(self.limited_by))
        return self.refuse(node)

    def removing(self, pod: Pod, node: NodeState) -> Pipeline:
        """Return the pipeline after ``pod`` has left ``node``."""
        return replace(self, plugins=tuple(each.removing(pod, node) for each in self.plugins))

    def adding(self, pod: Pod, node: NodeState) -> Pipeline:
        """Return the pipeline after ``pod`` has joined ``node``."""
        return replace(self, plugins=tuple(each.adding(pod, node) for each in self.plugins))


def in_default_order(filters: Sequence[Filter], release: Release) -> Sequence[Filter]:
    """Return in-tree filters, given in the order of the newest release, in that of ``release``.

    Source: getDefaultPlugins in pkg/scheduler/apis/config/v1/default_plugins.go.
    """
    if release.node_name_is_first:
        return filters
    return sorted(filters, key=lambda each: each.name != "NodeUnschedulable")


def run_pre_filters(
    pod: Pod,
    snapshot: Snapshot,
    release: Release,
    filters: Sequence[Filter],
    scheduler_names: frozenset[str] = frozenset(),
    has_time_left: HasTimeLeft = no_deadline,
) -> Pipeline:
    """Run the PreFilters in the order of the release; the first conflict ends the run, as upstream.

    Most filters skip a pod whose in-place resize is deferred: it is on its node already.
    ``scheduler_names`` are the profiles of the scheduler (see :func:`is_recorded`). Raise
    DeadlineExceededError if ``has_time_left`` returns false.
    """
    if pod.resize_deferred:
        filters = [each for each in filters if each.name in _FILTERS_OF_RESIZES]
    plugins: list[FilterPlugin] = []
    only: frozenset[str] | None = None
    limited_by: list[str] = []
    ordered = in_default_order(filters, release)
    for count, each in enumerate(ordered, 1):
        if _is_counting(each):
            prepared = each.count(pod, snapshot, release, has_time_left)
        else:
            prepared = each.pre_filter(pod, snapshot, release)
        if prepared.conflict is not None:
            return Pipeline(pod, (), conflict=prepared.conflict, ran=ordered[:count])
        if prepared.plugin is not None:
            plugins.append(prepared.plugin)
        if prepared.only is not None:
            only = prepared.only if only is None else only & prepared.only
            limited_by.append(each.name)
    return Pipeline(
        pod,
        tuple(plugins),
        only=only,
        limited_by=tuple(sorted(limited_by)),
        ran=ordered,
        scheduler_names=scheduler_names,
    )
