"""Self-signed serving certificates: a certificate authority in memory, and what it issues.

Nothing is kept on disk. Keys use the curve P-256. Those of clients are RSA keys in PKCS #1, which
all clients read (fabric8 for Java expects them by default). Certificates are valid for ten years
from the previous day, by the host's clock, because the clients check them. Requires the extra
``tls``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_RSA_EXPONENT: Final = 65_537
_RSA_BITS: Final = 2048
_LIFETIME: Final = timedelta(days=3650)
_NO_KEY_USAGE: Final = {
    "digital_signature": False,
    "content_commitment": False,
    "key_encipherment": False,
    "data_encipherment": False,
    "key_agreement": False,
    "key_cert_sign": False,
    "crl_sign": False,
    "encipher_only": False,
    "decipher_only": False,
}
_CA_KEY_USAGE: Final = x509.KeyUsage(**{**_NO_KEY_USAGE, "key_cert_sign": True, "crl_sign": True})
_LEAF_KEY_USAGE: Final = x509.KeyUsage(**{**_NO_KEY_USAGE, "digital_signature": True})


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class CertificateAuthority:
    """A certificate authority whose key exists only in this object."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("fakeapi-ca")
        builder = _builder(self._name, self._name, self._key.public_key())
        for extension in (x509.BasicConstraints(ca=True, path_length=0), _CA_KEY_USAGE):
            builder = builder.add_extension(extension, critical=True)
        self._certificate = self._sign(builder)

    @property
    def certificate(self) -> bytes:
        """The certificate of the certificate authority, PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue_server(self, hosts: Sequence[str]) -> KeyPair:
        """Issue a serving certificate for these host names and addresses."""
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        key = ec.generate_private_key(ec.SECP256R1())
        return self._issue(key, _name(hosts[0]), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def issue_client(self, name: str, groups: Sequence[str] = ()) -> KeyPair:
        """Issue a client certificate: the user is the common name, groups are organizations."""
        key = rsa.generate_private_key(_RSA_EXPONENT, _RSA_BITS)
        return self._issue(key, _name(name, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        key: _PrivateKey,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        builder = _builder(subject, self._name, key.public_key())
        for extension in (x509.BasicConstraints(ca=False, path_length=None), _LEAF_KEY_USAGE):
            builder = builder.add_extension(extension, critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return KeyPair(self._sign(builder).public_bytes(serialization.Encoding.PEM), _pem(key))

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        return builder.sign(self._key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
) -> x509.CertificateBuilder:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=yesterday,
        not_valid_after=yesterday + _LIFETIME,
        extensions=[
            x509.Extension(
                x509.SubjectKeyIdentifier.oid,
                critical=False,
                value=x509.SubjectKeyIdentifier.from_public_key(key),
            )
        ],
    )


def _name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    pairs = [(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    pairs.append((NameOID.COMMON_NAME, common))
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in pairs])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: _PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
