"""The whole way of a member: by mouse, by keyboard, and with mistakes."""

import re
from threading import Thread
from urllib.parse import urlencode

import pytest
import requests
from playwright.sync_api import Page, expect
from werkzeug.exceptions import NotFound
from werkzeug.middleware.http_proxy import ProxyMiddleware
from werkzeug.serving import make_server

from tests.live.browser import (
    PASSWORD,
    answer,
    expect_post,
    fill_editor,
    name_of,
    open_menu,
    open_tab,
    press_rare,
    sign_in,
    sign_out,
    tab_to,
    type_into,
    write,
)

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
    ada.get_by_role("link", name="Reply").click()
    ada.get_by_label("Your reply").fill("Nobody?")
    ada.locator(".opened").get_by_role("button", name="Reply").click()
    expect(ada.locator(".level-2")).to_contain_text("Nobody?")

    grace = sign_up()
    grace.goto(post)
    expect(grace.get_by_role("link", name="Edit")).to_be_hidden()
    expect(grace.get_by_role("link", name="Reply")).to_have_count(2)
    expect(grace.locator(".thread [data-action=report]")).to_have_count(2)
    expect(grace.locator(".thread [data-action=edit]")).to_have_count(0)
    expect(grace.locator(".thread [data-action=delete-comment]")).to_have_count(0)
    grace.locator(".level-2").get_by_role("link", name="Reply").click()
    grace.get_by_label("Your reply").fill("I like it.")
    grace.locator(".opened").get_by_role("button", name="Reply").click()
    expect(grace.locator(".level-3")).to_contain_text("I like it.")

    ada.reload()
    ada.on("dialog", lambda dialog: dialog.accept())
    press_rare(ada.locator(".level-2"), "Delete")
    expect(ada.locator(".level-2")).to_contain_text("This comment was deleted.")
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
    expect(other.get_by_label("Username", exact=True)).to_have_value(name)

    ada.goto("/settings#security")
    expect(ada.locator("[data-sessions] li")).to_have_count(2)
    ada.locator("[data-sessions]").get_by_role("button", name="End").click()
    expect(ada.locator("[data-sessions] li")).to_have_count(1)
    open_tab(ada, "Profile")
    ada.get_by_label("Display name").fill("Ada Lovelace")
    ada.get_by_label("About you").fill("I write about engines.")
    ada.get_by_role("button", name="Save").click()
    expect(ada.locator(".menu summary")).to_have_text("Ada Lovelace")
    open_tab(ada, "Programs")
    check_tokens(url, ada)
    open_tab(ada, "Security")
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

    sign_out(ada)
    ada.wait_for_url(f"{url}/")
    expect(ada.get_by_role("link", name="Sign in", exact=True)).to_be_visible()
    ada.get_by_role("link", name="Sign in", exact=True).click()
    sign_in(ada, name, NEW_PASSWORD)
    expect(ada).to_have_url(f"{url}/")
    expect(ada.locator(".menu summary")).to_have_text("Ada Lovelace")
    ada.goto("/settings#account")
    ada.get_by_label("Delete my posts and comments too").check()
    ada.get_by_role("button", name="Delete my account").click()
    expect(ada.locator("#delete-username-error")).to_have_text("Type your username, to be sure.")
    ada.get_by_label("Your username, to be sure").fill(name.upper())
    ada.get_by_role("button", name="Delete my account").click()
    expect(ada.get_by_role("heading", level=1)).to_have_text("Your account is deleted")
    expect(ada.get_by_text("Your posts and comments are deleted as well.")).to_be_visible()
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
    expect(rows.first).to_contain_text("May read and write · expires")
    expect(rows.last).to_contain_text("May read · expires")
    secret = ada.get_by_label("Your new token.").input_value()
    ada.get_by_label("Name", exact=True).fill("Reader")
    ada.get_by_label("Read feeds, in a feed reader").check()
    ada.get_by_role("button", name="Create a token").click()
    expect(rows.first).to_contain_text("For a feed reader · expires")
    address = ada.get_by_label("The address of your feed.").input_value()
    assert address.startswith(f"{url}/feeds/posting_")
    assert requests.get(address, timeout=20).status_code == 200
    rows.first.get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(2)
    assert requests.get(address, timeout=20).status_code == 401
    headers = {"Authorization": f"Bearer {secret}"}
    body = {"title": "By a bot", "content": "Beep."}
    for left, status in ((1, 201), (0, 401)):
        sent = requests.post(f"{url}/posts", json=body, headers=headers, timeout=20)
        assert sent.status_code == status
        rows.first.get_by_role("button", name="Delete").click()
        expect(rows).to_have_count(left)


def test_a_member_writes_by_keyboard(by_keyboard, picture_files):
    page = by_keyboard
    page.on("filechooser", lambda chooser: chooser.set_files(picture_files))
    tab_to(page, "Write", "Enter")
    page.wait_for_url("**/write")
    type_into(page, "Title", "On engines", "Enter")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.type("They ")
    page.keyboard.press("Control+I")
    page.keyboard.type("weave")
    page.keyboard.press("End")
    page.keyboard.type(" algebra.")
    page.keyboard.press("Shift+Tab")  # to the bar over the text
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("button", name="Image", exact=True)).to_be_focused()
    for name in ("Quote", "List"):
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("button", name=name, exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Text", exact=True)).to_have_value("- They *weave* algebra.")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    tab_to(page, "Add images", "Enter")
    expect(page.locator("[data-images] > li")).to_have_count(2)
    type_into(page, "Describe loom.png for those who cannot see it", "A loom")
    tab_to(page, "Remove mill.png", "Enter")
    expect(page.get_by_label("Add images")).to_be_focused()
    tab_to(page, "Preview", "Enter")
    expect(page.locator("[data-preview] li em")).to_have_text("weave")
    expect(page.get_by_role("region", name="Preview")).to_be_focused()
    tab_to(page, "Publish", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("On engines")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_role("img", name="A loom")).to_be_visible()
    tab_to(page, "Edit", "Enter")
    page.wait_for_url("**/edit")
    type_into(page, "Title", "On looms")
    tab_to(page, "Save", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("On looms")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    tab_to(page, "Delete images", "Enter")
    tab_to(page, "Delete image 1", "Enter")
    expect(page.get_by_role("status")).to_have_text("The image is deleted.")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_a_member_comments_by_keyboard(by_keyboard):
    page = by_keyboard
    write(page)
    type_into(page, "Your comment", "And cloth?", "Control+Enter")
    expect(page.locator(".thread")).to_contain_text("And cloth?")
    expect(page.locator(".level-1")).to_be_focused()
    tab_to(page, "Reply", "Enter")
    tab_to(page, "Cancel", "Enter")
    expect(page.get_by_role("link", name="Reply")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("Cloth too.")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Your text is kept.")).to_be_visible()
    expect(page.get_by_role("link", name="Reply")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your reply")).to_have_value("Cloth too.")
    expect(page.get_by_label("Your reply")).to_be_focused()
    tab_to(page, "Reply", "Enter")
    expect(page.locator(".level-2")).to_contain_text("Cloth too.")
    expect(page.locator(".level-2")).to_be_focused()
    page.get_by_role("link", name="Reply").first.focus()
    tab_to(page, "Fold", "Enter")
    expect(page.locator(".level-2")).to_be_hidden()
    expect(page.get_by_role("button", name="Show 1 reply")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".level-2")).to_be_visible()
    page.get_by_role("link", name="Reply").first.focus()
    tab_to(page, "More actions", "Enter")
    tab_to(page, "Edit", "Enter")
    expect(page.get_by_label("Edit your comment")).to_have_value("And cloth?")
    page.keyboard.press("Control+A")
    page.keyboard.type("And linen?")
    tab_to(page, "Save", "Enter")
    expect(page.locator(".level-1")).to_contain_text("And linen?")
    expect(page.locator(".level-1")).to_be_focused()
    tab_to(page, "More actions", "Enter")
    tab_to(page, "Delete", "Enter")
    expect(page.locator(".level-1")).to_contain_text("This comment was deleted.")
    expect(page.locator(".level-1")).to_be_focused()


def test_a_member_finds_unsent_texts_by_keyboard(url, by_keyboard, new_name):
    page = by_keyboard
    tab_to(page, "Write", "Enter")
    page.wait_for_url("**/write")
    type_into(page, "Title", "On engines")
    tab_to(page, new_name, "Enter")
    page.keyboard.press("Escape")
    expect(page.locator(".menu summary")).to_be_focused()
    expect(page.locator(".menu ul")).to_be_hidden()
    page.keyboard.press("Enter")
    tab_to(page, "Unsent texts", "Enter")
    page.wait_for_url("**/unsent")
    tab_to(page, "Discard", "Enter")
    expect(page.get_by_text("There are none.")).to_be_visible()
    expect(page.locator("[data-unsent]")).to_be_focused()
    tab_to(page, "Undo", "Enter")
    page.locator("[data-unsent]").focus()
    tab_to(page, "On engines", "Enter")
    page.wait_for_url("**/write?draft=*")
    expect(page.get_by_label("Title")).to_have_value("On engines")


def test_a_member_changes_the_account_by_keyboard(url, by_keyboard, new_name):
    page = by_keyboard
    other = requests.Session()
    other.post(f"{url}/signin", json={"username": new_name, "password": PASSWORD}, timeout=20)
    tab_to(page, new_name, "Enter")
    tab_to(page, "Settings", "Enter")
    page.wait_for_url("**/settings")
    tab_to(page, "Security", "Enter")
    expect(page.locator("[data-sessions] li")).to_have_count(2)
    tab_to(page, "End", "Enter")
    expect(page.locator("[data-sessions]")).to_be_focused()
    assert other.get(f"{url}/users/me", timeout=20).status_code == 401
    type_into(page, "Current password", PASSWORD)
    type_into(page, "New password", NEW_PASSWORD, "Enter")
    expect(page.get_by_text("Your password is changed.")).to_be_visible()
    tab_to(page, new_name, "Enter")
    tab_to(page, "Sign out", "Enter")
    page.wait_for_url(f"{url}/")

    tab_to(page, "Sign in", "Enter")
    page.wait_for_url("**/signin")
    type_into(page, "Username", new_name)
    type_into(page, "Password", NEW_PASSWORD)
    tab_to(page, "Show the password", "Enter")
    expect(page.get_by_label("Password", exact=True)).to_have_attribute("type", "text")
    tab_to(page, "Sign in", "Enter")
    page.wait_for_url(f"{url}/")
    tab_to(page, new_name, "Enter")
    tab_to(page, "Settings", "Enter")
    page.wait_for_url("**/settings")
    tab_to(page, "Account", "Enter")
    tab_to(page, "Keep my posts and comments, without my name")
    page.keyboard.press("ArrowDown")
    type_into(page, "Your username, to be sure", new_name)
    tab_to(page, "Delete my account", "Enter")
    expect(page.get_by_role("link", name="Sign up")).to_be_visible()
    assert requests.get(f"{url}/@{new_name}", timeout=20).status_code == 404


def test_a_member_writes_by_touch(by_touch, picture_files):
    page = by_touch
    page.get_by_role("link", name="Write", exact=True).tap()
    page.get_by_label("Title").fill("On looms")
    page.get_by_label("Text", exact=True).fill("| A | B |\n|---|---|\n| 1 | 2 |")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Image", exact=True).tap()
    chooser.value.set_files(picture_files[0])
    page.get_by_label("Describe loom.png").fill("A loom")
    # Once the image is in the text.
    expect(page.get_by_label("Text", exact=True)).to_have_value(re.compile(r"!\[.*\]\(/images/"))
    page.get_by_role("button", name="Preview").tap()
    expect(page.locator("[data-preview] img")).to_have_js_property("naturalWidth", 48)
    page.get_by_role("button", name="Publish").tap()
    expect_post(page, "On looms")
    expect(page.get_by_role("status")).to_have_text("Your post is published.")
    expect(page.get_by_role("img", name="A loom")).to_be_visible()
    expect(page.get_by_role("group", name="Table")).to_be_visible()
    page.locator(".menu summary").tap()
    page.get_by_role("link", name="My page").tap()
    expect(page.get_by_role("heading", level=2)).to_have_text("On looms")
    page.locator(".posts article").tap()  # a post is pressed anywhere
    expect_post(page, "On looms")


def test_a_member_comments_by_touch(by_touch):
    page = by_touch
    write(page, "On looms")
    page.get_by_label("Your comment").fill("And cloth?")
    page.get_by_role("button", name="Bold").tap()
    page.get_by_role("button", name="Comment", exact=True).tap()
    comment = page.locator(".level-1")
    expect(comment).to_be_focused()
    expect(comment).to_be_in_viewport()
    comment.get_by_role("link", name="Reply").tap()
    page.get_by_label("Your reply").fill("Cloth too.")
    page.get_by_role("button", name="Cancel").tap()
    page.get_by_role("status").get_by_role("link", name="Unsent texts").tap()
    page.get_by_role("link", name="Reply below On looms").tap()
    expect(page.get_by_label("Your reply")).to_have_value("Cloth too.")
    page.locator(".opened").get_by_role("button", name="Reply").tap()
    expect(page.locator(".level-2")).to_be_focused()
    comment.get_by_role("button", name="Fold").tap()
    expect(page.locator(".level-2")).to_be_hidden()
    comment.get_by_role("button", name="Show 1 reply").tap()
    expect(page.locator(".level-2")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    press_rare(page.locator(".level-2"), "Delete")
    expect(page.locator(".level-2")).to_have_count(0)


def test_a_member_leaves_by_touch(by_touch, new_name):
    page = by_touch
    page.get_by_role("link", name="Write", exact=True).tap()
    page.get_by_label("Title").fill("Unfinished")
    questions = []

    def answer_them(dialog):
        questions.append(dialog.message)
        dialog.dismiss() if len(questions) == 1 else dialog.accept()

    page.on("dialog", answer_them)
    page.locator(".menu summary").tap()
    with page.expect_event("dialog"):
        page.get_by_role("button", name="Sign out").tap()
    expect(page.get_by_label("Title")).to_have_value("Unfinished")
    open_menu(page)
    page.get_by_role("link", name="Settings").tap()
    open_tab(page, "Account")
    page.get_by_label("Delete my posts and comments too").tap()
    page.get_by_label("Your username, to be sure").fill(new_name)
    page.get_by_role("button", name="Delete my account").tap()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account is deleted")
    assert questions == [
        "Sign out and delete your 1 unsent text?",
        "Delete your account and your 1 unsent text?",
    ]
    page.get_by_role("link", name="To the front page").tap()
    expect(page.get_by_role("link", name="Sign up")).to_be_visible()


def test_errors_stand_beside_their_fields(url, people):
    page = people.open_page(base_url=url)
    page.goto("/signup")
    page.get_by_label("Username").fill("a b")
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Sign up").click()
    expect(page.locator("#sign-up-username-error")).to_contain_text("A username has 3 to 32 ")
    expect(page.locator("#sign-up-password-error")).to_have_text("Use at least 8 characters.")
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
        page.goto(f"/signin?{urlencode({'next': target})}")
        page.get_by_role("link", name="Go on").click()
        page.wait_for_url(lambda current: "/signin" not in current)
        assert page.url.startswith(f"{url}/"), target
        page.context.clear_cookies()
        page.evaluate("localStorage.clear()")


def test_a_name_is_written_into_the_page_as_text(sign_up):
    page = sign_up()
    name = "<img src=x onerror=alert(1)>"
    page.goto("/settings")
    page.get_by_label("Display name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".menu summary")).to_have_text(name)
    page.goto("/")
    expect(page.locator(".menu summary")).to_have_text(name)


def test_sign_out_deletes_what_the_browser_stores(url, sign_up):
    page = sign_up()
    write(page)
    page.wait_for_load_state("networkidle")
    fill_editor(page, "On engines", "They weave algebra.")
    stored = page.evaluate("JSON.stringify(localStorage)")
    assert "They weave algebra." in stored
    assert PASSWORD not in stored
    assert page.context.cookies()[0]["value"] not in stored
    page.on("dialog", lambda dialog: dialog.accept())
    sign_out(page)
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
    visitor.get_by_label("Search", exact=True).fill(f"{word[:-1]}* LOOMS")
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
    sign_out(page)
    page.wait_for_url(f"{prefixed_url}/")
