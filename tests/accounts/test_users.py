"""Accounts: sign-up, edit and deletion."""

from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event
from time import sleep

import pytest
import sqlalchemy as sa

from posting.accounts import deletion
from posting.accounts.models import User
from posting.accounts.passwords import hash_password
from posting.accounts.views import users
from posting.comments import deletion as comment_deletion
from posting.db.base import db
from posting.posts import deletion as post_deletion
from tests.conftest import PASSWORD
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.threads import in_thread

NEW_PASSWORD = "another walk by the sea"


def path(client):
    return f"/users/{client.user['id']}"


def sign_up(client, **fields):
    return client.post("/signup", json={"username": "ada", "password": PASSWORD} | fields)


def sign_in_again(client):
    """Sign in with the new password, and return the client."""
    body = {"username": client.user["username"], "password": NEW_PASSWORD}
    assert client.post("/signin", json=body).status_code == 200
    return client


def can_sign_in(client, username, password):
    response = client.post("/signin", json={"username": username, "password": password})
    return response.status_code == 200


def test_a_user_is_found_by_name(alice, anonymous):
    assert anonymous.get("/users?username=ALICE").json == [alice.user]
    for name in ("ali", "", "nobody", "a" * 256, "%00"):
        response = anonymous.get(f"/users?username={name}")
        assert response.json == [] or error_locations(response) == {"username"}, name
    assert error_locations(anonymous.get("/users?username=" + "a" * 257)) == {"username"}


class TestSignUp:
    def test_it_creates_an_account_but_no_session(self, anonymous):
        created = sign_up(anonymous, display_name="Ada Lovelace", bio="Engines.")
        assert created.status_code == 201
        user = created.json
        assert set(user) == {
            "id", "username", "display_name", "avatar_url", "bio", "role",
            "created_at", "updated_at",
        }  # fmt: skip
        assert (user["username"], user["role"]) == ("ada", "member")
        assert user["updated_at"] == user["created_at"]
        assert created.headers["Location"] == f"http://localhost/users/{user['id']}"
        assert "Set-Cookie" not in created.headers
        assert_problem(anonymous.get("/users/me"), 401)
        assert anonymous.get(created.headers["Location"]).json == user

    def test_optional_fields_default_to_null(self, anonymous):
        user = sign_up(anonymous).json
        assert (user["display_name"], user["bio"]) == (None, None)
        assert sign_up(anonymous, username="eve", bio=None).json["bio"] is None

    def test_an_empty_display_name_or_bio_is_null(self, anonymous):
        user = sign_up(anonymous, display_name="", bio="").json
        assert (user["display_name"], user["bio"]) == (None, None)

    @pytest.mark.parametrize("name", ["ada", "ADA", "aDa"])
    def test_usernames_are_unique_in_any_case(self, anonymous, name):
        assert sign_up(anonymous, username="Ada").json["username"] == "Ada"
        [error] = assert_problem(sign_up(anonymous, username=name), 409)["errors"]
        assert (error["pointer"], error["code"]) == ("/username", "username_taken")

    @pytest.mark.parametrize(
        "name",
        ["", "ab", "x" * 33, "-abc", "_abc", "a b c", "a.bc", "abc\n", "äbc", "abc\u0000", None, 1,
         "admin", "Root", "ME", "deleted"],
    )  # fmt: skip
    def test_an_invalid_or_reserved_username_gets_422(self, anonymous, name):
        assert error_locations(sign_up(anonymous, username=name)) == {"/username"}

    @pytest.mark.parametrize("name", ["abc", "0-_", "x" * 32, "Ada_Lovelace-1"])
    def test_a_username_is_stored_as_typed(self, anonymous, name):
        assert sign_up(anonymous, username=name).json["username"] == name

    @pytest.mark.parametrize(
        "password",
        ["", "short12", "x" * 257, "password1", "PASSWORD1", "iloveyou1", None, 12345678,
         "with\u0000null"],
    )  # fmt: skip
    def test_a_weak_or_invalid_password_gets_422(self, anonymous, password):
        assert error_locations(sign_up(anonymous, password=password)) == {"/password"}
        assert not can_sign_in(anonymous, "ada", "password1")

    def test_the_username_as_password_gets_422(self, anonymous):
        response = sign_up(anonymous, username="Lovelace", password="lovelace")
        assert error_locations(response) == {"/password"}

    @pytest.mark.parametrize(
        "password",
        [
            "x" * 8 + " ",
            " 8 chars",
            "pässwörd 🔑",
            "y z " * 64,
            "*a******",
            "e\u0301 and é",
            "-_#-_#-_#",
        ],
    )
    def test_a_password_is_used_exactly_as_sent(self, anonymous, password):
        assert sign_up(anonymous, password=password).status_code == 201
        assert can_sign_in(anonymous, "ada", password)
        for other in (password.strip() + "x", password[:-1], password.upper() + "!"):
            assert not can_sign_in(anonymous, "ada", other)

    @pytest.mark.parametrize(
        "password",
        [
            "*" * 10,
            "•" * 8,
            "●" * 12,
            "x" * 16,
            "AaAaAaAaAa",
            " " * 20,
            "7" * 64,
            "* * * * *",
            "*•" * 9,
            "İ" * 10,
            "ßẞ" * 5,
            "*." * 5,
            "......****",
        ],
    )
    def test_a_password_that_hides_another_one_gets_422(self, anonymous, alice, password):
        """Generated clients have sent asterisks in place of the password."""
        refused = [sign_up(anonymous, password=password)]
        body = {"password": password, "current_password": PASSWORD}
        refused.append(alice.patch("/users/me", json=body))
        refused.append(anonymous.post("/password-resets", json={"code": "x", "password": password}))
        for response in refused:
            [error] = assert_problem(response, 422)["errors"]
            assert (error["pointer"], error["code"]) == ("/password", "masked_password")
        assert can_sign_in(anonymous, "alice", PASSWORD)

    def test_accounts_that_have_such_a_password_can_sign_in_and_change_it(self, app, anonymous):
        user = sign_up(anonymous).json
        with app.app_context():
            db.session.get(User, user["id"]).password_hash = hash_password("*" * 10)
            db.session.commit()
        credentials = {"username": user["username"], "password": "*" * 10}
        assert anonymous.post("/signin", json=credentials).status_code == 200
        body = {"password": "another walk by the sea", "current_password": "*" * 10}
        assert anonymous.patch("/users/me", json=body).status_code == 200
        assert can_sign_in(anonymous, user["username"], "another walk by the sea")

    def test_the_minimum_length_of_passwords_is_a_setting(self, make_app):
        client = make_app(PASSWORD_MIN=15).test_client()
        assert error_locations(sign_up(client, password="14 characters!")) == {"/password"}
        assert sign_up(client, password="15 characters!!").status_code == 201

    @pytest.mark.parametrize(
        "field", ["id", "role", "created_at", "password_hash", "email", "current_password"]
    )
    def test_other_fields_get_422(self, anonymous, field):
        assert error_locations(sign_up(anonymous, **{field: "moderator"})) == {f"/{field}"}

    def test_the_length_of_a_profile_is_limited(self, anonymous):
        response = sign_up(anonymous, display_name="x" * 65, bio="x" * 501)
        assert error_locations(response) == {"/display_name", "/bio"}
        assert sign_up(anonymous, display_name="é" * 64, bio="é" * 500).status_code == 201

    @pytest.mark.parametrize("name", [" \u200b", "Ada\nLovelace", "Ada\u2028Lovelace"])
    def test_a_display_name_is_a_line_that_can_be_seen(self, anonymous, name):
        assert error_locations(sign_up(anonymous, display_name=name)) == {"/display_name"}


class TestEdit:
    def test_users_edit_their_profile(self, alice, anonymous):
        edited = alice.patch(path(alice), json={"display_name": None, "bio": "Hello."})
        assert edited.status_code == 200
        changes = {"display_name": None, "bio": "Hello.", "updated_at": edited.json["updated_at"]}
        assert edited.json == alice.user | changes
        assert anonymous.get(path(alice)).json == edited.json == alice.get("/users/me").json

    def test_an_empty_display_name_or_bio_is_null(self, alice):
        assert alice.patch(path(alice), json={"bio": "Hello."}).json["bio"] == "Hello."
        edited = alice.patch(path(alice), json={"display_name": "", "bio": ""}).json
        assert (edited["display_name"], edited["bio"]) == (None, None)

    def test_an_edit_that_changes_nothing_is_no_update(self, alice):
        same = {"username": "alice", "display_name": "Alice", "bio": None}
        for body in ({}, same, {"bio": ""}):
            assert alice.patch(path(alice), json=body).json == alice.user

    def test_only_what_is_public_counts_as_an_update(self, alice, anonymous, flask):
        """Others must not see when a user changed the password or was suspended."""
        body = {"password": NEW_PASSWORD, "current_password": PASSWORD}
        assert alice.patch(path(alice), json=body).json == alice.user
        for command in ("suspend", "restore", "demote"):
            assert flask("users", command, "alice")[0] == 0
            assert anonymous.get(path(alice)).json == alice.user
        assert flask("users", "promote", "alice")[0] == 0
        promoted = anonymous.get(path(alice)).json
        assert promoted["updated_at"] > alice.user["updated_at"] == alice.user["created_at"]
        sleep(0.002)  # timestamps have milliseconds
        edited = sign_in_again(alice).patch(path(alice), json={"bio": "Hello."}).json
        assert edited["updated_at"] > promoted["updated_at"]

    def test_an_old_username_can_be_used_by_another_account(self, alice, anonymous):
        assert alice.patch(path(alice), json={"username": "ALICE"}).json["username"] == "ALICE"
        assert alice.patch(path(alice), json={"username": "alicia"}).status_code == 200
        assert can_sign_in(anonymous, "alicia", PASSWORD)
        assert not can_sign_in(anonymous, "alice", PASSWORD)
        assert sign_up(anonymous, username="alice").status_code == 201

    def test_a_username_in_use_gets_409_and_changes_nothing(self, alice, bob):
        assert_problem(alice.patch(path(alice), json={"username": "BOB", "bio": "x"}), 409)
        assert alice.get("/users/me").json == alice.user

    def test_an_edit_gets_401_if_the_account_is_deleted_meanwhile(self, alice, monkeypatch):
        elsewhere, lock_account = alice.copy(), users.lock_verified_account

        def delete_and_lock(user):
            monkeypatch.undo()
            assert in_thread(elsewhere.delete, path(alice)).status_code == 204
            return lock_account(user)

        monkeypatch.setattr(users, "lock_verified_account", delete_and_lock)
        assert_problem(alice.patch(path(alice), json={"bio": "x"}), 401)

    def test_another_account_cannot_be_edited(self, alice, bob, moderator):
        for other in (bob, moderator):
            assert_problem(other.patch(path(alice), json={"bio": "x"}), 403)
        assert_problem(bob.patch("/users/" + "a" * 21, json={}), 404)
        assert alice.get("/users/me").json == alice.user

    @pytest.mark.parametrize(
        ("body", "expected"),
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
    def test_an_invalid_edit_gets_422_and_changes_nothing(self, alice, anonymous, body, expected):
        assert error_locations(alice.patch(path(alice), json=body | {"bio": "x"})) == expected
        assert alice.get("/users/me").json == alice.user
        assert can_sign_in(anonymous, "alice", PASSWORD)

    def test_the_own_username_as_new_password_gets_422(self, sign_in):
        margaret = sign_in("margaret")
        body = {"password": "MARGARET", "current_password": PASSWORD}
        assert error_locations(margaret.patch(path(margaret), json=body)) == {"/password"}

    def test_a_new_password_ends_all_other_sessions(self, alice, sign_in, anonymous):
        elsewhere = sign_in("alice")
        body = {"password": NEW_PASSWORD, "current_password": PASSWORD}
        assert alice.patch(path(alice), json=body).json == alice.user
        assert_problem(elsewhere.get("/users/me"), 401)
        assert alice.get("/users/me").status_code == 200
        assert not can_sign_in(anonymous, "alice", PASSWORD)
        assert can_sign_in(anonymous, "alice", NEW_PASSWORD)


@pytest.fixture(params=["/users/me", "/users/{id}"])
def own_path(alice, request):
    """Each of the two paths of Alice's account."""
    return request.param.format(id=alice.user["id"])


class TestIfMatch:
    @pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
    def test_the_etag_of_a_read_protects_an_edit(self, alice, anonymous, own_path, form):
        read = anonymous.get(path(alice)).headers["ETag"]
        assert alice.get(own_path).headers["ETag"] == read
        headers = {"If-Match": form.format(read)}
        edited = alice.patch(own_path, json={"bio": "Hello."}, headers=headers)
        assert edited.status_code == 200
        assert edited.headers["ETag"] == alice.get(own_path).headers["ETag"] != read
        again = alice.patch(own_path, json={"bio": "Bye."}, headers=headers)
        assert again.status_code == (200 if form == "*" else 412)
        headers = {"If-Match": edited.headers["ETag"]}
        assert alice.delete(own_path, headers=headers).status_code == (412 if form == "*" else 204)

    @pytest.mark.parametrize("tag", ['"other"', "", "x", '"1"'])
    def test_another_etag_gets_412_and_changes_nothing(self, alice, own_path, post, tag):
        headers = {"If-Match": tag}
        password = {"password": NEW_PASSWORD, "current_password": PASSWORD}
        for body in ({"bio": "x"}, {}, password):
            assert_problem(alice.patch(own_path, json=body, headers=headers), 412)
        assert_problem(alice.delete(f"{own_path}?content=delete", headers=headers), 412)
        assert alice.get("/users/me").json == alice.user
        assert alice.get(f"/posts/{post['id']}").json == post

    def test_an_edit_between_the_check_and_the_lock_gets_412(self, alice, own_path, monkeypatch):
        elsewhere, lock_account = alice.copy(), users.lock_verified_account

        def edit_and_lock(user):
            monkeypatch.undo()
            edited = in_thread(elsewhere.patch, "/users/me", json={"bio": "y"})
            assert edited.status_code == 200
            return lock_account(user)

        headers = {"If-Match": alice.get(own_path).headers["ETag"]}
        monkeypatch.setattr(users, "lock_verified_account", edit_and_lock)
        assert_problem(alice.patch(own_path, json={"bio": "x"}, headers=headers), 412)
        assert alice.get(own_path).json["bio"] == "y"

    def test_an_account_that_is_edited_during_its_deletion_stays(
        self, alice, own_path, monkeypatch
    ):
        elsewhere, clear_account = alice.copy(), users.clear_account

        def clear_and_edit(*arguments, **options):
            clear_account(*arguments, **options)
            assert elsewhere.patch("/users/me", json={"bio": "x"}).status_code == 200

        monkeypatch.setattr(users, "clear_account", clear_and_edit)
        headers = {"If-Match": alice.get(own_path).headers["ETag"]}
        assert_problem(alice.delete(own_path, headers=headers), 412)
        assert alice.get(own_path).json["bio"] == "x"


class TestMe:
    """`/users/me` takes the same as `/users/{id}`."""

    def test_users_edit_and_delete_their_account(self, alice, anonymous, post):
        edited = alice.patch("/users/me", json={"display_name": "Ally"})
        assert (edited.status_code, edited.json["display_name"]) == (200, "Ally")
        assert anonymous.get(path(alice)).json == edited.json
        response = alice.delete("/users/me?content=delete")
        assert response.status_code == 204
        assert "Max-Age=0" in response.headers["Set-Cookie"]
        assert_problem(anonymous.get(path(alice)), 404)
        assert_problem(anonymous.get(f"/posts/{post['id']}"), 404)

    def test_a_new_password_requires_the_current_one(self, alice, bob):
        body = {"password": NEW_PASSWORD}
        assert error_locations(alice.patch("/users/me", json=body)) == {"/current_password"}
        body |= {"current_password": PASSWORD}
        assert alice.patch("/users/me", json=body).status_code == 200
        assert_problem(alice.patch("/users/me", json={"username": "bob"}), 409)


class TestDelete:
    def test_posts_are_kept_without_an_author(self, alice, sign_in, anonymous, post):
        elsewhere = sign_in("alice")
        response = alice.delete(path(alice))
        assert (response.status_code, response.data) == (204, b"")
        assert "Max-Age=0" in response.headers["Set-Cookie"]
        for client in (alice, elsewhere):
            assert_problem(client.get("/users/me"), 401)
        assert_problem(anonymous.get(path(alice)), 404)
        assert anonymous.get(f"/posts/{post['id']}").json == post | {"author": None}
        assert not can_sign_in(anonymous, "alice", PASSWORD)

    def test_posts_are_deleted_on_request(self, alice, bob, anonymous, post):
        kept = bob.create_post("Bob's")
        assert alice.delete(path(alice) + "?content=delete").status_code == 204
        assert_problem(anonymous.get(f"/posts/{post['id']}"), 404)
        assert [post["id"] for post in anonymous.get("/posts").json] == [kept["id"]]

    def test_the_username_can_be_used_again(self, alice, anonymous):
        alice.delete(path(alice))
        assert sign_up(anonymous, username="alice").status_code == 201

    @pytest.mark.parametrize("query", ["content=all", "content=", "contents=delete"])
    def test_an_invalid_query_gets_422_and_deletes_nothing(self, alice, query):
        assert error_locations(alice.delete(f"{path(alice)}?{query}")) == {query.partition("=")[0]}
        assert alice.get("/users/me").json == alice.user

    def test_another_account_cannot_be_deleted(self, alice, bob, moderator):
        for other in (bob, moderator):
            assert_problem(other.delete(path(alice)), 403)
        assert_problem(bob.delete("/users/" + "a" * 21), 404)
        assert alice.get("/users/me").json == alice.user


def test_nothing_is_written_while_an_account_is_deleted(alice, bob, post, monkeypatch):
    is_held, may_go_on = Event(), Event()
    execute = deletion.execute

    def hold(statement):
        is_held.set()
        assert may_go_on.wait(20)
        return execute(statement)

    monkeypatch.setattr(deletion, "execute", hold)
    with ThreadPoolExecutor(3) as pool:
        url = f"/users/{alice.user['id']}?content=delete"
        ended = pool.submit(alice.copy().delete, url)
        assert is_held.wait(20)
        written = pool.submit(alice.copy().post, "/posts", json={"title": "x", "content": "x"})
        sleep(0.2)
        assert not written.done()
        may_go_on.set()
        assert ended.result().status_code == 204
        assert written.result().status_code == 401
    assert bob.get("/posts").json == []


class TestDeletionInSteps:
    """Many posts and comments are deleted in several transactions, so that others can write."""

    @pytest.fixture(autouse=True)
    def small_steps(self, monkeypatch):
        monkeypatch.setattr(comment_deletion, "COMMENTS_PER_STEP", 3)
        monkeypatch.setattr(post_deletion, "POSTS_PER_STEP", 2)

    @pytest.fixture
    def between_steps(self, monkeypatch):
        """Return a function that sets what happens between two steps."""

        def between_steps(action):
            monkeypatch.setattr(deletion, "sleep", lambda _seconds: action())

        return between_steps

    @pytest.fixture(params=range(4))
    def random(self, request):
        return Random(request.param)

    @pytest.mark.usefixtures("stays_consistent")
    @pytest.mark.parametrize("content", ["keep", "delete"])
    def test_everything_of_the_account_is_deleted(self, alice, bob, between_steps, content, random):
        posts = [random.choice([alice, bob]).create_post("x") for _ in range(8)]
        comments = {post["id"]: [None] for post in posts}
        for number in range(60):
            post = random.choice(posts)
            parent = random.choice(comments[post["id"]][-3:])
            client = random.choice([alice, alice, bob])
            comment = client.add_comment(post, str(number), parent_id=parent)
            comments[post["id"]].append(comment["id"])
        statuses = []
        between_steps(lambda: statuses.append(bob.patch(path(bob), json={"bio": "x"}).status_code))

        assert alice.delete(f"{path(alice)}?content={content}").status_code == 204

        assert len(statuses) >= 10
        assert set(statuses) == {200}
        remaining = bob.get("/posts?limit=100").json
        by_bob = [post for post in posts if post["author"]["username"] == "bob"]
        assert len(remaining) == len(posts if content == "keep" else by_bob)
        shown = [
            comment
            for post in remaining
            for comment in bob.get(f"/posts/{post['id']}/comments?limit=100").json
        ]
        authors = {(item["author"] or {}).get("username") for item in remaining + shown}
        assert authors <= {"bob", None}
        live = [comment for comment in shown if not comment["deleted"]]
        if content == "keep":
            assert len(shown) == len(live) == 60
        else:
            assert {comment["author"]["username"] for comment in live} == {"bob"}

    def test_a_failed_deletion_is_completed_by_another_request(
        self, alice, anonymous, between_steps
    ):
        post = alice.create_post("x")
        for _ in range(10):
            alice.add_comment(post, "x")

        def fail():
            raise sa.exc.OperationalError("", {}, Exception("the connection is lost"))

        between_steps(fail)
        assert_problem(alice.delete(f"{path(alice)}?content=delete"), 503)
        assert anonymous.get(f"/posts/{post['id']}").json["comment_count"] == 7
        between_steps(lambda: None)
        assert alice.delete(f"{path(alice)}?content=delete").status_code == 204
        assert_problem(alice.get("/users/me"), 401)
        assert anonymous.get("/posts").json == []
