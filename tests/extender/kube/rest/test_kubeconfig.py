"""Server, credentials and proxy are found as kubectl finds them; errors are one line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from extender.kube.rest.api_errors import ConnectionConfigError
from extender.kube.rest.connection import connect
from extender.kube.rest.kubeconfig import in_cluster_endpoint, kubeconfig_endpoint
from extender.kube.rest.server_url import proxy_for, server_endpoint
from extender.kube.rest.transport import TransportError

IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
# A CA certificate; its key was deleted.
CA = """\
-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUQgohe53u2yxKL+9AV/yx3DqjxNwwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBdDAgFw0yNjExMjEwNDE0MzNaGA8yMTI2MTAyODA0MTQzM1ow
DDEKMAgGA1UEAwwBdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKvfd3SI2rD8
qvQ6WGOhmPz9i7oerNQY2KrAp9cO8xTts2id9ixcn1R10sYFdLVgz+UHhi7xZntZ
3y1GXItZRdujUzBRMB0GA1UdDgQWBBSVeSr0F+2/nT1rH6N5qDluO/MyszAfBgNV
HSMEGDAWgBSVeSr0F+2/nT1rH6N5qDluO/MyszAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCICeLrCIcHOT4UFKkkrkZC3p1JE7+f6CWzQTeuBiPva8E
AiEA0BC05UsnkUn1KegXE27ZO+GAeTLqvGWcy31iH4SwH68=
-----END CERTIFICATE-----
"""
MISSING: Mapping[str, str] = {"KUBECONFIG": "/nonexistent/config"}


def kubeconfig(
    path: Path, user: Mapping[str, object], server: str = "http://127.0.0.1:8001", **cluster: object
) -> Path:
    """Write a kubeconfig with one context, `here`."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def plugin(folder: Path, **expiry: str) -> dict[str, object]:
    """Return a user whose credential plugin returns token-1, token-2, ... at each run."""
    script = folder / "plugin.py"
    counter = folder / "runs"
    counter.write_text("0")
    status = json.dumps(expiry)
    script.write_text(
        f"import json, pathlib\n"
        f"counter = pathlib.Path({str(counter)!r})\n"
        f"run = int(counter.read_text()) + 1\n"
        f"counter.write_text(str(run))\n"
        f"status = dict({status}, token=f'token-{{run}}')\n"
        f"print(json.dumps(dict(apiVersion='client.authentication.k8s.io/v1',"
        f" kind='ExecCredential', status=status)))\n"
    )
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": [str(script)]}}


async def test_a_given_server_takes_precedence(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", {}, "http://127.0.0.1:1")
    transport = await connect("http://127.0.0.1:2/", config, environ=IN_CLUSTER)
    assert transport.url == "http://127.0.0.1:2"
    await transport.close()


async def test_a_given_kubeconfig_takes_precedence_over_the_service_account(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", {}, "http://127.0.0.1:1/base/")
    transport = await connect(kubeconfig=config, environ=IN_CLUSTER)
    assert transport.url == "http://127.0.0.1:1/base"
    await transport.close()


async def test_the_service_account_is_used_in_a_pod() -> None:
    with pytest.raises(ConnectionConfigError, match=r"service account .*token file"):
        await connect(environ=IN_CLUSTER)


async def test_the_default_kubeconfig_is_read_otherwise(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", {"token": "t"}, "http://127.0.0.1:3")
    paths = os.pathsep.join(["/nonexistent", str(config)])
    transport = await connect(environ={"KUBECONFIG": paths})
    assert transport.url == "http://127.0.0.1:3"
    await transport.close()


async def test_a_context_selects_another_cluster(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", {})
    document = yaml.safe_load(path.read_text())
    document["clusters"].append({"name": "d", "cluster": {"server": "http://other:1"}})
    document["contexts"].append({"name": "there", "context": {"cluster": "d", "user": "u"}})
    path.write_text(yaml.safe_dump(document))
    assert (await kubeconfig_endpoint(path)).url == "http://127.0.0.1:8001"
    assert (await kubeconfig_endpoint(path, "there")).url == "http://other:1"


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8001",
        "ftp://host",
        "http://",
        "",
        "/etc/kubeconfig",
        "http://[::1",
        "http://host:port",
        "http://host:0",
    ],
)
def test_a_server_must_be_a_url(url: str) -> None:
    with pytest.raises(ConnectionConfigError, match=r"--server: server .*: expected http\(s\)://"):
        server_endpoint(url)


def test_a_server_needs_no_credentials_and_may_be_behind_a_proxy() -> None:
    environ = {"HTTPS_PROXY": "http://proxy:3128"}
    assert server_endpoint("https://api.example.com", environ).proxy == "http://proxy:3128"
    assert server_endpoint("http://127.0.0.1:1", environ).proxy is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "config: not a valid kubeconfig"),
        ("- a\n- b\n", "config: not a valid kubeconfig"),
        ("a: [", "config: while parsing"),
        ("\x00", "config: unacceptable character"),
        ("kind: Config\n", "config: .*contexts|current-context"),
        ("current-context: x\ncontexts: []\nclusters: []\n", "config: .*name x"),
    ],
)
async def test_an_invalid_kubeconfig_is_reported_in_one_line(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConnectionConfigError, match=expected) as refused:
        await kubeconfig_endpoint(path)
    assert "\n" not in str(refused.value)


async def test_a_large_kubeconfig_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("#" * (2**22 + 1))
    with pytest.raises(ConnectionConfigError, match="config: 4194305 bytes; expected at most 4194"):
        await kubeconfig_endpoint(path)


async def test_a_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="absent: no such file; expected a kubeconfig"):
        await kubeconfig_endpoint(tmp_path / "absent")
    with pytest.raises(ConnectionConfigError, match="/nonexistent/config: no such file"):
        await connect(environ=MISSING)


@pytest.mark.parametrize(
    ("part", "replacement", "expected"),
    [
        ("contexts", [{"name": "here", "context": {"cluster": "c"}}], "to name a user"),
        ("clusters", [{"name": "c", "cluster": {}}], "not a valid kubeconfig"),
        ("clusters", [{"name": "c", "cluster": {"certificate-authority": "x"}}], "have a server"),
        ("clusters", [], "name c in"),
        ("clusters", [{"name": "c", "cluster": {"server": "nonsense"}}], "server 'nonsense'"),
        ("current-context", "gone", "name gone"),
        ("users", [{"name": "u", "user": {"tokenFile": "/nonexistent"}}], "No such file"),
        (
            "users",
            [{"name": "u", "user": {"exec": {"apiVersion": "v1", "command": "/nonexistent"}}}],
            "No such file",
        ),
    ],
)
async def test_a_missing_or_invalid_part_of_a_kubeconfig_is_reported(
    tmp_path: Path, part: str, replacement: object, expected: str
) -> None:
    path = kubeconfig(tmp_path / "config", {})
    document = yaml.safe_load(path.read_text())
    document[part] = replacement
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ConnectionConfigError, match=expected):
        await kubeconfig_endpoint(path)


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, None),
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "u", "password": "p"}, "Basic dTpw"),
    ],
)
async def test_a_users_credentials_become_a_header(
    tmp_path: Path, user: dict[str, object], header: str | None
) -> None:
    endpoint = await kubeconfig_endpoint(kubeconfig(tmp_path / "config", user))
    assert await endpoint.credentials.authorization() == header


async def test_a_token_file_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    endpoint = await kubeconfig_endpoint(kubeconfig(tmp_path / "config", {"tokenFile": "token"}))
    assert await endpoint.credentials.authorization() == "Bearer old"
    token.write_text("new\n")
    assert await endpoint.credentials.authorization() == "Bearer old"
    endpoint.credentials.refused()
    assert await endpoint.credentials.authorization() == "Bearer new"


async def test_a_plugin_without_expiry_runs_again_only_after_a_refusal(tmp_path: Path) -> None:
    endpoint = await kubeconfig_endpoint(kubeconfig(tmp_path / "config", plugin(tmp_path)))
    headers = [await endpoint.credentials.authorization() for _ in range(3)]
    endpoint.credentials.refused()
    headers += [await endpoint.credentials.authorization() for _ in range(2)]
    assert headers == ["Bearer token-1"] * 3 + ["Bearer token-2"] * 2


async def test_a_plugin_runs_again_before_its_token_expires(tmp_path: Path) -> None:
    user = plugin(tmp_path, expirationTimestamp="2001-01-01T00:00:00Z")
    endpoint = await kubeconfig_endpoint(kubeconfig(tmp_path / "config", user))
    assert await endpoint.credentials.authorization() == "Bearer token-2"


async def test_a_plugin_does_not_run_while_its_token_is_valid(tmp_path: Path) -> None:
    user = plugin(tmp_path, expirationTimestamp="2999-01-01T00:00:00Z")
    endpoint = await kubeconfig_endpoint(kubeconfig(tmp_path / "config", user))
    assert await endpoint.credentials.authorization() == "Bearer token-1"
    assert await endpoint.credentials.authorization() == "Bearer token-1"


async def test_a_plugin_that_fails_later_is_a_transient_error(tmp_path: Path) -> None:
    endpoint = await kubeconfig_endpoint(kubeconfig(tmp_path / "config", plugin(tmp_path)))
    (tmp_path / "plugin.py").write_text("raise SystemExit('no smart card')")
    endpoint.credentials.refused()
    for _ in range(2):
        with pytest.raises(TransportError, match=r"no credentials: .*no smart card"):
            await endpoint.credentials.authorization()


async def test_an_invalid_certificate_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not a certificate")
    path = kubeconfig(
        tmp_path / "config", {}, "https://127.0.0.1:1", **{"certificate-authority": "ca.crt"}
    )
    with pytest.raises(ConnectionConfigError, match="config: certificates: "):
        await kubeconfig_endpoint(path)


async def test_certificates_are_verified_unless_the_kubeconfig_disables_it(tmp_path: Path) -> None:
    options = {
        "insecure-skip-tls-verify": True,
        "tls-server-name": "api",
        "proxy-url": "http://p:1",
    }
    verified = await kubeconfig_endpoint(kubeconfig(tmp_path / "a", {}, "https://127.0.0.1:1"))
    unverified = await kubeconfig_endpoint(
        kubeconfig(tmp_path / "b", {}, "https://127.0.0.1:1", **options)
    )
    assert verified.tls is not None
    assert unverified.tls is not None
    assert verified.tls.check_hostname
    assert not unverified.tls.check_hostname
    assert (unverified.tls_server_name, unverified.proxy) == ("api", "http://p:1")


@pytest.fixture
def service_account(tmp_path: Path) -> tuple[Path, Path]:
    """Return a token file and a CA file as the kubelet mounts them."""
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first\n")
    ca.write_text(CA)
    return token, ca


async def test_a_service_account_has_a_url_a_ca_and_a_token(
    service_account: tuple[Path, Path],
) -> None:
    endpoint = await in_cluster_endpoint(IN_CLUSTER, *service_account)
    assert endpoint.url == "https://10.96.0.1:443"
    assert endpoint.tls is not None
    assert endpoint.tls.check_hostname
    assert await endpoint.credentials.authorization() == "Bearer first"


async def test_a_service_accounts_token_is_read_again_after_a_refusal(
    service_account: tuple[Path, Path],
) -> None:
    token, _ = service_account
    endpoint = await in_cluster_endpoint(IN_CLUSTER, *service_account)
    token.write_text("second\n")
    assert await endpoint.credentials.authorization() == "Bearer first"
    endpoint.credentials.refused()
    assert await endpoint.credentials.authorization() == "Bearer second"


async def test_a_missing_token_file_is_a_transient_error(
    service_account: tuple[Path, Path],
) -> None:
    token, _ = service_account
    endpoint = await in_cluster_endpoint(IN_CLUSTER, *service_account)
    token.unlink()
    endpoint.credentials.refused()
    with pytest.raises(TransportError, match="token file does not exist"):
        await endpoint.credentials.authorization()
    token.write_text("back")
    assert await endpoint.credentials.authorization() == "Bearer back"


async def test_a_service_account_needs_a_valid_ca(service_account: tuple[Path, Path]) -> None:
    token, ca = service_account
    ca.write_text("no certificate")
    with pytest.raises(ConnectionConfigError, match=r"service account .*certificates"):
        await in_cluster_endpoint(IN_CLUSTER, token, ca)


async def test_there_is_no_service_account_outside_a_pod(
    service_account: tuple[Path, Path],
) -> None:
    with pytest.raises(ConnectionConfigError, match="Service host/port is not set"):
        await in_cluster_endpoint({}, *service_account)


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
def test_the_proxy_is_an_environment_variable(
    url: str, environ: dict[str, str], expected: str | None
) -> None:
    assert proxy_for(url, environ) == expected


@pytest.mark.parametrize(
    ("host", "exceptions", "direct"),
    [
        ("api.example.com", "*", True),
        ("api.example.com", "example.com", True),
        ("api.example.com", ".example.com", True),
        ("API.Example.com", "example.COM", True),
        ("example.com", "example.com", True),
        ("api.example.com", "other.org, example.com", True),
        ("10.96.0.1", "10.0.0.0/8", True),
        ("10.96.0.1", "10.96.0.1", True),
        ("10.96.0.1", "*", True),
        ("notexample.com", "example.com", False),
        ("api.example.com", "10.0.0.0/8", False),
        ("api.example.com", "", False),
        ("10.96.0.1", "192.168.0.0/16,example.com", False),
        ("10.96.0.1", "", False),
    ],
)
def test_exceptions_are_reached_without_the_proxy(
    host: str, exceptions: str, *, direct: bool
) -> None:
    environ = {"HTTP_PROXY": "http://p", "no_proxy": exceptions}
    assert (proxy_for(f"http://{host}", environ) is None) == direct
