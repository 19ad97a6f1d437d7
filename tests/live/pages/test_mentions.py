"""Names that are offered after `@`."""

import re

import pytest
from playwright.sync_api import expect

from tests.live.browser import TOUCH, name_of, write

OFFERED = "#offered-names > li"


@pytest.fixture
def members(sign_up):
    """Ada, who writes, and three members whose names begin alike, in their order."""
    ada = sign_up()
    others = sorted(name_of(sign_up()) for _ in range(3))
    ada.goto("/write")
    return ada, others


def start_of(names):
    """Return the longest beginning that names have in common."""
    length = next(
        index for index, letters in enumerate(zip(*names, strict=False)) if len({*letters}) > 1
    )
    return names[0][:length]


def test_members_are_offered_by_keyboard(members):
    ada, names = members
    text = ada.get_by_label("Text", exact=True)
    text.press_sequentially(f"Hello @{names[0]}")
    expect(ada.locator(OFFERED).first).to_contain_text(f"@{names[0]}")
    expect(text).to_have_attribute("aria-controls", "offered-names")
    ada.keyboard.press("Enter")
    expect(text).to_have_value(f"Hello @{names[0]} ")
    expect(ada.locator(OFFERED)).to_have_count(0)
    expect(text).to_be_focused()
    ada.keyboard.type(f"and @{names[1]}")
    expect(ada.locator(OFFERED).first).to_contain_text(f"@{names[1]}")
    ada.keyboard.press("Escape")
    expect(ada.locator(OFFERED)).to_have_count(0)
    ada.keyboard.press("Enter")
    expect(text).to_have_value(f"Hello @{names[0]} and @{names[1]}\n")
    ada.keyboard.press("Control+Z")
    ada.keyboard.press("Control+Z")
    expect(text).not_to_have_value(re.compile(f"and @{names[1]}"))


def test_nothing_is_offered_within_a_name_and_what_was_offered_ends_with_it(members):
    ada, names = members
    text = ada.get_by_label("Text", exact=True)
    text.press_sequentially(f"@{names[0]}")
    expect(ada.locator(OFFERED).first).to_be_visible()
    ada.keyboard.press("ArrowLeft")
    expect(ada.locator(OFFERED)).to_have_count(0)
    ada.keyboard.press("Enter")
    expect(text).to_have_value(f"@{names[0][:-1]}\n{names[0][-1]}")


def test_arrows_choose_another_member(members):
    ada, names = members
    ada.get_by_label("Text", exact=True).press_sequentially(f"@{start_of(names)}")
    options = ada.locator(OFFERED)
    expect(options.nth(1)).to_be_visible()
    second = options.nth(1).get_attribute("data-name")
    ada.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    ada.keyboard.press("ArrowDown")
    ada.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    ada.keyboard.press("Tab")
    expect(ada.get_by_label("Text", exact=True)).to_have_value(f"@{second} ")


def test_a_member_is_taken_by_touch_and_the_form_stays_open(sign_up):
    ada, grace = sign_up(**TOUCH), sign_up()
    name = name_of(grace)
    write(ada)
    grace.goto(ada.url)
    ada.get_by_label("Your comment").press_sequentially(f"@{name}")
    ada.locator(OFFERED).first.tap()
    expect(ada.get_by_label("Your comment")).to_have_value(f"@{name} ")
    ada.get_by_role("button", name="Comment", exact=True).tap()
    expect(ada.locator(".thread")).to_contain_text(f"@{name}")
    grace.reload()
    grace.get_by_role("link", name="Reply").click()
    grace.get_by_label("Your reply").press_sequentially(f"@{name_of(ada)}")
    expect(grace.locator(OFFERED).first).to_be_visible()
    grace.keyboard.press("Escape")
    expect(grace.locator(OFFERED)).to_have_count(0)
    expect(grace.get_by_label("Your reply")).to_be_visible()


def test_nothing_is_offered_in_other_places(members):
    ada, names = members
    text = ada.get_by_label("Text", exact=True)
    asked = []
    ada.on("request", lambda request: asked.append(request.url))
    for typed in ("@", "@a", f"a@{names[0]}", f"x@y.{names[0]}", f"/@{names[0]}"):
        text.fill("")
        text.press_sequentially(typed)
        ada.wait_for_timeout(400)
        expect(ada.locator(OFFERED)).to_have_count(0)
    assert not [url for url in asked if "/users?q=" in url]
    text.fill("")
    text.press_sequentially("@no-such-member")
    ada.wait_for_timeout(400)
    expect(ada.locator(OFFERED)).to_have_count(0)
