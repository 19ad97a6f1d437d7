"""The layout of pages with unusual content, and pages without JavaScript."""

import re

from playwright.sync_api import expect

from tests.live.browser import answer, name_of, write

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
    text = f"{'x' * 300}\n\n```\n{'y' * 300}\n```\n\n|{'a|' * 40}\n|{'-|' * 40}\n|{'b|' * 40}\n"
    write(page, "w" * 200, text)
    answer(page, "z" * 200)
    for _ in range(8):
        page.evaluate(ADD_REPLY, "z" * 200)
    paths = (
        "/",
        "/search?q=www*",
        f"/@{name_of(page)}",
        "/write",
        "/settings",
        "/signin",
        "/nowhere",
    )
    for path in (page.url, *paths):
        page.goto(path)
        for width in (320, 1280):
            page.set_viewport_size({"width": width, "height": 700})
            overflow = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            assert not page.evaluate(overflow), (path, width)


def test_right_to_left_text_is_laid_out_from_the_right(sign_up):
    page = sign_up()
    write(page, "שלום עולם", "طقس جميل اليوم")
    direction = "element => getComputedStyle(element).direction"
    assert page.get_by_role("heading", level=1).evaluate(direction) == "rtl"
    assert page.locator("article.post .text").evaluate(direction) == "rtl"


def test_a_thread_fifty_replies_deep(sign_up):
    page = sign_up(viewport={"width": 320, "height": 700})
    write(page)
    answer(page, "Reply 0")
    for number in range(1, 50):
        page.evaluate(ADD_REPLY, f"Reply {number}")
    page.reload()
    items = page.locator(".thread > li")
    expect(items).to_have_count(50)
    expect(page.get_by_role("link", name="reply to another comment")).to_have_count(44)
    assert items.last.bounding_box()["width"] > 200
    items.last.get_by_role("link", name="reply to another comment").click()
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
    expect(page.locator("form")).to_have_attribute("inert", "")
