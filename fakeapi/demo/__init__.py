"""``make demo``: preemption, rescheduling and eviction in one process, observed and summarized.

    decisions          the extender's decisions, and why each pod was reprieved
    observed_state     the cluster at one moment, from the API server and the scheduler's trace
    steps              the unmet conditions of each step
    event_feed         the changes between two observed states
    summary            the rows of the final tables
    output             the tables, and where they are shown: a live display or plain lines
    environment        a cluster, and the extender that its scheduler calls over HTTP
    driver             what is done to the cluster, and when: workloads, the burst, the leak
    captured_requests  another demo: requests of a real kube-scheduler, explained one by one

``decisions`` to ``summary`` are pure, and so are the tables. The scenario is data:
:mod:`fakeapi.demo.scenarios.preemption_story`.
"""
