"""The API as one pure function: a request in, a response or a watch out.

It uses no sockets, no clock and no randomness of its own. The HTTP server and the in-process
transport are thin layers over :meth:`Api.handle`.

A request passes these stages in order: impersonation, authorization, discovery, the choice of the
representation of the answer, the lookup of the target, and the handler of the target.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, MutableMapping
from copy import deepcopy
from typing import Final

from fakeapi.apiserver.admission.policies import ConfiguredPolicies, PolicyDispatcher
from fakeapi.apiserver.admission.priority import system_priority_classes
from fakeapi.apiserver.admission.webhooks import (
    RequestedOperation,
    VersionedObjects,
    WebhookDispatcher,
    Webhooks,
)
from fakeapi.apiserver.auth.authentication import check_impersonation
from fakeapi.apiserver.auth.authorization import (
    AlwaysAllow,
    Authorizer,
    authorization_attributes,
    forbidden_request,
)
from fakeapi.apiserver.auth.bootstrap_policy import client_roles
from fakeapi.apiserver.auth.escalation import WriteAuthorization
from fakeapi.apiserver.auth.rbac import RbacAuthorizer
from fakeapi.apiserver.auth.service_account_tokens import ISSUER, IssuedTokens
from fakeapi.apiserver.discovery.api_groups import Discovery
from fakeapi.apiserver.discovery.openapi import serve_openapi
from fakeapi.apiserver.discovery.server_information import ServerInformation, serve_information
from fakeapi.apiserver.discovery.version_and_health import DEFAULT_SERVER_VERSION, ServerVersion
from fakeapi.apiserver.endpoints.access_reviews import REVIEWS
from fakeapi.apiserver.endpoints.alternate_versions import serve_converted
from fakeapi.apiserver.endpoints.resource_handlers import ON_COLLECTION, ON_OBJECT, ResourceHandler
from fakeapi.apiserver.endpoints.response_warnings import with_deprecation_warning, with_warnings
from fakeapi.apiserver.kinds import BUILTIN, ResourceInfo, ResourceRegistry
from fakeapi.apiserver.kinds.builtin import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    PRIORITY_CLASSES,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
)
from fakeapi.apiserver.objects.metadata import IdAndTimeSources
from fakeapi.apiserver.printers.representation import choose_representation, error_response
from fakeapi.apiserver.registry.cluster_role_aggregation import ClusterRoleAggregation
from fakeapi.apiserver.registry.custom_resources.conversion_webhook import (
    ConversionHandler,
    VersionConverter,
)
from fakeapi.apiserver.registry.custom_resources.definitions import DefinitionController
from fakeapi.apiserver.registry.custom_resources.versioned_store import VersionedStore
from fakeapi.apiserver.registry.flow_control import FlowControl
from fakeapi.apiserver.registry.generic_registry import Registry, Target
from fakeapi.apiserver.registry.heartbeats import HeartbeatCache
from fakeapi.apiserver.registry.manifests import (
    ensure_namespace,
    holds,
    load_documents,
    put_document,
    put_documents,
    remove_document,
)
from fakeapi.apiserver.registry.request_scope import (
    IdentifyToken,
    RequestScope,
    ServerComponents,
    find_target,
    group_version_path,
)
from fakeapi.apiserver.registry.strategy import PREPARE_UPDATE
from fakeapi.apiserver.registry.subresources import CUSTOM_SUBRESOURCES, SUBRESOURCES
from fakeapi.apiserver.registry.subresources.node_proxy import NodeProxy
from fakeapi.apiserver.store.object_store import Document, Store
from fakeapi.apiserver.watch.watch_cursor import Watch
from fakeapi.apiserver.webhooks.calls import PendingCalls
from fakeapi.apiserver.wire.errors import (
    StatusError,
    method_not_allowed,
    not_acceptable,
    not_served,
    unknown_resource,
)
from fakeapi.apiserver.wire.http_messages import TEXT, Request, Response, User
from fakeapi.apiserver.wire.negotiation import OFFERED, TABLE
from fakeapi.apiserver.wire.write_options import check_write_options, is_dry_run

INITIAL_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

_HANDLERS = {**SUBRESOURCES, **REVIEWS}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_CONNECT_VERBS = {**_OBJECT_VERBS, "POST": "create"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


class Api:
    """An API server over one store. Without :meth:`enforce_rbac`, users may do everything."""

    def __init__(
        self,
        store: Store,
        sources: IdAndTimeSources,
        kinds: ResourceRegistry = BUILTIN,
        release: ServerVersion = DEFAULT_SERVER_VERSION,
    ) -> None:
        self.store = store
        self.builtin = kinds
        self.pending_calls = PendingCalls()
        self.services: MutableMapping[str, str] = {}
        uid, self._heartbeats = sources.uid, HeartbeatCache(store, sources.timestamp)
        sources = self.pending_calls.repeatable(sources)
        self._definitions = DefinitionController(store, kinds)
        self._aggregation = ClusterRoleAggregation(store)
        self.flow_control = FlowControl(store)
        self._converter = VersionConverter(store, self.pending_calls, sources, self.services)
        self.objects = VersionedStore(store, self._definitions.stored, self._converter)
        self.webhooks = Webhooks(store, self.pending_calls, uid, self.services)
        self._mutating = ConfiguredPolicies(store, MUTATING_POLICIES, MUTATING_POLICY_BINDINGS)
        self._validating = ConfiguredPolicies(
            store, VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS
        )
        self.node_proxy = NodeProxy()
        self.registry = Registry(self.objects, sources)
        self.tokens = IssuedTokens(sources.timestamp, store)
        self.authorizer: Authorizer = AlwaysAllow()
        self.identify: IdentifyToken = self.tokens.user_of
        self._sources = sources
        self.release = release
        self._information = ServerInformation(release, ISSUER)
        self._initial_objects: list[Document] = []
        self.ensure_initial_objects()
        self._discovery = Discovery(self.kinds, release)

    @property
    def kinds(self) -> ResourceRegistry:
        """Return all kinds that are served, custom resources included."""
        return self._definitions.kinds

    @property
    def converters(self) -> MutableMapping[str, ConversionHandler]:
        """Return the functions that convert custom resources in place of webhooks, by definition.

        The keys are the names of definitions. Each function takes a ConversionReview and returns it
        with a response.
        """
        return self._converter.handlers

    def handle(self, request: Request) -> Response | Watch:
        """Serve one request; an error becomes a response with a Status.

        Raise CallsPendingError if a webhook must be called first
        (:mod:`fakeapi.apiserver.webhooks.calls`).
        """
        try:
            return self._answer(request)
        except StatusError as refusal:
            return error_response(refusal, request.accept)
        finally:
            self._reconcile()

    def load(self, documents: Collection[Document]) -> int:
        """Store documents and return their number; custom resources are defaulted and validated.

        Raise StatusError (400, 422) with a line for each problem.
        """
        try:
            return load_documents(self.registry, self.kinds, documents)
        finally:
            self._reconcile()

    def put_all(self, documents: Collection[Document]) -> int:
        """Store recorded documents as they are, and return their number; raise StatusError."""
        try:
            return put_documents(self.registry, self.kinds, documents)
        finally:
            self._reconcile()

    def seed(self, documents: Iterable[Document]) -> None:
        """Add objects that the cluster has from now on, and again after each reset.

        An object that exists is not changed.
        """
        self._initial_objects += documents
        self.ensure_initial_objects()
        self._reconcile()

    def put(self, document: Document) -> None:
        """Store one document as it is, and create no namespace; raise StatusError (400, 422)."""
        try:
            put_document(self.registry, self.kinds, document)
        finally:
            self._reconcile()

    def remove(self, document: Document) -> None:
        """Remove an object if it exists, ignoring finalizers; raise StatusError (400, 422)."""
        try:
            remove_document(self.registry, self.kinds, document)
        finally:
            self._reconcile()

    def reset(self) -> None:
        """Remove all objects except the initial ones of a cluster; every watch expires."""
        self.store.clear()
        self.ensure_initial_objects()
        self._reconcile()

    @property
    def enforces_rbac(self) -> bool:
        """Return whether RBAC is enforced."""
        return isinstance(self.authorizer, RbacAuthorizer)

    def enforce_rbac(self) -> None:
        """Enforce RBAC with the roles and bindings in the store, and create the bootstrap roles."""
        self.authorizer = RbacAuthorizer(self.store, self.builtin)
        self.seed(client_roles())

    def ensure_initial_objects(self) -> None:
        """Create the initial objects of a cluster that are missing."""
        for name in INITIAL_NAMESPACES:
            ensure_namespace(self.registry, name)
        for document in system_priority_classes():
            if self.store.get(PRIORITY_CLASSES, document["metadata"]["name"]) is None:
                self.registry.create(Target(PRIORITY_CLASSES), document)
        for document in self._initial_objects:
            if not holds(self.registry, self.kinds, document):
                load_documents(self.registry, self.kinds, [deepcopy(document)])

    def _reconcile(self) -> None:
        self._definitions.reconcile(self.registry, self._sources.timestamp)
        self._aggregation.reconcile(self.registry)
        self.flow_control.reconcile(self.registry)

    def _discover(self, request: Request) -> Response | None:
        if self._discovery.kinds is not self.kinds:
            self._discovery = Discovery(self.kinds, self.release)
        return (
            self._discovery.answer(request)
            or serve_openapi(self.kinds, request)
            or serve_information(request, self.store, self.kinds, self._information)
        )

    def _answer(self, request: Request) -> Response | Watch:
        user = self.authorize(request)
        if request.method == "GET":
            found = self._discover(request) or self.node_proxy.serve(request, self.store)
            if found is not None:
                return found
        renewed = self._heartbeats.serve(request) if not self._has_dynamic_admission else None
        if renewed is not None:
            return renewed
        position, kinds = group_version_path(request.path), self.kinds
        if position is None:
            return _PATH_NOT_FOUND
        group, version, rest = position
        if not rest and (group, version) in kinds.group_versions:
            raise method_not_allowed()
        target = find_target(kinds, group, version, rest)
        if target is None or (
            _is_all_namespaces(target) and target.kind.custom and request.method != "GET"
        ):
            return _unknown_path(kinds, group)
        face = choose_representation(request, self._sources.timestamp, target.kind)
        reviewers = self._webhook_dispatcher(target, request, user)

        def serve(target: Target, request: Request) -> Response | Watch:
            call = self._scope(target, request, user, reviewers)
            return with_warnings(call, reviewers, lambda: _handler(target, request)(call))

        if (target.kind.resource, "") in REVIEWS and face.media_type_options.convert_to == TABLE:
            raise not_acceptable(OFFERED)
        answer = with_deprecation_warning(
            target.kind, lambda: serve_converted(kinds, target, request, serve)
        )
        return face.for_kind(target.kind).convert(answer)

    def authorize(self, request: Request) -> User:
        """Return the acting user; raise StatusError (403) if the request is not allowed."""
        user = request.impersonated or request.user
        if isinstance(self.authorizer, AlwaysAllow):
            return user
        if user is not request.user:
            check_impersonation(self.authorizer, request.user, user)
        attributes = authorization_attributes(request, user)
        if self.authorizer.reason(attributes) is None:
            raise forbidden_request(attributes)
        return user

    @property
    def _has_dynamic_admission(self) -> bool:
        return self.webhooks.any or self._mutating.any or self._validating.any

    def _webhook_dispatcher(
        self, target: Target, request: Request, user: User
    ) -> WebhookDispatcher | None:
        """Return the dispatcher of a request's webhooks and policies; None if there are none."""
        if request.method == "GET" or not self._has_dynamic_admission:
            return None
        versioned = VersionedObjects(self.kinds, self._convert)
        mutating, validating = (
            policies.candidates(versioned, target.kind, target.subresource)
            for policies in (self._mutating, self._validating)
        )
        if not mutating and not validating and not self.webhooks.any:
            return None
        run = PolicyDispatcher(mutating, validating, self.objects, versioned, self.authorizer)
        path = (target.namespace, target.name, target.subresource)
        operation = RequestedOperation(user, target.kind, *path, request.query)
        return WebhookDispatcher(self.webhooks, operation, self.objects, versioned, run)

    def _convert(
        self, to_kind: ResourceInfo, from_kind: ResourceInfo, document: Document
    ) -> Document:
        """Return a custom resource in another version.

        Raise StatusError (500), CallsPendingError.
        """
        assert to_kind.custom is not None
        version = from_kind.api_version
        [found] = self._converter.convert(to_kind, to_kind.custom, [document], version)
        return found

    def _scope(
        self, target: Target, request: Request, user: User, dispatcher: WebhookDispatcher | None
    ) -> RequestScope:
        check_write_options(request)
        registry = self.registry.with_user(user)
        registry = registry.dry_run() if is_dry_run(request) else registry
        if dispatcher is not None and not _has_own_handler(target):
            registry = registry.with_webhooks(dispatcher)
        if self.enforces_rbac and request.method != "GET":
            attributes = authorization_attributes(request, user)
            registry = registry.with_authorization(WriteAuthorization(self.authorizer, attributes))
        services = ServerComponents(
            self.objects,
            self.kinds,
            self._sources,
            self.authorizer,
            self.tokens,
            self.identify,
            self.pending_calls,
            self._heartbeats,
            self.node_proxy.ask_kubelet,
        )
        return RequestScope(target, request, registry, services, user, dispatcher)


def _unknown_path(kinds: ResourceRegistry, group: str) -> Response:
    """Return the 404 for an unknown path; for groups of built-in kinds raise it as a Status."""
    if any(kind.group == group and kind.custom is None for kind in kinds.all):
        raise unknown_resource()
    return _PATH_NOT_FOUND


_PATH_NOT_FOUND: Final = Response(404, b"404 page not found\n", TEXT)


def _has_own_handler(target: Target) -> bool:
    if target.kind.custom is not None:
        return target.subresource in CUSTOM_SUBRESOURCES
    return (target.kind.resource, target.subresource) in _HANDLERS


def _reject_subresource(scope: RequestScope) -> Response:
    scope.registry.get(scope.target)
    raise not_served(scope.target.kind, scope.target.subresource)


def _is_all_namespaces(target: Target) -> bool:
    return target.kind.namespaced and not target.namespace and not target.name


def _handler(target: Target, request: Request) -> ResourceHandler:
    """Return the handler of a request; raise StatusError (404, 405)."""
    kind, method, subresource = target.kind, request.method, target.subresource
    own = _HANDLERS.get((kind.resource, subresource))
    if kind.custom is not None:
        own = CUSTOM_SUBRESOURCES.get(subresource)
    if own is not None and target.name and not subresource:
        raise unknown_resource()  # resources that can only be created have no name
    is_unserved = own is None and subresource and subresource not in PREPARE_UPDATE
    if is_unserved and _CONNECT_VERBS.get(method) in kind.subresources[subresource].verbs:
        return _reject_subresource
    usual = ON_OBJECT if target.name else ON_COLLECTION
    handler = (usual if own is None else own).get(method)
    if handler is None or (_is_all_namespaces(target) and request.method != "GET"):
        raise method_not_allowed()
    if own is None:
        names = _OBJECT_VERBS if target.name else _COLLECTION_VERBS
        verbs = kind.subresources[subresource].verbs if subresource else kind.verbs
        if names[method] not in verbs:
            raise method_not_allowed()
    return handler
