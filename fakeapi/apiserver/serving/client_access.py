"""Client access: without credentials, with a bearer token, or with a client certificate over TLS.

Plain HTTP requires no credentials, and tokens need TLS. TLS uses a certificate authority that is
kept in memory; the kubeconfig contains its certificate, and the client certificate of the
administrator (or the token, if there is one). If credentials are required, requests without any are
rejected unless ``anonymous_user`` is set, as upstream does when every authenticated user may do
everything.
"""

from __future__ import annotations

import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import orjson

from extender.kube.rest.http_transport import Anonymous, Endpoint
from extender.secure_serving.pem import MissingExtraError, load_chain
from fakeapi.apiserver.auth.authentication import (
    AllowAnonymous,
    Authenticator,
    CredentialAuthenticator,
    TokenLookup,
)
from fakeapi.apiserver.wire.http_messages import ADMIN_USER, User

if TYPE_CHECKING:
    from extender.secure_serving.self_signed import CertificateAuthority, KeyPair

_NAME: Final = "fakeapi"
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A bearer token that never changes."""

    value: str

    async def authorization(self) -> str:
        """Return the value of the Authorization header."""
        return f"Bearer {self.value}"

    def refused(self) -> None:
        """Do nothing: the token cannot be refreshed."""


@dataclass(frozen=True)
class Tls:
    """The certificate authority, the server's TLS context and the administrator's key pair."""

    authority: CertificateAuthority
    server: ssl.SSLContext
    admin: KeyPair

    @cached_property
    def client(self) -> ssl.SSLContext:
        """The TLS context of a client that authenticates as the administrator."""
        context = ssl.create_default_context(cadata=self.authority.certificate.decode())
        load_chain(context, self.admin.key + self.admin.certificate)
        return context


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """How clients authenticate; ``token`` is the administrator's, ``tokens`` are other users'.

    ``anonymous_user`` is the user of requests without credentials where credentials are required
    (None: such requests are rejected).
    """

    tls: Tls | None = None
    token: str = ""
    tokens: Mapping[str, User] = field(default_factory=dict)
    anonymous_user: User | None = None

    def __post_init__(self) -> None:
        """Refuse tokens without TLS (ValueError): kubectl and client-go would not send them."""
        if self.tls is None and (self.token or self.tokens):
            raise ValueError("clients send tokens over TLS only; expected tls as well")

    def authenticator(self, issued_tokens: TokenLookup) -> Authenticator:
        """Return the authenticator; ``issued_tokens`` looks up tokens that the server issued."""
        if self.tls is None and not self.token and not self.tokens:
            return AllowAnonymous(issued_tokens)
        own = {self.token: ADMIN_USER} if self.token else {}
        return CredentialAuthenticator({**self.tokens, **own}, issued_tokens, self.anonymous_user)

    @property
    def certificate(self) -> str:
        """The certificate authority's certificate in PEM, "" without TLS."""
        return self.tls.authority.certificate.decode() if self.tls else ""

    def endpoint(self, url: str) -> Endpoint:
        """Return the endpoint of a server with the administrator's credentials."""
        credentials = StaticToken(self.token) if self.token else Anonymous()
        return Endpoint(url, credentials, self.tls.client if self.tls else None)

    def write_kubeconfig(self, path: Path, url: str) -> Path:
        """Write the administrator's kubeconfig (in JSON, which is YAML)."""
        return _write_kubeconfig(path, self._kubeconfig(url))

    def _kubeconfig(self, url: str) -> dict[str, Any]:
        cluster: dict[str, Any] = {"server": url}
        user: dict[str, Any] = {}
        if self.tls is not None:
            cluster["certificate-authority-data"] = _base64(self.tls.authority.certificate)
        else:  # client-node refuses plain HTTP without it
            cluster["insecure-skip-tls-verify"] = True
        if self.token:
            user["token"] = self.token
        elif self.tls is not None:
            user["client-certificate-data"] = _base64(self.tls.admin.certificate)
            user["client-key-data"] = _base64(self.tls.admin.key)
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": cluster}],
            "users": [{"name": _NAME, "user": user}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
            "current-context": _NAME,
        }


def copy_kubeconfig(source: Path, target: Path, *, server: str = "", token: str = "") -> Path:
    """Write a kubeconfig that :class:`ClientAccess` wrote, with another server or user.

    Raise ValueError for a token if the server has no TLS: kubectl and client-go would not send it.
    """
    document = orjson.loads(source.read_bytes())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]
    if token:
        if "certificate-authority-data" not in cluster:
            raise ValueError("clients send tokens over TLS only; expected a cluster with tls=True")
        user["user"] = {"token": token}
    cluster["server"] = server or cluster["server"]
    return _write_kubeconfig(target, document)


@dataclass(frozen=True, slots=True)
class UserAccess:
    """A user's bearer token, and the kubeconfig with it."""

    name: str
    token: str
    kubeconfig_path: Path


def user_access(admin: Path, name: str, issue: Callable[[], str]) -> UserAccess:
    """Return the access of a user, beside the administrator's kubeconfig.

    ``issue`` returns the user's token. Raise ValueError if the server has no TLS.
    """
    path = admin.with_name(f"kubeconfig-{quote(name, safe='')}")
    token = issue()
    return UserAccess(name, token, copy_kubeconfig(admin, path, token=token))


def _write_kubeconfig(path: Path, document: dict[str, Any]) -> Path:
    content = orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
    if path.exists() and not path.is_file():  # a FIFO or a device, which cannot be replaced
        path.write_bytes(content)
        return path
    target = path.resolve()
    with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        partial = Path(file.name)  # readable by its owner only
        try:
            file.write(content)
            file.flush()
            partial.replace(target)
        except OSError:
            partial.unlink()
            raise
    return path


def create_tls(host: str) -> Tls:
    """Create a certificate authority and issue its certificates; raises MissingExtraError."""
    try:
        from extender.secure_serving.self_signed import CertificateAuthority
    except ImportError as error:
        raise MissingExtraError(
            f"TLS needs the package {error.name}; install it with: pip install 'reprieve[tls]'"
        ) from None
    authority = CertificateAuthority()
    server = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate.decode()
    )
    server.verify_mode = ssl.CERT_OPTIONAL
    pair = authority.issue_server(tuple(dict.fromkeys((host, *_LOCAL))))
    load_chain(server, pair.key + pair.certificate)
    return Tls(authority, server, authority.issue_client(ADMIN_USER.name, ADMIN_USER.groups))


def _base64(pem: bytes) -> str:
    return b64encode(pem).decode()


@dataclass(frozen=True, slots=True)
class AdminCredentials:
    """The administrator's credentials for a blocking client."""

    tls: ssl.SSLContext | None
    headers: Mapping[str, str]


def read_admin_credentials(kubeconfig: Path) -> AdminCredentials:
    """Read the administrator's credentials from a kubeconfig that :class:`ClientAccess` wrote."""
    document = orjson.loads(kubeconfig.read_bytes())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    authority = cluster.get("certificate-authority-data")
    if authority is None:
        return AdminCredentials(None, headers)
    context = ssl.create_default_context(cadata=b64decode(authority).decode())
    if "client-key-data" in user:
        pem = b64decode(user["client-key-data"]) + b64decode(user["client-certificate-data"])
        load_chain(context, pem)
    return AdminCredentials(context, headers)
