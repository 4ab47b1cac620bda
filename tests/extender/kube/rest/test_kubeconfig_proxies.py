from __future__ import annotations

import pytest

from extender.kube.rest.kubeconfig import proxy_for

HTTPS, HTTP = "https://api.example.com:6443", "http://api.example.com"


@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        (HTTPS, {}, None),
        (HTTPS, {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        (HTTPS, {"https_proxy": "http://p:2"}, "http://p:2"),
        (HTTPS, {"HTTPS_PROXY": "http://p:1", "https_proxy": "http://p:2"}, "http://p:1"),
        (HTTPS, {"HTTP_PROXY": "http://p:3"}, None),
        (HTTP, {"HTTP_PROXY": "http://p:3"}, "http://p:3"),
        ("http://localhost:8001", {"HTTP_PROXY": "http://p"}, None),
        ("http://127.0.0.1:8001", {"HTTP_PROXY": "http://p"}, None),
        ("http://[::1]:8001", {"HTTP_PROXY": "http://p"}, None),
        ("http://10.1.2.3", {"HTTP_PROXY": "http://p"}, "http://p"),
    ],
)
def test_the_environment_names_the_proxy(
    url: str, environ: dict[str, str], expected: str | None
) -> None:
    assert proxy_for(url, environ) == expected


def goes_direct(host: str, exceptions: str) -> bool:
    return proxy_for(f"http://{host}", {"HTTP_PROXY": "http://p", "no_proxy": exceptions}) is None


@pytest.mark.parametrize(
    ("host", "exceptions"),
    [
        ("api.example.com", "*"),
        ("api.example.com", "example.com"),
        ("api.example.com", ".example.com"),
        ("API.Example.com", "example.COM"),
        ("example.com", "example.com"),
        ("api.example.com", "other.org, example.com"),
        ("10.96.0.1", "10.0.0.0/8"),
        ("10.96.0.1", "10.96.0.1"),
        ("10.96.0.1", "*"),
    ],
)
def test_exceptions_go_direct(host: str, exceptions: str) -> None:
    assert goes_direct(host, exceptions)


@pytest.mark.parametrize(
    ("host", "exceptions"),
    [
        ("notexample.com", "example.com"),
        ("api.example.com", "10.0.0.0/8"),
        ("api.example.com", ""),
        ("10.96.0.1", "192.168.0.0/16,example.com"),
        ("10.96.0.1", ""),
    ],
)
def test_others_go_through_the_proxy(host: str, exceptions: str) -> None:
    assert not goes_direct(host, exceptions)
