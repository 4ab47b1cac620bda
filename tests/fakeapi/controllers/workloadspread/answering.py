"""How pods get their subset in these tests: webhooks of a few lines around the pure answers.

They are functions that fakeapi asks in the place of webhooks. Each reads the world through a
client, writes the status that an answer comes with, and begins again if somebody else has written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import jsonpatch
import orjson

from extender.explain_spread import Operation, ask
from extender.kube.api_error import ApiError
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.manifests import Manifest
from extender.kube.resources import PODS, REPLICA_SETS
from extender.kube.workloadspread.spreads import encode_status
from extender.spreadanswers import Answer, answer_creation
from extender.spreadfiles import SpreadFiles
from policies.spreading.admitting import (
    LET_THROUGH,
    WRITE_ATTEMPTS,
    Admission,
    Asking,
    admit_removal,
)
from policies.spreading.reconciling import SpreadRules
from tests.fakeapi.controllers.workloadspread.objects import DEPLOYMENTS, SPREADS, Document
from tests.fakeapi.controlplane.stage import decode
from tests.fakeapi.reviewing import (
    Review,
    answered,
    configuration,
    patching,
    rule,
    webhook,
)

MUTATING: Final = "mutate.pods.test"
VALIDATING: Final = "validate.pods.test"

_KINDS: Final = {
    SPREADS: "WorkloadSpread",
    REPLICA_SETS: "ReplicaSet",
    DEPLOYMENTS: "Deployment",
}


def configurations() -> Iterable[Document]:
    """Give what has the API server ask: about new pods, and about those that are to go."""
    on = {"timeoutSeconds": 30, "failurePolicy": "Fail"}
    coming = [rule("pods", operations=["CREATE"])]
    going = [rule("pods", operations=["DELETE"]), rule("pods/eviction", operations=["CREATE"])]
    yield configuration("mutating", webhook(MUTATING, **on, rules=coming))
    yield configuration("validating", webhook(VALIDATING, **on, rules=going))


class Answers:
    """Answers reviews of pods; whose client it has is said later."""

    client: Client

    def __init__(self, clock: Clock, rules: SpreadRules) -> None:
        self._clock = clock
        self._rules = rules
        self._ids = 0
        self._one_at_a_time = asyncio.Lock()

    async def create(self, review: Review) -> Review:
        """Put a new pod into its subset."""
        request = review["request"]
        question = ask(request["object"], request["namespace"], Operation.CREATE)

        def answer(files: SpreadFiles, asking: Asking) -> Answer:
            spreads = files.spreads_of(request["namespace"])
            given = question.pod, question.document, spreads, asking
            return answer_creation(*given, self._new_id, None)

        found = await self._written(
            request["namespace"],
            lambda files: answer(files, self._asking(files, files.owners(question.pod))),
        )
        if found.admission.refusal:
            return refused(review, found.admission.refusal)
        changes = jsonpatch.make_patch(request["object"], found.pod).patch
        return answered(review, **(patching(*changes) if changes else {}))

    async def remove(self, review: Review) -> Review:
        """Let a pod go, and note that it does."""
        request = review["request"]
        document = request["oldObject"] or await self._pod(request)
        if document is None:
            return answered(review)
        question = ask(document, request["namespace"], Operation.DELETE)

        def answer(files: SpreadFiles) -> Answer:
            spreads = [each.spread for each in files.spreads_of(request["namespace"])]
            asking = self._asking(files, files.owners(question.pod))
            return Answer(admit_removal(question.pod, spreads, asking), document)

        found = await self._written(request["namespace"], answer)
        refusal = found.admission.refusal
        return refused(review, refusal) if refusal else answered(review)

    async def _pod(self, request: Mapping[str, Any]) -> Document | None:
        try:
            path = PODS.object(request["name"], request["namespace"])
            return await self.client.get(path, decode)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _asking(self, files: SpreadFiles, owners: Any) -> Asking:
        return Asking(owners, files.workload_of, self._clock.now_ns(), self._rules)

    def _new_id(self) -> str:
        self._ids += 1
        return f"pod-to-come-{self._ids}"

    async def _written(self, namespace: str, answer: Callable[[SpreadFiles], Answer]) -> Answer:
        """Give an answer once the status that it came with has been written."""
        found = Answer(LET_THROUGH, {})
        async with self._one_at_a_time:
            for attempt in range(WRITE_ATTEMPTS):
                await self._clock.sleep(0.01 * 5**attempt if attempt else 0)
                files = await self._files(namespace)
                found = answer(files)
                if found.admission.status is None or await self._wrote(files, namespace, found):
                    return found
        return replace(found, admission=Admission(refusal="the status could not be written"))

    async def _wrote(self, files: SpreadFiles, namespace: str, answer: Answer) -> bool:
        admission = answer.admission
        assert admission.spread is not None
        assert admission.status is not None
        written = files.spread(f"{namespace}/{admission.spread}")
        body = {**written.document, "status": encode_status(admission.status)}
        path = SPREADS.object(admission.spread, namespace).subresource("status")
        try:
            await self.client.update(path, orjson.dumps(body), decode)
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    async def _files(self, namespace: str) -> SpreadFiles:
        manifests = []
        for resource, kind in _KINDS.items():
            for each in (await self.client.list(resource, decode)).items:
                if each["metadata"]["namespace"] == namespace:
                    whole = {"kind": kind, "apiVersion": _version(resource), **each}
                    manifests.append(Manifest(kind, orjson.dumps(whole), "the API"))
        return SpreadFiles(manifests, "the API")


def refused(review: Review, message: str) -> Review:
    return answered(review, allowed=False, status={"code": 500, "message": message})


def _version(resource: Any) -> str:
    return f"{resource.group}/{resource.version}"
