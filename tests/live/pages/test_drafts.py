"""Drafts: a text that is not sent is kept, listed, and published once."""

from playwright.sync_api import expect

from tests.live.browser import (
    TEXT,
    TITLE,
    answer,
    expect_post,
    fill_editor,
    name_of,
    press_rare,
    press_sign_out,
    publish,
    write,
)


def test_a_published_text_does_not_come_back(sign_up):
    page = sign_up()
    write(page)
    page.go_back()
    expect(page.get_by_label("Title")).to_have_value("")


def test_an_unsent_text_can_be_discarded(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    page.reload()
    page.get_by_role("button", name="Discard it").click()
    expect(page.get_by_label("Title")).to_have_value("")
    page.reload()
    expect(page.get_by_label("Title")).to_have_value("")
    expect(page.get_by_text("Your unsent text is back.")).to_have_count(0)


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
        page.goto("/settings#account")
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
            press_sign_out(page)
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
        press_rare(page.locator(".level-1"), "Delete")
        expect(page.get_by_text("The comment is deleted.")).to_be_visible()
        page.goto("/unsent")
        page.get_by_text("The text", exact=True).click()
        expect(page.locator("[data-unsent] pre")).to_have_text("Cloth too.")
