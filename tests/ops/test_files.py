"""Files that appear when they are whole: nothing that is there is lost by it."""

import errno
import os

import pytest

from posting.ops.files import InTheWay, appearing


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_somebody_makes_meanwhile_is_not_replaced(tmp_path):
    file = tmp_path / "file"
    with pytest.raises(InTheWay, match="is there already"), appearing(file, replace=False):
        file.write_text("precious")
    assert file.read_text() == "precious"
    assert names(tmp_path) == ["file"]


def test_a_file_system_needs_no_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with appearing(tmp_path / "file", replace=False) as draft:
        draft.write_text("whole")
    assert (tmp_path / "file").read_text() == "whole"
    assert names(tmp_path) == ["file"]


def test_a_link_that_leads_nowhere_is_filled(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    with appearing(link, replace=False) as draft:
        draft.write_text("whole")
    assert names(tmp_path) == ["file", "link"]
    assert link.read_text() == "whole"


def test_what_stands_beside_goes_with_what_is_replaced(tmp_path):
    file, sides = tmp_path / "file", ("-wal",)
    for end in ("", *sides):
        (tmp_path / f"file{end}").write_text("old")

    def fill():
        with appearing(file, replace=True, sides=sides) as draft:
            draft.with_name(f"{draft.name}-wal").write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert names(tmp_path) == ["file", "file-wal"]
    with appearing(file, replace=True, sides=sides):
        pass
    assert names(tmp_path) == ["file"]
