"""Objects that are written with a warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, Response
from tests.builders.definitions import DEFINITIONS, NAME, TEXT, WIDGETS, definition, widget
from tests.fakeapi.api_requests import MERGE

Tell = Callable[..., tuple[int, tuple[str, ...]]]


@pytest.fixture
def tell(api: Api) -> Tell:
    """Ask; gives the status and the warnings."""

    def tell(method: str, path: str, body: Any, kind: str = "") -> tuple[int, tuple[str, ...]]:
        answer = api.handle(Request(method, path, {}, orjson.dumps(body), kind))
        assert isinstance(answer, Response)
        return answer.status, answer.warnings

    return tell


def test_an_unknown_format_is_warned_of_once(tell: Tell) -> None:
    made = definition(spec={"size": {**TEXT, "format": "roman"}})
    assert tell("POST", DEFINITIONS, made) == (201, ('unrecognized format "roman"',))
    change = {"spec": {"names": {"shortNames": ["wd"]}}}
    assert tell("PATCH", f"{DEFINITIONS}/{NAME}", change, MERGE) == (200, ())


def test_a_set_of_objects_is_warned_of(tell: Tell) -> None:
    items = {"type": "object", "x-kubernetes-map-type": "atomic"}
    sizes = {"type": "array", "x-kubernetes-list-type": "set", "items": items}
    status, [warning] = tell("POST", DEFINITIONS, definition(spec={"sizes": sizes}))
    assert (status, warning) == (
        201,
        (
            'x-kubernetes-list-type: set for items of type "object" is not supported by '
            "server-side apply or CEL validation rules"
        ),
    )


def test_a_finalizer_without_a_domain_is_warned_of(tell: Tell) -> None:
    tell("POST", DEFINITIONS, definition())
    held = widget()
    held["metadata"]["finalizers"] = ["tidy", "foregroundDeletion"]
    status, warnings = tell("POST", WIDGETS, held)
    assert (status, len(warnings)) == (201, 1)
    assert warnings[0].startswith('metadata.finalizers: "tidy": prefer a domain-qualified')
    assert tell("PATCH", f"{WIDGETS}/one", {"spec": {"a": 1}}, MERGE) == (200, ())
