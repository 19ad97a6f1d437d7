"""Moderation, on the pages of members and moderators: reports, suspensions, locks and pins."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import requests
from playwright.sync_api import Locator, Page, expect

from tests.live.browser import PASSWORD, TOUCH, answer, expect_post, name_of, sign_in, tab_to, write
from tests.live.pages.test_layout import OVERFLOW, SHIFTS, TARGETS
from tests.live.sites import ROOT

ADVERTISING = "This is advertising."


@pytest.fixture
def url(serve):
    """URL of a server of its own, because the page of moderation lists all reports."""
    return serve(WEB_CONCURRENCY="2").url


def flask(database_url: str, *command: str) -> str:
    """Run a command of the service, and return what it prints."""
    return subprocess.run(
        [sys.executable, "-m", "posting", *command],
        cwd=ROOT,
        env=os.environ | {"POSTING_DATABASE_URL": database_url},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture
def sign_up_moderator(fresh_url, sign_up) -> Callable[..., Page]:
    """Return a function that signs up a moderator, and returns a page of their browser."""

    def sign_up_moderator(**options) -> Page:
        page = sign_up(**options)
        flask(fresh_url, "users", "promote", name_of(page))
        page.goto("/settings")  # which tells the browser
        expect(page.locator("html")).to_have_class(re.compile(r"\bmoderator\b"))
        return page

    return sign_up_moderator


def reports(page: Page) -> Locator:
    return page.locator("[data-reports] > li")


def status(page: Page) -> Locator:
    return page.get_by_role("status")


def press(part: Page | Locator, name: str) -> None:
    part.get_by_role("button", name=name, exact=True).click()


def fill_opened(page: Page, text: str, button: str) -> None:
    """Fill the form that is open, and send it."""
    form = page.locator(".opened")
    expect(form.get_by_role("textbox")).to_be_focused()
    form.get_by_role("textbox").fill(text)
    press(form, button)


def report(page: Page, part: Locator, reason: str = ADVERTISING) -> None:
    """Report what a part of the page shows."""
    press(part, "Report")
    fill_opened(page, reason, "Report")
    expect(status(page)).to_contain_text("Thank you.")
    expect(page.locator(".opened")).to_have_count(0)
    expect(part.get_by_role("button", name="Report")).to_be_focused()


def expect_in_inbox(page: Page, *texts: str) -> None:
    page.goto("/inbox")
    row = page.locator("[data-notifications] ul > li").first
    for text in texts:
        expect(row).to_contain_text(text)


def test_from_a_report_to_a_suspension(sign_up, sign_up_moderator):
    ada, grace, morgan = sign_up(), sign_up(), sign_up_moderator()
    author, reporter = name_of(ada), name_of(grace)
    write(ada, "Cheap looms", "Buy them *now*.")
    expect(ada.locator("#post").get_by_role("button", name="Report")).to_be_hidden()
    grace.goto(ada.url)
    report(grace, grace.locator("#post"))
    expect_in_inbox(morgan, f"{reporter} reported a post")

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


def test_a_suspension_is_lifted(url, sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    author = name_of(ada)
    morgan.goto(f"/@{author}")
    press(morgan, "Moderate")
    panel = morgan.get_by_role("group", name="What moderators see")
    expect(panel).to_be_focused()
    expect(panel).to_contain_text("Has 0 posts, 0 comments and 0 images.")
    expect(panel.get_by_role("button", name="Lift the suspension")).to_be_hidden()
    press(panel, "Suspend")
    morgan.get_by_label("Until a moderator lifts it").check()
    morgan.locator(".opened").get_by_role("textbox").focus()
    fill_opened(morgan, ADVERTISING, "Suspend")
    expect(panel).to_contain_text("until a moderator lifts it. Reason: This is advertising.")
    expect(panel).to_be_focused()
    ada.goto("/settings")
    expect(ada.get_by_text("Sign in to see your settings.")).to_be_visible()
    press(panel, "Lift the suspension")
    expect(status(morgan)).to_have_text("The suspension is lifted.")
    expect(panel).not_to_contain_text("Suspended since")
    ada.goto("/signin")
    sign_in(ada, author)
    expect(ada).to_have_url(f"{url}/")
    press(morgan, "Moderate")
    expect(panel).to_have_count(0)
    morgan.goto("/moderation")
    log = morgan.locator("[data-log] > li")
    for act in ("suspended", "restored"):
        text = f"{name_of(morgan)} {act} {author}"
        expect(log.filter(has_text=text)).to_have_count(1)
    expect(morgan.get_by_text("There are none.").first).to_be_visible()
    morgan.goto(f"/@{name_of(morgan)}")
    press(morgan, "Moderate")
    for name in ("Suspend", "Delete everything by this member", "Delete the account"):
        expect(panel.get_by_role("button", name=name)).to_be_hidden()


def test_one_thing_is_reported_once(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    report(grace, grace.locator("#post"))
    press(grace.locator("#post"), "Report")
    fill_opened(grace, "Once more.", "Report")
    expect(grace.locator(".opened .problem")).to_contain_text("You have reported this already.")
    grace.keyboard.press("Escape")
    expect(grace.locator(".opened")).to_have_count(0)
    expect(grace.locator("#post").get_by_role("button", name="Report")).to_be_focused()


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


def test_the_desk_asks_once_for_each_list(url, sign_up_moderator):
    morgan = sign_up_moderator()
    morgan.wait_for_load_state("networkidle")
    asked = []
    morgan.on("request", lambda request: asked.append((request.resource_type, request.url)))
    morgan.goto("/moderation")
    expect(morgan.get_by_role("heading", name="Log")).to_be_visible()
    morgan.wait_for_load_state("networkidle")
    others = (f"{url}/users/me", f"{url}/notifications/unread")  # as on each page
    lists = [path for kind, path in asked if kind == "fetch" and path not in others]
    assert sorted(lists) == sorted(
        url + path
        for path in (
            *("/applications", "/comments?limit=20", "/moderation/log"),
            *("/reports", "/reports?state=closed"),
        )
    )


def test_lists_go_on(url, sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    write(ada)
    ada.evaluate(
        """async () => {
          const post = location.pathname.split("/").at(-1);
          const headers = {"Content-Type": "application/json"};
          const send = (path, data) =>
            fetch(path, {method: "POST", headers, body: JSON.stringify(data)});
          for (let number = 0; number < 21; number++) {
            const content = `Comment ${number}`;
            const answer = await send(`/posts/${post}/comments`, {content});
            const { id } = await answer.json();
            await send(`/comments/${id}/reports`, {reason: `Reason ${number}`});
          }
        }"""
    )
    morgan.goto("/moderation")
    expect(reports(morgan)).to_have_count(20)
    press(morgan, "Show more reports")
    expect(reports(morgan)).to_have_count(21)
    expect(reports(morgan).last).to_be_focused()
    expect(reports(morgan).last).to_contain_text("Reason 20")
    expect(morgan.get_by_role("button", name="Show more reports")).to_be_hidden()
    comments = morgan.locator("[data-comments] > li")
    expect(comments.first).to_contain_text("Comment 20")
    press(morgan, "Show older comments")
    expect(comments.last).to_contain_text("Comment 0")
    expect(comments.last).to_be_focused()


def test_applications_are_approved_and_refused(serve, fresh_url, people):
    server = serve(POSTING_SIGNUP="approval")
    morgan = people.open_page(base_url=server.url)
    link = re.search(r"#\S+", flask(fresh_url, "users", "create", "morgan", "--moderator"))[0]
    morgan.goto(f"/reset{link}")
    morgan.get_by_label("New password").filter(visible=True).fill(PASSWORD)
    press(morgan, "Save the password")
    expect(morgan).to_have_url(f"{server.url}/")
    for name in ("ada", "grace", "mallory"):
        body = {"username": name, "password": PASSWORD, "application": f"I am {name}."}
        assert requests.post(f"{server.url}/signup", json=body, timeout=20).status_code == 201
    morgan.goto("/moderation")
    rows = morgan.locator("[data-applications] > li")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("I am ada.")
    press(rows.first, "Approve")
    expect(status(morgan)).to_have_text("The account is approved.")
    expect(rows).to_have_count(2)
    expect(rows.first).to_be_focused()
    morgan.once("dialog", lambda dialog: dialog.dismiss())
    press(rows.last, "Refuse")
    expect(rows).to_have_count(2)
    morgan.on("dialog", lambda dialog: dialog.accept())
    press(rows.last, "Refuse")
    expect(status(morgan)).to_have_text("The application is refused.")
    expect(rows).to_be_focused()
    flask(fresh_url, "users", "approve", "grace")
    press(rows, "Approve")
    expect(status(morgan)).to_have_text(
        "Another moderator has decided on this application already."
    )
    expect(morgan.locator("[data-applications]")).to_be_focused()
    expect(rows).to_have_count(0)


def test_a_post_is_locked_and_pinned(sign_up, sign_up_moderator):
    ada, grace, morgan = sign_up(), sign_up(), sign_up_moderator()
    write(ada, "Rules", "Be kind.")
    answer(ada, "And calm.")
    write(ada, "On engines")
    morgan.goto("/")
    morgan.get_by_role("link", name="Rules").click()
    for name, following in (("Lock", "Unlock"), ("Pin", "Unpin")):
        press(morgan, name)
        expect(morgan.get_by_role("button", name=following)).to_be_focused()
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
        for name in ("Lock", "Unlock", "Pin", "Unpin"):
            expect(page.get_by_role("button", name=name)).to_be_hidden()
    press(morgan, "Unlock")
    expect(status(morgan)).to_have_text("The post is open for comments again.")
    grace.reload()
    grace.get_by_label("Your comment").fill("So am I.")
    press(morgan, "Lock")
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
    press(comments.first, "Delete")
    expect(morgan.locator(".opened")).to_contain_text("Delete this comment?")
    press(morgan.locator(".opened"), "Cancel")
    expect(comments.first.get_by_role("button", name="Delete")).to_be_focused()
    press(comments.first, "Delete")
    fill_opened(morgan, ADVERTISING, "Delete")
    expect(status(morgan)).to_have_text("The comment is deleted.")
    expect(comments).to_have_count(1)
    expect_in_inbox(ada, "Buy them now.", f"Reason: {ADVERTISING}")
    morgan.once("dialog", lambda dialog: dialog.accept())
    press(comments, "Delete")  # of the moderator, who need not give a reason
    expect(comments).to_have_count(0)
    press(morgan.locator("#post"), "Delete")
    fill_opened(morgan, "", "Delete")
    expect(morgan).to_have_url(f"{url}/")
    expect(status(morgan)).to_have_text("The post is deleted.")
    expect_in_inbox(ada, "A moderator has deleted something of yours")


def test_everything_by_a_member_is_deleted_in_steps(sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    for title in ("On looms", "On mills"):
        write(ada, title)
        answer(ada, "Buy them now.")
    morgan.goto(f"/@{name_of(ada)}")
    press(morgan, "Moderate")
    press(morgan, "Delete everything by this member")
    form = morgan.locator(".opened")
    expect(form).to_contain_text("There are 2 posts, 2 comments and 0 images.")
    steps = []

    def answer_late(route):
        """Pretend that there is much more, and let the test continue the second step."""
        steps.append(route)
        if len(steps) == 1:
            route.fulfill(json={"removed": 2000, "left": 4})
        elif len(steps) > 2:
            route.continue_()

    morgan.route("**/removal", answer_late)
    fill_opened(morgan, ADVERTISING, "Delete everything")
    expect(form.get_by_role("progressbar")).to_have_js_property("value", 2000)
    expect(form.get_by_role("progressbar")).to_have_js_property("max", 2004)
    steps[1].continue_()
    expect(morgan.get_by_text("No posts yet.")).to_be_visible()
    expect(status(morgan)).to_have_text("Everything by this member is deleted.")
    assert all(step.request.post_data_json == {"reason": ADVERTISING} for step in steps)
    expect_in_inbox(ada, "A moderator has deleted something of yours", f"Reason: {ADVERTISING}")


def test_a_removal_ends_while_the_member_goes_on_writing(sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    write(ada)
    morgan.goto(f"/@{name_of(ada)}")
    press(morgan, "Moderate")
    press(morgan, "Delete everything by this member")
    for removed in (0, 1):
        step = {"removed": removed, "left": 1}
        morgan.route("**/removal", lambda route: route.fulfill(json=step))  # noqa: B023
        fill_opened(morgan, ADVERTISING, "Delete everything")
        expect(status(morgan)).to_contain_text("The member has written something new.")
        expect(morgan.get_by_role("heading", level=1)).to_be_focused()
        press(morgan, "Moderate")
        press(morgan, "Delete everything by this member")


def test_an_account_is_deleted_when_nothing_by_it_is_left(url, sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    name = name_of(ada)
    write(ada, "On looms")
    everything, account = "Delete everything by this member", "Delete the account"
    morgan.goto(f"/@{name}")
    press(morgan, "Moderate")
    expect(morgan.get_by_role("button", name=account)).to_be_hidden()
    press(morgan, everything)
    fill_opened(morgan, "", "Delete everything")
    expect(status(morgan)).to_have_text("Everything by this member is deleted.")
    press(morgan, "Moderate")
    expect(morgan.get_by_role("button", name=everything)).to_be_hidden()
    press(morgan, account)
    expect(morgan.locator(".opened")).to_contain_text(f"Delete the account of {name}?")
    write(ada, "On mills")  # meanwhile
    fill_opened(morgan, "", account)
    expect(morgan.locator(".opened .problem")).to_contain_text("has posts or comments left")
    ada.once("dialog", lambda dialog: dialog.accept())
    press(ada.locator("#post"), "Delete")
    expect(status(ada)).to_have_text("The post is deleted.")
    press(morgan.locator(".opened"), account)
    expect(morgan).to_have_url(f"{url}/moderation")
    expect(status(morgan)).to_have_text("The account is deleted.")
    log = morgan.locator("[data-log] > li").first
    expect(log).to_contain_text(f"{name_of(morgan)} deleted a member")
    assert morgan.goto(f"/@{name}").status == 404


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


def test_members_and_visitors_have_no_desk(people, url, sign_up, fresh_url):
    ada = sign_up()
    asked = []
    ada.on("request", lambda request: asked.append(request.url))
    ada.goto("/moderation")
    expect(ada.get_by_text("This page is for moderators.")).to_be_visible()
    ada.wait_for_load_state("networkidle")
    assert f"{url}/reports" not in asked
    expect(ada.get_by_role("heading", name="Log")).to_be_hidden()
    expect(ada.get_by_role("link", name="Moderation")).to_be_hidden()
    visitor = people.open_page(base_url=url)
    visitor.goto("/moderation")
    expect(visitor.get_by_role("link", name="Sign in to look after")).to_be_visible()
    visitor.goto(f"/@{name_of(ada)}")
    for name in ("Report", "Moderate"):
        expect(visitor.get_by_role("button", name=name)).to_be_hidden()
    flask(fresh_url, "users", "promote", name_of(ada))
    ada.reload()  # which asks the service who the reader is
    expect(ada.get_by_role("heading", name="Log")).to_be_visible()
    expect(ada.get_by_role("link", name="Moderation")).to_be_visible()


def test_a_role_that_changes_is_seen_without_a_new_sign_in(sign_up, fresh_url):
    ada = sign_up()
    link = ada.get_by_role("link", name="Moderation")
    for minutes, command in ((2, "promote"), (4, "demote")):
        flask(fresh_url, "users", command, name_of(ada))
        time = datetime.now(UTC) + timedelta(minutes=minutes)
        ada.context.clock.set_fixed_time(time)  # so that the page asks again
        ada.goto("/")
        expect(link).to_have_count(1 if command == "promote" else 0)


def test_a_list_that_does_not_arrive_says_why(sign_up_moderator):
    morgan = sign_up_moderator()
    morgan.route("**/applications", lambda route: route.abort())
    morgan.goto("/moderation")
    expect(morgan.locator("#desk .problem:visible")).to_have_text(
        "There is no connection. Try again."
    )
    expect(morgan.locator("[data-log] > li")).to_have_count(1)


def test_by_keyboard(sign_up, sign_up_moderator):
    ada, grace, morgan = sign_up(), sign_up(), sign_up_moderator()
    write(ada, "On looms")
    answer(ada, "Buy them now.")
    grace.goto(ada.url)
    tab_to(grace, "Report", "Enter")  # on the post
    grace.keyboard.type(ADVERTISING)
    tab_to(grace, "Report", "Enter")
    expect(status(grace)).to_contain_text("Thank you.")
    morgan.goto("/")
    tab_to(morgan, "Moderation", "Enter")
    morgan.wait_for_url("**/moderation")
    expect(reports(morgan)).to_be_visible()
    tab_to(morgan, "Suspend the author", "Enter")
    morgan.keyboard.type(ADVERTISING)
    tab_to(morgan, "A week", "ArrowDown")
    expect(morgan.get_by_label("A month")).to_be_checked()
    tab_to(morgan, "Suspend", "Enter")
    expect(reports(morgan)).to_contain_text("suspended the author.")
    expect(reports(morgan)).to_be_focused()
    tab_to(morgan, f"Post by {name_of(ada)}")
    tab_to(morgan, "Delete", "Enter")
    morgan.keyboard.press("Escape")
    expect(reports(morgan).get_by_role("button", name="Delete")).to_be_focused()
    morgan.keyboard.press("Enter")
    tab_to(morgan, "Delete", "Enter")
    expect(reports(morgan)).to_contain_text(" · deleted")
    expect(reports(morgan)).to_be_focused()


def test_on_a_phone(sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator(**TOUCH)
    write(ada, "w" * 200, "z" * 300)
    post, member = ada.url, f"/@{name_of(ada)}"
    ada.evaluate(
        "name => fetch('/users/me', {method: 'PATCH', body: JSON.stringify({display_name: name}),"
        "headers: {'Content-Type': 'application/json'}})",
        "W" * 64,
    )
    grace = sign_up(**TOUCH)
    grace.goto(post)
    report(grace, grace.locator("#post"), "z" * 300)
    morgan.locator(".menu summary").tap()
    morgan.get_by_role("link", name="Moderation").tap()
    for button in ("Delete", "Suspend the author", "Dismiss"):
        reports(morgan).get_by_role("button", name=button).tap()
        assert morgan.evaluate(TARGETS) == [], button
        for width in (320, 360, 1280):
            morgan.set_viewport_size({"width": width, "height": 700})
            assert not morgan.evaluate(OVERFLOW), (button, width)
        morgan.set_viewport_size(TOUCH["viewport"])
    for path in (post, member, "/", "/moderation"):
        for width in (320, 360, 1280):
            morgan.set_viewport_size({"width": width, "height": 700})
            morgan.goto(path)
            morgan.wait_for_load_state("networkidle")
            assert morgan.evaluate(SHIFTS) <= 0.02, (path, width)
            assert not morgan.evaluate(OVERFLOW), (path, width)
            assert morgan.locator("header.site").bounding_box()["height"] < 70, width
            if width == 360:
                assert morgan.evaluate(TARGETS) == [], path
