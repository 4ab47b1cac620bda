"""Simulated kubelets: they keep nodes alive and make pods live, by scripts.

    outfits                          what kubelets are given, and what the server asks them
    scripts  parsing                 what is to happen to pods and nodes, and how people write it
    curves  usage                    amounts over time, and what of them a script does not say
    containers  lives  phases        what becomes of one pod, and what its status says
    statuses  stories  adopting      that status and its Events as JSON; a status that was there
    rooms  admission  preemption     which pods a node takes
    hosts  nodestatuses  addresses   one node
    pressure                         what the eviction rules are told of it, and what they answer
    summaries  answers               what the node says of itself, through the API server's proxy
    fleet                            all nodes and pods as they are seen, and the work about them
    podsyncs  nodesyncs  pressuresyncs  leases  pulses  kubelets
                                     that work, done: a cost per event, none per tick

All but the last lines is pure: times are handed in, as nanoseconds since the epoch.
"""
