"""The pytest plugin, in test runs of its own."""

from __future__ import annotations

import kubernetes.client
import kubernetes.config
import kubernetes_asyncio.client
import kubernetes_asyncio.config
import pytest

from fakeapi import FakeCluster

pytest_plugins = ["pytester"]

WARNINGS = ("-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Warnings are errors, but for that about modules that this process has imported."""

CONFIGURATION = """
[pytest]
asyncio_mode = {mode}
asyncio_default_fixture_loop_scope = function
addopts = -p fakeapi.pytest_plugin
pythonpath = {root}
"""

NODE = '{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}'

TESTS = f"""
import asyncio
import os
import urllib.request

import pytest

NODE = {NODE}


def get(url):
    with urllib.request.urlopen(url + "/api/v1/nodes") as answer:
        return answer.read()


@pytest.mark.asyncio
async def test_on_the_loop(fake_cluster):
    fake_cluster.load([NODE])
    assert len((await fake_cluster.client.list(NODES, bytes)).items) == 1
    fake_cluster.history("nodes").always(lambda nodes: len(nodes) <= 1)


@pytest.mark.asyncio
async def test_each_test_begins_anew(fake_cluster):
    assert (await fake_cluster.client.list(NODES, bytes)).items == []


def test_in_a_thread(fake_cluster):
    fake_cluster.load([NODE])
    assert b'"name":"n"' in get(fake_cluster.url)
    assert fake_cluster.requests[-1].path == "/api/v1/nodes"


def test_a_thread_begins_anew_too(fake_cluster):
    assert b'"items":[]' in get(fake_cluster.url)


@pytest.mark.asyncio
async def test_several_on_the_loop(fake_cluster_factory):
    one, other = await fake_cluster_factory(seed=1), await fake_cluster_factory()
    one.load([NODE])
    assert len((await other.client.list(NODES, bytes)).items) == 0


def test_several_in_threads(fake_cluster_factory):
    one, other = fake_cluster_factory(seed=1), fake_cluster_factory()
    one.load([NODE])
    assert b'"items":[]' in get(other.url)


@pytest.mark.asyncio
async def test_on_a_clock_that_stands_still(virtual_cluster):
    woken = []

    async def sleeper():
        await virtual_cluster.clock.sleep(3600)
        woken.append(virtual_cluster.clock.monotonic())

    task = asyncio.create_task(sleeper())
    await virtual_cluster.clock.advance(3599)
    assert not woken
    await virtual_cluster.clock.advance(1)
    assert woken == [3600]
    virtual_cluster.load([NODE])
    assert len((await virtual_cluster.client.list(NODES, bytes)).items) == 1
    await task


@pytest.mark.asyncio
@pytest.mark.fake_cluster(run="podgc", kubeconfig=True)
async def test_options_on_the_loop(fake_cluster):
    assert os.environ["KUBECONFIG"] == str(fake_cluster.kubeconfig_path)
    assert fake_cluster.control_plane["podgc"]


@pytest.mark.asyncio
@pytest.mark.fake_cluster(run="podgc")
async def test_options_without_sockets(virtual_cluster):
    assert virtual_cluster.control_plane["podgc"]


@pytest.mark.fake_cluster(run="podgc", kubeconfig=True)
def test_options_in_a_thread(fake_cluster):
    assert os.environ["KUBECONFIG"] == str(fake_cluster.kubeconfig_path)
    assert fake_cluster.call(lambda cluster: cluster.control_plane["podgc"])


def test_the_environment_is_restored(fake_cluster):
    assert "KUBECONFIG" not in os.environ


def test_the_session_begins(fake_cluster_session):
    fake_cluster_session.load(NODE)


@pytest.mark.asyncio
async def test_the_session_continues(fake_cluster_session, fake_cluster):
    assert len(fake_cluster_session.list("nodes")) == 1
    assert await fake_cluster.list("nodes") == []
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_every_fixture_works_in_every_mode(
    pytester: pytest.Pytester, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    pytester.makeini(CONFIGURATION.format(mode=mode, root=pytester._request.config.rootpath))
    pytester.makepyfile("from extender.kube.rest.resources import NODES\n" + TESTS)
    pytester.runpytest_inprocess(*WARNINGS).assert_outcomes(passed=13)


def test_sync_tests_need_no_asyncio_plugin(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = -p fakeapi.pytest_plugin -p no:asyncio")
    pytester.makepyfile("def test_it(fake_cluster):\n    assert fake_cluster.url")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


INI = """
[pytest]
addopts = -p fakeapi.pytest_plugin -p no:asyncio --strict-markers
fake_cluster_kubeconfig = true
"""
WITH_INI = """
import os

import pytest

@pytest.fixture(scope="session")
def fake_cluster_session_options():
    return {"run": "podgc"}

def test_the_session(fake_cluster_session):
    assert os.environ["KUBECONFIG"] == str(fake_cluster_session.kubeconfig_path)
    assert fake_cluster_session.call(lambda cluster: cluster.control_plane["podgc"])

def test_a_cluster_of_its_own(fake_cluster_session, fake_cluster):
    assert os.environ["KUBECONFIG"] == str(fake_cluster.kubeconfig_path)

@pytest.mark.fake_cluster(kubeconfig=False)
def test_the_marker_takes_precedence(fake_cluster_session, fake_cluster):
    assert os.environ["KUBECONFIG"] == str(fake_cluster_session.kubeconfig_path)
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["one", "xdist"])
def test_an_ini_option_sets_kubeconfig(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(pytester._request.config.rootpath))
    pytester.makeini(INI)
    pytester.makepyfile(WITH_INI)
    pytester.runpytest_subprocess(*workers).assert_outcomes(passed=3)


@pytest.mark.fake_cluster(kubeconfig=True)
async def test_clients_that_read_the_environment_when_they_are_imported(
    fake_cluster: FakeCluster,
) -> None:
    kubernetes.config.load_kube_config()
    await kubernetes_asyncio.config.load_kube_config()
    for package in (kubernetes, kubernetes_asyncio):
        assert package.client.Configuration.get_default_copy().host == fake_cluster.url


MISUSED = """
import pytest

async def test_without_await(fake_cluster_factory):
    with pytest.raises(AttributeError) as error:
        fake_cluster_factory(run="none").load([])
    assert str(error.value) == (
        "load: the cluster has not started; use `await fake_cluster_factory(...)`"
    )

def test_no_async_test(virtual_cluster):
    virtual_cluster.apply({})
"""
ONLY_ASYNC = (
    "virtual_cluster: only async tests with pytest-asyncio can use it; expected `async def`, or "
    "the fixture fake_cluster"
)


def test_a_fixture_that_is_misused_fails_with_one_line(pytester: pytest.Pytester) -> None:
    root = pytester._request.config.rootpath
    pytester.makeini(CONFIGURATION.format(mode="auto", root=root))
    pytester.makepyfile(MISUSED)
    done = pytester.runpytest_inprocess(*WARNINGS)
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.re_match_lines([r"_+ ERROR at setup of test_no_async_test _+"])
    assert done.outlines[done.outlines.index(ONLY_ASYNC) - 1].startswith("___")
