"""Ctrl+Z in a text takes back what a button or a key has changed, and nothing else."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.live.browser import fill_editor, publish

TYPED = "They weave\nalgebra 😀 & <cloth>"
IMAGE = r"!\[\]\(/images/[\w-]{21}\)"


def undo_and_repeat(page: Page, before: str) -> None:
    """Check that one Ctrl+Z brings back the text before, and that it can be repeated."""
    text = page.get_by_label("Text", exact=True)
    after = text.input_value()
    assert after != before
    for repeat in ("Control+y", "Control+Shift+z"):
        page.keyboard.press("Control+z")
        expect(text).to_have_value(before)
        page.keyboard.press(repeat)
        expect(text).to_have_value(after)
    page.keyboard.press("Control+z")
    expect(text).to_have_value(before)


@pytest.fixture
def page(sign_up) -> Page:
    page = sign_up()
    page.goto("/write")
    page.get_by_label("Text", exact=True).focus()
    page.keyboard.type(TYPED)
    return page


@pytest.mark.parametrize("selection", ["End", "Shift+Home", "Control+a"])
@pytest.mark.parametrize("name", ["Bold", "Italic", "Link", "List", "Quote"])
def test_a_mark(page, name, selection):
    page.keyboard.press(selection)
    page.get_by_role("button", name=name).click()
    undo_and_repeat(page, TYPED)
    page.keyboard.press("Control+z")
    assert page.get_by_label("Text", exact=True).input_value() != TYPED  # what was typed before


def test_marks_and_typing_in_turns(page):
    text = page.get_by_label("Text", exact=True)
    states = [TYPED]
    for key in ("Control+b", "x", "Control+i", "y", "Control+k", "z"):
        page.keyboard.press(key)
        states.append(text.input_value())
    for state in reversed(states[:-1]):
        page.keyboard.press("Control+z")
        expect(text).to_have_value(state)
    for state in states[1:]:
        page.keyboard.press("Control+Shift+z")
        expect(text).to_have_value(state)


def test_a_mark_that_is_removed(page):
    page.keyboard.press("Shift+Home")
    page.keyboard.press("Control+b")
    before = page.get_by_label("Text", exact=True).input_value()
    page.keyboard.press("Control+b")
    undo_and_repeat(page, before)


def test_an_image_that_is_inserted_and_removed(page, picture_files):
    text = page.get_by_label("Text", exact=True)
    page.keyboard.press("Control+Home")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Image", exact=True).click()
    chooser.value.set_files(picture_files[0])
    expect(text).to_have_value(re.compile(IMAGE))
    undo_and_repeat(page, TYPED)
    page.keyboard.press("Control+y")
    with_image = text.input_value()
    page.get_by_role("button", name="Remove").click()
    expect(text).not_to_have_value(with_image)
    text.focus()
    undo_and_repeat(page, with_image)


def test_a_description_that_is_put_into_the_text(sign_up, picture_files):
    page = sign_up()
    fill_editor(page, "On engines", "They weave.\n\n")
    text = page.get_by_label("Text", exact=True)
    page.get_by_label("Add images").set_input_files(picture_files[0])
    page.get_by_role("button", name="Insert loom.png").click()
    expect(text).to_have_value(re.compile(rf"{IMAGE}\s*$"))
    before = text.input_value()
    page.get_by_label("Describe loom.png").fill("A loom")
    page.route("**/posts", lambda route: route.abort("connectionreset"))
    publish(page)
    expect(page.get_by_text("There is no connection. Your text is kept")).to_be_visible()
    expect(text).to_have_value(before.replace("![]", "![A loom]"))
    text.focus()
    undo_and_repeat(page, before)
    page.unroute("**/posts")
    publish(page)
    expect(page.locator(".text").get_by_role("img", name="A loom")).to_be_visible()
    page.goto("/unsent")
    expect(page.get_by_text("There are none.")).to_be_visible()


def test_many_lines(page):
    text = page.get_by_label("Text", exact=True)
    lines = "\n".join(["a line"] * 1000)
    text.fill(lines)
    text.press("Control+a")
    press = """(button) => {
      const start = performance.now();
      button.click();
      return performance.now() - start;
    }"""
    milliseconds = page.get_by_role("button", name="List").evaluate(press)
    assert text.input_value() == "\n".join(["- a line"] * 1000)
    assert milliseconds < 3000  # it took 7000 as text, and 60 as HTML
    page.keyboard.press("Control+z")
    assert text.input_value() == lines
