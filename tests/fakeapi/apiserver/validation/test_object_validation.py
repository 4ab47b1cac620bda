"""Objects that are written with a warning."""

from __future__ import annotations

from typing import Any

from fakeapi.apiserver.endpoints import Api
from tests.builders.definitions import DEFINITIONS, NAME, TEXT, WIDGETS, definition, widget
from tests.fakeapi.api_requests import send


def warned(api: Api, method: str, path: str, body: Any) -> tuple[int, tuple[str, ...]]:
    """Send a request; return the status and the warnings."""
    answer = send(api, method, path, body)
    return answer.status, answer.warnings


def test_an_unknown_format_has_one_warning(api: Api) -> None:
    made = definition(spec={"size": {**TEXT, "format": "roman"}})
    assert warned(api, "POST", DEFINITIONS, made) == (201, ('unrecognized format "roman"',))
    change = {"spec": {"names": {"shortNames": ["wd"]}}}
    assert warned(api, "PATCH", f"{DEFINITIONS}/{NAME}", change) == (200, ())


def test_a_set_of_objects_has_a_warning(api: Api) -> None:
    items = {"type": "object", "x-kubernetes-map-type": "atomic"}
    sizes = {"type": "array", "x-kubernetes-list-type": "set", "items": items}
    status, [warning] = warned(api, "POST", DEFINITIONS, definition(spec={"sizes": sizes}))
    assert (status, warning) == (
        201,
        (
            'x-kubernetes-list-type: set for items of type "object" is not supported by '
            "server-side apply or CEL validation rules"
        ),
    )


def test_a_finalizer_without_a_domain_has_a_warning(api: Api) -> None:
    warned(api, "POST", DEFINITIONS, definition())
    held = widget()
    held["metadata"]["finalizers"] = ["tidy", "foregroundDeletion"]
    status, warnings = warned(api, "POST", WIDGETS, held)
    assert (status, len(warnings)) == (201, 1)
    assert warnings[0].startswith('metadata.finalizers: "tidy": prefer a domain-qualified')
    assert warned(api, "PATCH", f"{WIDGETS}/one", {"spec": {"a": 1}}) == (200, ())
