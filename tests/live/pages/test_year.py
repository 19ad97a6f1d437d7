"""A year of an owner who has no shell: from the first start to a backup that is restored."""

import re
import time

import pytest
from playwright.sync_api import expect

from tests.live.browser import PASSWORD, expect_post, fill_editor, name_of, publish, sign_in
from tests.live.moderation import fill_opened, flask
from tests.live.pages.test_entry import create_invitation, sign_up_here

FAMILY = {"grandmother": "For Grandmother", "cousin": "For the cousin", "mallory": "For Mallory"}
TITLE = "Lunch on Sunday"
NEW_PASSWORD = "plum cake with cinnamon"  # of grandmother
FIRST_STEPS = ["description", "rules", "invitation", "post", "backup"]


@pytest.fixture
def site(capfd, start_site):
    """A site that has just been started for the first time, with the link that it has printed."""
    site = start_site(WEB_CONCURRENCY="2")
    printed = ""
    for _ in range(300):
        printed += capfd.readouterr().out
        if found := re.search(r"https://\S+/signup#\S+", printed):
            site.first_link = found[0]
            return site
        time.sleep(0.1)
    raise AssertionError(printed)


@pytest.fixture
def open_page(site, people):
    return lambda: people.open_page(base_url=site.url, ignore_https_errors=True)


@pytest.fixture
def keeper(site, open_page):
    """The page of the owner, who has followed the first steps, but has no backup."""
    keeper = open_page()
    keeper.goto(site.first_link)
    sign_up_here(keeper, "keeper")
    assert name_of(keeper) == "keeper"
    assert steps_done(keeper) == []
    keeper.get_by_label("Name", exact=True).fill("The Family")
    keeper.get_by_label("Description").fill("A place for all of us.")
    keeper.get_by_label("Rules").fill("Be kind.")
    save(keeper)
    keeper.get_by_role("link", name="Write the first post").click()
    fill_editor(keeper, TITLE, "At noon.")
    publish(keeper)
    expect_post(keeper, TITLE)
    return keeper


def save(keeper):
    keeper.get_by_role("button", name="Save").click()
    expect(keeper.get_by_text("It is saved, and holds from now on.")).to_be_visible()


def steps_done(keeper):
    """Return the names of the first steps that are marked as done."""
    keeper.goto("/keeping")
    expect(keeper.locator("#keeping")).to_be_visible()
    steps = keeper.locator(".steps li").filter(has=keeper.locator("b:visible"))
    return [step.get_attribute("data-step") for step in steps.all()]


def moderate(keeper, name, button):
    keeper.goto(f"/@{name}")
    keeper.get_by_role("button", name="Moderate").click()
    panel = keeper.get_by_role("group", name="What moderators see")
    panel.get_by_role("button", name=button).click()


def invite_the_family(keeper, open_page):
    """Let three people come by invitations, and return their pages."""
    keeper.goto("/keeping")
    keeper.get_by_role("link", name="Invite people").click()
    links = {name: create_invitation(keeper, note) for name, note in FAMILY.items()}
    pages = {name: open_page() for name in links}
    for name, link in links.items():
        pages[name].goto(link)
        sign_up_here(pages[name], name)
        assert name_of(pages[name]) == name
    return pages


def make_moderator(keeper, name):
    moderate(keeper, name, "Change the role")
    keeper.get_by_label("Moderator, who decides on reports").check()
    keeper.get_by_label("Your password, to be sure").fill(PASSWORD)
    keeper.locator(".opened").get_by_role("button", name="Change the role").click()
    expect(keeper.locator(".by").get_by_text("moderator", exact=True)).to_be_visible()


def give_a_password(keeper, page, name):
    """Make a link for a member, who follows it."""
    moderate(keeper, name, "Make a link to choose a password")
    keeper.get_by_label("Your password, to be sure").fill(PASSWORD)
    keeper.get_by_role("button", name="Make a link", exact=True).click()
    link = keeper.get_by_label("The link. Copy it now: it is not shown again.")
    expect(link).not_to_have_value("")
    page.goto(link.input_value())
    page.get_by_label("New password").filter(visible=True).fill(NEW_PASSWORD)
    page.get_by_role("button", name="Save the password").click()
    expect(page.locator(".menu")).to_contain_text(name)


def let_the_aunt_in(keeper, moderator, stranger):
    """Let moderators approve accounts, and only members read. Then somebody applies."""
    keeper.goto("/keeping")
    keeper.get_by_label("Everybody whom a moderator approves").check()
    keeper.get_by_label("Members only").check()
    save(keeper)
    time.sleep(1)  # nginx keeps pages until the end of the second
    stranger.goto("/")
    expect(stranger.get_by_text("Only members can read here.")).to_be_visible()
    stranger.goto("/signup")
    stranger.get_by_label("Why you would like to join").fill("I am the aunt.")
    sign_up_here(stranger, "aunt")
    moderator.goto("/moderation")
    moderator.get_by_role("button", name="Approve").click()
    expect(moderator.get_by_text("The account is approved.")).to_be_visible()
    stranger.goto("/signin")
    sign_in(stranger, "aunt")
    expect(stranger.get_by_role("link", name=TITLE)).to_be_visible()


def download_backup(keeper, folder):
    keeper.goto("/keeping#care")
    form = keeper.locator("form[data-form=backup]")
    form.get_by_label("Your password, to be sure").fill(PASSWORD)
    with keeper.expect_download() as download:
        form.get_by_role("button", name="Download a backup").click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


def test_a_year_without_a_shell(keeper, open_page, serve, people, tmp_path):
    family = invite_the_family(keeper, open_page)
    assert steps_done(keeper) == FIRST_STEPS[:-1]
    for name in ("cousin", "mallory"):
        make_moderator(keeper, name)
    moderate(keeper, "mallory", "Suspend")
    fill_opened(keeper, "Rude words.", "Suspend")
    expect(keeper.get_by_role("button", name="Lift the suspension")).to_be_visible()
    mallory = family["mallory"]
    mallory.goto("/inbox")
    expect(mallory.get_by_role("main").get_by_role("link", name="Sign in")).to_be_visible()
    give_a_password(keeper, open_page(), "grandmother")
    let_the_aunt_in(keeper, family["cousin"], open_page())
    file = download_backup(keeper, tmp_path)
    keeper.reload()
    expect(keeper.get_by_text("An owner last downloaded a backup")).to_be_visible()
    expect(keeper.locator("#first-steps")).to_be_hidden()

    other = f"sqlite:///{tmp_path}/restored.db"
    flask(other, "import", str(file))
    restored = serve(POSTING_DATABASE_URL=other, WEB_CONCURRENCY="1").url
    page = people.open_page(base_url=restored)
    page.goto("/")
    expect(page.locator(".home")).to_have_text("The Family")
    expect(page.get_by_text("Only members can read here.")).to_be_visible()
    page.goto("/signin")
    sign_in(page, "grandmother", NEW_PASSWORD)
    page.get_by_role("link", name=TITLE).click()
    expect_post(page, TITLE)
