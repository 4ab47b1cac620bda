"""The table of control plane components, and their options, read from a cluster's arguments.

A parser or a component that takes long to import is imported only where it is needed.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from extender.controllers.context import ControllerContext
from extender.controllers.process.controller_manager import (
    WORKLOADS,
    Component,
    MakeComponent,
    parse_names,
)
from fakeapi.controlplane.controllers.disruption_controller import DisruptionController
from fakeapi.controlplane.controllers.garbage_collector import GarbageCollector
from fakeapi.controlplane.controllers.namespace_controller import NamespaceController
from fakeapi.controlplane.controllers.node_lifecycle_controller import NodeLifecycleController
from fakeapi.controlplane.controllers.pod_gc import PodGarbageCollector
from fakeapi.controlplane.controllers.resource_quota_controller import ResourceQuotaController
from fakeapi.controlplane.controllers.service_accounts import ServiceAccountController
from fakeapi.controlplane.controllers.taint_eviction import TaintEvictionController
from fakeapi.controlplane.kubelet.scripts import (
    DEFAULT_KUBELET_OPTIONS,
    EMPTY_SCRIPT,
    KubeletOptions,
    ScriptSource,
    with_nodes,
)
from fakeapi.controlplane.scheduler.options import (
    ConfigurationSource,
    ExtenderFunction,
    ExtenderWait,
    SchedulerOptions,
)

if TYPE_CHECKING:
    from fakeapi.controlplane.kubelet.scripts import SimulationScript


def _make_kubelet(
    context: ControllerContext, options: KubeletOptions = DEFAULT_KUBELET_OPTIONS
) -> Component:
    from fakeapi.controlplane.kubelet.hollow_kubelet import HollowKubelet  # imported on first use

    return HollowKubelet(context, options)


def _make_scheduler(
    context: ControllerContext, options: SchedulerOptions | None = None
) -> Component:
    from fakeapi.controlplane.scheduler.scheduling_loop import Scheduler  # imported on first use

    return Scheduler(context, options or SchedulerOptions())


def _make_deployment_controller(context: ControllerContext) -> Component:
    from fakeapi.controlplane.workloads.deployment_controller import DeploymentController

    return DeploymentController(context)


def _make_job_controller(context: ControllerContext) -> Component:
    from fakeapi.controlplane.workloads.job_controller import JobController

    return JobController(context)


def _make_stateful_set_controller(context: ControllerContext) -> Component:
    from fakeapi.controlplane.workloads.stateful_set_controller import StatefulSetController

    return StatefulSetController(context)


def _make_daemon_set_controller(context: ControllerContext) -> Component:
    from fakeapi.controlplane.workloads.daemon_set_controller import DaemonSetController

    return DaemonSetController(context)


def _make_endpoint_slice_controller(context: ControllerContext) -> Component:
    from fakeapi.controlplane.workloads.endpoint_slice_controller import EndpointSliceController

    return EndpointSliceController(context)


COMPONENTS: Final[Mapping[str, MakeComponent]] = {
    "gc": GarbageCollector,
    "namespaces": NamespaceController,
    "resourcequota": ResourceQuotaController,
    "podgc": PodGarbageCollector,
    "serviceaccounts": ServiceAccountController,
    "disruption": DisruptionController,
    "nodelifecycle": NodeLifecycleController,
    "tainteviction": TaintEvictionController,
    **WORKLOADS,
    "deployment": _make_deployment_controller,
    "job": _make_job_controller,
    "statefulset": _make_stateful_set_controller,
    "daemonset": _make_daemon_set_controller,
    "endpointslice": _make_endpoint_slice_controller,
    "kubelet": _make_kubelet,
    "scheduler": _make_scheduler,
}
DEFAULT_RUN: Final = "gc,namespaces,resourcequota"


def components(
    kubelet: KubeletOptions = DEFAULT_KUBELET_OPTIONS, scheduler: SchedulerOptions | None = None
) -> Mapping[str, MakeComponent]:
    """Return all components of the control plane; kubelet and scheduler take their options."""
    return {
        **COMPONENTS,
        "kubelet": partial(_make_kubelet, options=kubelet),
        "scheduler": partial(_make_scheduler, options=scheduler),
    }


def parse_run(run: str) -> tuple[str, ...]:
    """Return the components to run: ``none``, ``all``, or comma-separated names.

    Raises UnknownComponentError.
    """
    if run in ("none", "all"):
        return tuple(COMPONENTS) if run == "all" else ()
    return parse_names(run, COMPONENTS, "component", ("none", "all", *COMPONENTS))


def read_simulation_script(kubelet: ScriptSource) -> SimulationScript | None:
    """Read the simulation script of hollow kubelets, None if empty; raises ScriptError."""
    if not kubelet:
        return None
    from fakeapi.controlplane.kubelet.script_parser import load_script

    return load_script(kubelet)


def register_nodes(
    script: SimulationScript | None, nodes: int, run: Container[str]
) -> SimulationScript | None:
    """Return the script with a number of further nodes that register themselves.

    Raises ScriptError, and ValueError if no kubelet would register them.
    """
    if not nodes:
        return script
    if "kubelet" not in run:
        raise ValueError("nodes: no kubelets in run; expected 'kubelet' in it, or 'all'")
    return with_nodes(script or EMPTY_SCRIPT, nodes)


def read_scheduler_options(
    document: ConfigurationSource,
    url: str,
    in_process_extenders: Mapping[str, ExtenderFunction] | None,
    upstream: str,
    waiting: ExtenderWait | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> SchedulerOptions:
    """Read a scheduler's options; raises SchedulerConfigError, UnknownReleaseError.

    ``feature_gates`` are changes of the defaults of the release ``upstream``.
    """
    in_process_extenders = in_process_extenders or {}
    if not (document or url or in_process_extenders or upstream or feature_gates):
        return SchedulerOptions()
    from fakeapi.controlplane.scheduler.configuration_loader import load_scheduler_configuration
    from policies.kubernetes.releases import NEWEST, release

    urls = [*([url] if url else []), *in_process_extenders]
    followed = release(upstream or NEWEST.name, feature_gates)
    configuration = load_scheduler_configuration(document, followed, urls)
    return SchedulerOptions(configuration, in_process_extenders, waiting=waiting)


def remote_extender_urls(options: SchedulerOptions) -> tuple[str, ...]:
    """Return the URLs of the extenders that the scheduler calls over HTTP."""
    extenders = options.configuration.extenders if options.configuration else ()
    inside = {prefix.rstrip("/") for prefix in options.extenders}
    urls = dict.fromkeys(each.url_prefix.rstrip("/") for each in extenders)
    return tuple(url for url in urls if url not in inside)
