"""Moderators lock, pin and delete posts, and delete comments."""

from playwright.sync_api import expect

from tests.live.browser import answer, press_rare, write
from tests.live.moderation import ADVERTISING, expect_in_inbox, fill_opened, press, status


def test_a_post_is_locked_and_pinned(sign_up, sign_up_moderator):
    ada, grace, morgan = sign_up(), sign_up(), sign_up_moderator()
    write(ada, "Rules", "Be kind.")
    answer(ada, "And calm.")
    write(ada, "On engines")
    morgan.goto("/")
    morgan.get_by_role("link", name="Rules").click()
    for name, following in (("Lock", "Unlock"), ("Pin", "Unpin")):
        press_rare(morgan, name)
        expect(morgan.locator("#post .rare summary")).to_be_focused()
        expect(morgan.locator(f"#{name.lower()}")).to_have_text(following)
    post = morgan.url
    expect(morgan.get_by_text("This post is locked.")).to_be_visible()
    answer(morgan, "A moderator may.")
    grace.goto("/")
    expect(grace.locator(".posts > li").first).to_contain_text("Pinned")
    expect(grace.locator(".posts h2")).to_have_text(["Rules", "On engines"])
    for page in (grace, ada):
        page.goto(post)
        expect(
            page.get_by_text("This post is locked. Only moderators can comment.")
        ).to_be_visible()
        expect(page.get_by_label("Your comment")).to_be_hidden()
        expect(page.get_by_role("link", name="Reply").first).to_be_hidden()
        page.locator("#post .rare summary").click()
        for name in ("Lock", "Unlock", "Pin", "Unpin"):
            expect(page.get_by_role("button", name=name)).to_be_hidden()
    press_rare(morgan, "Unlock")
    expect(status(morgan)).to_have_text("The post is open for comments again.")
    grace.reload()
    grace.get_by_label("Your comment").fill("So am I.")
    press_rare(morgan, "Lock")
    expect(status(morgan)).to_contain_text("The post is locked")
    press(grace, "Comment")
    expect(grace.locator("form.comment .problem")).to_have_text(
        "This post is locked. Only moderators can comment."
    )
    expect(grace.get_by_label("Your comment")).to_have_value("So am I.")


def test_moderators_give_reasons_where_they_delete(url, sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    write(ada, "On looms")
    answer(ada, "Buy them now.")
    morgan.goto(ada.url)
    answer(morgan, "My own.")
    comments = morgan.locator(".thread > li")
    press_rare(comments.first, "Delete")
    expect(morgan.locator(".opened")).to_contain_text("Delete this comment?")
    press(morgan.locator(".opened"), "Cancel")
    expect(comments.first.locator(".rare summary")).to_be_focused()
    press_rare(comments.first, "Delete")
    fill_opened(morgan, ADVERTISING, "Delete")
    expect(status(morgan)).to_have_text("The comment is deleted.")
    expect(comments).to_have_count(1)
    expect_in_inbox(ada, "Buy them now.", f"Reason: {ADVERTISING}")
    morgan.once("dialog", lambda dialog: dialog.accept())
    press_rare(comments, "Delete")  # of the moderator, who need not give a reason
    expect(comments).to_have_count(0)
    press_rare(morgan.locator("#post"), "Delete")
    fill_opened(morgan, "", "Delete")
    expect(morgan).to_have_url(f"{url}/")
    expect(status(morgan)).to_have_text("The post is deleted.")
    expect_in_inbox(ada, "A moderator has deleted something of yours")
