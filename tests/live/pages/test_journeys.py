"""The whole way of a member: by mouse, by keyboard, and with mistakes."""

from threading import Thread
from urllib.parse import urlencode

import pytest
import requests
from playwright.sync_api import Page, expect
from werkzeug.exceptions import NotFound
from werkzeug.middleware.http_proxy import ProxyMiddleware
from werkzeug.serving import make_server

from tests.live.browser import PASSWORD, answer, fill_editor, name_of, sign_in, write

NEW_PASSWORD = "another walk by the sea"
OTHER_SITES = (
    "https://example.com",
    "//example.com",
    "/\\example.com",
    "javascript:alert(1)",
    "x:y",
    "\\\\a",
    "/.//example.com",
    "/x/..//example.com",
    "http://[",
)


def test_the_journey_of_two_members(url, people, sign_up, picture_files):
    ada = sign_up()
    expect(ada).to_have_url(f"{url}/")
    ada.get_by_role("link", name="Write", exact=True).click()
    ada.get_by_label("Title").fill("On engines")
    ada.get_by_label("Text", exact=True).fill("They *weave* algebra.\n\n# And looms")
    ada.get_by_role("button", name="Preview").click()
    expect(ada.locator("[data-preview] h2")).to_have_text("And looms")
    ada.get_by_label("Add images").set_input_files(picture_files)
    ada.get_by_label("Describe loom.png").fill("A loom")
    ada.get_by_role("button", name="Publish").dblclick()
    expect(ada.get_by_role("heading", level=1)).to_have_text("On engines")
    expect(ada.locator("figure img")).to_have_count(2)
    expect(ada.get_by_role("img", name="A loom")).to_be_visible()
    expect(ada.locator("figure img").first).to_have_js_property("naturalWidth", 48)
    author = requests.get(f"{url}/posts?limit=1", timeout=20).json()[0]["author"]
    assert author["username"] == name_of(ada)
    posts = requests.get(f"{url}/posts?author={author['id']}", timeout=20).json()
    assert len(posts) == 1  # the double click wrote one
    post = ada.url

    ada.get_by_role("link", name="Edit").click()
    ada.get_by_label("Title").fill("On engines and looms")
    ada.get_by_role("button", name="Save").click()
    expect(ada.get_by_role("heading", level=1)).to_have_text("On engines and looms")
    answer(ada, "What do you think?")
    ada.get_by_role("button", name="Reply").click()
    ada.get_by_label("Your reply").fill("Nobody?")
    ada.locator(".opened").get_by_role("button", name="Reply").click()
    expect(ada.locator(".level-2")).to_contain_text("Nobody?")

    grace = sign_up()
    grace.goto(post)
    expect(grace.get_by_role("link", name="Edit")).to_be_hidden()
    expect(grace.get_by_role("button", name="Reply")).to_have_count(2)
    expect(grace.get_by_role("button", name="Edit")).to_have_count(0)
    expect(grace.get_by_role("button", name="Delete")).to_have_count(0)
    grace.locator(".level-2").get_by_role("button", name="Reply").click()
    grace.get_by_label("Your reply").fill("I like it.")
    grace.locator(".opened").get_by_role("button", name="Reply").click()
    expect(grace.locator(".level-3")).to_contain_text("I like it.")

    ada.reload()
    ada.on("dialog", lambda dialog: dialog.accept())
    ada.locator(".level-2").get_by_role("button", name="Delete").click()
    expect(ada.locator(".level-2")).to_have_text("deleted")
    expect(ada.locator(".level-3")).to_contain_text("I like it.")


def test_the_settings_of_a_member(url, people, sign_up):
    ada = sign_up()
    write(ada, "On engines", "They weave algebra.")
    ada.on("dialog", lambda dialog: dialog.accept())
    name = name_of(ada)
    other = people.open_page(base_url=url)
    other.goto("/signin?next=/settings")
    sign_in(other, name)
    expect(other).to_have_url(f"{url}/settings")
    expect(other.get_by_label("Username")).to_have_value(name)

    ada.goto("/settings")
    expect(ada.locator("[data-sessions] li")).to_have_count(2)
    ada.locator("[data-sessions]").get_by_role("button", name="End").click()
    expect(ada.locator("[data-sessions] li")).to_have_count(1)
    ada.get_by_label("Display name").fill("Ada Lovelace")
    ada.get_by_label("About you").fill("I write about engines.")
    ada.get_by_role("button", name="Save").click()
    expect(ada.locator("[data-my-name]")).to_have_text("Ada Lovelace")
    check_tokens(url, ada)
    ada.get_by_label("Current password").fill("a wrong password")
    ada.get_by_label("New password").fill(NEW_PASSWORD)
    ada.get_by_role("button", name="Change the password").click()
    expect(ada.locator("#profile-current_password-error")).to_have_text(
        "This is not your current password."
    )
    ada.get_by_label("Current password").fill(PASSWORD)
    ada.get_by_role("button", name="Change the password").click()
    expect(ada.get_by_text("Your password is changed.")).to_be_visible()
    ada.goto(f"/@{name}")
    expect(ada.get_by_text("I write about engines.")).to_be_visible()

    ada.get_by_role("button", name="Sign out").click()
    ada.wait_for_url(f"{url}/")
    expect(ada.get_by_role("link", name="Sign in", exact=True)).to_be_visible()
    ada.get_by_role("link", name="Sign in", exact=True).click()
    sign_in(ada, name, NEW_PASSWORD)
    expect(ada).to_have_url(f"{url}/")
    expect(ada.locator("[data-my-name]")).to_have_text("Ada Lovelace")
    ada.goto("/settings")
    ada.get_by_label("Delete my posts and comments too").check()
    ada.get_by_role("button", name="Delete my account").click()
    expect(ada.get_by_role("link", name="Sign up")).to_be_visible()
    assert requests.get(f"{url}/@{name}", timeout=20).status_code == 404


def check_tokens(url: str, ada: Page) -> None:
    """Create a token in the settings, use it, and delete it."""
    rows = ada.locator("[data-tokens] li")
    for name, scope in (("Backup", "Read only"), ("Bot", "Read and write")):
        ada.get_by_label("Name", exact=True).fill(name)
        ada.get_by_label(scope, exact=True).check()
        ada.get_by_role("button", name="Create a token").click()
        expect(rows.first).to_contain_text(name)
    expect(rows.first).to_contain_text("Bot, may read and write · expires")
    expect(rows.last).to_contain_text("Backup, may read · expires")
    secret = ada.get_by_label("Your new token.").input_value()
    headers = {"Authorization": f"Bearer {secret}"}
    body = {"title": "By a bot", "content": "Beep."}
    for left, status in ((1, 201), (0, 401)):
        sent = requests.post(f"{url}/posts", json=body, headers=headers, timeout=20)
        assert sent.status_code == status
        rows.first.get_by_role("button", name="Delete").click()
        expect(rows).to_have_count(left)


def tab_to(page: Page, name: str, *keys: str) -> None:
    """Press Tab until the element with this text or label has the focus, and then other keys."""
    find = """() => {
      const element = document.activeElement;
      return element.labels?.[0]?.textContent.trim() || element.textContent.trim();
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


@pytest.fixture
def by_keyboard(url, people, new_name):
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


def test_a_member_writes_by_keyboard(by_keyboard, picture_files):
    page = by_keyboard
    page.on("filechooser", lambda chooser: chooser.set_files(picture_files))
    tab_to(page, "Write", "Enter")
    page.wait_for_url("**/write")
    type_into(page, "Title", "On engines")
    type_into(page, "Text", "They *weave* algebra.")
    tab_to(page, "Add images", "Enter")
    expect(page.locator("[data-images] > li")).to_have_count(2)
    type_into(page, "Describe loom.png", "A loom")
    tab_to(page, "Remove mill.png", "Enter")
    expect(page.get_by_label("Add images")).to_be_focused()
    tab_to(page, "Preview", "Enter")
    expect(page.locator("[data-preview] em")).to_have_text("weave")
    expect(page.get_by_role("region", name="Preview")).to_be_focused()
    tab_to(page, "Publish", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("On engines")
    expect(page.get_by_role("img", name="A loom")).to_be_visible()
    tab_to(page, "Edit", "Enter")
    page.wait_for_url("**/edit")
    type_into(page, "Title", "On looms")
    tab_to(page, "Save", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("On looms")

    type_into(page, "Your comment", "And cloth?")
    tab_to(page, "Comment", "Enter")
    expect(page.locator(".thread")).to_contain_text("And cloth?")
    tab_to(page, "Reply", "Enter")
    tab_to(page, "Cancel", "Enter")
    expect(page.get_by_role("button", name="Reply")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("Cloth too.")
    tab_to(page, "Reply", "Enter")
    expect(page.locator(".level-2")).to_contain_text("Cloth too.")
    tab_to(page, "Sign out")
    tab_to(page, "Reply")
    tab_to(page, "Edit", "Enter")
    expect(page.get_by_label("Edit your comment")).to_have_value("And cloth?")
    page.keyboard.press("Control+A")
    page.keyboard.type("And linen?")
    tab_to(page, "Save", "Enter")
    expect(page.locator(".level-1")).to_contain_text("And linen?")
    tab_to(page, "Sign out")
    tab_to(page, "Reply")
    tab_to(page, "Delete", "Enter")
    expect(page.locator(".level-1")).to_have_text("deleted")


def test_a_member_changes_the_account_by_keyboard(url, by_keyboard, new_name):
    page = by_keyboard
    other = requests.Session()
    other.post(f"{url}/signin", json={"username": new_name, "password": PASSWORD}, timeout=20)
    tab_to(page, new_name, "Enter")
    page.wait_for_url("**/settings")
    expect(page.locator("[data-sessions] li")).to_have_count(2)
    tab_to(page, "End", "Enter")
    expect(page.locator("[data-sessions]")).to_be_focused()
    assert other.get(f"{url}/users/me", timeout=20).status_code == 401
    type_into(page, "Current password", PASSWORD)
    type_into(page, "New password", NEW_PASSWORD, "Enter")
    expect(page.get_by_text("Your password is changed.")).to_be_visible()
    tab_to(page, "Sign out", "Enter")
    page.wait_for_url(f"{url}/")

    tab_to(page, "Sign in", "Enter")
    page.wait_for_url("**/signin")
    type_into(page, "Username", new_name)
    type_into(page, "Password", NEW_PASSWORD, "Enter")
    page.wait_for_url(f"{url}/")
    tab_to(page, new_name, "Enter")
    page.wait_for_url("**/settings")
    tab_to(page, "Keep my posts and comments, without my name")
    page.keyboard.press("ArrowDown")
    tab_to(page, "Delete my account", "Enter")
    expect(page.get_by_role("link", name="Sign up")).to_be_visible()
    assert requests.get(f"{url}/@{new_name}", timeout=20).status_code == 404


def test_errors_stand_beside_their_fields(url, people):
    page = people.open_page(base_url=url)
    page.goto("/signup")
    page.locator("form").evaluate("form => { form.noValidate = true; }")
    page.get_by_label("Username").fill("a b")
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Sign up").click()
    expect(page.locator("#sign-up-username-error")).to_contain_text("Must be 3 to 32 characters")
    expect(page.locator("#sign-up-password-error")).to_have_text("Must have at least 8 characters.")
    expect(page.get_by_label("Username")).to_be_focused()
    expect(page.get_by_label("Username")).to_have_attribute("aria-invalid", "true")


def test_sign_in_leads_to_no_other_site(url, people, sign_up):
    name = name_of(sign_up())
    page = people.open_page(base_url=url)
    for target in OTHER_SITES:
        page.goto(f"/signin?{urlencode({'next': target})}")
        sign_in(page, name)
        page.wait_for_url(lambda current: "/signin" not in current)
        assert page.url.startswith(f"{url}/"), target


def test_a_name_is_written_into_the_page_as_text(sign_up):
    page = sign_up()
    name = "<img src=x onerror=alert(1)>"
    page.goto("/settings")
    page.get_by_label("Display name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-my-name]")).to_have_text(name)
    page.goto("/")
    expect(page.locator("[data-my-name]")).to_have_text(name)


def test_sign_out_deletes_what_the_browser_stores(url, sign_up):
    page = sign_up()
    fill_editor(page, "On engines", "They weave algebra.")
    stored = page.evaluate("JSON.stringify(localStorage)")
    assert "They weave algebra." in stored
    assert PASSWORD not in stored
    assert page.context.cookies()[0]["value"] not in stored
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{url}/")
    assert page.evaluate("localStorage.length") == 0


def test_a_visitor_finds_a_post_and_what_is_active(url, people, sign_up):
    ada = sign_up()
    word = f"weave{name_of(ada).replace('-', '')}"
    write(ada, "On looms", f"They {word} cloth.")
    found = ada.url
    write(ada, "On engines")
    visitor = people.open_page()
    visitor.goto(f"{url}/")
    visitor.get_by_label("Words to search for").fill(f"{word[:-1]}* LOOMS")
    visitor.keyboard.press("Enter")
    expect(visitor.locator("mark")).to_have_text(["looms", word])
    visitor.get_by_role("link", name="On looms").click()
    expect(visitor).to_have_url(found)
    ada.goto(found)
    answer(ada, "And what of rain?")
    visitor.goto(f"{url}/")
    visitor.get_by_role("link", name="Active").click()
    expect(visitor.get_by_role("heading", level=2).first).to_have_text("On looms")
    expect(visitor.get_by_role("link", name="Active")).to_have_attribute("aria-current", "true")


@pytest.fixture
def prefixed_url(serve):
    """URL of a community below a path of its host, by a proxy that removes the path."""
    target = {
        "target": serve(POSTING_PROXY_HOPS="1").url,
        "remove_prefix": True,
        "host": None,  # that of the client
        "headers": {"X-Forwarded-Prefix": "/community"},
    }
    proxy = ProxyMiddleware(NotFound(), {"/community/": target})
    server = make_server("127.0.0.1", 0, proxy, threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}/community"
    server.shutdown()
    server.server_close()


def test_a_community_below_a_path_of_its_host(prefixed_url, people, new_name):
    page = people.open_page()
    page.goto(f"{prefixed_url}/")
    page.get_by_role("link", name="Sign up").click()
    page.get_by_label("Username").fill(new_name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    page.wait_for_url(f"{prefixed_url}/")
    page.get_by_role("link", name="Write", exact=True).click()
    page.get_by_label("Title").fill("On engines")
    page.get_by_label("Text", exact=True).fill("They weave algebra.")
    page.get_by_role("button", name="Publish").click()
    page.wait_for_url(f"{prefixed_url}/p/*")
    answer(page, "And cloth?")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Title").fill("On looms")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("On looms")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{prefixed_url}/")
