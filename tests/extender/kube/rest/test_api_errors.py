"""Refusals of an API server as errors: reason, message and remedy."""

from __future__ import annotations

import pytest

from extender.kube.rest.api_errors import ApiError, error_from_body
from extender.kube.rest.transport import Request
from tests.extender.kube.conftest import a_status

REQUEST = Request("GET", "/api/v1/pods", (("limit", "500"),))


def refusal(status: int, body: bytes, **headers: str) -> ApiError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return error_from_body(REQUEST, status, named, body)


def test_a_status_is_decoded() -> None:
    error = refusal(409, a_status(409, "Conflict", cause="Stale", retry_after=7))
    assert (error.status, error.reason, error.message) == (409, "Conflict", "it is Conflict")
    assert error.causes == ("Stale",)
    assert error.retry_after == 7


def test_the_text_is_one_line_with_the_remedy() -> None:
    assert str(refusal(403, a_status(403, "Forbidden"))) == (
        "GET /api/v1/pods?limit=500: 403 Forbidden: it is Forbidden "
        "(the account has no permission; grant it with RBAC)"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty answer"),
        (b"<html>\n  Bad\tGateway</html>", "<html> Bad Gateway</html>"),
        (b'{"kind":"Pod"}', '{"kind":"Pod"}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"x" * 5000, "x" * 300),
    ],
)
def test_a_response_of_a_proxy_is_shortened(body: bytes, message: str) -> None:
    error = refusal(502, body)
    assert (error.status, error.reason, error.message) == (502, "Bad Gateway", message)
    assert error.remedy == "the server failed; try again"


def test_the_status_line_takes_precedence_over_the_body() -> None:
    assert refusal(404, a_status(410, "Expired")).status == 404


@pytest.mark.parametrize(
    ("header", "seconds"), [("12", 12.0), ("Fri, 20 Nov 2026 10:00:00 GMT", None), ("-1", None)]
)
def test_the_delay_is_read_from_the_header(header: str, seconds: float | None) -> None:
    assert refusal(503, b"", retry_after=header).retry_after == seconds


EXPIRED = [ApiError(410, "Expired", ""), ApiError(0, "Gone", "")]
AHEAD = [
    ApiError(504, "Timeout", "", causes=("ResourceVersionTooLarge",)),
    ApiError(504, "Timeout", "Too large resource version: 9, current: 3"),
]
OTHER = [ApiError(504, "Timeout", "slow"), ApiError(409, "Conflict", "")]


def test_versions_that_the_server_cannot_serve_are_distinguished() -> None:
    errors = EXPIRED + AHEAD + OTHER
    assert [error for error in errors if error.expired] == EXPIRED
    assert [error for error in errors if error.ahead_of_server] == AHEAD


def test_an_unknown_code_has_the_reason_unknown() -> None:
    assert refusal(599, b"").reason == "Unknown"
