"""Files of the kernel in a directory: procfs and control groups.

The numbers of ``hybrid`` are recorded from a machine with Linux 6.18, whose memory is in a group
of version 1 while version 2 is mounted beside it; those of ``unified`` are written by hand in the
form that admin-guide/cgroup-v2.rst of the kernel gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MIB = 2**20
KIB = 1024

MEMINFO = """\
MemTotal:       24684084 kB
MemFree:        20340784 kB
MemAvailable:   23065920 kB
Buffers:           62384 kB
Cached:          2051116 kB
Inactive(file):  1099028 kB
"""
TOTAL = 24684084 * KIB
USAGE = 3270885376
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
MOUNT = "35 31 0:32 {group} {place} rw,relatime - {kind} {kind} rw{more}\n"


def put(place: Path, files: Mapping[str, str]) -> None:
    """Write files below a directory."""
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def bare(tmp_path: Path, mountinfo: str = "", cgroup: str = "") -> Path:
    """Return the procfs of a machine on which these hierarchies are mounted."""
    proc = tmp_path / "proc"
    put(
        proc,
        {
            "meminfo": MEMINFO,
            "pressure/memory": PRESSURE,
            "self/mountinfo": mountinfo,
            "self/cgroup": cgroup,
        },
    )
    return proc


def hybrid(tmp_path: Path) -> Path:
    """Return the procfs of a machine whose memory is in a hierarchy of version 1."""
    place = tmp_path / "cgroup/memory"
    put(tmp_path, {"cgroup/unified/cgroup.controllers": "", **_one("cgroup/memory")})
    put(tmp_path, _one("cgroup/memory/work", usage=200 * MIB, limit=512 * MIB))
    mounts = (
        MOUNT.format(group="/", place=tmp_path / "cgroup/cpu", kind="cgroup", more=",cpu")
        + MOUNT.format(group="/", place=tmp_path / "cgroup/unified", kind="cgroup2", more="")
        + MOUNT.format(group="/", place=place, kind="cgroup", more=",memory")
    )
    return bare(tmp_path, mounts, "5:cpu:/\n4:memory:/work\n0::/\n")


def unified(tmp_path: Path) -> Path:
    """Return the procfs of a machine with version 2 alone."""
    put(
        tmp_path,
        {
            "cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
            "cgroup/memory.stat": "anon 3221225472\nfile 1073741824\ninactive_file 524288000\n",
            **_two("cgroup/kubepods.slice"),
        },
    )
    mounts = MOUNT.format(group="/", place=tmp_path / "cgroup", kind="cgroup2", more="")
    return bare(tmp_path, mounts, "0::/kubepods.slice\n")


def _one(group: str, usage: int = USAGE, limit: int = 9223372036854771712) -> dict[str, str]:
    return {
        f"{group}/memory.usage_in_bytes": f"{usage}\n",
        f"{group}/memory.limit_in_bytes": f"{limit}\n",
        f"{group}/memory.stat": "inactive_file 20480\ntotal_inactive_file 104857600\n",
        f"{group}/cgroup.event_control": "",
    }


def _two(group: str) -> dict[str, str]:
    return {
        f"{group}/memory.current": "2147483648\n",
        f"{group}/memory.max": "max\n",
        f"{group}/memory.stat": "anon 1\nfile 1\ninactive_file 147483648\n",
        f"{group}/memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
        f"{group}/memory.pressure": PRESSURE,
    }
