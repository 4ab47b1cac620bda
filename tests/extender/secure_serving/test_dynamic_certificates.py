"""Reloading of certificates: an invalid pair is never loaded."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from structlog.testing import capture_logs

from extender.config.component_config import TlsConfig
from extender.secure_serving.dynamic_certificates import (
    CertificateError,
    CertificateReloader,
    load_serving_certificate,
)
from extender.secure_serving.self_signed import KeyPair
from tests.extender.conftest import HandClock
from tests.extender.secure_serving.conftest import YEAR_SECONDS, TlsFiles
from tests.faults.short_lived_certificates import self_signed


def clock_at(seconds: float) -> HandClock:
    clock = HandClock()
    clock.seconds = seconds
    return clock


def reloader_of(files: TlsFiles) -> CertificateReloader:
    return CertificateReloader(files.mutual, clock_at(time.time()))


def test_a_certificate_has_its_validity(files: TlsFiles) -> None:
    found = load_serving_certificate(files.mutual, time.time())
    assert 9.9 * YEAR_SECONDS < found.not_after - found.not_before < 10.1 * YEAR_SECONDS


def test_a_comment_in_another_encoding_does_not_matter(files: TlsFiles) -> None:
    pair = files.issue()
    commented = KeyPair("# Zürich\n".encode() + b"# \xfc\n" + pair.certificate, pair.key)
    files.mount("commented", commented)
    assert load_serving_certificate(files.mutual, time.time()).not_after > time.time()


def encrypted(files: TlsFiles) -> bytes:
    key = serialization.load_pem_private_key(files.issue().key, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


SPOILED: dict[str, tuple[Callable[[TlsFiles], bytes], str, str]] = {
    "no certificate": (lambda _: b"nothing", "tls.crt", "expected a certificate chain in PEM"),
    "empty": (lambda _: b"", "tls.crt", "expected a certificate chain in PEM"),
    "no key": (lambda _: b"nothing", "tls.key", "expected a certificate chain in PEM"),
    "another key": (
        lambda files: files.issue().key,
        "tls.key",
        "key values mismatch",
    ),
    "an encrypted key": (encrypted, "tls.key", "the key is encrypted; expected"),
    "no authority": (lambda _: b"", "ca.crt", "expected certificates of authorities in PEM"),
}


@pytest.mark.parametrize(("spoil", "file", "problem"), SPOILED.values(), ids=SPOILED)
def test_an_invalid_pair_is_reported_with_file_and_reason(
    files: TlsFiles,
    spoil: Callable[[TlsFiles], bytes],
    file: str,
    problem: str,
) -> None:
    path = files.folder / "data" / file
    path.write_bytes(spoil(files))
    with pytest.raises(CertificateError) as raised:
        load_serving_certificate(files.mutual, time.time())
    assert str(path) in str(raised.value)
    assert problem in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_client_certificate_is_not_valid_for_serving(files: TlsFiles) -> None:
    files.client("other")
    both = str(files.folder / "other.pem")
    with pytest.raises(CertificateError, match="is not valid for serving: "):
        load_serving_certificate(TlsConfig(both, both), time.time())


NAMES: dict[str, tuple[x509.GeneralName, ...]] = {
    "none": (),
    "a URI": (x509.UniformResourceIdentifier("https://127.0.0.1"),),
    "a mail address": (x509.RFC822Name("admin@example.com"),),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_certificate_without_a_host_in_its_alternative_names_is_refused(
    files: TlsFiles, names: tuple[x509.GeneralName, ...]
) -> None:
    now = time.time()
    nameless = self_signed(now - 60, now + 60, names=names)
    reloader = reloader_of(files)
    files.mount("nameless", nameless)
    problem = "tls.crt: has no subject alternative name; expected a DNS name or an IP address"
    with pytest.raises(CertificateError, match=problem):
        load_serving_certificate(files.mutual, now)
    reloader.reload()
    assert problem in reloader.error


@pytest.mark.parametrize(
    ("years", "problem"), [(11, "has expired; expected"), (-1, "is not valid yet; expected")]
)
def test_a_certificate_that_is_not_valid_now_is_refused(
    files: TlsFiles, years: int, problem: str
) -> None:
    with pytest.raises(CertificateError, match=problem):
        load_serving_certificate(files.tls, time.time() + years * YEAR_SECONDS)


def test_a_new_certificate_is_put_to_use(files: TlsFiles) -> None:
    reloader = reloader_of(files)
    before = reloader.context
    reloader.reload()
    assert reloader.context is before
    files.mount("second", files.issue())
    reloader.reload()
    assert reloader.context is not before
    assert (reloader.reloads, reloader.failures, reloader.warning()) == (1, 0, "")


def test_an_invalid_pair_is_not_loaded_and_logged_once(files: TlsFiles) -> None:
    reloader = reloader_of(files)
    before = reloader.context
    files.mount("second", files.issue(), key=files.issue().key)
    with capture_logs() as lines:
        reloader.reload()
        reloader.reload()
    assert reloader.context is before
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("certificate_not_reloaded", "error")
    ]
    assert reloader.warning().startswith("not reloaded; the previous one is served until 20")
    assert "key values mismatch" in reloader.warning()
    files.mount("third", files.issue())
    reloader.reload()
    assert reloader.context is not before
    assert (reloader.reloads, reloader.failures, reloader.warning()) == (1, 1, "")


def test_files_that_are_gone_leave_the_certificate_in_use(files: TlsFiles) -> None:
    reloader = reloader_of(files)
    before = reloader.context
    (files.folder / "data").unlink()
    reloader.reload()
    assert reloader.context is before
    assert "tls.crt: cannot be read: No such file or directory" in reloader.warning()


def test_restored_files_clear_the_error(files: TlsFiles) -> None:
    reloader = reloader_of(files)
    key = files.folder / "data" / "tls.key"
    good = key.read_bytes()
    key.write_bytes(b"half")
    reloader.reload()
    assert reloader.error
    key.write_bytes(good)
    reloader.reload()
    assert not reloader.error


def test_an_expiring_and_an_expired_certificate_are_logged(files: TlsFiles) -> None:
    clock = clock_at(time.time())
    reloader = CertificateReloader(files.tls, clock)
    clock.seconds = reloader.not_after - 6 * 86400
    assert reloader.warning().startswith("expires soon, at ")
    clock.seconds = reloader.not_after
    assert reloader.warning().endswith("; there is no newer one")
    assert reloader.warning().startswith("expired at ")
