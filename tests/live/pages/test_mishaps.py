"""Closed tabs, ended sessions and lost connections: no text is lost or published twice."""

import pytest
import requests
from playwright.sync_api import expect

from tests.live.browser import (
    PASSWORD,
    answer,
    expect_post,
    fill_editor,
    name_of,
    publish,
    sign_in,
    write,
)

TITLE, TEXT = "On engines", "They weave algebra."
KEPT = "Sign in; what you wrote is kept."


def test_a_closed_tab_and_the_end_of_the_session(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    context = page.context
    page.close()
    page = context.new_page()
    page.goto("/write")
    expect(page.get_by_label("Title")).to_have_value(TITLE)
    expect(page.get_by_text("Your unsent text is back.")).to_be_visible()
    name = name_of(page)
    context.clear_cookies()
    publish(page)
    page.get_by_role("link", name=KEPT).click()
    sign_in(page, name)
    page.wait_for_url("**/write")
    expect(page.get_by_label("Text", exact=True)).to_have_value(TEXT)
    publish(page)
    expect_post(page)
    page.goto("/write")
    expect(page.get_by_label("Title")).to_have_value("")


def test_a_published_text_does_not_come_back(sign_up):
    page = sign_up()
    write(page)
    page.go_back()
    expect(page.get_by_label("Title")).to_have_value("")


def test_a_reply_and_a_profile_survive_the_end_of_the_session(sign_up):
    page = sign_up()
    name = name_of(page)
    write(page)
    answer(page, "And cloth?")
    page.get_by_role("button", name="Reply").click()
    page.get_by_label("Your reply").fill("Cloth too.")
    page.context.clear_cookies()
    page.locator(".opened").get_by_role("button", name="Reply").click()
    page.get_by_role("link", name=KEPT).click()
    sign_in(page, name)
    expect(page.get_by_label("Your reply")).to_have_value("Cloth too.")
    page.locator(".opened").get_by_role("button", name="Reply").click()
    expect(page.locator(".level-2")).to_contain_text("Cloth too.")

    page.goto("/settings")
    page.get_by_label("About you").fill("I write about engines.")
    page.context.clear_cookies()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name=KEPT).click()
    sign_in(page, name)
    expect(page.get_by_label("About you")).to_have_value("I write about engines.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()


@pytest.mark.parametrize("is_first", [True, False])
def test_a_profile_survives_when_something_else_notices_the_end_of_the_session(sign_up, is_first):
    page = sign_up()
    held = []

    def hold(route):
        held.append(route)

    page.route("**/sessions", hold)
    page.goto("/settings")
    page.get_by_label("About you").fill("I write about engines.")
    while not held:
        page.wait_for_timeout(20)

    def notice():
        with page.expect_response("**/sessions"):
            held[0].fulfill(status=401, json={"code": "not_signed_in"})
        page.wait_for_timeout(50)

    page.context.clear_cookies()
    if is_first:
        notice()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name=KEPT)).to_be_visible()
    if not is_first:
        notice()
        expect(page.get_by_role("link", name=KEPT)).to_be_visible()


def test_another_member_in_a_second_tab(url, sign_up):
    page, grace = sign_up(), name_of(sign_up())
    page.goto("/settings")
    expect(page.get_by_label("Username")).to_have_value(name_of(page))
    second = page.context.new_page()
    second.goto("/")
    with second.expect_event("load"):
        second.get_by_role("button", name="Sign out").click()
    second.goto("/signin")
    sign_in(second, grace)
    second.wait_for_url(f"{url}/")
    expect(page.get_by_label("Username")).to_have_value(grace)


def test_drafts_of_two_members_are_apart(url, sign_up):
    page, grace = sign_up(), name_of(sign_up())
    ada = name_of(page)
    fill_editor(page, TITLE, TEXT)
    page.context.clear_cookies()
    publish(page)
    expect(page.get_by_role("link", name=KEPT)).to_be_visible()
    for name, title in ((grace, ""), (ada, TITLE)):
        page.goto("/signin")
        sign_in(page, name)
        page.wait_for_url(f"{url}/")
        page.goto("/write")
        expect(page.get_by_label("Title")).to_have_value(title)
        page.context.clear_cookies()


def test_a_browser_that_stores_nothing(people, url, sign_up):
    name = name_of(sign_up())
    page = people.open_page(base_url=url)
    refuse = "Storage.prototype.setItem = () => { throw new DOMException('no'); }"
    page.add_init_script(refuse)
    page.goto("/signin")
    sign_in(page, name)
    expect(page.get_by_text("your browser stores nothing for this site")).to_be_visible()


def test_an_unsent_text_can_be_discarded(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    page.reload()
    page.get_by_role("button", name="Discard it").click()
    expect(page.get_by_label("Title")).to_have_value("")
    page.reload()
    expect(page.get_by_label("Title")).to_have_value("")
    expect(page.get_by_text("Your unsent text is back.")).to_have_count(0)


def test_a_session_that_ends_between_preview_and_sending(sign_up):
    page = sign_up()
    name = name_of(page)
    fill_editor(page, TITLE, TEXT)
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("[data-preview]")).to_contain_text(TEXT)
    page.context.clear_cookies()
    publish(page)
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    expect(page.get_by_label("Title")).to_have_value(TITLE)
    page.get_by_role("link", name=KEPT).click()
    sign_in(page, name)
    page.wait_for_url("**/write")
    publish(page)
    expect_post(page)


def test_a_second_tab_that_signs_out(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    second = page.context.new_page()
    second.goto("/")
    second.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_label("Title")).to_be_visible()
    publish(page)
    expect(page.get_by_role("link", name=KEPT)).to_be_visible()


def test_an_edit_by_somebody_else(sign_up):
    page = sign_up()
    write(page)
    page.get_by_role("link", name="Edit").click()
    second = page.context.new_page()
    second.goto(page.url)
    second.get_by_label("Title").fill("On looms")
    second.get_by_role("button", name="Save").click()
    expect_post(second, "On looms")
    page.get_by_label("Title").fill("On mills")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("It has been changed since you opened it.")).to_be_visible()
    expect(page.get_by_label("Title")).to_have_value("On mills")
    with page.context.expect_page() as current:
        page.get_by_role("link", name="See what is there now").click()
    expect_post(current.value, "On looms")
    page.get_by_role("button", name="Save").click()
    expect_post(page, "On mills")


def test_an_edit_of_what_is_not_theirs(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(f"{ada.url}/edit")
    grace.get_by_label("Title").fill("On looms")
    grace.get_by_role("button", name="Save").click()
    expect(grace.get_by_text("Only the author of a post may edit it.")).to_be_visible()


def test_a_double_click(url, sign_up):
    page = sign_up()
    write(page)
    page.get_by_label("Your comment").fill("And cloth?")
    page.get_by_role("button", name="Comment").dblclick()
    expect(page.locator(".thread")).to_contain_text("And cloth?")
    post = page.url.rpartition("/")[2].partition("#")[0]
    assert len(requests.get(f"{url}/posts/{post}/comments", timeout=20).json()) == 1


def test_what_is_typed_while_a_text_is_sent(sign_up):
    page = sign_up()
    write(page)
    held = []

    def hold(route):
        held.append(route)

    page.route("**/comments", hold)
    page.get_by_label("Your comment").fill("And cloth?")
    page.get_by_role("button", name="Comment").click()
    expect(page.get_by_label("Your comment")).not_to_be_editable()
    while not held:  # the script locks the field before it sends
        page.wait_for_timeout(20)
    held[0].abort()
    expect(page.get_by_text("There is no connection.")).to_be_visible()
    expect(page.get_by_label("Your comment")).to_be_editable()
    expect(page.get_by_label("Your comment")).to_have_value("And cloth?")


def test_a_draft_after_sign_in_in_another_tab(url, sign_up):
    page = sign_up()
    name = name_of(page)
    fill_editor(page, TITLE, TEXT)
    page.context.clear_cookies()
    publish(page)
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    page.goto("/write")
    expect(page.get_by_role("link", name="Sign in to write.")).to_be_visible()
    other = page.context.new_page()
    other.goto("/signin")
    sign_in(other, name)
    other.wait_for_url(f"{url}/")
    expect(page.get_by_label("Title")).to_have_value(TITLE)


def test_a_dropped_connection(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    page.context.set_offline(True)
    publish(page)
    expect(page.get_by_text("There is no connection.")).to_be_visible()
    page.context.set_offline(False)
    publish(page)
    expect_post(page)


def test_a_post_that_is_deleted_while_somebody_answers_it(url, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    grace.get_by_label("Your comment").fill("And cloth?")
    ada.on("dialog", lambda dialog: dialog.accept())
    ada.get_by_role("button", name="Delete").click()
    ada.wait_for_url(f"{url}/")
    grace.get_by_role("button", name="Comment").click()
    expect(grace.get_by_text("There is no such post.")).to_be_visible()
    expect(grace.get_by_label("Your comment")).to_have_value("And cloth?")


def test_a_comment_by_an_account_that_is_gone(url, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    answer(grace, "And cloth?")
    session = {"session": grace.context.cookies()[0]["value"]}
    user = requests.get(f"{url}/users/me", cookies=session, timeout=20).json()["id"]
    gone = requests.delete(f"{url}/users/{user}?content=keep", cookies=session, timeout=20)
    assert gone.status_code == 204
    ada.reload()
    expect(ada.locator(".thread")).to_contain_text("a former member")
    ada.get_by_role("button", name="Reply").click()
    ada.get_by_label("Your reply").fill("Cloth too.")
    ada.locator(".opened").get_by_role("button", name="Reply").click()
    expect(ada.locator(".level-2")).to_contain_text("Cloth too.")
    expect(ada.get_by_role("button", name="Edit")).to_have_count(1)


@pytest.mark.parametrize("path", ["/signin", "/write"])
def test_a_script_that_loads_late(people, url, sign_up, path):
    name = name_of(sign_up())
    page = people.open_page(base_url=url)
    page.route("**/static/*/*.js", lambda _route: None)
    page.goto(path, wait_until="commit")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for _ in range(200):
        if page.evaluate("performance.getEntriesByType('paint').length"):
            break
        page.wait_for_timeout(50)
    else:
        pytest.fail("The page stays blank.")
    expect(page.get_by_role("link", name="Sign in", exact=True).first).to_be_visible()
    expect(page.locator("form")).to_have_attribute("inert", "")  # no text can be lost in it
    page.unroute("**/static/*/*.js")  # which lets the requests go on
    expect(page.locator("form")).not_to_have_attribute("inert", "")
    if path == "/signin":
        sign_in(page, name, PASSWORD)
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
