"""Pods under any interleaving: deletes, finalizers, equal names, restarts, silence, foreign writes.

At any time:

- a terminated pod never runs again, and restart counts never decrease;
- no two running pods have the same address;
- no pod gets the status of another one.

When all kubelets are idle and no node is silent, deleted pods without finalizers are gone, and all
others are in the phase that their script leads to.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NODES, PODS
from tests.builders import Document
from tests.fakeapi.controlplane.kubelet.stages import SCRIPT, KubeletStage, node, pod
from tests.fakeapi.controlplane.state_machine import WorldMachine
from tests.properties.sampling import examples

NAMES: Final = ("p", "q")
HOLD: Final = "example.com/hold"
SCRIPTS: Final = {
    "{}": "Running",
    "{stop: 20s}": "Running",
    "{start: 15s}": "Running",
    "{stages: [{after: 3s, exit: 1}]}": "looping",
    "{stages: [{after: 3s, exit: 0}]}": "ending",
    "{stages: [{after: 3s, ready: false}]}": "Running",
    "{runs: [[{after: 3s, exit: 1}], []], failedPulls: 1}": "Running",
}
OVER: Final = ("Succeeded", "Failed")


class PodMachine(WorldMachine):
    """A few names for pods on two nodes."""

    run = "kubelet"

    def __init__(self) -> None:
        super().__init__()
        self.kubelets = KubeletStage(self.cluster)
        self.stage.load(node("n", cpu="2"), node("m", cpu="2"))
        self.wait_idle(1)

    @rule(
        name=st.sampled_from(NAMES),
        where=st.sampled_from(["n", "n", "m"]),
        script=st.sampled_from(sorted(SCRIPTS)),
        policy=st.sampled_from(["Always", "OnFailure", "Never"]),
        held=st.booleans(),
    )
    def a_pod_is_created(self, name: str, where: str, script: str, policy: str, held: bool) -> None:  # noqa: FBT001
        finalizers = [HOLD] if held else None
        made = pod(name, where, script=script, restartPolicy=policy, finalizers=finalizers)
        self._try(self.kubelets.run(made))

    @rule(name=st.sampled_from(NAMES), grace=st.sampled_from([None, None, 0, 5]))
    def a_pod_is_deleted(self, name: str, grace: int | None) -> None:
        path = PODS.object(name, "default")
        self._try(self.stage.client.delete(path, grace_period_seconds=grace))

    @rule(name=st.sampled_from(NAMES))
    def finalizers_are_removed(self, name: str) -> None:
        self._try(self.stage.patch(PODS, name, {"metadata": {"finalizers": None}}))

    @rule(name=st.sampled_from(NAMES))
    def a_client_writes_that_a_pod_is_unready(self, name: str) -> None:
        unready = {"type": "Ready", "status": "False"}
        self._try(self.kubelets.report(name, {"conditions": [unready]}))

    @rule(name=st.sampled_from(NAMES))
    def a_client_writes_that_a_pod_has_failed(self, name: str) -> None:
        self._try(self.kubelets.report(name, {"phase": "Failed"}))

    @rule(name=st.sampled_from(["n", "m"]), silent=st.booleans())
    def a_node_is_silenced_or_resumed(self, name: str, silent: bool) -> None:  # noqa: FBT001
        script = "{stages: [{silent: true}]}" if silent else None
        change = {"metadata": {"annotations": {SCRIPT: script}}}
        self._try(self.stage.patch(NODES, name, change))

    @rule(name=st.sampled_from(["n", "m"]))
    def a_node_is_recreated(self, name: str) -> None:
        self._try(self.stage.delete(NODES, name))
        self.stage.load(node(name, cpu="2"))

    @rule()
    def the_kubelets_restart(self) -> None:
        component = self.cluster.control_plane["kubelet"]
        self.do(component.stop())

        async def start() -> None:
            component.start()

        self.do(start())

    @invariant()
    def terminated_pods_stay_so(self) -> None:
        for before, after in self._changes():
            phases = before["status"]["phase"], after["status"]["phase"]
            assert phases[0] not in OVER or phases[0] == phases[1], phases
            assert _restarts(before) <= _restarts(after)

    @invariant()
    def addresses_are_unique(self) -> None:
        running = [
            each["status"] for each in self.listed("pods") if each["status"]["phase"] == "Running"
        ]
        addresses = [status["podIP"] for status in running if "podIP" in status]
        assert len(set(addresses)) == len(addresses)

    def check(self) -> None:
        for name in ("n", "m"):
            self.a_node_is_silenced_or_resumed(name, silent=False)
        self.wait_idle(120)
        for each in self.listed("pods"):
            deleting = "deletionTimestamp" in each["metadata"]
            assert not deleting or each["metadata"].get("finalizers"), each
            assert not deleting or each["status"]["phase"] in OVER, each
            if not deleting:
                _check_at_rest(each, self._failed_by_a_client(each))

    def _failed_by_a_client(self, pod: Document) -> bool:
        """Return whether another client has ended a pod."""
        managers = {
            entry["manager"]
            for change in self.cluster.history("pods", "default", pod["metadata"]["name"])
            if change.object["metadata"]["uid"] == pod["metadata"]["uid"]
            and change.object["status"]["phase"] == "Failed"
            for entry in change.object["metadata"]["managedFields"]
            if "f:phase" in entry["fieldsV1"].get("f:status", {})
        }
        return bool(managers - {"kubelet"})

    def _changes(self) -> list[tuple[Document, Document]]:
        """Return the states of each pod, two that follow each other at a time."""
        found, last = [], dict[str, Document]()
        for change in self.cluster.history("pods"):
            uid = change.object["metadata"]["uid"]
            if uid in last:
                found.append((last[uid], change.object))
            last[uid] = change.object
        return found

    def _try(self, act: Any) -> None:
        """Do something that may be rejected: the pod may be gone, or exist already."""
        try:
            self.do(act)
        except ApiError as error:
            if error.status not in (404, 409):
                raise


def _check_at_rest(pod: Document, failed_by_a_client: bool) -> None:  # noqa: FBT001
    """Check a pod that is not being deleted against its script, long after its creation."""
    outcome = SCRIPTS[pod["metadata"]["annotations"][SCRIPT]]
    policy, phase = pod["spec"]["restartPolicy"], pod["status"]["phase"]
    expected = {
        "Running": ("Running",),
        "looping": ("Running",) if policy != "Never" else ("Failed",),
        "ending": ("Running",) if policy == "Always" else ("Succeeded",),
    }[outcome]
    if "runs" in pod["metadata"]["annotations"][SCRIPT] and policy == "Never":
        expected = ("Failed",)
    assert phase in expected or failed_by_a_client, (outcome, policy, phase)


def _restarts(pod: Document) -> int:
    return sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ()))


TestPodMachine = PodMachine.TestCase
TestPodMachine.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
