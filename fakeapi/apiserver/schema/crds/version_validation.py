"""Validation of a definition's versions and of the conversion between them.

Versions have columns, subresources, selectable fields and warnings; a conversion has the client
configuration of its webhook.

Sources: pkg/apis/apiextensions/validation/validation.go of k8s.io/apiextensions-apiserver,
k8s.io/apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from fakeapi.apiserver.schema.cel.field_paths import FieldPathError, find_field
from fakeapi.apiserver.schema.crds.schema_validation import schema_errors
from fakeapi.apiserver.schema.structural.schema_errors import too_many_at
from fakeapi.apiserver.schema.structural.schema_tree import Json, node_of
from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from policies.kubernetes.name_validation import invalid_dns1035_label, invalid_subdomain

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
)
_MOST_SELECTABLE: Final = 8
_LONGEST_WARNING: Final = 256
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")
_SELECTABLE_RULE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)


def version_errors(version: Json, path: str, *, has_status: bool) -> Iterator[Cause]:
    """Return the errors of one version, except those of values that all versions share."""
    yield from _warning_errors(version, path)
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None:
        yield from schema_errors(schema, f"{path}.schema.openAPIV3Schema", has_status=has_status)
    yield from subresource_errors(version.get("subresources") or {}, f"{path}.subresources")
    columns = version.get("additionalPrinterColumns") or ()
    yield from column_errors(columns, f"{path}.additionalPrinterColumns")
    selectable = version.get("selectableFields") or ()
    yield from selectable_field_errors(selectable, schema, f"{path}.selectableFields")


def _warning_errors(version: Json, path: str) -> Iterator[Cause]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    where = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield invalid_value(where, warning, "can only be set for deprecated versions")
    if len(warning) > _LONGEST_WARNING:
        yield invalid_value(where, warning, f"must be <= {_LONGEST_WARNING} characters long")
    if not warning:
        yield invalid_value(where, warning, "must not be an empty string")
    for index, character in enumerate(warning):
        if not character.isprintable():
            rule = (
                "must only contain printable UTF-8 characters; non-printable character found at "
                f"index {index}"
            )
            yield invalid_value(where, warning, rule)
            return


def column_errors(columns: Sequence[Json], path: str) -> Iterator[Cause]:
    """Return the errors of printer columns."""
    types, formats = ",".join(_COLUMN_TYPES), ",".join(_COLUMN_FORMATS)
    for index, column in enumerate(columns):
        where = f"{path}[{index}]"
        if not column.get("name"):
            yield required(f"{where}.name")
        kind, form = column.get("type", ""), column.get("format")
        if not kind:
            yield required(f"{where}.type", f"must be one of {types}")
        elif kind not in _COLUMN_TYPES:
            yield invalid_value(f"{where}.type", kind, f"must be one of {types}")
        if form and form not in _COLUMN_FORMATS:
            yield invalid_value(f"{where}.format", form, f"must be one of {formats}")
        if not column.get("jsonPath"):
            yield required(f"{where}.JSONPath")
        else:
            yield from _simple_path_errors(column["jsonPath"], f"{where}.JSONPath")


def _simple_path_errors(text: str, path: str) -> Iterator[Cause]:
    if not text.startswith("."):
        yield invalid_value(path, text, "must be a simple json path starting with .")


def subresource_errors(subresources: Json, path: str) -> Iterator[Cause]:
    """Return the errors of a scale subresource's paths."""
    scale = subresources.get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        where, text = f"{path}.scale.{name}", scale.get(name)
        if not text:
            yield required(where)
        elif wrong := list(_simple_path_errors(text, where)):
            yield from wrong
        elif not text.startswith(root):
            yield invalid_value(where, text, f"should be a json path under {root.rstrip('.')}")
    where, text = f"{path}.scale.labelSelectorPath", scale.get("labelSelectorPath")
    if not text:
        return
    if wrong := list(_simple_path_errors(text, where)):
        yield from wrong
    elif not text.startswith((".spec.", ".status.")):
        yield invalid_value(where, text, "should be a json path under either .spec or .status")


def selectable_field_errors(
    fields: Sequence[Json], schema: Json | None, path: str
) -> Iterator[Cause]:
    """Return the errors of selectable fields."""
    if not fields:
        return
    if schema is None:
        rule = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield invalid_value(path, "", rule)
        return
    node = node_of(schema)
    seen: set[str] = set()
    for index, field in enumerate(fields):
        text, where = field.get("jsonPath", ""), f"{path}[{index}].jsonPath"
        if not text:
            yield required(where)
            continue
        try:
            spelled, found = find_field(text, node, brackets=False)
        except FieldPathError as error:
            yield invalid_value(where, text, f"is an invalid path: {error}")
            continue
        if spelled.partition(".")[0] == "metadata":
            yield invalid_value(where, text, "must not point to fields in metadata")
        if found is None or found.type not in _SELECTABLE_TYPES:
            yield invalid_value(where, text, _SELECTABLE_RULE)
        if spelled in seen:
            yield duplicate(where, text)
        seen.add(spelled)
    if len(seen) > _MOST_SELECTABLE:
        yield too_many_at(path, len(seen), _MOST_SELECTABLE)


_STRATEGIES: Final = ("None", "Webhook")
REVIEWS: Final = ("v1", "v1beta1")
_FORM: Final = "; desired format: https://host[/path]"
_LAST_PORT: Final = 65_535
_UNASKED: Final = "should not be set when strategy is not set to Webhook"
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"


def conversion_errors(conversion: Json, path: str, *, established: bool) -> Iterator[Cause]:
    """Return the errors of a conversion; the CA bundle is checked if the CRD is established."""
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook") or {}
    if not strategy:
        yield required(f"{path}.strategy")
    elif strategy not in _STRATEGIES:
        yield unsupported_value(f"{path}.strategy", strategy, _STRATEGIES)
    config, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    if strategy != "Webhook":
        if config is not None:
            yield forbidden_field(f"{path}.webhookClientConfig", _UNASKED)
        if reviews:
            yield forbidden_field(f"{path}.conversionReviewVersions", _UNASKED)
        return
    yield from client_config_errors(config, f"{path}.webhookClientConfig", established=established)
    yield from review_version_errors(reviews or (), f"{path}.conversionReviewVersions")


def client_config_errors(config: Json | None, path: str, *, established: bool) -> Iterator[Cause]:
    """Return the errors of a webhook's clientConfig."""
    if config is None:
        yield required(path, "required when strategy is set to Webhook")
        return
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from url_errors(url, f"{path}.url")
    elif service is not None:
        yield from service_errors(service, f"{path}.service")
    bundle = config.get("caBundle")
    if bundle and established and not is_ca_bundle(bundle):
        rule = "unable to load root certificates: unable to parse bytes as PEM block"
        yield invalid_value(f"{path}.caBundle", bundle, rule)


def is_ca_bundle(bundle: str) -> bool:
    """Return whether a text is base64 that contains the PEM header of a certificate."""
    return _CERTIFICATE in b64decode(bundle)


def url_errors(url: str, path: str) -> Iterator[Cause]:
    """Return the errors of a webhook's URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        rule = f"'https' is the only allowed URL scheme{_FORM}"
        yield invalid_value(path, parts.scheme, rule)
    if not parts.netloc:
        yield invalid_value(path, "", f"host must be specified{_FORM}")
    if parts.username is not None:
        user = parts.netloc.rpartition("@")[0]
        yield invalid_value(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid_value(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid_value(path, parts.query, "query parameters are not permitted in the URL")


def service_errors(service: Json, path: str) -> Iterator[Cause]:
    """Return the errors of a webhook's service reference."""
    for name in ("name", "namespace"):
        if not service.get(name):
            yield required(f"{path}.{name}", f"service {name} is required")
    port = service.get("port", 443)
    if not 0 < port <= _LAST_PORT:
        rule = f"port is not valid: must be between 1 and {_LAST_PORT}, inclusive"
        yield invalid_value(f"{path}.port", port, rule)
    yield from _path_errors(service.get("path") or "", f"{path}.path")


def _path_errors(text: str, path: str) -> Iterator[Cause]:
    if text in ("", "/"):
        return
    if text == "//":
        yield invalid_value(path, text, "segment[0] may not be empty")
        return
    if not text.startswith("/"):
        yield invalid_value(path, text, "must start with a '/'")
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid_value(path, text, f"segment[{index}] may not be empty")
        elif wrong := invalid_subdomain(step):
            yield invalid_value(path, text, f"segment[{index}]: {wrong}")


def review_version_errors(
    versions: Sequence[str], path: str, empty_message: str = ""
) -> Iterator[Cause]:
    """Return the errors of review versions; ``none`` is the message for an empty list."""
    if not versions:
        yield required(path, empty_message)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid_value(f"{path}[{index}]", version, "duplicate version")
        elif wrong := invalid_dns1035_label(version):
            yield invalid_value(f"{path}[{index}]", version, wrong)
    if not set(REVIEWS) & set(versions):
        rule = f"must include at least one of {', '.join(REVIEWS)}"
        yield invalid_value(path, list(versions), rule)
