"""Mails, from the address in the settings to the end of all mails, in a browser."""

import pytest
from playwright.sync_api import expect

from tests.live.browser import PASSWORD, answer, sign_out, write
from tests.live.mails import link_in, text_of


@pytest.fixture
def site(start_site, start_mail_server):
    return start_site(
        POSTING_SMTP_URL=f"smtp://localhost:{start_mail_server()}",
        POSTING_MAIL_FROM="Elm Street <posting@example.org>",
    )


@pytest.fixture
def open_page(site, people):
    options = {"ignore_https_errors": True, "timezone_id": "America/New_York"}
    return lambda: people.open_page(base_url=site.url, **options)


def sign_up(page, name, address=""):
    page.goto("/signup")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    if address:
        page.get_by_label("Mail address").fill(address)
    page.get_by_role("button", name="Sign up").click()
    expect(page.locator(".menu")).to_contain_text(name)


def settle(page, *choices):
    """Choose in the settings what is sent."""
    page.goto("/settings#notifications")
    for choice in choices:
        page.get_by_label(choice).check()
    page.locator("form[data-form=mails]").get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Your choice is saved.")


def test_a_journey_with_mails(site, open_page, mailbox):
    """Ada leaves an address, is called back by a mail, and ends the mails again."""
    ada, bob = open_page(), open_page()
    sign_up(ada, "ada", "ada@example.net")
    expect(ada.get_by_role("status")).to_contain_text("To confirm ada@example.net")
    [mail] = mailbox.wait_for(1)
    ada.goto(link_in(mail, "/confirm#"))
    ada.get_by_role("button", name="Confirm my address").click()
    expect(ada.get_by_text("ada@example.net is confirmed.")).to_be_focused()
    ada.get_by_role("link", name="Choose what you get").click()
    expect(ada.get_by_text("Mails go to ada@example.net.")).to_be_visible()
    expect(ada.get_by_label("One mail a day")).to_be_checked()
    expect(ada.get_by_text("your time zone, America/New_York")).to_be_visible()
    settle(ada, "One mail for each", "The whole text", "A letter on Mondays")
    ada.reload()
    expect(ada.get_by_label("One mail for each")).to_be_checked()
    expect(ada.get_by_label("A letter on Mondays")).to_be_checked()

    write(ada, "On engines", "They weave.")
    post = ada.url
    sign_up(bob, "bob")
    bob.goto(post)
    answer(bob, "And cloth?")
    mail = mailbox.wait_for(2)[1]
    assert mail["Subject"] == "Re: On engines"
    assert "> And cloth?" in text_of(mail)
    ada.goto(link_in(mail, r"/p/\S+#c-"))
    expect(ada.get_by_text("And cloth?")).to_be_in_viewport()

    end = mail["List-Unsubscribe"][1:-1]
    visitor = open_page()
    visitor.goto(end)
    visitor.get_by_role("button", name="End these mails").click()
    expect(visitor.get_by_text("These mails have ended.")).to_be_focused()
    ada.goto("/settings#notifications")
    expect(ada.get_by_label("No mails")).to_be_checked()


def test_a_password_by_mail(site, open_page, mailbox):
    ada = open_page()
    sign_up(ada, "ada", "ada@example.net")
    ada.goto(link_in(mailbox.wait_for(1)[0], "/confirm#"))
    ada.get_by_role("button", name="Confirm my address").click()
    expect(ada.get_by_text("ada@example.net is confirmed.")).to_be_visible()
    sign_out(ada)
    expect(ada.get_by_role("link", name="Sign in").first).to_be_visible()
    ada.goto("/signin")
    ada.get_by_role("link", name="by mail").click()
    ada.get_by_role("button", name="Send me a link").click()
    expect(ada.locator("#ask-for-link-name-error")).to_have_text("Type a name.")
    ada.get_by_label("Username or mail address").fill("ada@example.net ")
    ada.get_by_role("button", name="Send me a link").click()
    expect(ada.get_by_text("a mail with a link is on its way")).to_be_focused()
    mail = mailbox.wait_for(2)[1]
    ada.goto(link_in(mail, "/reset#"))
    ada.get_by_label("New password").filter(visible=True).fill("another walk by the sea")
    ada.get_by_role("button", name="Save the password").click()
    expect(ada.locator(".menu")).to_contain_text("ada")
    assert "was changed" in mailbox.wait_for(3)[2]["Subject"]


def test_an_address_in_the_settings(site, open_page, mailbox):
    """It is entered with a mistake first, then replaced, and removed in the end."""
    ada = open_page()
    sign_up(ada, "ada")
    ada.goto("/settings#notifications")
    form = ada.locator("form[data-form=email]")
    expect(ada.get_by_text("You get no mails yet.")).to_be_visible()
    form.get_by_label("Mail address").fill("ada.example.net")
    form.get_by_label("Your password").fill(PASSWORD)
    form.get_by_role("button", name="Save the address").click()
    expect(ada.locator("#email-email-error")).to_contain_text("This is not a mail address.")
    form.get_by_label("Mail address").fill("ada@example.net")
    form.get_by_role("button", name="Save the address").click()
    expect(ada.get_by_text("To confirm ada@example.net")).to_be_visible()
    ada.goto(link_in(mailbox.wait_for(1)[0], "/confirm#"))
    ada.get_by_role("button", name="Confirm my address").click()
    ada.get_by_role("link", name="Choose what you get").click()
    expect(ada.get_by_text("Mails go to ada@example.net.")).to_be_visible()
    ada.on("dialog", lambda dialog: dialog.accept())
    ada.get_by_role("button", name="Remove my address").click()
    expect(ada.get_by_text("You get no mails yet.")).to_be_visible()
    assert "no longer uses" in mailbox.wait_for(2)[1]["Subject"]
    expect(ada.get_by_role("button", name="Remove my address")).to_be_hidden()


def test_without_a_mail_server_nothing_is_shown(shared_server, people):
    page = people.open_page(base_url=shared_server.url)
    for path in ("/signup", "/reset", "/settings", "/signin"):
        page.goto(path)
        expect(page.get_by_label("Mail address")).to_have_count(0)
        expect(page.get_by_text("by mail")).to_have_count(0)
