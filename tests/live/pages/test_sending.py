"""A text is sent once, and none is lost without a connection."""

import requests
from playwright.sync_api import expect

from tests.live.browser import TEXT, TITLE, expect_post, fill_editor, publish, write


def test_a_double_click(url, sign_up):
    page = sign_up()
    write(page)
    page.get_by_label("Your comment").fill("And cloth?")
    page.get_by_role("button", name="Comment").dblclick()
    expect(page.locator(".thread")).to_contain_text("And cloth?")
    post = page.url.rpartition("/")[2].partition("#")[0]
    assert len(requests.get(f"{url}/posts/{post}/comments", timeout=20).json()) == 1


def test_what_is_typed_while_a_text_is_sent(sign_up):
    page = sign_up()
    write(page)
    held = []

    def hold(route):
        held.append(route)

    page.route("**/comments", hold)
    page.get_by_label("Your comment").fill("And cloth?")
    page.get_by_role("button", name="Comment").click()
    expect(page.get_by_label("Your comment")).not_to_be_editable()
    while not held:  # the script locks the field before it sends
        page.wait_for_timeout(20)
    held[0].abort()
    expect(page.get_by_text("There is no connection.")).to_be_visible()
    expect(page.get_by_label("Your comment")).to_be_editable()
    expect(page.get_by_label("Your comment")).to_have_value("And cloth?")


def test_a_dropped_connection(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    page.context.set_offline(True)
    publish(page)
    expect(page.get_by_text("There is no connection.")).to_be_visible()
    page.context.set_offline(False)
    publish(page)
    expect_post(page)
