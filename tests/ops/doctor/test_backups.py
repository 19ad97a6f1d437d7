"""The age of backups, and the files that a restore has left."""

import os
import re
from datetime import timedelta

import pytest

from posting.db.types import now
from posting.ops.doctor import installation
from posting.ops.doctor.findings import ok
from tests.conftest import POSTGRES
from tests.helpers import ROOT
from tests.helpers.doctor import examine, only_problem, problems

SHIPPED_FOLDER = installation.BACKUPS  # which the tests replace
on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="restores SQLite")


@pytest.fixture
def folder():
    return installation.BACKUPS


def add(file, days=0.0):
    """Add a backup that was made some days ago."""
    file.parent.mkdir(exist_ok=True)
    file.touch()
    set_age(file, days)


def set_age(path, days):
    time = (now() - timedelta(days=days)).timestamp()
    os.utime(path, (time, time))


@pytest.mark.parametrize("name", ["Monday/posting.db", "Monday/posting.dump", "Monday.db"])
def test_a_new_backup_is_ok(healthy, folder, name):
    add(folder / "Sunday.db", days=7)
    add(folder / name, days=1.9)
    assert problems(healthy) == []
    made = f"{now() - timedelta(days=1.9):%Y-%m-%d}"
    [message] = [each.message for each in examine(healthy) if "newest backup" in each.message]
    assert message.startswith(f"The newest backup in {folder} is from {made} ")


@pytest.mark.parametrize("name", ["Monday/posting.db", "Monday/posting.dump", "Monday.db"])
def test_an_old_backup_is_a_warning(healthy, folder, name):
    add(folder / name, days=2.1)
    add(folder / "unfinished" / "about.md")
    fix = only_problem(healthy, "warning", f"The newest backup in {folder} is from ")
    assert "posting-backup.timer" in fix


def test_a_folder_without_backups_is_a_warning_after_two_days(healthy, folder):
    assert problems(healthy) == []
    assert ok(f"There is no backup in {folder} yet") in examine(healthy)
    set_age(folder, 2.1)
    only_problem(healthy, "warning", f"There is no backup in {folder} yet")


def test_a_missing_folder_is_a_warning(healthy, folder):
    folder.rmdir()
    fix = only_problem(healthy, "warning", f"There are no backups: there is no folder {folder}")
    assert "docs/operating.md" in fix


def test_a_folder_that_cannot_be_read_is_a_warning(healthy, folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: path != folder)
    only_problem(healthy, "warning", f"{folder} cannot be read")


def test_the_folder_is_that_of_the_nightly_backup():
    unit = (ROOT / "deploy" / "posting-backup.service").read_text()
    assert set(re.findall(r"/var/backups/\w+", unit)) == {str(SHIPPED_FOLDER)}


@on_sqlite
@pytest.mark.parametrize(("days", "age"), [(0.1, "0 days"), (1.5, "1 day"), (40.5, "40 days")])
def test_a_file_that_a_restore_has_left_is_a_warning(own, days, age):
    app, file = own
    stamp = f"{now() - timedelta(days=days):%Y%m%dT%H%M%SZ}"
    kept = file.with_name(f"{file.name}.before-restore-{stamp}")
    for suffix in ("", "-wal", "-shm", ".old"):
        kept.with_name(kept.name + suffix).touch()
    fix = only_problem(app, "warning", f"{kept} is what `flask restore` replaced {age} ago")
    assert f"rm {kept}*" in fix


def test_a_replaced_page_is_a_warning(own, monkeypatch, tmp_path):
    app, _ = own
    monkeypatch.setattr(app, "instance_path", str(tmp_path / "instance"))
    kept = tmp_path / "instance" / "about.md.before-restore-20260102T030405Z"
    kept.parent.mkdir()
    kept.touch()
    only_problem(app, "warning", f"{kept} is what `flask restore` replaced ")
