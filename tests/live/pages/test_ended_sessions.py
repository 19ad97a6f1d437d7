"""Texts that are not sent before a session ends, and sessions in two tabs."""

import pytest
from playwright.sync_api import expect

from tests.live.browser import (
    TEXT,
    TITLE,
    answer,
    expect_post,
    fill_editor,
    name_of,
    publish,
    sign_in,
    sign_out,
    write,
)

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
