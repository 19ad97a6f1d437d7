"""Moderation in a browser: what members and moderators do, and where they see it."""

import os
import subprocess
import sys

from playwright.sync_api import Locator, Page, expect

from tests.live.browser import press_rare
from tests.live.sites import ROOT

ADVERTISING = "This is advertising."


def flask(database_url: str, *command: str) -> str:
    """Run a command of the service, and return what it prints."""
    return subprocess.run(
        [sys.executable, "-m", "flask", *command],
        cwd=ROOT,
        env=os.environ | {"POSTING_DATABASE_URL": database_url},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def reports(page: Page) -> Locator:
    return page.locator("[data-reports] > li")


def status(page: Page) -> Locator:
    return page.get_by_role("status")


def press(part: Page | Locator, name: str) -> None:
    part.get_by_role("button", name=name, exact=True).click()


def fill_opened(page: Page, text: str, button: str) -> None:
    """Fill the form that is open, and send it."""
    form = page.locator(".opened")
    expect(form.get_by_role("textbox")).to_be_focused()
    form.get_by_role("textbox").fill(text)
    press(form, button)


def report(page: Page, part: Locator, reason: str = ADVERTISING) -> None:
    """Report what a part of the page shows: a post, a comment or a member."""
    menu = part.locator(".rare summary")
    has_menu = menu.count() > 0
    press_rare(part, "Report") if has_menu else press(part, "Report")
    fill_opened(page, reason, "Report")
    expect(status(page)).to_contain_text("Thank you.")
    expect(page.locator(".opened")).to_have_count(0)
    opener = menu if has_menu else part.get_by_role("button", name="Report")
    expect(opener).to_be_focused()


def expect_in_inbox(page: Page, *texts: str) -> None:
    page.goto("/inbox")
    row = page.locator("[data-notifications] > li").first
    for text in texts:
        expect(row).to_contain_text(text)
