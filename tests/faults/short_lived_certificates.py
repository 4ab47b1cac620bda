"""Certificates of 127.0.0.1 with given times of validity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HERE = x509.IPAddress(ip_address("127.0.0.1"))


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, PEM; valid from ``begins`` to ``ends``, in epoch seconds."""

    certificate: bytes
    key: bytes
    begins: int
    ends: int

    def good_at(self, now: float) -> bool:
        """Return whether it is valid."""
        return self.begins <= now < self.ends


def self_signed(
    begins: float,
    ends: float,
    number: int = 0,
    names: Sequence[x509.GeneralName] = (_HERE,),
) -> Pair:
    """Build a certificate of 127.0.0.1, or of ``names``; each ``number`` has a key."""
    key = _key(number)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"here-{number}")])
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(_EPOCH + timedelta(seconds=int(begins)))
        .not_valid_after(_EPOCH + timedelta(seconds=int(ends)))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    written = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(certificate.public_bytes(pem), written, int(begins), int(ends))


@cache
def _key(_number: int) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())
