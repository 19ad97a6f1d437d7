"""`atomic_write`: no existing file is lost, and no incomplete one appears."""

import errno
import os

import pytest

from posting.ops.files import atomic_write


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_created_meanwhile_is_not_replaced(tmp_path):
    file = tmp_path / "file"
    with pytest.raises(FileExistsError), atomic_write(file, replace=False):
        file.write_text("precious")
    assert file.read_text() == "precious"
    assert names(tmp_path) == ["file"]


def test_a_file_system_without_hard_links_works(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with atomic_write(tmp_path / "file", replace=False) as draft:
        draft.write_text("complete")
    assert (tmp_path / "file").read_text() == "complete"
    assert names(tmp_path) == ["file"]


def test_the_target_of_a_dangling_link_is_created(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    with atomic_write(link, replace=False) as draft:
        draft.write_text("complete")
    assert names(tmp_path) == ["file", "link"]
    assert link.read_text() == "complete"


def test_sidecars_are_deleted_with_the_replaced_file(tmp_path):
    file, sidecars = tmp_path / "file", ("-wal",)
    for suffix in ("", *sidecars):
        (tmp_path / f"file{suffix}").write_text("old")

    def interrupt():
        with atomic_write(file, replace=True, sidecars=sidecars) as draft:
            draft.with_name(f"{draft.name}-wal").write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert names(tmp_path) == ["file", "file-wal"]
    with atomic_write(file, replace=True, sidecars=sidecars):
        pass
    assert names(tmp_path) == ["file"]
