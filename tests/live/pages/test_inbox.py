"""The inbox: what members are told, on the pages of two of them."""

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import Locator, Page, Request, expect

from tests.live.browser import (
    ADD_COMMENTS,
    TOUCH,
    answer,
    name_of,
    reply_to,
    sign_in,
    sign_out,
    tab_to,
    write,
)
from tests.live.layout import OVERFLOW

# A notification of a kind that the script does not know, about no post.
UNKNOWN = {
    "id": "u" * 21,
    "kind": "new",
    "created_at": "2026-11-21T09:30:00.125Z",
    "read": True,
    "actor": None,
    "post": None,
    "comment": None,
    "reason": "It was an advertisement.",
    "excerpt": "Cheap looms",
}
ALONE = {"post": None, "unread": 0, "actors": [], "actor_count": 0}
ALONE |= {"first": UNKNOWN, "latest": UNKNOWN}
# Publishes posts that mention a member, as the reader.
MENTION = """async ([name, number]) => {
  const headers = {"Content-Type": "application/json"};
  for (let each = 0; each < number; each++) {
    const body = JSON.stringify({title: `Post ${each}`, content: `Ask @${name}.`});
    await fetch("/posts", {method: "POST", headers, body});
  }
}"""


def later(page: Page, minutes: int = 2) -> None:
    """Let the browser's clock show a later time, so that the page asks for the count again."""
    page.context.clock.set_fixed_time(datetime.now(UTC) + timedelta(minutes=minutes))


def expect_count(page: Page, number: str) -> None:
    """Check the number in the header and in the title."""
    place = page.locator("[data-unread]")
    if number:
        expect(place).to_have_text(number)
        expect(page).to_have_title(re.compile(rf"^\({re.escape(number)}\) "))
    else:
        expect(place).to_be_hidden()
        expect(page).to_have_title(re.compile(r"^[^(]"))


def rows(page: Page) -> Locator:
    return page.locator("[data-notifications] > li")


def unread(page: Page) -> Locator:
    return page.locator("[data-notifications] .unread")


def note_questions(page: Page) -> list[Request]:
    """Return the list of all requests for the count that the browser of a page will send."""
    asked: list[Request] = []

    def note(request: Request) -> None:
        if request.url.endswith("/notifications/unread"):
            asked.append(request)

    page.context.on("request", note)
    return asked


def test_two_members_are_told_of_each_other(url, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    post = ada.url
    grace.goto(post)
    answer(grace, "And cloth?")

    later(ada)
    ada.goto("/")
    expect_count(ada, "1")
    ada.get_by_role("link", name="Inbox").click()
    ada.wait_for_url("**/inbox")
    expect(ada.get_by_role("heading", level=2)).to_have_text("On engines")
    expect(unread(ada)).to_have_count(1)
    expect(rows(ada)).to_contain_text("And cloth?")
    ada.get_by_role("link", name=f"{name_of(grace)} commented").click()
    expect(ada.locator(".thread > li:target")).to_contain_text("And cloth?")
    expect_count(ada, "")
    reply_to(ada, ada.locator(".level-1"), f"Cloth too, @{name_of(grace)}.")

    later(grace)
    grace.goto("/")
    expect_count(grace, "1")
    grace.goto("/inbox")
    expect(rows(grace)).to_have_count(1)  # a reply is not also listed as a mention
    grace.get_by_role("link", name=f"{name_of(ada)} replied to you").click()
    expect(grace.locator(".thread > li:target")).to_contain_text("Cloth too")
    expect(grace.get_by_role("link", name=f"@{name_of(grace)}")).to_be_visible()
    expect_count(grace, "")
    grace.goto("/inbox")
    expect(rows(grace)).to_have_count(1)
    expect(unread(grace)).to_have_count(0)
    expect(grace.get_by_role("button", name="Mark all as read")).to_be_hidden()


def test_a_mention_in_a_post_leads_to_the_post(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada, "On looms", f"Ask @{name_of(grace)}.")
    grace.goto("/inbox")
    grace.get_by_role("link", name=f"{name_of(ada)} mentioned you in the post").click()
    grace.wait_for_url(f"**{ada.url[ada.url.index('/p/') :]}")


def test_all_are_marked_as_read(sign_up):
    ada, grace = sign_up(), sign_up()
    for title in ("On engines", "On looms"):
        write(ada, title)
        grace.goto(ada.url)
        grace.evaluate(ADD_COMMENTS, ["One", "Two"])
    ada.goto("/inbox")
    expect(ada.get_by_role("heading", level=2)).to_have_text(["On looms", "On engines"])
    expect(unread(ada)).to_have_count(2)
    expect(rows(ada).first).to_contain_text(f"2 new from {name_of(grace)}")
    expect(rows(ada).first).to_contain_text("Two")
    expect_count(ada, "4")
    ada.get_by_role("button", name="Mark all as read").click()
    expect(unread(ada)).to_have_count(0)
    expect_count(ada, "")
    expect(ada.get_by_role("button", name="Mark all as read")).to_be_hidden()
    expect(ada.locator("[data-notifications]")).to_be_focused()
    ada.reload()
    expect(rows(ada)).to_have_count(2)
    expect(unread(ada)).to_have_count(0)
    expect(rows(ada).first).to_contain_text(f"{name_of(grace)} commented")


def test_a_line_a_post_leads_to_the_first_new_comment(sign_up):
    ada, bob, eve = (sign_up() for _ in range(3))
    write(ada)
    for member in (bob, eve, bob):
        member.goto(ada.url)
        member.evaluate(ADD_COMMENTS, ["x", f"By {name_of(member)}"])
    ada.goto("/inbox")
    expect(rows(ada)).to_have_count(1)
    words = f"6 new from {name_of(bob)} and {name_of(eve)}"
    expect(rows(ada)).to_contain_text(words)
    expect(rows(ada)).to_contain_text(f"By {name_of(bob)}")  # the latest
    rows(ada).get_by_role("link", name=words).click()
    expect(ada.locator(".thread > li:target")).to_have_id(
        ada.locator(".thread > li").first.get_attribute("id")
    )
    expect_count(ada, "")
    ada.go_back()
    expect(rows(ada)).to_contain_text(f"{name_of(bob)} commented")
    expect(unread(ada)).to_have_count(0)


def test_what_a_new_tab_shows_is_read(sign_up):
    """It begins with the comment that the link names, so those before it stay unread."""
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    ids = grace.evaluate(ADD_COMMENTS, ["One", "Two", "Three"])
    ada.goto("/inbox")
    expect_count(ada, "3")
    link = rows(ada).get_by_role("link", name="3 new from")
    link.evaluate(
        "(link, [first, second]) => { link.href = link.href.replaceAll(first, second) }", ids[:2]
    )
    with ada.context.expect_page():
        link.click(modifiers=["Control"])
    expect_count(ada, "1")
    ada.reload()
    expect(unread(ada)).to_contain_text([f"{name_of(grace)} commented"])
    expect(rows(ada).get_by_role("link", name="commented")).to_have_attribute(
        "href", re.compile(ids[0])
    )


def test_a_list_of_posts_says_what_is_new(url, sign_up):
    ada, grace = sign_up(), sign_up()
    for title in ("On engines", "On looms"):
        write(ada, title)
    expect(ada.get_by_role("button", name="Mute")).to_be_visible()
    grace.goto(ada.url)
    ids = grace.evaluate(ADD_COMMENTS, ["One", "Two"])
    ada.goto("/")
    looms = ada.locator(".posts article").first
    expect(looms).to_contain_text("2 new 2 comments")
    expect(ada.locator(".news")).to_have_count(1)
    ada.goto(f"/@{name_of(ada)}")
    expect(ada.locator(".news")).to_have_text("2 new")
    ada.get_by_role("link", name="2 new").click()
    expect(ada.locator(".thread > li:target")).to_have_id(f"c-{ids[0]}")
    expect(ada.locator(".new")).to_have_count(2)
    ada.goto("/")  # the former page notes what was seen as it is left
    ada.wait_for_load_state("networkidle")
    with ada.expect_response("**/seen?ids=*"):
        ada.reload()
    expect(ada.locator(".news")).to_have_count(0)
    with grace.expect_response("**/seen?ids=*"):
        grace.goto("/")
    expect(grace.locator(".news")).to_have_count(0)
    sign_out(grace)
    expect(grace.get_by_role("link", name="Sign in", exact=True)).to_be_visible()
    asked: list[str] = []
    grace.on("request", lambda request: asked.append(request.url))
    grace.reload()
    grace.wait_for_load_state("networkidle")
    assert [each for each in asked if "/seen" in each] == []


def test_a_post_that_was_not_opened_stays_unread(sign_up):
    ada, grace = sign_up(), sign_up()
    for title in ("On engines", "On looms"):
        write(ada, title)
        grace.goto(ada.url)
        grace.evaluate(ADD_COMMENTS, ["One"])
    ada.goto("/inbox")
    expect_count(ada, "2")
    rows(ada).first.get_by_role("link", name="commented").click()  # the newer one
    expect(ada.locator(".thread > li:target")).to_contain_text("One")
    expect_count(ada, "1")
    ada.go_back()
    expect(unread(ada)).to_have_count(1)
    expect(ada.get_by_role("heading", name="On engines")).to_be_visible()


def test_two_devices_agree_on_what_was_seen(url, people, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    grace.evaluate(ADD_COMMENTS, ["One", "Two"])
    phone = people.open_page(base_url=url, **TOUCH)
    phone.goto("/signin")
    sign_in(phone, name_of(ada))
    expect(phone.locator(".menu")).to_contain_text(name_of(ada))
    phone.goto(ada.url)
    expect(phone.locator(".new")).to_have_count(2)
    later(ada)
    expect_count(phone, "")
    ada.reload()
    expect(ada.get_by_text("Two")).to_be_visible()
    expect_count(ada, "")
    expect(ada.locator(".new")).to_have_count(0)
    ada.goto("/inbox")
    expect(rows(ada)).to_have_count(1)
    expect(unread(ada)).to_have_count(0)


def test_older_ones_follow(sign_up):
    ada, grace = sign_up(), sign_up()
    ada.goto("/inbox")
    expect(ada.get_by_text("There is nothing yet.")).to_be_visible()
    write(ada)
    grace.goto(ada.url)
    grace.evaluate(MENTION, [name_of(ada), 23])
    grace.evaluate(ADD_COMMENTS, [f"Comment {number}" for number in range(101)])
    later(ada)
    ada.goto("/inbox")
    expect(rows(ada)).to_have_count(20)
    expect(ada.get_by_text("There is nothing yet.")).to_be_hidden()
    expect_count(ada, "99+")
    expect(rows(ada).first).to_contain_text(f"101 new from {name_of(grace)}")
    ada.get_by_role("button", name="Show older").click()
    expect(rows(ada)).to_have_count(24)
    expect(rows(ada).nth(20)).to_be_focused()
    expect(rows(ada).last).to_contain_text("Post 0")
    expect(ada.get_by_role("button", name="Show older")).to_be_hidden()
    ada.get_by_role("button", name="Mark all as read").click()
    expect_count(ada, "")


def test_a_kind_that_the_script_does_not_know_has_a_general_sentence(sign_up):
    page = sign_up()
    page.route("**/notifications/posts", lambda route: route.fulfill(json=[ALONE]))
    page.goto("/inbox")
    expect(rows(page)).to_have_count(1)
    for text in ("There is news for you", "Cheap looms", "It was an advertisement."):
        expect(rows(page)).to_contain_text(text)
    expect(page.get_by_role("heading", level=2)).to_have_count(0)


def test_a_post_is_followed_and_muted(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    post = ada.url
    expect(ada.get_by_role("button", name="Mute")).to_be_visible()
    expect(ada.get_by_role("button", name="Follow")).to_be_hidden()  # she is told anyway
    grace.goto(post)
    follow, mute = (grace.get_by_role("button", name=name) for name in ("Follow", "Mute"))
    expect(follow).to_have_attribute("aria-pressed", "false")
    follow.click()
    expect(follow).to_have_attribute("aria-pressed", "true")
    expect(grace.get_by_role("status")).to_contain_text("You follow this post")
    answer(ada, "For those who follow")
    grace.reload()
    expect(follow).to_have_attribute("aria-pressed", "true")
    answer(grace, "My own")  # which shows the post again
    expect(follow).to_have_attribute("aria-pressed", "true")
    mute.click()
    expect(mute).to_have_attribute("aria-pressed", "true")
    expect(follow).to_have_attribute("aria-pressed", "false")
    answer(ada, f"For nobody, @{name_of(grace)}")
    mute.click()
    expect(mute).to_have_attribute("aria-pressed", "false")
    expect(grace.get_by_role("status")).to_have_text("This post is neither followed nor muted.")
    answer(ada, f"For you, @{name_of(grace)}")
    grace.goto("/inbox")
    expect(rows(grace)).to_contain_text([f"{name_of(ada)} mentioned you"])  # the other one was seen
    expect(rows(grace)).to_contain_text("For you")


def test_visitors_have_no_buttons_to_follow_and_ask_for_no_count(url, people, sign_up):
    ada = sign_up()
    write(ada)
    visitor = people.open_page()
    asked = note_questions(visitor)
    visitor.goto(ada.url)
    expect(visitor.get_by_role("link", name="Sign in to comment")).to_be_visible()
    visitor.wait_for_load_state("networkidle")
    for name in ("Follow", "Mute"):
        expect(visitor.get_by_role("button", name=name)).to_be_hidden()
    expect(visitor.locator(".to-inbox")).to_be_hidden()
    visitor.goto(f"{url}/inbox")
    expect(visitor.get_by_role("link", name="Sign in to see your inbox.")).to_be_visible()
    visitor.wait_for_load_state("networkidle")
    assert asked == []


def test_tabs_share_the_count_and_ask_once_a_minute(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    ada.goto("/search")
    other = ada.context.new_page()
    other.goto("/")
    asked = note_questions(ada)
    answer(grace, "And cloth?")
    for page in (ada, other):
        page.reload()
        page.wait_for_load_state("networkidle")
        expect_count(page, "")
    assert asked == []
    later(ada)
    ada.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect_count(ada, "1")
    expect_count(other, "1")
    other.reload()
    other.wait_for_load_state("networkidle")
    expect_count(other, "1")
    assert len(asked) == 1
    later(ada, 4)
    with other.expect_response("**/notifications/unread") as response:
        other.reload()
    assert response.value.status == 304
    expect_count(other, "1")
    other.goto("/inbox")
    other.get_by_role("button", name="Mark all as read").click()
    expect_count(other, "")
    expect_count(ada, "")


def test_the_count_goes_with_the_session(url, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    answer(grace, "And cloth?")
    later(ada)
    ada.goto("/")
    expect_count(ada, "1")
    sign_out(ada)
    ada.wait_for_url(f"{url}/")
    expect_count(ada, "")
    later(grace)
    grace.context.clear_cookies()
    grace.goto("/")
    expect(grace.get_by_role("link", name="Sign in", exact=True)).to_be_visible()


def test_a_list_that_does_not_arrive_says_why(sign_up):
    page = sign_up()
    page.route("**/notifications/posts", lambda route: route.abort())
    page.goto("/inbox")
    expect(page.locator("#inbox > .problem")).to_have_text("There is no connection. Try again.")
    expect(page.get_by_text("There is nothing yet.")).to_be_hidden()


def test_the_inbox_by_keyboard(sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    post = ada.url
    grace.goto(post)
    grace.evaluate(ADD_COMMENTS, ["One", "Two"])
    write(ada, "On looms")
    grace.goto(ada.url)
    grace.evaluate(ADD_COMMENTS, ["Three"])
    later(ada)
    ada.goto("/")
    expect_count(ada, "3")
    tab_to(ada, "Inbox 3", "Enter")
    ada.wait_for_url("**/inbox")
    expect(unread(ada)).to_have_count(2)
    tab_to(ada, "Mark all as read")
    tab_to(ada, "On engines")
    tab_to(ada, f"2 new from {name_of(grace)}", "Enter")
    expect(ada.locator(".thread > li:target")).to_contain_text("One")
    expect_count(ada, "1")
    tab_to(ada, "Mute", "Enter")
    expect(ada.get_by_role("button", name="Mute")).to_be_focused()
    expect(ada.get_by_role("button", name="Mute")).to_have_attribute("aria-pressed", "true")
    tab_to(ada, "Inbox 1", "Enter")
    ada.wait_for_url("**/inbox")
    tab_to(ada, "Mark all as read", "Enter")
    expect_count(ada, "")
    expect(ada.locator("[data-notifications]")).to_be_focused()


def test_the_inbox_fits_a_phone(url, sign_up):
    ada, grace = sign_up(**TOUCH), sign_up()
    write(ada, "w" * 200)
    grace.goto(ada.url)
    grace.evaluate(ADD_COMMENTS, ["z" * 200])
    grace.evaluate(
        "name => fetch('/users/me', {method: 'PATCH', body: JSON.stringify({display_name: name}),"
        "headers: {'Content-Type': 'application/json'}})",
        "W" * 64,
    )
    ada.goto("/inbox")
    expect(rows(ada)).to_contain_text("W" * 64)
    expect_count(ada, "1")
    for width in (320, 360, 1280):
        ada.set_viewport_size({"width": width, "height": 700})
        assert not ada.evaluate(OVERFLOW), width
    ada.get_by_role("link", name="Inbox 1").tap()
    expect(rows(ada)).to_have_count(1)
