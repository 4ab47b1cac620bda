"""Kubeconfigs, and files of certificates.

An input is a JSON object: what it is, and its files by name, with one character for each byte.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from extender.config.component_config import TlsConfig
from extender.kube.rest.api_errors import ConnectionConfigError
from extender.kube.rest.connection import connect
from extender.secure_serving.dynamic_certificates import CertificateError, load_serving_certificate
from extender.secure_serving.self_signed import CertificateAuthority
from tests.fuzz.kind import FailedError, Kind
from tests.fuzz.mutation import encode_document, mutate_bytes, mutate_document, pick

_NOISE: Final = (
    "# Zertifikat f\u00fcr Gr\u00f6\u00dfe\n".encode(),
    b"\xff\xfe\x00",
    b"-----BEGIN CERTIFICATE-----\n",
    b"-----END CERTIFICATE-----\n",
    b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n",
    b"\x00" * 5_000,
    b"\r\n\r\n",
    b"",
)


@cache
def _certificates() -> Mapping[str, bytes]:
    authority = CertificateAuthority()
    pair = authority.issue_server(["127.0.0.1"])
    other = authority.issue_client("somebody")
    return {
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
        "ca.crt": authority.certificate,
        "other.key": other.key,
    }


@cache
def _kubeconfig() -> Any:
    files = {name: b64encode(data).decode() for name, data in _certificates().items()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
        "clusters": [
            {
                "name": "k",
                "cluster": {
                    "server": "https://127.0.0.1:6443",
                    "certificate-authority-data": files["ca.crt"],
                    "tls-server-name": "k",
                    "proxy-url": "http://127.0.0.1:3128",
                    "insecure-skip-tls-verify": False,
                },
            }
        ],
        "users": [
            {
                "name": "u",
                "user": {
                    "client-certificate-data": files["tls.crt"],
                    "client-key-data": files["tls.key"],
                    "token": "t",
                    "username": "n",
                    "password": "p",
                },
            }
        ],
        "preferences": {},
    }


def generate(rng: Random) -> bytes:
    """Return a changed kubeconfig, or changed files of certificates."""
    if rng.random() < 0.6:
        changed = encode_document(rng, mutate_document(rng, _kubeconfig()))
        return _encoded("kubeconfig", {"config": changed})
    files = {name: _certificates()[name] for name in ("tls.crt", "tls.key", "ca.crt")}
    for name in rng.sample(sorted(files), rng.randrange(1, 3)):
        files[name] = _changed(rng, files[name])
    return _encoded("certificates", files)


def _changed(rng: Random, data: bytes) -> bytes:
    draw = rng.random()
    if draw < 0.4:
        return mutate_bytes(rng, data)
    if draw < 0.6:
        return pick(rng, list(_certificates().values()))
    noise = pick(rng, _NOISE)
    return pick(rng, (noise, noise + data, data + noise, data[:200] + noise + data[200:], data * 2))


def _encoded(what: str, files: Mapping[str, bytes]) -> bytes:
    texts = {name: data.decode("latin-1") for name, data in files.items()}
    return json.dumps({"what": what, "files": texts}).encode()


def _write_files(directory: Path, files: Mapping[str, str]) -> Mapping[str, Path]:
    for name, text in files.items():
        (directory / name).write_bytes(text.encode("latin-1"))
    return {name: directory / name for name in files}


async def check(data: bytes) -> None:
    """Read the files as ``serve`` does; raise if the error is none of its own, or has two lines."""
    document = json.loads(data)
    with TemporaryDirectory(prefix="fuzz-") as directory:
        paths = _write_files(Path(directory), document["files"])
        try:
            if document["what"] == "kubeconfig":
                transport = await connect(kubeconfig=paths["config"], environ={})
                await transport.close()
            else:
                tls = TlsConfig(str(paths["tls.crt"]), str(paths["tls.key"]), str(paths["ca.crt"]))
                load_serving_certificate(tls, 0.0)
        except (ConnectionConfigError, CertificateError) as error:
            if any("\n" in each for each in error.errors):
                raise FailedError(f"no errors of one line each: {error!r}") from None


KIND: Final = Kind("credentials", generate, check)
