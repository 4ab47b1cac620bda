"""The ReplicaSet controller, with the behaviour of kube-controller-manager's.

types                   ReplicaSets and pods as the controller caches them
caches                  indexes that relate pods and ReplicaSets
event_handlers          which keys an event enqueues, and which expectations it fulfils
controller_ref_manager  whether a pod is claimed, adopted, released or ignored, and the requests
pod_control             create, delete and patch pods, with Events and error messages
sync                    one sync in upstream's order: scale up or down, slow-start batches
status                  counts, conditions, next availability check, and the status update

Source: kubernetes/pkg/controller/replicaset, pkg/controller/controller_utils.go,
controller_ref_manager.go.
"""

from __future__ import annotations

from extender.controllers.replicaset.sync import ReplicaSetController

__all__ = ["ReplicaSetController"]
