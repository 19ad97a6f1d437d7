"""Accounts over HTTP."""

import random

import pytest
import sqlalchemy as sa

from posting.blueprints import users
from posting.domain import accounts
from tests.conftest import PASSWORD
from tests.helpers.assertions import faults, problem

NEW_PASSWORD = "another walk by the sea"


def path(client):
    return f"/users/{client.user['id']}"


def sign_up(client, **fields):
    return client.post("/signup", json={"username": "ada", "password": PASSWORD} | fields)


def may_sign_in(client, username, password):
    answer = client.post("/signin", json={"username": username, "password": password})
    return answer.status_code == 200


class TestSignUp:
    def test_it_opens_an_account_and_no_session(self, anonymous):
        created = sign_up(anonymous, display_name="Ada Lovelace", bio="Engines.")
        assert created.status_code == 201
        user = created.json
        assert set(user) == {"id", "username", "display_name", "bio", "role", "created_at"}
        assert (user["username"], user["role"]) == ("ada", "member")
        assert created.headers["Location"] == f"http://localhost/users/{user['id']}"
        assert "Set-Cookie" not in created.headers
        problem(anonymous.get("/users/me"), 401)
        assert anonymous.get(created.headers["Location"]).json == user

    def test_optional_fields_are_null(self, anonymous):
        user = sign_up(anonymous).json
        assert (user["display_name"], user["bio"]) == (None, None)
        assert sign_up(anonymous, username="eve", bio=None).json["bio"] is None

    @pytest.mark.parametrize("name", ["ada", "ADA", "aDa"])
    def test_a_name_is_taken_in_any_case(self, anonymous, name):
        assert sign_up(anonymous, username="Ada").json["username"] == "Ada"
        problem(sign_up(anonymous, username=name), 409)

    @pytest.mark.parametrize(
        "name",
        ["", "ab", "x" * 33, "-abc", "_abc", "a b c", "a.bc", "abc\n", "äbc", "abc\u0000", None, 1,
         "admin", "Root", "ME", "deleted"],
    )  # fmt: skip
    def test_a_bad_name_is_refused(self, anonymous, name):
        assert faults(sign_up(anonymous, username=name)) == {"/username"}

    @pytest.mark.parametrize("name", ["abc", "0-_", "x" * 32, "Ada_Lovelace-1"])
    def test_a_good_name_is_kept_as_typed(self, anonymous, name):
        assert sign_up(anonymous, username=name).json["username"] == name

    @pytest.mark.parametrize(
        "password",
        ["", "short12", "x" * 257, "password1", "PASSWORD1", "iloveyou1", None, 12345678,
         "with\u0000null"],
    )  # fmt: skip
    def test_a_bad_password_is_refused(self, anonymous, password):
        assert faults(sign_up(anonymous, password=password)) == {"/password"}
        assert not may_sign_in(anonymous, "ada", "password1")

    def test_the_password_is_not_the_name(self, anonymous):
        answer = sign_up(anonymous, username="Lovelace", password="lovelace")
        assert faults(answer) == {"/password"}

    @pytest.mark.parametrize(
        "password", ["x" * 8 + " ", " 8 chars", "pässwörd 🔑", "y" * 256, "e\u0301 and é"]
    )
    def test_a_password_is_taken_byte_for_byte(self, anonymous, password):
        assert sign_up(anonymous, password=password).status_code == 201
        assert may_sign_in(anonymous, "ada", password)
        for other in (password.strip() + "x", password[:-1], password.upper() + "!"):
            assert not may_sign_in(anonymous, "ada", other)

    def test_the_least_length_is_a_setting(self, make_app):
        client = make_app(PASSWORD_MIN=15).test_client()
        assert faults(sign_up(client, password="14 characters!")) == {"/password"}
        assert sign_up(client, password="15 characters!!").status_code == 201

    @pytest.mark.parametrize(
        "field", ["id", "role", "created_at", "password_hash", "email", "current_password"]
    )
    def test_nothing_else_is_taken(self, anonymous, field):
        assert faults(sign_up(anonymous, **{field: "moderator"})) == {f"/{field}"}

    def test_long_profiles_are_refused(self, anonymous):
        answer = sign_up(anonymous, display_name="x" * 65, bio="x" * 501)
        assert faults(answer) == {"/display_name", "/bio"}
        assert sign_up(anonymous, display_name="é" * 64, bio="é" * 500).status_code == 201


class TestEdit:
    def test_the_profile_is_edited(self, alice, anonymous):
        edited = alice.patch(path(alice), json={"display_name": None, "bio": "Hello."})
        assert edited.status_code == 200
        assert edited.json == alice.user | {"display_name": None, "bio": "Hello."}
        assert anonymous.get(path(alice)).json == edited.json == alice.get("/users/me").json

    def test_nothing_changes_nothing(self, alice):
        assert alice.patch(path(alice), json={}).json == alice.user

    def test_a_new_name_signs_in_and_the_old_one_is_free(self, alice, anonymous):
        assert alice.patch(path(alice), json={"username": "ALICE"}).json["username"] == "ALICE"
        assert alice.patch(path(alice), json={"username": "alicia"}).status_code == 200
        assert may_sign_in(anonymous, "alicia", PASSWORD)
        assert not may_sign_in(anonymous, "alice", PASSWORD)
        assert sign_up(anonymous, username="alice").status_code == 201

    def test_a_taken_name_is_refused_and_nothing_changes(self, alice, bob):
        problem(alice.patch(path(alice), json={"username": "BOB", "bio": "x"}), 409)
        assert alice.get("/users/me").json == alice.user

    def test_an_account_that_goes_meanwhile_is_told(self, app, alice, sign_in, monkeypatch):
        elsewhere = sign_in("alice")
        lock_account = users.lock_account

        def late(user):
            monkeypatch.undo()
            assert elsewhere.delete(path(alice)).status_code == 204
            return lock_account(user)

        monkeypatch.setattr(users, "lock_account", late)
        problem(alice.patch(path(alice), json={"bio": "x"}), 401)

    def test_others_are_refused(self, alice, bob, moderator):
        for other in (bob, moderator):
            problem(other.patch(path(alice), json={"bio": "x"}), 403)
        problem(bob.patch("/users/" + "a" * 21, json={}), 404)
        assert alice.get("/users/me").json == alice.user

    @pytest.mark.parametrize(
        ("body", "wrong"),
        [
            ({"username": None}, {"/username"}),
            ({"password": None}, {"/password"}),
            ({"username": "admin"}, {"/username"}),
            ({"role": "moderator"}, {"/role"}),
            ({"password": NEW_PASSWORD}, {"/current_password"}),
            ({"password": NEW_PASSWORD, "current_password": "wrong"}, {"/current_password"}),
            ({"password": "short", "current_password": PASSWORD}, {"/password"}),
            ({"password": "alice", "current_password": PASSWORD}, {"/password"}),
        ],
    )
    def test_a_bad_edit_is_refused_whole(self, alice, anonymous, body, wrong):
        assert faults(alice.patch(path(alice), json=body | {"bio": "x"})) == wrong
        assert alice.get("/users/me").json == alice.user
        assert may_sign_in(anonymous, "alice", PASSWORD)

    def test_the_own_name_is_no_new_password(self, sign_in):
        margaret = sign_in("margaret")
        body = {"password": "MARGARET", "current_password": PASSWORD}
        assert faults(margaret.patch(path(margaret), json=body)) == {"/password"}

    def test_a_new_password_ends_every_other_session(self, alice, sign_in, anonymous):
        elsewhere = sign_in("alice")
        body = {"password": NEW_PASSWORD, "current_password": PASSWORD}
        assert alice.patch(path(alice), json=body).json == alice.user
        problem(elsewhere.get("/users/me"), 401)
        assert alice.get("/users/me").status_code == 200
        assert not may_sign_in(anonymous, "alice", PASSWORD)
        assert may_sign_in(anonymous, "alice", NEW_PASSWORD)


class TestDelete:
    def test_posts_are_kept_without_author(self, alice, sign_in, anonymous, post):
        elsewhere = sign_in("alice")
        gone = alice.delete(path(alice))
        assert (gone.status_code, gone.data) == (204, b"")
        assert "Max-Age=0" in gone.headers["Set-Cookie"]
        for client in (alice, elsewhere):
            problem(client.get("/users/me"), 401)
        problem(anonymous.get(path(alice)), 404)
        assert anonymous.get(f"/posts/{post['id']}").json == post | {"author": None}
        assert not may_sign_in(anonymous, "alice", PASSWORD)

    def test_posts_are_deleted_when_asked(self, alice, bob, anonymous, post):
        kept = bob.create_post("Bob's")
        assert alice.delete(path(alice) + "?content=delete").status_code == 204
        problem(anonymous.get(f"/posts/{post['id']}"), 404)
        assert [post["id"] for post in anonymous.get("/posts").json] == [kept["id"]]

    def test_the_name_is_free_again(self, alice, anonymous):
        alice.delete(path(alice))
        assert sign_up(anonymous, username="alice").status_code == 201

    @pytest.mark.parametrize("query", ["content=all", "content=", "contents=delete"])
    def test_a_misspelt_wish_deletes_nothing(self, alice, query):
        assert faults(alice.delete(f"{path(alice)}?{query}")) == {query.partition("=")[0]}
        assert alice.get("/users/me").json == alice.user

    def test_others_are_refused(self, alice, bob, moderator):
        for other in (bob, moderator):
            problem(other.delete(path(alice)), 403)
        problem(bob.delete("/users/" + "a" * 21), 404)
        assert alice.get("/users/me").json == alice.user


class TestDeleteMuch:
    """Very many posts and comments go in several transactions, between which others write."""

    @pytest.fixture(autouse=True)
    def small_steps(self, monkeypatch):
        monkeypatch.setattr(accounts, "COMMENTS_PER_STEP", 3)
        monkeypatch.setattr(accounts, "POSTS_PER_STEP", 2)

    @pytest.fixture
    def between_steps(self, monkeypatch):
        def do(action):
            monkeypatch.setattr(accounts, "sleep", lambda _seconds: action())

        return do

    @pytest.fixture(params=range(4))
    def chance(self, request):
        return random.Random(request.param)

    @pytest.mark.usefixtures("stays_consistent")
    @pytest.mark.parametrize("content", ["keep", "delete"])
    def test_it_all_goes(self, alice, bob, between_steps, content, chance):
        posts = [chance.choice([alice, bob]).create_post("x") for _ in range(8)]
        comments = {post["id"]: [None] for post in posts}
        for number in range(60):
            post = chance.choice(posts)
            parent = chance.choice(comments[post["id"]][-3:])
            client = chance.choice([alice, alice, bob])
            said = client.add_comment(post, str(number), parent_id=parent)
            comments[post["id"]].append(said["id"])
        answers = []
        between_steps(lambda: answers.append(bob.patch(path(bob), json={"bio": "x"}).status_code))

        assert alice.delete(f"{path(alice)}?content={content}").status_code == 204

        assert len(answers) >= 10
        assert set(answers) == {200}
        left = bob.get("/posts?limit=100").json
        by_bob = [post for post in posts if post["author"]["username"] == "bob"]
        assert len(left) == len(posts if content == "keep" else by_bob)
        shown = [
            comment
            for post in left
            for comment in bob.get(f"/posts/{post['id']}/comments?limit=100").json
        ]
        assert {item["author"] and item["author"]["username"] for item in left + shown} <= {
            "bob",
            None,
        }
        live = [comment for comment in shown if not comment["deleted"]]
        if content == "keep":
            assert len(shown) == len(live) == 60
        else:
            assert {comment["author"]["username"] for comment in live} == {"bob"}

    def test_one_that_was_cut_off_is_sent_again(self, alice, anonymous, between_steps):
        post = alice.create_post("x")
        for _ in range(10):
            alice.add_comment(post, "x")

        def fail():
            raise sa.exc.OperationalError("", {}, Exception("away"))

        between_steps(fail)
        problem(alice.delete(f"{path(alice)}?content=delete"), 503)
        assert anonymous.get(f"/posts/{post['id']}").json["comment_count"] == 7
        between_steps(lambda: None)
        assert alice.delete(f"{path(alice)}?content=delete").status_code == 204
        problem(alice.get("/users/me"), 401)
        assert anonymous.get("/posts").json == []
