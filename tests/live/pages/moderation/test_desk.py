"""The page of moderation: its lists, applications, and who sees it."""

import re
from datetime import UTC, datetime, timedelta

import requests
from playwright.sync_api import expect

from tests.live.browser import PASSWORD, name_of, open_menu, write
from tests.live.layout import OVERFLOW
from tests.live.moderation import flask, press, reports, status


def test_the_desk_asks_once_for_each_list(url, sign_up_moderator):
    morgan = sign_up_moderator()
    morgan.wait_for_load_state("networkidle")
    asked = []
    morgan.on("request", lambda request: asked.append((request.resource_type, request.url)))
    morgan.goto("/moderation")
    expect(morgan.get_by_role("heading", name="Log")).to_be_visible()
    morgan.wait_for_load_state("networkidle")
    on_each_page = ("/users/me", "/notifications/unread", "/moderation/open")
    others = [url + path for path in on_each_page]
    lists = [path for kind, path in asked if kind == "fetch" and path not in others]
    assert sorted(lists) == sorted(
        url + path
        for path in (
            *("/applications", "/comments?limit=20", "/moderation/log"),
            *("/reports", "/reports?state=closed"),
        )
    )


def test_what_waits_is_counted_beside_the_link(url, sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    waiting = morgan.locator(".menu summary [data-waiting]")
    expect(waiting).to_be_hidden()
    write(ada)
    morgan.goto(ada.url)
    for person in (ada, morgan):
        person.evaluate(
            """() => fetch(`/posts/${location.pathname.split("/").at(-1)}/reports`, {
              method: "POST",
              headers: {"Content-Type": "application/json"},
              body: JSON.stringify({reason: "Why?"}),
            })"""
        )
    morgan.context.clock.set_fixed_time(datetime.now(UTC) + timedelta(minutes=2))
    morgan.goto("/")
    expect(waiting).to_have_text("2")
    expect(ada.locator(".menu summary [data-waiting]")).to_be_hidden()
    morgan.goto("/moderation")
    expect(waiting).to_have_text("2")
    reports(morgan).last.get_by_role("button", name="Dismiss").click()
    morgan.get_by_role("button", name="Dismiss the report").click()
    expect(waiting).to_have_text("1")
    morgan.set_viewport_size({"width": 360, "height": 740})
    open_menu(morgan)
    expect(morgan.locator(".menu li [data-waiting]")).to_have_text("1")
    assert not morgan.evaluate(OVERFLOW)


def test_reading_does_not_keep_the_count_away(sign_up, sign_up_moderator):
    """A page that was read asks for the notifications that are left, and so not again so soon."""
    ada, morgan = sign_up(), sign_up_moderator()
    for title in ("On engines", "On looms"):
        write(ada, title)
    morgan.goto(ada.url)
    morgan.context.clock.set_fixed_time(datetime.now(UTC) + timedelta(minutes=2))
    with morgan.expect_response("**/moderation/open"):
        morgan.evaluate("""() => {
          const unread = JSON.parse(localStorage.getItem("posting:unread") ?? "{}");
          localStorage.setItem("posting:unread", JSON.stringify({...unread, asked: Date.now()}));
          document.dispatchEvent(new Event("visibilitychange"));
        }""")


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


def test_members_and_visitors_have_no_desk(people, url, sign_up, fresh_url):
    ada = sign_up()
    asked = []
    ada.on("request", lambda request: asked.append(request.url))
    ada.goto("/moderation")
    expect(ada.get_by_text("This page is for moderators.")).to_be_visible()
    ada.wait_for_load_state("networkidle")
    assert f"{url}/reports" not in asked
    expect(ada.get_by_role("heading", name="Log")).to_be_hidden()
    open_menu(ada)
    expect(ada.get_by_role("link", name="My page")).to_be_visible()
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
    open_menu(ada)
    expect(ada.get_by_role("link", name="Moderation")).to_be_visible()


def test_a_role_that_changes_is_seen_without_a_new_sign_in(sign_up, fresh_url):
    ada = sign_up()
    link = ada.locator(".menu").get_by_text("Moderation")
    for minutes, command in ((2, "promote"), (4, "demote")):
        flask(fresh_url, "users", command, name_of(ada))
        time = datetime.now(UTC) + timedelta(minutes=minutes)
        ada.context.clock.set_fixed_time(time)  # so that the page asks again
        ada.goto("/")
        open_menu(ada)
        expect(ada.get_by_role("link", name="My page")).to_be_visible()
        expect(link).to_be_visible(visible=command == "promote")


def test_a_list_that_does_not_arrive_says_why(sign_up_moderator):
    morgan = sign_up_moderator()
    morgan.route("**/applications", lambda route: route.abort())
    morgan.goto("/moderation")
    expect(morgan.locator("#desk .problem:visible")).to_have_text(
        "There is no connection. Try again."
    )
    expect(morgan.locator("[data-log] > li")).to_have_count(1)
