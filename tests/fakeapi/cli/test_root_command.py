"""The command line in real processes: exit codes, and errors in one line."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.builders import encoded, node_json, pod_json
from tests.builders.replicas import RECORDED, member_json, replica_set_json
from tests.builders.workloadspread import spread_json
from tests.commands import reprieve, reprieve_json, serving, written
from tests.extender.eviction.documents import measured, summary
from tests.extender.go_decoder import filtered

VIP = pod_json("vip", cpu="1", priority=10)
CLUSTER = (
    node_json("node-1", cpu="1"),
    node_json("node-2", cpu="500m"),
    pod_json("web", on="node-1", cpu="1", priority=1),
)


async def get_ready(session: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(20):
        while True:
            async with session.get(f"{url}/readyz") as response:
                if response.status == 200:
                    return


async def ask_filter(session: aiohttp.ClientSession, url: str, *names: str) -> Any:
    body = encoded({"Pod": pod_json(cpu="100m"), "Nodes": None, "NodeNames": names})
    async with session.post(f"{url}/filter", data=body) as response:
        assert response.status == 200
        return filtered(await response.read(), names, cached=True)


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    return written(tmp_path, "cluster.json", *CLUSTER)


@pytest.fixture
def vip(tmp_path: Path) -> str:
    return written(tmp_path, "vip.json", VIP)


class TestExplain:
    async def test_filter_prints_one_json_document(self, cluster: str, vip: str) -> None:
        assert await reprieve_json("explain", "filter", "--cluster", cluster, "--pod", vip) == {
            "feasible": [],
            "rejected": {
                "node-1": {"reason": "Insufficient cpu", "resolvable": True},
                "node-2": {"reason": "Insufficient cpu", "resolvable": False},
            },
            "unjudged": [],
        }

    @pytest.mark.slow
    async def test_preempt_prints_one_json_document(self, cluster: str, vip: str) -> None:
        options = ("--now", "2026-01-02T15:04:05Z", "--policy", "kube-scheduler")
        document = await reprieve_json(
            "explain", "preempt", "--cluster", cluster, "--pod", vip, *options
        )
        assert list(document) == [
            *("eligible", "reason", "node", "victims", "numPDBViolations", "decidedBy"),
            *("candidates", "rejected", "message", "unjudged", "feasible", "spared", "units"),
        ]
        web = {"namespace": "default", "name": "web", "uid": "web", "priority": 1}
        assert (document["node"], document["victims"]) == ("node-1", [web])
        assert document["candidates"] == {"node-1": {"victims": [web], "numPDBViolations": 0}}

    @pytest.mark.slow
    async def test_a_configuration_applies(self, cluster: str, vip: str, tmp_path: Path) -> None:
        terms = [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        plugin = {"name": "NodeAffinity", "args": {"addedAffinity": required}}
        config = written(tmp_path, "reprieve.json", {"pluginConfig": [plugin]})
        for verb in ("filter", "preempt"):
            options = ("--cluster", cluster, "--pod", vip, "--config", config)
            document = await reprieve_json("explain", verb, *options)
            reasons = {each["reason"] for each in document["rejected"].values()}
            assert reasons == {"node(s) didn't match scheduler-enforced node affinity"}

    @pytest.mark.slow
    async def test_options_apply(self, vip: str) -> None:
        filters = ("--upstream", "1.33", "--filters", "NodeResourcesFit,NodePorts")
        options = ("--cluster", "-", "--pod", vip, *filters, "--nodes", "node-2")
        lines = b"\n".join(map(encoded, CLUSTER))
        document = await reprieve_json("explain", "preempt", *options, stdin=lines)
        assert document["node"] is None
        reason = "No preemption victims found for incoming pod"
        assert document["rejected"]["node-2"]["reason"] == reason
        # Before 1.34 a request above the node's size counted as something eviction might help.
        assert document["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")

    @pytest.mark.slow
    async def test_feature_gates_apply_and_one_without_effect_is_reported(
        self, tmp_path: Path
    ) -> None:
        path = written(tmp_path, "nodes.json", node_json("node-1", cpu="4"))
        restarting = pod_json("restarting", cpu="1")
        restarting["spec"]["containers"][0]["restartPolicyRules"] = [
            {"action": "RestartAllContainers"}
        ]
        pod = written(tmp_path, "pod.json", restarting)
        gates = ("--upstream", "1.36", "--feature-gates", "NodeDeclaredFeatures=false,X=true")
        options = ("--cluster", path, "--pod", pod, "-o", "json")
        done = await reprieve("explain", "filter", *options, *gates)
        assert json.loads(done.out)["feasible"] == ["node-1"]
        assert done.err == "reprieve: featureGates: X changes no decision; it is ignored\n"

    @pytest.mark.slow
    async def test_a_malformed_feature_gate_is_one_line(self, cluster: str, vip: str) -> None:
        gates = ("--feature-gates", "NodeDeclaredFeatures")
        done = await reprieve("explain", "filter", "--cluster", cluster, "--pod", vip, *gates)
        assert (done.code, done.out) == (2, "")
        [line] = done.err.splitlines()
        assert "'NodeDeclaredFeatures'; expected NAME=true or NAME=false" in line

    @pytest.mark.slow
    async def test_text_output(self, cluster: str, vip: str) -> None:
        options = ("--cluster", cluster, "--pod", vip)
        done = await reprieve("explain", "preempt", *options)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("default/vip preempts pods on node-1, the only candidate\n")

    @pytest.mark.slow
    async def test_an_invalid_object_is_a_warning(self, tmp_path: Path, vip: str) -> None:
        broken = pod_json("broken", on="node-1", cpu="lots")
        path = written(tmp_path, "some.json", *CLUSTER, broken)
        options = ("--cluster", path, "--pod", vip, "-o", "json")
        done = await reprieve("explain", "preempt", *options)
        assert done.code == 0
        assert json.loads(done.out)["node"] is None
        [warning] = map(json.loads, done.err.splitlines())
        assert (warning["event"], warning["key"]) == ("object_skipped", "default/broken")


@pytest.mark.slow
class TestExplainScaledown:
    async def test_it_prints_one_json_document(self, tmp_path: Path) -> None:
        recorded = RECORDED["sd-77-104"]
        cluster = written(tmp_path, "cluster.json", recorded["cluster"])
        replica_set = ("--replicaset", recorded["replicaset"], "--delete", str(recorded["delete"]))
        options = ("--cluster", cluster, *replica_set, "--now", recorded["now"])
        document = await reprieve_json("explain", "scaledown", *options)
        assert list(document) == ["delete", "order", "because"]
        assert sorted(document["delete"]) == recorded["deleted"]
        assert document["order"][: recorded["delete"]] == document["delete"]
        assert [each["pod"] for each in document["because"]] == document["order"][:-1]

    async def test_now_is_the_time_of_the_clock_by_default(self, tmp_path: Path) -> None:
        """Ages of one and two seconds differ; years later both ages are about equal."""
        pods = (member_json("b", ready=1), member_json("a", ready=2))
        cluster = written(tmp_path, "cluster.json", replica_set_json(), *pods)
        command = ("explain", "scaledown", "--cluster", cluster, "--replicaset", "default/web")
        today = await reprieve_json(*command, "--delete", "1")
        then = await reprieve_json(*command, "--delete", "1", "--now", "2023-11-14T22:13:20Z")
        assert today["because"][0]["criterion"] == "uid"
        assert then["because"][0]["criterion"] == "ready-time"

    @pytest.mark.slow
    async def test_text_output(self, tmp_path: Path) -> None:
        pods = (member_json("a"), member_json("b", on=None))
        cluster = written(tmp_path, "cluster.json", replica_set_json(), *pods)
        options = ("--replicaset", "default/web", "--delete", "1")
        done = await reprieve("explain", "scaledown", "--cluster", cluster, *options)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("default/web: 1 of 2 pods are deleted\n")


def test_names_are_those_that_kubectl_takes(
    command_line: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    cluster: str,
    vip: str,
) -> None:
    sample = written(tmp_path, "summary.json", summary(400, measured("web", 700)))
    pods = (member_json("a"), member_json("b", on=None))
    replicas = written(tmp_path, "replicas.json", replica_set_json(), *pods)
    evict = ("--node", "node-1", "--summary", sample, "--eviction-hard", "memory.available<500Mi")
    for arguments, names in (
        (("preempt", "--cluster", cluster, "--pod", vip), "pod/web\n"),
        (("evict", "--cluster", cluster, *evict), "pod/web\n"),
        (
            ("scaledown", "--cluster", replicas, "--replicaset", "default/web", "--delete", "1"),
            "pod/b\n",
        ),
    ):
        assert command_line("explain", *arguments, "-o", "name") == 0
        assert capsys.readouterr() == (names, "")


@pytest.mark.slow
async def test_every_command_has_help_with_an_example() -> None:
    explained = (["explain", subject] for subject in ("filter", "preempt", "scaledown", "spread"))
    commands = (["serve"], ["fakeapi"], ["demo"], *explained, ["validate", "workloadspread"])
    helped = await asyncio.gather(*(reprieve(*command, "--help") for command in commands))
    for command, done in zip(commands, helped, strict=True):
        assert (done.code, done.err) == (0, "")
        example = next(line.strip() for line in done.out.splitlines() if "Example:" in line)
        assert example.startswith(f"Example: reprieve {' '.join(command)}")


ERRORS: list[tuple[str, str]] = [
    ("", "Missing command"),
    ("explain", "Missing command"),
    ("explain preempt --cluster C", "Missing option '--pod'"),
    (
        "explain preempt --cluster C --pod P --now foo",
        "'foo'; expected a time such as 2026-01-02T15",
    ),
    ("explain preempt --cluster C --pod P --upstream 1.12", "unknown Kubernetes release '1.12'"),
    ("explain filter --cluster C --pod P --filters Nope", "unknown filter 'Nope'; expected some"),
    ("explain preempt --cluster C --pod P --policy nope", "policy 'nope': no such file or"),
    ("explain filter --cluster none.json --pod P", "none.json: cannot be read: No such file"),
    (
        "explain preempt --cluster C --pod P --nodes node-1,nope",
        "--nodes: no node 'nope' in --cluster",
    ),
    ("explain filter --cluster C --pod C --nodes a", "No such option: --nodes"),
    ("explain filter --cluster C --server http://x --pod P", "--cluster and --server exclude each"),
    ("explain filter --kubeconfig none.json --pod P", "kubeconfig none.json: no such file"),
    ("explain filter --cluster C --pod default/none", "and no pod 'default/none' in --cluster"),
    ("explain filter --cluster C --pod BAD", "resources.requests.cpu: 'lots' is not a quantity"),
    ("explain scaledown --cluster C --delete 1", "Missing option '--replicaset'"),
    ("explain scaledown --cluster C --replicaset a/b", "Missing option '--delete'"),
    ("explain scaledown --cluster C --replicaset a --delete 1", "'a'; expected NAMESPACE/NAME"),
    ("explain scaledown --cluster C --replicaset a/ --delete 1", "'a/'; expected NAMESPACE/NAME"),
    ("explain scaledown --cluster C --replicaset /b --delete 1", "'/b'; expected NAMESPACE/NAME"),
    ("explain scaledown --cluster C --replicaset a/b/c --delete 1", "expected NAMESPACE/NAME"),
    ("explain scaledown --cluster C --replicaset a/b --delete 1", "no ReplicaSet 'a/b' in --clust"),
    ("explain scaledown --cluster C --replicaset a/b --delete -1", "Invalid value for '--delete'"),
    ("explain scaledown --cluster C --replicaset a/b --delete x", "Invalid value for '--delete'"),
    (
        "explain scaledown --cluster RS --replicaset default/web --delete 1",
        "expected at most 0, as",
    ),
    ("explain spread --cluster WS", "Missing option '--workloadspread'"),
    ("explain spread --cluster WS --workloadspread web", "'web'; expected NAMESPACE/NAME"),
    ("explain spread --cluster WS --workloadspread a/b", "no WorkloadSpread 'a/b' in --cluster"),
    ("explain spread --cluster WS --workloadspread default/bad", "default/bad: spec.subsets: "),
    (
        "explain spread --cluster WS --workloadspread default/web --pod WS",
        "holds 0 pods and 0 workloads; expected exactly one",
    ),
    (
        "explain spread --cluster WS --workloadspread default/web --operation delete",
        "--operation needs --pod",
    ),
    (
        "explain spread --cluster WS --workloadspread default/web --pod P --operation patch",
        "'patch' is not one of 'create', 'delete', 'evict'",
    ),
    (
        "explain spread --cluster WS --workloadspread default/web --quirks none",
        "'none' is not one of 'upstream', 'fixed'",
    ),
    ("validate", "Missing command"),
    ("validate workloadspread", "Missing argument 'FILE'"),
    ("validate workloadspread C", "holds 0 WorkloadSpreads; expected exactly one"),
    ("validate workloadspread none.json", "none.json: cannot be read: No such file"),
    ("serve --search everywhere", "'everywhere' is not one of 'offered', 'cluster'"),
    ("serve --embedded nope", "--embedded: unknown scenario 'nope'; expected demo"),
    ("serve --embedded demo --server http://x", "exclude each other"),
    ("serve --config BAD", "(the document): Object contains unknown field"),
    ("serve --kubeconfig none.json", "none.json"),
    ("demo story", "'story' is not one of 'loop', 'questions'"),
    ("demo questions --seed 1", "demo questions: --seed and --speed apply to demo loop only"),
    ("demo --speed 0", "--speed: 0; expected a number above 0, at most 10"),
    ("demo --speed 1e9", "--speed: 1e+09; expected a number above 0, at most 10"),
    ("fakeapi --port 0 --load VIP.yaml", "VIP.yaml: cannot be read: No such file or directory"),
    ("fakeapi --token t", "--token: clients send tokens over TLS only; expected --tls as well"),
    ("fakeapi --service tools", "--service: 'tools'; expected NAMESPACE/NAME=https://HOST[:PORT]"),
    ("fakeapi --service a/b=http://c", "--service: 'a/b=http://c'; expected NAMESPACE/NAME=https"),
]


@pytest.mark.parametrize(("line", "problem"), ERRORS, ids=[line for line, _ in ERRORS])
def test_an_error_is_exit_code_2_and_one_line(
    tmp_path: Path,
    command_line: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    cluster: str,
    vip: str,
    line: str,
    problem: str,
) -> None:
    files = {
        "C": cluster,
        "P": vip,
        "BAD": written(tmp_path, "bad.json", pod_json(cpu="lots")),
        "RS": written(tmp_path, "rs.json", replica_set_json()),
        "WS": written(tmp_path, "ws.json", spread_json(), spread_json(name="bad", subsets="none")),
    }
    code = command_line(*(files.get(word, word) for word in line.split()))
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("reprieve: ")
    assert problem in err
    assert err.count("\n") == 1


@pytest.mark.slow
async def test_an_invalid_cluster_file_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "bad.json", {"apiVersion": "v1", "kind": "Pod", "metadata": {}})
    done = await reprieve("fakeapi", "--port", "0", "--load", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"reprieve: {path}")
    assert done.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve --embedded demo", "fakeapi"])
async def test_a_port_in_use(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = await reprieve(*command.split(), "--port", str(port))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"reprieve: 127.0.0.1:{port}: ")
    assert done.err.count("\n") == 1


@pytest.mark.slow
async def test_serve_embedded_answers_until_it_is_stopped() -> None:
    async with serving("serve", "--embedded", "demo") as url, aiohttp.ClientSession() as session:
        await get_ready(session, url)
        result = await ask_filter(session, url, "node-a", "nowhere")
    assert result.failed.keys() == {"node-a", "nowhere"}


async def test_fakeapi_and_serve_connect_by_kubeconfig(tmp_path: Path, cluster: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    fakeapi = serving("fakeapi", "--load", cluster, "--kubeconfig-out", str(kubeconfig))
    async with fakeapi as api, aiohttp.ClientSession() as session:
        async with session.get(f"{api}/api/v1/nodes") as response:
            nodes = (await response.json())["items"]
        assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2"]
        async with serving("serve", "--kubeconfig", str(kubeconfig)) as url:
            await get_ready(session, url)
            result = await ask_filter(session, url, "node-1", "node-2")
    assert (result.names, set(result.failed)) == (["node-2"], {"node-1"})
