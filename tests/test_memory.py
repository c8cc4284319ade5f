"""The memory a process may still take: the machine's, its control groups', its own limit."""

import subprocess
import sys

import pytest

from shortlist import _memory


def test_a_limit_on_the_address_space_counts():
    pytest.importorskip("resource")
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n"
        "from shortlist._memory import available_bytes\n"
        "print(available_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 2**30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Return a function that makes a tree of control groups and the process's place in it."""

    def make(entry, limits):
        root = tmp_path / "cgroup"
        for folder, files in limits.items():
            (root / folder).mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (root / folder / name).write_text(f"{text}\n")
        place = tmp_path / "self"
        place.write_text(f"{entry}\n")
        monkeypatch.setattr(_memory, "_GROUPS", root)
        real = _memory.Path
        monkeypatch.setattr(
            _memory, "Path", lambda path: place if path == "/proc/self/cgroup" else real(path)
        )
        monkeypatch.setattr(_memory, "_machine_free", lambda: 10**12)
        monkeypatch.setattr(_memory, "_address_space_free", lambda: None)
        return _memory.available_bytes()

    return make


def test_the_tightest_group_above_counts(groups):
    tree = {
        ".": {},
        "a": {"memory.max": 5000, "memory.current": 4000},
        "a/b": {"memory.max": "max", "memory.current": 3000},
    }
    assert groups("0::/a/b", tree) == 1000


def test_version_1(groups):
    files = {"memory.limit_in_bytes": 7000, "memory.usage_in_bytes": 2000}
    unlimited = {"memory.limit_in_bytes": 2**63 - 4096, "memory.usage_in_bytes": 2000}
    tree = {"memory": unlimited, "memory/job": files}
    assert groups("4:cpu,memory:/job", tree) == 5000


def test_a_container_sees_its_limit_at_the_root(groups):
    tree = {".": {"memory.max": 9000, "memory.current": 9500}}
    assert groups("0::/host/path/of/the/container", tree) == 0


def test_no_group(groups):
    assert groups("2:cpu:/", {".": {}}) == 10**12
