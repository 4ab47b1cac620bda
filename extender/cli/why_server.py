"""What a server knows of a pod: a Reprieve page has its records, an API server only Events."""

from __future__ import annotations

import os
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from extender.config.access_token import VARIABLE
from extender.kube.rest.api_errors import ApiError, MalformedError, error_from_body
from extender.kube.rest.client import Client, Selection, response_decoder
from extender.kube.rest.http_transport import AiohttpTransport, Anonymous, Endpoint
from extender.kube.rest.resources import EVENTS, PODS
from extender.kube.rest.server_url import checked_url, proxy_for
from extender.kube.rest.transport import Request, Response
from extender.ledger.cluster_evidence import (
    PREEMPTED,
    ClusterEvidence,
    ClusterPod,
    PodEvent,
    cluster_evidence,
)
from extender.ledger.entry import LedgerEntry, LedgerRecord, LedgerShadow, Outcome
from extender.ledger.why import WhyDocument, why_document
from policies.kubernetes.input_error import InputError

Found = WhyDocument | ClusterEvidence | None
"""What is known of a pod; None if nothing is."""


class TokenError(InputError):
    """A file has no token."""


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token that is sent with every request."""

    token: str

    async def authorization(self) -> str:
        """Return the Authorization header."""
        return f"Bearer {self.token}"

    def refused(self) -> None:
        """Do nothing: there is no other token."""


_NO_RECORDS: Final = msgspec.Raw(b"null")


class _PageRecord(msgspec.Struct):
    entry: LedgerEntry
    outcome: Outcome
    shadows: tuple[LedgerShadow, ...] = ()


class _AnyPage(msgspec.Struct):
    records: msgspec.Raw = _NO_RECORDS
    error: str = ""


def read_token(file: Path | None) -> str:
    """Return the token of a file, or else that of the environment, "" for none.

    Raise TokenError.
    """
    if file is None:
        return os.environ.get(VARIABLE, "").strip()
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise TokenError(f"--token-file {file}: cannot be read: {reason}") from None
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError(f"--token-file {file}: expected one token, without spaces")
    return token


async def ask_server(url: str, token: str, key: str, uid: str) -> Found:
    """Return what the server at a URL knows of the pod ``namespace/name``.

    Raise ConnectionConfigError, ApiError, MalformedError and TransportError.
    """
    found = checked_url(url, "--server").removesuffix("/ui")
    credentials = BearerToken(token) if token else Anonymous()
    transport = AiohttpTransport(Endpoint(found, credentials, proxy=proxy_for(found, os.environ)))
    try:
        namespace, _, name = key.partition("/")
        path = f"/ui/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"
        request = Request("GET", path, (("format", "json"),))
        response = await transport.request(request)
        records = _records(found, request, response)
        if records is not None:
            return why_document(key, uid, records)
        return await ask_cluster(Client(transport), found, key, uid)
    finally:
        await transport.close()


async def ask_cluster(client: Client, source: str, key: str, uid: str) -> Found:
    """Return what an API server shows of a pod. Raise ApiError, MalformedError, TransportError."""
    namespace, _, name = key.partition("/")
    pod = await client.find(PODS.object(name, namespace), _pod)
    about = f"involvedObject.kind=Pod,involvedObject.name={name}"
    try:
        own = (await client.list(EVENTS, _event, Selection(namespace, "", about))).items
    except ApiError as error:
        if error.status != 404:
            raise
        raise MalformedError(f"{source}: neither a page of Reprieve nor an API server") from None
    problems = []
    others: list[PodEvent] = []
    try:
        preempted = Selection(field_selector=f"involvedObject.kind=Pod,reason={PREEMPTED}")
        others = [
            each for each in (await client.list(EVENTS, _event, preempted)).items if each.pod != key
        ]
    except ApiError as error:
        problems.append(f"the pods that it preempted are not known: {error}")
    return cluster_evidence(key, uid, source, pod, [*own, *others], problems)


def _records(url: str, request: Request, response: Response) -> list[LedgerRecord] | None:
    """Return the records of a page; None if the server has no such page.

    Raise ApiError for an error of the page, and MalformedError for a page of another version.
    """
    if response.status == 401:
        error = error_from_body(request, response.status, response.headers, response.body)
        error.message += f"; expected the token in --token-file or ${VARIABLE}"
        raise error
    try:
        page = msgspec.json.decode(response.body, type=_AnyPage)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if page.error:
        reason = HTTPStatus(response.status).phrase
        raise ApiError(response.status, reason, page.error, request=str(request))
    if page.records == _NO_RECORDS:
        return None
    try:
        records = msgspec.json.decode(page.records, type=list[_PageRecord])
    except msgspec.DecodeError as invalid:
        raise MalformedError(f"{url}: a page of another version: {invalid}") from None
    return [LedgerRecord(each.entry, each.outcome, each.shadows) for each in records]


_pod = response_decoder("a pod", msgspec.json.Decoder(ClusterPod).decode)
_event = response_decoder("an Event", msgspec.json.Decoder(PodEvent).decode)
