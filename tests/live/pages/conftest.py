"""Fixtures with members, who use the pages in a browser."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.helpers import pictures
from tests.live.browser import PASSWORD, People
from tests.live.conftest import Server

NUMBERS = count()


@pytest.fixture
def url(shared_server: Server) -> str:
    return shared_server.url


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
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
        return page

    return sign_up
