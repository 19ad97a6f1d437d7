"""Reports: from the form of a member to the decision of a moderator."""

from playwright.sync_api import expect

from tests.live.browser import answer, expect_post, name_of, open_menu, press_rare, sign_in, write
from tests.live.moderation import (
    ADVERTISING,
    expect_in_inbox,
    fill_opened,
    press,
    report,
    reports,
    status,
)


def test_from_a_report_to_a_suspension(sign_up, sign_up_moderator):
    ada, grace, morgan = sign_up(), sign_up(), sign_up_moderator()
    author, reporter = name_of(ada), name_of(grace)
    write(ada, "Cheap looms", "Buy them *now*.")
    expect(ada.locator("#post [data-action=report]")).to_be_hidden()
    ada.locator("#post .rare summary").click()
    expect(ada.get_by_role("button", name="Delete", exact=True)).to_be_visible()
    expect(ada.locator("#post [data-action=report]")).to_be_hidden()
    grace.goto(ada.url)
    report(grace, grace.locator("#post"))
    expect_in_inbox(morgan, f"{reporter} reported a post")

    open_menu(morgan)
    morgan.get_by_role("link", name="Moderation").click()
    row = reports(morgan)
    for text in (f"Post by {author}", "Buy them now.", f"Reported by {reporter}", ADVERTISING):
        expect(row).to_contain_text(text)
    row.get_by_role("link", name=f"Post by {author}").click()
    expect_post(morgan, "Cheap looms")
    morgan.go_back()
    press(row, "Delete")
    fill_opened(morgan, "No advertising here.", "Delete")
    expect(row).to_contain_text(f"{name_of(morgan)} deleted it.")
    expect(row).to_contain_text(" · deleted")
    expect(row).to_be_focused()
    for name in ("Delete", "Dismiss"):
        expect(row.get_by_role("button", name=name)).to_be_hidden()
    expect_in_inbox(
        ada,
        "A moderator has deleted something of yours",
        "Buy them now.",
        "Reason: No advertising here.",
    )
    expect_in_inbox(grace, "A moderator has looked at what you reported", "Buy them now.")

    press(row, "Suspend the author")
    expect(morgan.get_by_label("A week")).to_be_checked()
    fill_opened(morgan, ADVERTISING, "Suspend")
    expect(status(morgan)).to_have_text("The author is suspended, and signed out everywhere.")
    expect(row).to_be_focused()
    expect(morgan.locator("[data-log] > li").first).to_contain_text(f"suspended {author}")
    ada.goto("/inbox")
    expect(ada.get_by_text("Sign in to see your inbox.")).to_be_visible()
    ada.goto("/signin")
    sign_in(ada, author)
    expect(ada.locator(".problem")).to_contain_text("Your account is suspended until")
    expect(ada.locator(".problem")).to_contain_text(f"Reason: {ADVERTISING}")


def test_one_thing_is_reported_once(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    report(grace, grace.locator("#post"))
    press_rare(grace.locator("#post"), "Report")
    fill_opened(grace, "Once more.", "Report")
    expect(grace.locator(".opened .problem")).to_contain_text("You have reported this already.")
    grace.keyboard.press("Escape")
    expect(grace.locator(".opened")).to_have_count(0)
    expect(grace.locator("#post .rare summary")).to_be_focused()


def test_two_moderators_do_not_get_in_each_others_way(sign_up, sign_up_moderator):
    ada, grace = sign_up(), sign_up()
    morgan, alan = sign_up_moderator(), sign_up_moderator()
    write(ada, "On looms")
    answer(ada, "Buy them now.")
    grace.goto(ada.url)
    report(grace, grace.locator("#post"))
    report(grace, grace.locator(".thread > li"))
    grace.goto(f"/@{name_of(ada)}")
    report(grace, grace.locator("main > section"))
    for page in (morgan, alan):
        page.goto("/moderation")
        expect(reports(page)).to_have_count(3)
    comment, profile = (
        [reports(page).filter(has_text=text) for page in (morgan, alan)]
        for text in ("Comment by", "Profile of")
    )
    expect(profile[0].get_by_role("button", name="Delete")).to_be_hidden()
    press(profile[0], "Dismiss")
    fill_opened(morgan, "It is a joke.", "Dismiss the report")
    expect(profile[0]).to_contain_text(f"{name_of(morgan)} dismissed the report. “It is a joke.”")
    expect_in_inbox(grace, "A moderator has looked at what you reported", "It is a joke.")
    press(profile[1], "Dismiss")
    fill_opened(alan, "", "Dismiss the report")
    expect(status(alan)).to_have_text("Another moderator has closed this report already.")
    expect(profile[1]).to_contain_text(f"{name_of(morgan)} dismissed the report.")
    expect(profile[1]).to_be_focused()

    press(comment[0], "Delete")
    fill_opened(morgan, "", "Delete")
    expect(comment[0]).to_contain_text("deleted it.")
    press(comment[1], "Delete")
    fill_opened(alan, "", "Delete")
    expect(status(alan)).to_have_text("This comment has been deleted.")
    expect(comment[1]).to_contain_text(f"{name_of(morgan)} deleted it.")
    expect(alan.locator(".opened")).to_have_count(0)


def test_reports_on_one_thing_are_closed_together(sign_up, sign_up_moderator):
    ada, grace, alan = sign_up(), sign_up(), sign_up()
    morgan = sign_up_moderator()
    write(ada, "On looms")
    for page in (grace, alan):
        page.goto(ada.url)
        report(page, page.locator("#post"), f"{name_of(page)} does not like it.")
    morgan.goto("/moderation")
    press(reports(morgan).last, "Delete")
    fill_opened(morgan, "", "Delete")
    expect(reports(morgan).get_by_text(f"{name_of(morgan)} deleted it.")).to_have_count(2)
    expect(reports(morgan).last).to_be_focused()


def test_closed_reports_are_listed_with_what_came_of_them(sign_up, sign_up_moderator):
    ada, grace, morgan = sign_up(), sign_up(), sign_up_moderator()
    write(ada, "On looms")
    answer(ada, "Buy them now.")
    grace.goto(ada.url)
    report(grace, grace.locator("#post"))
    morgan.goto("/moderation")
    closed = morgan.locator("[data-closed-reports] > li")
    expect(closed).to_have_count(0)
    press(reports(morgan), "Dismiss")
    fill_opened(morgan, "It is a joke.", "Dismiss the report")
    expect(closed).to_have_count(1)
    report(grace, grace.locator(".thread > li"))
    morgan.reload()
    expect(reports(morgan)).to_have_count(1)
    press(reports(morgan), "Delete")
    fill_opened(morgan, "", "Delete")
    expect(closed).to_have_count(2)
    for row, texts in (
        (closed.nth(0), ("Comment by", "deleted", f"{name_of(morgan)} deleted it.")),
        (closed.nth(1), ("Post by", f"{name_of(morgan)} dismissed the report. “It is a joke.”")),
    ):
        for text in texts:
            expect(row).to_contain_text(text)
        expect(row.get_by_role("button")).to_have_count(0)
    closed.nth(1).get_by_role("link").click()
    expect_post(morgan, "On looms")
