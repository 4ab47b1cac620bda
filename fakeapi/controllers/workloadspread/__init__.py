"""The WorkloadSpread controller, with the behaviour of OpenKruise's, over any API server.

types           objects as the controller caches them
served_kinds    the kinds that the server has, and their resources
caches          workloads, pods and nodes of WorkloadSpreads
event_handlers  which WorkloadSpreads an event enqueues, and how soon
writer          adopts pods, writes deletion costs and the status, and deletes pods
sync            one sync, in upstream's order

The decisions are made by :mod:`policies.workloadspread`; this package carries them out.

Source: openkruise/kruise pkg/controller/workloadspread.
"""

from __future__ import annotations

from fakeapi.controllers.workloadspread.controller import WorkloadSpreadController

__all__ = ["WorkloadSpreadController"]
