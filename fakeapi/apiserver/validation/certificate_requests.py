"""Validation of CertificateSigningRequests: the PKCS #10 request, usages, and the signer's name.

Without the extra ``tls`` only the PEM block of the request is checked.

Sources: pkg/apis/certificates/validation, ValidateSignerName in pkg/apis/core/validation/names.go,
v1.37; encoding/pem, crypto/x509 and encoding/asn1 of Go for the words of errors.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    invalid_value,
    required,
    unsupported_value,
)
from policies.kubernetes.name_validation import invalid_dns_label, invalid_subdomain

Object = Mapping[str, Any]

_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_MIN_SECONDS: Final = 600
_LONG_FORM: Final = 0x80
_HEADER_BYTES: Final = 2
_SEQUENCE: Final = 0x30
_STRUCTURE: Final = "asn1: structure error: not a PKCS #10 certificate request"
_LEGACY: Final = "kubernetes.io/legacy-unknown"
_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([^\n]*)-----[ \t\r]*\n((?:[^\n:]+:[^\n]*\n)*)(.*?)^-----END \1-----",
    re.DOTALL | re.MULTILINE,
)


def certificate_request_errors(request: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a CertificateSigningRequest's spec."""
    spec = request.get("spec") or {}
    encoded = spec.get("request")
    wrong = _request_error(b64decode(encoded or ""))
    if wrong:
        yield invalid_value("spec.request", encoded, wrong)
    yield from _usage_errors(spec.get("usages") or ())
    signer, seconds = spec.get("signerName", ""), spec.get("expirationSeconds")
    if signer == _LEGACY:
        rule = "the legacy signerName is not allowed via this API version"
        yield invalid_value("spec.signerName", signer, rule)
    else:
        yield from _signer_errors(signer, "spec.signerName")
    if seconds is not None and seconds < _MIN_SECONDS:
        rule = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid_value("spec.expirationSeconds", seconds, rule)


def certificate_errors(request: Object, _old: Object) -> Iterator[Cause]:
    """Yield the error of the certificate in a CertificateSigningRequest's status."""
    pem = b64decode((request.get("status") or {}).get("certificate") or "")
    types = [match[1].decode(errors="replace") for match in _BLOCK.finditer(pem)]
    other = next((each for each in types if each != "CERTIFICATE"), None)
    rule = ""
    if other is not None:
        rule = f"only CERTIFICATE PEM blocks are allowed, found {orjson.dumps(other).decode()}"
    elif pem and not types:
        rule = "must contain at least one CERTIFICATE PEM block"
    if rule:
        yield invalid_value("status.certificate", "<certificate data>", rule)


def _request_error(pem: bytes) -> str:
    match = next((each for each in _BLOCK.finditer(pem) if _decoded(each[3]) is not None), None)
    if match is None or match[1] != b"CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    return _der_error(_decoded(match[3]) or b"")


def _decoded(body: bytes) -> bytes | None:
    try:
        return b64decode(b"".join(body.split()), validate=True)
    except ValueError:
        return None


def _der_error(der: bytes) -> str:
    if len(der) < _HEADER_BYTES:
        return "asn1: syntax error: sequence truncated"
    if der[0] != _SEQUENCE:
        return _STRUCTURE
    end = _HEADER_BYTES + der[1]
    if der[1] >= _LONG_FORM:
        start = _HEADER_BYTES + der[1] - _LONG_FORM
        end = start + int.from_bytes(der[_HEADER_BYTES:start], "big")
    if end > len(der):
        return "asn1: syntax error: data truncated"
    return _signature_error(der[:end]) or (
        "asn1: syntax error: trailing data" if end < len(der) else ""
    )


def _signature_error(der: bytes) -> str:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519
        from cryptography.x509 import load_der_x509_csr
    except ImportError:
        return ""
    try:
        request = load_der_x509_csr(der)
        if request.is_signature_valid:
            return ""
    except (ValueError, UnsupportedAlgorithm):
        return _STRUCTURE
    key = request.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "x509: ECDSA verification failure"
    if isinstance(key, ed25519.Ed25519PublicKey):
        return "x509: Ed25519 verification failure"
    return "crypto/rsa: verification error"


def _usage_errors(usages: tuple[str, ...]) -> Iterator[Cause]:
    if not usages:
        yield required("spec.usages")
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            yield unsupported_value(f"spec.usages[{index}]", usage, _USAGES)
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            yield duplicate(f"spec.usages[{index}]", usage)


def _signer_errors(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        rule = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid_value(path, name, rule)
        return
    for text, check in ((domain, invalid_dns_label), (rest, invalid_subdomain)):
        wrong = next(((part, check(part)) for part in text.split(".") if check(part)), None)
        if wrong is not None:
            quoted = orjson.dumps(wrong[0]).decode()
            yield invalid_value(path, text, f"validating label {quoted}: {wrong[1]}")
        if text is domain and "." not in domain:
            rule = "should be a domain with at least two segments separated by dots"
            yield invalid_value(path, domain, rule)
