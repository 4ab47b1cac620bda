"""WorkloadSpread: a workload's pods spread over subsets of nodes, as in OpenKruise.

A WorkloadSpread distributes the pods of one workload: a number of pods per subset, the rest in the
last one. Running pods are not moved. A new pod is put into the first subset that lacks pods;
deletion costs determine which pods are deleted first when the workload scales down; in adaptive
mode, pods that cannot be scheduled in their subset are deleted, so that they are recreated in
another one.

Two callers use this package, and share only the WorkloadSpread's status:

- a controller, which calls :func:`~policies.workloadspread.reconcile.reconcile`;
- webhooks for pods, which call :func:`~policies.workloadspread.pod_admission.admit_creation` and
  :func:`~policies.workloadspread.pod_admission.admit_removal`, and one for WorkloadSpreads, which
  calls :func:`~policies.workloadspread.validation.validate`.
"""
