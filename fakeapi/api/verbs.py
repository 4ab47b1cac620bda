"""Resource handlers: one function for each verb, from a RequestScope to a response.

Source: k8s.io/apiserver/pkg/endpoints/handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import orjson

from fakeapi.api.bodies import media_type, read_object
from fakeapi.api.calls import Call
from fakeapi.api.cautions import cautions
from fakeapi.api.configurations import read_configuration
from fakeapi.api.deleteoptions import (
    DeleteOptions,
    check_collection_options,
    parse_delete_options,
)
from fakeapi.api.errors import StatusError, too_large_version
from fakeapi.api.fieldvalidation import FieldCheck
from fakeapi.api.listing import encode_list, encode_object, list_page
from fakeapi.api.managedfields import Configuration
from fakeapi.api.managers import APPLY_PATCH, applier_of, manager_of
from fakeapi.api.messages import Request, Response
from fakeapi.api.options import parse_list_options, parse_version
from fakeapi.api.patching import apply_patch
from fakeapi.api.registry import Deletion, Registry, Target
from fakeapi.api.renewals import Write
from fakeapi.api.selecting import parse_selection
from fakeapi.api.watching import Watch
from fakeapi.store import Document, Entry

Verb = Callable[[Call], "Response | Watch"]


def get(call: Call) -> Response:
    """Return one object."""
    store = call.services.store
    asked = int(parse_version(call.request.query.get("resourceVersion", "")) or "0")
    if asked > store.version:
        raise too_large_version(asked, store.version)
    return _object(200, call.target, call.registry.get(call.target))


def list_or_watch(call: Call) -> Response | Watch:
    """Return a page of a list, or open a watch."""
    target, store = call.target, call.services.store
    options = parse_list_options(call.request.query)
    selection = parse_selection(target.kind, options.labels, options.fields)
    if options.watch:
        return Watch(store, target.kind, target.namespace, selection, options)
    page = list_page(store, target.kind, target.namespace, selection, options)
    return Response(200, encode_list(target.kind, page))


def create(call: Call) -> Response:
    """Create an object; the decoded body is kept while webhooks are called."""
    kind, request = call.target.kind, call.request
    if call.reviewers is None:
        document, warnings = _drafted(call)
    else:
        draft = ("draft", kind, request.body)
        encoded, warnings = call.services.outbox.once(draft, lambda: _encoded(*_drafted(call)))
        document = orjson.loads(encoded)  # each attempt may change its own copy
    entry = call.attributed.create_drafted(call.target, document)
    return _object(201, call.target, entry, warnings + cautions(kind, entry))


def _drafted(call: Call) -> tuple[Document, tuple[str, ...]]:
    """Return the object to be created in the state before admission, and the warnings."""
    target, request = call.target, call.request
    check = FieldCheck(request.query, "CreateOptions")
    document = check.decode_body(target.kind, read_object(request), request.body)
    return call.attributed.draft(target, document), check.warnings


def _encoded(document: Document, warnings: tuple[str, ...]) -> tuple[bytes, tuple[str, ...]]:
    return orjson.dumps(document), warnings


def update(call: Call) -> Response:
    """Replace an object; some kinds are created if they do not exist."""
    check = FieldCheck(call.request.query, "UpdateOptions")
    document = check.decode_body(call.target.kind, read_object(call.request), call.request.body)
    before = call.registry.store.get(call.target.kind, call.target.key)
    entry = call.attributed.update(call.target, document)
    told = check.warnings + cautions(call.target.kind, entry, before)
    _learn(call, before, entry, told)
    return _object(200 if before else 201, call.target, entry, told)


def patch(call: Call) -> Response:
    """Change an object by a patch; an apply may create it."""
    if media_type(call.request.content_type) == APPLY_PATCH:
        return _apply(call)
    kind, request = call.target.kind, call.request
    check = FieldCheck(request.query, "PatchOptions")

    def change(document: Document) -> Document:
        patched = apply_patch(kind, document, request.content_type, request.body)
        return check.decode_patched(kind, patched, request.content_type, request.body)

    before = call.registry.store.get(kind, call.target.key)
    entry = call.attributed.change(call.target, change)
    told = check.warnings + cautions(kind, entry, before)
    _learn(call, before, entry, told)
    return _object(200, call.target, entry, told)


def _apply(call: Call) -> Response:
    manager, force = applier_of(call.request)
    config = Configuration(read_configuration(call.request.body), force)
    before = call.registry.store.get(call.target.kind, call.target.key)
    entry, created = call.registry.written_by(manager).apply(call.target, config)
    told = cautions(call.target.kind, entry, before)
    return _object(201 if created else 200, call.target, entry, told)


def delete(call: Call) -> Response:
    """Delete an object, or mark it as being deleted."""
    target = call.target
    options = parse_delete_options(call.request.query, _optional_object(call.request))
    registry = call.registry.rehearsing() if options.dry_run else call.registry
    deletion = registry.delete(target, options)
    if deletion.gone and not target.kind.returns_deleted:
        return Response(200, _deleted_status(target, deletion))
    waits = options.orphan_dependents is False and not deletion.gone
    [shown] = call.services.store.show(target.kind, [deletion.entry])
    return _object(202 if waits else 200, target, shown)


def delete_collection(call: Call) -> Response:
    """Delete the selected objects of a collection, and return them as a list."""
    target, store = call.target, call.services.store
    delete_options = parse_delete_options(call.request.query, _optional_object(call.request))
    check_collection_options(delete_options)
    options = parse_list_options(call.request.query)
    selection = parse_selection(target.kind, options.labels, options.fields)
    once = call.services.outbox.once  # each object is deleted when its webhooks have answered
    page = once("page", lambda: list_page(store, target.kind, target.namespace, selection, options))
    registry = call.registry.rehearsing() if delete_options.dry_run else call.registry
    for entry in page.entries:
        one = Target(target.kind, target.namespace, entry.fields[0])
        once(("deleted", entry.key), partial(_delete_if_there, registry, one, delete_options))
    return Response(200, encode_list(target.kind, page))


ON_COLLECTION: Final[Mapping[str, Verb]] = {
    "GET": list_or_watch,
    "POST": create,
    "DELETE": delete_collection,
}
ON_OBJECT: Final[Mapping[str, Verb]] = {
    "GET": get,
    "PUT": update,
    "PATCH": patch,
    "DELETE": delete,
}


def _delete_if_there(registry: Registry, target: Target, options: DeleteOptions) -> None:
    """Delete one of several objects; ignore that another client has deleted it."""
    try:
        registry.delete(target, options)
    except StatusError as refusal:
        if refusal.code != 404:
            raise


def _learn(call: Call, before: Entry | None, after: Entry, warnings: tuple[str, ...]) -> None:
    """Let the heartbeat cache learn from a write without webhooks and warnings."""
    if before is not None and call.reviewers is None and not warnings:
        write = Write(call.target, manager_of(call.request), before, after)
        call.services.renewals.learn(call.request, write)


def _optional_object(request: Request) -> Document:
    return read_object(request) if request.body else {}


def _object(status: int, target: Target, entry: Entry, warnings: tuple[str, ...] = ()) -> Response:
    return Response(status, encode_object(target.kind, entry), warnings=warnings)


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
