"""Backups that owners download, and how the service is kept."""

import gzip
import json
from unittest.mock import patch

import pytest
from werkzeug.exceptions import ServiceUnavailable

from posting.ops import views
from posting.ops.doctor import installation, upkeep
from posting.testbed import PASSWORD
from tests.helpers import pictures
from tests.helpers.archives import export as export_by_command
from tests.helpers.archives import import_
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.clock import shifted_clock
from tests.helpers.notifications import told
from tests.helpers.owners import confirm


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine without nginx, and without backups."""
    monkeypatch.setattr(installation, "NGINX", tmp_path / "nginx")
    monkeypatch.setattr(installation, "BACKUPS", tmp_path / "backups")
    return tmp_path


def download(client):
    assert confirm(client).status_code == 204
    with client.get("/backup") as response:
        assert response.status_code == 200, response.text
        return response.data


def acts_of(client):
    return [(act["action"], act["target"]["kind"]) for act in client.get("/moderation/log").json]


class TestConfirmation:
    def test_a_backup_needs_the_password_again(self, owner):
        response = owner.get("/backup")
        assert (response.status_code, response.json["code"]) == (403, "not_confirmed")
        assert confirm(owner).status_code == 204
        with owner.get("/backup") as response:
            assert response.status_code == 200

    def test_a_wrong_password_confirms_nothing(self, owner):
        assert error_locations(confirm(owner, "not the password")) == {"/current_password"}
        assert owner.get("/backup").status_code == 403

    def test_it_ends_after_five_minutes(self, owner):
        for minutes, status in ((4.9, 200), (5.1, 403)):
            assert confirm(owner).status_code == 204
            with shifted_clock(minutes=minutes), owner.get("/backup") as response:
                assert response.status_code == status

    def test_it_allows_one_download(self, owner):
        download(owner)
        assert owner.get("/backup").json["code"] == "not_confirmed"

    def test_two_downloads_at_once_use_it_once(self, owner):
        """The second one has passed the check, but the first one has used the confirmation up."""
        assert confirm(owner).status_code == 204
        with patch.object(views.sessions, "take_confirmation", return_value=False):
            assert owner.get("/backup").json["code"] == "not_confirmed"
        assert acts_of(owner) == told(owner) == []

    def test_a_clock_that_was_set_back_does_not_extend_it(self, owner):
        with shifted_clock(hours=1):
            assert confirm(owner).status_code == 204
        assert owner.get("/backup").status_code == 403

    def test_it_is_of_one_session(self, owner, anonymous):
        credentials = {"username": owner.user["username"], "password": PASSWORD}
        assert anonymous.post("/signin", json=credentials).status_code == 200
        assert confirm(anonymous).status_code == 204
        assert owner.get("/backup").status_code == 403

    def test_a_member_with_a_password_gets_no_backup(self, alice, moderator):
        for client in (alice, moderator):
            assert confirm(client).status_code == 204
            assert client.get("/backup").json["code"] == "not_site_owner"

    def test_a_former_owner_gets_none(self, owner, flask, sign_in):
        sign_in("grace", role="owner")
        assert confirm(owner).status_code == 204
        assert flask("users", "demote", owner.user["username"])[0] == 0
        assert owner.get("/backup").json["code"] == "not_site_owner"


class TestContent:
    def test_it_is_the_archive_of_an_export(self, app, owner, alice, post, tmp_path):
        alice.add_image(post, pictures.photo())
        assert download(owner) == export_by_command(app, tmp_path / "1.gz")

    def test_it_can_be_imported(self, owner, alice, post, empty_app, tmp_path):
        image = alice.add_image(post, pictures.photo())["id"]
        file = tmp_path / "backup.jsonl.gz"
        file.write_bytes(download(owner))
        import_(empty_app, file)
        restored = empty_app.test_client()
        assert restored.get(f"/posts/{post['id']}").json["title"] == post["title"]
        assert restored.get(f"/images/{image}").status_code == 200

    def test_its_headers(self, owner):
        assert confirm(owner).status_code == 204
        with owner.get("/backup") as response:
            name = response.headers["Content-Disposition"]
            assert name.startswith('attachment; filename="posting-2')
            assert name.endswith('.jsonl.gz"')
            assert response.mimetype == "application/gzip"
            assert response.headers["Cache-Control"] == "private, no-store"
            assert response.headers["X-Accel-Buffering"] == "no"

    def test_others_write_meanwhile_and_it_stays_consistent(self, owner, alice, post):
        assert confirm(owner).status_code == 204
        with owner.get("/backup", buffered=False) as response:
            parts = response.iter_encoded()
            received = next(parts)
            comment = alice.add_comment(post, "Is it in the backup?")
            received += b"".join(parts)
        lines = gzip.decompress(received).splitlines()
        assert json.loads(lines[0])["rows"]["comments"] == 0
        assert comment["id"].encode() not in b"".join(lines)


class TestTraces:
    def test_the_log_has_it_and_all_owners_are_told(self, owner, moderator, sign_in):
        other = sign_in("grace", role="owner")
        download(owner)
        assert acts_of(moderator) == [("downloaded", "backup")]
        for client in (owner, other):
            [item] = told(client)
            assert (item["kind"], item["actor"]["id"]) == ("backup", owner.user["id"])
        assert told(moderator) == []

    def test_what_is_refused_leaves_no_trace(self, owner):
        assert owner.get("/backup").status_code == 403
        assert confirm(owner).status_code == 204
        with owner.head("/backup") as response:
            assert response.status_code == 200
        views._is_running.acquire()
        try:
            response = owner.get("/backup")
            assert assert_problem(response, 503)["code"] == "backup_busy"
            assert response.headers["Retry-After"] == "60"
        finally:
            views._is_running.release()
        assert acts_of(owner) == told(owner) == []
        assert owner.get("/site/state").json["downloaded_at"] is None

    def test_a_second_one_waits_for_the_end_of_the_first(self, owner):
        assert confirm(owner).status_code == 204
        with owner.get("/backup", buffered=False) as first:
            next(first.iter_encoded())
            assert confirm(owner).status_code == 204
            for method in (owner.get, owner.head):
                assert method("/backup").status_code == 503
        with owner.get("/backup") as response:  # the client of the first one has gone
            assert response.status_code == 200

    def test_one_that_cannot_be_recorded_is_not_sent(self, owner):
        assert confirm(owner).status_code == 204
        with (
            patch.object(views, "tell_of_backup", side_effect=MemoryError),
            pytest.raises(MemoryError),
        ):
            owner.get("/backup")
        assert acts_of(owner) == []
        with owner.get("/backup") as response:
            assert response.status_code == 200


class TestEnd:
    def test_one_that_takes_too_long_is_not_complete(self, owner, monkeypatch, caplog):
        assert confirm(owner).status_code == 204
        monkeypatch.setattr(views, "MAX_SECONDS", -1)
        with pytest.raises(ConnectionResetError):
            owner.get("/backup")
        assert "The download of a backup ended early. It has taken more than" in caplog.text

    def test_a_row_that_could_not_be_imported_ends_it(self, owner, caplog):
        assert confirm(owner).status_code == 204
        with (
            patch("posting.ops.archive.exporting.encode_row", side_effect=ValueError("is odd")),
            owner.get("/backup") as response,
            pytest.raises(ConnectionResetError),
        ):
            response.get_data()
        assert "cannot be exported: is odd." in caplog.text

    def test_an_error_before_the_first_byte_is_a_problem(self, owner):
        assert confirm(owner).status_code == 204
        with patch.object(views, "count_rows", side_effect=ServiceUnavailable):
            assert_problem(owner.get("/backup"), 503)
        download(owner)


class TestState:
    def test_a_new_site(self, owner):
        state = owner.get("/site/state").json
        assert state["first_steps"] == dict.fromkeys(
            ("description", "rules", "invitation", "post", "backup"), False
        )
        assert state["nightly_backup_at"] is state["downloaded_at"] is None
        assert state["database_bytes"] > 100_000

    def test_the_first_steps(self, owner, post, id_of):
        owner.patch("/site", json={"description": "A place.", "rules": "Be kind."})
        id_of("invitation")
        download(owner)
        state = owner.get("/site/state").json
        assert all(state["first_steps"].values())
        assert state["downloaded_at"] is not None

    def test_the_newest_backup_of_the_machine(self, owner, machine):
        (machine / "backups" / "20261120").mkdir(parents=True)
        (machine / "backups" / "20261120" / "posting.db").touch()
        state = owner.get("/site/state").json
        assert state["nightly_backup_at"] is not None
        assert state["first_steps"]["backup"]

    def test_a_backup_that_is_just_replaced_is_skipped(self, owner, machine):
        (machine / "backups").mkdir()
        (machine / "backups" / "posting.db").symlink_to("nowhere")
        assert owner.get("/site/state").json["nightly_backup_at"] is None

    def test_a_check_that_fails_is_a_finding(self, owner):
        def fail(_connection):
            raise ValueError("a date that is none")

        with patch.object(upkeep, "CHECKS", (fail,)):
            findings = owner.get("/site/state").json["findings"]
        assert (
            findings[-1]["message"] == "The database holds an invalid value (a date that is none)"
        )

    def test_findings_have_a_level_a_message_and_a_fix(self, owner):
        findings = owner.get("/site/state").json["findings"]
        assert {finding["level"] for finding in findings} <= {"warning", "failure"}
        messages = [finding["message"] for finding in findings]
        assert any("There are no backups" in message for message in messages)
        assert all(finding["fix"] for finding in findings)
