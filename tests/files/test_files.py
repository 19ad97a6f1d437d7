"""Files: sent, attached to a text, downloaded, deleted."""

from datetime import timedelta
from io import BytesIO
from itertools import product
from urllib.parse import unquote

import pytest
import sqlalchemy as sa
from urllib3 import encode_multipart_formdata
from werkzeug.http import parse_options_header

from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now
from posting.files.models import File, FileData
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.changes import changes_after, cursor_of_now

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21
PDF = b"%PDF-1.7\n"
TEXT = {"title": "On looms", "content": "They weave."}
HOSTILE = b"%PDF-1.7\n<!doctype html><script>alert(document.cookie)</script>"


def form(data=PDF, name="minutes.pdf"):
    return {"file": (BytesIO(data), name)}


def ids(items):
    return [item["id"] for item in items]


def row_counts(app):
    """Return the numbers of files and of their data."""
    with app.app_context():
        count = sa.select(sa.func.count())
        return [db.session.scalar(count.select_from(table)) for table in (File, FileData)]


@pytest.fixture
def file(alice):
    return alice.send_file()


@pytest.fixture(params=["post", "comment"])
def write(request, alice, post):
    """Return a function that writes a text of Alice with fields, and returns the response."""
    paths = {"post": "/posts", "comment": f"/posts/{post['id']}/comments"}
    text = TEXT if request.param == "post" else {"content": "They weave."}
    return lambda client=alice, **fields: client.post(paths[request.param], json=text | fields)


def path_of(text):
    return f"/comments/{text['id']}" if "post_id" in text else f"/posts/{text['id']}"


class TestBefore:
    def test_a_file_is_sent_without_a_text(self, alice):
        created = alice.post("/files", data=form())
        assert created.status_code == 201
        file = created.json
        assert file == {
            "id": file["id"],
            "url": f"http://localhost/files/{file['id']}/minutes.pdf",
            "post_id": None,
            "comment_id": None,
            "name": "minutes.pdf",
            "media_type": "application/pdf",
            "size": len(PDF),
            "created_at": file["created_at"],
        }
        own = created.headers["Location"]
        assert own == f"http://localhost/users/me/files/{file['id']}"
        assert alice.get(own).data == PDF
        assert alice.get("/users/me/files").json == [file]

    def test_only_its_owner_reads_it(self, alice, bob, moderator, anonymous, file):
        own, shown = f"/users/me/files/{file['id']}", f"/files/{file['id']}"
        for client in (alice, bob, moderator, anonymous):
            for path in (shown, f"{shown}/minutes.pdf"):
                assert assert_problem(client.get(path), 404)["code"] == "no_such_file"
        for other in (bob, moderator):
            assert_problem(other.get(own), 404)
            assert other.get("/users/me/files").json == []
        assert_problem(anonymous.get(own), 401)
        assert_problem(alice.get(f"/users/me/files/{UNKNOWN}"), 404)
        response = alice.get(own)
        assert response.headers["Cache-Control"] == "private, no-store"

    def test_only_its_owner_deletes_it(self, app, alice, bob, moderator, file):
        own = f"/users/me/files/{file['id']}"
        for other, path in product((bob, moderator), (own, f"/files/{file['id']}")):
            assert_problem(other.delete(path), 404)
        response = alice.get(own)
        assert_problem(alice.delete(own, headers={"If-Match": '"other"'}), 412)
        headers = {"If-Match": response.headers["ETag"]}
        assert alice.delete(own, headers=headers).status_code == 204
        assert row_counts(app) == [0, 0]

    @pytest.mark.parametrize(
        ("data", "name"),
        [(b"<html>", "a.html"), (b"<svg>", "a.pdf"), (b"", "a.pdf"), (b"\xff\xd8\xffPK", "a.zip")],
    )
    def test_a_file_of_another_kind_gets_422(self, app, alice, data, name):
        response = alice.post("/files", data=form(data, name))
        assert error_locations(response) == {"/file"}
        assert response.json["errors"][0]["code"] == "unusable_file"
        assert row_counts(app) == [0, 0]

    @pytest.mark.parametrize("data", [{}, {"file": "text"}, {"file": "text", "name": "x"}])
    def test_a_form_needs_a_file(self, alice, data):
        response = alice.post("/files", data=data, content_type="multipart/form-data")
        assert response.status_code in {400, 422}

    def test_a_file_has_a_maximum_size(self, alice, make_app):
        client = alice.copy(make_app(MAX_FILE_BYTES=2000))
        client.send_file(PDF.ljust(2000))
        problem = assert_problem(client.post("/files", data=form(PDF.ljust(2001))), 413)
        assert "2,000 bytes" in problem["detail"]
        # This does not concern images, nor the other way around.
        client.send_image()
        body, kind = encode_multipart_formdata({"file": ("a.pdf", PDF.ljust(2**21))})
        problem = assert_problem(client.post("/files", data=body, content_type=kind), 413)
        assert "1,050,576 bytes" in problem["detail"]

    def test_a_member_has_forty_at_most(self, app, alice, bob, file):
        with app.app_context(), transaction() as connection:
            row = connection.execute(sa.select(File.__table__)).one()._mapping
            others = [{**row, "id": f"{number:021}"} for number in range(39)]
            connection.execute(sa.insert(File), others)
        problem = alice.post("/files", data=form())
        assert error_locations(problem) == {"/file"}
        assert problem.json["errors"][0]["code"] == "too_many_unattached"
        assert "40 files" in problem.json["errors"][0]["detail"]
        bob.send_file()
        alice.send_image()
        with app.app_context(), transaction() as connection:  # the others have no bytes
            day_before = now() - timedelta(days=1, hours=1)
            connection.execute(sa.update(File).values(unattached_since=day_before))
        new = alice.send_file()
        assert alice.get("/users/me/files").json == [new]
        assert row_counts(app) == [1, 1]

    def test_it_expires_after_a_day(self, app, alice, bob, file):
        with app.app_context(), transaction() as connection:
            day_before = now() - timedelta(days=1, hours=1)
            connection.execute(sa.update(File).values(unattached_since=day_before))
        other = bob.send_file()
        assert alice.get("/users/me/files").json == []
        assert bob.get("/users/me/files").json == [other]

    def test_it_goes_with_the_account(self, app, bob):
        bob.send_file()
        assert bob.delete("/users/me").status_code == 204
        assert row_counts(app) == [0, 0]

    def test_uploads_are_limited(self, alice, make_app):
        client = alice.copy(make_app(RATE_LIMITS="on", LIMIT_FILES="2/hour"))
        for _ in range(2):
            client.send_file()
        assert_problem(client.post("/files", data=form()), 429)

    def test_a_request_is_repeated(self, app, alice):
        headers = {"Idempotency-Key": "x"}
        first = alice.post("/files", data=form(), headers=headers)
        again = alice.post("/files", data=form(), headers=headers)
        assert first.json == again.json
        assert row_counts(app) == [1, 1]


class TestAttached:
    def test_a_text_has_files_in_its_order(self, alice, anonymous, write):
        files = [alice.send_file(name=f"{name}.pdf") for name in "abc"]
        created = write(files=[files[2]["id"], files[0]["id"]])
        assert created.status_code == 201
        text = created.json
        assert [file["name"] for file in text["files"]] == ["c.pdf", "a.pdf"]
        assert anonymous.get(path_of(text)).json == text
        assert alice.get("/users/me/files").json == [files[1]]
        for file in text["files"]:
            assert anonymous.get(f"/files/{file['id']}").json == file
            assert anonymous.get(file["url"]).data == PDF

    def test_lists_have_them(self, alice, anonymous, post):
        files = [alice.send_file() for _ in range(2)]
        created = alice.create_post("x", files=[files[0]["id"]])
        alice.add_comment(post, "x", files=[files[1]["id"]])
        [brief, other] = anonymous.get("/posts?expand=files").json
        assert (brief["file_count"], brief["files"]) == (1, created["files"])
        assert (other["file_count"], other["files"]) == (0, [])
        for path in (f"/posts/{post['id']}/comments", "/comments"):
            [comment] = anonymous.get(path).json
            assert ids(comment["files"]) == [files[1]["id"]]

    def test_it_is_attached_once_and_by_its_owner(self, alice, bob, write, file):
        for client, status in ((bob, 422), (alice, 201), (alice, 422)):
            response = write(client, files=[file["id"]])
            assert response.status_code == status
            if status == 422:
                assert error_locations(response) == {"/files/0"}
                assert response.json["errors"][0]["code"] == "no_such_file"

    @pytest.mark.parametrize("files", [[UNKNOWN], ["x"], "x", [None], [1]])
    def test_a_text_with_something_else_changes_nothing(self, app, alice, write, file, files):
        listed = isinstance(files, list)
        assert_problem(write(files=[file["id"], *files] if listed else files), 422)
        assert alice.get("/users/me/files").json == [file]
        assert len(alice.get("/posts").json) <= 1

    def test_a_text_has_five_at_most(self, alice, write):
        files = ids(alice.send_file() for _ in range(6))
        assert error_locations(write(files=files)) == {"/files"}
        assert error_locations(write(files=[files[0], files[0]])) == {"/files"}
        assert write(files=files[:5]).status_code == 201

    def test_an_edit_has_the_whole_list(self, app, alice, anonymous, write):
        files = ids(alice.send_file() for _ in range(3))
        text = write(files=files[:2]).json
        path = path_of(text)
        edited = alice.patch(path, json={"content": "x"})
        assert ids(edited.json["files"]) == files[:2]
        edited = alice.patch(path, json={"files": [files[2], files[0]]})
        assert edited.status_code == 200
        assert ids(edited.json["files"]) == [files[2], files[0]]
        assert edited.json["updated_at"] > text["updated_at"]
        assert_problem(anonymous.get(f"/files/{files[1]}"), 404)
        assert alice.patch(path, json={"files": []}).json["files"] == []
        assert row_counts(app) == [0, 0]

    def test_it_is_deleted_by_its_author_or_a_moderator(self, app, alice, bob, moderator, write):
        files = ids(alice.send_file() for _ in range(2))
        text = write(files=files).json
        paths = [f"/files/{id}" for id in files]
        problem = assert_problem(bob.delete(paths[0]), 403)
        assert problem["code"] == "not_author"
        assert_problem(alice.delete(paths[0], headers={"If-Match": '"other"'}), 412)
        cursor = cursor_of_now(alice)
        headers = {"If-Match": f'"{files[0]}"'}
        assert alice.delete(paths[0], headers=headers).status_code == 204
        assert_problem(alice.delete(paths[0]), 404)
        assert ids(alice.get(path_of(text)).json["files"]) == files[1:]
        kind = "comment" if "post_id" in text else "post"
        [change] = changes_after(alice, cursor)
        assert (change["kind"], change["id"], change["change"]) == (kind, text["id"], "edited")
        assert moderator.delete(f"{paths[1]}?reason=A+virus").status_code == 204
        [act] = moderator.get("/moderation/log").json
        assert act["target"]["id"] == files[1]
        assert (act["action"], act["target"]["kind"], act["reason"]) == (
            "deleted",
            "file",
            "A virus",
        )
        [told] = [each for each in alice.get("/notifications").json if each["kind"] == "removal"]
        assert (told["excerpt"], told["reason"]) == ("minutes.pdf", "A virus")
        assert row_counts(app) == [0, 0]

    @pytest.mark.parametrize("has_reply", [False, True])
    def test_it_goes_with_the_comment(self, app, alice, bob, post, has_reply):
        comment = bob.add_comment(post, "x", files=[bob.send_file()["id"]])
        if has_reply:
            alice.add_comment(post, "y", parent_id=comment["id"])
        assert bob.delete(f"/comments/{comment['id']}").status_code == 204
        assert row_counts(app) == [0, 0]

    def test_it_goes_with_the_post(self, app, alice, bob, post):
        bob.add_comment(post, "x", files=[bob.send_file()["id"]])
        alice.patch(f"/posts/{post['id']}", json={"files": [alice.send_file()["id"]]})
        assert row_counts(app) == [2, 2]
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert row_counts(app) == [0, 0]

    @pytest.mark.parametrize(("query", "left"), [("", 2), ("?content=delete", 0)])
    def test_they_stay_or_go_with_the_account(self, alice, bob, post, query, left):
        bob.create_post("x", files=[bob.send_file()["id"]])
        comment = bob.add_comment(post, "x", files=[bob.send_file()["id"]])
        alice.add_comment(post, "y", parent_id=comment["id"])
        assert bob.delete(f"/users/me{query}").status_code == 204
        assert row_counts(alice.application) == [left, left]

    def test_moderators_see_them_in_reports(self, alice, bob, moderator, write):
        text = write(files=[alice.send_file()["id"]]).json
        path = f"{path_of(text)}/reports"
        assert bob.post(path, json={"reason": "x"}).status_code == 201
        [report] = moderator.get("/reports").json
        assert report["target"]["files"] == text["files"]
        member = moderator.get(f"/moderation/users/{alice.user['id']}").json
        assert member["files"] == 1


class TestDownload:
    @pytest.fixture
    def shown(self, alice):
        return alice.create_post("x", files=[alice.send_file(HOSTILE)["id"]])["files"][0]

    def test_a_browser_saves_it_and_runs_nothing(self, anonymous, shown):
        response = anonymous.get(shown["url"])
        assert response.data == HOSTILE
        assert response.content_type == "application/pdf"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        disposition = parse_options_header(response.headers["Content-Disposition"])
        assert disposition == ("attachment", {"filename": "minutes.pdf"})

    @pytest.mark.parametrize("name", ["a b.pdf", "Grüße 🧵.pdf", "a';x=.pdf", "a%2Fb?#&.pdf"])
    def test_it_keeps_its_name(self, alice, anonymous, name):
        file = alice.create_post("x", files=[alice.send_file(name=name)["id"]])["files"][0]
        assert file["name"] == name
        assert file["url"].isascii()
        assert unquote(file["url"]) == f"http://localhost/files/{file['id']}/{name}"
        response = anonymous.get(file["url"])
        header = response.headers["Content-Disposition"]
        kind, options = parse_options_header(header)
        assert (kind, options["filename"]) == ("attachment", name)
        assert header.isascii()
        assert "\n" not in header

    def test_it_has_one_url(self, anonymous, shown):
        for name in ("other.pdf", "minutes.PDF", "minutes.html", "minutes.pdf%20"):
            assert_problem(anonymous.get(f"/files/{shown['id']}/{name}"), 404)
        assert_problem(anonymous.get(f"{shown['url']}?x=1"), 422)

    def test_it_never_changes(self, anonymous, shown):
        response = anonymous.get(shown["url"])
        assert response.headers["ETag"] == f'"{shown["id"]}"'
        assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        again = anonymous.get(shown["url"], headers={"If-None-Match": response.headers["ETag"]})
        assert (again.status_code, again.data) == (304, b"")
        assert anonymous.head(shown["url"]).headers["Content-Length"] == str(len(HOSTILE))

    @pytest.mark.posting_settings(READING="members")
    def test_only_members_read_it_if_only_members_may(self, alice, bob, anonymous, shown):
        for path in (shown["url"], f"/files/{shown['id']}"):
            assert_problem(anonymous.get(path), 401)
            response = bob.get(path)
            assert response.status_code == 200
            assert response.headers["Cache-Control"].startswith("private")
        token = bob.post("/tokens", json={"name": "x", "scope": "feed"}).json["token"]
        feed = anonymous.get(f"/feeds/{token}/feed.json").json
        [attachment] = feed["items"][0]["attachments"]
        assert attachment["url"].startswith(f"http://localhost/feeds/{token}/files/")
        assert anonymous.get(attachment["url"]).data == HOSTILE


class TestQuota:
    def test_images_and_files_of_a_member_have_one_total(self, alice, bob, make_app):
        size = alice.send_image()["size"]
        client = alice.copy(make_app(MAX_MEMBER_BYTES=2000 + size))
        client.send_file(PDF.ljust(2000))
        for path, data in (("/files", PDF), ("/images", pictures.png())):
            problem = assert_problem(client.post(path, data=form(data)), 413)
            assert problem["code"] == "quota_exceeded"
        bob.copy(client.application).send_file()
