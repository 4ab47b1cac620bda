"""Resource handlers: one function for each verb, from a RequestScope to a response.

Source: k8s.io/apiserver/pkg/endpoints/handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import orjson

from fakeapi.apiserver.managedfields import AppliedConfiguration
from fakeapi.apiserver.objects.metadata import check_document, check_url_name
from fakeapi.apiserver.objects.patch import apply_patch, read_configuration
from fakeapi.apiserver.registry.generic_registry import DeletionResult, Registry, Target
from fakeapi.apiserver.registry.heartbeats import HeartbeatWrite
from fakeapi.apiserver.registry.request_scope import RequestScope
from fakeapi.apiserver.registry.update_checks import check_namespace
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.validation.strict_fields import FieldValidator
from fakeapi.apiserver.validation.warnings import warnings_for
from fakeapi.apiserver.watch.list_pages import encode_object, list_page, list_response
from fakeapi.apiserver.watch.watch_cursor import Watch
from fakeapi.apiserver.wire.errors import StatusError, too_large_version
from fakeapi.apiserver.wire.http_messages import Request, Response
from fakeapi.apiserver.wire.request_bodies import media_type, read_object
from fakeapi.apiserver.wire.request_options import (
    DeleteOptions,
    check_collection_options,
    parse_delete_options,
    parse_list_options,
    parse_version,
)
from fakeapi.apiserver.wire.selectors import parse_selectors
from fakeapi.apiserver.wire.write_options import APPLY_PATCH, apply_manager_of, field_manager_of

ResourceHandler = Callable[[RequestScope], "Response | Watch"]


def get(scope: RequestScope) -> Response:
    """Return one object."""
    store = scope.services.store
    version = int(parse_version(scope.request.query.get("resourceVersion", "")) or "0")
    if version > store.version:
        raise too_large_version(version, store.version)
    return _object(200, scope.target, scope.registry.get(scope.target))


def list_or_watch(scope: RequestScope) -> Response | Watch:
    """Return a page of a list, or open a watch."""
    target, store = scope.target, scope.services.store
    options = parse_list_options(scope.request.query)
    selection = parse_selectors(target.kind, options.labels, options.fields)
    if options.watch:
        return Watch(store, target.kind, target.namespace, selection, options)
    page = list_page(store, target.kind, target.namespace, selection, options)
    return list_response(target.kind, page)


def create(scope: RequestScope) -> Response:
    """Create an object; the decoded body is kept while webhooks are called."""
    kind, request, registry = scope.target.kind, scope.request, scope.registry_with_manager
    dispatcher = scope.webhook_dispatcher
    if dispatcher is None or not dispatcher.calls_webhooks:
        document, warnings = _draft(scope, registry)
    else:
        draft = ("draft", kind, request.body)
        encoded, warnings = scope.services.pending_calls.once(
            draft, lambda: _encode_draft(*_draft(scope, registry))
        )
        document = orjson.loads(encoded)  # each attempt may change its own copy
    scope.warnings.extend(warnings)
    entry = registry.create_drafted(scope.target, document)
    return _object(201, scope.target, entry, warnings_for(kind, entry))


def _draft(scope: RequestScope, registry: Registry) -> tuple[Document, tuple[str, ...]]:
    """Return the object to be created in the state before admission, and the warnings."""
    target, request = scope.target, scope.request
    check = FieldValidator(request)
    document = check.decode_body(target.kind, read_object(request, target.kind.kind))
    return registry.draft(target, document), check.warnings


def _encode_draft(document: Document, warnings: tuple[str, ...]) -> tuple[bytes, tuple[str, ...]]:
    return orjson.dumps(document), warnings


def update(scope: RequestScope) -> Response:
    """Replace an object; some kinds are created if they do not exist."""
    target, kind = scope.target, scope.target.kind
    check = FieldValidator(scope.request)
    document = check.decode_body(kind, read_object(scope.request, kind.kind))
    scope.warnings.extend(check.warnings)
    metadata = check_document(kind, document)
    check_namespace(kind, target.namespace, metadata)
    check_url_name(target.name, metadata)
    before = scope.registry.store.get(scope.target.kind, scope.target.key)
    entry = scope.registry_with_manager.update(scope.target, document)
    warnings = warnings_for(scope.target.kind, entry, before)
    _learn_heartbeat(scope, before, entry, check.warnings + warnings)
    return _object(200 if before else 201, scope.target, entry, warnings)


def patch(scope: RequestScope) -> Response:
    """Change an object by a patch; an apply may create it."""
    if media_type(scope.request.content_type) == APPLY_PATCH:
        return _apply(scope)
    kind, request = scope.target.kind, scope.request
    check = FieldValidator(request)

    def change(document: Document) -> Document:
        patched = apply_patch(kind, document, request.content_type, request.body)
        decoded = check.decode_patched(kind, patched)
        scope.warnings.extend(check.warnings)
        return decoded

    before = scope.registry.store.get(kind, scope.target.key)
    entry = scope.registry_with_manager.change(scope.target, change)
    warnings = warnings_for(kind, entry, before)
    _learn_heartbeat(scope, before, entry, check.warnings + warnings)
    return _object(200, scope.target, entry, warnings)


def _apply(scope: RequestScope) -> Response:
    manager, force = apply_manager_of(scope.request)
    check = FieldValidator(scope.request)
    config = AppliedConfiguration(read_configuration(scope.request.body), force)
    check.decode_applied(scope.request.body)
    scope.warnings.extend(check.warnings)
    before = scope.registry.store.get(scope.target.kind, scope.target.key)
    entry, created = scope.registry.with_field_manager(manager).apply(scope.target, config)
    warnings = warnings_for(scope.target.kind, entry, before)
    return _object(201 if created else 200, scope.target, entry, warnings)


def delete(scope: RequestScope) -> Response:
    """Delete an object, or mark it as being deleted."""
    target = scope.target
    options = parse_delete_options(scope.request.query, _optional_object(scope.request))
    registry = scope.registry.dry_run() if options.dry_run else scope.registry
    deletion = registry.delete(target, options)
    if deletion.removed and not target.kind.returns_deleted:
        return Response(200, _deleted_status(target, deletion))
    waits = options.orphan_dependents is False and not deletion.removed
    [converted] = scope.services.store.convert_entries(target.kind, [deletion.entry])
    return _object(202 if waits else 200, target, converted)


def delete_collection(scope: RequestScope) -> Response:
    """Delete the selected objects of a collection, and return them as a list."""
    target, store = scope.target, scope.services.store
    delete_options = parse_delete_options(scope.request.query, _optional_object(scope.request))
    check_collection_options(delete_options)
    options = parse_list_options(scope.request.query)
    selection = parse_selectors(target.kind, options.labels, options.fields)
    once = (
        scope.services.pending_calls.once
    )  # each object is deleted when its webhooks have answered
    page = once("page", lambda: list_page(store, target.kind, target.namespace, selection, options))
    registry = scope.registry.dry_run() if delete_options.dry_run else scope.registry
    for entry in page.entries:
        one = Target(target.kind, target.namespace, entry.fields[0])
        once(("deleted", entry.key), partial(_delete_if_present, registry, one, delete_options))
    return list_response(target.kind, page)


ON_COLLECTION: Final[Mapping[str, ResourceHandler]] = {
    "GET": list_or_watch,
    "POST": create,
    "DELETE": delete_collection,
}
ON_OBJECT: Final[Mapping[str, ResourceHandler]] = {
    "GET": get,
    "PUT": update,
    "PATCH": patch,
    "DELETE": delete,
}


def _delete_if_present(registry: Registry, target: Target, options: DeleteOptions) -> None:
    """Delete one of several objects; ignore that another client has deleted it."""
    try:
        registry.delete(target, options)
    except StatusError as refusal:
        if refusal.code != 404:
            raise


def _learn_heartbeat(
    scope: RequestScope, before: Entry | None, after: Entry, warnings: tuple[str, ...]
) -> None:
    """Let the heartbeat cache learn from a write without webhooks and warnings."""
    if before is not None and scope.webhook_dispatcher is None and not warnings:
        write = HeartbeatWrite(scope.target, field_manager_of(scope.request), before, after)
        scope.services.heartbeats.learn(scope.request, write)


def _optional_object(request: Request) -> Document:
    return read_object(request) if request.body else {}


def _object(status: int, target: Target, entry: Entry, warnings: tuple[str, ...] = ()) -> Response:
    return Response(status, encode_object(target.kind, entry), warnings=warnings)


def _deleted_status(target: Target, deletion: DeletionResult) -> bytes:
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
