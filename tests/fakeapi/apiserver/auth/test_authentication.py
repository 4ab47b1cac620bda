"""Authentication: certificates and tokens, known and unknown."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.auth.authentication import (
    ANONYMOUS_USER,
    AllowAnonymous,
    ClientCertificate,
    CredentialAuthenticator,
    certificate_of,
)
from fakeapi.apiserver.auth.service_account_tokens import IssuedTokens, TokenRecord
from fakeapi.apiserver.endpoints import StatusError
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.wire.http_messages import ADMIN_USER, User

JANE = User("jane", "7", ("dev",))
JANE_IN = User("jane", "7", ("dev", "system:authenticated"))
ROBOT = User("system:serviceaccount:default:robot")


def issued(token: str) -> User | None:
    return ROBOT if token == "robots" else None


CREDENTIALS = CredentialAuthenticator({"secret": JANE}, issued)


@pytest.mark.parametrize(
    ("header", "user"),
    [("Bearer secret", JANE_IN), ("bearer   secret ", JANE_IN), ("Bearer robots", ROBOT)],
)
def test_a_known_token_authenticates_its_user(header: str, user: User) -> None:
    assert CREDENTIALS.user(header, None) == user


@pytest.mark.parametrize("header", ["", "Bearer nope", "Bearer", "Basic secret", "secret"])
def test_unknown_credentials_are_refused(header: str) -> None:
    with pytest.raises(StatusError) as refused:
        CREDENTIALS.user(header, None)
    assert refused.value.document() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_anonymous_requests_may_be_allowed_but_unknown_tokens_are_not() -> None:
    credentials = CredentialAuthenticator({}, issued, ANONYMOUS_USER)
    assert credentials.user("", None) == ANONYMOUS_USER
    with pytest.raises(StatusError):
        credentials.user("Bearer nope", None)


def test_a_certificate_has_precedence_over_a_token() -> None:
    certificate = ClientCertificate("joe", ("ops", "dev"), "ab12")
    assert CREDENTIALS.user("Bearer secret", certificate) == User(
        "joe",
        "",
        ("ops", "dev", "system:authenticated"),
        {"authentication.kubernetes.io/credential-id": ("X509SHA256=ab12",)},
    )


def test_a_certificate_without_a_name_is_ignored() -> None:
    assert CREDENTIALS.user("Bearer secret", ClientCertificate("", ("ops",))) == JANE_IN


def test_a_subject_is_read_as_the_ssl_module_gives_it() -> None:
    subject = ((("organizationName", "a"),), (("organizationName", "b"), ("commonName", "joe")))
    assert certificate_of(subject, "ff") == ClientCertificate("joe", ("a", "b"), "ff")


@pytest.mark.parametrize(("header", "user"), [("", ADMIN_USER), ("Bearer x", ADMIN_USER)])
def test_without_authentication_every_client_is_administrator(header: str, user: User) -> None:
    assert AllowAnonymous(issued).user(header, None) == user
    assert AllowAnonymous(issued).user("Bearer robots", None) == ROBOT


def test_an_issued_token_is_valid_until_it_expires() -> None:
    now = ["2026-01-01T00:00:00Z"]
    tokens = IssuedTokens(lambda _: now[0], Store())
    tokens.add("t", TokenRecord(ROBOT, "2026-01-01T01:00:00Z"))
    assert tokens.user_of("t") == ROBOT
    assert tokens.user_of("u") is None
    now[0] = "2026-01-01T01:00:00Z"
    assert tokens.user_of("t") is None
