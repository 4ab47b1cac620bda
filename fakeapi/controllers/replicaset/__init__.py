"""The ReplicaSet controller, as kube-controller-manager's behaves.

shapes       ReplicaSets and pods as it keeps them
copies       which pods and ReplicaSets belong together
handlers     what an event means: who is to be looked at, and what has been observed
judging      whether a pod is claimed, adopted, released or left alone
claiming     the same, carried out
podcontrol   pods made, deleted and patched, and told of
slowstart    ever larger batches, until one fails
scaling      more pods, or fewer
status       counts, conditions, and when a pod will count as available
statuswriter the status written, with one retry
metrics      what Prometheus may ask
controller   one sync, in upstream's order

Source: kubernetes/pkg/controller/replicaset, pkg/controller/controller_utils.go,
controller_ref_manager.go.
"""

from __future__ import annotations

from fakeapi.controllers.replicaset.controller import ReplicaSetController

__all__ = ["ReplicaSetController"]
