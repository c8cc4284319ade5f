"""Downloads against a server on this machine: verified, cached, and never half done."""

import bz2
import hashlib
import http.server
import os
import sys
import threading

import numpy as np
import platformdirs
import pytest

from shortlist.datasets import default_cache_dir, fetch, load_letter, write_libsvm
from shortlist.datasets import downloads as downloads_module
from shortlist.datasets.downloads import _download
from shortlist.errors import DataError


class Site:
    """Files to serve, how to misbehave, and what was asked for."""

    def __init__(self):
        self.files = {}
        self.break_after = []  # one number of bytes for each answer to break off
        self.failures = []  # one HTTP status for each request to refuse
        self.requests = []
        self.url = ""


@pytest.fixture
def site():
    state = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            state.requests.append(self.path)
            if state.failures:
                return self.send_error(state.failures.pop(0))
            content = state.files.get(self.path.lstrip("/"))
            if content is None:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            stop = state.break_after.pop(0) if state.break_after else len(content)
            self.wfile.write(content[:stop])
            return None

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """pooch waits a second or more before it asks again."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "file.bin"


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def download(site, target, sha256=None, progress=None):
    _download(site.url + "file.bin", target, sha256, progress)


@pytest.mark.parametrize("sha256", [None, SHA256])
def test_a_download_leaves_only_the_file(site, target, sha256):
    site.files["file.bin"] = CONTENT
    download(site, target, sha256)
    assert target.read_bytes() == CONTENT
    assert names(target.parent) == ["file.bin"]


def test_a_broken_connection_is_tried_again(site, target):
    site.files["file.bin"] = CONTENT
    site.break_after = [100_000, 50_000]
    download(site, target)
    assert target.read_bytes() == CONTENT
    assert len(site.requests) == 3


def test_half_a_file_is_never_left(site, target):
    site.files["file.bin"] = CONTENT
    site.break_after = [100_000] * 4
    with pytest.raises(DataError, match=r"file\.bin: cannot be downloaded"):
        download(site, target)
    assert names(target.parent) == []
    download(site, target)
    assert target.read_bytes() == CONTENT


def test_a_busy_server_is_asked_again(site, target):
    site.files["file.bin"] = CONTENT
    site.failures = [503, 429]
    download(site, target)
    assert target.read_bytes() == CONTENT


def test_a_file_that_is_not_there_is_not_asked_for_again(site, target):
    with pytest.raises(DataError, match=r"file\.bin: cannot be downloaded \(HTTP 404 Not Found\)"):
        download(site, target)
    assert len(site.requests) == 1
    assert names(target.parent) == []


def test_no_server(target):
    with pytest.raises(DataError, match=r"cannot be downloaded \(.*refused"):
        _download("http://127.0.0.1:9/file.bin", target, None, None)


def test_only_the_file_whose_hash_is_known_is_accepted(site, target):
    site.files["file.bin"] = CONTENT[::-1]
    with pytest.raises(DataError, match=r"file\.bin: differs from the known checksum: the file at"):
        download(site, target, SHA256)
    assert names(target.parent) == []


def test_a_file_that_changed_in_the_cache_is_told_and_kept(site, target):
    site.files["file.bin"] = CONTENT
    download(site, target, SHA256)
    target.write_bytes(CONTENT[:-1])
    with pytest.raises(DataError, match="differs from the known checksum: delete the file"):
        download(site, target, SHA256)
    assert target.read_bytes() == CONTENT[:-1]
    assert len(site.requests) == 1


def test_a_progress_bar_goes_to_standard_error_and_nothing_else_does(site, target, capsys):
    site.files["file.bin"] = CONTENT
    download(site, target, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "file.bin" in captured.err
    target.unlink()
    download(site, target, progress=False)
    assert capsys.readouterr() == ("", "")


# --- data sets -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def letter_files(tmp_path_factory):
    """Return the contents of Letter's three files, written from the embedded data."""
    folder = tmp_path_factory.mktemp("letter")
    letter = load_letter()
    contents = {}
    for split, suffix in (("train", "tr"), ("val", "val"), ("test", "t")):
        path = folder / f"letter.scale.{suffix}"
        part = letter.part(split)
        write_libsvm(path, part.X, part.y + 1)
        contents[path.name] = path.read_bytes()
    return contents


@pytest.fixture
def letter_site(site, letter_files):
    site.files.update(letter_files)
    return site


def test_letter_equals_the_embedded_copy(letter_site, tmp_path):
    cache = tmp_path / "cache"
    data = fetch("letter", cache_dir=cache, base_url=letter_site.url)
    letter = load_letter()
    for split in ("train", "val", "test"):
        np.testing.assert_allclose(data.part(split).X, letter.part(split).X, rtol=1e-15)
        np.testing.assert_array_equal(data.part(split).y, letter.part(split).y + 1)
    assert isinstance(data.X_train, np.ndarray)
    assert len(letter_site.requests) == 3
    # The second time nothing is downloaded.
    fetch("letter", cache_dir=cache, base_url=letter_site.url)
    assert len(letter_site.requests) == 3


def test_checksums_are_recorded_and_checked(letter_site, tmp_path):
    cache = tmp_path / "cache"
    fetch("letter", cache_dir=cache, base_url=letter_site.url)
    folder = cache / "datasets" / "letter"
    sums = dict(reversed(line.split()) for line in (folder / "SHA256SUMS").read_text().splitlines())
    for name in ("letter.scale.tr", "letter.scale.val", "letter.scale.t"):
        assert sums[name] == hashlib.sha256(letter_site.files[name]).hexdigest()
    path = folder / "letter.scale.t"
    path.write_bytes(path.read_bytes().replace(b"1:-1", b"1:-2", 1))
    with pytest.raises(DataError, match=r"letter\.scale\.t: differs from the known checksum"):
        fetch("letter", cache_dir=cache, base_url=letter_site.url)
    # Deleting it is the way out, as the message says.
    path.unlink()
    fetch("letter", cache_dir=cache, base_url=letter_site.url)
    # A site whose file changed later is noticed too.
    path.unlink()
    letter_site.files["letter.scale.t"] = letter_site.files["letter.scale.t"][:-1]
    with pytest.raises(DataError, match="differs from the known checksum"):
        fetch("letter", cache_dir=cache, base_url=letter_site.url)


def test_a_file_with_other_numbers_than_published_is_refused(letter_site, tmp_path):
    lines = letter_site.files["letter.scale.val"].splitlines(keepends=True)
    letter_site.files["letter.scale.val"] = b"".join(lines[:-1])
    with pytest.raises(DataError, match="has 4499 examples, but LibSVM's page says 4500"):
        fetch("letter", cache_dir=tmp_path / "a", base_url=letter_site.url)
    letter_site.files["letter.scale.val"] = b"".join([*lines[:-1], b"1 17:1\n"])
    with pytest.raises(DataError, match="line 4500: feature index 17 is beyond the 16 features"):
        fetch("letter", cache_dir=tmp_path / "b", base_url=letter_site.url)
    relabelled = [b"27" + line[line.index(b" ") :] for line in lines[:1]]
    letter_site.files["letter.scale.val"] = b"".join([*relabelled, *lines[1:]])
    with pytest.raises(DataError, match="has 27 classes, but LibSVM's page says 26"):
        fetch("letter", cache_dir=tmp_path / "c", base_url=letter_site.url)


@pytest.fixture
def small_sources(monkeypatch):
    """Make ALOI and sector small: 12 examples of 3 classes with 5 features."""
    part, source = downloads_module._Part, downloads_module._Source
    split = {
        "train": part("sector/sector.scale.bz2", 12),
        "test": part("sector/sector.t.scale.bz2", 12),
    }
    monkeypatch.setitem(downloads_module.SOURCES, "sector", source(5, 3, split))
    whole = {"all": part("aloi.scale.bz2", 12)}
    raw = {"all": part("aloi.bz2", 12)}
    monkeypatch.setitem(downloads_module.SOURCES, "aloi", source(5, 3, whole, raw))


TWELVE = "".join(f"{i % 3} {1 + i % 3}:{i + 1}\n" for i in range(12)).encode()


def test_archives_in_a_folder_of_the_site(site, small_sources, tmp_path):
    for name in ("sector.scale.bz2", "sector.t.scale.bz2"):
        site.files[f"sector/{name}"] = bz2.compress(TWELVE)
    data = fetch("sector", cache_dir=tmp_path, base_url=site.url.rstrip("/"))
    # Narrower than published: the missing columns are zeros.
    assert data.X_train.shape == data.X_test.shape == (12, 5)
    assert data.val is None


def test_aloi_is_halved_class_by_class(site, small_sources, tmp_path):
    site.files["aloi.scale.bz2"] = bz2.compress(TWELVE)
    data = fetch("aloi", cache_dir=tmp_path, base_url=site.url)
    assert np.bincount(data.y_train).tolist() == np.bincount(data.y_test).tolist() == [2, 2, 2]
    values = [
        value for X in (data.X_train, data.X_test) for value in X.sum(axis=1).ravel().tolist()
    ]
    assert sorted(np.ravel(values).tolist()) == list(range(1, 13))
    again = fetch("aloi", cache_dir=tmp_path, base_url=site.url)
    np.testing.assert_array_equal(data.y_train, again.y_train)
    other = fetch("aloi", cache_dir=tmp_path, base_url=site.url, random_state=5)
    assert other.X_train.shape == data.X_train.shape


def test_an_archive_cut_short_at_the_source(site, small_sources, tmp_path):
    site.files["aloi.scale.bz2"] = bz2.compress(TWELVE)[:-4]
    with pytest.raises(DataError, match=r"aloi\.scale\.bz2: the archive is cut short"):
        fetch("aloi", cache_dir=tmp_path, base_url=site.url)
    # It is not kept: the next call gets the good one.
    site.files["aloi.scale.bz2"] = bz2.compress(TWELVE)
    assert fetch("aloi", cache_dir=tmp_path, base_url=site.url).train.n_samples == 6


def test_names_and_versions(site, tmp_path):
    with pytest.raises(ValueError, match="name must be one of letter, news20, aloi, sector"):
        fetch("mnist", cache_dir=tmp_path)
    with pytest.raises(ValueError, match="letter has only a scaled version"):
        fetch("letter", scaled=False, cache_dir=tmp_path)


def test_the_raw_version_is_another_file(site, small_sources, tmp_path):
    site.files["aloi.bz2"] = bz2.compress(TWELVE)
    fetch("aloi", scaled=False, cache_dir=tmp_path, base_url=site.url)
    assert site.requests == ["/aloi.bz2"]


def test_two_at_once_download_once(site, small_sources, tmp_path):
    site.files["aloi.scale.bz2"] = bz2.compress(TWELVE)
    results = []

    def work():
        results.append(fetch("aloi", cache_dir=tmp_path, base_url=site.url))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    if os.name == "posix":
        assert len(site.requests) == 1


def test_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("SHORTLIST_CACHE", str(tmp_path / "a"))
    assert default_cache_dir() == tmp_path / "a"
    monkeypatch.delenv("SHORTLIST_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache_dir() == platformdirs.user_cache_path("shortlist", appauthor=False)
    if sys.platform == "linux":
        assert default_cache_dir() == tmp_path / "x" / "shortlist"


def test_the_environment_chooses_the_cache(site, small_sources, tmp_path, monkeypatch):
    monkeypatch.setenv("SHORTLIST_CACHE", str(tmp_path / "mine"))
    site.files["aloi.scale.bz2"] = bz2.compress(TWELVE)
    fetch("aloi", base_url=site.url)
    assert (tmp_path / "mine" / "datasets" / "aloi" / "aloi.scale.bz2").exists()
