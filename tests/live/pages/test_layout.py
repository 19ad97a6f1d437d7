"""The layout of pages with unusual content, and pages without JavaScript."""

import re
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import (
    PASSWORD,
    TOUCH,
    answer,
    expect_post,
    fill_editor,
    name_of,
    open_menu,
    publish,
    reply_to,
    write,
)
from tests.live.layout import ACTIONS, OVERFLOW, SHIFTS, TARGETS

ADD_REPLY = """async (content) => {
  const last = [...document.querySelectorAll(".thread > li")].at(-1).id.slice(2);
  const post = location.pathname.split("/").at(-1);
  const answer = await fetch(`/posts/${post}/comments`, {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({content, parent_id: window.last ?? last}),
  });
  window.last = (await answer.json()).id;
}"""


def test_nothing_is_wider_than_the_screen(sign_up):
    page = sign_up()
    name = name_of(page)
    text = f"{'x' * 300}\n\n```\n{'y' * 300}\n```\n\n|{'a|' * 40}\n|{'-|' * 40}\n|{'b|' * 40}\n"
    write(page, "w" * 200, text)
    post = page.url
    answer(page, "z" * 200)
    for _ in range(8):
        page.evaluate(ADD_REPLY, "z" * 200)
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Title").fill("w" * 199)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Edited")).to_be_visible()
    page.goto("/settings")
    page.get_by_label("Display name").fill("W" * 64)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".menu summary")).to_have_text("W" * 64)
    paths = (
        "/",
        "/search?q=www*",
        "/search?q=zzz*&show=comments",
        f"/search?q={name}&show=members",
        f"/@{name}",
        "/write",
        "/settings",
        "/signin",
        "/reset",
        "/nowhere",
    )
    for path in (post, *paths):
        page.goto(path)
        for width in (320, 1280):
            page.set_viewport_size({"width": width, "height": 700})
            assert not page.evaluate(OVERFLOW), (path, width)


def test_right_to_left_text_is_laid_out_from_the_right(sign_up):
    page = sign_up()
    write(page, "שלום עולם", "طقس جميل اليوم")
    direction = "element => getComputedStyle(element).direction"
    assert page.get_by_role("heading", level=1).evaluate(direction) == "rtl"
    assert page.locator("article.post .text").evaluate(direction) == "rtl"


def test_a_quote_has_its_bar_where_its_text_begins(sign_up):
    page = sign_up()
    hebrew = "שלום עולם"
    write(page, "On rain", f"> English\n\n> {hebrew}\n\nEnglish\n\n{hebrew}\n\n- {hebrew}")
    styles = page.locator(".text blockquote").evaluate_all(
        """quotes => quotes.map((quote) => {
          const { borderLeftWidth, borderRightWidth } = getComputedStyle(quote);
          return [borderLeftWidth, borderRightWidth];
        })"""
    )
    assert styles == [["3px", "0px"], ["0px", "3px"]]
    sides = page.locator(".text > p, .text li").evaluate_all(
        """elements => elements.map((element) => {
          const range = document.createRange();
          range.selectNodeContents(element);
          const text = range.getBoundingClientRect();
          const box = element.getBoundingClientRect();
          return text.left - box.left < box.right - text.right ? "left" : "right";
        })"""
    )
    assert sides == ["left", "right", "right"]


def test_a_printed_page_has_what_is_read_and_no_more(sign_up):
    page = sign_up(color_scheme="dark")
    write(page, "On engines", "They weave algebra.")
    answer(page, "And cloth?")
    page.emulate_media(media="print")
    for text in ("They weave algebra.", "And cloth?", "1 comment"):
        expect(page.get_by_text(text, exact=True)).to_be_visible()
    for hidden in ("nav", "form", ".actions", "footer"):
        for element in page.locator(hidden).all():
            expect(element).to_be_hidden()
    color = page.locator("article.post .text").evaluate("text => getComputedStyle(text).color")
    assert color == "rgb(0, 0, 0)"


def test_a_printed_page_cuts_nothing(sign_up):
    page = sign_up()
    write(page, "On engines", f"```\n{'code ' * 60}\n```\n\n| a |\n|---|\n| {'word' * 60} |")
    page.emulate_media(media="print")
    for part in ("pre", ".table"):
        is_cut = page.locator(f".text {part}").evaluate(
            "part => part.scrollWidth > part.clientWidth"
        )
        assert not is_cut, part


def test_a_list_in_a_comment_looks_like_one_in_a_post(sign_up):
    page = sign_up()
    text = (
        "- one\n  - two\n    - three\n\n1. four\n   - five\n\n> - six\n\nA note[^1].\n\n[^1]: Seven"
    )
    write(page, "On lists", text)
    page.get_by_label("Your comment").fill(text)
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".thread .footnotes")).to_be_visible()
    looks = """text => [...text.querySelectorAll("ul, ol")].map((list) => {
      const {listStyleType, marginTop} = getComputedStyle(list);
      return [listStyleType, parseFloat(marginTop) > 0];
    })"""
    of_post = page.locator(".post .text").evaluate(looks)
    assert of_post[:3] == [["disc", False], ["circle", False], ["square", False]]  # it is first
    assert ["disc", True] in of_post
    of_comment = page.locator(".thread .text").evaluate(looks)
    assert of_comment == of_post


def test_what_is_in_the_menu_is_in_line(sign_up):
    page = sign_up()
    page.locator(".menu summary").click()
    begins = """() => [...document.querySelectorAll(".menu li > *")]
      .filter((element) => element.checkVisibility())
      .map((element) => {
        const range = new Range();
        range.selectNodeContents(element);
        return range.getBoundingClientRect().left;
      })"""
    places = page.evaluate(begins)
    assert len(places) == 4
    assert len({*places}) == 1


def test_no_ring_is_around_a_heading_on_touch_screens(sign_up):
    page = sign_up(**TOUCH)
    write(page)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_be_focused()
    assert heading.evaluate("heading => getComputedStyle(heading).outlineStyle") == "none"


def test_a_finger_hits_everything(people, url, sign_up):
    page = sign_up(**TOUCH)
    write(page, "On engines", "They weave algebra.")
    answer(page, "And cloth?")
    reply_to(page, page.locator(".level-1"), "Cloth too.")
    post, member = page.url, f"{url}/@{name_of(page)}"
    grace = sign_up()
    grace.goto(post)
    answer(grace, "And linen?")
    page.locator(".level-1").first.get_by_role("link", name="Reply").tap()
    page.get_by_label("Your reply").fill("Unfinished")
    for address in (
        *(post, f"{post}/edit", member, f"{member}?show=comments", f"{url}/settings"),
        *(f"{url}/", f"{url}/search?q=engines", f"{url}/write", f"{url}/inbox", f"{url}/unsent"),
        f"{url}/moderation",
        f"{url}/signin",
    ):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.locator(".menu summary").tap()
        assert page.evaluate(TARGETS) == [], address
    visitor = people.open_page(**TOUCH)
    for address in (
        *(post, f"{url}/signin", f"{url}/signup", f"{url}/reset", f"{url}/reset#code"),
        *(f"{url}/account-deleted", f"{url}/no"),
    ):
        visitor.goto(address)
        expect(visitor.get_by_role("link", name="Sign up").first).to_be_visible()
        assert visitor.evaluate(TARGETS) == [], address


@pytest.mark.parametrize("options", [{}, TOUCH])
def test_actions_are_apart_and_begin_where_the_text_does(sign_up, options):
    ada, grace = sign_up(), sign_up(**options)
    write(ada)
    grace.goto(ada.url)
    expect(grace.locator(".post .actions > *").filter(visible=True)).to_have_count(4)
    places = grace.evaluate(ACTIONS)
    assert places[0][0] == pytest.approx(grace.locator("h1").bounding_box()["x"], abs=1)
    for (_, end), (start, _) in pairwise(places):
        assert start - end >= 15


def test_only_oneself_finds_unsent_texts_on_the_own_page(sign_up):
    ada, grace = sign_up(), sign_up()
    for page in (ada, grace):
        page.goto(f"/@{name_of(ada)}")
        expect(page.get_by_role("link", name="Comments", exact=True)).to_be_visible()
    expect(grace.locator("main").get_by_role("link", name="Unsent")).to_be_hidden()
    ada.locator("main").get_by_role("link", name="Unsent").click()
    expect(ada.get_by_role("heading", level=1)).to_have_text("Unsent texts")


def test_the_comments_of_a_member_lead_to_their_posts(sign_up):
    page = sign_up()
    write(page)
    post = page.url
    answer(page, "And cloth?")
    page.goto(f"/@{name_of(page)}")
    page.get_by_role("link", name="Comments", exact=True).click()
    item = page.get_by_role("listitem").filter(has_text="And cloth?")
    expect(item.get_by_role("link", name="On engines")).to_have_attribute(
        "href", post[post.index("/p/") :]
    )
    item.locator("time").click()
    expect(page.locator(".thread > li:target")).to_contain_text("And cloth?")


def test_a_thread_fifty_replies_deep(sign_up):
    page = sign_up(viewport={"width": 320, "height": 700})
    write(page)
    answer(page, "Reply 0")
    for number in range(1, 50):
        page.evaluate(ADD_REPLY, f"Reply {number}")
    page.reload()
    items = page.locator(".thread > li")
    expect(items).to_have_count(50)
    expect(page.get_by_role("link", name="Parent")).to_have_count(49)
    assert items.last.bounding_box()["width"] > 200
    items.last.get_by_role("link", name="Parent").click()
    expect(items.nth(48)).to_be_in_viewport()


def test_a_link_to_a_comment_on_a_later_page_finds_it(url, sign_up):
    page = sign_up()
    write(page, "On engines", "They weave algebra.")
    post = page.url
    script = """async (post) => {
      const headers = {"Content-Type": "application/json"};
      let last;
      for (let number = 0; number < 205; number++) {
        const body = JSON.stringify({content: `Comment ${number}`});
        last = await fetch(`/posts/${post}/comments`, {method: "POST", headers, body});
      }
      return (await last.json()).id;
    }"""
    last = page.evaluate(script, re.search("/p/(.*)", post)[1])
    page.goto(f"{post}#c-{last}")
    expect(page.locator(f"#c-{last}")).to_contain_text("Comment 204")


def test_a_visitor_without_javascript_reads_everything(url, people, sign_up):
    ada = sign_up()
    write(ada, "On engines", "They *weave* algebra.")
    answer(ada, "And cloth?")
    page = people.open_page(base_url=url, java_script_enabled=False)
    page.goto(f"/@{name_of(ada)}")
    page.get_by_role("link", name="On engines").click()
    expect(page.locator("main")).to_contain_text("They weave algebra.")
    expect(page.locator("main")).to_contain_text("And cloth?")
    page.goto("/signin")
    expect(page.locator("main form")).to_have_attribute("inert", "")


@pytest.mark.parametrize("columns", [3, 20])
def test_a_table_has_whole_words_and_scrolls_inside_itself(sign_up, columns):
    page = sign_up(viewport={"width": 360, "height": 700})
    words = ["Wednesday", "Photographs", "Responsibility", "Neighbourhood", "Description"] * 4
    row = f"| {' | '.join(words[:columns])} |\n"
    text = f"{row}{'|---' * columns}|\n{row}"
    write(page, "A table", text)
    page.get_by_label("Your comment").fill(text)
    page.get_by_role("button", name="Comment").click()
    expect(page.get_by_role("group", name="Table")).to_have_count(2)
    for table in page.get_by_role("group", name="Table").all():
        assert table.evaluate("table => table.scrollWidth > table.clientWidth")
        cells = table.locator("th, td")
        heights = cells.evaluate_all("cells => cells.map((cell) => cell.clientHeight)")
        assert max(heights) < 45, heights  # one line
        table.focus()
        page.keyboard.press("ArrowRight")
        for _ in range(100):
            if table.evaluate("table => table.scrollLeft"):
                break
            page.wait_for_timeout(20)
        else:
            pytest.fail("The arrow keys do not scroll the table.")
    assert not page.evaluate(OVERFLOW)


def test_the_header_is_one_line(sign_up):
    page = sign_up(viewport={"width": 320, "height": 700})
    page.goto("/settings")
    page.get_by_label("Display name").fill("W" * 64)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".menu summary")).to_have_text("W" * 64)
    for width in (320, 360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.locator("header.site").bounding_box()["height"] < 70, width


@pytest.mark.parametrize("who", ["visitor", "member"])
@pytest.mark.parametrize("size", [(280, 100), (320, 100), (1280, 200), (640, 200)])
def test_the_name_of_the_community_has_room(people, url, sign_up, who, size):
    width, percent = size
    page = sign_up() if who == "member" else people.open_page(base_url=url)
    page.set_viewport_size({"width": width, "height": 700})
    page.add_init_script(
        f"addEventListener('DOMContentLoaded', () => "
        f"document.documentElement.style.fontSize = '{17 * percent // 100}px')"
    )
    page.goto("/")
    name = page.locator(".home span")
    expect(name).to_have_text("Posting")
    assert name.evaluate("name => name.scrollWidth <= name.clientWidth")
    assert page.locator(".home").bounding_box()["width"] >= 6 * 17 * percent / 100 - 1
    assert not page.evaluate(OVERFLOW)


def test_a_number_in_the_header_covers_nothing(sign_up):
    ada, grace = sign_up(viewport={"width": 360, "height": 700}), sign_up()
    write(ada)
    grace.goto(ada.url)
    answer(grace, "And cloth?")
    ada.context.clock.set_fixed_time(datetime.now(UTC) + timedelta(minutes=2))
    for width in (320, 360, 1280):
        ada.set_viewport_size({"width": width, "height": 700})
        ada.goto("/")
        number = ada.locator(".to-inbox [data-unread]")
        expect(number).to_have_text("1")
        box = number.bounding_box()
        for other in (".to-inbox svg", ".menu summary [data-my-face]", ".to-write"):
            place = ada.locator(other).bounding_box()
            is_left = place["x"] + place["width"] <= box["x"] + 1
            assert is_left or place["x"] >= box["x"] + box["width"] - 1, (width, other)


@pytest.mark.parametrize("width", [280, 320, 360, 641])
def test_an_open_menu_is_within_the_screen(sign_up, width):
    page = sign_up(viewport={"width": width, "height": 700})
    write(page)
    answer(page, "And cloth?")
    reply_to(page, page.locator(".level-1"), "Cloth too.")
    for place in ("#post", ".level-1", ".level-2"):
        page.locator(f"{place} .rare summary").click()
        menu = page.locator(f"{place} .rare ul")
        box = menu.bounding_box()
        assert box["x"] >= 0, place
        assert box["x"] + box["width"] <= width, place
        assert not page.evaluate(OVERFLOW), place
        page.keyboard.press("Escape")
    open_menu(page)
    assert not page.evaluate(OVERFLOW)


def test_a_menu_closes_when_one_goes_elsewhere(sign_up):
    page = sign_up()
    write(page)
    answer(page, "And cloth?")
    of_post, of_comment = (page.locator(f"{place} .rare") for place in ("#post", ".level-1"))
    of_post.locator("summary").click()
    expect(of_post.get_by_role("button", name="Delete")).to_be_visible()
    of_comment.locator("summary").click()
    expect(of_post.get_by_role("button", name="Delete")).to_be_hidden()
    expect(of_comment.get_by_role("button", name="Delete")).to_be_visible()
    page.keyboard.press("Escape")
    expect(of_comment.get_by_role("button", name="Delete")).to_be_hidden()
    expect(of_comment.locator("summary")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1).click()
    expect(of_comment.get_by_role("button", name="Delete")).to_be_hidden()
    of_comment.locator("summary").click()
    of_comment.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Edit your comment")).to_be_focused()
    expect(of_comment.get_by_role("button", name="Delete")).to_be_hidden()
    page.get_by_role("button", name="Cancel").click()
    expect(of_comment.locator("summary")).to_be_focused()


def test_the_menu_leads_to_the_own_page(url, sign_up):
    page = sign_up()
    page.locator(".menu summary").click()
    page.get_by_role("link", name="My page").click()
    expect(page).to_have_url(f"{url}/@{name_of(page)}")
    page.locator(".menu summary").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="My page")).to_be_hidden()
    expect(page.locator(".menu summary")).to_be_focused()


ADD_MANY_COMMENTS = """async (number) => {
  const post = location.pathname.split("/").at(-1);
  const headers = {"Content-Type": "application/json"};
  const body = JSON.stringify({content: "And cloth?"});
  const add = () => fetch(`/posts/${post}/comments`, {method: "POST", headers, body});
  for (let left = number; left > 0; left -= 20) await Promise.all(Array.from({length: 20}, add));
}"""


def test_nothing_moves_while_a_page_is_loaded(people, url, sign_up):
    ada = sign_up()
    write(ada)
    ada.evaluate(ADD_MANY_COMMENTS, 1000)
    post, member = ada.url.removeprefix(url), f"/@{name_of(ada)}"
    paths = [post, f"{post}?sort=newest", f"{post}/edit", member, f"{member}?show=comments"]
    paths += ["/", "/?sort=active", "/search?q=engines", "/write", "/settings", "/unsent"]
    paths += ["/signin", "/signup#code", "/signup", "/reset#code", "/reset", "/account-deleted"]
    paths += ["/nowhere", "/inbox", "/moderation"]
    for page in (ada, people.open_page()):
        for path in paths:
            for width in (360, 1280):
                page.goto("about:blank")  # else a URL with a fragment is not loaded again
                page.set_viewport_size({"width": width, "height": 700})
                page.goto(url + path)
                page.wait_for_load_state("networkidle")
                shift = page.evaluate(SHIFTS)
                assert shift <= 0.02, (path, width, "member" if page is ada else "visitor", shift)


def test_images_have_names(sign_up, picture_files):
    page = sign_up()
    page.goto("/write")
    page.get_by_label("Title").fill("On engines")
    page.get_by_label("Text", exact=True).fill("They weave algebra.")
    page.get_by_label("Add images").set_input_files(picture_files)
    page.get_by_label("Describe loom.png").fill("A loom")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("link", name="A loom")).to_be_visible()
    expect(page.get_by_role("link", name="Image 2 of 2, without a description")).to_be_visible()


LINES = "line => line.clientHeight / parseFloat(getComputedStyle(line).lineHeight)"


@pytest.mark.parametrize("show", ["posts", "comments", "members"])
def test_lines_with_times_stay_single_lines(people, url, show):
    """A time becomes words while the page is loaded, and a line that becomes two moves the rest."""
    account = {"username": f"weavers-of-{show}-in-elm-road", "password": PASSWORD}
    page = people.open_page(base_url=url, viewport={"width": 320, "height": 700})
    page.request.post("/signup", data=account)
    page.request.post("/signin", data=account)
    post = page.request.post("/posts", data={"title": show, "content": "They weave."}).json()
    page.request.post(f"/posts/{post['id']}/comments", data={"content": show})
    page.goto(f"/search?q={show}&show={show}")
    line = page.locator(".posts .meta").first
    expect(line).to_contain_text("weavers")
    for text in ("now", "on September 30, 2026"):
        line.locator("time").evaluate("(time, text) => time.textContent = text", text)
        assert line.evaluate(LINES) < 1.5, text


@pytest.mark.parametrize("has_touch", [False, True])
@pytest.mark.parametrize("width", [320, 360, 1280])
def test_bylines_have_room_and_thumbnails_are_on_the_right(
    people, sign_up, picture_files, width, has_touch
):
    ada = sign_up()
    fill_editor(ada, "Looms", "They weave.")
    ada.get_by_label("Add images").set_input_files(picture_files)
    publish(ada)
    expect_post(ada, "Looms")
    screen = {"width": width, "height": 700}
    page = people.open_page(viewport=screen, has_touch=has_touch, is_mobile=has_touch)
    for path in ("/", "/search?q=looms"):
        page.goto(urljoin(ada.url, path))
        item = page.locator(".posts li:has(img)").first
        assert item.locator(".author").bounding_box()["width"] > 50
        assert item.locator(".by").evaluate("line => line.scrollWidth <= line.clientWidth")
        box, image = item.bounding_box(), item.locator("img").bounding_box()
        assert image["x"] + image["width"] == pytest.approx(box["x"] + box["width"], abs=1)


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_moves_while_thumbnails_are_loaded(people, url, sign_up, tmp_path, width):
    """They arrive late here, and the excerpts beside them are not squeezed."""
    ada = sign_up()
    files = []
    for size in ((640, 480), (200, 900), (900, 200), (32, 32)):
        files.append(tmp_path / f"{size[0]}.png")
        files[-1].write_bytes(pictures.encoded(pictures.scene(size=size), "PNG"))
    for number, file in enumerate(files):
        fill_editor(ada, f"Post {number} on looms and mills", "They weave algebra. " * 20)
        ada.get_by_label("Add images").set_input_files(file)
        publish(ada)
        expect_post(ada, f"Post {number} on looms and mills")
    page = people.open_page(base_url=url, viewport={"width": width, "height": 700})

    def load_late(route):
        time.sleep(0.2)
        route.continue_()

    page.route("**/thumbnail", load_late)
    page.goto(f"/@{name_of(ada)}")
    images = page.locator(".posts img")
    expect(images).to_have_count(len(files))
    page.wait_for_load_state("networkidle")
    for image in images.all():
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", True)
        assert image.evaluate("image => image.naturalWidth") > 0
    assert page.evaluate(SHIFTS) <= 0.02
    for excerpt in page.locator(".excerpt").all():
        assert excerpt.bounding_box()["width"] > 300
    # The title is the only way to the post by keyboard, and its name is that of the post.
    link = page.get_by_role("link", name="Post 3 on looms and mills", exact=True)
    expect(link).to_have_count(1)
    images.first.click()
    expect_post(page, "Post 3 on looms and mills")


@pytest.mark.parametrize("viewport", [(360, 640), (1280, 700)])
def test_a_portrait_fits_into_the_window(people, url, sign_up, tmp_path, viewport):
    width, height = viewport
    file = tmp_path / "portrait.jpg"
    file.write_bytes(pictures.photo((900, 2400)))
    ada = sign_up()
    fill_editor(ada, "On mills", "They weave algebra.")
    ada.get_by_label("Add images").set_input_files(file)
    publish(ada)
    expect_post(ada, "On mills")
    page = people.open_page(base_url=url, viewport={"width": width, "height": height})
    page.goto(ada.url.removeprefix(url))
    image = page.locator("figure img")
    image.scroll_into_view_if_needed()
    expect(image).to_have_js_property("complete", True)
    assert image.bounding_box()["height"] <= 0.75 * height + 1
    assert page.evaluate(SHIFTS) <= 0.02
