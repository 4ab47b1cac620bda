"""Names of objects: most are DNS subdomains; some kinds have rules of their own.

Rules of several fields, such as that of a CustomResourceDefinition's name, are with the other rules
of the kind (:mod:`fakeapi.apiserver.validation.resource_rules`).

Sources: the ``Validate…Name`` functions in pkg/apis/*/validation, v1.37 (names of services: the
feature RelaxedServiceNameValidation); k8s.io/apimachinery/pkg/api/validation/path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.wire.errors import Cause, invalid, invalid_value, required
from policies.kubernetes.name_validation import invalid_dns_label, invalid_subdomain

Rule = Callable[[str, Mapping[str, Any]], str]

_MAX_CRON_JOB: Final = 52
_NAME: Final = "metadata.name"


def check_name(kind: ResourceInfo, document: Mapping[str, Any]) -> None:
    """Check the name of an object to be stored; raise StatusError (422)."""
    require_name(kind, document)
    causes = list(object_name_errors(kind, document))
    if causes:
        raise invalid(kind.qualified_kind, document["metadata"]["name"], causes)


def require_name(kind: ResourceInfo, document: Mapping[str, Any]) -> None:
    """Raise StatusError (422) if an object has no name."""
    if not document["metadata"].get("name"):
        cause = required(_NAME, "name or generateName is required")
        raise invalid(kind.qualified_kind, "", [cause])


def object_name_errors(kind: ResourceInfo, document: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield the error of an object's name; a missing name is no error."""
    name = document["metadata"].get("name")
    if name and (wrong := _RULES.get(kind.resource, _subdomain)(name, document)):
        yield invalid_value(_NAME, name, wrong)


def _subdomain(name: str, _document: Mapping[str, Any]) -> str:
    return invalid_subdomain(name)


def _label(name: str, _document: Mapping[str, Any]) -> str:
    return invalid_dns_label(name)


def _path_segment(name: str, _document: Mapping[str, Any]) -> str:
    if name in (".", ".."):
        return f"may not be '{name}'"
    return next((f"may not contain '{mark}'" for mark in "/%" if mark in name), "")


def _ip(name: str, _document: Mapping[str, Any]) -> str:
    try:
        address = ip_address(name)
    except ValueError:
        return _invalid_ip(name)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return "must not be an IPv4-mapped IPv6 address"
    return "" if str(address) == name else f'must be in canonical form ("{address}")'


def _invalid_ip(name: str) -> str:
    try:
        ip_address(".".join(part.lstrip("0") or "0" for part in name.split(".")))
    except ValueError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return "must not have leading 0s"


def _trust_bundle(name: str, bundle: Mapping[str, Any]) -> str:
    signer = (bundle.get("spec") or {}).get("signerName")
    if not signer:
        if ":" in name:
            return 'ClusterTrustBundle without signer name must not have ":" in its name'
        return invalid_subdomain(name)
    prefix = f"{signer.replace('/', ':')}:"
    if not name.startswith(prefix):
        return f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
    return invalid_subdomain(name.removeprefix(prefix))


def _api_service(name: str, service: Mapping[str, Any]) -> str:
    spec = service.get("spec") or {}
    required = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    rule = f'must be `spec.version+"."+spec.group`: "{required}"'
    return _path_segment(name, service) or ("" if name == required else rule)


def _cron_job(name: str, _document: Mapping[str, Any]) -> str:
    wrong = invalid_subdomain(name)
    too_long = len(name) > _MAX_CRON_JOB
    return wrong or (f"must be no more than {_MAX_CRON_JOB} characters" if too_long else "")


_RULES: Final[Mapping[str, Rule]] = {
    "apiservices.apiregistration.k8s.io": _api_service,
    "certificatesigningrequests.certificates.k8s.io": _path_segment,
    "clusterrolebindings.rbac.authorization.k8s.io": _path_segment,
    "clusterroles.rbac.authorization.k8s.io": _path_segment,
    "clustertrustbundles.certificates.k8s.io": _trust_bundle,
    "cronjobs.batch": _cron_job,
    "ipaddresses.networking.k8s.io": _ip,
    "namespaces": _label,
    "rolebindings.rbac.authorization.k8s.io": _path_segment,
    "roles.rbac.authorization.k8s.io": _path_segment,
    "services": _label,
    "statefulsets.apps": _label,
}
"""The rules of names by resource; all other names are DNS subdomains."""
