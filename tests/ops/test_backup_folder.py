"""`flask backup FOLDER/` and `flask restore FOLDER`: the database and the operator's files."""

import os
import stat

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.transactions import transaction
from posting.ops import files
from tests.conftest import POSTGRES
from tests.helpers.backups import SERVICE, fail_as_full, overwrite_pages, rows
from tests.helpers.doctor import unstarted

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="Postgres has pg_dump and pg_restore")


@pytest.fixture
def site(make_app, tmp_path, monkeypatch):
    """A service with a user, in a folder with its settings, and with files of its operator."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".env").write_text("POSTING_NAME=Elm Street\n")
    monkeypatch.chdir(home)
    monkeypatch.setenv("FLASK_SKIP_DOTENV", "0")
    app = make_app(INSTANCE_PATH=str(home / "instance"), DATABASE_URL="sqlite:///posting.db")
    app.folder, app.settings = home / "instance", home / ".env"
    app.file = app.folder / "posting.db"
    (app.folder / "about.md").write_text("# Elm Street\n")
    (app.folder / "custom.css").write_text(":root { --accent: green }\n")
    add_user(app, "ada")
    return app


@pytest.fixture
def saved(flask, site, folder):
    """A backup of that service."""
    assert flask("backup", f"{folder}/saved/", on=site)[0] == 0
    return folder / "saved"


def add_user(app, name):
    with app.app_context():
        db.session.add(User(username=name, password_hash="x"))
        db.session.commit()
        close_connections()


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def find_kept(site):
    """Return the content of the files that keep what a restore has replaced."""
    return {
        file.name.partition(".before-restore-")[0]: file.read_bytes()
        for file in site.folder.glob("*.before-restore-*")
    }


class TestBackup:
    def test_a_folder_has_all_that_the_site_consists_of(self, flask, site, folder):
        code, output = flask("backup", f"{folder}/saved/", on=site)
        saved = folder / "saved"
        expected = f"{saved} is a backup of posting.db, about.md, custom.css, .env.\n"
        assert (code, output) == (0, expected)
        assert names(saved) == [".env", "about.md", "custom.css", "posting.db"]
        assert rows(saved / "posting.db") == rows(site.file)
        for file in (site.folder / "about.md", site.folder / "custom.css", site.settings):
            assert (saved / file.name).read_bytes() == file.read_bytes()
        assert stat.S_IMODE(saved.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in saved.iterdir()} == {0o600}

    def test_an_existing_folder_needs_no_slash(self, flask, site, folder):
        assert flask("backup", str(folder), on=site)[0] == 0
        assert "posting.db" in names(folder)

    def test_files_that_do_not_exist_are_left_out(self, flask, site, folder):
        (site.folder / "custom.css").unlink()
        site.settings.unlink()
        expected = f"{folder} is a backup of posting.db, about.md.\n"
        assert flask("backup", f"{folder}/", on=site) == (0, expected)
        assert names(folder) == ["about.md", "posting.db"]

    def test_an_earlier_backup_is_replaced_only_with_force(self, flask, site, saved):
        before = rows(saved / "posting.db")
        add_user(site, "grace")
        (site.folder / "about.md").write_text("# Oak Street\n")
        (site.folder / "custom.css").unlink()
        code, output = flask("backup", f"{saved}/", on=site)
        assert (code, f"{saved}/posting.db already exists" in output) == (1, True)
        assert rows(saved / "posting.db") == before
        assert flask("backup", "--force", f"{saved}/", on=site)[0] == 0
        assert rows(saved / "posting.db") == rows(site.file) != before
        assert (saved / "about.md").read_text() == "# Oak Street\n"
        assert names(saved) == [".env", "about.md", "posting.db"]

    def test_files_of_another_kind_are_not_replaced(self, flask, site, folder):
        (folder / "about.md").write_text("About something else")
        code, output = flask("backup", "--force", f"{folder}/", on=site)
        assert (code, "it is not a backup" in output) == (1, True)
        assert names(folder) == ["about.md"]
        assert (folder / "about.md").read_text() == "About something else"

    def test_a_failed_backup_leaves_no_folder(self, flask, site, folder, monkeypatch):
        monkeypatch.setattr(files, "_sync", fail_as_full)
        code, output = flask("backup", f"{folder}/saved/", on=site)
        assert (code, "No space left on device" in output) == (1, True)
        assert names(folder) == []

    def test_a_failed_backup_leaves_the_earlier_one(self, flask, site, saved):
        before = {file: file.read_bytes() for file in saved.iterdir()}
        (site.folder / "about.md").write_text("# Oak Street\n")
        with site.app_context():
            close_connections()
        overwrite_pages(site.file)
        code, output = flask("backup", "--force", f"{saved}/", on=site)
        assert (code, "is damaged" in output) == (1, True)
        assert {file: file.read_bytes() for file in saved.iterdir()} == before

    def test_a_file_that_cannot_be_read_is_named(self, flask, site, folder):
        (site.folder / "about.md").unlink()
        (site.folder / "about.md").symlink_to("/proc/self/mem")
        code, output = flask("backup", f"{folder}/saved/", on=site)
        assert (code, f"{site.folder}/about.md cannot be copied" in output) == (1, True)
        assert names(folder) == []

    def test_the_folder_of_the_database_is_refused(self, flask, site):
        before = rows(site.file)
        code, output = flask("backup", "--force", f"{site.folder}/", on=site)
        assert (code, "is the database itself" in output) == (1, True)
        assert rows(site.file) == before
        assert (site.folder / "about.md").exists()

    def test_a_file_alone_says_what_it_does_not_contain(self, flask, site, folder):
        code, output = flask("backup", f"{folder}/now.db", on=site)
        assert code == 0
        first, second = output.splitlines()
        assert first.startswith(f"{folder}/now.db is a backup of ")
        assert second.startswith("It does not contain about.md, custom.css, .env. To include them")
        for file in (site.settings, site.folder / "about.md", site.folder / "custom.css"):
            file.unlink()
        assert flask("backup", f"{folder}/other.db", on=site)[1].count("\n") == 1


class TestRestore:
    def test_everything_is_as_it_was_and_the_rest_is_kept(self, flask, site, saved):
        add_user(site, "grace")
        before = rows(site.file)
        (site.folder / "about.md").write_text("# Oak Street\n")
        (site.folder / "custom.css").unlink()
        code, output = flask("restore", "--force", str(saved), on=site)
        assert code == 0
        assert rows(site.file) == rows(saved / "posting.db") != before
        for name in ("about.md", "custom.css"):
            assert (site.folder / name).read_bytes() == (saved / name).read_bytes()
            assert f"{name} is restored. Restart the service to apply this.\n" in output
        kept = find_kept(site)
        assert kept.keys() == {"posting.db", "about.md"}
        assert kept["about.md"] == b"# Oak Street\n"
        assert output.count("The previous content is kept in ") == 2
        assert "settings" not in output

    def test_files_that_the_backup_does_not_have_are_kept_aside(self, flask, site, saved):
        (saved / "custom.css").unlink()
        code, output = flask("restore", "--force", str(saved), on=site)
        assert code == 0
        moved = "custom.css is not in the backup, and was moved aside. Restart the service"
        assert f"{moved} to apply this.\n" in output
        assert "is restored. Restart" not in output
        assert not (site.folder / "custom.css").exists()
        assert find_kept(site)["custom.css"] == b":root { --accent: green }\n"

    def test_files_that_are_the_same_are_left_alone(self, flask, site, saved):
        before = (site.folder / "about.md").stat()
        code, output = flask("restore", "--force", str(saved), on=site)
        assert (code, "Restart" in output) == (0, False)
        assert (site.folder / "about.md").stat() == before
        assert find_kept(site).keys() == {"posting.db"}

    def test_nothing_is_replaced_without_force(self, flask, site, saved):
        with site.app_context(), transaction() as connection:
            connection.execute(sa.delete(User))
        before = rows(site.file)
        (site.folder / "about.md").write_text("# Oak Street\n")
        code, output = flask("restore", str(saved), on=site)
        assert (code, f"{site.folder}/about.md differs from the backup" in output) == (1, True)
        assert "--force" in output
        assert rows(site.file) == before
        assert (site.folder / "about.md").read_text() == "# Oak Street\n"
        assert find_kept(site) == {}

    @pytest.mark.parametrize("change", ["changed", "missing"])
    def test_other_settings_are_named_and_not_restored(self, flask, site, saved, change):
        if change == "missing":
            site.settings.unlink()
        else:
            site.settings.write_text("POSTING_NAME=Oak Street\n")
        code, output = flask("restore", "--force", str(saved), on=site)
        assert code == 0
        assert f"The settings are not restored. Compare yours with {saved}/.env\n" in output
        if change == "changed":
            assert site.settings.read_text() == "POSTING_NAME=Oak Street\n"

    def test_a_file_has_the_owner_and_mode_of_the_one_it_replaces(self, flask, site, saved, owners):
        (site.folder / "about.md").write_text("# Oak Street\n")
        (site.folder / "about.md").chmod(0o444)
        (site.folder / "custom.css").unlink()
        code, _ = flask("restore", "--force", str(saved), on=site)
        assert code == 0
        folder = site.folder.stat()
        assert owners.pop("about.md") == SERVICE
        assert owners.pop("custom.css") == (folder.st_uid, folder.st_gid)  # there was none
        assert list(owners.values()) == [SERVICE]  # of the previous content of the database
        assert stat.S_IMODE((site.folder / "about.md").stat().st_mode) == 0o444
        assert stat.S_IMODE((site.folder / "custom.css").stat().st_mode) == 0o600

    def test_a_new_machine_gets_the_whole_site(self, flask, site, saved, tmp_path, monkeypatch):
        folder = tmp_path / "new" / "instance"
        owners = []
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(os, "chown", lambda file, *owner: owners.append(owner))
        new = unstarted(INSTANCE_PATH=str(folder), DATABASE_URL="sqlite:///posting.db")
        code, output = flask("restore", str(saved), on=new)
        assert (code, "kept" in output) == (0, False)
        assert names(folder) == ["about.md", "custom.css", "posting.db"]
        assert rows(folder / "posting.db") == rows(site.file)
        # Root gives the files to the owner of the folder.
        assert owners == [(folder.stat().st_uid, folder.stat().st_gid)] * 3

    def test_a_folder_without_a_database_is_refused(self, flask, site, folder):
        expected = f"Error: There is no file {folder}/posting.db.\n"
        assert flask("restore", "--force", str(folder), on=site) == (1, expected)
