"""Representations by the Accept header."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import Request
from fakeapi.apiserver.wire.negotiation import (
    WITHOUT_PROTOBUF,
    MediaTypeOptions,
    negotiate,
    negotiate_error,
)
from tests.fakeapi.api_requests import PROTOBUF, TABLE, YAML

OLD_TABLE = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
PARTIAL = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", MediaTypeOptions()),
        ("*/*", MediaTypeOptions()),
        ("application/json", MediaTypeOptions()),
        (f"{PROTOBUF}, */*", MediaTypeOptions(PROTOBUF)),
        (f"{PROTOBUF},application/json", MediaTypeOptions(PROTOBUF)),
        (f"application/json,{PROTOBUF}", MediaTypeOptions()),
        (f"{PROTOBUF};q=0.5,application/json", MediaTypeOptions()),
        (f"{PROTOBUF};stream=watch", MediaTypeOptions(PROTOBUF)),
        (YAML, MediaTypeOptions(YAML)),
        ("application/json;q=0.1, application/yaml", MediaTypeOptions(YAML)),
        ("text/html, application/json", MediaTypeOptions()),
        ("application/cbor, */*", MediaTypeOptions()),
        ("*/*, application/yaml", MediaTypeOptions(YAML)),
        (f"{TABLE},{OLD_TABLE},application/json", MediaTypeOptions(convert_to="Table")),
        (OLD_TABLE, MediaTypeOptions(convert_to="Table", version="v1beta1")),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/json", MediaTypeOptions()),
        (f"{PROTOBUF};{PARTIAL}", MediaTypeOptions(PROTOBUF, "PartialObjectMetadata")),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", MediaTypeOptions()),
        ("application/json;as=;v=;g=", MediaTypeOptions()),
        ("application/json;stream=watch", MediaTypeOptions()),
        ("application/json;pretty=1", MediaTypeOptions(pretty=True)),
        ("application/json;q=x", MediaTypeOptions()),
    ],
)
def test_the_best_clause_that_can_be_served_wins(accept: str, chosen: MediaTypeOptions) -> None:
    assert negotiate(Request("GET", "/api/v1/pods", accept=accept)) == chosen


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
        (f"{YAML};stream=watch", "only the following media types are "),
    ],
)
def test_an_unsupported_media_type_is_refused(accept: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        negotiate(Request("GET", "/api/v1/pods", accept=accept))
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("query", "user_agent", "chosen"),
    [
        ({}, "kubectl/v1.37.1", MediaTypeOptions()),
        ({}, "curl/8.0", MediaTypeOptions(pretty=True)),
        ({}, "Mozilla/5.0 (X11)", MediaTypeOptions(pretty=True)),
        ({"pretty": "true"}, "kubectl", MediaTypeOptions(pretty=True)),
        ({"pretty": "false"}, "curl/8.0", MediaTypeOptions()),
        ({"pretty": ""}, "kubectl", MediaTypeOptions()),
    ],
)
def test_browsers_and_curl_get_line_breaks(
    query: dict[str, str], user_agent: str, chosen: MediaTypeOptions
) -> None:
    request = Request("GET", "/api/v1/pods", query, user_agent=user_agent)
    assert negotiate(request) == chosen


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (f"{PROTOBUF},application/json", MediaTypeOptions()),
        (f"{PROTOBUF},*/*", MediaTypeOptions()),
        (f"{PROTOBUF},{YAML}", MediaTypeOptions(YAML)),
        (
            f"{PROTOBUF};{PARTIAL},application/json",
            MediaTypeOptions(PROTOBUF, "PartialObjectMetadata"),
        ),
    ],
)
def test_custom_resources_have_no_protobuf_except_for_their_metadata(
    accept: str, chosen: MediaTypeOptions
) -> None:
    request = Request("GET", "/apis/example.com/v1/things", accept=accept)
    assert negotiate(request, WITHOUT_PROTOBUF) == chosen


def test_custom_resources_in_protobuf_only_are_not_acceptable() -> None:
    request = Request("GET", "/apis/example.com/v1/things", accept=PROTOBUF)
    with pytest.raises(StatusError) as refused:
        negotiate(request, WITHOUT_PROTOBUF)
    assert refused.value.code == 406
    assert refused.value.message == (
        "only the following media types are accepted: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "application/json"),
        (PROTOBUF, PROTOBUF),
        (f"{PROTOBUF},application/json", PROTOBUF),
        (f"{PROTOBUF};q=0.1,application/json", "application/json"),
        (YAML, YAML),
        (f"{PROTOBUF};{PARTIAL},application/json", "application/json"),
        (f"{PROTOBUF};{PARTIAL}", "application/json"),
        ("text/html", "application/json"),
    ],
)
def test_an_error_is_answered_in_the_best_type_without_conversion(
    accept: str, media_type: str
) -> None:
    assert negotiate_error(accept) == media_type
