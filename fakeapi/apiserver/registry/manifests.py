"""Manifests: loading and exporting of all objects, as ``kubectl get -o json`` prints them.

Objects are stored as they are, status, UID and timestamps included; only their resourceVersion is
new, and a pod that has a class but no priority gets that of its class. An object of the same name
is replaced. Either all objects are stored or none: all are checked first. Missing namespaces of
objects are created. Custom resources may come with their definitions, in any order; as in a create,
they are pruned, defaulted and validated by their schema. Recorded objects were stored before, and
are stored again without that.

An export can be loaded into this world or another. Namespaces come first, then other cluster-scoped
kinds, so other tools can create the objects in this order, too. An object of a kind with several
served versions is exported once, in the stored version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

import orjson

from fakeapi.apiserver.defaulting.field_defaults import apply_defaults
from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.kinds.builtin import (
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
)
from fakeapi.apiserver.managedfields.entries import read_client_entries
from fakeapi.apiserver.objects.metadata import check_document
from fakeapi.apiserver.objects.object_names import check_name
from fakeapi.apiserver.objects.version_conversion import conversion_of, to_stored_version
from fakeapi.apiserver.registry.generic_registry import Registry, Target
from fakeapi.apiserver.schema.crds.custom_kinds import (
    CustomResourceKinds,
    kinds_of_definition,
    with_custom_kinds,
)
from fakeapi.apiserver.schema.crds.custom_resource_strategy import validate_custom_resource
from fakeapi.apiserver.schema.crds.definition_status import (
    accept_names,
    establish,
    record_stored_version,
)
from fakeapi.apiserver.schema.typed_document import read_document
from fakeapi.apiserver.store.object_store import Document, Entry, Store
from fakeapi.apiserver.validation.object_validation import validate_object
from fakeapi.apiserver.watch.list_pages import EncodedItems, encode_typed_items
from fakeapi.apiserver.wire.errors import StatusError, bad_request
from fakeapi.apiserver.wire.http_messages import Response
from fakeapi.apiserver.wire.request_bodies import read_json
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError

_DEFAULT_NAMESPACE = "default"
_LEADING_KINDS: Final = (CUSTOM_RESOURCE_DEFINITIONS.kind, PRIORITY_CLASSES.kind)
_FIRST: Final = frozenset((CUSTOM_RESOURCE_DEFINITIONS.resource, NAMESPACES.resource))

Checked = tuple[Target, Document]
Encoded = tuple[Target, bytes]
"""A checked document as JSON, which takes a fifth of the memory."""
Check = Callable[[ResourceRegistry, Document], Checked]


class _LoadProblems:
    """Collects the errors about documents for one error with a line for each.

    document 3: Widget default/one: spec.size: Invalid value: 0: spec.size in body should be ...
    """

    def __init__(self) -> None:
        self._errors: list[StatusError] = []
        self._lines: list[str] = []

    def add(self, index: int, document: Document, error: StatusError) -> None:
        """Add the error about a document."""
        self._errors.append(error)
        where = f"document {index}: {_display_name(document)}"
        self._lines += [f"{where}{text}" for text in _texts(error)]

    def raise_if_any(self) -> None:
        """Raise StatusError with a line for each problem; the code is that of the first one."""
        if self._errors:
            first = self._errors[0]
            raise StatusError(first.code, first.reason, "\n".join(self._lines))


def _display_name(document: Document) -> str:
    """Return kind, namespace and name with a colon; "" if the document has no name."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return ""
    place = (metadata.get("namespace"), metadata["name"])
    return f"{document.get('kind')} {'/'.join(str(part) for part in place if part)}: "


def _texts(error: StatusError) -> list[str]:
    causes = (error.details or {}).get("causes") or ()
    return [f"{each.get('field')}: {each['message']}" for each in causes] or [error.message]


def parse_documents(body: bytes) -> list[Document]:
    """Decode one object, a ``List`` of any kind, an array, or one of these per line (JSON lines).

    Raise StatusError (400) if a piece is not JSON or not an object.
    """
    try:
        pieces = [read_json(body)]
    except StatusError:
        lines = [line for line in body.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        pieces = [read_json(line) for line in lines]
    return [document for piece in pieces for document in flatten_lists(piece)]


def flatten_lists(piece: Any) -> Iterator[Document]:
    """Yield the objects of an object, list document or array.

    Items of a typed list (``PodList``) may omit kind and apiVersion, as upstream's do. Raise
    StatusError (400).
    """
    if isinstance(piece, list):
        for element in piece:
            yield from flatten_lists(element)
    elif not isinstance(piece, dict):
        raise bad_request("expected an object, a List or an array of objects")
    elif isinstance(piece.get("items"), list) and str(piece.get("kind", "")).endswith("List"):
        item_kind = piece["kind"].removesuffix("List")
        header = {"kind": item_kind, "apiVersion": piece.get("apiVersion")} if item_kind else {}
        for item in piece["items"]:
            for document in flatten_lists(item):
                yield {**header, **document}
    else:
        yield piece


def load_documents(
    registry: Registry, kinds: ResourceRegistry, documents: Collection[Document]
) -> int:
    """Store all documents, definitions and namespaces first, and return their number.

    The documents are changed in place. A collection that decodes them as it is iterated over takes
    less memory. Raise StatusError (400, 422) with a line for each problem.
    """
    leading = _leading(documents)
    known = _kinds_with_definitions(kinds, leading)
    classes = _priority_classes(registry, leading.values())

    def check(kinds: ResourceRegistry, document: Document) -> Checked:
        target, document = _check_new(kinds, document)
        if target.kind is PODS:
            _set_priority(document, classes)
        return target, document

    every = (leading.get(index, document) for index, document in enumerate(documents))
    checked = _check_all(known, every, check)
    return _put_all(registry, sorted(checked, key=lambda each: each[0].kind.resource not in _FIRST))


def put_documents(
    registry: Registry, kinds: ResourceRegistry, documents: Collection[Document]
) -> int:
    """Store documents that were stored before, and return their number.

    The documents are changed in place. Raise StatusError (400, 422) with a line for each problem.
    """
    kinds = _kinds_with_definitions(kinds, _leading(documents))
    return _put_all(registry, _check_all(kinds, documents, _check))


def _leading(documents: Iterable[Document]) -> dict[int, Document]:
    """Return the documents by which others are checked, by their number."""
    return {n: each for n, each in enumerate(documents) if each.get("kind") in _LEADING_KINDS}


def _put_all(registry: Registry, checked: list[Encoded]) -> int:
    """Store documents, and remove them from the list meanwhile, so that none takes memory twice."""
    count, namespaces = len(checked), {t.namespace: None for t, _ in checked if t.kind.namespaced}
    checked.reverse()
    while checked:
        target, encoded = checked.pop()
        registry.put(target, orjson.loads(encoded))
    for namespace in namespaces:
        ensure_namespace(registry, namespace)
    return count


def put_document(registry: Registry, kinds: ResourceRegistry, document: Document) -> None:
    """Store one document, which is changed in place; raise StatusError (400, 422)."""
    registry.put(*_check(kinds, document))


def holds(registry: Registry, kinds: ResourceRegistry, document: Document) -> bool:
    """Return whether an object of the kind and name of a document is stored."""
    kind, metadata = kinds.of(document["apiVersion"], document["kind"]), document["metadata"]
    assert kind is not None
    target = Target(kind, metadata.get("namespace", ""), metadata["name"])
    return registry.store.get(kind, target.key) is not None


def remove_document(registry: Registry, kinds: ResourceRegistry, document: Document) -> None:
    """Remove an object if it exists, ignoring finalizers; ``document`` is its last state.

    Raise StatusError (400, 422).
    """
    target, document = _check(kinds, document)
    entry = registry.store.get(target.kind, target.key)
    if entry is not None:
        registry.store.delete(target.kind, target.key, document, entry.version)


def _kinds_with_definitions(
    kinds: ResourceRegistry, documents: Mapping[int, Document]
) -> ResourceRegistry:
    """Return the kinds, extended by those of the definitions among the documents.

    Raise StatusError (400, 422).
    """
    resources, problems = [], _LoadProblems()
    for index, document in documents.items():
        own = document.get("kind"), document.get("apiVersion")
        if own == (CUSTOM_RESOURCE_DEFINITIONS.kind, CUSTOM_RESOURCE_DEFINITIONS.api_version):
            try:
                resources.append(_kinds_of_new_definition(document))
            except StatusError as error:
                problems.add(index, document, error)
    problems.raise_if_any()
    return with_custom_kinds(kinds, [resource for resource in resources if resource is not None])


def _kinds_of_new_definition(document: Document) -> CustomResourceKinds | None:
    try:
        read_document(CUSTOM_RESOURCE_DEFINITIONS, document)
    except StructDecodeError as error:
        raise bad_request(f"a definition cannot be read: {error}") from None
    check_document(CUSTOM_RESOURCE_DEFINITIONS, document)
    apply_defaults(CUSTOM_RESOURCE_DEFINITIONS, document)
    record_stored_version(document)
    validate_object(CUSTOM_RESOURCE_DEFINITIONS, document)
    coming = deepcopy(document)
    accept_names(coming, (), "")
    establish(coming, "")
    return kinds_of_definition(coming)


def ensure_namespace(registry: Registry, name: str) -> None:
    """Create a namespace unless it exists."""
    if registry.store.get(NAMESPACES, name) is None:
        registry.create(Target(NAMESPACES), {"metadata": {"name": name}})


def _check_all(
    kinds: ResourceRegistry, documents: Iterable[Document], check: Check
) -> list[Encoded]:
    checked, problems = [], _LoadProblems()
    for index, document in enumerate(documents):
        try:
            target, stored = check(kinds, document)
            checked.append((target, bytes(memoryview(orjson.dumps(stored)))))  # as in the store
        except StatusError as error:
            problems.add(index, document, error)
    problems.raise_if_any()
    return checked


def _check(kinds: ResourceRegistry, document: Document) -> Checked:
    api_version, kind_name = str(document.get("apiVersion")), str(document.get("kind"))
    kind = kinds.of(api_version, kind_name)
    if kind is None:
        raise bad_request(
            f"no kind {kind_name!r} in version {api_version!r} is served here; "
            "expected a built-in kind, or its CustomResourceDefinition as well"
        )
    kind, document = to_stored_version(kinds, kind, document)
    metadata = check_document(kind, document)
    check_name(kind, document)
    metadata.pop("resourceVersion", None)
    try:
        read_client_entries(metadata.get("managedFields") or ())
    except ValueError as error:
        raise bad_request(f"metadata.managedFields: {error}") from None
    if not kind.namespaced:
        return Target(kind, "", metadata["name"]), document
    namespace = metadata["namespace"] = metadata.get("namespace") or _DEFAULT_NAMESPACE
    check_name(NAMESPACES, {"metadata": {"name": namespace}})
    return Target(kind, namespace, metadata["name"]), document


def _check_new(kinds: ResourceRegistry, document: Document) -> Checked:
    """Check an object; prune, default and validate a custom resource."""
    target, document = _check(kinds, document)
    if target.kind.custom is not None:
        try:
            read_document(target.kind, document)
        except StructDecodeError as error:
            raise bad_request(str(error)) from None
        apply_defaults(target.kind, document)
        validate_custom_resource(target.kind, target.kind.custom, document)
    return target, document


def _priority_classes(registry: Registry, documents: Iterable[Document]) -> Mapping[str, Document]:
    """Return the stored PriorityClasses, and those among the documents, by name."""
    stored = (entry.document() for entry in registry.store.entries(PRIORITY_CLASSES))
    loaded = (each for each in documents if each.get("kind") == PRIORITY_CLASSES.kind)
    named = ((each.get("metadata"), each) for each in (*stored, *loaded))
    return {str(meta.get("name")): each for meta, each in named if isinstance(meta, dict)}


def _set_priority(pod: Document, classes: Mapping[str, Document]) -> None:
    """Set the priority of a pod that has none from its class, as admission does.

    Pods of a cluster have one; a pod from a hand-written file may have a class only. Raise
    StatusError (400).
    """
    spec = pod.get("spec")
    if not isinstance(spec, dict) or spec.get("priority") is not None:
        return
    name = spec.get("priorityClassName")
    if not name:
        return
    found = classes.get(str(name))
    if found is None:
        raise bad_request(f"spec.priorityClassName: no PriorityClass {name!r}")
    spec["priority"] = found.get("value", 0)
    if found.get("preemptionPolicy"):
        spec.setdefault("preemptionPolicy", found["preemptionPolicy"])


def export(store: Store, kinds: ResourceRegistry) -> list[Document]:
    """Return every object, with kind and apiVersion."""
    return [
        {"apiVersion": entry.kind.api_version, "kind": entry.kind.kind, **entry.document()}
        for entry in _all_entries(store, kinds)
    ]


def _all_entries(store: Store, kinds: ResourceRegistry) -> list[Entry]:
    """Return every object in its stored version, namespaces first."""
    stored: dict[str, ResourceInfo] = {}
    for kind in sorted(kinds.all, key=_rank):
        if conversion_of(kind) is None:
            stored.setdefault(kind.resource, kind)
    return [entry for kind in stored.values() for entry in store.entries(kind)]


def encode_export(store: Store, kinds: ResourceRegistry) -> Response:
    """Return the export as one ``List`` document, which is encoded in pieces as it is sent."""
    items = EncodedItems(_all_entries(store, kinds), encode_typed_items)
    return Response(200, b'{"apiVersion":"v1","kind":"List","items":[', rest=items)


def _rank(kind: ResourceInfo) -> tuple[bool, bool]:
    return kind.resource != NAMESPACES.resource, kind.namespaced
