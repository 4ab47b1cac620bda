"""Record the responses of a real kube-apiserver to the steps of :mod:`scenes`."""

from __future__ import annotations

import json
import ssl
import sys
import time
from collections.abc import Mapping
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.fakeapi.apiserver.transcripts.normalization import normal
from tests.fakeapi.apiserver.transcripts.scenes import SCENES
from tests.fakeapi.apiserver.transcripts.steps import NAMESPACE, Step, delete, get, post, put

ANSWERS = Path(__file__).parents[3] / "transcripts" / "api"


_CORE = (
    "pods",
    "configmaps",
    "serviceaccounts",
    "replicationcontrollers",
    "services",
    "persistentvolumeclaims",
    "limitranges",
    "resourcequotas",
)
_CACHED = ("limitranges", "priorityclasses", "resourcequotas", "storageclasses")
_COMPILED = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")


class RealServer:
    """A kube-apiserver that is asked with a token; its certificate is not checked."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE

    def ask(self, step: Step) -> tuple[int, Any]:
        body = None if step.body is None else json.dumps(step.body).encode()
        headers = {"Content-Type": step.content_type, **dict(step.headers)}
        status, _, answer = self.send(step.method, step.path, step.query, body, headers)
        return status, json.loads(answer)

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, Message, bytes]:
        """Return the status, the headers and the body of an answer."""
        url = f"{self._url}{path}?{urlencode(query)}" if query else f"{self._url}{path}"
        allowed = {"Authorization": f"Bearer {self._token}", **headers}
        request = Request(url, body, allowed, method=method)  # noqa: S310
        try:
            with urlopen(request, context=self._context) as response:  # noqa: S310
                return response.status, response.headers, response.read()
        except HTTPError as refusal:
            return refusal.code, refusal.headers, refusal.read()


def record(server: RealServer, scene: str) -> None:
    """Play one scene on a fresh namespace and write the answers."""
    clear(server)
    server.ask(post("/api/v1/namespaces", {"metadata": {"name": "scene"}}))
    answers = []
    for step in SCENES[scene]():
        status, answer = server.ask(step)
        answers.append({"request": str(step), "status": status, "answer": normal(answer)})
        if any(plural in step.path for plural in _CACHED):
            time.sleep(0.2)  # admission reads them from a cache
        if any(plural in step.path for plural in _COMPILED) and not step.query:
            time.sleep(1.2)  # admission compiles them each second
    text = json.dumps(answers, indent=1, ensure_ascii=False)
    (ANSWERS / f"{scene}.json").write_text(text + "\n")
    clear(server)


def clear(server: RealServer) -> None:
    """Remove the namespace with all that is in it, without the controllers that usually do it."""
    kinds = (
        ("/api/v1", _CORE),
        ("/apis/apps/v1", ("deployments",)),
        ("/apis/policy/v1", ("poddisruptionbudgets",)),
    )
    for root, plurals in kinds:
        for plural in plurals:
            path = f"{root}/namespaces/scene/{plural}"
            server.ask(delete(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}))
            for item in server.ask(get(path))[1].get("items", []):
                clear = [{"op": "remove", "path": "/metadata/finalizers"}]
                name = item["metadata"]["name"]
                server.ask(Step("PATCH", f"{path}/{name}", clear, "application/json-patch+json"))
    server.ask(delete(NAMESPACE))
    server.ask(put(f"{NAMESPACE}/finalize", {"metadata": {"name": "scene"}, "spec": {}}))


def main() -> None:
    """Record all scenes, or those named after URL and token."""
    url, token, *scenes = sys.argv[1:]
    for scene in scenes or SCENES:
        record(RealServer(url, token), scene)


if __name__ == "__main__":
    main()
