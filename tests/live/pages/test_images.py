"""Images that are chosen in the editor: sent once, and none is lost."""

import io
import re

import PIL.Image
import requests
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import (
    TEXT,
    TIMEOUT,
    TITLE,
    expect_post,
    fill_editor,
    name_of,
    publish,
    sign_in,
)
from tests.live.clients import scaled
from tests.live.layout import SHIFTS

IN_TEXT = re.compile(r"!\[\]\(/images/[\w-]{21}\)")
FAILED = "Some images could not be sent. Try again, or remove them."
SLOW_IMAGES = """() => {
  const read = createImageBitmap;
  window.createImageBitmap = async (file) => {
    await new Promise((wait) => setTimeout(wait, 1000));
    return read(file);
  };
}"""


def test_a_session_that_has_ended_when_images_are_chosen(sign_up, picture_files):
    page = sign_up()
    name = name_of(page)
    fill_editor(page, TITLE, TEXT)
    page.context.clear_cookies()
    page.get_by_label("Add images").set_input_files(picture_files)
    publish(page)
    with page.context.expect_page() as other:
        page.get_by_role("link", name="Sign in in a new tab, and try again.").click()
    sign_in(other.value, name)
    expect(page.locator(".menu")).to_contain_text(name)
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


def test_nothing_is_published_without_its_images(url, sign_up, picture_files):
    page = sign_up()
    name = name_of(page)
    page.route("**/images", lambda route: route.abort("connectionreset"), times=4)
    fill_editor(page, TITLE, TEXT)
    page.get_by_label("Add images").set_input_files(picture_files[0])
    row = page.locator("[data-images] > li")
    expect(row.locator(".problem")).to_contain_text("the image was not sent", timeout=TIMEOUT)
    publish(page)
    expect(page.get_by_text(FAILED)).to_be_visible(timeout=TIMEOUT)
    [author] = requests.get(f"{url}/users?username={name}", timeout=20).json()
    posts = f"{url}/posts?author={author['id']}"
    assert requests.get(posts, timeout=20).json() == []
    publish(page)
    expect_post(page)
    expect(page.locator("figure img")).to_have_count(1)
    assert len(requests.get(posts, timeout=20).json()) == 1


def test_images_that_are_too_large_or_too_many(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    animation = tmp_path / "sea.gif"
    animation.write_bytes(pictures.encoded(pictures.noise((2600, 2600)), "GIF"))
    assert animation.stat().st_size > 5_242_880
    page.get_by_label("Add images").set_input_files(animation)
    expect(page.get_by_text("sea.gif is larger than 5 MB. Make the animation")).to_be_visible()
    wide = tmp_path / "wide.gif"
    wide.write_bytes(pictures.encoded(PIL.Image.new("P", (5200, 5000)), "GIF"))
    page.get_by_label("Add images").set_input_files(wide)
    expect(page.get_by_text("wide.gif has too many pixels. Make the animation")).to_be_visible()
    document = tmp_path / "plan.pdf"
    document.write_bytes(b"%PDF-1.7")
    page.get_by_label("Add images").set_input_files(document)
    expect(page.get_by_text("plan.pdf is not an image that your browser can read.")).to_be_visible()
    photo = tmp_path / "photo.png"
    photo.write_bytes(pictures.encoded(pictures.noise((1600, 1200)), "PNG"))
    assert photo.stat().st_size > 5_242_880
    files = [photo]
    for number in range(10):
        files.append(tmp_path / f"{number}.png")
        files[-1].write_bytes(pictures.png())
    page.get_by_label("Add images").set_input_files(files)
    expect(page.get_by_text("You can add 10 images; 9.png was left out.")).to_be_visible()
    expect(page.locator("[data-images] > li")).to_have_count(10)
    publish(page)
    expect_post(page)
    expect(page.locator("figure img")).to_have_count(10)
    expect(page.locator("figure img").first).to_have_attribute("width", "1600")


def test_an_image_of_another_kind_is_converted(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    file = tmp_path / "loom.bmp"
    file.write_bytes(pictures.encoded(pictures.noise((48, 32)), "BMP"))
    page.get_by_label("Add images").set_input_files(file)
    expect(page.get_by_label("Describe loom.bmp")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("1 image added.")
    publish(page)
    expect_post(page)
    expect(page.locator("figure img")).to_have_js_property("naturalWidth", 48)


def test_an_image_with_too_many_pixels_is_made_smaller(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    file = tmp_path / "photo.png"
    file.write_bytes(pictures.encoded(PIL.Image.new("L", (5200, 5000)), "PNG"))
    assert file.stat().st_size < 5_242_880
    page.get_by_label("Add images").set_input_files(file)
    publish(page)
    expect_post(page)
    expect(page.locator("figure img")).to_have_attribute("width", "2560")


def test_no_animation_becomes_a_still_image(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    frames = [pictures.noise((1100, 1000)), pictures.noise((1000, 1100)).rotate(90, expand=True)]
    for format, name, options in (
        ("PNG", "sea.png", {}),
        ("WEBP", "sea.webp", {"lossless": True, "method": 0}),
    ):
        file = tmp_path / name
        options |= {"save_all": True, "append_images": frames[1:]}
        file.write_bytes(pictures.encoded(frames[0], format, **options))
        assert file.stat().st_size > 5_242_880
        page.get_by_label("Add images").set_input_files(file)
        text = f"{name} is larger than 5 MB. Make the animation smaller."
        expect(page.get_by_text(text)).to_be_visible()
    file = tmp_path / "sea.avif"
    file.write_bytes(pictures.animation("AVIF", mode="RGB"))
    page.get_by_label("Add images").set_input_files(file)
    expect(page.get_by_text("sea.avif is an animation. Save it as GIF or WebP")).to_be_visible()
    expect(page.locator("[data-images] > li")).to_have_count(0)


def test_an_image_that_is_made_smaller_stays_transparent(url, sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    drawing = PIL.Image.new("RGBA", (5200, 5000))
    drawing.paste((200, 0, 0, 255), (0, 0, 2600, 5000))
    file = tmp_path / "drawing.png"
    file.write_bytes(pictures.encoded(drawing, "PNG"))
    page.get_by_label("Add images").set_input_files(file)
    publish(page)
    expect_post(page)
    source = page.locator("figure img").get_attribute("src")
    content = requests.get(f"{url}{source}", timeout=20).content
    image = PIL.Image.open(io.BytesIO(content)).convert("RGBA")
    assert [image.getpixel((x, 100))[3] for x in (100, 2500)] == [255, 0]


class TestInTheText:
    def insert(self, page, file):
        page.get_by_label("Add images").set_input_files(file)
        page.get_by_role("button", name=f"Insert {file.name} into the text").click()
        expect(page.get_by_label("Text", exact=True)).to_have_value(IN_TEXT)

    def test_one_is_shown_in_the_preview(self, sign_up, picture_files):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        self.insert(page, picture_files[0])
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("[data-preview] img")).to_have_js_property("naturalWidth", 48)

    def test_one_has_the_description_that_is_typed_later(self, sign_up, picture_files):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        self.insert(page, picture_files[0])
        page.get_by_label("Describe loom.png").fill("A [loom]")
        publish(page)
        expect_post(page)
        expect(page.locator(".text").get_by_role("img", name="A [loom]")).to_be_visible()

    def test_one_that_is_removed_leaves_the_text(self, sign_up, picture_files):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        self.insert(page, picture_files[0])
        page.get_by_role("button", name="Remove loom.png").click()
        expect(page.get_by_label("Text", exact=True)).to_have_value(f"{TEXT}\n\n")
        publish(page)
        expect_post(page)
        expect(page.locator(".text img")).to_have_count(0)

    def test_one_of_a_draft_of_a_former_version_is_not_published(self, sign_up, picture_files):
        page = sign_up()
        fill_editor(page, TITLE, "![](/images/unsent-image-0123abcd)")
        publish(page)
        error = page.locator("#post-content-error")
        expect(error).to_contain_text("An image in this text is no longer there")
        text = page.get_by_label("Text", exact=True)
        expect(text).to_be_focused()
        text.fill("")
        self.insert(page, picture_files[0])
        publish(page)
        expect_post(page)
        expect(page.locator(".text img")).to_have_js_property("naturalWidth", 48)


def test_a_description_that_is_too_long_is_counted(sign_up, picture_files):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    page.get_by_label("Add images").set_input_files(picture_files)
    description = page.get_by_label("Describe mill.png")
    description.fill("x" * 501)
    row = page.locator("[data-images] > li").last
    expect(row.locator(".problem")).to_have_text("This is 1 character too long.")
    publish(page)
    expect(description).to_be_focused()
    description.fill("x" * 500)
    expect(row.locator(".problem")).to_have_text("0 characters left.")
    publish(page)
    expect_post(page)


def test_files_that_are_dropped_beside_the_text_are_added(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    page.get_by_role("heading", level=1).evaluate(
        """async (element) => {
          const canvas = document.createElement("canvas");
          const blob = await new Promise((done) => canvas.toBlob(done));
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([blob], "loom.png", { type: "image/png" }));
          dataTransfer.items.add(new File(["%PDF-1.7"], "plan.pdf", { type: "application/pdf" }));
          const options = { bubbles: true, cancelable: true, dataTransfer };
          for (const type of ["dragover", "drop"])
            if (element.dispatchEvent(new DragEvent(type, options))) throw new Error(type);
        }"""
    )
    expect(page.get_by_label("Describe loom.png")).to_be_visible()
    expect(page.locator("[data-downloads] > li")).to_contain_text("plan.pdf 8 bytes")
    expect(page.get_by_label("Text", exact=True)).to_have_value(TEXT)


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
    expect(page.locator("figure img").first).to_have_attribute("width", "2560")
    # A browser scales the size that it loaded to the column of the grid, of 12rem.
    expect(page.locator("figure img").first).to_have_js_property("naturalWidth", 192)


def test_a_phone_loads_small_files_of_photos(people, url, sign_up, tmp_path):
    """Three photos of 12 megapixels, with a screen of two dots for each pixel."""
    ada = sign_up()
    files = [tmp_path / f"{number}.jpg" for number in range(3)]
    for file in files:
        file.write_bytes(pictures.photo((4000, 3000)))
    fill_editor(ada, TITLE, TEXT)
    ada.get_by_label("Add images").set_input_files(files)
    expect(ada.locator("[data-images] li")).to_have_count(3)
    ada.locator("[data-images] button[data-action=insert-image]").first.click()
    publish(ada)
    expect_post(ada)
    path = ada.url.removeprefix(url)
    phone = people.open_page(
        base_url=url, viewport={"width": 360, "height": 700}, device_scale_factor=2
    )
    loaded = {}

    def add(response):
        if "/images/" in response.url:
            loaded[response.url.removeprefix(url)] = len(response.body())

    phone.on("response", add)
    phone.goto(path)
    images = phone.locator("article img")
    expect(images).to_have_count(3)
    for image in images.all():
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", True)
        assert image.evaluate("image => image.currentSrc").endswith("/640")
    phone.wait_for_load_state("networkidle")
    assert phone.evaluate(SHIFTS) <= 0.02
    assert {file.rpartition("/")[2] for file in loaded} == {"640"}
    assert sum(loaded.values()) <= 500_000
    metadata = requests.get(
        f"{url}{next(iter(loaded)).removesuffix('640')}metadata", timeout=TIMEOUT
    )
    assert metadata.json()["width"] == 2560
