"""Posts, comments and accounts that change or disappear while somebody else uses them."""

import requests
from playwright.sync_api import expect

from tests.live.browser import answer, expect_post, name_of, press_rare, sign_in, write


def test_an_edit_by_somebody_else(sign_up):
    page = sign_up()
    write(page)
    page.get_by_role("link", name="Edit").click()
    second = page.context.new_page()
    second.goto(page.url)
    second.get_by_label("Title").fill("On looms")
    second.get_by_role("button", name="Save").click()
    expect_post(second, "On looms")
    page.get_by_label("Title").fill("On mills")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("It has been changed since you opened it.")).to_be_visible()
    expect(page.get_by_label("Title")).to_have_value("On mills")
    with page.context.expect_page() as current:
        page.get_by_role("link", name="See what is there now").click()
    expect_post(current.value, "On looms")
    page.get_by_role("button", name="Save").click()
    expect_post(page, "On mills")


def test_an_edit_of_what_is_not_theirs(people, url, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(f"{ada.url}/edit")
    expect(grace.get_by_text("Only its author may edit this post.")).to_be_visible()
    expect(grace.get_by_label("Title")).to_be_hidden()
    visitor = people.open_page(base_url=url)
    visitor.goto(f"{ada.url}/edit")
    expect(visitor.get_by_role("link", name="Sign in to write.")).to_be_visible()
    expect(visitor.get_by_label("Title")).to_be_hidden()
    second = visitor.context.new_page()
    second.goto("/signin")
    sign_in(second, name_of(grace))
    expect(visitor.get_by_text("Only its author may edit this post.")).to_be_visible()
    expect(visitor.get_by_label("Title")).to_be_hidden()


def test_a_post_that_is_deleted_while_somebody_answers_it(url, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    grace.get_by_label("Your comment").fill("And cloth?")
    ada.on("dialog", lambda dialog: dialog.accept())
    press_rare(ada, "Delete")
    ada.wait_for_url(f"{url}/")
    grace.get_by_role("button", name="Comment").click()
    expect(grace.get_by_text("This post has been deleted.")).to_be_visible()
    expect(grace.get_by_label("Your comment")).to_have_value("And cloth?")


def test_a_comment_by_an_account_that_is_gone(url, sign_up):
    ada, grace = sign_up(), sign_up()
    write(ada)
    grace.goto(ada.url)
    answer(grace, "And cloth?")
    session = {cookie["name"]: cookie["value"] for cookie in grace.context.cookies()}
    user = requests.get(f"{url}/users/me", cookies=session, timeout=20).json()["id"]
    gone = requests.delete(f"{url}/users/{user}?content=keep", cookies=session, timeout=20)
    assert gone.status_code == 204
    ada.reload()
    expect(ada.locator(".thread")).to_contain_text("a former member")
    ada.get_by_role("link", name="Reply").click()
    ada.get_by_label("Your reply").fill("Cloth too.")
    ada.locator(".opened").get_by_role("button", name="Reply").click()
    expect(ada.locator(".level-2")).to_contain_text("Cloth too.")
    expect(ada.locator(".thread [data-action=edit]")).to_have_count(1)
