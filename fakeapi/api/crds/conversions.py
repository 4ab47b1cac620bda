"""Validation of a definition's conversion, and of the client configuration of webhooks.

Sources: validateCustomResourceConversion in pkg/apis/apiextensions/validation/validation.go of
k8s.io/apiextensions-apiserver, k8s.io/apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from fakeapi.api.causes import forbidden_field, invalid_value, required, unsupported_value
from fakeapi.api.errors import Cause
from fakeapi.api.structural.nodes import Json
from policies.naming import invalid_dns1035_label, invalid_subdomain

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
