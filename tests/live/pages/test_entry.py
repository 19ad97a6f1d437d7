"""The ways into a community: sign-up in each mode, links to choose a password, recovery codes."""

import os
import re
import subprocess
import sys

import pytest
import requests
from playwright.sync_api import expect

from tests.live.browser import (
    PASSWORD,
    TOUCH,
    expect_post,
    name_of,
    open_tab,
    sign_in,
    sign_out,
    tab_to,
    type_into,
    write,
)
from tests.live.clients import sign_in as sign_in_by_api
from tests.live.sites import ROOT

NEW_PASSWORD = "another walk by the sea"
UNKNOWN = "V1StGXR8_Z5jdHi6B-myT3cqSJzQ3uvEdY5oAjSkK_Jri0qmfyaLOFT6n3zC6zxs"


def fill(page, name, password=PASSWORD):
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)


def sign_up_here(page, name):
    """Fill the form to sign up that a page shows, and send it."""
    fill(page, name)
    page.get_by_role("button", name="Sign up").click()


def choose_password(page, password=PASSWORD):
    page.get_by_label("New password").filter(visible=True).fill(password)
    page.get_by_role("button", name="Save the password").click()


def link_in(output):
    """Return the link that a command has printed."""
    return re.search(r"https?://\S+", output)[0]


def create_invitation(page, note, uses="1", days="14"):
    """Create an invitation in the settings that a page shows, and return its link."""
    page.get_by_label("Whom it is for").fill(note)
    page.get_by_label("How many people it is for").fill(uses)
    page.get_by_label("How many days it works").fill(days)
    page.get_by_role("button", name="Create an invitation").click()
    expect(rows_of(page).filter(has_text=note)).to_be_visible()
    link = page.get_by_label("The link of your invitation.")
    expect(link).to_be_focused()
    return link.input_value()


def rows_of(page):
    return page.locator("[data-invitations] > li")


def create_codes(page, password=PASSWORD):
    """Create recovery codes in the settings that a page shows, and return them."""
    page.get_by_label("Your password, to be sure").fill(password)
    page.get_by_role("button", name="Make ten new codes").click()
    expect(page.get_by_role("group", name="Your new recovery codes")).to_be_focused()
    return page.locator(".codes li").all_inner_texts()


def use_code(page, name, code, password):
    page.get_by_label("Username").fill(name)
    page.get_by_label("Recovery code").fill(code)
    choose_password(page, password)


class TestJourneys:
    """Behind nginx, from the first account on."""

    @pytest.fixture
    def open_pages(self, people):
        def open_pages(site, number):
            options = {"base_url": site.url, "ignore_https_errors": True}
            return [people.open_page(**options) for _ in range(number)]

        return open_pages

    def test_a_family(self, start_site, open_pages):
        """Only members read, and come in by invitation."""
        site = start_site(POSTING_READING="members", POSTING_SIGNUP="invitation")
        morgan, grace, stranger = open_pages(site, 3)
        morgan.goto(link_in(site.flask("users", "create", "morgan", "--moderator")))
        choose_password(morgan)
        expect(morgan).to_have_url(f"{site.url}/")
        expect(morgan.get_by_role("status")).to_have_text("Your new password is set.")
        write(morgan, "Lunch on Sunday", "At noon.")
        post = morgan.url

        stranger.goto(post)
        expect(stranger.get_by_text("Only members can read here.")).to_be_visible()
        stranger.get_by_role("main").get_by_role("link", name="Sign up").click()
        expect(stranger.get_by_text("You need an invitation to sign up.")).to_be_visible()
        expect(stranger.get_by_label("Username")).to_be_hidden()

        morgan.goto("/settings#invitations")
        link = create_invitation(morgan, "For Grace")
        assert link.startswith(f"{site.url}/signup#")
        row = rows_of(morgan).filter(has_text="For Grace")
        expect(row).to_contain_text("For 1 more person, until")
        grace.goto(link)
        expect(grace.get_by_text("You have an invitation.")).to_be_visible()
        expect(grace.get_by_text("You need an invitation")).to_be_hidden()
        sign_up_here(grace, "grace")
        expect(grace).to_have_url(f"{site.url}/")
        grace.get_by_role("link", name="Lunch on Sunday").click()
        expect_post(grace, "Lunch on Sunday")
        stranger.goto(link)
        sign_up_here(stranger, "mallory")
        expect(stranger.locator(".problem")).to_have_text(
            "This invitation does not work. It may be incomplete, expired, used up or ended. "
            "Ask for another one."
        )
        morgan.reload()
        expect(row).to_contain_text("Used up")
        expect(row).to_contain_text("Signed up with it: grace")
        expect(row.get_by_role("button", name="End")).to_be_hidden()
        grace.goto("/settings#security")
        expect(grace.locator("[data-sessions] > li")).to_have_count(1)
        expect(grace.get_by_role("link", name="Invitations")).to_be_hidden()

        codes = create_codes(grace)
        sign_out(grace)
        expect(grace.get_by_text("Only members can read here.")).to_be_visible()
        grace.goto(post)
        grace.get_by_role("link", name="Choose a new one with a recovery code").click()
        use_code(grace, "grace", codes[0].lower(), NEW_PASSWORD)
        expect_post(grace, "Lunch on Sunday")
        expect(grace).to_have_url(post)

    def test_a_club(self, start_site, open_pages):
        """Everybody reads, and a moderator approves each account."""
        site = start_site(POSTING_SIGNUP="approval")
        ada, visitor = open_pages(site, 2)
        code = link_in(site.flask("users", "create", "morgan", "--moderator")).partition("#")[2]
        body = {"code": code, "password": PASSWORD}
        client = site.client()
        assert client.post(f"{site.url}/password-resets", json=body, timeout=20).ok
        morgan = sign_in_by_api(site.url, "morgan", client)

        ada.goto("/signup")
        ada.get_by_label("Why you would like to join").fill("I weave too.")
        sign_up_here(ada, "ada")
        expect(ada.get_by_text("A moderator reads what you have written.")).to_be_focused()
        expect(ada.get_by_label("Username")).to_have_count(0)
        ada.get_by_role("main").get_by_role("link", name="Sign in").click()
        sign_in(ada, "ada")
        expect(ada.locator(".problem")).to_have_text(
            "A moderator has not approved your account yet. Try again later."
        )
        assert visitor.goto("/@ada").status == 404
        [application] = morgan.get(f"{site.url}/applications", timeout=20).json()
        assert application["application"] == "I weave too."
        approval = f"{site.url}/applications/{application['id']}/approval"
        assert morgan.post(approval, timeout=20).status_code == 201
        sign_in(ada, "ada")
        expect(ada).to_have_url(f"{site.url}/")
        write(ada, "On looms")
        visitor.goto(ada.url)
        expect_post(visitor, "On looms")

    def test_a_closed_team(self, start_site, open_pages):
        """Accounts are made on the command line, and visitors cannot sign up."""
        site = start_site(POSTING_READING="members", POSTING_SIGNUP="closed")
        grace, other = open_pages(site, 2)
        link = link_in(site.flask("users", "create", "grace"))
        grace.goto("/")
        expect(grace.get_by_role("button", name="Sign in")).to_be_visible()
        expect(grace.get_by_role("link", name="Sign up")).to_have_count(0)
        grace.goto(link)
        choose_password(grace, "grace")
        expect(grace.locator("#reset-by-link-password-error")).to_have_text(
            "Use at least 8 characters."
        )
        choose_password(grace)
        expect(grace).to_have_url(f"{site.url}/")
        assert name_of(grace) == "grace"
        grace.go_back()
        expect(grace).to_have_url(f"{site.url}/reset")
        grace.goto("/settings")
        expect(grace.locator("[data-sessions] > li")).to_have_count(1)
        expect(grace.get_by_role("heading", name="Invitations")).to_have_count(0)

        other.goto(link)
        choose_password(other, NEW_PASSWORD)
        expect(other.locator(".problem:visible")).to_have_text(
            "This link has expired or has been used."
        )
        other.get_by_role("link", name="Use a recovery code").click()
        expect(other.get_by_label("Recovery code")).to_be_visible()
        other.goto(link_in(site.flask("users", "reset-link", "grace")))
        choose_password(other, NEW_PASSWORD)
        expect(other).to_have_url(f"{site.url}/")
        assert name_of(other) == "grace"
        grace.reload()
        expect(grace.get_by_text("Only members can read here.")).to_be_visible()


class TestSigningUp:
    def test_an_invitation_needs_no_application(self, serve, people):
        server = serve(POSTING_SIGNUP="approval", POSTING_INVITATIONS="members")
        page = people.open_page(base_url=server.url)
        page.goto("/signup")
        expect(page.get_by_label("Why you would like to join")).to_be_visible()
        page.goto(f"/signup#{UNKNOWN}")  # in the same tab, so that nothing is loaded
        expect(page.get_by_label("Why you would like to join")).to_be_hidden()
        sign_up_here(page, "ada")
        expect(page.locator(".problem")).to_contain_text("This invitation does not work.")
        page.get_by_role("link", name="sign up without it").click()
        page.get_by_label("Why you would like to join").fill("I weave too.")
        sign_up_here(page, "ada")
        expect(page.get_by_text("A moderator reads what you have written.")).to_be_visible()

    def test_a_link_within_the_page_is_no_invitation(self, url, people, new_name):
        page = people.open_page(base_url=url)
        page.goto("/signup#main")
        expect(page.get_by_text("You have an invitation.")).to_be_hidden()
        sign_up_here(page, new_name)
        expect(page).to_have_url(f"{url}/")


class TestChoosingAPassword:
    def test_the_code_stays_in_the_form(self, url, people):
        """The link to the content of the page changes the fragment."""
        page = people.open_page(base_url=url)
        page.goto(f"/reset#{UNKNOWN}")
        tab_to(page, "Skip to the content", "Enter")
        expect(page).to_have_url(f"{url}/reset#main")
        type_into(page, "New password", NEW_PASSWORD)
        with page.expect_request("**/password-resets") as sent:
            page.keyboard.press("Enter")
        assert sent.value.post_data_json == {"code": UNKNOWN, "password": NEW_PASSWORD}
        expect(page.locator(".problem:visible")).to_contain_text("This link has expired")

    def test_a_recovery_code_works_once(self, url, people, sign_up):
        ada = sign_up()
        name = name_of(ada)
        ada.goto("/settings#security")
        expect(ada.locator("[data-codes-left]")).to_have_text("You have no codes.")
        code, other, *rest = create_codes(ada)
        assert len(rest) == 8
        page = people.open_page(base_url=url)
        page.goto("/signin?next=/settings")
        page.get_by_role("link", name="Choose a new one with a recovery code").click()
        use_code(page, name, "", NEW_PASSWORD)
        expect(page.locator("#reset-by-code-recovery_code-error")).to_have_text(
            "Type one of your recovery codes."
        )
        use_code(page, name, code.replace("-", " "), NEW_PASSWORD)
        expect(page).to_have_url(f"{url}/settings")
        open_tab(page, "Security")
        expect(page.locator("[data-codes-left]")).to_contain_text("You have 9 codes, made on")
        page.goto("/reset")  # those who are signed in may come here too
        use_code(page, name, code, PASSWORD)
        expect(page.locator("#reset-by-code-recovery_code-error")).to_have_text(
            "The username or the code is wrong, or the code has been used already."
        )
        use_code(page, name, other, PASSWORD)
        expect(page).to_have_url(f"{url}/")
        ada.reload()
        expect(ada.get_by_role("link", name="Sign in to see your settings.")).to_be_visible()

    def test_without_a_session_the_member_only_signs_in_again(self, url, people, sign_up):
        ada = sign_up()
        name = name_of(ada)
        ada.goto("/settings#security")
        code = create_codes(ada)[0]
        page = people.open_page(base_url=url)
        page.route(
            "**/signin", lambda route: route.abort() if is_post(route) else route.continue_()
        )
        page.goto("/reset?next=/settings")
        use_code(page, name, code, NEW_PASSWORD)
        expect(page).to_have_url(f"{url}/signin?next=/settings")
        expect(page.get_by_role("status")).to_have_text("Your new password is set.")
        page.unroute_all()
        sign_in(page, name, NEW_PASSWORD)
        expect(page).to_have_url(f"{url}/settings")


def is_post(route):
    return route.request.method == "POST"


class TestSecretsInTheSettings:
    def test_they_can_be_copied(self, sign_up):
        page = sign_up(permissions=["clipboard-read", "clipboard-write"])
        page.goto("/settings#security")
        codes = create_codes(page)
        page.get_by_role("group", name="Your new recovery codes").get_by_role(
            "button", name="Copy"
        ).click()
        expect(page.get_by_role("status")).to_have_text("It is copied.")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(f"Recovery codes of {name_of(page)}.")
        assert copied.splitlines()[-10:] == codes
        open_tab(page, "Programs")
        page.get_by_label("Name", exact=True).fill("Reader")
        page.get_by_label("Read feeds, in a feed reader").check()
        page.get_by_role("button", name="Create a token").click()
        address = page.get_by_label("The address of your feed.")
        expect(address).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(
            page.locator("form[data-form=token]").get_by_role("button", name="Copy")
        ).to_be_focused()
        page.wait_for_function(
            "async address => await navigator.clipboard.readText() === address",
            arg=address.input_value(),
        )
        expect(page.get_by_role("status")).to_have_text("It is copied.")

    def test_what_a_browser_does_not_copy_is_selected(self, sign_up):
        page = sign_up()
        page.add_init_script("delete Navigator.prototype.clipboard")  # as without https
        page.goto("/settings#security")
        codes = create_codes(page)
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("status")).to_contain_text("It is selected")
        assert codes[9] in page.evaluate("getSelection().toString()")

    def test_recovery_codes_are_printed_alone(self, sign_up):
        page = sign_up()
        page.goto("/settings#security")
        codes = create_codes(page)
        page.evaluate("window.print = () => { document.title = 'Printed'; }")
        page.get_by_role("button", name="Print").click()
        expect(page).to_have_title("Printed")
        page.emulate_media(media="print")
        for code in codes:
            expect(page.get_by_text(code)).to_be_visible()
        expect(page.get_by_text("/reset")).to_be_visible()
        for heading in ("Settings", "Profile", "Sessions", "Delete the account"):
            expect(page.get_by_role("heading", name=heading)).to_be_hidden()
        expect(page.get_by_role("button")).to_have_count(0)

    def test_recovery_codes_need_the_password(self, sign_up):
        page = sign_up()
        page.goto("/settings#security")
        page.get_by_label("Your password, to be sure").fill("not the password")
        page.get_by_role("button", name="Make ten new codes").click()
        expect(page.locator("#recovery-codes-current_password-error")).to_have_text(
            "This is not your current password."
        )


class TestInvitationsInTheSettings:
    @pytest.fixture
    def url(self, serve):
        return serve(POSTING_INVITATIONS="members").url

    def test_one_is_ended(self, url, sign_up, people):
        ada = sign_up()
        ada.goto("/settings#invitations")
        link = create_invitation(ada, "For the choir", uses="12", days="90")
        expect(rows_of(ada)).to_contain_text("For 12 more people, until")
        questions = []

        def answer_it(dialog):
            questions.append(dialog.message)
            dialog.accept()

        ada.on("dialog", answer_it)
        rows_of(ada).get_by_role("button", name="End").click()
        expect(rows_of(ada)).to_have_count(0)
        expect(ada.locator("[data-invitations]")).to_be_focused()
        assert questions == ["End this invitation? Its link stops working."]
        page = people.open_page()
        page.goto(link)
        sign_up_here(page, "grace")
        expect(page.locator(".problem")).to_contain_text("This invitation does not work.")

    def test_moderators_see_those_of_others(self, url, fresh_url, sign_up):
        ada, morgan = sign_up(), sign_up()
        ada.goto("/settings#invitations")
        create_invitation(ada, "For the choir")
        subprocess.run(
            [sys.executable, "-m", "flask", "users", "promote", name_of(morgan)],
            cwd=ROOT,
            env=os.environ | {"POSTING_DATABASE_URL": fresh_url},
            check=True,
        )
        morgan.goto("/settings#invitations")
        row = rows_of(morgan).filter(has_text="For the choir")
        expect(row).to_contain_text(f" · by {name_of(ada)}")
        expect(rows_of(ada)).not_to_contain_text(" · by")

    @pytest.mark.parametrize(
        ("label", "name", "wrong", "words"),
        [
            ("How many people", "uses", "0", "Type a number from 1 to 100."),
            ("How many people", "uses", "1.5", "Type a number from 1 to 100."),
            ("How many days", "days", "91", "Type a number from 1 to 90."),
        ],
    )
    def test_a_wrong_number_is_named(self, sign_up, label, name, wrong, words):
        page = sign_up()
        page.goto("/settings#invitations")
        page.get_by_label(label).fill(wrong)
        page.get_by_role("button", name="Create an invitation").click()
        expect(page.locator(f"#invitation-{name}-error")).to_have_text(words)
        expect(page.get_by_label(label)).to_be_focused()
        page.get_by_label(label).fill("")  # then the service chooses
        page.get_by_role("button", name="Create an invitation").click()
        expect(rows_of(page)).to_contain_text("For 1 more person, until")

    def test_older_ones_follow(self, url, sign_up):
        page = sign_up()
        client = sign_in_by_api(url, name_of(page))
        for number in range(21):
            body = {"note": f"Number {number}"}
            assert client.post(f"{url}/invitations", json=body, timeout=20).status_code == 201
        page.goto("/settings#invitations")
        expect(rows_of(page)).to_have_count(20)
        page.get_by_role("button", name="Older invitations").click()
        expect(rows_of(page)).to_have_count(21)
        expect(rows_of(page).last).to_be_focused()
        expect(rows_of(page).last).to_contain_text("Number 0")
        expect(page.get_by_role("button", name="Older invitations")).to_be_hidden()

    def test_by_touch_and_by_keyboard(self, url, sign_up):
        phone = sign_up(**TOUCH)
        phone.goto("/settings#invitations")
        link = create_invitation(phone, "For Grace", uses="2")
        assert requests.get(link, timeout=20).ok
        page = sign_up()
        page.goto("/settings#invitations")
        type_into(page, "Whom it is for", "For Grace")
        tab_to(page, "Create an invitation", "Enter")
        expect(page.get_by_label("The link of your invitation.")).to_be_focused()
        page.on("dialog", lambda dialog: dialog.accept())
        page.locator("#invitations h2").click()
        tab_to(page, "End", "Enter")
        expect(rows_of(page)).to_have_count(0)
