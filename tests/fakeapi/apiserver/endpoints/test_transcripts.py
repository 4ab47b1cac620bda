"""Answers that a kube-apiserver gave, and ours to the same requests: they must be the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.auth.authentication import read_impersonation
from fakeapi.apiserver.endpoints import Api, Request, Response, StatusError
from tests.fakeapi.apiserver.transcripts.normalization import normal
from tests.fakeapi.apiserver.transcripts.scenes import SCENES
from tests.fakeapi.apiserver.transcripts.steps import Step, post

ANSWERS = Path(__file__).parents[3] / "transcripts" / "api"


def ask(api: Api, step: Step) -> tuple[int, Any]:
    try:
        impersonated = read_impersonation(step.headers)
    except StatusError as refusal:
        return refusal.code, refusal.document()
    body = b"" if step.body is None else orjson.dumps(step.body)
    content_type = step.content_type if body else ""
    request = Request(
        step.method, step.path, step.query, body, content_type, impersonated=impersonated
    )
    answer = api.handle(request)
    assert isinstance(answer, Response)
    return answer.status, orjson.loads(answer.body)


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_has_the_answers_of_a_real_server(api: Api, scene: str) -> None:
    ask(api, post("/api/v1/namespaces", {"metadata": {"name": "scene"}}))
    recorded = json.loads((ANSWERS / f"{scene}.json").read_text())
    steps = list(SCENES[scene]())
    assert [str(step) for step in steps] == [entry["request"] for entry in recorded]
    for step, entry in zip(steps, recorded, strict=True):
        status, answer = ask(api, step)
        assert (normal(answer), status) == (entry["answer"], entry["status"]), str(step)
