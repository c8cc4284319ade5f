"""The kernel cache, seen from fresh processes."""

import os
from pathlib import Path

import pytest

from tests.jit_cache.probe import (
    HELPER,
    PROBE,
    files,
    kernels,
)
from tests.processes import answer, run, start


def test_the_second_process_does_not_compile_and_an_edit_is_seen(installed, tmp_path):
    cache = tmp_path / "cache"
    first = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    assert (first["answer"], first["loaded"], first["compiled"]) == (42.0, 0, 1)
    written = files(cache)
    assert {path.suffix for path in written} == {".kernel"}
    assert len(written) == 2  # the kernel and its helper
    assert Path(first["folder"]).parent == cache

    second = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    assert (second["answer"], second["loaded"], second["compiled"]) == (42.0, 1, 0)
    assert files(cache) == written

    # The kernel's own file stays as it is; numba alone would run the stale code.
    (installed / "shortlist" / "_probe_helper.py").write_text(HELPER.format("3.0"))
    third = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache)
    assert (third["answer"], third["loaded"], third["compiled"]) == (43.0, 0, 1)
    assert third["folder"] != first["folder"]


def test_a_kernel_compiled_anew_uses_the_parts_on_disk(installed, warm):
    [whole] = kernels(warm, "_probe.kernel-*")
    [part] = kernels(warm, "_probe_helper.helper-*")
    whole.unlink()
    written = part.stat().st_mtime_ns
    again = run(PROBE, site=installed, NUMBA_CACHE_DIR=warm)
    assert (again["answer"], again["loaded"], again["compiled"]) == (42.0, 0, 1)
    assert part.stat().st_mtime_ns == written
    assert whole.exists()


def test_numbas_own_setting_of_places_does_not_turn_the_cache_off(installed, tmp_path):
    settings = {"NUMBA_CACHE_DIR": tmp_path, "NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}
    for loaded in (0, 1):
        assert run(PROBE, site=installed, **settings)["loaded"] == loaded


def test_settings_of_numba_that_change_the_code_change_the_file(installed, warm):
    for settings in ({"NUMBA_OPT": 0}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}):
        found = run(PROBE, site=installed, NUMBA_CACHE_DIR=warm, **settings)
        assert (found["answer"], found["loaded"]) == (42.0, 0)


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


def test_kernels_are_kept_where_all_else_is(installed, tmp_path):
    found = run(PROBE, site=installed, SHORTLIST_CACHE=tmp_path / "mine")
    assert Path(found["folder"]).parent == tmp_path / "mine"


def test_off_switch_writes_nothing(installed, tmp_path):
    cache = tmp_path / "cache"
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=cache, SHORTLIST_JIT_CACHE="0")
    assert (found["answer"], found["loaded"], found["folder"]) == (42.0, 0, "None")
    assert found["obstacle"] == "SHORTLIST_JIT_CACHE is set to 0"
    assert not cache.exists()


def test_nowhere_to_write(installed, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=blocked / "cache")
    assert (found["answer"], found["folder"]) == (42.0, "None")
    assert found["obstacle"] == f"{blocked / 'cache'}: Not a directory"


def test_full_disk(installed, tmp_path):
    pytest.importorskip("resource")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    found = run(limit + PROBE, site=installed, NUMBA_CACHE_DIR=tmp_path / "cache")
    assert (found["answer"], found["compiled"]) == (42.0, 1)
    assert files(tmp_path / "cache") == set()


READ_ONLY = """
import errno, os, tempfile

def refuse(*_, **__):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))

tempfile.TemporaryFile = tempfile.mkstemp = refuse
"""


def test_a_read_only_cache_is_used(installed, warm, tmp_path):
    empty = run(READ_ONLY + PROBE, site=installed, NUMBA_CACHE_DIR=tmp_path / "empty")
    assert (empty["answer"], empty["folder"]) == (42.0, "None")
    other_type = PROBE.replace("kernel(40.0)", "float(kernel(40))")
    for probe, loaded in [(PROBE, 1), (other_type, 0)]:
        found = run(READ_ONLY + probe, site=installed, NUMBA_CACHE_DIR=warm)
        assert (found["answer"], found["loaded"]) == (42.0, loaded)
        assert found["obstacle"].endswith("Read-only file system")


def test_processes_that_compile_at_the_same_time(installed, tmp_path):
    started = [start(PROBE, site=installed, NUMBA_CACHE_DIR=tmp_path) for _ in range(4)]
    assert [answer(process)["answer"] for process in started] == [42.0] * 4
    assert len(kernels(tmp_path)) == 2
    assert len([*tmp_path.rglob("*.part")]) == 0
    assert run(PROBE, site=installed, NUMBA_CACHE_DIR=tmp_path)["loaded"] == 1


# Each damaged file is loaded by dispatchers of their own, in a process that a crash would end.


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


OWN_LOSS = """
import json
from typing import NamedTuple
import numpy as np
from shortlist._jit import njit
from shortlist.losses.base import _value_gradient_rows
from shortlist.losses.kernels import Kernels, register

class Own(NamedTuple):
    k: int = 1

@njit
def value(loss, f, y, v, work):
    return VALUE

register(Own, Kernels(value))
values = np.empty(1)
_value_gradient_rows(Own(), np.zeros((1, 2)), np.zeros(1, np.int64), values, np.zeros((1, 2)))
print(json.dumps(values[0]))
"""


def test_an_edit_to_a_loss_outside_the_package_is_seen(tmp_path):
    for value in ("1.0", "2.0"):
        assert run(OWN_LOSS.replace("VALUE", value), NUMBA_CACHE_DIR=tmp_path) == float(value)


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


def test_caches_in_the_old_format_are_swept(installed, tmp_path):
    old = tmp_path / "kernels-old"
    old.mkdir()
    (old / "special.V-12.py311.nbi").write_bytes(b"index")
    (old / "special.V-12.py311.1.nbc").write_bytes(b"code")
    others = tmp_path / "index" / "other.nbi"  # another package's
    others.parent.mkdir()
    others.write_bytes(b"index")
    run(PROBE, site=installed, NUMBA_CACHE_DIR=tmp_path)
    assert not old.exists()
    assert others.exists()


def test_files_that_a_killed_process_left_are_swept(installed, warm):
    [folder] = warm.iterdir()
    abandoned, fresh = folder / "a.part", folder / "b.part"
    abandoned.write_bytes(b"")
    fresh.write_bytes(b"")
    os.utime(abandoned, (0, 0))
    run(PROBE, site=installed, NUMBA_CACHE_DIR=warm)
    assert not abandoned.exists()
    assert fresh.exists()


def test_two_types_do_not_share_a_file(installed, warm):
    integers = PROBE.replace("kernel(40.0)", "float(kernel(40))")
    assert run(integers, site=installed, NUMBA_CACHE_DIR=warm)["loaded"] == 0
    assert len(kernels(warm, "_probe.kernel-*")) == 2


def test_flushing_forgets_one_kernel(installed, warm):
    flush = PROBE + "\nkernel._cache.flush()\n"
    assert run(flush, site=installed, NUMBA_CACHE_DIR=warm)["loaded"] == 1
    assert kernels(warm, "_probe.kernel-*") == []
    assert len(kernels(warm)) == 1


def test_a_disabled_cache_is_left_alone(installed, tmp_path):
    disable = PROBE.replace("answer = ", "kernel._cache.disable(); answer = ")
    run(disable, site=installed, NUMBA_CACHE_DIR=tmp_path)
    assert kernels(tmp_path, "_probe.kernel-*") == []
    enable = disable.replace("disable()", "disable(); kernel._cache.enable()")
    run(enable, site=installed, NUMBA_CACHE_DIR=tmp_path)
    assert len(kernels(tmp_path, "_probe.kernel-*")) == 1


def test_import_is_light():
    code = "import json, sys, shortlist; dir(shortlist); print(json.dumps(sorted(sys.modules)))"
    loaded = {name.split(".")[0] for name in answer(start(code))}
    assert not loaded & {"numba", "torch", "matplotlib", "sklearn", "scipy", "numpy"}


def test_kernels_run_as_python_where_jit_is_disabled(installed):
    code = "import json; from shortlist._probe import kernel; print(json.dumps(kernel(40.0)))"
    assert run(code, site=installed, NUMBA_DISABLE_JIT="1") == 42.0


APART_PROBE = """
import json
from shortlist import _probe_apart as probe

def count(kernel):
    loaded = sum(kernel.stats.cache_hits.values())
    return [loaded, len(kernel.overloads) - loaded]

answers = [getattr(probe, name)(9.0) for name in NAMES]
try:
    answers.append(probe.one_more(-1.0))
except ValueError as error:
    answers.append(str(error))
wholes = [count(getattr(probe, name)) for name in NAMES]
units = [count(kernel.unit()) for kernel in (probe.step_of_any, probe.root_of_any)]
print(json.dumps([answers, wholes, units]))
"""


def test_a_kernel_that_is_compiled_apart_is_compiled_once(installed, tmp_path):
    """Counts are of kernels loaded and compiled, of two callers and of what they call."""

    def probe(*names):
        return run(
            APART_PROBE.replace("NAMES", repr(names)), site=installed, NUMBA_CACHE_DIR=tmp_path
        )

    compiled, loaded, unasked = [0, 1], [1, 0], [0, 0]
    # The first caller compiles them, the second finds them in the process.
    both = probe("one_more", "two_more")
    assert both == [[7.0, 8.0, "negative"], [compiled, compiled], [compiled, compiled]]
    assert len(kernels(tmp_path)) == 4
    # The file of a caller is enough.
    units = [*kernels(tmp_path, "*step_of_any*"), *kernels(tmp_path, "*root_of_any*")]
    assert len(units) == 2
    for path in units:
        path.unlink()
    assert probe("one_more", "two_more") == [both[0], [loaded, loaded], [unasked, unasked]]
    # What came with the file of a caller is not loaded again beside what is compiled anew.
    [second] = kernels(tmp_path, "*two_more*")
    second.unlink()
    assert probe("one_more", "two_more") == [both[0], [loaded, compiled], [compiled, compiled]]
    # A new caller takes what is on disk.
    for path in kernels(tmp_path, "*_more*"):
        path.unlink()
    assert probe("one_more", "two_more") == [both[0], [compiled, compiled], [loaded, unasked]]
