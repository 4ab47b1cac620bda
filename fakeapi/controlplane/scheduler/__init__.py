"""A simulated kube-scheduler that follows the extender protocol exactly.

Pods are scheduled in the order of their priority, one after another:

    scheduling_queue      pods that wait, for how long, and for which events
    cache                 the cluster from the watches, with assumed and nominated pods
    feasible_nodes        in-tree filters (those of the extender's own engine), then extenders'
    schedule_one          the scheduling cycle, scores (its own and extenders'), and binding
    preemption            eligibility, dry run, extenders' preempt verbs, selection, eviction
    pod_group_cycle       the same for a pod group: all members or none

``extender_v1`` encodes requests to extenders and decodes their responses, ``extender_results``
checks the responses as kube-scheduler does, and ``extender_trace`` keeps each call with its
outcome. Authors of extenders can so observe what a real kube-scheduler would do with a response, in
milliseconds.

Limits: volumes and devices are not provisioned or allocated (pods that need them are placed as if
they had them); scores follow two simple rules instead of kube-scheduler's plugins; pod groups have
no topology constraints and no CompositePodGroups; and any change of a node counts as one that may
help.

Sources: pkg/scheduler/{schedule_one,schedule_one_podgroup,extender,scheduler}.go,
backend/queue/scheduling_queue.go, framework/preemption and plugins/defaultpreemption, v1.30.12 to
v1.37.0.
"""
