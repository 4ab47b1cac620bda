"""A cost and a guard of a company that rents GPUs, and pays for licenses by the hour."""

from __future__ import annotations

from policies.plugins import Pod, victim_cost, victim_guard

EUROS_PER_GPU = {"team-a": 3, "team-b": 1}
OTHERS = 2
LICENSES = "example.com/licenses"


@victim_cost(unit="euros per hour")
def least_revenue(pod: Pod) -> int:
    """Return what a tenant pays for the GPUs of a pod; candidates with the least are preferred."""
    gpus = pod.requests.scalars.get("nvidia.com/gpu", 0)
    return gpus * EUROS_PER_GPU.get(pod.namespace, OTHERS)


@victim_guard(annotations=(LICENSES,))
def licensed(pod: Pod) -> bool:
    """Return whether a pod has a license of the simulator, which it could not get again."""
    licenses = pod.annotations.get(LICENSES, "").split(",")
    return "simulator" in map(str.strip, licenses)
