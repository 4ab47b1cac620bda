"""The WorkloadSpread controller, as OpenKruise's behaves, over any API server.

shapes       objects as it keeps them
served       which kinds the server has, and under which resources
copies       what stands behind a WorkloadSpread: its workload, pods, nodes
handlers     what an event means: which WorkloadSpreads are to be looked at
writing      pods adopted, given their costs and deleted; the status written
controller   one look, in upstream's order

What is decided is :mod:`policies.spreading`'s matter; here it is carried out.

Source: openkruise/kruise pkg/controller/workloadspread.
"""

from __future__ import annotations

from fakeapi.controllers.workloadspread.controller import WorkloadSpreadController

__all__ = ["WorkloadSpreadController"]
