"""Scripts that load late or not at all."""

import re

import pytest
from playwright.sync_api import expect

from tests.live.browser import PASSWORD, name_of, sign_in


@pytest.mark.parametrize("module", ["main", "signing", "words"])
def test_a_script_that_does_not_load(people, url, module):
    page = people.open_page(base_url=url)
    page.route(f"**/{module}.js", lambda route: route.abort())
    page.goto("/signin")
    notice = page.get_by_text("This form is not ready, because a part of the page has not loaded.")
    expect(notice).to_be_visible()
    page.unroute(f"**/{module}.js")
    notice.get_by_role("link", name="Load the page again").click()
    expect(page.locator("main form")).not_to_have_attribute("inert", "")
    expect(notice).to_be_hidden()


@pytest.mark.parametrize("path", ["/signin", "/write"])
def test_a_script_that_loads_late(people, url, sign_up, path):
    name = name_of(sign_up())
    page = people.open_page(base_url=url)
    # The page waits for `mark.js` as for the style sheet: nothing else may keep it blank.
    modules = re.compile(r"/static/[\w-]+/(?!mark\.js)[\w-]+\.js")
    page.route(modules, lambda _route: None)
    page.goto(path, wait_until="commit")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for _ in range(200):
        if page.evaluate("performance.getEntriesByType('paint').length"):
            break
        page.wait_for_timeout(50)
    else:
        pytest.fail("The page stays blank.")
    expect(page.get_by_role("link", name="Sign in", exact=True).first).to_be_visible()
    expect(page.locator("main form")).to_have_attribute("inert", "")  # no text can be lost in it
    page.unroute(modules)  # which lets the requests go on
    expect(page.locator("main form")).not_to_have_attribute("inert", "")
    if path == "/signin":
        sign_in(page, name, PASSWORD)
        expect(page.locator(".menu")).to_contain_text(name)
