"""Files on pages and in feeds."""

import pytest
from lxml import etree

from tests.helpers.assertions import assert_problem
from tests.helpers.pages import path_of

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


def test_a_post_and_a_comment_show_their_files(anonymous, file, shown, read):
    page = read(path_of(shown))
    assert f"{file['name']} 9 bytes" in page.text
    assert "table.csv 2.4 kB" in page.text
    of_post, of_comment = (link["href"] for link in page.all("a", download=None))
    assert anonymous.get(of_post).data == b"%PDF-1.7\n"
    assert anonymous.get(of_comment).data == b"a,b\n" * 600


def test_the_page_of_a_member_shows_the_files_of_comments(shown, read):
    page = read("/@alice?show=comments")
    assert "table.csv 2.4 kB" in page.text
    assert len(page.all("a", download=None)) == 1


def test_its_author_can_edit_and_delete_them(file, shown, read):
    page = read(f"{path_of(shown)}/edit")
    assert page.all("input", name="files", value=file["id"])
    assert page.all("li", **{"data-id": file["id"]})
    assert f"{file['name']} 9 bytes" in page.text
    assert read(path_of(shown)).all("button", **{"data-url": f"/files/{file['id']}"})


def test_pages_without_files_have_no_list(post, read):
    page = read(path_of(post))
    assert not page.all("ul", **{"class": "downloads"})
    assert not page.all("details", id="files")


def test_feeds_have_them_as_enclosures(anonymous, file, shown):
    [item] = anonymous.get("/feed.json").json["items"]
    expected = {"url": file["url"], "mime_type": "application/pdf", "size_in_bytes": 9}
    assert item["attachments"] == [expected]
    [item] = anonymous.get("/comments/feed.json").json["items"]
    assert item["attachments"][0]["mime_type"] == "text/csv"
    feed = etree.fromstring(anonymous.get("/feed.atom").data)
    [link] = feed.findall(".//{*}link[@rel='enclosure']")
    assert (link.get("href"), link.get("length")) == (file["url"], "9")


def test_a_page_names_the_files_that_can_be_added(anonymous, read):
    [field] = read("/write").all("input", **{"data-files": "files"})
    extensions = anonymous.get("/site").json["files"]["extensions"]
    assert field["accept"].split(",") == [f".{extension}" for extension in extensions]


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
