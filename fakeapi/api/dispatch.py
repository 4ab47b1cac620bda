"""The API as one pure function: a request in, a response or a watch out.

No sockets, no clock, no randomness: the server behind a socket and the transport without one are
thin shells around :meth:`Api.handle`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import orjson

from fakeapi.api.bodies import check_accept, read_object
from fakeapi.api.deleting import parse_delete_options
from fakeapi.api.discovery import discover
from fakeapi.api.errors import (
    StatusError,
    bad_request,
    method_not_allowed,
    too_large_version,
)
from fakeapi.api.listing import Page, encode_list, encode_object, list_page
from fakeapi.api.loading import ensure_namespace, load
from fakeapi.api.messages import TEXT, Request, Response
from fakeapi.api.metadata import Sources
from fakeapi.api.options import parse_list_options, parse_version
from fakeapi.api.patching import apply_patch
from fakeapi.api.paths import find_target, group_version_path
from fakeapi.api.registry import Deletion, Registry, Target
from fakeapi.api.selecting import parse_selection
from fakeapi.api.watching import Watch
from fakeapi.kinds import BUILTIN, Kinds
from fakeapi.store import Document, Entry, Store

FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

Handler = Callable[[Target, Request], "Response | Watch"]


class Api:
    """An API server's behaviour over one store."""

    def __init__(self, store: Store, sources: Sources, kinds: Kinds = BUILTIN) -> None:
        self.store = store
        self.kinds = kinds
        self.registry = Registry(store, sources)
        self._on_collection: Mapping[str, Handler] = {
            "GET": self._list_or_watch,
            "POST": self._create,
            "DELETE": self._delete_collection,
        }
        self._on_object: Mapping[str, Handler] = {
            "GET": self._get,
            "PUT": self._update,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }
        self._ensure_first_namespaces()

    def handle(self, request: Request) -> Response | Watch:
        """Answer one request; a refusal is an answer too."""
        try:
            return self._answer(request)
        except StatusError as refusal:
            return refusal.response()

    def load(self, documents: Iterable[Document]) -> int:
        """Store documents as they are given and count them; raises StatusError (400, 422)."""
        return load(self.registry, self.kinds, documents)

    def reset(self) -> None:
        """Drop everything but the namespaces a cluster begins with; every watch expires."""
        self.store.clear()
        self._ensure_first_namespaces()

    def _ensure_first_namespaces(self) -> None:
        for name in FIRST_NAMESPACES:
            ensure_namespace(self.registry, name)

    def _answer(self, request: Request) -> Response | Watch:
        if request.method == "GET":
            found = discover(self.kinds, request.path)
            if found is not None:
                return found
        position = group_version_path(request.path)
        if position is None or position[:2] not in self.kinds.group_versions:
            return Response(404, b"404 page not found\n", TEXT)
        group, version, rest = position
        if not rest:
            raise method_not_allowed()
        check_accept(request.accept)
        target = find_target(self.kinds, group, version, rest)
        return self._handler(target, request)(target, request)

    def _handler(self, target: Target, request: Request) -> Handler:
        handlers = self._on_object if target.name else self._on_collection
        handler = handlers.get(request.method)
        spread = target.kind.namespaced and not target.namespace
        misplaced_write = not target.name and spread and request.method != "GET"
        misplaced_delete = bool(target.subresource) and request.method == "DELETE"
        if handler is None or misplaced_write or misplaced_delete:
            raise method_not_allowed()
        if request.method != "GET" and request.query.get("dryRun"):
            raise bad_request("dryRun is not supported by this server")
        return handler

    def _get(self, target: Target, request: Request) -> Response:
        asked = int(parse_version(request.query.get("resourceVersion", "")) or "0")
        if asked > self.store.version:
            raise too_large_version(asked, self.store.version)
        return _object(200, target, self.registry.get(target))

    def _list_or_watch(self, target: Target, request: Request) -> Response | Watch:
        options = parse_list_options(request.query)
        selection = parse_selection(target.kind, options.labels, options.fields)
        if options.watch:
            return Watch(self.store, target.kind, target.namespace, selection, options)
        page = list_page(self.store, target.kind, target.namespace, selection, options)
        return Response(200, encode_list(target.kind, page))

    def _create(self, target: Target, request: Request) -> Response:
        return _object(201, target, self.registry.create(target, read_object(request)))

    def _update(self, target: Target, request: Request) -> Response:
        before = self.store.get(target.kind, target.key)
        entry = self.registry.update(target, read_object(request))
        return _object(200 if before else 201, target, entry)

    def _patch(self, target: Target, request: Request) -> Response:
        def change(document: Document) -> Document:
            return apply_patch(target.kind, document, request.content_type, request.body)

        return _object(200, target, self.registry.change(target, change))

    def _delete(self, target: Target, request: Request) -> Response:
        options = parse_delete_options(request.query, _optional_object(request))
        deletion = self.registry.delete(target, options)
        if deletion.gone and not target.kind.returns_deleted:
            return Response(200, _deleted_status(target, deletion))
        return _object(200, target, deletion.entry)

    def _delete_collection(self, target: Target, request: Request) -> Response:
        delete_options = parse_delete_options(request.query, _optional_object(request))
        options = parse_list_options(request.query)
        selection = parse_selection(target.kind, options.labels, options.fields)
        page = list_page(self.store, target.kind, target.namespace, selection, options)
        for entry in page.entries:
            name = entry.fields[0]
            self.registry.delete(Target(target.kind, target.namespace, name), delete_options)
        return Response(200, encode_list(target.kind, Page(self.store.version, page.entries)))


def _optional_object(request: Request) -> Document:
    return read_object(request) if request.body else {}


def _object(status: int, target: Target, entry: Entry) -> Response:
    return Response(status, encode_object(target.kind, entry))


def _deleted_status(target: Target, deletion: Deletion) -> bytes:
    kind = target.kind
    uid = deletion.entry.document()["metadata"]["uid"]
    details = {"name": target.name, "group": kind.group, "kind": kind.plural, "uid": uid}
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {name: value for name, value in details.items() if value},
    }
    return orjson.dumps(status) + b"\n"
