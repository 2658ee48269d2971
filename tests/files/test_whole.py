"""Files are whole or not there, and errors name them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from geocalib.files import is_special, naming, replacing, write_bytes, write_text

FULL = Path("/dev/full")


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_old_file_stays_on_errors(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail_halfway() -> None:
        with replacing(path) as file:
            file.write(b"half of the ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert path.read_bytes() == b"old"
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert left_in(tmp_path) == ["file"]


def test_folders_links_and_permissions(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "deep" / "caf\udce9.txt", "caf\udce9\n")
    assert (tmp_path / "new" / "deep" / "caf\udce9.txt").read_bytes() == b"caf\xe9\n"
    secret, link = tmp_path / "secret", tmp_path / "link"
    secret.write_bytes(b"old")
    secret.chmod(0o600)
    link.symlink_to(secret)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert secret.read_bytes() == b"new"
    assert secret.stat().st_mode & 0o777 == 0o600


def test_what_is_no_plain_file_is_written_to_as_it_is(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    write_bytes(Path(f"/dev/fd/{writing}"), b"words")
    os.close(writing)
    assert os.read(reading, 100) == b"words"
    os.close(reading)
    write_bytes(Path(os.devnull), b"words")
    (tmp_path / "log").write_bytes(b"old ")
    with (tmp_path / "log").open("ab") as log:
        write_bytes(Path(f"/dev/fd/{log.fileno()}"), b"words")
    assert (tmp_path / "log").read_bytes() == b"old words"
    assert is_special("/dev/stdout")
    assert is_special(os.devnull)
    assert not is_special(tmp_path)
    assert not is_special(tmp_path / "missing")


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to(FULL)
    with pytest.raises(OSError, match=r"No space left on device: '.*/full'"):
        write_bytes(tmp_path / "full", b"words")


def test_a_folder_that_may_not_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, mode: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match=r"Permission denied: '.*/out.csv'$"):
        write_bytes(tmp_path / "out.csv", b"words")


def test_errors_about_other_files_keep_their_names(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"'.*/input'"), naming(tmp_path / "output"):
        (tmp_path / "input").read_bytes()
