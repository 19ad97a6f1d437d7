"""New passwords without the old one: links of operators, and recovery codes."""

import csv
import re
from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.accounts import commands
from posting.accounts.models import RecoveryCode, ResetLink, User
from posting.accounts.recovery import CODES_PER_USER
from posting.db.base import db
from posting.db.types import now
from tests.conftest import PASSWORD, apply
from tests.helpers.assertions import assert_problem, error_locations

NEW = "another walk by the sea"
CREDENTIALS = {"username": "alice", "password": NEW}


@pytest.fixture
def link(flask):
    """Return a function that returns the code of a new link for a user."""

    def link(name="alice"):
        exit_code, output = flask("users", "reset-link", name)
        assert exit_code == 0, output
        return output.strip().rpartition("/reset#")[2]

    return link


@pytest.fixture
def codes(alice):
    """The recovery codes of Alice."""
    return new_codes(alice)


def new_codes(client, password=PASSWORD):
    response = client.post("/recovery-codes", json={"current_password": password})
    assert response.status_code == 201, response.text
    return response.json["codes"]


def reset(client, password=NEW, **ways):
    return client.post("/password-resets", json={"password": password, **ways})


def assert_invalid(response, pointer):
    [error] = assert_problem(response, 422)["errors"]
    assert (error["pointer"], error["code"]) == (pointer, "invalid_code")
    return error


def change(app, model, **values):
    with app.app_context():
        db.session.execute(sa.update(model).values(**values))
        db.session.commit()


class TestLinks:
    @pytest.fixture(autouse=True)
    def accounts(self, app, alice, bob, flask, moderator):
        """Alice, two members who have never signed in, and others who cannot."""
        for name in ("ada", "grace", "hedy"):
            assert flask("users", "create", name)[0] == 0
        assert flask("users", "suspend", "hedy")[0] == 0
        apply(app)

    def test_they_are_for_those_who_have_never_signed_in(self, app, make_app, anonymous):
        site = make_app(PUBLIC_URL="https://example.org", DATABASE_URL=app.config["DATABASE_URL"])
        result = site.test_cli_runner().invoke(args=["users", "links"])
        header, *rows = csv.reader(result.stdout.splitlines())
        assert header == ["username", "link"]
        assert [name for name, _ in rows] == ["ada", "grace"]
        assert re.search(r"Printed 2 links\. Each works once, until 20", result.stderr)
        for name, link in rows:
            start, _, code = link.partition("#")
            assert start == "https://example.org/reset"
            assert reset(anonymous, code=code).json["username"] == name
            credentials = {"username": name, "password": NEW}
            assert anonymous.post("/signin", json=credentials).status_code == 200
        assert "Printed 0 links." in site.test_cli_runner().invoke(args=["users", "links"]).stderr

    def test_they_work_for_two_weeks_or_as_long_as_the_operator_says(self, app, flask):
        for options, days in (((), 14), (("--days", "3"), 3)):
            assert flask("users", "links", *options)[0] == 0
            with app.app_context():
                ends = db.session.scalars(sa.select(ResetLink.expires_at)).all()
            assert len(ends) >= 2
            left = sorted(end - now() for end in ends)[-1]
            assert timedelta(days=days) - timedelta(minutes=1) < left <= timedelta(days=days)

    def test_they_replace_former_ones_and_are_in_the_log(self, flask, anonymous):
        first, second = (flask("users", "links")[1].splitlines()[1] for _ in range(2))
        assert_invalid(reset(anonymous, code=first.partition("#")[2]), "/code")
        assert reset(anonymous, code=second.partition("#")[2]).status_code == 200
        assert flask("moderation", "log")[1].count("operator reset link user ada") == 2

    def test_many_are_committed_in_steps(self, flask, monkeypatch):
        monkeypatch.setattr(commands, "LINKS_PER_COMMIT", 1)
        assert len(flask("users", "links")[1].splitlines()) == 3


class TestLink:
    def test_it_sets_a_password_once(self, app, link, alice, anonymous):
        code = link()
        response = reset(anonymous, code=code)
        assert (response.status_code, response.json) == (200, alice.user)
        assert response.headers["Cache-Control"] == "private, no-store"
        assert "Set-Cookie" not in response.headers
        assert anonymous.post("/signin", json=CREDENTIALS).status_code == 200
        assert_invalid(reset(app.test_client(), "a third walk by the sea", code=code), "/code")
        assert app.test_client().post("/signin", json=CREDENTIALS).status_code == 200

    def test_it_ends_all_sessions_and_tokens(self, link, alice, writer, anonymous):
        assert reset(anonymous, code=link()).status_code == 200
        assert_problem(alice.get("/users/me"), 401)
        assert_problem(writer.get("/users/me"), 401)

    def test_a_new_one_replaces_it(self, link, alice, anonymous):
        first, second = link(), link()
        assert_invalid(reset(anonymous, code=first), "/code")
        assert reset(anonymous, code=second).status_code == 200

    @pytest.mark.parametrize("code", ["", "x", "x" * 64, "\N{SPOOL OF THREAD}" * 30])
    def test_an_unknown_one_gets_422(self, anonymous, code):
        assert_invalid(reset(anonymous, code=code), "/code")

    def test_a_wrong_secret_gets_422(self, link, alice, anonymous):
        assert_invalid(reset(anonymous, code=link()[:-1] + "~"), "/code")

    def test_one_that_has_expired_gets_422(self, app, link, alice, anonymous):
        code = link()
        change(app, ResetLink, expires_at=now())
        assert_invalid(reset(anonymous, code=code), "/code")

    def test_a_changed_password_ends_it(self, link, alice, anonymous):
        code = link()
        body = {"password": NEW, "current_password": PASSWORD}
        assert alice.patch("/users/me", json=body).status_code == 200
        assert_invalid(reset(anonymous, "a third walk by the sea", code=code), "/code")

    def test_a_refused_password_does_not_use_it_up(self, link, alice, anonymous):
        code = link()
        assert error_locations(reset(anonymous, "password1", code=code)) == {"/password"}
        response = reset(anonymous, "ALICE", code=code)
        assert error_locations(response) == {"/password"}
        change(alice.application, User, username="alice-lovelace")
        response = reset(anonymous, "alice-Lovelace", code=code)
        assert response.json["errors"][0]["code"] == "same_as_username"
        assert reset(anonymous, code=code).status_code == 200

    def test_the_secret_is_not_stored(self, app, link, alice):
        code = link()
        with app.app_context():
            [row] = db.session.scalars(sa.select(ResetLink))
            assert code[21:] not in f"{row.user_id} {row.secret_hash}"
            assert timedelta(hours=23) < row.expires_at - now() <= timedelta(days=1)

    def test_expired_ones_are_purged(self, app, link, alice, bob):
        link("bob")
        change(app, ResetLink, expires_at=now() - timedelta(seconds=1))
        link("alice")
        with app.app_context():
            assert db.session.scalars(sa.select(ResetLink.user_id)).all() == [alice.user["id"]]

    def test_it_does_not_end_a_suspension(self, flask, link, alice, anonymous):
        flask("users", "suspend", "alice")
        assert reset(anonymous, code=link()).status_code == 200
        refused = assert_problem(anonymous.post("/signin", json=CREDENTIALS), 403)
        assert refused["code"] == "suspended"


class TestRecoveryCodes:
    def test_there_are_ten_which_are_shown_once(self, app, alice):
        assert alice.get("/recovery-codes").json == {"left": 0, "created_at": None}
        response = alice.post("/recovery-codes", json={"current_password": PASSWORD})
        assert response.status_code == 201
        assert response.headers["Cache-Control"] == "private, no-store"
        codes = response.json["codes"]
        assert len(set(codes)) == CODES_PER_USER == 10
        for code in codes:
            assert re.fullmatch("[0-9A-Z]{4}(-[0-9A-Z]{4}){3}", code)
            assert not re.search("[ILOU]", code)
        shown = alice.get(response.headers["Location"]).json
        assert shown == {name: response.json[name] for name in ("left", "created_at")}
        assert shown["left"] == 10
        with app.app_context():
            stored = str(db.session.execute(sa.select(RecoveryCode.code_hash)).all())
            assert not any(code in stored or code.replace("-", "") in stored for code in codes)

    def test_new_ones_replace_the_former(self, alice, codes, anonymous):
        renewed = new_codes(alice)
        assert set(renewed).isdisjoint(codes)
        for code in codes:
            assert_invalid(reset(anonymous, username="alice", recovery_code=code), "/recovery_code")
        assert alice.get("/recovery-codes").json["left"] == 10

    @pytest.mark.parametrize(
        "command", [("reset-password", f"{NEW}\n"), ("suspend", None)], ids=lambda value: value[0]
    )
    def test_a_new_password_and_a_suspension_by_the_operator_end_them(
        self, flask, codes, anonymous, command
    ):
        name, lines = command
        assert flask("users", name, "alice", input=lines)[0] == 0
        refused = reset(anonymous, username="alice", recovery_code=codes[0])
        assert_invalid(refused, "/recovery_code")

    def test_a_link_ends_them(self, link, codes, anonymous):
        assert reset(anonymous, code=link()).status_code == 200
        refused = reset(anonymous, username="alice", recovery_code=codes[0])
        assert_invalid(refused, "/recovery_code")

    def test_a_changed_password_ends_them(self, alice, codes, anonymous):
        change = {"password": NEW, "current_password": PASSWORD}
        assert alice.patch("/users/me", json=change).status_code == 200
        assert alice.get("/recovery-codes").json["left"] == 0
        refused = reset(anonymous, username="alice", recovery_code=codes[0])
        assert_invalid(refused, "/recovery_code")

    def test_they_need_the_current_password(self, alice):
        response = alice.post("/recovery-codes", json={"current_password": "not the password"})
        [error] = assert_problem(response, 422)["errors"]
        assert (error["pointer"], error["code"]) == ("/current_password", "wrong_password")
        assert alice.get("/recovery-codes").json["left"] == 0

    def test_each_sets_a_password_once(self, alice, writer, codes, anonymous):
        code = codes[3]
        response = reset(anonymous, username="ALICE", recovery_code=code)
        assert (response.status_code, response.json) == (200, alice.user)
        assert_problem(alice.get("/users/me"), 401)
        assert_problem(writer.get("/users/me"), 401)
        assert_invalid(reset(anonymous, username="alice", recovery_code=code), "/recovery_code")
        assert anonymous.post("/signin", json=CREDENTIALS).status_code == 200
        assert anonymous.get("/recovery-codes").json["left"] == 9

    def test_it_may_be_typed_in_any_way(self, alice, codes, anonymous):
        ways = (
            codes[0].lower(),
            codes[1].replace("-", ""),
            f" {codes[2].replace('-', ' ')} ",
            codes[3].replace("0", "o").replace("1", "l"),
        )
        for number, code in enumerate(ways):
            response = reset(anonymous, f"{NEW} {number}", username="alice", recovery_code=code)
            assert response.status_code == 200, code

    def test_wrong_ones_and_unknown_names_are_refused_alike(self, alice, bob, codes, anonymous):
        errors = [
            assert_invalid(reset(anonymous, username=name, recovery_code=code), "/recovery_code")
            for name, code in (
                ("alice", "7G3K-9QWE-2M4X-V8ZA"),
                ("alice", ""),
                ("bob", codes[0]),
                ("nobody-here", codes[0]),
                ("", "x"),
            )
        ]
        assert all(error == errors[0] for error in errors)

    def test_they_are_deleted_with_the_account(self, app, alice, codes):
        assert alice.delete("/users/me").status_code == 204
        with app.app_context():
            assert db.session.scalar(sa.select(sa.func.count(RecoveryCode.code_hash))) == 0


@pytest.mark.parametrize(
    ("ways", "pointers"),
    [
        ({}, {"/code"}),
        ({"username": "alice"}, {"/recovery_code"}),
        ({"recovery_code": "x"}, {"/username"}),
        ({"code": "x", "username": "alice"}, {"/username"}),
        ({"code": "x", "recovery_code": "x", "username": "x"}, {"/username", "/recovery_code"}),
        ({"code": None}, {"/code"}),
        ({"username": 1, "recovery_code": "x"}, {"/username"}),
    ],
)
def test_a_reset_takes_one_way(anonymous, ways, pointers):
    assert error_locations(reset(anonymous, **ways)) == pointers
    assert error_locations(reset(anonymous, "short", **ways)) == pointers | {"/password"}


def test_a_reset_without_a_password_gets_422(anonymous):
    assert error_locations(anonymous.post("/password-resets", json={})) == {"/code", "/password"}


class TestLimits:
    """Failures count like wrong passwords, and together with them."""

    @pytest.fixture
    def client(self, make_app):
        return make_app(RATE_LIMITS="on", LIMIT_SIGNIN="3/hour").test_client()

    def test_wrong_recovery_codes_count_with_wrong_passwords(self, alice, codes, client):
        for _ in range(2):
            assert_invalid(reset(client, username="alice", recovery_code="x"), "/recovery_code")
        wrong = {"username": "alice", "password": "not the password"}
        assert_problem(client.post("/signin", json=wrong), 401)
        right = {"username": "alice", "recovery_code": codes[0]}
        refused = reset(client, **right)
        assert_problem(refused, 429)
        assert refused.headers["Retry-After"]
        elsewhere = {"environ_base": {"REMOTE_ADDR": "203.0.113.7"}}
        body = {"password": NEW, **right}
        assert client.post("/password-resets", json=body, **elsewhere).status_code == 200

    def test_wrong_links_count_for_the_address(self, client):
        for number in range(15):
            assert_invalid(reset(client, code=f"{number:021}x"), "/code")
        assert_problem(reset(client, code="x"), 429)

    def test_wrong_links_count_for_the_account(self, link, alice, client):
        code = link()
        for _ in range(3):
            assert_invalid(reset(client, code=code[:-1]), "/code")
        assert_problem(reset(client, code=code), 429)

    def test_right_ones_do_not_count(self, alice, codes, client):
        for number, code in enumerate(codes[:5]):
            ways = {"username": "alice", "recovery_code": code}
            assert reset(client, f"{NEW} {number}", **ways).status_code == 200

    def test_wrong_current_passwords_count(self, alice, client):
        copy = alice.copy(client.application)
        for _ in range(3):
            assert_problem(copy.post("/recovery-codes", json={"current_password": "x"}), 422)
        assert_problem(copy.post("/recovery-codes", json={"current_password": PASSWORD}), 429)

    def test_no_window_is_left_after_a_success(self, alice, client):
        copy = alice.copy(client.application)
        assert len(new_codes(copy)) == 10
        response = copy.post("/recovery-codes", json={"current_password": PASSWORD})
        assert '"signin";r=3;' in response.headers["RateLimit"]


class TestCommands:
    def test_an_account_is_created_with_a_link(self, app, flask, anonymous):
        code, output = flask("users", "create", "ada")
        assert code == 0
        first, second, link = output.splitlines()
        assert first == "ada is a member now."
        assert second.startswith("ada can choose a password with this link, once, until 20")
        assert link.startswith("http://127.0.0.1:8000/reset#")
        with app.app_context():
            [row] = db.session.scalars(sa.select(ResetLink))
            assert timedelta(days=2.9) < row.expires_at - now() <= timedelta(days=3)
        for password in ("", "x", PASSWORD):
            body = {"username": "ada", "password": password}
            assert_problem(anonymous.post("/signin", json=body), 401)
        assert reset(anonymous, code=link.partition("#")[2]).status_code == 200
        signed_in = anonymous.post("/signin", json={"username": "ada", "password": NEW})
        assert signed_in.json["role"] == "member"

    def test_it_may_be_a_moderator(self, flask, anonymous):
        assert flask("users", "create", "Ada", "--moderator")[1].startswith("Ada is a moderator")
        [user] = anonymous.get("/users?username=ada").json
        assert (user["username"], user["role"]) == ("Ada", "moderator")
        lines = flask("moderation", "log")[1].splitlines()
        assert lines[0].endswith(" operator created user Ada")

    def test_it_does_not_depend_on_sign_up(self, flask, make_app):
        assert flask("users", "create", "ada", on=make_app(SIGNUP="closed"))[0] == 0

    def test_a_link_has_the_public_url(self, flask, make_app):
        app = make_app(PUBLIC_URL="https://example.org/community")
        output = flask("users", "create", "ada", on=app)[1]
        assert "\nhttps://example.org/community/reset#" in output

    @pytest.mark.parametrize(
        ("bind", "base"),
        [
            ("0.0.0.0", "http://127.0.0.1:9000"),
            ("::", "http://[::1]:9000"),
            ("192.0.2.1", "http://192.0.2.1:9000"),
            ("unix:/run/posting.sock", ""),
        ],
    )
    def test_without_a_public_url_it_has_the_address_of_the_server(
        self, app, monkeypatch, bind, base
    ):
        monkeypatch.setenv("BIND", bind)
        monkeypatch.setenv("PORT", "9000")
        result = app.test_cli_runner().invoke(args=["users", "create", "ada"])
        assert result.stdout.splitlines()[2].startswith(f"{base}/reset#")
        assert ("set POSTING_PUBLIC_URL" in result.stderr) == (not base)

    @pytest.mark.parametrize("pages", ["on", "off"])
    def test_without_pages_the_app_of_the_operator_must_have_one(self, make_app, pages):
        result = make_app(PAGES=pages).test_cli_runner().invoke(args=["users", "create", "ada"])
        assert result.exit_code == 0
        assert ("The pages are off" in result.stderr) == (pages == "off")

    @pytest.mark.parametrize("name", ["al", "x" * 33, "_ada", "admin", "ada lovelace", "\x00"])
    def test_an_invalid_name_is_an_error(self, flask, name):
        code, output = flask("users", "create", name)
        assert code == 1
        assert output.startswith(f"Error: The name {name} is not accepted. ")

    def test_a_taken_name_is_an_error(self, flask, alice):
        assert flask("users", "create", "ALICE") == (1, "Error: The name ALICE is taken.\n")

    def test_the_log_names_who_got_a_link_and_not_the_code(self, flask, link, alice):
        code = link()
        output = flask("moderation", "log")[1]
        assert output.endswith("operator reset link user alice\n")
        assert code not in output
