"""Errors that a kube-apiserver reported for expressions: ours must be the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.fakeapi.apiserver.endpoints.test_transcripts import ask
from tests.fakeapi.apiserver.transcripts.cel_expressions import KINDS, errors_of

ERRORS = Path(__file__).parents[4] / "transcripts" / "cel"


@pytest.mark.parametrize("kind", KINDS)
def test_an_expression_has_the_errors_of_a_real_server(api: Api, kind: str) -> None:
    recorded = json.loads((ERRORS / f"{kind}.json").read_text())
    found = [[expression, errors_of(ask(api, step)[1])] for expression, step in KINDS[kind]()]
    assert found == recorded
