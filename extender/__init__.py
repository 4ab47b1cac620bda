"""The scheduler extender: answers kube-scheduler's calls from watched API objects.

The decisions themselves are pure functions in ``policies``.
"""
