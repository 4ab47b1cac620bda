"""A stand-in for kube-scheduler: it follows the extender protocol to the letter, and no more.

Pods come in the order of their priority, one after another:

    backlog, hints    who waits, for how long, and for what
    sightings         the cluster as the watches show it, and what was decided since
    searching         in-tree filters (those of the extender's own engine), then extenders' filters
    scoring           room and spread, and extenders' scores
    preempting        who may preempt, the dry run, extenders' preempt verbs, the choice
    evicting          victims are marked and deleted, nominations cleared
    binding           by an extender, or through the API

What extenders are sent is made in ``protocol``, what they answer is judged in ``judging``, as
kube-scheduler judges it, and each exchange is kept with its verdict in ``trace``. Whoever writes an
extender can so see what a real kube-scheduler would make of it, in milliseconds.

What it does not do: it finds no volumes and no devices (pods that need them are placed as if they
had them), scores by two simple rules instead of kube-scheduler's plugins, knows no pod groups, and
takes any change of a node for one that may help.

Sources: pkg/scheduler/{schedule_one,extender,scheduler}.go, backend/queue/scheduling_queue.go,
framework/preemption and plugins/defaultpreemption, v1.30.12 to v1.37.0.
"""
