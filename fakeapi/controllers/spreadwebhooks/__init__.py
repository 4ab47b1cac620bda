"""The webhooks of WorkloadSpreads, as OpenKruise's behave.

names         what they are called, where they are asked, and about what
reviews       reviews and answers as JSON
patches       what was changed, as a JSON patch
converting    one version of a WorkloadSpread in another
trying        the cluster that new pods are tried on
statuses      a status written before a pod is let through, again if somebody else wrote
together      pods that wait for the same status, decided in turn, written down at once
known         what they know of the cluster
pods          pods that come and go
spreads       WorkloadSpreads that are made or changed
handlers      all of them by path, whatever the transport
registration  configurations in the API server, and the definition's conversion
figures       what Prometheus may ask
part          all of it together

Sources: openkruise/kruise pkg/webhook/{pod,workloadspread,util}, pkg/util/workloadspread.
"""

from __future__ import annotations

from fakeapi.controllers.spreadwebhooks.part import SpreadWebhooks

__all__ = ["SpreadWebhooks"]
