"""Certificates are tried before they are used, and what is in use stays if the next is no good."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives import serialization
from structlog.testing import capture_logs

from extender.config.component_config import TlsConfig
from extender.secure_serving.dynamic_certificates import (
    CertificateError,
    CertificateReloader,
    load_serving_certificate,
)
from tests.extender.conftest import HandClock
from tests.extender.secure_serving.conftest import YEAR_SECONDS, Papers


def clock_at(seconds: float) -> HandClock:
    clock = HandClock()
    clock.seconds = seconds
    return clock


def rotation(papers: Papers) -> CertificateReloader:
    return CertificateReloader(papers.mutual, clock_at(time.time()))


def test_an_identity_tells_when_it_ends(papers: Papers) -> None:
    found = load_serving_certificate(papers.mutual, time.time())
    assert 9.9 * YEAR_SECONDS < found.not_after - found.not_before < 10.1 * YEAR_SECONDS


def encrypted(papers: Papers) -> bytes:
    key = serialization.load_pem_private_key(papers.issue().key, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


SPOILED: dict[str, tuple[Callable[[Papers], bytes], str, str]] = {
    "no certificate": (lambda _: b"nothing", "tls.crt", "expected a certificate chain in PEM"),
    "empty": (lambda _: b"", "tls.crt", "expected a certificate chain in PEM"),
    "no key": (lambda _: b"nothing", "tls.key", "expected a certificate chain in PEM"),
    "another key": (lambda papers: papers.issue().key, "tls.key", "key values mismatch"),
    "an encrypted key": (encrypted, "tls.key", "the key is encrypted; expected"),
    "no authority": (lambda _: b"", "ca.crt", "expected certificates of authorities in PEM"),
}


@pytest.mark.parametrize(("spoil", "file", "problem"), SPOILED.values(), ids=SPOILED)
def test_an_invalid_pair_is_reported_with_file_and_reason(
    papers: Papers, spoil: Callable[[Papers], bytes], file: str, problem: str
) -> None:
    path = papers.folder / "data" / file
    path.write_bytes(spoil(papers))
    with pytest.raises(CertificateError) as raised:
        load_serving_certificate(papers.mutual, time.time())
    assert str(path) in str(raised.value)
    assert problem in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_client_certificate_is_not_good_for_serving(papers: Papers) -> None:
    papers.client("somebody")
    both = str(papers.folder / "somebody.pem")
    with pytest.raises(CertificateError, match="is not valid for serving: "):
        load_serving_certificate(TlsConfig(both, both), time.time())


@pytest.mark.parametrize(
    ("years", "problem"), [(11, "has expired; expected"), (-1, "is not valid yet; expected")]
)
def test_one_that_is_not_valid_now_is_refused(papers: Papers, years: int, problem: str) -> None:
    with pytest.raises(CertificateError, match=problem):
        load_serving_certificate(papers.tls, time.time() + years * YEAR_SECONDS)


def test_a_new_certificate_is_put_to_use(papers: Papers) -> None:
    turning = rotation(papers)
    before = turning.context
    turning.reload()
    assert turning.context is before
    papers.mount("second", papers.issue())
    turning.reload()
    assert turning.context is not before
    assert (turning.reloads, turning.failures, turning.warning()) == (1, 0, "")


def test_an_invalid_pair_is_not_loaded_and_logged_once(papers: Papers) -> None:
    turning = rotation(papers)
    before = turning.context
    papers.mount("second", papers.issue(), key=papers.issue().key)
    with capture_logs() as lines:
        turning.reload()
        turning.reload()
    assert turning.context is before
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("certificate_not_reloaded", "error")
    ]
    assert turning.warning().startswith("not reloaded; the previous one is served until 20")
    assert "key values mismatch" in turning.warning()
    papers.mount("third", papers.issue())
    turning.reload()
    assert turning.context is not before
    assert (turning.reloads, turning.failures, turning.warning()) == (1, 1, "")


def test_files_that_are_gone_leave_the_certificate_in_use(papers: Papers) -> None:
    turning = rotation(papers)
    before = turning.context
    (papers.folder / "data").unlink()
    turning.reload()
    assert turning.context is before
    assert "tls.crt: cannot be read: No such file or directory" in turning.warning()


def test_restored_files_clear_the_error(papers: Papers) -> None:
    turning = rotation(papers)
    key = papers.folder / "data" / "tls.key"
    good = key.read_bytes()
    key.write_bytes(b"half")
    turning.reload()
    assert turning.error
    key.write_bytes(good)
    turning.reload()
    assert not turning.error


def test_an_expiring_and_an_expired_certificate_are_logged(papers: Papers) -> None:
    clock = clock_at(time.time())
    turning = CertificateReloader(papers.tls, clock)
    clock.seconds = turning.not_after - 6 * 86400
    assert turning.warning().startswith("expires soon, at ")
    clock.seconds = turning.not_after
    assert turning.warning().endswith("; there is no newer one")
    assert turning.warning().startswith("expired at ")
