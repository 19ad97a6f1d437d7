"""The whole way of a reader, by keyboard and by touch: new comments, long threads, search."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.live.browser import (
    ADD_COMMENTS,
    answer,
    expect_post,
    fill_editor,
    publish,
    tab_to,
    write,
)


@pytest.fixture
def discussion(sign_up):
    """The page of a member on their own post, which has two comments."""
    page = sign_up()
    write(page, "On looms")
    answer(page, "First")
    answer(page, "Second")
    return page


def test_new_comments_are_read_by_keyboard(by_keyboard, discussion):
    page, other = by_keyboard, discussion
    page.goto(other.url)
    expect(page.locator(".thread > li")).to_have_count(2)
    answer(other, "Third")
    page.reload()
    tab_to(page, "Next new (1)", "Enter")
    expect(page.locator(".new")).to_be_focused()
    expect(page.locator(".new")).to_contain_text("Third")
    page.goto(other.url)
    tab_to(page, "Newest first", "Enter")
    page.wait_for_url("**?sort=newest#comments")
    expect(page.locator(".thread .text")).to_have_text(["Third", "Second", "First"])


def test_a_long_thread_goes_on_by_keyboard(by_keyboard, discussion):
    page, other = by_keyboard, discussion
    other.evaluate(ADD_COMMENTS, [f"Comment {number}" for number in range(200)])
    page.goto(other.url)
    page.get_by_role("link", name="Reply").last.focus()
    tab_to(page, "More comments", "Enter")
    page.wait_for_url("**cursor=*")
    last = page.locator(".level-1").last
    expect(last).to_contain_text("Comment 199")
    last.get_by_role("button", name="React").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.keyboard.type("On the second page")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".level-2")).to_contain_text("On the second page")
    expect(page.locator(".level-2")).to_be_focused()
    assert "cursor=" in page.url


def test_what_does_not_work_is_said_by_keyboard(by_keyboard):
    page = by_keyboard
    write(page)
    page.keyboard.press("Home")
    tab_to(page, "Your comment")
    page.keyboard.insert_text("x" * 10_001)
    expect(page.locator("#comment-content-error")).to_have_text("This is 1 character too long.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("Your comment")).to_be_focused()
    page.keyboard.press("Backspace")
    held = []
    page.route("**/comments", lambda route: held.append(route))  # noqa: PLW0108 - keeps attributes
    tab_to(page, "Comment", "Enter")
    expect(page.get_by_role("button", name="Publishing …")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("Publishing …")
    held[0].continue_()
    expect(page.locator(".level-1")).to_be_focused()
    page.context.set_offline(True)
    tab_to(page, "More actions", "Enter")
    tab_to(page, "Delete", "Enter")
    expect(page.get_by_role("status")).to_have_text(
        "There is no connection, so nothing was deleted. Try again."
    )


def test_new_comments_are_read_by_touch(by_touch, discussion):
    page, other = by_touch, discussion
    page.goto(other.url)
    expect(page.locator(".thread > li")).to_have_count(2)
    answer(other, "Third")
    page.reload()
    page.get_by_role("button", name="Next new (1)").tap()
    expect(page.locator(".new")).to_be_in_viewport()
    page.get_by_role("link", name="Newest first").tap()
    page.wait_for_url("**?sort=newest#comments")
    expect(page.locator(".thread .text")).to_have_text(["Third", "Second", "First"])


def test_a_post_is_found_by_touch(by_touch, new_name):
    page, word = by_touch, new_name.replace("-", "")
    write(page, f"On {word}")
    page.goto("/")
    page.locator("header").get_by_role("link", name="Search").tap()
    page.get_by_role("searchbox").filter(visible=True).fill(word)
    page.keyboard.press("Enter")
    page.get_by_role("link", name=f"On {word}").tap()
    expect_post(page, f"On {word}")


def test_unsent_texts_and_images_are_deleted_by_touch(by_touch, picture_files):
    page = by_touch
    page.get_by_role("link", name="Write", exact=True).tap()
    page.get_by_label("Title").fill("Unfinished")
    page.goto("/unsent")
    page.get_by_role("button", name="Discard").tap()
    expect(page.get_by_text("There are none.")).to_be_visible()
    page.get_by_role("button", name="Undo").tap()
    expect(page.get_by_role("link", name="Unfinished")).to_be_visible()
    fill_editor(page, "On engines", "They weave algebra.")
    page.get_by_label("Add images").set_input_files(picture_files[0])
    publish(page)
    page.get_by_text("Delete images").tap()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete image 1").tap()
    expect(page.locator("figure")).to_have_count(0)


def test_what_has_happened_is_not_in_the_future_for_a_slow_clock(sign_up):
    page = sign_up()
    write(page)
    page.clock.set_fixed_time(datetime.now(UTC) - timedelta(minutes=9))
    page.reload()
    expect(page.locator("#post time")).to_have_text("now")
    page.goto("/settings#programs")
    page.get_by_label("Name", exact=True).fill("Backup")
    page.get_by_role("button", name="Create a token").click()
    expect(page.locator("[data-tokens] time")).to_have_text("next year")
