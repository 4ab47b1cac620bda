"""Which form a client gets, by its Accept header."""

from __future__ import annotations

import pytest

from fakeapi.api.errors import StatusError
from fakeapi.api.messages import Request
from fakeapi.api.negotiation import OFFERED, Representation, negotiate

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
OLD_TABLE = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
PARTIAL = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
YAML = "application/yaml"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", Representation()),
        ("*/*", Representation()),
        ("application/json", Representation()),
        (f"{PROTOBUF}, */*", Representation()),
        (f"{PROTOBUF},application/json", Representation()),
        (YAML, Representation(YAML)),
        ("application/json;q=0.1, application/yaml", Representation(YAML)),
        ("text/html, application/json", Representation()),
        ("application/cbor, */*", Representation()),
        ("*/*, application/yaml", Representation(YAML)),
        (f"{TABLE},{OLD_TABLE},application/json", Representation(shape="Table")),
        (OLD_TABLE, Representation(shape="Table", version="v1beta1")),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/json", Representation()),
        (f"{PROTOBUF};{PARTIAL}", Representation(shape="PartialObjectMetadata")),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", Representation()),
        ("application/json;as=;v=;g=", Representation()),
        ("application/json;stream=watch", Representation()),
        ("application/json;pretty=1", Representation(pretty=True)),
        ("application/json;q=x", Representation()),
    ],
)
def test_the_best_clause_that_can_be_served_wins(accept: str, chosen: Representation) -> None:
    assert negotiate(Request("GET", "/api/v1/pods", accept=accept), *OFFERED) == chosen


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ("text/html", "406: Not Acceptable\n\nAvailable representations: application/json, "),
        ("application/*", "406: Not Acceptable\n\n"),
        ("garbage", "406: Not Acceptable\n\n"),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io", "only the following media types are "),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", "only the following media types are "),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io", "only the following media types are "),
        ("application/json;stream=other", "only the following media types are "),
    ],
)
def test_what_cannot_be_served_is_refused(accept: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        negotiate(Request("GET", "/api/v1/pods", accept=accept), *OFFERED)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("query", "user_agent", "chosen"),
    [
        ({}, "kubectl/v1.37.1", Representation()),
        ({}, "curl/8.0", Representation(pretty=True)),
        ({}, "Mozilla/5.0 (X11)", Representation(pretty=True)),
        ({"pretty": "true"}, "kubectl", Representation(pretty=True)),
        ({"pretty": "false"}, "curl/8.0", Representation()),
        ({"pretty": ""}, "kubectl", Representation()),
    ],
)
def test_people_get_line_breaks(
    query: dict[str, str], user_agent: str, chosen: Representation
) -> None:
    request = Request("GET", "/api/v1/pods", query, user_agent=user_agent)
    assert negotiate(request, *OFFERED) == chosen
