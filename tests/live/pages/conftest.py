"""Fixtures with members, who use the pages in a browser."""

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.helpers import pictures
from tests.live.browser import PASSWORD, TOUCH, People, close, name_of, tab_to, type_into
from tests.live.conftest import Server
from tests.live.sites import require_programs

NUMBERS = count()


@pytest.fixture
def url(shared_server: Server) -> str:
    return shared_server.url


@pytest.fixture
def chromium_with(chromium: Browser, tmp_path: Path) -> Iterator[Callable[[dict[str, Any]], Page]]:
    """Return a function that starts a browser with preferences, and returns a page of it."""
    require_programs("chromium")  # the one without windows has no preferences
    contexts: list[BrowserContext] = []

    def start(preferences: dict[str, Any]) -> Page:
        folder = tmp_path / "profile"
        (folder / "Default").mkdir(parents=True)
        (folder / "Default" / "Preferences").write_text(json.dumps(preferences))
        context = chromium.browser_type.launch_persistent_context(
            folder, executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        contexts.append(context)
        return context.pages[0]

    yield start
    for context in contexts:
        close(context)


@pytest.fixture
def picture_files(tmp_path: Path) -> list[Path]:
    files = []
    for name in ("loom", "mill"):
        file = tmp_path / f"{name}.png"
        file.write_bytes(pictures.png())
        files.append(file)
    return files


@pytest.fixture
def new_name() -> str:
    return f"member-{next(NUMBERS)}"


@pytest.fixture
def sign_up(url: str, people: People) -> Callable[..., Page]:
    """Return a function that signs up a new member, and returns a page of their browser."""

    def sign_up(**options) -> Page:
        name = f"member-{next(NUMBERS)}"
        page = people.open_page(base_url=url, **options)
        page.goto("/signup")
        page.get_by_label("Username").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign up").click()
        expect(page).to_have_url(f"{url}/")
        expect(page.locator(".menu")).to_contain_text(name)
        return page

    return sign_up


@pytest.fixture
def by_keyboard(url: str, people: People, new_name: str) -> Page:
    """The page of a member who has signed up by keyboard."""
    page = people.open_page(base_url=url)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/")
    tab_to(page, "Sign up", "Enter")
    page.wait_for_url("**/signup")
    type_into(page, "Username", new_name)
    type_into(page, "Password", PASSWORD, "Enter")
    page.wait_for_url(f"{url}/")
    return page


@pytest.fixture
def by_touch(url: str, people: People, new_name: str) -> Page:
    """The page of a member who has signed up on a phone."""
    page = people.open_page(base_url=url, **TOUCH)
    page.goto("/")
    page.get_by_role("link", name="Sign up").tap()
    page.get_by_label("Username").fill(f"{new_name} ")  # as the keyboard of a phone does
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Show the password").tap()
    page.get_by_role("button", name="Sign up").tap()
    page.wait_for_url(f"{url}/")
    assert name_of(page) == new_name
    return page
