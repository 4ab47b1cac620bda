"""Server and credentials are found as kubectl finds them, or one line says what is missing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from extender.kube.rest.api_errors import ConnectionConfigError
from extender.kube.rest.kubeconfig import (
    connect,
    in_cluster_endpoint,
    kubeconfig_endpoint,
    server_endpoint,
)
from extender.kube.rest.transport import TransportError

IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
# Signs nothing: its key was thrown away.
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
NOWHERE: Mapping[str, str] = {"KUBECONFIG": "/nonexistent/config"}


def kubeconfig(
    path: Path,
    user: Mapping[str, object],
    server: str = "http://127.0.0.1:8001",
    **cluster: object,
) -> Path:
    """Writes a kubeconfig with one context, `here`."""
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
    """A user whose credential plugin gives token-1, token-2, ... at each run."""
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


async def test_a_given_server_wins_over_everything(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", {}, "http://127.0.0.1:1")
    transport = await connect("http://127.0.0.1:2/", config, environ=IN_CLUSTER)
    assert transport.url == "http://127.0.0.1:2"
    await transport.close()


async def test_a_given_kubeconfig_wins_over_the_cluster_we_run_in(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", {}, "http://127.0.0.1:1/base/")
    transport = await connect(kubeconfig=config, environ=IN_CLUSTER)
    assert transport.url == "http://127.0.0.1:1/base"
    await transport.close()


async def test_in_a_pod_the_service_account_is_tried() -> None:
    with pytest.raises(ConnectionConfigError, match=r"service account .*token file"):
        await connect(environ=IN_CLUSTER)


async def test_else_the_default_kubeconfig_is_read(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", {"token": "t"}, "http://127.0.0.1:3")
    paths = os.pathsep.join(["/nonexistent", str(config)])
    transport = await connect(environ={"KUBECONFIG": paths})
    assert transport.url == "http://127.0.0.1:3"
    await transport.close()


async def test_a_context_picks_another_cluster(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", {})
    document = yaml.safe_load(path.read_text())
    document["clusters"].append({"name": "d", "cluster": {"server": "http://other:1"}})
    document["contexts"].append({"name": "there", "context": {"cluster": "d", "user": "u"}})
    path.write_text(yaml.safe_dump(document))
    assert (await kubeconfig_endpoint(path)).url == "http://127.0.0.1:8001"
    assert (await kubeconfig_endpoint(path, "there")).url == "http://other:1"


@pytest.mark.parametrize("url", ["127.0.0.1:8001", "ftp://host", "http://", "", "/etc/kubeconfig"])
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
async def test_a_broken_kubeconfig_is_explained_on_one_line(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConnectionConfigError, match=expected) as refused:
        await kubeconfig_endpoint(path)
    assert "\n" not in str(refused.value)


async def test_a_missing_kubeconfig_is_named_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="absent: no such file; expected a kubeconfig"):
        await kubeconfig_endpoint(tmp_path / "absent")
    with pytest.raises(ConnectionConfigError, match="/nonexistent/config: no such file"):
        await connect(environ=NOWHERE)


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
async def test_what_a_kubeconfig_lacks_is_named(
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


async def test_a_plugin_does_not_run_while_its_token_is_good(tmp_path: Path) -> None:
    user = plugin(tmp_path, expirationTimestamp="2999-01-01T00:00:00Z")
    endpoint = await kubeconfig_endpoint(kubeconfig(tmp_path / "config", user))
    assert await endpoint.credentials.authorization() == "Bearer token-1"
    assert await endpoint.credentials.authorization() == "Bearer token-1"


async def test_a_plugin_that_fails_later_is_a_transient_error(tmp_path: Path) -> None:
    endpoint = await kubeconfig_endpoint(kubeconfig(tmp_path / "config", plugin(tmp_path)))
    (tmp_path / "plugin.py").write_text("raise SystemExit('no card in the reader')")
    endpoint.credentials.refused()
    for _ in range(2):
        with pytest.raises(TransportError, match=r"no credentials: .*no card in the reader"):
            await endpoint.credentials.authorization()


async def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not a certificate")
    path = kubeconfig(
        tmp_path / "config", {}, "https://127.0.0.1:1", **{"certificate-authority": "ca.crt"}
    )
    with pytest.raises(ConnectionConfigError, match="config: certificates: "):
        await kubeconfig_endpoint(path)


async def test_tls_is_checked_unless_the_kubeconfig_says_otherwise(tmp_path: Path) -> None:
    lax = {"insecure-skip-tls-verify": True, "tls-server-name": "api", "proxy-url": "http://p:1"}
    strict = await kubeconfig_endpoint(kubeconfig(tmp_path / "a", {}, "https://127.0.0.1:1"))
    loose = await kubeconfig_endpoint(kubeconfig(tmp_path / "b", {}, "https://127.0.0.1:1", **lax))
    assert strict.tls is not None
    assert loose.tls is not None
    assert strict.tls.check_hostname
    assert not loose.tls.check_hostname
    assert (loose.tls_server_name, loose.proxy) == ("api", "http://p:1")


@pytest.fixture
def service_account(tmp_path: Path) -> tuple[Path, Path]:
    """A token file and a CA file as kubelet mounts them."""
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first\n")
    ca.write_text(CA)
    return token, ca


async def test_a_service_account_is_the_pods_way_in(service_account: tuple[Path, Path]) -> None:
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


async def test_a_service_account_needs_a_sound_ca(service_account: tuple[Path, Path]) -> None:
    token, ca = service_account
    ca.write_text("no certificate")
    with pytest.raises(ConnectionConfigError, match=r"service account .*certificates"):
        await in_cluster_endpoint(IN_CLUSTER, token, ca)


async def test_outside_a_pod_there_is_no_service_account(
    service_account: tuple[Path, Path],
) -> None:
    with pytest.raises(ConnectionConfigError, match="Service host/port is not set"):
        await in_cluster_endpoint({}, *service_account)
