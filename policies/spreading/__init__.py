"""WorkloadSpread: a workload's pods spread over subsets of nodes, as OpenKruise does it.

A WorkloadSpread says of one workload: so many pods here, so many there, the rest elsewhere. Nothing
is moved. New pods are put into the first subset with room when they are created; which pods go
first when the workload shrinks is said by deletion costs; and in adaptive mode pods that cannot run
in their subset go, so that others are made elsewhere.

Two shells live on this package, and share nothing but the WorkloadSpread's status:

- a controller, which calls :func:`~policies.spreading.reconciling.reconcile`;
- webhooks for pods, which call :func:`~policies.spreading.admitting.admit_creation` and
  :func:`~policies.spreading.admitting.admit_removal`, and one for WorkloadSpreads themselves, which
  calls :func:`~policies.spreading.validation.validate`.
"""
