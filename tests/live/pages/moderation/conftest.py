"""Fixtures with moderators, who use the pages in a browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.live.browser import name_of
from tests.live.moderation import flask


@pytest.fixture
def url(serve):
    """URL of a server of its own, because the page of moderation lists all reports."""
    return serve(WEB_CONCURRENCY="2").url


@pytest.fixture
def sign_up_moderator(fresh_url, sign_up) -> Callable[..., Page]:
    """Return a function that signs up a moderator, and returns a page of their browser."""

    def sign_up_moderator(**options) -> Page:
        page = sign_up(**options)
        flask(fresh_url, "users", "promote", name_of(page))
        page.goto("/settings")  # which tells the browser
        expect(page.locator("html")).to_have_attribute("data-role", "moderator")
        return page

    return sign_up_moderator
