"""Moderation by keyboard and on a phone."""

from playwright.sync_api import expect

from tests.live.browser import TOUCH, answer, name_of, tab_to, write
from tests.live.layout import OVERFLOW, SHIFTS, TARGETS
from tests.live.moderation import ADVERTISING, report, reports, status


def test_by_keyboard(sign_up, sign_up_moderator):
    ada, grace, morgan = sign_up(), sign_up(), sign_up_moderator()
    write(ada, "On looms")
    answer(ada, "Buy them now.")
    grace.goto(ada.url)
    tab_to(grace, "More actions", "Enter")  # on the post
    tab_to(grace, "Report", "Enter")
    grace.keyboard.type(ADVERTISING)
    tab_to(grace, "Report", "Enter")
    expect(status(grace)).to_contain_text("Thank you.")
    morgan.goto("/")
    tab_to(morgan, name_of(morgan), "Enter")
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
