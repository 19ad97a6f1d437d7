"""Comments in the page: what changes in place, what is new, and threads that are folded."""

import re

from playwright.sync_api import expect

from tests.live.browser import (
    ADD_COMMENTS,
    answer,
    fill_editor,
    press_rare,
    publish,
    reply_to,
    write,
)


def test_what_was_written_is_shown_in_place_and_has_the_focus(sign_up):
    page = sign_up()
    write(page)
    page.evaluate("window.isSamePage = true")
    answer(page, "And cloth?")
    first = page.locator(".level-1")
    expect(first).to_be_focused()
    expect(page.get_by_role("status")).to_have_text("Your comment is published.")
    expect(page.get_by_label("Your comment")).to_have_value("")
    reply_to(page, first, "Cloth too.")
    expect(page.locator(".level-2")).to_be_focused()
    press_rare(first, "Edit")
    page.get_by_label("Edit your comment").fill("And linen?")
    page.get_by_role("button", name="Save").click()
    expect(first).to_contain_text("And linen?")
    expect(first).to_be_focused()
    expect(page.get_by_role("status")).to_have_text("Your edit is saved.")
    page.on("dialog", lambda dialog: dialog.accept())
    press_rare(page.locator(".level-2"), "Delete")
    expect(page.locator(".level-2")).to_have_count(0)
    expect(first).to_be_focused()
    expect(page.get_by_role("status")).to_have_text("The comment is deleted.")
    expect(page.get_by_role("heading", level=2)).to_have_text("1 comment")
    assert page.evaluate("window.isSamePage")


def test_an_unfinished_text_survives_another_one(sign_up):
    page = sign_up()
    write(page)
    answer(page, "And cloth?")
    page.get_by_label("Your comment").fill("Unfinished")
    reply_to(page, page.locator(".level-1"), "Cloth too.")
    expect(page.get_by_label("Your comment")).to_have_value("Unfinished")
    page.locator(".level-2").get_by_role("link", name="Reply").click()
    page.get_by_label("Your reply").fill("Unfinished too")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".level-1")).to_have_count(2)
    expect(page.locator(".level-2").get_by_label("Your reply")).to_have_value("Unfinished too")
    page.keyboard.press("Escape")
    page.get_by_label("Your reply").press("Escape")
    expect(page.get_by_label("Your reply")).to_have_count(0)


def test_a_reply_on_a_later_page_stays_where_it_is(sign_up):
    page = sign_up()
    write(page)
    ids = page.evaluate(ADD_COMMENTS, [f"Comment {number}" for number in range(205)])
    page.reload()
    page.get_by_role("link", name="More comments").click()
    expect(page.locator(".thread > li")).to_have_count(5)
    later = page.url
    reply_to(page, page.locator(f"#c-{ids[201]}"), "On the second page")
    expect(page.locator(f"#c-{ids[201]} + .level-2")).to_contain_text("On the second page")
    expect(page.locator(".level-2")).to_be_focused()
    expect(page).to_have_url(later)
    page.goto(page.url.partition("?")[0])
    answer_id = page.evaluate(ADD_COMMENTS, ["Last"])[0]
    page.get_by_label("Your comment").fill("After the last")
    page.get_by_role("button", name="Comment", exact=True).click()  # which is on another page
    page.wait_for_url("**?comment=*")
    expect(page.get_by_role("status")).to_have_text("Your comment is published.")
    expect(page.locator(".thread > li:target")).to_contain_text("After the last")
    expect(page.locator(f"#c-{answer_id}")).to_have_count(0)


def test_images_are_deleted_in_place(sign_up, picture_files):
    page = sign_up()
    page.on("dialog", lambda dialog: dialog.accept())
    fill_editor(page, "On engines", "They weave algebra.")
    page.get_by_label("Add images").set_input_files(picture_files)
    publish(page)
    expect(page.get_by_role("status")).to_have_text("Your post is published.")
    page.evaluate("window.isSamePage = true")
    page.get_by_text("Delete images").click()
    for number, focused in ((1, "#images"), (0, "#title")):
        page.get_by_role("button", name="Delete image 1").click()
        expect(page.locator("figure")).to_have_count(number)
        expect(page.get_by_role("status")).to_have_text("The image is deleted.")
        expect(page.locator(focused)).to_be_focused()
    expect(page.get_by_text("Delete images")).to_have_count(0)
    expect(page.get_by_role("link", name="Edit")).to_be_visible()
    assert page.evaluate("window.isSamePage")


def test_new_comments_are_marked(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    answer(ada, "Known")
    expect(ada.locator(".new")).to_have_count(0)
    grace.goto(ada.url)
    answer(grace, "New to Ada")
    answer(grace, "New too")
    ada.reload()
    expect(ada.locator(".new")).to_have_count(2)
    for text in ("New to Ada", "New too", "New to Ada"):
        ada.get_by_role("button", name="Next new (2)").click()
        expect(ada.locator(".new:focus")).to_contain_text(text)
    ada.reload()
    expect(ada.get_by_text("New too")).to_be_visible()
    expect(ada.locator(".new")).to_have_count(0)


def test_new_comments_in_a_part_of_a_thread_are_marked(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    post = ada.url
    answer(ada, "First")
    answer(ada, "Second")
    grace.goto(post)
    reply_to(grace, grace.locator(".level-1").last, "A reply")
    url = grace.locator(".level-2 .meta a").last.get_attribute("href")
    ada.goto(f"{post}?comment={url.partition('#c-')[2]}")
    expect(ada.locator(".new")).to_have_count(1)
    reply_to(grace, grace.locator(".level-1").first, "A reply above")
    ada.reload()  # which shows the second thread alone
    expect(ada.locator(".new")).to_have_count(0)
    ada.goto(post)
    expect(ada.locator(".new", has_text="A reply above")).to_have_count(1)


def test_the_first_comments_on_a_post_are_new(sign_up):
    ada, grace = sign_up(), sign_up()
    write(grace)
    ada.goto(grace.url)
    expect(ada.get_by_label("Your comment")).to_be_editable()
    answer(grace, "First")
    answer(grace, "Second")
    ada.reload()
    expect(ada.locator(".new")).to_have_count(2)


def test_new_comments_on_later_pages_are_marked(sign_up):
    ada, grace = sign_up(), sign_up()
    write(grace)
    post = grace.url
    first, *_ = grace.evaluate(ADD_COMMENTS, [f"Comment {number}" for number in range(205)])
    ada.goto(post)
    expect(ada.locator(".thread > li")).to_have_count(200)
    expect(ada.locator(".new")).to_have_count(0)
    ada.get_by_role("link", name="More comments").click()
    expect(ada.locator(".thread > li")).to_have_count(5)
    expect(ada.locator(".new")).to_have_count(0)
    # The reply moves comments from the first page to the second, so the address of that changes.
    grace.goto(f"{post}?comment={first}")
    reply_to(grace, grace.locator(f"#c-{first}"), "A reply")
    (last,) = grace.evaluate(ADD_COMMENTS, ["Last"])
    ada.goto(f"{post}?comment={last}#c-{last}")
    expect(ada.locator(".new")).to_have_text(re.compile("Last"))
    ada.goto(post)
    expect(ada.locator(".new")).to_have_text(re.compile("A reply"))
    ada.get_by_role("link", name="More comments").click()
    expect(ada.locator(f"#c-{last}")).to_be_visible()
    expect(ada.locator(".new")).to_have_count(0)
    grace.evaluate(ADD_COMMENTS, ["After the last"])
    ada.goto(f"{post}?sort=newest")
    expect(ada.locator(".new")).to_have_text(re.compile("After the last"))


def test_new_comments_stay_marked_when_the_reader_answers_one(sign_up):
    ada, grace = sign_up(), sign_up()
    write(grace)
    ada.goto(grace.url)
    expect(ada.get_by_label("Your comment")).to_be_editable()
    answer(grace, "First")
    answer(grace, "Second")
    ada.reload()
    expect(ada.locator(".new")).to_have_count(2)
    reply_to(ada, ada.locator(".level-1").first, "Thank you.")
    expect(ada.locator(".new")).to_have_text([re.compile("First"), re.compile("Second")])


def test_a_new_comment_that_is_folded_away_is_shown(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    answer(ada, "First")
    grace.goto(ada.url)
    reply_to(grace, grace.locator(".level-1"), "New to Ada")
    ada.reload()
    ada.get_by_role("button", name="Fold").click()
    ada.get_by_role("button", name="Next new (1)").click()
    expect(ada.locator(".new")).to_be_focused()


def test_a_folded_thread_stays_folded(sign_up):
    page = sign_up()
    write(page)
    answer(page, "First")
    reply_to(page, page.locator(".level-1"), "Below")
    reply_to(page, page.locator(".level-2"), "Further below")
    page.locator(".level-2").get_by_role("button", name="Fold").click()
    page.locator(".level-1").get_by_role("button", name="Fold").click()
    expect(page.locator(".level-1").get_by_role("button", name="Show 2 replies")).to_be_focused()
    answer(page, "Second")
    expect(page.locator(".level-2")).to_be_hidden()
    page.get_by_role("button", name="Show 2 replies").click()
    expect(page.locator(".level-2")).to_be_visible()
    expect(page.locator(".level-3")).to_be_hidden()


def test_a_thread_is_folded(sign_up):
    page = sign_up()
    write(page)
    answer(page, "First")
    reply_to(page, page.locator(".level-1"), "Below")
    reply_to(page, page.locator(".level-2"), "Further below")
    answer(page, "Second")
    page.get_by_role("button", name="Fold").first.click()
    expect(page.get_by_text("Below", exact=True)).to_be_hidden()
    expect(page.get_by_text("Further below")).to_be_hidden()
    expect(page.get_by_text("Second", exact=True)).to_be_visible()
    page.get_by_role("button", name="Show 2 replies").click()
    expect(page.get_by_text("Further below")).to_be_visible()


def test_the_newest_comments_come_first(sign_up):
    page = sign_up()
    write(page)
    answer(page, "First")
    answer(page, "Second")
    reply_to(page, page.locator(".level-1").first, "Below the first")
    page.get_by_role("link", name="Newest first").click()
    expect(page.locator(".thread .text")).to_have_text(["Below the first", "Second", "First"])


def test_a_comment_is_previewed_and_marked(sign_up):
    page = sign_up()
    write(page)
    text = page.get_by_label("Your comment")
    text.fill("cloth")
    text.press("Control+a")
    text.press("Control+b")
    expect(text).to_have_value("**cloth**")
    page.get_by_role("button", name="Quote").click()
    expect(text).to_have_value("> **cloth**")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("[data-preview] blockquote strong")).to_have_text("cloth")
    text.press("End")
    text.press("!")
    expect(page.locator("[data-preview]")).to_be_empty()
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("[data-preview]")).not_to_be_empty()
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".level-1")).to_contain_text("cloth")
    expect(page.locator("[data-preview]")).to_be_empty()


def test_the_bar_over_a_text_is_one_stop_of_the_tab_key(sign_up):
    page = sign_up()
    write(page)
    bar = page.get_by_role("toolbar", name="Marks for the text")
    bar.get_by_role("button", name="Bold").focus()
    for key, name in (
        ("ArrowRight", "Italic"),
        ("ArrowRight", "Link"),
        ("ArrowLeft", "Italic"),
        ("ArrowLeft", "Bold"),
        ("ArrowLeft", "Quote"),
        ("ArrowRight", "Bold"),
        ("ArrowRight", "Italic"),
    ):
        page.keyboard.press(key)
        expect(bar.get_by_role("button", name=name)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Your comment")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(bar.get_by_role("button", name="Italic")).to_be_focused()
