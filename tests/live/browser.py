"""People with a browser: the Chromium of the system, driven by Playwright."""

import asyncio
import re
from contextlib import suppress
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

PASSWORD = "a long walk by the sea"
TITLE, TEXT = "On engines", "They weave algebra."  # of a post
TOUCH = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
# Adds comments to the post of the page, as the reader; returns their ids.
ADD_COMMENTS = """async (texts) => {
  const post = location.pathname.split("/").at(-1);
  const headers = {"Content-Type": "application/json"};
  const ids = [];
  for (const content of texts) {
    const body = JSON.stringify({content});
    const answer = await fetch(`/posts/${post}/comments`, {method: "POST", headers, body});
    ids.push((await answer.json()).id);
  }
  return ids;
}"""
TIMEOUT = 30_000  # milliseconds, for tests that run in parallel
CLOSE_SECONDS = 10
expect.set_options(timeout=TIMEOUT)

# Responses and failures that tests cause; any other message in the console fails the test.
EXPECTED = re.compile(
    "Failed to load resource: "
    "(net::ERR_|the server responded with a status of 4(01|03|04|09|12|22|28))"
)


class People:
    """Opens pages; each context is a person with cookies and a storage of their own."""

    def __init__(self, chromium: Browser) -> None:
        self._chromium = chromium
        self._contexts: list[BrowserContext] = []
        self.unexpected: list[str] = []

    def open_page(self, **options: Any) -> Page:
        context = self._chromium.new_context(locale="en-GB", **options)
        context.set_default_timeout(TIMEOUT)
        context.on("page", self._watch)
        self._contexts.append(context)
        return context.new_page()

    def close(self) -> None:
        """Close all pages, and check that nothing unexpected is in their consoles."""
        for context in self._contexts:
            close(context)
        if self.unexpected:
            raise AssertionError(self.unexpected)

    def _watch(self, page: Page) -> None:
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.unexpected.append(str(error)))

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"} and not EXPECTED.match(text):
            self.unexpected.append(text)


def close(opened: BrowserContext | Browser) -> None:
    """Close a context or a browser; what does not close ends with Playwright.

    Chromium sometimes never closes a context, and Playwright has no time limit for that.
    """
    closing = asyncio.wait_for(opened._impl_obj.close(reason=None), CLOSE_SECONDS)
    with suppress(TimeoutError):
        opened._sync(closing)


def close_tab(tab: Page) -> None:
    """Close a tab, as its reader does who answers that it may lose what is not sent.

    Chromium forgets that a tab is to be closed if it is just going to another page.
    """
    tab.on("dialog", lambda dialog: dialog.accept())
    for _ in range(10):
        if tab.is_closed():
            return
        tab.close(run_before_unload=True)  # Playwright would wait for the other way without end
        with suppress(PlaywrightTimeout):
            tab.wait_for_event("close", timeout=3000)
    raise AssertionError("The tab cannot be closed.")


def name_of(member: Page) -> str:
    name = member.locator(".menu [data-my-name]")
    expect(name).not_to_have_text("Account")  # until the page knows who has signed in
    return name.inner_text()


def open_menu(page: Page) -> None:
    """Open the menu of the reader in the header."""
    page.locator(".menu summary").click()


def open_tab(page: Page, name: str) -> None:
    """Open a tab of the settings, or of the page of owners."""
    page.locator("[data-tabs]").get_by_role("link", name=re.compile(f"^{name}")).click()


def press_rare(part: Page | Locator, name: str) -> None:
    """Press a button in the menu of the rare actions of a post or a comment."""
    menu = part.locator(f'.rare:has(button:text-is("{name}"))').first
    menu.locator("summary").click()
    menu.get_by_role("button", name=name, exact=True).click()


def press_sign_out(page: Page) -> None:
    """Ask to sign out by the menu in the header."""
    open_menu(page)
    page.get_by_role("button", name="Sign out").click()


def sign_out(page: Page) -> None:
    """Sign out, and wait for the page that follows."""
    with page.expect_event("load"):
        press_sign_out(page)


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    """Fill the form to sign in, and send it."""
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def fill_editor(page: Page, title: str, text: str) -> None:
    page.goto("/write")
    page.get_by_label("Title").fill(title)
    page.get_by_label("Text", exact=True).fill(text)


def publish(page: Page) -> None:
    page.get_by_role("button", name="Publish").click()


def expect_post(page: Page, title: str = TITLE) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def write(page: Page, title: str = TITLE, text: str = TEXT) -> None:
    """Publish a post, and stay on its page."""
    fill_editor(page, title, text)
    publish(page)
    expect_post(page, title)


def reply_to(page: Page, comment: Locator, text: str) -> None:
    comment.get_by_role("link", name="Reply").click()
    page.get_by_label("Your reply").fill(text)
    page.locator(".opened").get_by_role("button", name="Reply").click()
    expect(page.locator(".thread")).to_contain_text(text)


def answer(page: Page, text: str) -> None:
    page.get_by_label("Your comment").fill(text)
    page.get_by_role("button", name="Comment").click()
    expect(page.locator(".thread")).to_contain_text(text)


def tab_to(page: Page, name: str, *keys: str) -> None:
    """Press Tab until the element with this text or label has the focus, and then other keys."""
    find = """() => {
      const element = document.activeElement;
      const label = element.labels?.[0] ?? element;
      return label.textContent.trim() || element.ariaLabel;
    }"""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(find) == name:
            for key in keys:
                page.keyboard.press(key)
            return
    raise AssertionError(f"{name} cannot be reached by keyboard")


def type_into(page: Page, label: str, text: str, *keys: str) -> None:
    """Replace the text of a control, which is reached by Tab; then press other keys."""
    tab_to(page, label, "Control+A")
    page.keyboard.type(text)
    for key in keys:
        page.keyboard.press(key)
