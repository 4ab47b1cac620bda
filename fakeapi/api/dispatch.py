"""The API as one pure function: a request in, a response or a watch out.

It uses no sockets, no clock and no randomness of its own. The HTTP server and the in-process
transport are thin layers over :meth:`Api.handle`.

A request passes these stages in order: impersonation, authorization, discovery, the choice of the
representation of the answer, the lookup of the target, and the handler of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from copy import deepcopy
from dataclasses import replace
from typing import Final

from fakeapi.api.authorizing import AlwaysAllow, Authorizer, attributes_of, forbidden_request
from fakeapi.api.calls import Call, Identify, Services
from fakeapi.api.converting import serve_converted
from fakeapi.api.discovery import Discovery
from fakeapi.api.errors import StatusError, method_not_allowed, not_served, unknown_resource
from fakeapi.api.extending.definitions import Definitions
from fakeapi.api.extending.forms import Forms
from fakeapi.api.extending.reviewing import Converter, Hook
from fakeapi.api.faces import choose_face
from fakeapi.api.hooks import Asked, Reviewers, Shapes, Webhooks
from fakeapi.api.impersonating import check_impersonation
from fakeapi.api.loading import ensure_namespace, load, place, remove
from fakeapi.api.messages import TEXT, Request, Response, User
from fakeapi.api.metadata import Sources
from fakeapi.api.nodeproxy import NodeProxy
from fakeapi.api.openapi import serve_openapi
from fakeapi.api.options import is_dry_run
from fakeapi.api.outcalls import Outbox
from fakeapi.api.paths import find_target, group_version_path
from fakeapi.api.priority import system_priority_classes
from fakeapi.api.rbac import RbacAuthorizer
from fakeapi.api.rbacroles import bootstrap_roles
from fakeapi.api.registry import Registry, Target
from fakeapi.api.release import DEFAULT_RELEASE, Release
from fakeapi.api.renewals import Renewals
from fakeapi.api.reviews import REVIEWS
from fakeapi.api.subresources import CUSTOM_SUBRESOURCES, SUBRESOURCES
from fakeapi.api.tokens import IssuedTokens
from fakeapi.api.updating import PREPARE
from fakeapi.api.verbs import ON_COLLECTION, ON_OBJECT, Verb
from fakeapi.api.watching import Watch
from fakeapi.kinds import BUILTIN, Kind, Kinds
from fakeapi.kinds.builtin import CUSTOM_RESOURCE_DEFINITIONS, PRIORITY_CLASSES
from fakeapi.store import Document, Store

FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

_HANDLERS = {**SUBRESOURCES, **REVIEWS}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


class Api:
    """The behaviour of an API server over one store.

    Every user may do everything until :meth:`enforce_rbac` is called.
    """

    def __init__(
        self,
        store: Store,
        sources: Sources,
        kinds: Kinds = BUILTIN,
        release: Release = DEFAULT_RELEASE,
    ) -> None:
        self.store = store
        self.builtin = kinds
        self.outbox = Outbox()
        self.services: MutableMapping[str, str] = {}
        uid, self._renewals = sources.uid, Renewals(store, sources.timestamp)
        sources = self.outbox.steady(sources)
        self._definitions = Definitions(store, kinds)
        self._converter = Converter(store, self.outbox, sources, self.services)
        self.objects = Forms(store, self._definitions.stored, self._converter)
        self.webhooks = Webhooks(store, self.outbox, uid, self.services)
        self.node_proxy = NodeProxy()
        self.registry = Registry(self.objects, sources)
        self.tokens = IssuedTokens(sources.timestamp)
        self.authorizer: Authorizer = AlwaysAllow()
        self.identify: Identify = self.tokens.user_of
        self._sources = sources
        self.release = release
        self._first_definitions: list[Document] = []
        self._ensure_first_objects()
        self._discovery = Discovery(self.kinds, release)

    @property
    def kinds(self) -> Kinds:
        """Return all kinds that are served, custom resources included."""
        return self._definitions.kinds

    @property
    def converters(self) -> MutableMapping[str, Hook]:
        """Return the functions that convert custom resources in place of webhooks, by definition.

        The keys are the names of definitions. Each function takes a ConversionReview and returns it
        with a response.
        """
        return self._converter.hooks

    def handle(self, request: Request) -> Response | Watch:
        """Serve one request; an error becomes a response with a Status.

        Raise CallsPendingError if a webhook must be called first
        (:mod:`fakeapi.apiserver.webhooks.calls`).
        """
        try:
            return self._answer(request)
        except StatusError as refusal:
            return refusal.response()
        finally:
            self._settle()

    def load(self, documents: Iterable[Document]) -> int:
        """Store documents as they are, and return their number; raise StatusError (400, 422)."""
        try:
            return load(self.registry, self.kinds, documents)
        finally:
            self._settle()

    def begin_with(self, definitions: Iterable[Document]) -> None:
        """Add definitions that the cluster has from now on, and again after each reset.

        A definition that exists is not changed.
        """
        self._first_definitions += definitions
        self._ensure_first_objects()
        self._settle()

    def place(self, document: Document) -> None:
        """Store one document as it is, and create no namespace; raise StatusError (400, 422)."""
        try:
            place(self.registry, self.kinds, document)
        finally:
            self._settle()

    def remove(self, document: Document) -> None:
        """Remove an object if it exists, ignoring finalizers; raise StatusError (400, 422)."""
        try:
            remove(self.registry, self.kinds, document)
        finally:
            self._settle()

    def reset(self) -> None:
        """Remove all objects except the initial ones of a cluster; every watch expires."""
        self.store.clear()
        self._ensure_first_objects()
        self._settle()

    @property
    def enforces_rbac(self) -> bool:
        """Return whether RBAC is enforced."""
        return isinstance(self.authorizer, RbacAuthorizer)

    def enforce_rbac(self) -> None:
        """Enforce RBAC with the roles and bindings in the store, and create the bootstrap roles."""
        self.authorizer = RbacAuthorizer(self.store, self.builtin)
        self._ensure_first_objects()

    def _ensure_first_objects(self) -> None:
        for name in FIRST_NAMESPACES:
            ensure_namespace(self.registry, name)
        for document in system_priority_classes():
            if self.store.get(PRIORITY_CLASSES, document["metadata"]["name"]) is None:
                self.registry.create(Target(PRIORITY_CLASSES), document)
        for document in self._first_definitions:
            if self.store.get(CUSTOM_RESOURCE_DEFINITIONS, document["metadata"]["name"]) is None:
                self.load([deepcopy(document)])
        if self.enforces_rbac:
            self.load(bootstrap_roles())

    def _settle(self) -> None:
        self._definitions.settle(self.registry, self._sources.timestamp)

    def _discover(self, request: Request) -> Response | None:
        if self._discovery.kinds is not self.kinds:
            self._discovery = Discovery(self.kinds, self.release)
        return self._discovery.answer(request) or serve_openapi(self.kinds, request)

    def _answer(self, request: Request) -> Response | Watch:
        user = self._authorized(request)
        if request.method == "GET":
            found = self._discover(request) or self.node_proxy.serve(request, self.store)
            if found is not None:
                return found
        renewed = self._renewals.answer(request) if not self.webhooks.any else None
        if renewed is not None:
            return renewed
        position, kinds = group_version_path(request.path), self.kinds
        if position is None:
            return _NOWHERE
        group, version, rest = position
        if not rest and (group, version) in kinds.group_versions:
            raise method_not_allowed()
        target = find_target(kinds, group, version, rest)
        if target is None or (_everywhere(target) and target.kind.custom and _writes(request)):
            return _nowhere(kinds, group)
        face = choose_face(request, self._sources.timestamp)
        reviewers = self._reviewers(target, request, user)

        def serve(target: Target, request: Request) -> Response | Watch:
            call = self._call(target, request, user, reviewers)
            return _warned(reviewers, lambda: _handler(target, request)(call))

        answer = serve_converted(kinds, target, request, serve)
        return face.of(target.kind).dress(_warn(target.kind, answer))

    def _authorized(self, request: Request) -> User:
        """Return the acting user; raise StatusError (403) if the request is not allowed."""
        user = request.impersonated or request.user
        if isinstance(self.authorizer, AlwaysAllow):
            return user
        if user is not request.user:
            check_impersonation(self.authorizer, request.user, user)
        attributes = attributes_of(request, user)
        if self.authorizer.reason(attributes) is None:
            raise forbidden_request(attributes)
        return user

    def _reviewers(self, target: Target, request: Request, user: User) -> Reviewers | None:
        """Return the dispatcher of a request's webhooks; None if no webhook is configured."""
        if request.method == "GET" or not self.webhooks.any:
            return None
        path = (target.namespace, target.name, target.subresource)
        asked = Asked(user, target.kind, *path, request.query)
        return Reviewers(self.webhooks, asked, self.objects, Shapes(self.kinds, self._convert))

    def _convert(self, wanted: Kind, given: Kind, document: Document) -> Document:
        """Return a custom resource in another version.

        Raise StatusError (500), CallsPendingError.
        """
        assert wanted.custom is not None
        version = given.api_version
        [found] = self._converter.convert(wanted, wanted.custom, [document], version)
        return found

    def _call(
        self, target: Target, request: Request, user: User, reviewers: Reviewers | None
    ) -> Call:
        dry = is_dry_run(request.method, request.query)
        registry = self.registry.rehearsing() if dry else self.registry
        if reviewers is not None and not _has_own_handler(target):
            registry = registry.reviewed_by(reviewers)
        services = Services(
            self.objects,
            self.kinds,
            self._sources,
            self.authorizer,
            self.tokens,
            self.identify,
            self.outbox,
            self._renewals,
        )
        return Call(target, request, registry, services, user, reviewers)


def _nowhere(kinds: Kinds, group: str) -> Response:
    """Return the 404 for an unknown path; for groups of built-in kinds raise it as a Status."""
    if any(kind.group == group and kind.custom is None for kind in kinds.all):
        raise unknown_resource()
    return _NOWHERE


_NOWHERE: Final = Response(404, b"404 page not found\n", TEXT)


def _warn(kind: Kind, answer: Response | Watch) -> Response | Watch:
    """Return an answer with the deprecation warning of its kind, if there is one."""
    if kind.deprecation and isinstance(answer, Response):
        return replace(answer, warnings=(kind.deprecation, *answer.warnings))
    return answer


def _warned(reviewers: Reviewers | None, serve: Callable[[], Response | Watch]) -> Response | Watch:
    """Return an answer, or raise an error, with the warnings of webhooks."""
    if reviewers is None:
        return serve()
    try:
        answer = serve()
    except StatusError as refusal:
        refusal.warnings = reviewers.warnings
        raise
    if isinstance(answer, Response):
        return replace(answer, warnings=(*answer.warnings, *reviewers.warnings))
    return answer


def _has_own_handler(target: Target) -> bool:
    if target.kind.custom is not None:
        return target.subresource in CUSTOM_SUBRESOURCES
    return (target.kind.resource, target.subresource) in _HANDLERS


def _lead_nowhere(call: Call) -> Response:
    call.registry.get(call.target)
    raise not_served(call.target.kind, call.target.subresource)


def _everywhere(target: Target) -> bool:
    """Return whether the target is the collection of all namespaces."""
    return target.kind.namespaced and not target.namespace and not target.name


def _writes(request: Request) -> bool:
    return request.method != "GET"


def _handler(target: Target, request: Request) -> Verb:
    """Return the handler of a request; raise StatusError (404, 405)."""
    kind, method, subresource = target.kind, request.method, target.subresource
    own = _HANDLERS.get((kind.resource, subresource))
    if kind.custom is not None:
        own = CUSTOM_SUBRESOURCES.get(subresource)
    if own is not None and target.name and not subresource:
        raise unknown_resource()  # resources that can only be created have no name
    usual = ON_OBJECT if target.name else ON_COLLECTION
    handler = (usual if own is None else own).get(method)
    if handler is None or (_everywhere(target) and _writes(request)):
        raise method_not_allowed()
    if own is None:
        names = _OBJECT_VERBS if target.name else _COLLECTION_VERBS
        verbs = kind.subresources[subresource].verbs if subresource else kind.verbs
        if names[method] not in verbs:
            raise method_not_allowed()
        if subresource not in PREPARE:
            return _lead_nowhere
    return handler
