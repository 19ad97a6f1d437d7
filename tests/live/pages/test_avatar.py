"""The picture of a member: cut out in the settings, and shown beside the name."""

import io

import PIL.Image
import pytest
import requests
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import TEXT, TITLE, expect_post, fill_editor, publish


@pytest.fixture
def picture(tmp_path):
    """A picture with three squares: red, green and blue."""
    image = PIL.Image.new("RGB", (900, 300), "red")
    image.paste("green", (300, 0, 600, 300))
    image.paste("blue", (600, 0, 900, 300))
    file = tmp_path / "me.png"
    file.write_bytes(pictures.encoded(image, "PNG"))
    return file


def color_of(url, page):
    """Return the color in the middle of the picture that a page shows."""
    path = page.locator("#own-avatar img").get_attribute("src")
    image = PIL.Image.open(io.BytesIO(requests.get(f"{url}{path}", timeout=20).content))
    return max(zip(image.convert("RGB").getpixel((128, 128)), "RGB", strict=True))[1]


def choose(page, picture):
    page.goto("/settings")
    page.get_by_label("Choose a picture").set_input_files(picture)
    expect(page.get_by_label("Zoom")).to_be_focused()


def test_the_middle_is_cut_out_and_shown_beside_the_name(url, sign_up, picture):
    page = sign_up()
    choose(page, picture)
    page.get_by_role("button", name="Save the picture").click()
    expect(page.get_by_role("img", name="Your picture")).to_be_visible()
    assert color_of(url, page) == "G"
    page.goto("/write")
    fill_editor(page, TITLE, TEXT)
    publish(page)
    expect_post(page)
    expect(page.locator("article img.face")).to_have_js_property("naturalWidth", 64)
    expect(page.locator(".menu img.face")).to_have_js_property("naturalWidth", 64)
    page.locator("article .author").click()
    expect(page.locator("img.portrait")).to_have_js_property("naturalWidth", 256)


def test_another_part_is_chosen_by_keyboard(url, sign_up, picture):
    page = sign_up()
    choose(page, picture)
    page.keyboard.press("Tab")
    expect(page.get_by_label("Left or right")).to_be_focused()
    page.keyboard.press("End")
    page.get_by_role("button", name="Save the picture").press("Enter")
    expect(page.get_by_role("img", name="Your picture")).to_be_visible()
    assert color_of(url, page) == "B"


def test_another_part_is_chosen_by_mouse(url, sign_up, picture):
    page = sign_up()
    choose(page, picture)
    canvas = page.get_by_role("img", name="Your new picture")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 5, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 2, y, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Save the picture").click()
    expect(page.get_by_role("img", name="Your picture")).to_be_visible()
    assert color_of(url, page) == "R"


def test_it_is_deleted(url, sign_up, picture):
    page = sign_up()
    choose(page, picture)
    page.get_by_role("button", name="Save the picture").click()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete the picture").click()
    expect(page.get_by_role("img", name="Your picture")).to_be_hidden()
    page.reload()
    expect(page.get_by_label("Username").first).to_be_visible()
    expect(page.get_by_role("img", name="Your picture")).to_be_hidden()


def test_a_file_that_is_no_picture(sign_up, tmp_path):
    page = sign_up()
    file = tmp_path / "plan.pdf"
    file.write_bytes(b"%PDF-1.7")
    page.goto("/settings")
    page.get_by_label("Choose a picture").set_input_files(file)
    expect(page.get_by_text("plan.pdf is not an image that your browser")).to_be_visible()
