"""The kernel cache, seen from fresh processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shortlist

PACKAGE = Path(shortlist.__file__).parent

# A kernel in one module, what it inlines in another: small, so that compiling takes no time.
HELPER = (
    "from shortlist._jit import njit\n\n@njit(inline=True)\ndef helper(x):\n    return x + {}\n"
)
CALLER = """
from shortlist._jit import cache_directory, njit
from shortlist._probe_helper import helper


@njit
def kernel(x):
    return helper(x)
"""
PROBE = """
import json
from shortlist._probe import cache_directory, kernel
answer = kernel(40.0)
stats = kernel.stats
print(json.dumps({
    "answer": answer,
    "loaded": sum(stats.cache_hits.values()),
    "compiled": len(kernel.overloads) - sum(stats.cache_hits.values()),
    "folder": str(cache_directory()),
}))
"""


@pytest.fixture
def installed(tmp_path):
    """A copy of the package, with the two modules, in a folder of its own."""
    site = tmp_path / "site"
    (site / "shortlist").mkdir(parents=True)
    for name in ("__init__.py", "_jit.py"):
        shutil.copy(PACKAGE / name, site / "shortlist" / name)
    (site / "shortlist" / "_probe.py").write_text(CALLER)
    (site / "shortlist" / "_probe_helper.py").write_text(HELPER.format("2.0"))
    return site


def run(code, *, site=None, **environment):
    """What the code prints as JSON, in a fresh process that sees only these cache settings."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "SHORTLIST_JIT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA")
    }
    if site is not None:
        inherited["PYTHONPATH"] = str(site)
    result = subprocess.run(
        [sys.executable, "-B", "-c", code],
        env={**inherited, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def test_the_second_process_does_not_compile_and_an_edit_is_seen(installed, tmp_path):
    cache = tmp_path / "cache"
    first = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    assert (first["answer"], first["loaded"], first["compiled"]) == (42.0, 0, 1)
    written = files(cache)
    assert any(path.suffix == ".nbc" for path in written)
    assert Path(first["folder"]).parent == cache

    second = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    assert (second["answer"], second["loaded"], second["compiled"]) == (42.0, 1, 0)
    assert files(cache) == written

    # The kernel's own file stays as it is; numba alone would run the stale code.
    (installed / "shortlist" / "_probe_helper.py").write_text(HELPER.format("3.0"))
    third = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    assert (third["answer"], third["loaded"], third["compiled"]) == (43.0, 0, 1)
    assert third["folder"] != first["folder"]


def test_read_only_install_uses_the_users_cache(installed, tmp_path):
    package = installed / "shortlist"
    before = files(package)
    for path in [*package.rglob("*"), package]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        home = tmp_path / "home"
        for loaded in (0, 1):
            found = run(PROBE, site=installed, XDG_CACHE_HOME=home, HOME=home, LOCALAPPDATA=home)
            assert (found["answer"], found["loaded"]) == (42.0, loaded)
            assert home in Path(found["folder"]).parents
        assert files(package) == before
    finally:
        package.chmod(0o755)


def test_off_switch_writes_nothing(installed, tmp_path):
    cache = tmp_path / "cache"
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache, SHORTLIST_JIT_CACHE="0")
    assert (found["answer"], found["loaded"], found["folder"]) == (42.0, 0, "None")
    assert not cache.exists()


def test_nowhere_to_write(installed, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=blocked / "cache")
    assert (found["answer"], found["folder"]) == (42.0, "None")


def test_full_disk(installed, tmp_path):
    pytest.importorskip("resource")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    found = run(limit + PROBE, site=installed, NUMBA_CACHE_DIR=tmp_path / "cache")
    assert (found["answer"], found["compiled"]) == (42.0, 1)


def test_damaged_files_are_replaced(installed, tmp_path):
    cache = tmp_path / "cache"
    run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    for suffix, damage in [
        (".nbi", lambda content: b"\xff" * 50),
        (".nbi", lambda content: content[: len(content) // 2]),
        (".nbc", lambda content: b"\xff" * 50),
        (".nbc", lambda content: content[: len(content) // 2]),
    ]:
        for path in cache.rglob(f"*{suffix}"):
            path.write_bytes(damage(path.read_bytes()))
        after = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
        assert (after["answer"], after["loaded"], after["compiled"]) == (42.0, 0, 1)
    healed = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    assert (healed["answer"], healed["loaded"]) == (42.0, 1)


def test_kernels_chosen_by_the_type_of_the_loss_are_cached_too(tmp_path):
    code = """
import json
from shortlist import losses
from shortlist.losses.base import _value_gradient_rows as kernel
value = losses.get("ova_hinge").value([0.0, 2.0], 0)
print(json.dumps([value, sum(kernel.stats.cache_hits.values())]))
"""
    assert run(code, NUMBA_CACHE_DIR=tmp_path) == [4.0, 0]
    assert run(code, NUMBA_CACHE_DIR=tmp_path) == [4.0, 1]


def test_only_the_newest_caches_are_kept(installed, tmp_path):
    cache = tmp_path / "cache"
    for i in range(7):
        old = cache / f"kernels-{i}"
        old.mkdir(parents=True)
        os.utime(old, (i, i))
    run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    kept = {path.name for path in cache.iterdir()}
    assert len(kept) == 4
    assert {"kernels-6", "kernels-5", "kernels-4"} < kept


def test_two_types_do_not_share_a_data_file(installed, tmp_path):
    cache = tmp_path / "cache"
    run(PROBE.replace("kernel(40.0)", "float(kernel(40))"), site=installed, NUMBA_CACHE_DIR=cache)
    run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    assert len([path for path in files(cache) if path.name.startswith("_probe.kernel")]) == 3


def test_import_is_light():
    code = "import json, sys, shortlist; dir(shortlist); print(json.dumps(sorted(sys.modules)))"
    loaded = {name.split(".")[0] for name in run(code)}
    assert not loaded & {"numba", "torch", "matplotlib", "sklearn", "scipy", "numpy"}


def test_kernels_run_as_python_where_jit_is_disabled(installed):
    code = "import json; from shortlist._probe import kernel; print(json.dumps(kernel(40.0)))"
    assert run(code, site=installed, NUMBA_DISABLE_JIT="1") == 42.0
