"""Topics on pages: links, the page of a topic, feeds, and the choice in the editor."""

import pytest
from lxml import etree

from posting.db.transactions import unit_of_work
from posting.pages import views
from posting.topics.store import insert_topic
from tests.helpers.pages import links, path_of


@pytest.fixture
def topics(app):
    """Two topics, by name."""
    with app.app_context(), unit_of_work():
        return {
            name: insert_topic({"name": name, "color": color})
            for name, color in (("Looms", "green"), ("<b>Engines", "red"))
        }


@pytest.fixture
def post(alice, topics):
    return alice.create_post("On engines", topics=[topics["<b>Engines"]["id"]])


def test_the_front_page_leads_to_all_topics(read, topics, post):
    page = read("/")
    paths = [f"/t/{topics[name]['id']}" for name in ("<b>Engines", "Looms")]
    assert [path for path in links(page) if path.startswith("/t/")] == [*paths, paths[0]]
    assert "<b>Engines" in page.text
    assert page.all("nav", **{"aria-label": "Topics"})


def test_without_topics_no_page_has_them(alice, read):
    post = alice.create_post("On engines")
    for path in ("/", path_of(post)):
        assert not read(path).all("nav", **{"aria-label": "Topics"})


def test_the_page_of_a_topic_has_its_posts(alice, read, topics, post, monkeypatch):
    monkeypatch.setattr(views, "POSTS_PER_PAGE", 1)
    others = [alice.create_post("On looms", topics=[topics["Looms"]["id"]]) for _ in range(2)]
    path = f"/t/{topics['Looms']['id']}"
    page = read(path)
    assert path_of(others[1]) in links(page)
    assert not {path_of(others[0]), path_of(post)} & {*links(page)}
    assert page.all("a", href=path, **{"aria-current": "true"})
    [older] = [link["href"] for link in page.all("a", rel="next")]
    assert path_of(others[0]) in links(read(path + older))
    alice.add_comment(others[0], "And cloth?")
    assert path_of(others[0]) in links(read(f"{path}?sort=active"))


def test_an_empty_topic_and_an_unknown_one(read, topics):
    page = read(f"/t/{topics['Looms']['id']}")
    assert "No post has this topic yet." in page.text
    read(f"/t/{'a' * 21}", status=404)


def test_a_post_names_its_topics(read, topics, post):
    assert f"/t/{topics['<b>Engines']['id']}" in links(read(path_of(post)))


def test_the_feeds_of_a_topic_and_the_topics_in_feeds(anonymous, read, topics, post):
    path = f"/t/{topics['<b>Engines']['id']}"
    atom = anonymous.get(f"{path}/feed.atom")
    feed = etree.fromstring(atom.data)
    name = "{http://www.w3.org/2005/Atom}"
    assert feed.find(f"{name}title").text.endswith(": <b>Engines")
    assert feed.find(f"{name}entry/{name}category").get("term") == "<b>Engines"
    [item] = anonymous.get(f"{path}/feed.json").json["items"]
    assert (item["title"], item["tags"]) == ("On engines", ["<b>Engines"])
    assert anonymous.get("/feed.json").json["items"][0]["tags"] == ["<b>Engines"]
    feeds = [link["href"] for link in read(path).all("link", rel="alternate")]
    assert feeds == [f"{path}/feed.atom", f"{path}/feed.json"]
    assert anonymous.get(f"/t/{'a' * 21}/feed.atom").status_code == 404


def test_the_editor_offers_them(read, topics, post):
    page = read("/write")
    boxes = page.all("input", type="checkbox")
    assert [box["value"] for box in boxes] == [
        topics[name]["id"] for name in ("<b>Engines", "Looms")
    ]
    assert not [box for box in boxes if "checked" in box]
    edit = read(f"{path_of(post)}/edit")
    checked = [box["value"] for box in edit.all("input", type="checkbox") if "checked" in box]
    assert checked == [topics["<b>Engines"]["id"]]
    [field] = edit.all("input", name="topics")
    assert field["value"] == topics["<b>Engines"]["id"]
