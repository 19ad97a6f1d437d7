"""The pages to sign up, to invite and to choose a new password."""

from itertools import pairwise

import pytest

from tests.helpers.pages import Reader, links


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("approval", "A moderator reads this and approves the account."),
        ("invitation", "You need an invitation to sign up."),
        ("closed", "Sign-up is closed"),
    ],
)
def test_the_page_to_sign_up_says_what_the_setting_asks_for(make_app, mode, text):
    page = Reader(make_app(SIGNUP=mode).test_client().get("/signup").text)
    assert text in page.text
    assert len(page.all("form", method="post")) == (mode != "closed")
    assert len(page.all("textarea", name="application")) == (mode == "approval")


@pytest.mark.parametrize("inviters", ["moderators", "members"])
@pytest.mark.parametrize("mode", ["open", "approval", "invitation", "closed"])
def test_the_page_to_sign_up_says_whom_to_ask_for_an_invitation(make_app, mode, inviters):
    client = make_app(SIGNUP=mode, INVITATIONS=inviters, NAME="Elm Street").test_client()
    text = Reader(client.get("/signup").text).text
    for role in ("moderator", "member"):
        is_asked = mode == "invitation" and inviters == f"{role}s"
        assert (f"ask a {role} of Elm Street for one." in text) == is_asked
    has_invitation = "You have an invitation. Choose a username and a password." in text
    assert has_invitation == (mode != "closed")
    without = "You can also sign up without it" in text
    assert without == (mode in {"open", "approval"})


@pytest.mark.parametrize("path", ["/", "/p/{id}", "/@alice", "/signin", "/reset", "/nowhere"])
def test_no_page_offers_to_sign_up_while_that_is_closed(make_app, post, path):
    path, accept = path.format(**post), {"Accept": "text/html"}
    for mode in ("open", "approval", "invitation", "closed"):
        page = Reader(make_app(SIGNUP=mode).test_client().get(path, headers=accept).text)
        assert ("/signup" in links(page)) == (mode != "closed"), mode


@pytest.mark.parametrize(
    ("settings", "inviters"),
    [
        ({}, "moderators"),
        ({"INVITATIONS": "members"}, "members"),
        ({"SIGNUP": "invitation", "INVITATIONS": "members"}, "members"),
        ({"SIGNUP": "closed", "INVITATIONS": "members"}, None),
    ],
)
def test_the_settings_have_invitations_for_those_who_may_invite(make_app, settings, inviters):
    page = Reader(make_app(**settings).test_client().get("/settings").text)
    sections = [each for each in page.all("div", hidden=None) if "data-inviters" in each]
    assert [section["data-inviters"] for section in sections] == [inviters] * bool(inviters)
    assert len(page.all("form", action="/invitations")) == bool(inviters)


def test_who_forgot_the_password_is_told_what_to_do(make_app, tmp_path):
    client = make_app(INSTANCE_PATH=str(tmp_path), NAME="Elm Street").test_client()
    page = Reader(client.get("/signin").text)
    assert "/reset" in links(page)
    for path in ("/signin", "/reset"):
        assert "ask the people who run Elm Street for a link." in client.get(path).text
    (tmp_path / "about.md").write_text("Write to Morgan.")
    client = make_app(INSTANCE_PATH=str(tmp_path), NAME="Elm Street").test_client()
    for path in ("/signin", "/reset"):
        assert "run Elm Street for a link (see About )." in Reader(client.get(path).text).text


def test_a_password_is_chosen_with_a_link_or_a_recovery_code(read):
    page = read("/reset")
    assert len(page.all("form", action="/password-resets", method="post")) == 2
    assert page.all("input", type="hidden", name="code")
    assert page.all("input", name="recovery_code", required=None)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/signin", ["the password"]),
        ("/reset", ["the new password", "the new password"]),
        ("/settings", ["the current password", "the new password", "the password"]),
    ],
)
def test_a_button_that_shows_a_password_says_which(read, path, names):
    texts = [text for text in read(path).texts if text]
    assert [after for text, after in pairwise(texts) if text == "Show"] == names
