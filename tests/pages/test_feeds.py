"""Feeds: what they contain, in Atom and JSON Feed."""

import re
from pathlib import Path

import feedparser
import pytest
from lxml import etree

from tests.helpers.assertions import assert_problem

GRAMMAR = etree.RelaxNG(file=Path(__file__).parent / "atom.rng")

ATOM = "{http://www.w3.org/2005/Atom}"
IMAGE = f"/images/{'i' * 21}"
HOSTILE = "\"></title><script>alert(1)</script>'&\x01\ufffe"


@pytest.fixture
def read_atom(anonymous):
    """Return a function that reads an Atom feed and checks what RFC 4287 says of all."""

    def read_atom(path):
        response = anonymous.get(path)
        assert response.status_code == 200, response.text
        assert response.content_type == "application/atom+xml; charset=utf-8"
        feed = etree.fromstring(response.data)
        GRAMMAR.assertValid(feed)
        ids = [entry.findtext(f"{ATOM}id") for entry in feed.iter(f"{ATOM}entry")]
        assert len(set(ids)) == len(ids)
        [own] = feed.findall(f"{ATOM}link[@rel='self']")
        assert own.get("href") == f"http://localhost{path}"
        assert feed.findtext(f"{ATOM}id") == f"http://localhost{path.partition('?')[0]}"
        return feed

    return read_atom


@pytest.fixture
def read_json(anonymous):
    def read_json(path):
        response = anonymous.get(path)
        assert response.status_code == 200, response.text
        assert response.content_type == "application/feed+json"
        feed = response.json
        assert feed["version"] == "https://jsonfeed.org/version/1.1"
        assert feed["feed_url"] == f"http://localhost{path.partition('?')[0]}"
        return feed

    return read_json


def titles(feed):
    return [entry.findtext(f"{ATOM}title") for entry in feed.iter(f"{ATOM}entry")]


def test_a_post_is_whole_in_both_feeds(alice, read_atom, read_json):
    post = alice.create_post("On engines", content=f"They *weave* [here](/about), ![x]({IMAGE}).")
    image = alice.add_image(post, alt="A loom")
    url = f"http://localhost/p/{post['id']}"
    [entry] = read_atom("/feed.atom").findall(f"{ATOM}entry")
    html = entry.findtext(f"{ATOM}content")
    assert "They <em>weave</em> " in html
    assert 'href="http://localhost/about"' in html
    assert f'src="http://localhost{IMAGE}"' in html
    assert entry.findtext(f"{ATOM}id") == url
    assert entry.findtext(f"{ATOM}published") == post["created_at"]
    assert entry.findtext(f"{ATOM}author/{ATOM}uri") == "http://localhost/@alice"
    enclosure = entry.find(f"{ATOM}link[@rel='enclosure']")
    assert enclosure.attrib == {
        "rel": "enclosure",
        "type": image["media_type"],
        "length": str(image["size"]),
        "href": image["url"],
    }
    [item] = read_json("/feed.json")["items"]
    assert item == {
        "id": url,
        "url": url,
        "title": "On engines",
        "content_html": html,
        "date_published": post["created_at"],
        "date_modified": post["updated_at"],
        "authors": [{"name": "Alice", "url": "http://localhost/@alice"}],
        "attachments": [
            {"url": image["url"], "mime_type": image["media_type"], "size_in_bytes": image["size"]}
        ],
        "tags": [],
    }


def test_the_newest_fifty_posts_come_first(alice, read_atom, read_json):
    for number in range(51):
        alice.create_post(f"Post {number}")
    feed, posts = read_atom("/feed.atom"), alice.get("/posts?limit=50").json
    assert titles(feed) == [post["title"] for post in posts]
    assert feed.findtext(f"{ATOM}updated") == posts[0]["updated_at"]
    assert [item["title"] for item in read_json("/feed.json")["items"]] == titles(feed)


def next_page(feed):
    """Return the path of the next page of an Atom feed, or None."""
    link = feed.find(f"{ATOM}link[@rel='next']")
    return None if link is None else link.get("href").removeprefix("http://localhost")


def test_older_posts_are_on_further_pages(alice, read_atom, read_json):
    posts = [alice.create_post(f"Post {number}") for number in range(101)]
    posts.sort(key=lambda post: (post["created_at"], post["id"]), reverse=True)
    for path in ("/feed", "/@alice/feed"):
        found, pages, url = [], 0, f"{path}.atom"
        while url:
            feed = read_atom(url)
            found += titles(feed)
            pages, url = pages + 1, next_page(feed)
        assert found == [post["title"] for post in posts]
        assert pages == 3
        first = read_json(f"{path}.json")
        second = read_json(first["next_url"].removeprefix("http://localhost"))
        third = read_json(second["next_url"].removeprefix("http://localhost"))
        items = [*first["items"], *second["items"], *third["items"]]
        assert [item["title"] for item in items] == found
        assert "next_url" not in third


@pytest.mark.parametrize("path", ["/feed.atom", "/feed.json", "/comments/feed.atom"])
def test_a_cursor_of_another_list_gets_422(anonymous, path):
    for cursor in ("x", f"active_posts.0.{'i' * 21}", "x" * 513):
        problem = assert_problem(anonymous.get(f"{path}?before={cursor}"), 422)
        assert problem["errors"][0]["parameter"] == "before"


def test_the_feed_of_comments_has_those_on_all_posts(alice, bob, read_atom, read_json):
    posts = [alice.create_post(title) for title in ("On engines", "On looms")]
    gone = alice.add_comment(posts[0], "Gone")
    comments = [bob.add_comment(post, f"*{post['title']}*") for post in posts]
    alice.add_comment(posts[0], "Answer", parent_id=gone["id"])
    alice.delete(f"/comments/{gone['id']}")
    feed = read_atom("/comments/feed.atom")
    assert titles(feed) == [
        f"Comment on {name}" for name in ("On engines", "On looms", "On engines")
    ]
    assert feed.find(f"{ATOM}link[@rel='alternate']").get("href") == "http://localhost/"
    items = read_json("/comments/feed.json")["items"]
    assert [item["url"] for item in items[1:]] == [
        f"http://localhost/p/{post['id']}?comment={comment['id']}#c-{comment['id']}"
        for post, comment in reversed([*zip(posts, comments, strict=True)])
    ]
    assert "<em>On looms</em>" in items[1]["content_html"]


def test_the_feed_of_a_member_has_only_their_posts(alice, bob, anonymous, read_atom, read_json):
    bob.create_post("Of Bob")
    alice.create_post("Of Alice")
    assert titles(read_atom("/@alice/feed.atom")) == ["Of Alice"]
    assert read_json("/@bob/feed.json")["home_page_url"] == "http://localhost/@bob"
    assert_problem(anonymous.get("/@nobody/feed.atom"), 404)


def test_the_feed_of_a_post_has_its_comments(alice, bob, post, read_atom, read_json):
    first = alice.add_comment(post, "First")
    bob.add_comment(post, "*Second*", parent_id=first["id"])
    alice.delete(f"/comments/{first['id']}")
    path = f"/p/{post['id']}/feed"
    [entry] = read_atom(f"{path}.atom").findall(f"{ATOM}entry")
    assert "<em>Second</em>" in entry.findtext(f"{ATOM}content")
    assert titles(read_atom(f"{path}.atom")) == [f"Comment on {post['title']}"]
    [item] = read_json(f"{path}.json")["items"]
    assert item["id"] == f"http://localhost/p/{post['id']}#c-{item['url'].partition('#c-')[2]}"


def test_a_comment_on_a_later_page_is_on_the_page_of_its_entry(alice, post, read_json, read):
    for number in range(201):
        last = alice.add_comment(post, f"Comment {number}")
    page = read(f"/p/{post['id']}")
    assert not page.all("li", id=f"c-{last['id']}")
    for path in ("/comments/feed.json", f"/p/{post['id']}/feed.json"):
        url = read_json(path)["items"][0]["url"]
        page = read(url.removeprefix("http://localhost").partition("#")[0])
        assert page.all("li", id=f"c-{last['id']}")


def test_a_text_is_the_same_on_a_page_and_in_a_feed(alice, post, anonymous, read_atom, read_json):
    """Line breaks, tasks and notes are there too, and the text begins on its own side."""
    content = "One\nTwo[^1]\n\n- [x] Three\n\n[^1]: Four"
    alice.add_comment(post, content)
    path = f"/p/{post['id']}"
    [item] = read_json(f"{path}/feed.json")["items"]
    html = item["content_html"]
    assert html == read_atom(f"{path}/feed.atom").findtext(f"{ATOM}entry/{ATOM}content")
    assert html.startswith('<div class="text" dir="auto">\n<p>One<br>\nTwo<sup>')
    assert '<li class="task">☑ Three</li>' in html
    page = anonymous.get(path).text
    assert html.replace(f"{item['url'].partition('#')[0]}#", "#") in page


def test_there_is_no_feed_of_an_unknown_post(anonymous):
    for path in ("/p/" + "a" * 21 + "/feed.atom", "/p/short/feed.json"):
        assert_problem(anonymous.get(path), 404)


def test_a_feed_has_one_url_however_it_is_spelled(alice, anonymous):
    alice.create_post("On engines", content="[a](#b) [c](d)")
    one, other = (anonymous.get(f"/@{name}/feed.json").json for name in ("alice", "ALICE"))
    assert one == other
    [item] = one["items"]
    assert f'href="{item["url"]}#b"' in item["content_html"]
    assert 'href="http://localhost/p/d"' in item["content_html"]


def test_a_feed_of_long_posts_ends_early(alice, read_json):
    for number in range(3):
        alice.create_post(f"Post {number}", content="x" * 30_000)
    assert len(read_json("/feed.json")["items"]) == 2


def test_a_feed_without_entries_is_valid(alice, read_atom, read_json):
    assert titles(read_atom("/@alice/feed.atom")) == []
    assert read_json("/@alice/feed.json")["items"] == []


def test_what_users_write_is_escaped(sign_in, read_atom, read_json):
    client = sign_in("mallory", display_name="<b>&\"'")
    client.create_post(HOSTILE, content=HOSTILE)
    feed = read_atom("/feed.atom")
    assert titles(feed) == [HOSTILE[:-2]]  # XML has no way to write the last two characters
    assert "<script" not in feed.findtext(f"{ATOM}entry/{ATOM}content")
    assert feed.findtext(f"{ATOM}entry/{ATOM}author/{ATOM}name") == "<b>&\"'"
    assert "<script" not in read_json("/feed.json")["items"][0]["content_html"]


def test_an_author_who_is_gone_has_no_url(alice, post, read_atom, read_json):
    alice.delete(f"/users/{alice.user['id']}")
    [item] = read_json("/feed.json")["items"]
    assert item["authors"] == [{"name": "a former member"}]
    author = read_atom("/feed.atom").find(f"{ATOM}entry/{ATOM}author")
    assert [element.tag for element in author] == [f"{ATOM}name"]


@pytest.mark.parametrize("path", ["/feed.atom", "/feed.json", "/@alice/feed.atom"])
def test_a_feed_that_has_not_changed_gets_304(alice, anonymous, post, path):
    first = anonymous.get(path)
    assert first.headers["Cache-Control"] == "public, max-age=0, must-revalidate"
    headers = {"If-None-Match": first.headers["ETag"]}
    assert anonymous.get(path, headers=headers).status_code == 304
    alice.patch(f"/posts/{post['id']}", json={"title": "On looms"})
    assert anonymous.get(path, headers=headers).status_code == 200


def test_pages_name_their_feeds(alice, post, anonymous):
    for path in ("/", "/@alice", f"/p/{post['id']}"):
        head = anonymous.get(path).text.partition("</head>")[0]
        found = re.findall(r'<link rel="alternate" type="(.+?)" title=".+?" href="(.+?)">', head)
        lists = ["", "/comments"] if path == "/" else [path]
        feeds = [f"{list}/feed.{format}" for list in lists for format in ("atom", "json")]
        assert [url for _, url in found] == feeds
        for type, url in found:
            assert anonymous.get(url).mimetype == type


@pytest.mark.parametrize("path", ["/feed.atom", "/@alice/feed.atom"])
def test_without_pages_there_are_no_feeds(make_app, path):
    assert_problem(make_app(PAGES="off").test_client().get(path), 404)


def test_a_feed_reader_reads_it(alice, bob, anonymous):
    post = alice.create_post("On engines", content="They *weave*.")
    alice.add_image(post)
    bob.create_post("On looms")
    feed = feedparser.parse(anonymous.get("/feed.atom").data)
    assert not feed.bozo
    entries = {entry.title: entry for entry in feed.entries}
    assert entries.keys() == {"On engines", "On looms"}
    entry = entries["On engines"]
    assert entry.link == f"http://localhost/p/{post['id']}"
    assert "<em>weave</em>" in entry.content[0].value
    assert entry.author == "Alice"
    assert [enclosure.type for enclosure in entry.enclosures] == ["image/png"]
    assert entry.published_parsed
