"""The docs page in a real browser, with its "Try it out" forms."""

import json

import requests
from playwright.sync_api import Page, expect

from tests.helpers import pictures

# The page processes input with a delay. A timer of its own ends after it, however slow the page is.
WAIT = "() => new Promise((done) => setTimeout(done, 500))"
# The groups of operations, which are closed at first.
GROUPS = {
    "sign_up": "auth",
    "sign_in": "auth",
    "get_me": "users",
    "create_post": "posts",
    "create_image": "images",
    "get_image": "images",
}
ADA = {"username": "ada", "password": "a long walk by the sea"}


def try_out(page: Page, operation: str, *, id="", body=None, file=None):
    """Execute an operation; return the status that the page shows, and the section."""
    section = page.locator(f"[id$='-{operation}']")
    if section.count() == 0:
        page.locator(f"#operations-tag-{GROUPS[operation]} button.expand-operation").click()
    section.locator(".opblock-summary-control").click()
    section.get_by_role("button", name="Try it out").click()
    if id:
        section.locator("tr[data-param-name=id] input").fill(id)
    if body:
        section.locator("textarea.body-param__text").fill(json.dumps(body))
    if file:
        section.locator("input[type=file]").set_input_files(file)
    page.evaluate(WAIT)
    section.get_by_role("button", name="Execute").click()
    status = section.locator(".live-responses-table tbody td.response-col_status").first
    return status.inner_text()[:3], section


def test_sign_up_sign_in_post_and_upload_on_the_docs_page(serve, people):
    url = serve().url
    page = people.open_page(viewport={"width": 1200, "height": 2400})
    page.goto(f"{url}/docs")

    assert try_out(page, "sign_up", body=ADA)[0] == "201"
    assert try_out(page, "sign_in", body=ADA)[0] == "200"
    status, section = try_out(page, "get_me")
    assert status == "200"
    expect(section.locator(".live-responses-table")).to_contain_text('"username": "ada"')
    status, section = try_out(page, "create_post", body={"title": "Hello", "content": "World"})
    assert status == "201"
    expect(section.locator(".live-responses-table")).to_contain_text('"title": "Hello"')

    [post] = requests.get(f"{url}/posts", timeout=20).json()
    file = {"name": "image", "mimeType": "image/png", "buffer": pictures.png()}
    assert try_out(page, "create_image", id=post["id"], file=file)[0] == "201"
    [image] = requests.get(f"{url}/posts/{post['id']}", timeout=20).json()["images"]
    assert (image["width"], image["height"]) == (48, 32)
    status, section = try_out(page, "get_image", id=image["id"])
    assert status == "200"
    shown = section.locator(".live-responses-table img")
    expect(shown).to_be_visible()
    expect(shown).to_have_js_property("naturalWidth", 48)
