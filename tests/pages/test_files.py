"""Files on pages and in feeds."""

import pytest
from lxml import etree, html

from tests.helpers.assertions import assert_problem

NAME = 'Grüße & "Küsse" <b>.pdf'


@pytest.fixture
def file(alice):
    return alice.send_file(name=NAME.replace('"', "'"))


@pytest.fixture
def shown(alice, file):
    """Return a post with a file, and a comment with another one."""
    post = alice.create_post("x", files=[file["id"]])
    alice.add_comment(post, "y", files=[alice.send_file(b"a,b\n" * 600, "table.csv")["id"]])
    return post


def test_a_post_and_a_comment_show_their_files(anonymous, file, shown):
    page = html.fromstring(anonymous.get(f"/p/{shown['id']}").text)
    [of_post] = page.cssselect("#post .downloads li")
    [link] = of_post.cssselect("a[download]")
    assert link.text == file["name"]
    assert anonymous.get(link.get("href")).data == b"%PDF-1.7\n"
    assert of_post.text_content().endswith("9 Bytes")
    [of_comment] = page.cssselect(".thread .downloads li")
    assert of_comment.text_content() == "table.csv 2.4 kB"


def test_the_page_of_a_member_shows_the_files_of_comments(alice, anonymous, shown):
    page = html.fromstring(anonymous.get("/@alice?show=comments").text)
    assert [each.text for each in page.cssselect(".downloads a")] == ["table.csv"]


def test_its_author_can_edit_and_delete_them(alice, file, shown):
    page = html.fromstring(alice.get(f"/p/{shown['id']}/edit").text)
    [field] = page.cssselect("input[name=files]")
    assert field.get("value") == file["id"]
    [row] = page.cssselect("[data-downloads] > li")
    assert row.get("data-id") == file["id"]
    assert row.cssselect("[data-name]")[0].text == file["name"]
    page = html.fromstring(alice.get(f"/p/{shown['id']}").text)
    [button] = page.cssselect("#files button")
    assert button.get("data-url") == f"/files/{file['id']}"


def test_pages_without_files_have_no_list(anonymous, post):
    page = html.fromstring(anonymous.get(f"/p/{post['id']}").text)
    assert not page.cssselect(".downloads li, #files")


def test_feeds_have_them_as_enclosures(anonymous, file, shown):
    [item] = anonymous.get("/feed.json").json["items"]
    expected = {"url": file["url"], "mime_type": "application/pdf", "size_in_bytes": 9}
    assert item["attachments"] == [expected]
    [item] = anonymous.get("/comments/feed.json").json["items"]
    assert item["attachments"][0]["mime_type"] == "text/csv"
    feed = etree.fromstring(anonymous.get("/feed.atom").data)
    [link] = feed.findall(".//{*}link[@rel='enclosure']")
    assert (link.get("href"), link.get("length")) == (file["url"], "9")


def test_a_page_names_the_files_that_can_be_added(anonymous):
    page = html.fromstring(anonymous.get("/write").text)
    [field] = page.cssselect("[data-files=files]")
    assert ".pdf" in field.get("accept").split(",")
    assert anonymous.get("/site").json["files"]["extensions"] == [
        each.removeprefix(".") for each in field.get("accept").split(",")
    ]


@pytest.mark.posting_settings(READING="members")
def test_a_feed_with_a_token_has_urls_with_it(alice, anonymous, shown):
    token = alice.post("/tokens", json={"name": "x", "scope": "feed"}).json["token"]
    [item] = anonymous.get(f"/feeds/{token}/feed.json").json["items"]
    [attachment] = item["attachments"]
    assert attachment["url"].startswith(f"http://localhost/feeds/{token}/files/")
    response = anonymous.get(attachment["url"])
    assert response.data == b"%PDF-1.7\n"
    assert response.headers["Cache-Control"].startswith("private")
    assert_problem(anonymous.get(attachment["url"].replace(token, "x")), 401)
