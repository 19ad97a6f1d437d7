"""Links to set a password, which members ask for by mail."""

import pytest

from posting.testbed import PASSWORD
from tests.helpers.clock import shifted_clock
from tests.helpers.moderation import suspend
from tests.mail.conftest import ADDRESS, SETTINGS, code_of, confirm, copy, text_of

NEW = "a new walk by the sea"


@pytest.fixture
def ask(elm):
    """Return a function that asks for a link as a visitor."""

    def ask(name):
        response = elm.test_client().post("/password-resets/requests", json={"name": name})
        assert (response.status_code, response.data) == (202, b"")

    return ask


@pytest.fixture
def set_password(elm):
    def set_password(code, password=NEW):
        body = {"code": code, "password": password}
        return elm.test_client().post("/password-resets", json=body)

    return set_password


@pytest.mark.parametrize("name", ["ada", "ADA", " ada ", ADDRESS, ADDRESS.upper()])
def test_a_link_sets_a_password(join, post_office, ask, set_password, name):
    ada = join("ada", ADDRESS)
    ask(name)
    mail = post_office.deliver_one()
    assert mail["To"] == f"ada <{ADDRESS}>"
    assert mail["Subject"] == "A new password for Elm Street"
    assert PASSWORD not in text_of(mail)
    response = set_password(code_of(mail, "reset"))
    assert (response.status_code, response.json["username"]) == (200, "ada")
    assert ada.get("/users/me").status_code == 401
    credentials = {"username": "ada", "password": NEW}
    assert ada.application.test_client().post("/signin", json=credentials).status_code == 200
    assert "password of your account ada" in text_of(post_office.deliver_one())


def test_nothing_is_sent_to_others(join, post_office, ask):
    bo = join("bob")
    ask("bob")  # has no address
    ask("nobody-has-this-name")
    ask("nobody@example.net")
    body = {"email": "bo@example.net", "current_password": PASSWORD}
    assert bo.put("/users/me/email", json=body).status_code == 202
    post_office.deliver_one()
    ask("bo@example.net")  # is not confirmed
    ask("bob")
    assert post_office.deliver() == []


def test_nothing_is_sent_to_members_who_are_suspended(join, post_office, ask, moderator):
    ada = join("ada", ADDRESS)
    assert suspend(moderator, ada).status_code < 300
    ask("ada")
    assert post_office.deliver() == []


def test_members_who_share_an_address_get_one_mail(join, post_office, ask, set_password):
    for name in ("ada", "bob", "cyd"):
        join(name, ADDRESS)
    ask(ADDRESS)
    text = text_of(post_office.deliver_one())
    assert text.count("https://elm.example/reset#") == 3
    assert all(
        f"password for {name} on" in " ".join(text.split()) for name in ("ada", "bob", "cyd")
    )


class TestLinks:
    def ask_twice(self, ask, post_office):
        ask("ada")
        first = code_of(post_office.deliver_one(), "reset")
        ask("ada")
        return first, code_of(post_office.deliver_one(), "reset")

    def test_somebody_else_who_asks_ends_no_link(self, join, post_office, ask, set_password):
        join("ada", ADDRESS)
        first, _ = self.ask_twice(ask, post_office)
        assert set_password(first).status_code == 200

    def test_the_use_of_one_ends_the_others(self, join, post_office, ask, set_password):
        join("ada", ADDRESS)
        first, second = self.ask_twice(ask, post_office)
        assert set_password(second).status_code == 200
        for code in (first, second):
            assert set_password(code, "yet another walk").status_code == 422

    def test_a_link_works_for_an_hour(self, join, post_office, ask, set_password):
        join("ada", ADDRESS)
        ask("ada")
        code = code_of(post_office.deliver_one(), "reset")
        with shifted_clock(minutes=61):
            assert set_password(code).status_code == 422

    def test_a_link_that_confirms_sets_no_password(self, join, post_office, ask, set_password):
        ada = join("ada")
        body = {"email": ADDRESS, "current_password": PASSWORD}
        ada.put("/users/me/email", json=body)
        code = code_of(post_office.deliver_one(), "confirm")
        assert set_password(code).status_code == 422

    def test_a_link_that_sets_a_password_confirms_nothing(self, join, post_office, ask):
        ada = join("ada", ADDRESS)
        ask("ada")
        code = code_of(post_office.deliver_one(), "reset")
        assert ada.post("/email-confirmations", json={"code": code}).status_code == 422

    def test_a_link_of_an_operator_stays(self, join, post_office, ask, set_password, flask):
        ada = join("ada", ADDRESS)
        _, output = flask("users", "reset-link", "ada", on=ada.application)
        code = output.split("#")[1].split()[0]
        ask("ada")
        post_office.deliver_one()
        assert set_password(code).status_code == 200

    def test_the_link_ends_with_the_address(self, join, post_office, ask, set_password):
        ada = join("ada", ADDRESS)
        ask("ada")
        code = code_of(post_office.deliver_one(), "reset")
        ada.delete("/users/me/email")
        assert set_password(code).status_code == 422

    def test_the_link_ends_with_another_address(self, join, post_office, ask, set_password):
        ada = join("ada", ADDRESS)
        ask("ada")
        code = code_of(post_office.deliver_one(), "reset")
        confirm(ada, post_office, "ada@new.example")
        assert set_password(code).status_code == 422

    def test_the_database_has_no_code(self, join, post_office, ask, query):
        join("ada", ADDRESS)
        ask("ada")
        code = code_of(post_office.deliver_one(), "reset")
        [row] = query("SELECT * FROM mail_links")
        assert code[21:] not in str(row)


class TestLimits:
    def test_a_confirmation_does_not_show_who_has_an_address(self, join, ask_from):
        join("ada", ADDRESS)
        with shifted_clock(hours=2):
            for number in range(4):
                ask_from(number, "ada")
        bob = join("bob")
        body = {"email": ADDRESS, "current_password": PASSWORD}
        assert bob.put("/users/me/email", json=body).status_code == 202

    def test_a_fourth_sign_up_with_an_address_has_none(self, elm, post_office):
        for number in range(4):
            account = {"username": f"member-{number}", "password": NEW}
            account["email"] = f"member-{number}@example.net"
            assert elm.test_client().post("/signup", json=account).status_code == 201
        assert len(post_office.deliver()) == 3

    @pytest.fixture
    def settings(self):
        return {"RATE_LIMITS": "on", "PROXY_HOPS": "1"}

    @pytest.fixture
    def ask_from(self, elm):
        """Return a function that asks for a link from an address of a client."""

        def ask_from(number, name):
            visitor = elm.test_client()
            headers = {
                "X-Forwarded-For": f"192.0.2.{number}",
                "X-Forwarded-Proto": "https",
                "X-Forwarded-Host": "elm.example",
            }
            body = {"name": name}
            return visitor.post("/password-resets/requests", json=body, headers=headers)

        return ask_from

    def test_an_account_gets_three_an_hour(self, join, post_office, ask_from):
        join("ada", ADDRESS)
        with shifted_clock(hours=2):
            names = ["ada", ADDRESS, "Ada", "ada", ADDRESS]
            statuses = [ask_from(number, name).status_code for number, name in enumerate(names)]
            assert statuses == [202] * 5
            assert len(post_office.deliver()) == 3
        with shifted_clock(hours=4):
            assert ask_from(9, "ada").status_code == 202
            assert len(post_office.deliver()) == 1

    def test_accounts_with_one_address_share_its_limit(self, join, post_office, ask_from):
        join("ada", ADDRESS)
        with shifted_clock(hours=2):
            join("bob", ADDRESS)
        with shifted_clock(hours=4):
            for number, name in enumerate(["ada", "bob", "ada", "bob"]):
                assert ask_from(number, name).status_code == 202
            assert len(post_office.deliver()) == 3

    def test_as_many_statements_for_names_and_addresses_of_nobody(self, join, ask_from, statements):
        """Also when a limit is reached, and for a name after its address."""
        join("ada", ADDRESS)
        counts = []
        with shifted_clock(hours=2):
            for known, pair in enumerate([("nobody", "nobody@example.net"), ("ada", ADDRESS)]):
                for number, name in enumerate(pair * 3):
                    statements.clear()
                    response = ask_from(10 * known + number, name)
                    assert (response.status_code, response.data) == (202, b"")
                    counts.append(len(statements))
        assert counts[:6] == counts[6:]

    def test_an_account_gets_three_confirmations_whoever_sends(self, elm, join, post_office):
        """The one of the sign-up counts, too."""
        account = {"username": "ada", "password": PASSWORD, "email": "first@example.net"}
        headers = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "elm.example"}
        visitor = elm.test_client()
        assert visitor.post("/signup", json=account, headers=headers).status_code == 201
        credentials = {"username": "ada", "password": PASSWORD}
        assert visitor.post("/signin", json=credentials, headers=headers).status_code == 200
        statuses = []
        for number in range(3):
            body = {"email": f"other-{number}@example.net", "current_password": PASSWORD}
            sent = headers | {"X-Forwarded-For": f"192.0.2.{number}"}
            statuses.append(visitor.put("/users/me/email", json=body, headers=sent).status_code)
        assert statuses == [202, 202, 429]

    def test_a_sender_gets_three_confirmations_whatever_the_account(self, join):
        statuses = []
        for number in range(4):
            body = {"email": f"other-{number}@example.net", "current_password": PASSWORD}
            member = join(f"member-{number}")
            statuses.append(member.put("/users/me/email", json=body).status_code)
        assert statuses == [202] * 3 + [429]

    def test_a_sender_can_ask_three_times_an_hour(self, join, ask_from):
        join("ada", ADDRESS)
        names = ["nobody-1", "ada", "nobody-2", "ada", "nobody-3"]
        assert [ask_from(1, name).status_code for name in names] == [202] * 3 + [429] * 2
        assert ask_from(2, "ada").status_code == 202

    def test_a_known_name_has_the_same_headers(self, join, ask_from):
        join("ada", ADDRESS)
        with shifted_clock(hours=2):
            headers = []
            for number, name in enumerate(["ada", "nobody"] * 4):
                response = ask_from(number, name)
                headers.append(
                    {key: value for key, value in response.headers if key != "X-Request-ID"}
                )
            assert headers == [headers[0]] * 8

    def test_a_member_can_ask_for_three_confirmations_an_hour(self, join, post_office):
        ada = join("ada")
        statuses = []
        for number in range(4):
            body = {"email": f"ada@{number}.example", "current_password": PASSWORD}
            statuses.append(ada.put("/users/me/email", json=body).status_code)
        assert statuses == [202] * 3 + [429]
        assert post_office.deliver_one()["To"] == "ada@2.example"
        assert ada.get("/users/me/email").json["pending"] == "ada@2.example"

    def test_an_address_gets_three_confirmations_an_hour(self, join, post_office, elm):
        statuses = []
        for number in range(4):
            member = join(f"member-{number}")
            member.environ_base["HTTP_X_FORWARDED_FOR"] = f"192.0.2.{number}"
            body = {"email": ADDRESS, "current_password": PASSWORD}
            statuses.append(member.put("/users/me/email", json=body).status_code)
        assert statuses == [202] * 3 + [429]
        assert len(post_office.deliver()) == 3


def test_as_many_statements_for_a_known_name_as_for_others(join, ask, statements):
    ada = join("ada", ADDRESS)
    join("bob")
    found = {}
    for name in ("ada", ADDRESS, "bob", "nobody", "nobody@example.net"):
        statements.clear()
        ask(name)
        found[name] = [" ".join(sql.split()[:3]) for sql in statements]
    assert len({len(each) for each in found.values()}) == 1
    assert found["ada"] == found["nobody"]
    assert found[ADDRESS] == found["nobody@example.net"]
    assert ada.get("/users/me").status_code == 200


def test_a_member_is_told_that_an_operator_has_set_the_password(join, post_office, flask):
    ada = join("ada", ADDRESS)
    command = ("users", "reset-password", "ada")
    assert flask(*command, input=f"{NEW}\n", on=ada.application)[0] == 0
    assert post_office.deliver_one()["Subject"] == "Your password was changed"


@pytest.mark.parametrize("by", ["moderator", "operator"])
def test_applicants_are_told_at_their_address(make_app, post_office, moderator, flask, by):
    app = make_app(**SETTINGS, SIGNUP="approval")
    visitor = app.test_client()
    account = {
        "username": "grace",
        "password": NEW,
        "application": "I weave too.",
        "email": "grace@example.net",
    }
    response = visitor.post("/signup", json=account)
    assert response.status_code == 201, response.text
    assert "email" not in response.json
    code = code_of(post_office.deliver_one(), "confirm")
    assert visitor.post("/email-confirmations", json={"code": code}).status_code == 200
    visitor.post("/password-resets/requests", json={"name": "grace"})
    assert post_office.deliver() == []  # before the approval
    if by == "operator":
        assert flask("users", "approve", "grace", on=app)[0] == 0
    else:
        path = f"/applications/{response.json['id']}/approval"
        assert copy(moderator, app).post(path).status_code == 201
    mail = post_office.deliver_one()
    assert (mail["To"], mail["Subject"]) == ("grace <grace@example.net>", "Welcome to Elm Street")


def test_an_applicant_without_a_confirmed_address_gets_nothing(make_app, post_office, moderator):
    app = make_app(**SETTINGS, SIGNUP="approval")
    account = {"username": "grace", "password": NEW, "application": "I weave."}
    account["email"] = "grace@example.net"
    id = app.test_client().post("/signup", json=account).json["id"]
    post_office.deliver_one()
    assert copy(moderator, app).post(f"/applications/{id}/approval").status_code == 201
    assert post_office.deliver() == []
