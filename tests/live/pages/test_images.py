"""Images that are chosen in the editor: sent once, and none is lost."""

import requests
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import TIMEOUT, expect_post, fill_editor, name_of, publish, sign_in
from tests.live.clients import scaled

TITLE, TEXT = "On engines", "They weave algebra."
SLOW_IMAGES = """() => {
  const read = createImageBitmap;
  window.createImageBitmap = async (file) => {
    await new Promise((wait) => setTimeout(wait, 1000));
    return read(file);
  };
}"""


def test_a_session_that_ends_while_images_are_chosen(sign_up, picture_files):
    page = sign_up()
    name = name_of(page)
    fill_editor(page, TITLE, TEXT)
    page.get_by_label("Add images").set_input_files(picture_files)
    page.context.clear_cookies()
    publish(page)
    with page.context.expect_page() as other:
        page.get_by_role("link", name="Sign in in a new tab, and try again.").click()
    sign_in(other.value, name)
    expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
    publish(page)
    expect_post(page)
    expect(page.locator("figure img")).to_have_count(2)


def test_a_connection_that_drops_during_an_upload(sign_up, picture_files):
    page = sign_up()
    keys = []

    def fail_once(route):
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/images", fail_once)
    fill_editor(page, TITLE, TEXT)
    page.get_by_label("Add images").set_input_files(picture_files)
    publish(page)
    expect(page.locator("figure img")).to_have_count(2)
    assert len(keys) == 3
    assert keys[0] == keys[1] != keys[2]


def test_an_upload_that_fails_twice(url, sign_up, picture_files):
    page = sign_up()
    page.route("**/images", lambda route: route.abort("connectionreset"), times=2)
    fill_editor(page, TITLE, TEXT)
    page.get_by_label("Add images").set_input_files(picture_files[0])
    publish(page)
    expect(page.get_by_text("The post is saved, but some images are not.")).to_be_visible()
    publish(page)
    expect_post(page)
    expect(page.locator("figure img")).to_have_count(1)
    author = requests.get(f"{url}/posts?limit=1", timeout=20).json()[0]["author"]["id"]
    assert len(requests.get(f"{url}/posts?author={author}", timeout=20).json()) == 1


def test_images_that_are_too_large_or_too_many(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    animation = tmp_path / "sea.gif"
    animation.write_bytes(b"GIF89a" + bytes(6_000_000))
    page.get_by_label("Add images").set_input_files(animation)
    expect(page.get_by_text("Too large or too many: sea.gif.")).to_be_visible()
    photo = tmp_path / "photo.png"
    photo.write_bytes(pictures.encoded(pictures.noise((1600, 1200)), "PNG"))
    assert photo.stat().st_size > 5_242_880
    files = [photo]
    for number in range(10):
        files.append(tmp_path / f"{number}.png")
        files[-1].write_bytes(pictures.png())
    page.get_by_label("Add images").set_input_files(files)
    expect(page.get_by_text("Too large or too many: 9.png.")).to_be_visible()
    expect(page.locator("[data-images] > li")).to_have_count(10)
    publish(page)
    expect_post(page)
    expect(page.locator("figure img")).to_have_count(10)
    expect(page.locator("figure img").first).to_have_attribute("width", "1600")


def test_publishing_waits_for_photos_that_are_made_smaller(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    photo = tmp_path / "photo.png"
    photo.write_bytes(pictures.encoded(pictures.noise((1600, 1200)), "PNG"))
    page.evaluate(SLOW_IMAGES)
    page.get_by_label("Add images").set_input_files(photo)
    publish(page)
    expect_post(page)
    expect(page.locator("figure img")).to_have_count(1)


def test_images_of_25_megapixels(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    count = scaled(quick=2, full=10)
    files = [tmp_path / f"{number}.jpg" for number in range(count)]
    for file in files:
        file.write_bytes(pictures.encoded(pictures.scene(size=(5774, 4329)), "JPEG"))
    page.get_by_label("Add images").set_input_files(files)
    publish(page)
    expect(page.locator("figure img")).to_have_count(count, timeout=4 * TIMEOUT)
    expect(page.locator("figure img").first).to_have_js_property("naturalWidth", 5774)
