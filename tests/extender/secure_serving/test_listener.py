"""Authorization by the names in a client certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from extender.secure_serving.listener import ClientCertAuthorizer, certificate_names


def a_certificate(common: str = "", *, others: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return a peer certificate as Python's ssl module represents it."""
    subject = ((("commonName", common),),) if common else ()
    return {
        "subject": ((("organizationName", "system:masters"),), *subject),
        "subjectAltName": tuple(others),
    }


SCHEDULER = a_certificate("system:kube-scheduler")
UNNAMED = a_certificate()
BY_DNS = a_certificate(others=[("DNS", "scheduler.example.com"), ("IP Address", "10.0.0.1")])
BY_URI = a_certificate("x", others=[("URI", "spiffe://example.com/scheduler")])

CASES: list[tuple[tuple[str, ...], str, dict[str, Any] | None, str]] = [
    ((), "/filter", None, "a client certificate is required"),
    ((), "/filter", {}, "a client certificate is required"),
    ((), "/metrics", None, "a client certificate is required"),
    ((), "/decisions", None, "a client certificate is required"),
    ((), "/livez/", None, "a client certificate is required"),
    ((), "/livez", None, ""),
    ((), "/readyz", None, ""),
    (("other",), "/healthz", None, ""),
    ((), "/filter", SCHEDULER, ""),
    ((), "/filter", UNNAMED, ""),
    (("system:kube-scheduler",), "/preempt", SCHEDULER, ""),
    (("kube-scheduler",), "/preempt", SCHEDULER, "the client system:kube-scheduler is not allowed"),
    (("system:masters",), "/preempt", SCHEDULER, "the client system:kube-scheduler is not allowed"),
    (("any",), "/preempt", UNNAMED, "the client without a name is not allowed"),
    (("scheduler.example.com",), "/filter", BY_DNS, ""),
    (("10.0.0.1",), "/filter", BY_DNS, "the client scheduler.example.com is not allowed"),
    (("spiffe://example.com/scheduler",), "/filter", BY_URI, ""),
]


@pytest.mark.parametrize(("allowed", "path", "certificate", "objection"), CASES)
def test_clients_access_the_paths_of_their_certificates(
    allowed: tuple[str, ...], path: str, certificate: dict[str, Any] | None, objection: str
) -> None:
    assert ClientCertAuthorizer(allowed).denial_reason(path, certificate) == objection


def test_names_are_the_common_name_dns_names_and_uris() -> None:
    assert list(certificate_names(BY_URI)) == ["x", "spiffe://example.com/scheduler"]
    assert list(certificate_names(BY_DNS)) == ["scheduler.example.com"]
