"""Validation of a configuration before it is served: fields together, and the files they name.

``reprieve check-config`` does nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
import typer

from extender.config.access_token import VARIABLE, read_token
from extender.config.component_config import (
    Config,
    LedgerConfig,
    Mode,
    PageConfig,
    PartialConfig,
    TracingConfig,
    read_config,
    validate_filters,
)
from extender.config.preemption_policy import find_policy
from extender.config.strict_decoding import ConfigError
from extender.kube.rest.clock import Clock, SystemClock
from extender.secure_serving.dynamic_certificates import CertificateError, load_serving_certificate
from extender.terminal.program import log_line
from policies.engine_selection import VECTORIZED
from policies.kubernetes.releases import UnknownReleaseError, gate_warnings, release

EXAMPLE: Final = "check-config reprieve.yaml"
_LEAST_SILENCE_SECONDS: Final = 75
"""A shorter silence is usual on a watch without changes: bookmarks come about once a minute."""
_PREFIX: Final = re.compile(r"/?[\w.~-]+(/[\w.~-]+)*/?", re.ASCII)


class InvalidConfigError(ConfigError):
    """A configuration file can be read, and is invalid."""


def check_config(
    file: Annotated[Path, typer.Argument(metavar="F", help="A configuration file, as for serve.")],
) -> None:
    """Validate a configuration file, and print all of its errors.

    Exit with 1 if it is invalid, and with 2 if it cannot be read.
    """
    try:
        config = load_serving_config(file, {}, SystemClock())
    except InvalidConfigError as error:
        for problem in error.errors:
            log_line(" ".join(problem.split()))
        raise typer.Exit(1) from None
    log_gate_warnings(config)
    log_interval_warnings(config)
    print(f"{file}: valid")  # noqa: T201 - the answer


@dataclass(frozen=True, slots=True)
class LedgerFlags:
    """The flags of the command line about the ledger and its page."""

    location: str | None = None
    snapshots: bool = False
    port: int | None = None

    def apply(self, config: Config) -> Config:
        """Return the configuration with these flags. Raise ConfigError."""
        ledger, page = config.ledger, config.page
        if self.location is not None:
            if not self.location:
                raise ConfigError("--ledger: expected a path, or postgresql://…")
            ledger = msgspec.structs.replace(
                ledger or LedgerConfig(self.location), location=self.location
            )
        if self.snapshots:
            if ledger is None:
                raise ConfigError("--ledger-snapshots: expected --ledger as well")
            ledger = msgspec.structs.replace(ledger, snapshots=True)
        if self.port is not None:
            page = msgspec.structs.replace(page or PageConfig(), port=self.port)
        return msgspec.structs.replace(config, ledger=ledger, page=page)


NO_LEDGER_FLAGS: Final = LedgerFlags()


def load_serving_config(
    path: Path | None,
    overrides: Mapping[str, Any],
    clock: Clock,
    ledger: LedgerFlags = NO_LEDGER_FLAGS,
) -> Config:
    """Return the configuration from ``path``, overridden by ``overrides``, the fields set by flags.

    Raise InvalidConfigError with all errors, or another ConfigError if the file cannot be read.
    Certificates are validated at the clock's time.
    """
    read = PartialConfig(Config()) if path is None else read_config(path)
    config = ledger.apply(msgspec.structs.replace(read.value, **overrides))

    def place(text: str) -> str:
        field = text.partition(":")[0].partition(".")[0]
        return f"--{text}" if field in overrides else read.locate(text)

    errors = (*read.errors, *validate_config(config, clock.now_ns() / 1e9, place))
    if "tls" not in read.invalid_fields:
        errors = (*errors, *validate_insecure_serving(config, place))
    if errors:
        raise InvalidConfigError(*errors)
    return config


def log_gate_warnings(settings: Config) -> None:
    """Log one line for each feature gate that has no effect in the configured release."""
    for warning in gate_warnings(settings.upstream, settings.feature_gates):
        log_line(f"featureGates: {warning}")


def log_interval_warnings(settings: Config) -> None:
    """Log one line for each interval that is shorter than the one between two bookmarks."""
    intervals = {
        "staleSeconds": (settings.stale_seconds, "is not ready"),
        "watchSilenceSeconds": (settings.watch_silence_seconds, "restarts its watches"),
    }
    for field, (seconds, effect) in intervals.items():
        if seconds < _LEAST_SILENCE_SECONDS:
            log_line(
                f"{field}: {seconds:g} is short: API servers send bookmarks about once a minute, "
                f"so that the extender {effect} between two of them; expected at least "
                f"{_LEAST_SILENCE_SECONDS}"
            )


def log_engine_warning() -> None:
    """Log one line if the vectorized engine is not installed."""
    if not VECTORIZED:
        log_line(
            "the vectorized engine needs the extra 'vectorized': pip install 'reprieve[vectorized]'"
            "; without it, a decision over 1,000 nodes takes about a second"
        )


def validate_config(config: Config, now: float, locate: Callable[[str], str]) -> Iterator[str]:
    """Yield one line for each error that keeps a configuration from being served.

    ``locate`` returns a field with its source, a file or a flag. ``now`` is in epoch seconds.
    """
    yield from map(locate, (*_validate_host(config.host), *validate_filters(config)))
    try:
        release(config.upstream)
    except UnknownReleaseError as error:
        yield f"{locate('upstream')}: {error}"
    yield from _validate_policies(config, locate)
    yield from map(locate, _validate_path_prefixes(config.path_prefixes))
    yield from _validate_certificates(config, now, locate)
    yield from map(locate, _validate_tracing(config.tracing))
    yield from map(locate, _validate_page(config))
    if config.workers > 1 and config.ledger is not None:
        yield locate(f"workers: {config.workers}; expected 1 with a ledger, which has one writer")


def _validate_policies(config: Config, locate: Callable[[str], str]) -> Iterator[str]:
    fields = {"policy": config.policy}
    fields |= {f"shadow[{index}]": each for index, each in enumerate(config.shadow)}
    recorded: dict[str, str] = {}
    for field, name_or_path in fields.items():
        try:
            name = find_policy(name_or_path).name
        except ConfigError as error:
            yield from (f"{locate(field)}: {problem}" for problem in error.errors)
            continue
        if field == "policy" and config.mode is Mode.ENFORCE:
            continue
        if name in recorded:
            yield (
                f"{locate(field)}: {name!r} is the name in {recorded[name]} as well; "
                "expected policies of different names"
            )
        recorded.setdefault(name, field)


def _validate_host(host: str) -> Iterator[str]:
    try:
        valid = b"\0" not in host.encode("idna")
    except UnicodeError:  # a label is empty, too long, or has invalid characters
        valid = False
    if not valid:
        yield f"host: {host!r} is not a valid host; expected an address or a name"


def validate_insecure_serving(config: Config, locate: Callable[[str], str]) -> Iterator[str]:
    """Yield an error if plain HTTP is served beyond loopback without ``allowPlainHTTP``."""
    if config.tls is None and not config.allow_plain_http and not is_loopback(config.host):
        yield (
            f"{locate('host')}: {config.host} is no loopback address, and there is no tls; "
            "expected tls, a loopback address, or allowPlainHTTP: true"
        )


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _validate_path_prefixes(prefixes: Iterable[str]) -> Iterator[str]:
    served: set[str] = set()
    for index, prefix in enumerate(prefixes):
        place, path = f"pathPrefixes[{index}]", prefix.strip("/")
        if not _PREFIX.fullmatch(prefix):
            yield f"{place}: {prefix!r}; expected a path such as /scheduler, of plain characters"
        elif path in served:
            yield f"{place}: {prefix!r} is served already; expected each only once"
        served.add(path)


def _validate_page(config: Config) -> Iterator[str]:
    page = config.page
    if page is None:
        return
    if config.ledger is None:
        yield "page: shows the ledger; expected ledger as well"
    if page.port and page.port == config.port:
        yield f"page.port: {page.port} is the port of the extender; expected another"
    yield from (f"page.{problem}" for problem in _validate_host(page.host))
    if config.tls is None and not config.allow_plain_http and not is_loopback(page.host):
        yield (
            f"page.host: {page.host} is no loopback address, and there is no tls; expected tls, a "
            "loopback address, or allowPlainHTTP: true"
        )
    try:
        if not read_token(page.token_file):
            yield f"page: needs a token; expected page.tokenFile, or ${VARIABLE}"
    except ConfigError as error:
        yield from (f"page.tokenFile: {problem}" for problem in error.errors)


def _validate_tracing(tracing: TracingConfig | None) -> Iterator[str]:
    if tracing is None:
        return
    if not _is_collector_url(tracing.endpoint):
        yield (
            "tracing.endpoint: expected a URL such as http://127.0.0.1:4318/v1/traces, without a "
            "user or password"
        )
    try:
        import extender.observability.opentelemetry_export  # noqa: F401 - loaded only if tracing is configured
    except ImportError:
        yield (
            "tracing: needs OpenTelemetry, which is not installed; expected "
            "pip install 'reprieve[otel]', or no tracing"
        )


def _is_collector_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return False
    return bool(known) and "@" not in parts.netloc


def _validate_certificates(
    config: Config, now: float, locate: Callable[[str], str]
) -> Iterator[str]:
    tls = config.tls
    if tls is None:
        return
    if tls.allowed_client_names and not tls.client_ca:
        yield f"{locate('tls.allowedClientNames')}: requires tls.clientCA"
    try:
        load_serving_certificate(tls, now)
    except CertificateError as error:
        yield from map(locate, error.errors)
