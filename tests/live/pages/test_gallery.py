"""The images of a post, large and one after the other."""

import pytest
import requests
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import expect_post, fill_editor, publish
from tests.live.layout import OVERFLOW


@pytest.fixture
def path(sign_up, url, tmp_path):
    """The path of a post with three images, of which the first is in the text."""
    files = []
    for number, size in enumerate([(1000, 700), (700, 1000), (300, 200)]):
        files.append(tmp_path / f"{number}.jpg")
        files[-1].write_bytes(pictures.photo(size))
    ada = sign_up()
    fill_editor(ada, "On mills", "They weave algebra.\n\n")
    ada.get_by_label("Add images").set_input_files(files)
    rows = ada.locator("[data-images] li")
    expect(rows).to_have_count(3)
    for number, row in enumerate(rows.all()):
        row.locator("input").fill(f"A mill, seen {number + 1} times")
    ada.locator("[data-action=insert-image]").first.click()
    publish(ada)
    expect_post(ada, "On mills")
    return ada.url.removeprefix(url)


def expect_image(page, number, alt):
    gallery = page.get_by_role("dialog")
    expect(gallery).to_have_accessible_name(f"Image {number} of 3")
    image = gallery.locator("img")
    expect(image).to_have_attribute("alt", alt)
    expect(image).to_be_visible()
    expect(image).to_have_js_property("complete", True)
    assert image.evaluate("image => image.naturalWidth") > 0
    expect(gallery.locator("bdi")).to_have_text(alt)
    assert gallery.evaluate("gallery => gallery.scrollHeight <= gallery.clientHeight")


def test_by_mouse(people, url, path):
    page = people.open_page(base_url=url, viewport={"width": 1280, "height": 700})
    page.goto(path)
    page.locator("figure a").last.click()
    expect_image(page, 3, "A mill, seen 3 times")
    page.get_by_role("button", name="Next").click()
    expect_image(page, 1, "A mill, seen 1 times")
    page.get_by_role("button", name="Previous").click()
    expect_image(page, 3, "A mill, seen 3 times")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(url + path)
    page.locator(".text a:has(img)").click()
    expect_image(page, 1, "A mill, seen 1 times")
    original = page.locator("dialog a").get_attribute("href")
    assert requests.get(original, timeout=30).headers["Content-Type"] == "image/jpeg"


def test_by_keyboard(people, url, path):
    page = people.open_page(base_url=url)
    page.goto(path)
    link = page.locator("figure a").first
    link.focus()
    page.keyboard.press("Enter")
    expect_image(page, 2, "A mill, seen 2 times")
    expect(page.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect_image(page, 3, "A mill, seen 3 times")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect_image(page, 1, "A mill, seen 1 times")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(link).to_be_focused()


def test_on_a_phone(people, url, path):
    page = people.open_page(
        base_url=url,
        viewport={"width": 360, "height": 640},
        device_scale_factor=2,
        has_touch=True,
        is_mobile=True,
    )
    page.goto(path)
    first, second = page.locator("figure").all()
    assert first.bounding_box()["y"] == second.bounding_box()["y"]  # a grid
    assert not page.evaluate(OVERFLOW)
    page.locator("figure a").first.tap()
    expect_image(page, 2, "A mill, seen 2 times")
    swipe = page.context.new_cdp_session(page)
    for start, end, number in ((300, 60, 3), (60, 300, 2), (200, 180, 2)):
        point = {"x": start, "y": 200}
        swipe.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        point = {"x": end, "y": 200}
        swipe.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        swipe.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        expect_image(page, number, f"A mill, seen {number} times")


def test_without_javascript_a_link_leads_to_the_file(people, url, path):
    page = people.open_page(base_url=url, java_script_enabled=False)
    page.goto(path)
    for link in (".text a:has(img)", "figure a >> nth=0"):
        file = requests.get(url + page.locator(link).get_attribute("href"), timeout=30)
        assert file.headers["Content-Type"] == "image/jpeg"
    expect(page.get_by_role("dialog")).to_have_count(0)
