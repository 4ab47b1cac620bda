"""Apply configurations: bodies of one object in YAML or JSON.

Source: k8s.io/apiserver/pkg/endpoints/handlers/patch.go (applyPatcher).
"""

from __future__ import annotations

from typing import Any

import orjson

from fakeapi.api.bodies import read_json
from fakeapi.api.errors import StatusError, bad_request
from fakeapi.api.yaml_bodies import read_yaml
from fakeapi.store import Document


def read_configuration(body: bytes) -> Document:
    """Decode the applied object; raise StatusError (400)."""
    value = _decode(body)
    if not isinstance(value, dict):
        raise bad_request(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {_go_type(value)} into Go value of type map[string]interface {{}}"
        )
    return value


def _decode(body: bytes) -> Any:
    if body.lstrip()[:1] == b"{":
        try:
            return read_json(body)
        except StatusError:
            pass  # a YAML document may begin with a brace, too
    value = read_yaml(body)
    return orjson.loads(orjson.dumps(value))  # values that aliases repeat must not be shared


def _go_type(value: Any) -> str:
    if isinstance(value, list):
        return "array"
    if isinstance(value, bool):
        return "bool"
    return "string" if isinstance(value, str) else "number"
