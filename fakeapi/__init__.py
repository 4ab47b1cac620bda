"""An API server in one Python process, real enough for kubectl and every Python client.

The store, the table of kinds and the API are pure. A server and a transport without sockets are
thin layers around them. :class:`FakeCluster` starts all of it in one ``async with``.

All names that a test needs can be imported from this package. Each is imported on first use, since
pytest always loads the plugin.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from extender.controllers.process.controller_manager import (
        UnknownComponentError as UnknownComponentError,
    )
    from extender.kube.decoders.manifests import ManifestError as ManifestError
    from extender.recording.files import RecordingError as RecordingError
    from extender.secure_serving.pem import MissingExtraError as MissingExtraError
    from fakeapi.apiserver.discovery.version_and_health import (
        ServerVersionError as ServerVersionError,
    )
    from fakeapi.apiserver.testing.fault_injection import PlanError as PlanError
    from fakeapi.apiserver.webhooks.calls import WebhookCallError as WebhookCallError
    from fakeapi.apiserver.wire.errors import StatusError as StatusError
    from fakeapi.apiserver.wire.http_messages import User as User
    from fakeapi.controlplane.kubelet.scripts import ScriptError as ScriptError
    from fakeapi.controlplane.scheduler.options import Call as Call
    from fakeapi.controlplane.scheduler.options import Reply as Reply
    from fakeapi.controlplane.scheduler.options import SchedulerConfigError as SchedulerConfigError
    from fakeapi.controlplane.scheduler.options import UnansweredError as UnansweredError
    from fakeapi.replay.component_effects import (
        UnsupportedComponentError as UnsupportedComponentError,
    )
    from fakeapi.replay.player import ReplayError as ReplayError
    from fakeapi.testing.fake_cluster import FakeCluster as FakeCluster
    from fakeapi.testing.faults import Fault as Fault
    from fakeapi.testing.faults import fault as fault
    from fakeapi.testing.object_waits import WaitTimeoutError as WaitTimeoutError
    from fakeapi.testing.process_cluster import ProcessCluster as ProcessCluster
    from fakeapi.testing.process_cluster import ProcessError as ProcessError
    from fakeapi.testing.threaded_cluster import ThreadedCluster as ThreadedCluster
    from fakeapi.testing.virtual_cluster import VirtualCluster as VirtualCluster
    from policies.kubernetes.releases import UnknownReleaseError as UnknownReleaseError
    from policies.workloadspread.quirks import UnknownModeError as UnknownModeError

_MODULES: Final = {
    "Call": "fakeapi.controlplane.scheduler.options",
    "FakeCluster": "fakeapi.testing.fake_cluster",
    "Fault": "fakeapi.testing.faults",
    "ManifestError": "extender.kube.decoders.manifests",
    "MissingExtraError": "extender.secure_serving.pem",
    "PlanError": "fakeapi.apiserver.testing.fault_injection",
    "ProcessCluster": "fakeapi.testing.process_cluster",
    "ProcessError": "fakeapi.testing.process_cluster",
    "RecordingError": "extender.recording.files",
    "ReplayError": "fakeapi.replay.player",
    "Reply": "fakeapi.controlplane.scheduler.options",
    "SchedulerConfigError": "fakeapi.controlplane.scheduler.options",
    "ScriptError": "fakeapi.controlplane.kubelet.scripts",
    "ServerVersionError": "fakeapi.apiserver.discovery.version_and_health",
    "StatusError": "fakeapi.apiserver.wire.errors",
    "ThreadedCluster": "fakeapi.testing.threaded_cluster",
    "UnansweredError": "fakeapi.controlplane.scheduler.options",
    "UnknownComponentError": "extender.controllers.process.controller_manager",
    "UnknownModeError": "policies.workloadspread.quirks",
    "UnknownReleaseError": "policies.kubernetes.releases",
    "UnsupportedComponentError": "fakeapi.replay.component_effects",
    "User": "fakeapi.apiserver.wire.http_messages",
    "VirtualCluster": "fakeapi.testing.virtual_cluster",
    "WaitTimeoutError": "fakeapi.testing.object_waits",
    "WebhookCallError": "fakeapi.apiserver.webhooks.calls",
    "fault": "fakeapi.testing.faults",
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    """Import an exported name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
