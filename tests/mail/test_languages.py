"""Mails are in the language that a member has chosen, or in that of the site."""

import re

import pytest
import sqlalchemy as sa

from posting import languages
from posting.db.base import db
from posting.languages import LANGUAGES, translations_of
from posting.testbed import PASSWORD
from tests.helpers.clock import shifted_clock
from tests.helpers.pseudo import write_catalogs
from tests.mail.conftest import ADDRESS, confirm, html_of, text_of

GREEK = "Ένα κείμενο."
NAMES = re.compile(r"https?://\S+|\S+@\S+|<[^>]*>|&\w+;|\b(?:ada|bob|Elm Street)\b")


@pytest.fixture
def pseudo(tmp_path, monkeypatch):
    """A language that is made up, in which no text has Latin letters."""
    write_catalogs(tmp_path)
    monkeypatch.setattr(languages, "FOLDER", tmp_path)
    monkeypatch.setitem(LANGUAGES, "el", "…")
    translations_of.cache_clear()
    yield "el"
    translations_of.cache_clear()


@pytest.fixture
def settings(request):
    """The language of the site."""
    return {"LANGUAGE": getattr(request, "param", "en")}


def is_translated(text):
    return not re.search("[A-Za-z]{2,}", NAMES.sub("", text))


def assert_translated(mails):
    for mail in mails:
        assert is_translated(mail["Subject"].removeprefix("Re: ")), mail["Subject"]
        assert is_translated(text_of(mail)), text_of(mail)
        body = html_of(mail).partition("<body")[2].partition(">")[2]
        assert is_translated(body), body


@pytest.mark.parametrize(("kind", "number"), [("each", 5), ("daily", 2)])
def test_no_mail_has_a_text_that_is_not_translated(pseudo, join, post_office, kind, number):
    ada = join("ada", ADDRESS, mail=kind, letter=True, language=pseudo)
    bob = join("bob")
    post = ada.create_post("Τίτλος", content=GREEK)
    comment = ada.add_comment(post, GREEK)
    bob.add_comment(post, GREEK)
    bob.add_comment(post, f"{GREEK} @ada")
    bob.add_comment(post, GREEK, parent_id=comment["id"])
    bob.create_post("Τίτλος", content=f"{GREEK} @ada")
    mails = post_office.deliver()
    for days in range(1, 9):  # in which the digest and the letter are due
        with shifted_clock(days=days):
            mails += post_office.deliver()
    assert len(mails) == number
    assert_translated(mails)


def test_no_mail_about_an_account_has_such_a_text(pseudo, join, elm, post_office):
    ada = join("ada", ADDRESS, language=pseudo)
    ada.put("/users/me/email", json={"email": "b@example.net", "current_password": PASSWORD})
    for name in ("ada", ADDRESS):
        elm.test_client().post("/password-resets/requests", json={"name": name})
    mails = post_office.deliver()
    assert len(mails) == 3
    confirm(ada, post_office, "c@example.net")
    change = {"current_password": PASSWORD, "password": "another walk by the sea"}
    assert ada.patch("/users/me", json=change).status_code == 200
    mails += post_office.deliver()
    assert len(mails) > 3
    assert_translated(mails)


def test_each_member_has_a_language(join, post_office):
    ada = join("ada", ADDRESS, mail="each", language="de")
    bob = join("bob", "bob@example.net", mail="each")
    for member, other in ((ada, bob), (bob, ada)):
        other.add_comment(member.create_post("Τίτλος"), GREEK)
    german, english = sorted(post_office.deliver(), key=lambda mail: mail["To"])
    assert text_of(german).startswith("bob hat „Τίτλος“ kommentiert.")
    assert '<html lang="de" dir="ltr">' in html_of(german)
    assert text_of(english).startswith("ada commented on “Τίτλος”.")
    assert '<html lang="en" dir="ltr">' in html_of(english)


def test_a_language_that_only_a_newer_version_knows_is_that_of_the_site(elm, join, post_office):
    ada = join("ada", ADDRESS, mail="each", language="de")
    with elm.app_context(), db.engine.begin() as connection:
        connection.execute(sa.text("UPDATE mailboxes SET language = 'tlh'"))
    join("bob").add_comment(ada.create_post("Τίτλος"), GREEK)
    [mail] = post_office.deliver()
    assert '<html lang="en" dir="ltr">' in html_of(mail)


@pytest.mark.parametrize("settings", ["fr"], indirect=True)
def test_without_a_choice_it_is_the_language_of_the_site(join, post_office):
    ada = join("ada", ADDRESS, mail="each")
    join("bob").add_comment(ada.create_post("Τίτλος"), GREEK)
    [mail] = post_office.deliver()
    assert '<html lang="fr" dir="ltr">' in html_of(mail)
    ada.patch("/users/me/notifications", json={"language": "es"})
    ada.patch("/users/me/notifications", json={"language": None})
    assert ada.get("/users/me/notifications").json["language"] is None
