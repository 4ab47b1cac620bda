"""pytest fixtures for fake clusters; installing the package registers them.

    async def test_it_counts_nodes(fake_cluster):
        fake_cluster.load([node])
        ...                                    # fake_cluster.client, .url, .kubeconfig_path

    def test_kubectl_sees_them(fake_cluster):  # not async: the cluster runs in a thread
        ...

``fake_cluster``          a new cluster for each test
``fake_cluster_session``  one cluster for all tests of a process, in a thread; override the fixture
                          ``fake_cluster_session_options`` to set its options
``fake_cluster_factory``  creates any number of clusters with the options of ``FakeCluster``; an
                          async test awaits the call
``virtual_cluster``       no sockets, and a clock that the test advances (async tests only)

A marker sets the options of ``fake_cluster`` and ``virtual_cluster``. With ``kubeconfig=True``, or
the ini option ``fake_cluster_kubeconfig``, the environment variable KUBECONFIG names the cluster:

    @pytest.mark.fake_cluster(run="all", kubeconfig=True)

Async tests need pytest-asyncio, in either mode; without it clusters run in threads. With
pytest-xdist each worker has its own clusters.
"""

from __future__ import annotations

import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from importlib.util import find_spec
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

import fakeapi  # the first fixture imports the rest: pytest always loads this file

if TYPE_CHECKING:
    from fakeapi.testing.fake_cluster import FakeCluster
    from fakeapi.testing.threaded_cluster import ThreadedCluster
    from fakeapi.testing.virtual_cluster import VirtualCluster

AnyCluster: TypeAlias = "FakeCluster | ThreadedCluster[Any]"
AsyncFactory: TypeAlias = "Callable[..., Awaitable[FakeCluster]]"
Factory: TypeAlias = "Callable[..., ThreadedCluster[Any]]"

_MARKER: Final = "fake_cluster"
_READ_AT_IMPORT: Final = tuple(
    f"{package}.config{module}"
    for package in ("kubernetes", "kubernetes_asyncio")
    for module in ("", ".kube_config")
)
_KUBECONFIG_OPTION: Final = "fake_cluster_kubeconfig"
_MARKER_HELP: Final = (
    "fake_cluster(kubeconfig=False, **options): set options of the fixtures fake_cluster and "
    "virtual_cluster, and whether KUBECONFIG names the cluster."
)

_ONLY_ASYNC: Final = (
    "virtual_cluster: only async tests with pytest-asyncio can use it; expected `async def`, or "
    "the fixture fake_cluster"
)

HAS_PYTEST_ASYNCIO: Final = find_spec("pytest_asyncio") is not None


class StartingCluster:
    """A cluster that starts when it is awaited."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, FakeCluster]]) -> None:
        self._start = start

    def __await__(self) -> Generator[Any, None, FakeCluster]:
        return self._start().__await__()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Explain that the cluster has not started."""
            raise AttributeError(
                f"{name}: the cluster has not started; use `await fake_cluster_factory(...)`"
            )


if HAS_PYTEST_ASYNCIO:
    from pytest_asyncio import fixture as async_fixture

    @async_fixture
    async def _fake_cluster_factory_on_loop() -> AsyncIterator[AsyncFactory]:
        async with AsyncExitStack() as stack:

            async def create(**options: Any) -> FakeCluster:
                return await stack.enter_async_context(fakeapi.FakeCluster(**options))

            yield lambda **options: StartingCluster(partial(create, **options))

    @async_fixture
    async def _fake_cluster_on_loop(request: pytest.FixtureRequest) -> AsyncIterator[FakeCluster]:
        async with fakeapi.FakeCluster(**_marked_options(request)) as cluster:
            yield cluster

    @async_fixture
    async def _virtual_cluster_on_loop(
        request: pytest.FixtureRequest,
    ) -> AsyncIterator[VirtualCluster]:
        async with fakeapi.VirtualCluster(**_marked_options(request)) as cluster:
            yield cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option."""
    text = "Set KUBECONFIG to the cluster of the fixtures fake_cluster and fake_cluster_session."
    parser.addini(_KUBECONFIG_OPTION, text, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER_HELP)


@pytest.fixture
def _fake_cluster_factory_in_thread() -> Iterator[Factory]:
    with ExitStack() as stack:

        def create(**options: Any) -> ThreadedCluster[Any]:
            return stack.enter_context(fakeapi.FakeCluster.in_thread(**options))

        yield create


@pytest.fixture
def _fake_cluster_in_thread(request: pytest.FixtureRequest) -> Iterator[ThreadedCluster[Any]]:
    with fakeapi.FakeCluster.in_thread(**_marked_options(request)) as cluster:
        yield cluster


@pytest.fixture
def fake_cluster(request: pytest.FixtureRequest) -> AnyCluster:
    """Return a new cluster: on the test's event loop, or in a thread for a synchronous test."""
    cluster: AnyCluster = request.getfixturevalue(f"_fake_cluster_{_fixture_suffix(request)}")
    if _sets_kubeconfig(request):
        environment: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        _set_kubeconfig(environment, cluster.kubeconfig_path)
    return cluster


def _set_kubeconfig(environment: pytest.MonkeyPatch, path: Path) -> None:
    """Set KUBECONFIG, also for the clients that read it when they are imported.

    Without that, their ``load_kube_config()`` would connect to the cluster of the user.
    """
    environment.setenv("KUBECONFIG", str(path))
    for name in _READ_AT_IMPORT:
        if name in sys.modules:
            environment.setattr(sys.modules[name], "KUBE_CONFIG_DEFAULT_LOCATION", str(path))


@pytest.fixture(scope="session")
def fake_cluster_session_options() -> Mapping[str, Any]:
    """Return the options of the session's cluster; override it to set some."""
    return {}


@pytest.fixture(scope="session")
def fake_cluster_session(
    request: pytest.FixtureRequest, fake_cluster_session_options: Mapping[str, Any]
) -> Iterator[ThreadedCluster[Any]]:
    """Run a cluster in a thread for all tests of this process; its objects stay until a reset."""
    with (
        fakeapi.FakeCluster.in_thread(**fake_cluster_session_options) as cluster,
        pytest.MonkeyPatch.context() as environment,
    ):
        if request.config.getini(_KUBECONFIG_OPTION):
            _set_kubeconfig(environment, cluster.kubeconfig_path)
        yield cluster


@pytest.fixture
def fake_cluster_factory(request: pytest.FixtureRequest) -> AsyncFactory | Factory:
    """Return a function that starts clusters; they end with the test."""
    factory: AsyncFactory | Factory = request.getfixturevalue(
        f"_fake_cluster_factory_{_fixture_suffix(request)}"
    )
    return factory


@pytest.fixture
def virtual_cluster(request: pytest.FixtureRequest) -> VirtualCluster:
    """Return a new cluster without sockets, on a clock that the test advances."""
    if _fixture_suffix(request) == "in_thread":
        pytest.fail(_ONLY_ASYNC, pytrace=False)
    cluster: VirtualCluster = request.getfixturevalue("_virtual_cluster_on_loop")
    return cluster


def _fixture_suffix(request: pytest.FixtureRequest) -> str:
    return (
        "on_loop" if HAS_PYTEST_ASYNCIO and iscoroutinefunction(request.function) else "in_thread"
    )


def _marked_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    marker = request.node.get_closest_marker(_MARKER)
    options = marker.kwargs if marker else {}
    return {name: value for name, value in options.items() if name != "kubeconfig"}


def _sets_kubeconfig(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker(_MARKER)
    by_default = request.config.getini(_KUBECONFIG_OPTION)
    return bool(marker.kwargs.get("kubeconfig", by_default) if marker else by_default)
