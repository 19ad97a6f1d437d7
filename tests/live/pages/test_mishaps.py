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
    sign_out,
    write,
)

TITLE, TEXT = "On engines", "They weave algebra."
KEPT = "Sign in; your text is kept."


def test_a_closed_tab_and_the_end_of_the_session(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    context = page.context
    page.close()
    page = context.new_page()
    page.goto("/write")
    expect(page.get_by_label("Title")).to_have_value("")
    page.locator("main").get_by_role("link", name="You have 1 unsent text").click()
    page.get_by_role("link", name=TITLE).click()
    expect(page.get_by_label("Title")).to_have_value(TITLE)
    expect(page.get_by_text("Your unsent text is back.")).to_be_visible()
    name = name_of(page)
    context.clear_cookies()
    publish(page)
    page.get_by_role("link", name=KEPT).click()
    sign_in(page, name)
    page.wait_for_url("**/write?draft=*")
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
    page.get_by_role("link", name="Reply").click()
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
    expect(page.get_by_label("Username", exact=True)).to_have_value(name_of(page))
    second = page.context.new_page()
    second.goto("/")
    with second.expect_event("load"):
        sign_out(second)
    second.goto("/signin")
    sign_in(second, grace)
    second.wait_for_url(f"{url}/")
    expect(page.get_by_label("Username", exact=True)).to_have_value(grace)


def test_drafts_of_two_members_are_apart(url, sign_up):
    page, grace = sign_up(), name_of(sign_up())
    ada = name_of(page)
    fill_editor(page, TITLE, TEXT)
    draft = page.url
    page.context.clear_cookies()
    publish(page)
    expect(page.get_by_role("link", name=KEPT)).to_be_visible()
    for name, title in ((grace, ""), (ada, TITLE)):
        page.goto("/signin")
        sign_in(page, name)
        page.wait_for_url(f"{url}/")
        page.goto(draft)
        expect(page.get_by_label("Title")).to_have_value(title)
        page.context.clear_cookies()


def test_a_browser_that_stores_nothing(people, url):
    page = people.open_page(base_url=url)
    refuse = "Storage.prototype.setItem = () => { throw new DOMException('no'); }"
    page.add_init_script(refuse)
    for path in ("/signin", "/signup"):
        page.goto(path)
        expect(page.get_by_text("Your browser blocks cookies or stores nothing")).to_be_visible()
        expect(page.get_by_label("Username")).to_be_hidden()


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
    page.wait_for_url("**/write?draft=*")
    publish(page)
    expect_post(page)


def test_a_second_tab_that_signs_out(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    second = page.context.new_page()
    second.goto("/")
    second.on("dialog", lambda dialog: dialog.accept())
    sign_out(second)
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


def test_an_edit_of_what_is_not_theirs(people, url, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(f"{ada.url}/edit")
    expect(grace.get_by_text("Only its author may edit this post.")).to_be_visible()
    expect(grace.get_by_label("Title")).to_be_hidden()
    visitor = people.open_page(base_url=url)
    visitor.goto(f"{ada.url}/edit")
    expect(visitor.get_by_role("link", name="Sign in to write.")).to_be_visible()
    expect(visitor.get_by_label("Title")).to_be_hidden()
    second = visitor.context.new_page()
    second.goto("/signin")
    sign_in(second, name_of(grace))
    expect(visitor.get_by_text("Only its author may edit this post.")).to_be_visible()
    expect(visitor.get_by_label("Title")).to_be_hidden()


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
    page.reload()
    expect(page.get_by_role("link", name="Sign in to write.")).to_be_visible()
    other = page.context.new_page()
    other.goto("/signin")
    sign_in(other, name)
    other.wait_for_url(f"{url}/")
    expect(page.get_by_label("Title")).to_have_value(TITLE)


def test_what_is_said_about_a_session_ends_with_the_next_one(url, sign_up):
    page = sign_up()
    name = name_of(page)
    write(page)
    page.get_by_label("Your comment").fill("And cloth?")
    page.context.clear_cookies()
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    other = page.context.new_page()
    other.goto("/signin")
    sign_in(other, name)
    expect(page.get_by_text("You are signed out.")).to_have_count(0)
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".level-1")).to_contain_text("And cloth?")


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
    expect(grace.get_by_text("This post has been deleted.")).to_be_visible()
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
    ada.get_by_role("link", name="Reply").click()
    ada.get_by_label("Your reply").fill("Cloth too.")
    ada.locator(".opened").get_by_role("button", name="Reply").click()
    expect(ada.locator(".level-2")).to_contain_text("Cloth too.")
    expect(ada.get_by_role("button", name="Edit")).to_have_count(1)


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
    expect(page.locator("main form")).to_have_attribute("inert", "")  # no text can be lost in it
    page.unroute("**/static/*/*.js")  # which lets the requests go on
    expect(page.locator("main form")).not_to_have_attribute("inert", "")
    if path == "/signin":
        sign_in(page, name, PASSWORD)
        expect(page.locator(".menu")).to_contain_text(name)


class TestDrafts:
    def test_two_tabs_have_texts_of_their_own(self, sign_up):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        second = page.context.new_page()
        second.goto("/write")
        expect(second.get_by_role("link", name="You have 1 unsent text")).to_be_visible()
        second.get_by_label("Title").fill("On looms")
        second.get_by_label("Text", exact=True).fill("They weave cloth.")
        for tab, title in ((page, TITLE), (second, "On looms")):
            tab.reload()
            expect(tab.get_by_label("Title")).to_have_value(title)
        page.goto("/unsent")
        expect(page.locator("[data-unsent] > li")).to_have_count(2)
        publish(second)
        expect_post(second, "On looms")
        page.reload()
        expect(page.locator("[data-unsent] > li")).to_have_count(1)

    def test_a_tab_that_opens_a_text_takes_it_over(self, sign_up):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        second = page.context.new_page()
        second.goto(page.url)
        second.get_by_label("Title").fill("On looms")
        page.get_by_label("Title").fill("On mills")
        page.goto("/unsent")
        expect(page.locator("[data-unsent] a")).to_have_text(["On mills", "On looms"])

    def test_a_text_can_be_discarded_and_brought_back(self, sign_up):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        page.goto("/unsent")
        page.get_by_role("button", name="Discard").click()
        expect(page.get_by_text("There are none.")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        page.get_by_role("link", name=TITLE).click()
        page.get_by_role("button", name="Discard it").click()
        expect(page.get_by_label("Title")).to_have_value("")
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_label("Title")).to_have_value(TITLE)

    def test_the_same_text_in_two_tabs_is_published_once(self, url, sign_up):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        second = page.context.new_page()
        second.goto(page.url)
        expect(second.get_by_label("Title")).to_have_value(TITLE)
        publish(page)
        expect_post(page)
        publish(second)
        expect_post(second)
        assert second.url == page.url

    def test_a_text_that_is_as_before_is_not_kept(self, sign_up):
        page = sign_up()
        page.goto("/settings")
        about = page.get_by_label("About you")
        about.fill("I write.")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_have_text("Your profile is saved.")
        about.fill("I read.")
        about.fill("I write.")
        page.goto("/unsent")
        expect(page.get_by_text("There are none.")).to_be_visible()

    def test_a_discarded_edit_leaves_the_text_as_it_was(self, sign_up):
        page = sign_up()
        name = name_of(page)
        page.goto("/settings")
        expect(page.get_by_label("Username", exact=True)).to_have_value(name)
        page.get_by_label("About you").fill("I write.")
        page.reload()
        page.get_by_role("button", name="Discard it").click()
        expect(page.get_by_label("About you")).to_have_value("")
        expect(page.get_by_label("Username", exact=True)).to_have_value(name)

    def test_deleting_the_account_asks_before_it_deletes_texts(self, url, sign_up):
        page = sign_up()
        name = name_of(page)
        for title in (TITLE, "On looms"):
            fill_editor(page, title, TEXT)
        questions = []

        def answer_them(dialog):
            questions.append(dialog.message)
            dialog.dismiss() if len(questions) == 1 else dialog.accept()

        page.on("dialog", answer_them)
        page.goto("/settings")
        page.get_by_label("Your username, to be sure").fill(name)
        page.get_by_role("button", name="Delete my account").click()
        expect(page.get_by_role("button", name="Delete my account")).to_be_visible()
        page.get_by_role("button", name="Delete my account").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your account is deleted")
        assert questions == ["Delete your account and your 2 unsent texts?"] * 2

    def test_texts_for_a_page_are_offered_on_it(self, sign_up):
        page = sign_up()
        write(page)
        post = page.url
        for text in ("First", "Second"):
            answer(page, text)
        for comment in page.locator(".level-1").all():
            comment.get_by_role("link", name="Reply").click()
            page.get_by_label("Your reply").fill("Unfinished")
            page.keyboard.press("Escape")
        page.goto(post)
        expect(page.get_by_label("Your reply")).to_have_value("Unfinished")
        expect(page.get_by_label("Your reply")).not_to_be_focused()
        expect(page.get_by_role("status")).to_contain_text("You have 2 unsent texts for this page.")
        page.get_by_role("status").get_by_role("link", name="Unsent texts").click()
        expect(page.locator("[data-unsent] a")).to_have_text(["Reply below On engines"] * 2)
        page.locator("[data-unsent] a").last.click()
        expect(page.locator(".level-1").first.get_by_label("Your reply")).to_be_focused()

    def test_signing_out_asks_before_it_deletes_texts(self, url, sign_up):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        questions = []

        def refuse(dialog):
            questions.append(dialog.message)
            dialog.dismiss()

        page.once("dialog", refuse)
        with page.expect_event("dialog"):
            sign_out(page)
        assert questions == ["Sign out and delete your 1 unsent text?"]
        expect(page.get_by_label("Title")).to_have_value(TITLE)

    def test_a_reply_is_kept_when_it_is_closed(self, sign_up):
        page = sign_up()
        write(page)
        answer(page, "And cloth?")
        page.get_by_role("link", name="Reply").click()
        page.get_by_label("Your reply").fill("Cloth too.")
        page.keyboard.press("Escape")
        expect(page.get_by_text("Your text is kept.")).to_be_visible()
        expect(page.get_by_role("link", name="Reply")).to_be_focused()
        page.goto(f"{page.url.partition('#')[0]}#{page.locator('.level-1').get_attribute('id')}")
        page.reload()
        expect(page.get_by_label("Your reply")).to_have_value("Cloth too.")

    def test_a_reply_to_a_deleted_comment_is_among_the_unsent_texts(self, sign_up):
        page = sign_up()
        write(page)
        answer(page, "And cloth?")
        page.get_by_role("link", name="Reply").click()
        page.get_by_label("Your reply").fill("Cloth too.")
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Delete").last.click()
        expect(page.get_by_text("The comment is deleted.")).to_be_visible()
        page.goto("/unsent")
        page.get_by_text("The text", exact=True).click()
        expect(page.locator("[data-unsent] pre")).to_have_text("Cloth too.")
