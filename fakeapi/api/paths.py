"""Request paths: the objects that a URL names.

    /api/v1/pods                                 all pods
    /api/v1/namespaces/default/pods              the pods of one namespace
    /apis/apps/v1/namespaces/x/replicasets/web   one object
    /api/v1/namespaces/x/pods/web/status         its subresource
    /api/v1/namespaces/x                         a namespace (and /status its subresource)

Source: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from fakeapi.api.errors import not_found
from fakeapi.api.registry import Target
from fakeapi.kinds import ResourceRegistry

_ITEM_DEPTH = 3


def group_version_path(path: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Split a path into group, version and the remaining steps; return None for other paths."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return "", version, tuple(rest)
        case ["apis", group, version, *rest]:
            return group, version, tuple(rest)
    return None


def find_target(
    kinds: ResourceRegistry, group: str, version: str, rest: Sequence[str]
) -> Target | None:
    """Return the target of the path below a group and version; None if there is none.

    Raise StatusError (404) for a subresource that a custom resource does not have.
    """
    namespace, below = _split_namespace(kinds, group, version, rest)
    plural, name, subresource = (*below, "", "", "")[:_ITEM_DEPTH]
    kind = kinds.at(group, version, plural)
    wrong_scope = kind is not None and bool(namespace) and not kind.namespaced
    nameless = kind is not None and kind.namespaced and bool(name) and not namespace
    unnamed = len(below) > _ITEM_DEPTH or "" in below
    if kind is None or wrong_scope or nameless or unnamed:
        return None
    if subresource and subresource not in kind.subresources:
        if kind.custom is not None:
            raise not_found(kind, name)
        return None
    return Target(kind, namespace, name, subresource)


def _split_namespace(
    kinds: ResourceRegistry, group: str, version: str, rest: Sequence[str]
) -> tuple[str, Sequence[str]]:
    """Split off the namespace; /namespaces/x/status is a subresource, not a collection in x."""
    match rest:
        case ("namespaces", namespace, plural, *_) if namespace:
            if group or kinds.at(group, version, plural) is not None:
                return namespace, rest[2:]
    return "", rest
