"""The kernel cache, seen from fresh processes."""

import os
import shutil
from pathlib import Path

import pytest

import shortlist
from shortlist._jit_cache import check_trusted
from tests.processes import answer, run, start

PACKAGE = Path(shortlist.__file__).parent
AS_ROOT = hasattr(os, "getuid") and os.getuid() == 0
POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner here")

# A kernel in one module, what it inlines in another: small, so that compiling takes no time.
HELPER = (
    "from shortlist._jit import njit\n\n@njit(inline=True)\ndef helper(x):\n    return x + {}\n"
)
CALLER = """
from shortlist._jit import njit
from shortlist._probe_helper import helper


@njit
def kernel(x):
    return helper(x)
"""
# Two kernels that call the same one, which is compiled apart, and another one through it.
APART = """
from shortlist._jit import njit, overloaded


@njit
def root_of_any(x):
    if x < 0.0:
        raise ValueError("negative")
    return x**0.5


@overloaded(apart=True)
def root(x):
    return root_of_any


@njit
def step_of_any(x):
    return 2.0 * root(x)


@overloaded(apart=True)
def step(x):
    return step_of_any


@njit
def one_more(x):
    return step(x) + 1.0


@njit
def two_more(x):
    return step(x) + 2.0
"""
PROBE = """
import json
from shortlist._jit_cache import cache_place
from shortlist._probe import kernel
answer = kernel(40.0)
stats = kernel.stats
print(json.dumps({
    "answer": answer,
    "loaded": sum(stats.cache_hits.values()),
    "compiled": len(kernel.overloads) - sum(stats.cache_hits.values()),
    "folder": str(cache_place().folder),
    "obstacle": cache_place().obstacle,
}))
"""


@pytest.fixture
def installed(tmp_path):
    """A copy of the package, as far as kernels need it, in a folder of its own."""
    return _install(tmp_path / "site")


def _install(site: Path) -> Path:
    (site / "shortlist").mkdir(parents=True)
    needed = (
        "__init__",
        "_lazy",
        "_compiling",
        "_files",
        "_folders",
        "_jit",
        "_jit_cache",
        "_jit_compiler",
        "_jit_internals",
    )
    for name in needed:
        shutil.copy(PACKAGE / f"{name}.py", site / "shortlist")
    (site / "shortlist" / "_probe.py").write_text(CALLER)
    (site / "shortlist" / "_probe_helper.py").write_text(HELPER.format("2.0"))
    (site / "shortlist" / "_probe_apart.py").write_text(APART)
    return site


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A cache that a process has filled, by the probe of a copy like ``installed``."""
    folder = tmp_path_factory.mktemp("compiled")
    run(PROBE, site=_install(folder / "site"), NUMBA_CACHE_DIR=folder / "cache")
    return folder / "cache"


@pytest.fixture
def warm(compiled, tmp_path):
    """A copy of the filled cache."""
    return Path(shutil.copytree(compiled, tmp_path / "warm"))


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def kernels(folder: Path, pattern: str = "*") -> list[Path]:
    return sorted(folder.rglob(f"{pattern}.kernel"))


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
DAMAGE = """
import json, random
from pathlib import Path
from shortlist import _probe, _probe_helper
from shortlist._jit import njit

path, kind = Path(PATH), KIND
intact = path.read_bytes()
random.seed(0)

def load_once():
    _probe.helper = _probe_helper.helper = njit(inline=True)(_probe_helper.helper.py_func)
    kernel = njit(_probe.kernel.py_func)
    return kernel(40.0), sum(kernel.stats.cache_hits.values())

def flipped(i):
    data = bytearray(intact)
    data[i] ^= 1 << random.randrange(8)
    return bytes(data)

some = [*range(60), *random.sample(range(60, len(intact)), 60), len(intact) - 1]
damaged = {
    "flipped": [flipped(i) for i in some],
    "cut": [intact[:i] for i in (0, 1, 30, 60, len(intact) // 2, len(intact) - 1)],
    "garbage": [bytes(50), intact + b"x", intact[60:], random.randbytes(len(intact))],
}[kind]
outcomes = []
for data in damaged:
    path.write_bytes(data)
    outcomes.append(load_once())
path.write_bytes(intact)
print(json.dumps({"outcomes": outcomes, "intact": load_once()}))
"""


@pytest.mark.parametrize("kind", ["flipped", "cut", "garbage"])
def test_a_damaged_kernel_is_compiled_again(installed, warm, kind):
    [path] = kernels(warm, "_probe.kernel-*")
    code = DAMAGE.replace("PATH", repr(str(path))).replace("KIND", repr(kind))
    found = run(code, site=installed, NUMBA_CACHE_DIR=warm)
    assert found["outcomes"] == [[42.0, 0]] * len(found["outcomes"])
    assert found["intact"] == [42.0, 1]


def test_a_damaged_part_is_compiled_again(installed, warm):
    [part] = kernels(warm, "_probe_helper.helper-*")
    [whole] = kernels(warm, "_probe.kernel-*")
    intact = part.read_bytes()
    for place in (len(intact) // 3, len(intact) // 2, len(intact) - 50):
        whole.unlink()
        part.write_bytes(intact[:place] + bytes([intact[place] ^ 16]) + intact[place + 1 :])
        found = run(PROBE, site=installed, NUMBA_CACHE_DIR=warm)
        assert (found["answer"], found["compiled"]) == (42.0, 1)
        assert len(part.read_bytes()) == pytest.approx(len(intact), rel=0.01)


def test_a_file_under_another_name_is_refused(installed, warm):
    [doubles] = kernels(warm, "_probe.kernel-*")
    run(PROBE.replace("40.0", "40"), site=installed, NUMBA_CACHE_DIR=warm)
    [integers] = set(kernels(warm, "_probe.kernel-*")) - {doubles}  # two types, two files
    shutil.copy(integers, doubles)
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=warm)
    assert (found["answer"], found["loaded"]) == (42.0, 0)


def test_nothing_damaged_is_unpickled(installed, warm):
    for path in kernels(warm):
        path.write_bytes(path.read_bytes()[:-1] + b"\0")
    watch = "import pickle\npickle.loads = lambda *_: print('unpickled')\n"
    assert run(watch + PROBE, site=installed, NUMBA_CACHE_DIR=warm)["loaded"] == 0


@POSIX
def test_the_folder_is_private(installed, tmp_path):
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=tmp_path / "cache")
    assert Path(found["folder"]).stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    for path in kernels(tmp_path):
        assert path.stat().st_mode & 0o777 == 0o600


def _refusal(installed, root) -> str:
    """Why a cache below this folder is refused; it is refused, and the kernel runs."""
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=root)
    assert (found["answer"], found["compiled"], found["folder"]) == (42.0, 1, "None")
    return found["obstacle"]


@POSIX
def test_a_parent_that_all_can_write_is_refused(installed, tmp_path):
    shared = tmp_path / "shared"
    root = shared / "a" / "b"
    root.mkdir(parents=True)
    shared.chmod(0o777)
    assert f"{shared} can be written by other users" in _refusal(installed, root)
    assert files(root) == set()
    shared.chmod(0o1777)  # like /tmp
    for loaded in (0, 1):
        assert run(PROBE, site=installed, NUMBA_CACHE_DIR=root)["loaded"] == loaded


@POSIX
def test_links_are_followed_before_the_check(installed, tmp_path):
    (tmp_path / "shared" / "cache").mkdir(parents=True)
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "shared" / "cache")
    assert "can be written by other users" in _refusal(installed, tmp_path / "link")


@pytest.fixture
def folder(tmp_path):
    """A folder that can be trusted, in one whose mode a test may change."""
    made = tmp_path / "parent" / "kernels"
    made.mkdir(parents=True, mode=0o700)
    check_trusted(made)
    return made


@POSIX
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o707, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_not_trusted(folder, mode):
    folder.chmod(mode)
    with pytest.raises(PermissionError, match=f"{folder} can be written by other users"):
        check_trusted(folder)


@POSIX
def test_a_folder_that_others_can_read_is_trusted(folder):
    folder.chmod(0o755)
    check_trusted(folder)


@POSIX
@pytest.mark.parametrize(
    ("mode", "own", "trusted"),
    [
        (0o755, True, True),
        (0o755, False, True),
        (0o775, True, True),  # groups of one user are common
        (0o775, False, False),
        (0o777, True, False),
        (0o777, False, False),
        (0o702, True, False),
        (0o1777, True, True),
        (0o1777, False, True),  # /tmp
    ],
)
def test_which_parents_are_trusted(folder, monkeypatch, mode, own, trusted):
    """A parent that is not this user's own is root's here: all is, to another user."""
    if not own and not AS_ROOT:
        pytest.skip("only root has folders of root's")
    folder.parent.chmod(mode)
    if not own:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    if trusted:
        check_trusted(folder)
    else:
        with pytest.raises(PermissionError, match=f"{folder.parent} can be written"):
            check_trusted(folder)


@pytest.mark.skipif(not AS_ROOT, reason="only root can give files away")
def test_folders_of_another_user_are_not_trusted(folder):
    for path in (folder, folder.parent, folder.parent.parent):
        os.chown(path, 12345, -1)
        with pytest.raises(PermissionError, match=f"{path} is not a folder of this user"):
            check_trusted(folder)
        os.chown(path, 0, -1)
    check_trusted(folder)


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
