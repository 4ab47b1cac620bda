"""The client configurations of webhooks: what is refused, by field and reason."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.fakeapi.admission_webhooks import CONFIGURATIONS, configuration, webhook
from tests.fakeapi.api_requests import Ask

NAME = "a.example.com"
REQUIRED, INVALID = "FieldValueRequired", "FieldValueInvalid"


def service(**fields: Any) -> dict[str, Any]:
    return {"clientConfig": {"service": {"namespace": "n", "name": "s", **fields}}}


INVALID_WEBHOOKS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "neither URL nor service": (
        {"clientConfig": {}},
        "clientConfig",
        REQUIRED,
        "Required value: exactly one of url or service is required",
    ),
    "both URL and service": (
        {"clientConfig": {"url": "https://a", **service()["clientConfig"]}},
        "clientConfig",
        REQUIRED,
        "exactly one of url or service is required",
    ),
    "plain http": (
        {"clientConfig": {"url": "http://a/b"}},
        "clientConfig.url",
        INVALID,
        (
            "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: "
            "https://host[/path]"
        ),
    ),
    "no host": (
        {"clientConfig": {"url": "https:///b"}},
        "clientConfig.url",
        INVALID,
        "host must be specified",
    ),
    "a user in the URL": (
        {"clientConfig": {"url": "https://me@a/b"}},
        "clientConfig.url",
        INVALID,
        'Invalid value: "me": user information is not permitted in the URL',
    ),
    "a fragment": (
        {"clientConfig": {"url": "https://a/b#c"}},
        "clientConfig.url",
        INVALID,
        "fragments are not permitted in the URL",
    ),
    "a query": (
        {"clientConfig": {"url": "https://a/b?c=d"}},
        "clientConfig.url",
        INVALID,
        "query parameters are not permitted in the URL",
    ),
    "no URL at all": (
        {"clientConfig": {"url": "https://[a"}},
        "clientConfig.url",
        REQUIRED,
        "url must be a valid URL",
    ),
    "a service without a name": (
        service(name=""),
        "clientConfig.service.name",
        REQUIRED,
        "Required value: service name is required",
    ),
    "a port that is none": (
        service(port=0),
        "clientConfig.service.port",
        INVALID,
        "port is not valid: must be between 1 and 65535, inclusive",
    ),
    "a path without its slash": (
        service(path="ab"),
        "clientConfig.service.path",
        INVALID,
        "must start with a '/'",
    ),
    "a path with an empty step": (
        service(path="/a//b"),
        "clientConfig.service.path",
        INVALID,
        "segment[1] may not be empty",
    ),
    "a bundle that is no PEM": (
        {"clientConfig": {"url": "https://a", "caBundle": b64encode(b"no").decode()}},
        "clientConfig.caBundle",
        INVALID,
        "unable to load root certificates: unable to parse bytes as PEM block",
    ),
}


@pytest.mark.parametrize(
    ("fields", "field", "reason", "message"), INVALID_WEBHOOKS.values(), ids=INVALID_WEBHOOKS
)
def test_an_invalid_client_configuration_is_refused_by_field_and_reason(
    ask: Ask, fields: dict[str, Any], field: str, reason: str, message: str
) -> None:
    body = configuration("validating", {**webhook(NAME), **fields})
    status, refusal = ask("POST", CONFIGURATIONS["validating"], body)
    assert (status, refusal["reason"]) == (422, "Invalid")
    [cause] = refusal["details"]["causes"]
    assert (cause["field"], cause["reason"]) == (f"webhooks[0].{field}", reason)
    assert message in cause["message"]
