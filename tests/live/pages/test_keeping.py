"""Owners keep the site in the browser: what it is, its logo, and links to choose a password."""

import os
import re
import subprocess
import sys
import time

import pytest
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import PASSWORD, name_of, open_tab, write
from tests.live.clients import sign_in
from tests.live.layout import SHIFTS
from tests.live.sites import ROOT


@pytest.fixture
def url(serve):
    """URL of a server of its own, since its settings are changed. The operator has set one."""
    settings = {"WEB_CONCURRENCY": "2", "GUNICORN_CMD_ARGS": "--threads 4"}
    return serve(**settings, POSTING_DESCRIPTION="A place for people who weave.").url


@pytest.fixture
def keeper(sign_up, fresh_url):
    """The page of an owner."""
    page = sign_up()
    command = ["-m", "flask", "users", "promote", name_of(page), "--owner"]
    environment = os.environ | {"POSTING_DATABASE_URL": fresh_url}
    subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True)
    page.goto("/keeping")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Posting")
    return page


def save(page):
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("It is saved, and holds from now on.")).to_be_visible()


def test_an_owner_says_what_the_site_is(url, keeper, people):
    keeper.get_by_label("Name", exact=True).fill("The Loom")
    keeper.get_by_label("Rules").fill("Be **kind**.")
    keeper.get_by_label("Color of links and buttons").fill("#ffff00")
    keeper.get_by_role("button", name="Save").click()
    expect(keeper.locator("#site-accent-error")).to_contain_text("too light")
    keeper.get_by_label("Color of links and buttons").fill("#8a1c5a")
    keeper.get_by_label("Everybody whom a moderator approves").check()
    save(keeper)
    visitor = people.open_page(base_url=url)
    visitor.goto("/signup")
    expect(visitor.locator(".home")).to_have_text("The Loom")
    expect(visitor.get_by_label("Why you would like to join")).to_be_visible()
    color = visitor.locator("form button").last.evaluate(
        "(button) => getComputedStyle(button).backgroundColor"
    )
    assert color == "rgb(138, 28, 90)"
    visitor.get_by_role("link", name="the rules of The Loom").click()
    expect(visitor.locator("strong")).to_have_text("kind")


@pytest.mark.parametrize("width", [320, 1280])
def test_nothing_moves_while_the_page_is_loaded(keeper, width):
    def respond_late(route):
        time.sleep(0.3)
        route.continue_()

    keeper.route("**/site", respond_late)
    keeper.set_viewport_size({"width": width, "height": 700})
    keeper.reload()
    expect(keeper.get_by_label("Name", exact=True)).to_have_value("Posting")
    assert keeper.evaluate(SHIFTS) <= 0.02


def test_a_logo_is_chosen_and_deleted(url, keeper, people, tmp_path):
    file = tmp_path / "logo.png"
    file.write_bytes(pictures.png())
    open_tab(keeper, "Pictures")
    keeper.get_by_label("Choose a logo").set_input_files(file)
    expect(keeper.get_by_text("The logo is saved.")).to_be_visible()
    visitor = people.open_page(base_url=url)
    visitor.goto("/")
    assert visitor.locator(".home img").evaluate("(image) => image.decode().then(() => true)")
    keeper.on("dialog", lambda dialog: dialog.accept())
    keeper.get_by_role("button", name="Delete the logo").click()
    expect(keeper.get_by_text("The logo is deleted.")).to_be_visible()
    visitor.reload()
    expect(visitor.locator(".home img")).to_have_count(0)


def test_a_cover_is_shown_to_visitors_and_takes_its_room_at_once(
    url, keeper, people, sign_up, tmp_path
):
    file = tmp_path / "cover.jpg"
    file.write_bytes(pictures.photo((1400, 900)))
    open_tab(keeper, "Pictures")
    keeper.get_by_label("Choose a cover picture").set_input_files(file)
    expect(keeper.get_by_text("The cover picture is saved.")).to_be_visible()
    expect(keeper.get_by_role("img", name="The present cover picture")).to_be_visible()
    for width, most in ((320, 140), (1280, 230)):  # with a density of 1
        visitor = people.open_page(base_url=url, viewport={"width": width, "height": 700})
        visitor.goto("/")
        cover = visitor.locator("img.cover")
        assert cover.evaluate("(image) => image.decode().then(() => true)")
        assert cover.bounding_box()["height"] <= most
        assert cover.evaluate("(image) => image.currentSrc").endswith("/768")
        assert visitor.evaluate(SHIFTS) <= 0.02
        assert not visitor.evaluate("document.documentElement.scrollWidth > innerWidth")
    requests, member = [], sign_up()
    member.on("request", lambda request: requests.append(request.url))
    member.goto("/")
    member.wait_for_load_state("networkidle")
    assert not [each for each in requests if "/site/cover/" in each]  # members do not load it
    open_tab(keeper, "Site")
    keeper.get_by_label("Rules").fill("Be kind.")
    open_tab(keeper, "Pictures")
    keeper.on("dialog", lambda dialog: dialog.accept())
    keeper.get_by_role("button", name="Delete the cover picture").click()
    expect(keeper.get_by_text("The cover picture is deleted.")).to_be_visible()
    visitor.reload()
    expect(visitor.locator("img.cover")).to_have_count(0)
    open_tab(keeper, "Site")
    save(keeper)  # what was being written is there, and conflicts with nothing
    expect(keeper.get_by_label("Rules")).to_have_value("Be kind.")


def test_a_change_by_a_second_owner_is_not_overwritten_after_one_of_a_picture(keeper, tmp_path):
    other = keeper.context.new_page()
    other.goto("/keeping")
    expect(other.get_by_label("Name", exact=True)).to_have_value("Posting")
    keeper.get_by_label("Name", exact=True).fill("The Loom")
    save(keeper)
    file = tmp_path / "logo.png"
    file.write_bytes(pictures.png())
    open_tab(other, "Pictures")
    other.get_by_label("Choose a logo").set_input_files(file)
    expect(other.get_by_text("The logo is saved.")).to_be_visible()
    open_tab(other, "Site")
    other.get_by_label("Name", exact=True).fill("The Mill")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_text("It has been changed since you opened it.")).to_be_visible()


def test_the_tab_of_the_url_is_in_sight_on_a_phone(keeper):
    keeper.set_viewport_size({"width": 320, "height": 600})
    keeper.goto("/keeping#webhooks")
    keeper.reload()
    tab = keeper.locator("[data-tabs] > [aria-current]")
    expect(tab).to_have_text("Webhooks")
    expect(tab).to_be_in_viewport()


def test_reading_is_switched_to_members(url, keeper, people):
    write(keeper)
    post = keeper.url
    visitor = people.open_page()
    visitor.goto(post)
    expect(visitor.locator("h1")).to_have_text("On engines")
    keeper.goto("/keeping")
    keeper.get_by_label("Members only").check()
    save(keeper)
    visitor.goto(post)
    expect(visitor.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_second_owner_overwrites_nothing(url, keeper, people):
    other = keeper.context.new_page()
    other.goto("/keeping")
    expect(other.get_by_label("Name", exact=True)).to_have_value("Posting")
    keeper.get_by_label("Name", exact=True).fill("The Loom")
    save(keeper)
    other.get_by_label("Name", exact=True).fill("The Mill")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_text("It has been changed since you opened it.")).to_be_visible()
    expect(keeper.locator(".home")).to_have_text("The Loom")


def test_a_link_for_a_member_who_has_forgotten_the_password(url, keeper, people):
    member = sign_in(url, "grandmother")
    keeper.goto("/@grandmother")
    keeper.get_by_role("button", name="Moderate").click()
    keeper.get_by_role("button", name="Make a link to choose a password").click()
    keeper.get_by_label("Your password, to be sure").fill(PASSWORD)
    keeper.get_by_role("button", name="Make a link", exact=True).click()
    link = keeper.get_by_label("The link. Copy it now: it is not shown again.")
    expect(link).not_to_have_value("")
    page = people.open_page()
    page.goto(link.input_value())
    page.get_by_label("New password").filter(visible=True).fill("another walk by the sea")
    page.get_by_role("button", name="Save the password").click()
    expect(page.locator(".menu")).to_contain_text("grandmother")
    assert member.get(f"{url}/users/me", timeout=20).status_code == 401
    page.goto(f"{url}/inbox")
    expect(page.locator("main")).to_contain_text("made a link to choose a password for grandmother")


def test_the_first_steps_are_marked_as_done(keeper):
    steps = keeper.locator(".steps li")
    expect(steps).to_have_count(5)
    expect(steps.locator("b:visible")).to_have_count(1)  # the operator has described the site
    steps.get_by_role("link", name="Write its rules").click()
    expect(keeper.get_by_label("Rules")).to_be_in_viewport()
    keeper.get_by_label("Rules").fill("Be kind.")
    save(keeper)
    expect(steps.locator("b:visible")).to_have_count(2)


def flask(*arguments, database):
    """Run a command on a database, and return what it prints."""
    environment = os.environ | {"POSTING_DATABASE_URL": database}
    command = [sys.executable, "-m", "flask", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    ).stdout


def test_a_backup_is_downloaded_and_restored(keeper, tmp_path):
    write(keeper)
    keeper.goto("/keeping#care")
    expect(keeper.get_by_text("There is no backup yet.")).to_be_visible()
    form = keeper.locator("form[data-form=backup]")
    form.get_by_label("Your password, to be sure").fill("not the password")
    form.get_by_role("button", name="Download a backup").click()
    expect(form.get_by_text("This is not your current password.")).to_be_visible()
    form.get_by_label("Your password, to be sure").fill(PASSWORD)
    with keeper.expect_download() as download:
        form.get_by_role("button", name="Download a backup").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    expect(keeper.get_by_text("The download has begun.")).to_be_visible()
    expect(keeper.get_by_text("An owner last downloaded a backup")).to_be_visible()
    other = f"sqlite:///{tmp_path}/other.db"
    assert f"from {file}." in flask("import", file, database=other)
    assert "The content is consistent" in flask("doctor", database=other)
    keeper.goto("/inbox")
    expect(keeper.locator("main")).to_contain_text("began to download a backup of the whole site")
    keeper.goto("/moderation")
    expect(keeper.locator("main")).to_contain_text("downloaded a backup")


def test_what_needs_care_is_said_in_words(keeper):
    open_tab(keeper, "Backups and health")
    finding = keeper.locator("[data-findings] li").first
    expect(finding).to_be_visible()
    count = keeper.locator("[data-findings] > li").count()
    expect(keeper.locator("[data-found]")).to_have_text(str(count))
    expect(finding.locator("b")).not_to_have_text(re.compile("^(|Something is wrong.)$"))
    finding.get_by_text("For the operator of the service").click()
    for name in ("message", "reason"):
        expect(finding.locator(f"[data-{name}]")).to_be_visible()
        expect(finding.locator(f"[data-{name}]")).not_to_be_empty()


def add_topic(keeper, name, color):
    form = keeper.locator("form[data-form=topic]").first
    form.get_by_label("Name of a new topic").fill(name)
    form.get_by_label(color).check()
    form.get_by_role("button", name="Add a topic").click()
    expect(keeper.locator("[data-topics]")).to_contain_text(name)


def test_topics_are_named_chosen_and_deleted(keeper, sign_up, people, url):
    open_tab(keeper, "Topics")
    for name, color in (
        ("Looms", "Green"),
        ("Engines", "Red"),
        ("Algebra", "Blue"),
        ("Ink", "Pink"),
    ):
        add_topic(keeper, name, color)
    ada = sign_up()
    ada.goto("/write")
    ada.get_by_label("Title").fill("On looms")
    ada.get_by_label("Text", exact=True).fill("They weave.")
    for name in ("Looms", "Engines", "Ink"):
        ada.get_by_label(name).check()
    expect(ada.get_by_label("Algebra")).to_be_disabled()
    ada.get_by_label("Ink").uncheck()
    expect(ada.get_by_label("Algebra")).to_be_enabled()
    expect(ada).to_have_url(re.compile("draft="))
    ada.reload()  # the draft has the topics
    expect(ada.get_by_label("Looms")).to_be_checked()
    ada.get_by_role("button", name="Publish").click()
    topics = ada.locator("#post .topics a")
    expect(topics).to_have_text(["Engines", "Looms"])
    ada.get_by_role("link", name="Edit", exact=True).click()
    ada.get_by_label("Engines").uncheck()
    ada.get_by_role("button", name="Save").click()
    expect(topics).to_have_text(["Looms"])

    row = keeper.locator("[data-topics] > li").filter(has_text="Looms")
    row.get_by_role("button", name="Change").click()
    row.get_by_label("Name").fill("engines")
    row.get_by_role("button", name="Save").click()
    expect(row.locator("#topic-change-name-error")).to_contain_text("Another topic has this name")
    row.get_by_label("Name").fill("Weaving")
    row.get_by_role("button", name="Save").click()
    weaving = keeper.locator("[data-topics] > li").filter(has_text="Weaving")
    expect(weaving).to_be_visible()
    visitor = people.open_page(base_url=url)
    visitor.goto("/")
    visitor.get_by_role("navigation", name="Topics").get_by_role("link", name="Weaving").click()
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Weaving")
    expect(visitor.get_by_role("link", name="On looms")).to_be_visible()
    draft = ada.context.new_page()
    draft.goto("/write")
    draft.get_by_label("Title").fill("On weaving")
    draft.get_by_label("Text", exact=True).fill("They weave.")
    for name in ("Weaving", "Algebra"):
        draft.get_by_label(name).check()
    expect(draft).to_have_url(re.compile("draft="))
    keeper.once("dialog", lambda dialog: dialog.accept())
    weaving.get_by_role("button", name="Delete").click()
    expect(weaving).to_have_count(0)
    ada.reload()
    expect(topics).to_have_count(0)
    draft.get_by_role("button", name="Publish").click()
    expect(draft.locator("#post-topics-error")).to_have_text(re.compile("has been deleted"))
    draft.reload()  # the draft has a topic that is deleted
    draft.get_by_role("button", name="Publish").click()
    expect(draft.locator("#post .topics a")).to_have_text(["Algebra"])


def test_a_webhook_is_created_tried_and_deleted(keeper):
    open_tab(keeper, "Webhooks")
    form = keeper.locator("form[data-form=webhook]")
    form.get_by_label("New posts").uncheck()
    form.get_by_label("URL of the program").fill("https://127.0.0.1:9/x")
    form.get_by_label("Your password, to be sure").fill(PASSWORD)
    form.get_by_role("button", name="Create a webhook").click()
    expect(form.get_by_text("Choose at least one thing that is sent.")).to_be_visible()
    form.get_by_label("New posts").check()
    form.get_by_label("Reports for moderators").check()
    form.get_by_role("button", name="Create a webhook").click()
    secret = form.get_by_label("The secret for the program. Copy it now: it is not shown again.")
    expect(secret).to_have_value(re.compile("^whsec_"))
    row = keeper.locator("[data-webhooks] > li")
    expect(row).to_contain_text("https://127.0.0.1:9/x")
    expect(row).to_contain_text("new posts, reports · by")
    row.get_by_role("button", name="What was sent last").click()
    expect(row.locator("[data-deliveries]")).to_contain_text("a test – ")
    keeper.on("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


def test_members_are_listed(url, keeper, people):
    page = people.open_page(base_url=url)
    page.goto("/")
    page.get_by_role("link", name="Members").click()
    expect(page.locator("article")).to_have_count(1)
    page.get_by_role("link", name="By name").click()
    expect(page.locator("article")).to_contain_text(name_of(keeper))


def test_members_download_what_they_have(url, keeper):
    keeper.goto("/settings#account")
    with keeper.expect_download() as download:
        keeper.get_by_role("link", name="Download your data").click()
    assert download.value.suggested_filename == f"{name_of(keeper)}.zip"
