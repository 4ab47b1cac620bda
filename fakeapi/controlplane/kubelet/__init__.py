"""Simulated kubelets: they keep nodes alive and make pods live, by scripts.

    scripts  parsing                 what is to happen to pods and nodes, and how people write it
    curves  usage                    amounts over time, and what of them a script does not say
    containers  lives  phases        what becomes of one pod, and what its status says
    statuses                         that status as JSON
    rooms  admission  preemption     which pods a node takes
    hosts  nodestatuses  addresses   one node
    summaries  answers               what the node says of itself, through the API server's proxy
    leases  fleet  kubelets          all of them in one process: a cost per event, none per tick

Everything but the last line is pure: times are handed in, as nanoseconds since the epoch.
"""
