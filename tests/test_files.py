"""Files that appear whole or not at all."""

import os
import time

import pytest

from shortlist._files import atomic_write


def test_what_a_killed_process_left_is_removed_a_day_after(tmp_path):
    target = tmp_path / "model[1].bin"
    old, fresh = (tmp_path / f".model[1].bin.{word}.part" for word in ("old", "fresh"))
    other = tmp_path / ".model1.bin.old.part"
    for path in (old, fresh, other):
        path.write_bytes(b"half")
    yesterday = time.time() - 25 * 3600
    for path in (old, other):
        os.utime(path, (yesterday, yesterday))
    with atomic_write(target) as part:
        part.write_bytes(b"whole")
    assert target.read_bytes() == b"whole"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [target.name, fresh.name, other.name]
    )


@pytest.mark.skipif(os.name == "nt", reason="there are no such locks")
def test_what_is_being_written_stays_and_what_a_killed_process_left_goes(tmp_path):
    target = tmp_path / "model"
    abandoned = tmp_path / ".model.abandoned.part"
    abandoned.write_bytes(b"half")
    seconds_ago = time.time() - 5
    os.utime(abandoned, (seconds_ago, seconds_ago))
    with atomic_write(target) as first:
        first.write_bytes(b"first")
        os.utime(first, (seconds_ago, seconds_ago))
        with atomic_write(target) as second:
            second.write_bytes(b"second")
        assert first.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert target.read_bytes() == b"first"
