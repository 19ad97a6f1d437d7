"""Images that are sent while a text is written, and published with it."""

import re

import pytest
import requests
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import (
    TEXT,
    TIMEOUT,
    TITLE,
    TOUCH,
    close_tab,
    expect_post,
    fill_editor,
    name_of,
    press_rare,
    publish,
    tab_to,
    type_into,
)
from tests.live.clients import scaled
from tests.live.layout import OVERFLOW

ROWS = "form:visible [data-images] > li"
SLOW = {"offline": False, "latency": 50, "downloadThroughput": 100_000, "uploadThroughput": 100_000}


@pytest.fixture
def three(tmp_path):
    """Files of three pictures with different sizes."""
    files = []
    for number, side in enumerate((50, 60, 70)):
        files.append(tmp_path / f"{number}.png")
        files[-1].write_bytes(pictures.encoded(pictures.scene(size=(side, 40)), "PNG"))
    return files


def add(page, files):
    """Add images, and wait until the service has them."""
    field = page.locator("form:visible [name=images]").last
    before = len(field.input_value().split())
    page.get_by_label("Add images").last.set_input_files(files)
    ids = rf"([\w-]{{21}} ?){{{before + len(files)}}}"
    expect(field).to_have_value(re.compile(ids), timeout=TIMEOUT)


def widths(page, selector="figure img"):
    return [image.get_attribute("width") for image in page.locator(selector).all()]


def test_images_are_put_in_order_and_turned(sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, three)
    page.get_by_role("button", name="Move 2.png up").click()
    former = page.locator("[name=images]").input_value()
    page.get_by_role("button", name="Turn 0.png").click()
    expect(page.locator("[name=images]")).not_to_have_value(former)
    publish(page)
    expect_post(page)
    assert widths(page) == ["40", "70", "60"]


def test_an_image_that_is_turned_is_turned_in_the_text(sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, three[:1])
    page.get_by_role("button", name="Insert 0.png into the text").click()
    text = page.get_by_label("Text", exact=True)
    former = text.input_value()
    page.get_by_role("button", name="Turn 0.png").click()
    expect(text).not_to_have_value(former)
    publish(page)
    expect_post(page)
    assert widths(page, ".text img") == ["40"]
    expect(page.locator("figure")).to_have_count(0)


def test_an_animation_cannot_be_turned(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    file = tmp_path / "sea.gif"
    file.write_bytes(pictures.animation("GIF"))
    add(page, [file])
    expect(page.get_by_role("button", name="Remove sea.gif")).to_be_visible()
    expect(page.get_by_role("button", name="Turn sea.gif")).to_be_hidden()


def test_a_tab_that_still_has_an_image_does_not_delete_it_from_the_post(url, sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, three[:1])
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(ROWS)).to_have_count(1)
    publish(other)
    expect_post(other)
    with page.expect_response(lambda response: response.request.method == "DELETE") as deleted:
        page.get_by_role("button", name="Remove 0.png").click()
    assert deleted.value.status == 404
    other.reload()
    expect(other.locator("figure img")).to_have_js_property("naturalWidth", 50)


def test_typing_goes_on_while_an_image_is_inserted(sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, "")
    text = page.get_by_label("Text", exact=True)
    text.type("We went to the mar")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Image", exact=True).click()
    text.focus()
    chooser.value.set_files(three[0])
    expect(text).to_have_value(re.compile("images"))
    page.keyboard.type("ket.")
    expect(text).to_have_value(re.compile(r"^We went to the market\.\n\n!\[\]"))


def test_an_edit_of_the_text_keeps_an_image_that_was_added_elsewhere(url, sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, three[:1])
    publish(page)
    expect_post(page)
    post = page.url.rpartition("/")[2]
    page.get_by_role("link", name="Edit").click()
    page.evaluate(
        """async (post) => {
          const canvas = document.createElement("canvas");
          const body = new FormData();
          body.append("file", await new Promise((done) => canvas.toBlob(done)));
          await fetch(`/posts/${post}/images`, { method: "POST", body });
        }""",
        post,
    )
    page.get_by_label("Title").fill("On looms")
    page.get_by_role("button", name="Save").click()
    expect_post(page, "On looms")
    assert len(requests.get(f"{url}/posts/{post}", timeout=20).json()["images"]) == 2


def test_a_draft_keeps_images_that_cannot_be_loaded_now(sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, three[:2])
    noted = page.locator("[name=images]").input_value()
    page.route("**/users/me/images", lambda route: route.abort("connectionreset"))
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("could not be loaded")
    page.get_by_label("Title").fill("On looms")
    add(page, three[2:])
    assert set(noted.split()) < set(page.locator("[name=images]").input_value().split())
    page.unroute("**/users/me/images")
    page.reload()
    expect(page.locator(ROWS)).to_have_count(3)


def test_a_draft_keeps_its_images(sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, three)
    page.get_by_role("button", name="Insert 0.png into the text").click()
    page.get_by_label("Describe 1.png").fill("A mill")
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        page.get_by_label("Text", exact=True).focus()
    page.reload()
    expect(page.locator(ROWS)).to_have_count(3)
    for image in page.locator(f"{ROWS} img").all():
        expect(image).not_to_have_js_property("naturalWidth", 0)
    expect(page.locator(f"{ROWS} input").nth(1)).to_have_value("A mill")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("[data-preview] img")).to_have_js_property("naturalWidth", 50)
    publish(page)
    expect_post(page)
    assert widths(page, "article img") == ["50", "60", "70"]
    expect(page.get_by_role("img", name="A mill")).to_be_visible()


def test_an_image_of_a_draft_that_has_expired(sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, "")
    add(page, three)
    page.get_by_role("button", name="Insert 0.png into the text").click()
    page.evaluate(
        "id => fetch(`/images/${id}`, { method: 'DELETE' })",
        page.locator("[name=images]").input_value().split()[0],
    )
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("1 image of your draft could not be kept")
    expect(page.locator(ROWS)).to_have_count(2)
    text = page.get_by_label("Text", exact=True)
    expect(text).to_have_value(re.compile(r"^\s*$"))
    text.fill(TEXT)
    publish(page)
    expect_post(page)
    assert widths(page) == ["60", "70"]


def test_an_edit_changes_the_images_when_it_is_saved(url, sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, three[:2])
    publish(page)
    expect_post(page)
    post = page.url.rpartition("/")[2]
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("button", name="Remove image 1").click()
    add(page, three[2:])
    page.get_by_role("button", name="Move 2.png up").click()
    assert len(requests.get(f"{url}/posts/{post}", timeout=20).json()["images"]) == 2
    page.get_by_role("button", name="Save").click()
    expect_post(page)
    assert widths(page) == ["70", "60"]


def test_a_discarded_draft_of_an_edit_shows_the_images_again(sign_up, three):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, three[:2])
    publish(page)
    expect_post(page)
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("button", name="Remove image 1").click()
    page.reload()
    expect(page.locator(ROWS)).to_have_count(1)
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(ROWS)).to_have_count(2)


class TestInComments:
    @pytest.fixture
    def page(self, sign_up):
        page = sign_up()
        fill_editor(page, TITLE, TEXT)
        publish(page)
        expect_post(page)
        return page

    def test_a_comment_has_images_that_open_in_the_gallery(self, page, three):
        page.get_by_label("Your comment").fill("See these.")
        add(page, three)
        page.get_by_role("button", name="Comment", exact=True).click()
        comment = page.locator(".thread > li")
        expect(comment.locator("figure img")).to_have_count(3)
        expect(page.locator(ROWS)).to_have_count(0)
        comment.locator("figure a").first.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Image 1 of 3")
        page.keyboard.press("ArrowRight")
        expect(dialog).to_contain_text("Image 2 of 3")
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)

    def test_a_reply_and_an_edit_have_images(self, page, three):
        page.get_by_label("Your comment").fill("See this.")
        add(page, three[:1])
        page.get_by_role("button", name="Comment", exact=True).click()
        comments = page.locator(".thread > li")
        expect(comments.locator("figure img")).to_have_count(1)
        comments.first.get_by_role("link", name="Reply").click()
        page.get_by_label("Your reply").fill("And this.")
        page.locator(".opened [data-files=images]").set_input_files(three[1])
        expect(page.locator(".opened [name=images]")).to_have_value(re.compile("."))
        page.locator(".opened").get_by_role("button", name="Reply", exact=True).click()
        expect(comments.locator("figure img")).to_have_count(2)
        press_rare(comments.first, "Edit")
        opened = page.locator(".opened")
        expect(opened.locator("[data-images] > li")).to_have_count(1)
        opened.get_by_role("button", name=re.compile("^Remove")).click()
        opened.locator("[data-files=images]").set_input_files(three[2])
        expect(opened.locator("[name=images]")).to_have_value(re.compile("."))
        opened.get_by_role("button", name="Save").click()
        expect(opened).to_have_count(0)
        expect(comments.first.locator("figure img")).to_have_attribute("width", "70")

    def test_a_draft_keeps_its_images(self, page, three):
        page.get_by_label("Your comment").fill("See these.")
        add(page, three[:2])
        page.reload()
        expect(page.locator(ROWS)).to_have_count(2)
        page.get_by_role("button", name="Comment", exact=True).click()
        expect(page.locator(".thread figure img")).to_have_count(2)

    def test_there_are_four_at_most(self, page, three):
        page.get_by_label("Your comment").fill("See these.")
        page.get_by_label("Add images").set_input_files([*three, *three])
        expect(page.get_by_text("You can add 4 images; 1.png was left out.")).to_be_visible()
        expect(page.locator(ROWS)).to_have_count(4)


def test_a_journey_with_photos_on_a_phone(sign_up, three):
    """Three photos are turned, described, put in order and published, and a comment has one."""
    page = sign_up(**TOUCH)
    fill_editor(page, TITLE, TEXT)
    add(page, three)
    page.get_by_role("button", name="Turn 0.png").tap()
    expect(page.locator(f"{ROWS} img").first).to_have_js_property("naturalWidth", 40)
    page.get_by_label("Describe 1.png").fill("A mill")
    page.get_by_role("button", name="Move 2.png up").tap()
    page.get_by_role("button", name="Publish").tap()
    expect_post(page)
    assert widths(page) == ["40", "70", "60"]
    assert not page.evaluate(OVERFLOW)
    page.get_by_role("img", name="A mill").tap()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Image 3 of 3 A mill")
    dialog.get_by_role("button", name="Close").tap()
    page.get_by_label("Your comment").fill("See this.")
    add(page, three[:1])
    page.get_by_role("button", name="Comment", exact=True).tap()
    expect(page.locator(".thread figure img")).to_have_count(1)
    assert not page.evaluate(OVERFLOW)
    page.goto("/settings")
    page.get_by_label("Choose a picture").set_input_files(three[0])
    page.get_by_role("button", name="Save the picture").tap()
    expect(page.get_by_role("img", name="Your picture")).to_be_visible()
    assert not page.evaluate(OVERFLOW)


def test_a_journey_with_photos_by_keyboard(by_keyboard, three):
    page = by_keyboard
    page.goto("/write")
    type_into(page, "Title", TITLE)
    type_into(page, "Text", TEXT)
    # A chooser that opens at once after `expect_file_chooser` would not be seen.
    with page.expect_file_chooser() as chooser:
        tab_to(page, "Add images", "Enter")
    chooser.value.set_files(three)
    expect(page.locator("[name=images]")).to_have_value(re.compile(r"([\w-]{21} ?){3}"))
    tab_to(page, "Describe 0.png for those who cannot see it")
    page.keyboard.type("A loom")
    tab_to(page, "Move 1.png up", "Enter")
    expect(page.get_by_role("status")).to_have_text("This is image 1 now.")
    expect(page.get_by_label("Describe 1.png")).to_be_focused()
    tab_to(page, "Remove 2.png", "Enter")
    tab_to(page, "Publish", "Enter")
    expect_post(page)
    assert widths(page) == ["60", "50"]
    expect(page.get_by_role("img", name="A loom")).to_be_visible()


@pytest.mark.timeout(600)
def test_a_tab_that_is_closed_publishes_all_or_nothing(url, sign_up, tmp_path):
    """Three photos over 100 KB/s, closed at many moments. The draft is published later, once."""
    page = sign_up()
    name, context = name_of(page), page.context
    [author] = requests.get(f"{url}/users?username={name}", timeout=20).json()
    files = [tmp_path / f"{number}.jpg" for number in range(3)]
    for number, file in enumerate(files):
        picture = pictures.noise((320 + number, 240))
        file.write_bytes(pictures.encoded(picture, "JPEG"))

    def posts(title):
        listed = f"{url}/posts?author={author['id']}&expand=images"
        found = requests.get(listed, timeout=20).json()
        return [post for post in found if post["title"] == title]

    for number in range(scaled(quick=4, full=40)):
        title, milliseconds = f"Moment {number}", number * scaled(quick=1000, full=100)
        tab = context.new_page()
        tab.goto(f"{url}/write")
        fill_editor(tab, title, TEXT)
        context.new_cdp_session(tab).send("Network.emulateNetworkConditions", SLOW)
        tab.get_by_label("Add images").set_input_files(files)
        publish(tab)
        tab.wait_for_timeout(milliseconds)
        close_tab(tab)
        published = posts(title)
        assert [len(post["images"]) for post in published] in ([], [3])
        page.goto(f"{url}/unsent")
        draft = page.get_by_role("link", name=title)
        if draft.count() == 0:
            continue  # the tab had seen that it was published
        draft.click()
        expect(page.get_by_label("Title")).to_have_value(title)
        noted = page.locator("[name=images]").input_value().split()
        expect(page.locator(ROWS)).to_have_count(len(noted))
        publish(page)
        expect_post(page, title)
        [post] = posts(title)
        assert [image["id"] for image in post["images"]] == noted
        assert not published or post == published[0]
