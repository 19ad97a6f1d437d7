"""Mail addresses: entered, confirmed by a link, replaced, forgotten and failing."""

import pytest

from posting.db.transactions import unit_of_work
from posting.mail.models import CONFIRMATION
from posting.mail.server import AddressError
from posting.mail.store import create_mail_link
from posting.outbox.delivery import PermanentError, TemporaryError
from posting.testbed import PASSWORD
from tests.helpers.clock import shifted_clock
from tests.mail.conftest import ADDRESS, code_of, confirm, text_of

NONE = {"email": None, "pending": None, "failing_since": None}


def enter(client, address=ADDRESS, password=PASSWORD):
    body = {"email": address, "current_password": password}
    return client.put("/users/me/email", json=body)


class TestConfirmation:
    def test_an_address_is_confirmed_by_the_link_in_a_mail(self, join, post_office, anonymous, elm):
        ada = join("ada")
        assert ada.get("/users/me/email").json == NONE
        response = enter(ada)
        assert (response.status_code, response.json) == (202, NONE | {"pending": ADDRESS})
        mail = post_office.deliver_one()
        assert mail["To"] == ADDRESS
        assert mail["From"] == "Elm Street <posting@example.org>"
        assert mail["Subject"] == "Confirm your address for Elm Street"
        assert "account ada at Elm Street" in text_of(mail)
        code = code_of(mail, "confirm")
        visitor = elm.test_client()
        response = visitor.post("/email-confirmations", json={"code": code})
        assert (response.status_code, response.json) == (200, {"email": ADDRESS})
        assert ada.get("/users/me/email").json == NONE | {"email": ADDRESS}
        assert post_office.deliver() == []

    def test_a_link_works_once(self, join, post_office):
        ada = join("ada")
        enter(ada)
        code = code_of(post_office.deliver_one(), "confirm")
        assert ada.post("/email-confirmations", json={"code": code}).status_code == 200
        response = ada.post("/email-confirmations", json={"code": code})
        assert response.status_code == 422
        assert response.json["errors"][0]["code"] == "invalid_code"

    def test_a_link_works_for_a_day(self, join, post_office):
        ada = join("ada")
        enter(ada)
        code = code_of(post_office.deliver_one(), "confirm")
        with shifted_clock(hours=25):
            ada = join("grace")
            response = ada.post("/email-confirmations", json={"code": code})
            assert response.status_code == 422

    @pytest.mark.parametrize("code", ["", "x", "x" * 64, "x" * 256])
    def test_no_other_code_confirms(self, join, code):
        response = join("ada").post("/email-confirmations", json={"code": code})
        assert response.status_code == 422
        assert [error["pointer"] for error in response.json["errors"]] == ["/code"]

    def test_another_address_ends_the_link_to_the_first(self, join, post_office):
        ada = join("ada")
        enter(ada, "ada@typo.example")
        first = code_of(post_office.deliver_one(), "confirm")
        enter(ada)
        second = code_of(post_office.deliver_one(), "confirm")
        assert ada.post("/email-confirmations", json={"code": first}).status_code == 422
        assert ada.post("/email-confirmations", json={"code": second}).json == {"email": ADDRESS}

    def test_a_mail_that_is_sent_twice_has_two_links_that_work(self, join, post_office):
        ada = join("ada")
        enter(ada)
        post_office.problems = [TemporaryError("It broke off after DATA")]
        post_office.deliver()
        with shifted_clock(minutes=2):
            mail = post_office.deliver_one()
            code = code_of(mail, "confirm")
            assert join("bob").post("/email-confirmations", json={"code": code}).status_code == 200

    def test_a_new_password_ends_the_links(self, join, post_office):
        ada = join("ada")
        enter(ada, "eve@example.com")
        code = code_of(post_office.deliver_one(), "confirm")
        change = {"current_password": PASSWORD, "password": "another long walk"}
        assert ada.patch("/users/me", json=change).status_code == 200
        assert ada.post("/email-confirmations", json={"code": code}).status_code == 422

    def test_a_new_password_ends_an_address_whose_mail_waits(self, join, post_office):
        ada = join("ada")
        enter(ada, "eve@example.com")
        post_office.problems.append(TemporaryError("Later"))
        post_office.deliver()
        change = {"current_password": PASSWORD, "password": "another long walk"}
        assert ada.patch("/users/me", json=change).status_code == 200
        assert ada.get("/users/me/email").json == NONE
        with shifted_clock(minutes=2):
            assert post_office.deliver() == []

    def test_a_link_confirms_only_the_address_to_which_it_was_sent(self, join, post_office, elm):
        ada = join("ada")
        enter(ada, "eve@example.com")
        enter(ada, "victim@example.com")
        with elm.app_context(), unit_of_work():  # as if the first mail was made just before
            code = create_mail_link(ada.user["id"], CONFIRMATION, "eve@example.com")
        assert ada.post("/email-confirmations", json={"code": code}).status_code == 422

    def test_each_address_that_is_replaced_before_its_mail_gets_none(self, join, post_office):
        ada = join("ada")
        for address in ("a@example.com", "b@example.com", "c@example.com"):
            enter(ada, address)
        assert post_office.deliver_one()["To"] == "c@example.com"

    def test_an_address_is_in_lower_case(self, join, post_office):
        ada = join("ada")
        assert enter(ada, "Ada@Example.NET").json["pending"] == "ada@example.net"

    def test_the_password_is_needed(self, join, post_office):
        ada = join("ada")
        response = enter(ada, password="wrong, but long enough")
        assert response.status_code == 422
        assert response.json["errors"][0]["code"] == "wrong_password"
        assert post_office.deliver() == []

    @pytest.mark.parametrize(
        "address",
        [
            *("ada", "@example.net", "ada@", "ada@exa mple.net", "ada@example.net\nBcc: eve@x.org"),
            *("a" * 65 + "@example.net", "ada@" + "a" * 260, "ådä@example.net", "a,b@example.net"),
            *("=?utf-8?q?x?=@example.net", "ada@[127.0.0.1]", "<ada@example.net>", "a@b@c.net"),
        ],
    )
    def test_other_texts_are_no_addresses(self, join, post_office, address):
        response = enter(join("ada"), address)
        assert response.status_code == 422
        assert [error["pointer"] for error in response.json["errors"]] == ["/email"]
        assert post_office.deliver() == []

    def test_a_service_without_mails_says_so(self, alice):
        response = enter(alice)
        assert (response.status_code, response.json["code"]) == (409, "no_mail")
        assert alice.get("/users/me/email").json == NONE
        assert alice.get("/site").json["mail"] is False

    def test_only_the_owner_sees_the_address(self, join, post_office, with_token):
        ada, bo = join("ada", ADDRESS), join("bob")
        for client in (ada, bo, bo.application.test_client()):
            for path in (f"/users/{ada.user['id']}", "/users?username=ada", "/@ada", "/users/me"):
                assert "example.net" not in client.get(path).text
        assert bo.get("/users/me/email").json == NONE
        assert with_token("write").get("/users/me/email").status_code == 403


class TestReplaced:
    def test_the_former_address_is_told(self, join, post_office):
        ada = join("ada", ADDRESS)
        confirm(ada, post_office, "ada@new.example")
        mail = post_office.deliver_one()
        assert mail["To"] == ADDRESS
        assert "no longer uses this address" in " ".join(text_of(mail).split())
        assert post_office.deliver() == []
        assert ada.get("/users/me/email").json["email"] == "ada@new.example"

    def test_each_of_several_addresses_is_told(self, join, post_office, elm):
        ada = join("ada", ADDRESS)
        for address in ("x@eve.example", "y@eve.example"):
            enter(ada, address)
            with elm.app_context(), unit_of_work():
                code = create_mail_link(ada.user["id"], CONFIRMATION, address)
            assert ada.post("/email-confirmations", json={"code": code}).status_code == 200
        told = [mail["To"] for mail in post_office.deliver()]
        assert told == [ADDRESS, "x@eve.example"]

    def test_a_notice_that_is_refused_can_be_retried(self, join, post_office, elm):
        ada = join("ada", ADDRESS)
        confirm(ada, post_office, "ada@new.example")
        post_office.problems.append(PermanentError("554 Spam"))
        assert post_office.deliver() == []
        assert elm.test_cli_runner().invoke(args=["outbox", "retry"]).exit_code == 0
        assert post_office.deliver_one()["To"] == ADDRESS

    def test_an_address_is_kept_as_long_as_its_notice(self, join, post_office, query, elm):
        ada = join("ada", ADDRESS)
        confirm(ada, post_office, "ada@new.example")
        post_office.problems.append(AddressError("550 No such user"))
        assert post_office.deliver() == []
        assert query("SELECT address FROM former_addresses") == [(ADDRESS,)]
        assert elm.test_cli_runner().invoke(args=["outbox", "drop"]).exit_code == 0
        assert query("SELECT address FROM former_addresses") == []

    def test_an_address_that_is_used_again_is_not_told(self, join, post_office):
        ada = join("ada", ADDRESS)
        confirm(ada, post_office, "ada@new.example")
        post_office.problems.append(TemporaryError("450 Greylisted"))
        assert post_office.deliver() == []
        confirm(ada, post_office, ADDRESS)
        with shifted_clock(minutes=10):
            assert [mail["To"] for mail in post_office.deliver()] == ["ada@new.example"]

    def test_a_notice_that_has_to_wait_is_for_the_same_address(self, join, post_office):
        """Another change meanwhile cannot lead it elsewhere."""
        ada = join("ada", ADDRESS)
        confirm(ada, post_office, "b@example.net")
        post_office.problems.append(TemporaryError("450 Greylisted"))
        assert post_office.deliver() == []
        assert ada.delete("/users/me/email").status_code == 204
        assert post_office.deliver_one()["To"] == "b@example.net"
        with shifted_clock(minutes=10):
            assert post_office.deliver_one()["To"] == ADDRESS

    def test_a_notice_that_is_dropped_leaves_no_address(self, join, post_office, query, flask):
        ada = join("ada", ADDRESS)
        ada.delete("/users/me/email")
        query("DELETE FROM outbox")
        assert post_office.deliver() == []
        assert query("SELECT * FROM former_addresses") == []

    def test_an_address_that_is_deleted_is_forgotten(self, join, post_office, query):
        ada = join("ada", ADDRESS)
        assert ada.delete("/users/me/email").status_code == 204
        assert post_office.deliver_one()["To"] == ADDRESS
        assert ada.get("/users/me/email").json == NONE
        assert query("SELECT address, pending_address FROM mailboxes") == [(None, None)]
        assert query("SELECT * FROM former_addresses") == []

    def test_deletion_without_an_address_changes_nothing(self, join, post_office):
        assert join("ada").delete("/users/me/email").status_code == 204
        assert post_office.deliver() == []

    def test_a_deleted_account_leaves_no_address(self, join, post_office, query):
        ada = join("ada", ADDRESS)
        enter(ada, "ada@new.example")
        assert ada.delete("/users/me").status_code == 204
        assert post_office.deliver() == []
        for table in ("mailboxes", "mail_links", "former_addresses"):
            assert query(f"SELECT * FROM {table}") == []


class TestFailing:
    def test_a_text_that_is_refused_says_nothing_about_the_address(self, join, post_office):
        ada = join("ada", ADDRESS)
        for _ in range(4):
            post_office.problems.append(PermanentError("554 5.6.0 Spam"))
            change = {"current_password": PASSWORD, "password": PASSWORD}
            ada.patch("/users/me", json=change)
            post_office.deliver()
        assert ada.get("/users/me/email").json["failing_since"] is None

    def refuse(self, ada, post_office, times):
        for _ in range(times):
            post_office.problems.append(AddressError("550 No such user"))
            change = {"current_password": PASSWORD, "password": PASSWORD}
            assert ada.patch("/users/me", json=change).status_code == 200
            assert post_office.deliver() == []

    def test_three_refusals_make_an_address_failing(self, join, post_office):
        ada = join("ada", ADDRESS)
        self.refuse(ada, post_office, 2)
        assert ada.get("/users/me/email").json == NONE | {"email": ADDRESS}
        self.refuse(ada, post_office, 1)
        assert ada.get("/users/me/email").json["failing_since"]

    def test_a_mail_that_arrives_begins_the_count_again(self, join, post_office):
        ada = join("ada", ADDRESS)
        self.refuse(ada, post_office, 2)
        ada.patch("/users/me", json={"current_password": PASSWORD, "password": PASSWORD})
        post_office.deliver_one()
        self.refuse(ada, post_office, 2)
        assert ada.get("/users/me/email").json["failing_since"] is None

    def test_a_failing_address_gets_no_notifications_until_it_is_confirmed(self, join, post_office):
        ada, bo = join("ada", ADDRESS, mail="each"), join("bob")
        post = ada.create_post("On engines")
        self.refuse(ada, post_office, 3)
        bo.add_comment(post, "And cloth?")
        assert post_office.deliver() == []
        confirm(ada, post_office, ADDRESS)
        assert ada.get("/users/me/email").json == NONE | {"email": ADDRESS}
        bo.add_comment(post, "And looms?")
        assert post_office.deliver_one()["Subject"] == "Re: On engines"
