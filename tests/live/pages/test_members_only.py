"""The way of a member through a community that only members may read, behind nginx."""

import pytest
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import PASSWORD, name_of, sign_in, sign_out
from tests.live.clients import sign_in as sign_in_by_api

SECRET = "They weave zyzzyva."


@pytest.fixture
def site(start_site):
    return start_site(POSTING_READING="members", POSTING_NAME="The Loom")


@pytest.fixture
def ada(site):
    return sign_in_by_api(site.url, "ada", site.client())


@pytest.fixture
def post(site, ada):
    """The URL of a post by Ada with an image and a comment."""
    body = {"title": "On zyzzyva", "content": SECRET}
    post = ada.post(f"{site.url}/posts", json=body, timeout=20).json()
    path = f"{site.url}/posts/{post['id']}"
    form = {"files": {"file": pictures.png()}, "data": {"alt": "A loom"}}
    assert ada.post(f"{path}/images", **form, timeout=20).status_code == 201
    assert ada.post(f"{path}/comments", json={"content": "Indeed."}, timeout=20).ok
    return f"{site.url}/p/{post['id']}"


def expect_form(page):
    """Expect the form to sign in, and nothing of a post."""
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.get_by_label("Username")).to_be_visible()
    assert "zyzzyva" not in page.content().replace(page.url, "")


def expect_post(page):
    expect(page.get_by_role("heading", level=1)).to_have_text("On zyzzyva")
    expect(page.get_by_text(SECRET)).to_be_visible()
    image = page.get_by_role("img", name="A loom")
    expect(image).to_have_js_property("naturalWidth", 48)


def test_a_member_signs_in_reads_and_leaves_nothing_behind(people, site, post):
    page = people.open_page(ignore_https_errors=True)
    assert page.goto(f"{post}?x=1#comments").status == 401
    expect_form(page)
    sign_in(page, "ada", "not her password")
    expect(page.get_by_text("The username or the password is wrong.")).to_be_visible()
    sign_in(page, "ada")
    expect_post(page)
    expect(page).to_have_url(f"{post}?x=1#comments")
    assert name_of(page) == "ada"

    page.get_by_role("link", name="The Loom").click()
    expect(page.get_by_role("link", name="On zyzzyva")).to_be_visible()
    page.get_by_role("link", name="On zyzzyva").click()
    expect_post(page)
    page.go_back()
    page.go_forward()
    expect_post(page)

    sign_out(page)
    expect(page).to_have_url(f"{site.url}/")
    expect_form(page)
    page.go_back()
    expect(page).to_have_url(post)
    expect_form(page)
    page.go_back()
    expect(page).to_have_url(f"{site.url}/")
    expect_form(page)


def test_who_signs_up_lands_where_they_wanted_to_be(people, site, post):
    page = people.open_page(ignore_https_errors=True)
    page.goto(f"{post}#comments")
    page.get_by_role("main").get_by_role("link", name="Sign up").click()
    page.get_by_label("Username").fill("grace")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    expect_post(page)
    expect(page).to_have_url(f"{post}#comments")


def test_the_page_of_a_member_whose_session_has_ended_is_the_form(people, site, post, ada):
    """Also while the browser remembers who was signed in, and in another tab of theirs."""
    page = people.open_page(ignore_https_errors=True)
    page.goto(post)
    sign_in(page, "ada")
    expect_post(page)
    other = page.context.new_page()
    for session in ada.get(f"{site.url}/sessions", timeout=20).json():
        if not session["current"]:
            ada.delete(f"{site.url}/sessions/{session['id']}", timeout=20)
    other.goto(f"{post}#comments")
    expect_form(other)
    page.reload()
    expect_form(page)
    sign_in(page, "ada")
    expect_post(page)
    other.get_by_role("link", name="Go on").click()
    expect_post(other)
