"""``make demo``: the whole loop in one process, watched while it happens and summed up.

    deliberations    what the extender decided, and why each pod was spared
    sights           the cluster at one moment, as the API server and the scheduler's trace show it
    chapters         what each part of the story still lacks
    news, summary    what has happened between two sights; what is left to say of the last one
    tables           both for people
    screens          where they are shown: refreshed on a terminal, plain lines elsewhere
    staging          a cluster, and the extender that its scheduler asks over HTTP
    directing        what is done from outside, and when: workloads, the burst, the leak
    questions        another demo: questions of a real kube-scheduler, explained one by one

Up to ``tables`` all of it is pure. The story itself is data: :mod:`fakeapi.scenarios.loop`.
"""
