"""Load a KubeSchedulerConfiguration: profiles and extenders, validated as kube-scheduler does.

    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles:
    - schedulerName: default-scheduler
      pluginConfig:
      - name: DefaultPreemption
        args: {minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100}
    extenders:
    - {urlPrefix: "http://127.0.0.1:8888", filterVerb: filter, preemptVerb: preempt}

Fields about the process (leader election, client connection, bind addresses, parallelism) are
accepted and ignored, and so are plugins that neither filter nor preempt. A profile may disable
filters and preemption.

Sources: pkg/scheduler/apis/config (types.go, validation), buildExtenders in scheduler.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final

import msgspec
import yaml

from extender.config.plugin_args import (
    DefaultPreemptionArgs,
    DefaultPreemptionConfig,
    ManagedResource,
    PluginConfig,
    filter_settings,
)
from extender.config.strict_decoding import ConfigError
from extender.kube.decoders.typed_decoder import FieldError
from extender.kube.decoders.yaml_loader import load_document
from fakeapi.controlplane.scheduler.configuration import (
    ExtenderConfig,
    Profile,
    SchedulerConfiguration,
    StrictConfig,
    plain_extender,
)
from fakeapi.controlplane.scheduler.options import ConfigurationSource, SchedulerConfigError
from policies.kubernetes.releases import NEWEST, Release
from policies.kubernetes.snapshot import DEFAULT_SCHEDULER
from policies.preemption.filtering import IN_TREE, configured_filters
from policies.preemption.policy import SchedulerRules

_API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
_KIND: Final = "KubeSchedulerConfiguration"
_PREEMPTION: Final = "DefaultPreemption"
_NATIVE_DOMAIN: Final = "kubernetes.io/"

_Percentage = Annotated[int, msgspec.Meta(ge=0, le=100)]
_Seconds = Annotated[int, msgspec.Meta(ge=0)]


class _Plugin(StrictConfig, frozen=True):
    name: str
    weight: int = 0


class _PluginSet(StrictConfig, frozen=True):
    enabled: tuple[_Plugin, ...] = ()
    disabled: tuple[_Plugin, ...] = ()


class _Plugins(StrictConfig, frozen=True):
    multi_point: _PluginSet = _PluginSet()
    filter: _PluginSet = _PluginSet()
    post_filter: _PluginSet = _PluginSet()
    pre_enqueue: object = None
    queue_sort: object = None
    pre_filter: object = None
    pre_score: object = None
    score: object = None
    reserve: object = None
    permit: object = None
    pre_bind: object = None
    bind: object = None
    post_bind: object = None


class _Profile(StrictConfig, frozen=True):
    scheduler_name: str = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: _Percentage | None = None
    plugins: _Plugins = _Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class _ConfigurationFile(StrictConfig, frozen=True):
    api_version: str = _API_VERSION
    kind: str = _KIND
    parallelism: int = 16
    leader_election: object = None
    client_connection: object = None
    health_z_bind_address: object = msgspec.field(default=None, name="healthzBindAddress")
    metrics_bind_address: object = None
    enable_profiling: object = None
    enable_contention_profiling: object = None
    delay_cache_until_active: object = None
    percentage_of_nodes_to_score: _Percentage | None = None
    pod_initial_backoff_seconds: _Seconds = 1
    pod_max_backoff_seconds: _Seconds = 10
    profiles: tuple[_Profile, ...] = (_Profile(),)
    extenders: tuple[ExtenderConfig, ...] = ()


def load_scheduler_configuration(
    document: ConfigurationSource = "", release: Release = NEWEST, extenders: Iterable[str] = ()
) -> SchedulerConfiguration:
    """Return a configuration, with plain extenders added for URLs that it does not have.

    Raises SchedulerConfigError.
    """
    file = _decode(document) if document else _ConfigurationFile()
    prefixes = {each.url_prefix.rstrip("/") for each in file.extenders}
    more = [plain_extender(url) for url in extenders if url.rstrip("/") not in prefixes]
    try:
        return _build(file, (*file.extenders, *more), release)
    except (ConfigError, FieldError) as error:
        raise SchedulerConfigError(str(error)) from None


def _decode(document: ConfigurationSource) -> _ConfigurationFile:
    try:
        parsed = load_document(document) if isinstance(document, str | bytes) else document
        return msgspec.convert(parsed, _ConfigurationFile)
    except yaml.YAMLError as error:
        raise SchedulerConfigError(f"not YAML: {' '.join(str(error).split())}") from None
    except msgspec.ValidationError as error:
        text = " ".join(str(error).split()).replace("`", "")
        problem, _, place = text.partition(" - at ")
        where = place.removeprefix("$").removeprefix(".") or "(the document)"
        raise SchedulerConfigError(f"{where}: {problem[:1].lower()}{problem[1:]}") from None


def _build(
    file: _ConfigurationFile, extenders: Sequence[ExtenderConfig], release: Release
) -> SchedulerConfiguration:
    _check_file(file)
    _check_extenders(extenders)
    managed = [each for extender in extenders for each in extender.managed_resources]
    profiles = {
        each.scheduler_name: _profile(f"profiles[{index}]", each, file, managed, release)
        for index, each in enumerate(file.profiles)
    }
    return SchedulerConfiguration(
        profiles,
        sorted(extenders, key=lambda extender: extender.ignorable),
        float(file.pod_initial_backoff_seconds or 1),
        float(file.pod_max_backoff_seconds or 10),
    )


def _check_file(file: _ConfigurationFile) -> None:
    for name, value, expected in (
        ("apiVersion", file.api_version, _API_VERSION),
        ("kind", file.kind, _KIND),
    ):
        if value != expected:
            raise FieldError(name, f"expected {expected}, got {value!r}")
    if not file.profiles:
        raise FieldError("profiles", "expected at least one")
    names = Counter(each.scheduler_name for each in file.profiles)
    for index, each in enumerate(file.profiles):
        if not each.scheduler_name or names[each.scheduler_name] > 1:
            problem = (
                "expected one that no other profile has" if each.scheduler_name else "required"
            )
            raise FieldError(f"profiles[{index}].schedulerName", problem)
    if file.pod_max_backoff_seconds < file.pod_initial_backoff_seconds:
        raise FieldError("podMaxBackoffSeconds", "expected at least podInitialBackoffSeconds")


def _check_extenders(extenders: Sequence[ExtenderConfig]) -> None:
    binders = 0
    managed: set[str] = set()
    for index, each in enumerate(extenders):
        place = f"extenders[{index}]"
        if not each.url_prefix:
            raise FieldError(f"{place}.urlPrefix", "required")
        if each.prioritize_verb and each.weight <= 0:
            raise FieldError(f"{place}.weight", "must have a positive weight applied to it")
        binders += bool(each.bind_verb)
        for problem in _managed_resource_errors(each, managed):
            raise FieldError(f"{place}.managedResources", problem)
        _check_timeout(f"{place}.httpTimeout", each)
    if binders > 1:
        raise FieldError("extenders", f"found {binders} extenders implementing bind")


def _managed_resource_errors(extender: ExtenderConfig, resources: set[str]) -> Iterator[str]:
    for each in extender.managed_resources:
        if "/" not in each.name or _NATIVE_DOMAIN in each.name:
            yield f"{each.name!r} is an invalid extended resource name"
        if each.name in resources:
            yield f"duplicate extender managed resource name {each.name}"
        resources.add(each.name)


def _check_timeout(place: str, extender: ExtenderConfig) -> None:
    try:
        seconds = extender.timeout_seconds
    except ValueError as error:
        raise FieldError(place, str(error)) from None
    if seconds < 0:
        raise FieldError(place, "expected a time that is not negative")


def _profile(
    place: str,
    written: _Profile,
    file: _ConfigurationFile,
    managed: Sequence[ManagedResource],
    release: Release,
) -> Profile:
    filters = configured_filters(filter_settings(managed, written.plugin_config))
    disabled = _disabled(place, written.plugins)
    percentage = written.percentage_of_nodes_to_score
    if percentage is None:
        percentage = file.percentage_of_nodes_to_score
    preempts = _PREEMPTION not in disabled
    return Profile(
        SchedulerRules(
            release,
            tuple(each for each in filters if each.name not in disabled),
            scheduler_names=frozenset(each.scheduler_name for each in file.profiles),
        ),
        _preemption(f"{place}.pluginConfig", written.plugin_config) if preempts else None,
        percentage or 0,
    )


def _disabled(place: str, plugins: _Plugins) -> frozenset[str]:
    filters = frozenset(each.name for each in IN_TREE)
    points = {
        "multiPoint": (plugins.multi_point, filters | {_PREEMPTION}),
        "filter": (plugins.filter, filters),
        "postFilter": (plugins.post_filter, frozenset({_PREEMPTION})),
    }
    off: set[str] = set()
    for point, (present, supported) in points.items():
        for each in present.enabled:
            if each.name not in supported:
                where = f"{place}.plugins.{point}.enabled"
                raise FieldError(where, f"{each.name!r} cannot be played here")
        names = {each.name for each in present.disabled}
        on = {each.name for each in present.enabled}
        off |= (supported if "*" in names else supported & names) - on
    return frozenset(off)


def _preemption(place: str, plugins: Iterable[PluginConfig]) -> DefaultPreemptionArgs:
    for each in plugins:
        if isinstance(each, DefaultPreemptionConfig) and each.args is not None:
            args = each.args
            if args.min_candidate_nodes_percentage == 0 == args.min_candidate_nodes_absolute:
                raise FieldError(
                    place, "minCandidateNodesPercentage and minCandidateNodesAbsolute are both 0"
                )
            return args
    return DefaultPreemptionArgs()
