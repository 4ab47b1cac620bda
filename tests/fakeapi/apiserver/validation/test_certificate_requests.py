"""CertificateSigningRequests: who requests, and what cannot change."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.wire.http_messages import User
from tests.builders.certificate_requests import pkcs10
from tests.fakeapi.api_requests import send

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
JANE = User("jane", "1", ("dev", "system:authenticated"), {"scopes": ("a", "b")})
IDENTITY = ("username", "uid", "groups", "extra")


def requested(api: Api, user: User, **spec: Any) -> Any:
    """Create a request, and return its spec."""
    content = {"signerName": "a.b/c", "usages": ["client auth"], "request": pkcs10(), **spec}
    body = {"metadata": {"name": "of:jane"}, "spec": content}
    answer = send(api, "POST", REQUESTS, body, user=user)
    assert answer.status == 201, answer.body
    return orjson.loads(answer.body)["spec"]


@pytest.mark.parametrize(
    "claimed",
    [{}, {"username": "root", "uid": "0", "groups": ["system:masters"], "extra": {"k": ["v"]}}],
    ids=["none", "another"],
)
def test_the_identity_is_that_of_the_caller(api: Api, claimed: dict[str, Any]) -> None:
    spec = requested(api, JANE, **claimed)
    assert [spec[name] for name in IDENTITY] == [
        "jane",
        "1",
        ["dev", "system:authenticated"],
        {"scopes": ["a", "b"]},
    ]


def test_an_identity_without_uid_and_groups_replaces_claimed_ones(api: Api) -> None:
    spec = requested(api, User("joe"), uid="0", groups=["system:masters"])
    assert {name: spec.get(name) for name in IDENTITY} == {
        "username": "joe",
        "uid": None,
        "groups": None,
        "extra": None,
    }


@pytest.mark.parametrize("subresource", ["", "/status", "/approval"])
def test_an_update_keeps_the_spec(api: Api, subresource: str) -> None:
    before = requested(api, JANE)
    changes = {"spec": {"usages": ["server auth"], "username": "root"}}
    answer = send(api, "PATCH", f"{REQUESTS}/of:jane{subresource}", changes)
    assert (answer.status, orjson.loads(answer.body)["spec"]) == (200, before)


@pytest.mark.parametrize(
    ("certificate", "detail"),
    [
        (b"x", "must contain at least one CERTIFICATE PEM block"),
        (
            b"-----BEGIN KEY-----\n-----END KEY-----\n",
            'only CERTIFICATE PEM blocks are allowed, found "KEY"',
        ),
    ],
    ids=["no block", "a key"],
)
def test_a_certificate_is_pem(api: Api, certificate: bytes, detail: str) -> None:
    requested(api, JANE)
    status = {"status": {"certificate": b64encode(certificate).decode()}}
    answer = send(api, "PATCH", f"{REQUESTS}/of:jane/status", status)
    [cause] = orjson.loads(answer.body)["details"]["causes"]
    assert (answer.status, cause["field"]) == (422, "status.certificate")
    assert cause["message"] == f'Invalid value: "<certificate data>": {detail}'
