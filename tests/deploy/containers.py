"""Pod templates with one container, run as a kubelet does: files, user, process, probes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.builders import Document
from tests.deploy.cluster import PORT, SYSTEM, Cluster
from tests.deploy.container_root import ContainerRoot, Mount, User
from tests.deploy.image import Image
from tests.deploy.network import Answer, ClientTls

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
PATIENCE_SECONDS: Final = 60.0

_BETWEEN_SECONDS: Final = 0.1
_READABLE: Final = 0o644
_CLAIMED: Final = 0o2775


@dataclass(slots=True)
class Container:
    """A running container of a pod with the spec ``pod``; its output is written to ``log``."""

    cluster: Cluster
    pod: Document
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def spec(self) -> Document:
        """Its entry in the template."""
        only: Document = self.pod["containers"][0]
        return only

    def port(self, name: str | int) -> int:
        """Return the number of a port that is given by name or number."""
        numbers = {port["name"]: int(port["containerPort"]) for port in self.spec["ports"]}
        return numbers[name] if isinstance(name, str) else name

    def probe(self, name: str) -> Answer:
        """Send a probe as a kubelet does, which accepts any certificate."""
        asked = self.spec[name]["httpGet"]
        client = ClientTls("" if asked["scheme"] == "HTTPS" else None)
        return self.cluster.network.request(self.port(asked["port"]), asked["path"], client=client)

    def wait_ready(self) -> None:
        """Return once the readiness probe succeeds."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (answer := self.probe("readinessProbe")).status != 200:
            assert self.process.poll() is None, self.read_log()
            assert time.monotonic() < deadline, f"{answer}\n{self.read_log()}"
            time.sleep(_BETWEEN_SECONDS)

    def stop(self) -> int:
        """Stop it as a kubelet does, and return its exit code; raise TimeoutExpired if it hangs."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(self.pod["terminationGracePeriodSeconds"])

    def read_log(self) -> str:
        """Return its output."""
        return self.log.read_text()


@dataclass(frozen=True, slots=True)
class Kubelet:
    """Runs containers of ``image``; ``work`` is a directory for their volumes.

    ``hosts``, names of 127.0.0.1, replace the cluster's DNS and services.
    """

    cluster: Cluster
    image: Image
    work: Path
    hosts: Sequence[str] = ()
    programs: Mapping[str, Path] = field(default_factory=dict)

    def root(self, pod: Document) -> ContainerRoot:
        """Return the file system and user of the container of a pod's spec."""
        [container] = pod["containers"]
        context = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
        user = _user(context, self.image.user)
        assert user.uid != 0 or not context.get("runAsNonRoot"), "it would run as root"
        return ContainerRoot(
            self.image.tree,
            user=user,
            mounts=list(self._mounts(pod, container, user)),
            environment=self._environment(container),
            directory=container.get("workingDir", self.image.directory),
            hosts=self.hosts,
            programs=self.programs,
            read_only=context.get("readOnlyRootFilesystem", False),
            confined=context.get("capabilities") == {"drop": ["ALL"]}
            and not context.get("allowPrivilegeEscalation", True),
        )

    def command(self, pod: Document) -> list[str]:
        """Return the command line of the container of a pod's spec."""
        [container] = pod["containers"]
        if "command" in container:
            return [*container["command"], *container.get("args", ())]
        return [*self.image.entrypoint, *container.get("args", self.image.command)]

    @contextmanager
    def running(self, pod: Document) -> Iterator[Container]:
        """Run the container of a pod's spec, until the block ends."""
        log = self.work / "log"
        inside = self.cluster.network.inside(*self.root(pod).command(*self.command(pod)))
        with (
            log.open("wb") as output,
            subprocess.Popen(
                inside, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            ) as process,
        ):
            try:
                yield Container(self.cluster, pod, process, log)
            finally:
                if process.poll() is None:
                    process.kill()

    def _environment(self, container: Document) -> dict[str, str]:
        given = {each["name"]: self._value(each) for each in container.get("env", ())}
        services = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(PORT)}
        return {**self.image.environment, **services, **given}

    def _value(self, variable: Document) -> str:
        """Return the value of an environment variable, which may be a key of a Secret."""
        if "value" in variable:
            return str(variable["value"])
        reference = variable["valueFrom"]["secretKeyRef"]
        data = self.cluster.get("secret", reference["name"])["data"]
        return b64decode(data[reference["key"]]).decode()

    def _mounts(self, pod: Document, container: Document, user: User) -> Iterator[Mount]:
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for mount in container["volumeMounts"]:
            directory = self.work / mount["name"]
            self._fill(directory, volumes[mount["name"]], user)
            yield Mount(directory, mount["mountPath"], writable=not mount.get("readOnly"))
        account = self.work / "account"
        token = self.cluster.kubectl("create", "token", pod["serviceAccountName"], "-n", SYSTEM)
        files = {
            "token": token.encode(),
            "ca.crt": b64decode(self.cluster.authority),
            "namespace": SYSTEM.encode(),
        }
        _write(account, files, _READABLE, user)
        yield Mount(account, ACCOUNT)

    def _fill(self, directory: Path, volume: Document, user: User) -> None:
        if "persistentVolumeClaim" in volume:
            directory.mkdir(exist_ok=True)
            os.chown(directory, 0, user.groups[0])
            directory.chmod(_CLAIMED)
            return
        source = volume.get("configMap") or volume["secret"]
        if "configMap" in volume:
            texts = self.cluster.get("configmap", source["name"])["data"]
            data = {key: text.encode() for key, text in texts.items()}
        else:
            secret = self.cluster.get("secret", source["secretName"])["data"]
            data = {key: b64decode(text) for key, text in secret.items()}
        chosen = source.get("items", [{"key": key, "path": key} for key in data])
        files = {item["path"]: data[item["key"]] for item in chosen}
        _write(directory, files, source.get("defaultMode", _READABLE), user)


def _user(context: Document, otherwise: User) -> User:
    group = context.get("fsGroup")
    return User(
        context.get("runAsUser", otherwise.uid),
        context.get("runAsGroup", otherwise.gid),
        [] if group is None else [group],
    )


def _write(directory: Path, files: Mapping[str, bytes], mode: int, user: User) -> None:
    """Write the files of a volume, owned by root and the volume's group."""
    directory.mkdir(exist_ok=True)
    for name, content in files.items():
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        os.chown(path, 0, user.groups[0] if user.groups else 0)
        path.chmod(mode)
