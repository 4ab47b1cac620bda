"""NodePorts: the host ports that a pod requests must be free on the node.

A port used on one address conflicts with the same port on that address and on 0.0.0.0, which means
all addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import ANY_ADDRESS, HostPort, NodeState, Pod, Snapshot
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, Rejection, refused

REFUSAL = refused(Code.HOST_PORTS)


@dataclass(frozen=True, slots=True)
class NodePorts:
    """Source: pkg/scheduler/framework/plugins/nodeports, HostPortInfo in framework/types.go."""

    name: str = "NodePorts"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        """Compare the pod's host ports with those in use, if it has any."""
        if not pod.host_ports:
            return NOTHING_TO_CHECK

        def rule(state: NodeState) -> Rejection | None:
            taken = any(
                ports_conflict(requested, used)
                for requested in pod.host_ports
                for used in state.used_ports
            )
            return REFUSAL if taken else None

        return PreFilter(NodeFilter(rule))


def ports_conflict(requested: HostPort, used: HostPort) -> bool:
    """Return whether two host ports conflict on one node."""
    if (requested.protocol, requested.port) != (used.protocol, used.port):
        return False
    return requested.address == used.address or ANY_ADDRESS in (requested.address, used.address)
