"""The front page: the order of posts, and pinned posts."""

import re
import time
from datetime import datetime

from posting.pages import views
from tests.helpers.pages import Reader, links, path_of


def test_the_front_page_shows_the_latest_posts(alice, bob, read):
    post = alice.create_post("On engines", content="They *weave* algebra.")
    bob.add_comment(post, "And cloth?")
    page = read("/")
    day = f"{datetime.fromisoformat(post['created_at']):%b %-d, %Y}"
    assert f"Alice · {day} On engines They weave algebra. 1 comment" in page.text
    assert {path_of(post), f"{path_of(post)}#comments", "/@alice"} <= set(links(page))
    assert page.all("time", datetime=post["created_at"])


def test_the_front_page_has_the_name_and_the_description_of_the_community(make_app):
    client = make_app(NAME="Elm Street", DESCRIPTION='Where "we" live').test_client()
    page = Reader(client.get("/").text)
    assert "Elm Street" in page.text
    assert page.all("meta", name="description", content='Where "we" live')


def test_older_posts_follow_by_the_cursor_of_the_api(alice, anonymous, read, monkeypatch):
    monkeypatch.setattr(views, "POSTS_PER_PAGE", 2)
    for number in range(5):
        alice.create_post(f"Post {number}")
    found, url = [], "/"
    while url:
        page = read(url)
        found += re.findall(r"Post \d", page.text)
        url = next(("/" + link["href"] for link in page.all("a", rel="next")), None)
    assert found == [post["title"] for post in anonymous.get("/posts").json]
    first = anonymous.get("/posts?limit=2").headers["Link"]
    [older] = [link["href"] for link in read("/").all("a", rel="next")]
    assert re.search("cursor=[^&>]*", first)[0] == re.search("cursor=.*", older)[0]


def test_the_front_page_has_both_orders(alice, read, monkeypatch):
    posts = []
    for number in range(3):
        posts.append(alice.create_post(f"Post {number}"))
        time.sleep(0.002)  # with the same timestamp, their ids would decide
    alice.add_comment(posts[0], "A comment")
    for path, order, titles in (("/", "New", "210"), ("/?sort=active", "Active", "021")):
        page = read(path)
        assert re.findall(r"Post (\d)", page.text) == [*titles]
        [link] = page.all("a", **{"aria-current": "true"})
        assert ("sort=active" in link["href"]) == (order == "Active")
    monkeypatch.setattr(views, "POSTS_PER_PAGE", 2)
    alice.create_post("Post 3")
    [older] = read("/?sort=active").all("a", rel="next")
    assert re.findall(r"Post (\d)", read("/" + older["href"]).text) == ["2", "1"]


def test_pinned_posts_come_first_and_once(alice, moderator, read, monkeypatch):
    monkeypatch.setattr(views, "POSTS_PER_PAGE", 3)
    posts = [alice.create_post(f"Post {number}") for number in range(7)]
    for number in (0, 5):
        time.sleep(0.002)  # with the same timestamp, their ids would decide
        assert moderator.put(f"/posts/{posts[number]['id']}/pin").status_code == 204
    for query in ("", "sort=active"):
        found, url = [], f"/?{query}"
        while url:
            page = read(url)
            assert re.findall(r"Pinned .*? Post (\d)", page.text) == ([] if found else ["5", "0"])
            found.append(re.findall(r"Post (\d)", page.text))
            url = next(("/" + link["href"] for link in page.all("a", rel="next")), None)
        assert found[0][:2] == ["5", "0"], query
        assert sorted(number for shown in found for number in shown) == [*"0123456"]
    assert "Pinned" not in read("/@alice").text
    moderator.delete(f"/posts/{posts[0]['id']}/pin")
    assert read("/").text.count("Pinned") == 1


def test_only_pinned_posts_are_no_empty_page(post, moderator, read):
    moderator.put(f"/posts/{post['id']}/pin")
    assert "There are no posts yet." not in read("/").text
