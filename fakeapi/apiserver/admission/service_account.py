"""ServiceAccount admission: the account of a new pod, its token, and the secrets that it may use.

    pod                       what happens
    without an account        gets ``default``; the account must exist
    that wants a token        gets the volume ``kube-api-access-…``, mounted in every container
    without pull secrets      gets those of its account
    of an account that        may use only the secrets and pull secrets that the account lists;
    enforces its secrets      checked for ephemeral containers, too
    mirror pod                may use neither accounts, nor tokens, nor secrets; is not changed

An account enforces its secrets by the annotation ``kubernetes.io/enforce-mountable-secrets``.

Source: kubernetes/plugin/pkg/admission/serviceaccount/admission.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import PODS, SERVICE_ACCOUNTS
from fakeapi.apiserver.objects.metadata import IdAndTimeSources
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.wire.errors import StatusError, forbidden

Object = Mapping[str, Any]

_DEFAULT: Final = "default"
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_VOLUME: Final = "kube-api-access-"
_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_CONTAINERS: Final = {"initContainers": "init container", "containers": "container"}
_EPHEMERAL: Final = {"ephemeralContainers": "ephemeral container"}
_SECRET_FIELDS: Final = ("secretRef", "nodePublishSecretRef")


def admit_service_account(
    objects: ObjectReader,
    kind: ResourceInfo,
    namespace: str,
    document: Document,
    sources: IdAndTimeSources,
) -> None:
    """Set the service account of a new pod and its token volume; raise StatusError (403)."""
    if kind is not PODS:
        return
    spec = document.setdefault("spec", {})
    if _MIRROR in (document["metadata"].get("annotations") or {}):
        if error := _mirror_pod_error(spec):
            raise _refusal(document, error)
        return
    name = spec.get("serviceAccountName") or _DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    entry = objects.get(SERVICE_ACCOUNTS, f"{namespace}/{name}")
    if entry is None and name == _DEFAULT:
        entry = _create_default_account(objects, namespace, sources)
    if entry is None:
        raise _no_account(document, namespace, name)
    account = entry.document()
    if _wants_token(spec, account):
        _mount_token(spec, sources)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    if error := _secret_error(account, spec):
        raise _refusal(document, error)


def check_ephemeral_containers(objects: ObjectReader, pod: Document) -> None:
    """Check the secrets of a pod's ephemeral containers; raise StatusError (403, 500)."""
    namespace, spec = pod["metadata"]["namespace"], pod.get("spec") or {}
    name = spec.get("serviceAccountName")
    if not name:
        detail = f"no service account specified for pod {namespace}/{pod['metadata']['name']}"
        raise _refusal(pod, detail)
    entry = objects.get(SERVICE_ACCOUNTS, f"{namespace}/{name}")
    if entry is None:
        raise _no_account(pod, namespace, name)
    account = entry.document()
    error = next(_container_errors(account, spec, _EPHEMERAL), "") if _enforces(account) else ""
    if error:
        raise StatusError(500, "", error)  # upstream returns this error unwrapped


def _no_account(pod: Document, namespace: str, name: str) -> StatusError:
    missing = f'serviceaccount "{name}" not found'
    return _refusal(pod, f"error looking up service account {namespace}/{name}: {missing}")


def _refusal(pod: Document, detail: str) -> StatusError:
    metadata = pod["metadata"]
    return forbidden(PODS, metadata.get("name") or metadata.get("generateName", ""), detail)


def _create_default_account(
    objects: ObjectReader, namespace: str, sources: IdAndTimeSources
) -> Entry:
    metadata = {
        "name": _DEFAULT,
        "namespace": namespace,
        "uid": sources.uid(),
        "creationTimestamp": sources.timestamp(0),
    }
    key = f"{namespace}/{_DEFAULT}"
    return objects.create(SERVICE_ACCOUNTS, key, {"metadata": metadata})


def _wants_token(spec: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    for of in (spec, account):
        automounts = of.get("automountServiceAccountToken")
        if automounts is not None:
            return bool(automounts)
    return True


def _mount_token(spec: dict[str, Any], sources: IdAndTimeSources) -> None:
    volumes = spec.get("volumes") or []
    present = [v["name"] for v in volumes if str(v.get("name", "")).startswith(_VOLUME)]
    name = present[0] if present else _VOLUME + sources.suffix()
    needed = [_mount(container, name) for container in _containers(spec)]
    if not present and any(needed):
        spec["volumes"] = [*volumes, _token_volume(name)]


def _containers(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    lists = (spec.get("initContainers"), spec.get("containers"))
    return [each for listed in lists for each in listed or () if isinstance(each, dict)]


def _mount(container: dict[str, Any], volume: str) -> bool:
    mounts = container.get("volumeMounts") or []
    if any(each.get("mountPath") == _MOUNT_PATH for each in mounts):
        return False
    mount = {"name": volume, "readOnly": True, "mountPath": _MOUNT_PATH}
    container["volumeMounts"] = [*mounts, mount]
    return True


def _token_volume(name: str) -> dict[str, Any]:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}


def _enforces(account: Object) -> bool:
    return (account["metadata"].get("annotations") or {}).get(_ENFORCE) in _TRUE


def _secret_error(account: Object, spec: Object) -> str:
    """Return the error of the first secret that an account does not let a pod use, or ""."""
    if not _enforces(account):
        return ""
    mountable, name = _names(account.get("secrets")), account["metadata"]["name"]
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName")
        if volume.get("secret") is not None and secret not in mountable:
            return (
                f'volume with secret.secretName="{secret}" is not allowed because service account '
                f"{name} does not reference that secret"
            )
    if error := next(_container_errors(account, spec, _CONTAINERS), ""):
        return error
    pull_secrets = _names(account.get("imagePullSecrets"))
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if secret.get("name") not in pull_secrets:
            return (
                f'imagePullSecrets[{index}].name="{secret.get("name", "")}" is not allowed because '
                f"service account {name} does not reference that imagePullSecret"
            )
    return ""


def _container_errors(account: Object, spec: Object, groups: Mapping[str, str]) -> Iterator[str]:
    mountable, name = _names(account.get("secrets")), account["metadata"]["name"]
    for group, noun in groups.items():
        for container in spec.get(group) or ():
            for place, secret in _container_secrets(container):
                if secret not in mountable:
                    yield (
                        f"{noun} {container.get('name', '')} with {place} referencing "
                        f'secret.secretName="{secret}" is not allowed because service account '
                        f"{name} does not reference that secret"
                    )


def _container_secrets(container: Object) -> Iterator[tuple[str, str]]:
    """Yield the secrets of a container's environment, each with its place."""
    for variable in container.get("env") or ():
        key = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if key is not None:
            yield f"envVar {variable.get('name', '')}", key.get("name", "")
    for source in container.get("envFrom") or ():
        if source.get("secretRef") is not None:
            yield "envFrom", source["secretRef"].get("name", "")


def _names(references: Any) -> set[str]:
    return {each.get("name", "") for each in references or ()}


def _mirror_pod_error(spec: Object) -> str:
    """Return the error of a mirror pod, which its kubelet runs without the API, or ""."""
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    if _uses_secrets(spec):
        return "a mirror pod may not reference secrets"
    if any(source.get("serviceAccountToken") for source in _projected_sources(spec)):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def _uses_secrets(spec: Object) -> bool:
    groups = (*_CONTAINERS, *_EPHEMERAL)
    containers = (each for group in groups for each in spec.get(group) or ())
    volumes = [
        source
        for volume in spec.get("volumes") or ()
        for source in volume.values()
        if isinstance(source, dict)
    ]
    return (
        bool(spec.get("imagePullSecrets"))
        or any(True for container in containers for _ in _container_secrets(container))
        or any(source.get("secretName") for source in volumes)
        or any(source.get(name) for source in volumes for name in _SECRET_FIELDS)
        or any(source.get("secret") for source in _projected_sources(spec))
    )


def _projected_sources(spec: Object) -> Iterator[Object]:
    for volume in spec.get("volumes") or ():
        yield from (volume.get("projected") or {}).get("sources") or ()
