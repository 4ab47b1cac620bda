"""Hollow kubelets: simulated kubelets that run nodes and pods by simulation scripts.

    scripts  script_parser           options, scripts as values, and their YAML
    usage_curves                     resource usage over time
    container_lifecycle  pod_lifecycle  pod_phase
                                     the state of one pod, its phase and its conditions
    pod_status                       that state as a status patch and as Events
    pod_admission                    which pods a node admits, and critical pod preemption
    hollow_node  ip_allocator        one node
    eviction_manager                 rounds of node-pressure eviction, and the pods that they evict
    summary_stats  http_api          the kubelet's endpoints, through the API server's proxy
    hollow_nodes                     all nodes and pods as observed, and their work items
    pod_worker  node_status  heartbeat  hollow_kubelet
                                     those work items, processed: a cost per event, none per tick

Except for the last lines and the workers, the modules are pure: times are arguments, in
nanoseconds since the epoch.
"""
