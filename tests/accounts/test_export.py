"""The export of all that a member has on the site."""

import json
from io import BytesIO
from zipfile import ZipFile

import pytest

from posting.accounts import export
from posting.accounts.views import export as views
from posting.db.base import db
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem
from tests.helpers.moderation import decide, report


def download(client):
    with client.get("/users/me/export") as response:
        assert response.status_code == 200, response.text
        assert response.mimetype == "application/zip"
        return ZipFile(BytesIO(response.data))


def read(archive, name):
    return json.loads(archive.read(f"{name}.json"))


class TestContent:
    def test_it_has_all_of_ones_own(self, alice, bob, owner, post):
        topic = owner.post("/topics", json={"name": "Looms", "color": "green"}).json
        topic = {name: topic[name] for name in ("id", "name", "color")}
        photo = pictures.photo()
        image = alice.add_image(post, photo, alt="A loom")["id"]
        file = alice.send_file(b"%PDF-1.7\n", "minutes.pdf")["id"]
        alice.patch(f"/posts/{post['id']}", json={"files": [file], "topics": [topic["id"]]})
        comment = alice.add_comment(post, "🧵")
        reply = bob.add_comment(post, "Indeed.", parent_id=comment["id"])
        report(alice, "comment", reply, reason="Why?")
        assert alice.put("/users/me/avatar", data={"file": (BytesIO(photo), "a")}).json
        archive = download(alice)
        assert archive.testzip() is None
        [profile] = read(archive, "profile")
        assert profile["username"] == "alice"
        [own_post], [own_comment] = read(archive, "posts"), read(archive, "comments")
        assert own_post["content"] == post["content"]
        assert own_post["topics"] == [topic]
        assert (own_comment["content"], own_comment["post_id"]) == ("🧵", post["id"])
        assert [item["alt"] for item in read(archive, "images")] == ["A loom"]
        assert [item["kind"] for item in read(archive, "notifications")] == ["reply"]
        assert [item["reason"] for item in read(archive, "reports")] == ["Why?"]
        assert len(read(archive, "sessions")) == 1
        assert archive.read(f"images/{image}.jpeg")
        assert archive.read(f"files/{file}/minutes.pdf") == b"%PDF-1.7\n"
        assert archive.read("avatar.webp")

    def test_it_has_nothing_of_others_and_no_secret(self, app, alice, bob, post):
        bob.create_post("Of Bob", content="zyzzyva")
        bob.add_comment(post, "zyzzyva too")
        alice.post("/tokens", json={"name": "x", "scope": "read"})
        archive = download(alice)
        texts = [archive.read(name).decode() for name in archive.namelist()]
        assert not any("zyzzyva" in text for text in texts)
        with app.app_context():
            tables = db.metadata.tables
            for table, column in (("users", "password_hash"), ("sessions", "token_hash")):
                for (secret,) in db.session.execute(
                    tables[table].select().with_only_columns(tables[table].c[column])
                ):
                    assert not any(secret in text for text in texts)

    def test_it_does_not_say_who_has_decided_on_a_report(self, alice, bob, moderator):
        decide(moderator, report(alice, "user", bob.user))
        [item] = read(download(alice), "reports")
        assert item["outcome"] == "dismissed"
        assert moderator.user["id"] not in item.values()

    def test_an_account_without_anything(self, sign_in):
        archive = download(sign_in("newcomer"))
        assert read(archive, "posts") == read(archive, "comments") == []

    def test_many_texts_are_read_in_batches(self, alice, monkeypatch):
        monkeypatch.setattr(export, "BATCH", 2)
        for number in range(5):
            alice.create_post(f"Post {number}")
        titles = [item["title"] for item in read(download(alice), "posts")]
        assert sorted(titles) == [f"Post {number}" for number in range(5)]

    def test_all_tables_of_a_member_are_in_it(self):
        """A new table of members must take part, or be named here."""
        users = db.metadata.tables["users"]
        own = {
            table.name
            for table in db.metadata.tables.values()
            for key in table.foreign_keys
            if key.column.table is users
        }
        exported = {
            owner.class_.__tablename__ for owner in {**export.TEXTS, **export.OTHERS}.values()
        }
        left_out = {
            *("avatars", "idempotency_keys", "invitation_uses", "recovery_codes", "reset_links"),
            *("former_addresses", "mail_links", "push_subscriptions", "webhooks"),
        }
        assert own <= exported | left_out


class TestPlaces:
    @pytest.fixture(autouse=True)
    def no_place_is_left_taken(self):
        yield
        assert views._running == set()

    def test_a_member_has_one_at_a_time_and_others_have_a_place(self, alice, bob, sign_in):
        first = alice.get("/users/me/export", buffered=False)
        assert assert_problem(alice.get("/users/me/export"), 503)["code"] == "export_busy"
        second = bob.get("/users/me/export", buffered=False)
        response = sign_in("carol").get("/users/me/export")
        assert assert_problem(response, 503)["code"] == "export_busy"
        first.close()
        second.close()
        assert download(alice).testzip() is None

    def test_head_makes_none(self, alice):
        with alice.head("/users/me/export") as response:
            assert (response.status_code, response.data) == (200, b"")
