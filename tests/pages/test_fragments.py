"""Parts of pages that are rendered once."""

import pytest
from markupsafe import Markup

from posting.pages import fragments, markdown
from posting.pages.fragments import Fragments


@pytest.fixture
def rendered(monkeypatch):
    """The texts that have been rendered."""
    texts = []
    render = markdown.render

    def append(text, **options):
        texts.append(text)
        return render(text, **options)

    monkeypatch.setattr(markdown, "render", append)
    return texts


def test_a_comment_is_rendered_once_until_it_changes(alice, post, anonymous, rendered):
    first = alice.add_comment(post, "The *first* comment.")
    url = f"/p/{post['id']}"
    before = anonymous.get(url).text
    alice.add_comment(post, "The second comment.", parent_id=first["id"])
    after = anonymous.get(url).text
    assert rendered.count("The *first* comment.") == 1
    assert before[before.index("<ol") : before.index("</ol>")].strip() in after
    alice.patch(f"/comments/{first['id']}", json={"content": "The *former* comment."})
    assert "<em>former</em>" in anonymous.get(url).text


def test_a_comment_shows_the_new_name_of_its_author(alice, post, anonymous):
    alice.add_comment(post, "A comment.")
    assert "Alice" in anonymous.get(f"/p/{post['id']}").text
    alice.patch("/users/me", json={"display_name": "Alicia"})
    text = anonymous.get(f"/p/{post['id']}").text
    assert ">Alicia</a>" in text
    assert ">Alice</a>" not in text


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_each_order_has_its_own_comments(alice, post, anonymous, order):
    first = alice.add_comment(post, "A comment.")
    alice.add_comment(post, "A reply.", parent_id=first["id"])
    link = {"oldest": "Parent", "newest": "Answers this comment"}
    for _ in range(2):
        text = anonymous.get(f"/p/{post['id']}?sort={order}").text
        assert [name for name in link.values() if f">{name}</a>" in text] == [link[order]]
        anonymous.get(f"/p/{post['id']}?sort={'newest' if order == 'oldest' else 'oldest'}")


def test_links_are_those_of_the_request(app, alice, post):
    """Without a public URL, a page is shown at several URLs, which have the same comments."""
    image = alice.add_image(post)
    alice.add_comment(post, f"![A square](http://a.example/images/{image['id']})")
    client = app.test_client()
    shown = []
    for url in ("http://a.example", "http://b.example", "http://a.example"):
        _, _, thread = client.get(f"/p/{post['id']}", base_url=url).text.partition("<ol")
        shown.append("<img src" in thread.partition("</ol>")[0])
    assert shown == [True, False, True]


@pytest.fixture
def once(monkeypatch):
    """Return a function that returns a fragment of a text, and the texts that were rendered."""
    monkeypatch.setattr(fragments, "MAX_FRAGMENTS", 3)
    kept, rendered = Fragments(), []

    def once(text):
        def render():
            rendered.append(text)
            return Markup(text)

        assert kept.once((), "text", {"content": text}, caller=render) == text
        return rendered

    return once


def test_fragments_are_forgotten_when_there_are_too_many(once):
    for text in "abcabcda":
        once(text)
    assert once("d") == ["a", "b", "c", "d", "a"]


def test_a_long_text_is_not_kept(once):
    text = "x" * fragments.MAX_LENGTH
    once(text)
    assert once(text) == [text, text]
