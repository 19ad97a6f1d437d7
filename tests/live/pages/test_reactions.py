"""Reactions: numbers that everybody sees, and buttons of members."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.live.browser import answer, name_of, tab_to, write


def react(text: Locator, name: str) -> None:
    text.get_by_role("button", name="React").click()
    text.get_by_role("button", name=name, exact=True).click()


def chips(text: Locator) -> Locator:
    return text.locator(".reactions:not(.picker) > [data-reaction]")


def expect_pressed(chip: Locator, *, is_pressed: bool) -> None:
    expect(chip).to_have_attribute("aria-pressed", str(is_pressed).lower())


def comment_of(page: Page) -> Locator:
    return page.locator(".thread > li").first


def test_two_members_react(sign_up, people):
    ada, grace = sign_up(), sign_up()
    write(ada)
    answer(ada, "And cloth?")
    post = ada.locator("#post")
    react(post, "Heart")
    expect(chips(post)).to_have_text(["❤️ 1"])
    expect(chips(post)).to_be_focused()
    expect_pressed(chips(post), is_pressed=True)
    grace.goto(ada.url)
    expect_pressed(chips(grace.locator("#post")), is_pressed=False)
    chips(grace.locator("#post")).click()
    expect(chips(grace.locator("#post"))).to_have_text(["❤️ 2"])
    react(comment_of(grace), "Party")
    expect(chips(comment_of(grace))).to_have_text(["🎉 1"])
    react(comment_of(grace), "Thanks")
    expect(chips(comment_of(grace))).to_have_text(["🙏 1"])
    grace.reload()
    expect_pressed(chips(comment_of(grace)), is_pressed=True)
    chips(comment_of(grace)).click()
    expect(chips(comment_of(grace))).to_have_count(0)
    expect(comment_of(grace).get_by_role("button", name="React")).to_be_focused()
    visitor = people.open_page()
    visitor.goto(ada.url)
    expect(chips(visitor.locator("#post"))).to_have_text(["❤️ 2"])
    expect(visitor.get_by_role("button", name="React")).to_have_count(0)


def test_reactions_by_keyboard_and_in_the_inbox(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    expect(grace.get_by_role("button", name="React")).to_be_visible()
    tab_to(grace, "React", "Enter")
    thumb = grace.get_by_role("button", name="Thumbs up")
    expect(thumb).to_be_focused()
    grace.keyboard.press("Escape")
    expect(thumb).to_have_count(0)
    expect(grace.get_by_role("button", name="React")).to_be_focused()
    grace.keyboard.press("Enter")
    expect(thumb).to_be_focused()
    grace.keyboard.press("Tab")
    grace.keyboard.press("Enter")
    expect(chips(grace.locator("#post"))).to_have_text(["❤️ 1"])
    ada.goto("/inbox")
    row = ada.locator("[data-notifications] > li")
    expect(row).to_contain_text(f"{name_of(grace)} reacted to your post")
    with (
        ada.expect_response(lambda each: each.request.method == "PUT"),  # what was seen
        ada.expect_response("**/notifications/unread"),
    ):
        row.get_by_role("link", name=re.compile("reacted")).click()
    ada.goto("/inbox")
    expect(row).not_to_have_class(re.compile("unread"))


def test_reactions_to_two_posts_are_read_one_by_one(sign_up):
    ada, grace = sign_up(), sign_up()
    urls = []
    for _ in range(2):
        write(ada)
        urls.append(ada.url)
        grace.goto(ada.url)
        react(grace.locator("#post"), "Heart")
        expect(chips(grace.locator("#post"))).to_have_count(1)
    ada.goto("/inbox")
    unread = ada.locator("[data-notifications] > li.unread")
    expect(unread).to_have_count(2)
    for left, url in zip((1, 0), urls, strict=True):
        with (
            ada.expect_response(lambda each: each.request.method == "PUT"),  # what was seen
            ada.expect_response("**/notifications/unread"),
        ):
            ada.goto(url)
        ada.goto("/inbox")
        expect(unread).to_have_count(left)
