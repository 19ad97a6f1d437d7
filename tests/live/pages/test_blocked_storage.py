"""Browsers that block cookies, or have no room to store a text."""

from playwright.sync_api import expect

from tests.live.browser import TITLE, sign_in


def test_a_browser_that_stores_nothing(people, url):
    page = people.open_page(base_url=url)
    refuse = "Storage.prototype.setItem = () => { throw new DOMException('no'); }"
    page.add_init_script(refuse)
    for path in ("/signin", "/signup"):
        page.goto(path)
        expect(page.get_by_text("Your browser blocks cookies or stores nothing")).to_be_visible()
        expect(page.get_by_label("Username")).to_be_hidden()


def test_a_browser_that_blocks_cookies(chromium_with, url):
    """Chromium then also throws at each use of the storage."""
    page = chromium_with({"profile": {"default_content_setting_values": {"cookies": 2}}})
    for path in ("/signin", "/signup"):
        page.goto(url + path)
        expect(page.get_by_text("Your browser blocks cookies or stores nothing")).to_be_visible()
        expect(page.get_by_label("Username")).to_be_hidden()


def test_a_browser_that_drops_the_cookie_of_the_session(people, url, sign_up):
    user = {"id": "x" * 21, "username": "ada", "display_name": None, "role": "member"}
    page = people.open_page(base_url=url)

    def answer_without_a_cookie(route):
        if route.request.method == "POST":
            route.fulfill(json=user)
        else:
            route.continue_()

    page.route("**/signin", answer_without_a_cookie)
    page.goto("/signin")
    sign_in(page, "ada")
    problem = page.locator("form .problem")
    expect(problem).to_contain_text("Your browser blocks cookies or stores nothing")
    expect(page.get_by_role("link", name="Sign in", exact=True)).to_be_visible()


def test_a_browser_without_room_for_a_text(sign_up):
    page = sign_up()
    page.goto("/write")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error(); }; }")
    page.get_by_label("Title").fill(TITLE)
    expect(page.get_by_role("status")).to_contain_text("Your browser has no room")
