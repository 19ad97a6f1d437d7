"""Parts of pages that are rendered once."""

from unittest.mock import Mock

import comrak
import pytest
from markupsafe import Markup

from posting.pages import fragments, markdown
from posting.pages.fragments import Fragments
from posting.pages.templating import FRAGMENTS
from tests.helpers import pictures


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
def rendered_texts():
    return []


@pytest.fixture
def once(rendered_texts):
    """Return a function that returns a fragment of a text, in a cache for three short ones."""
    one = Fragments()
    one.once((), "text", {"content": "a"}, caller=lambda: Markup("a"))
    kept = Fragments(3 * one._size)

    def once(text):
        def render():
            rendered_texts.append(text)
            return Markup(text)

        assert kept.once((), "text", {"content": text}, caller=render) == text

    return once


def test_the_oldest_fragments_make_room(once, rendered_texts):
    for text in "abcabcdbcda":
        once(text)
    assert rendered_texts == ["a", "b", "c", "d", "a"]


@pytest.mark.parametrize("text", ["x" * fragments.MAX_SIZE_OF_ONE, "\N{GRINNING FACE}" * 1000])
def test_a_text_that_takes_much_memory_is_not_kept(once, rendered_texts, text):
    once(text)
    once(text)
    assert rendered_texts == [text, text]


def test_a_key_may_hold_nothing_else(app):
    with pytest.raises(TypeError, match="a frozenset"):
        Fragments().once((), {"names": frozenset()}, caller=lambda: Markup(""))


def test_a_text_that_could_not_be_rendered_is_rendered_again(alice, post, anonymous, monkeypatch):
    alice.add_comment(post, "A *comment*.")
    url = f"/p/{post['id']}"
    with monkeypatch.context() as patches:
        patches.setattr(comrak, "render_markdown", Mock(side_effect=MemoryError))
        assert "A *comment*." in anonymous.get(url).text
    alice.add_comment(post, "Another comment.")  # after which the page is rendered again
    assert "A <em>comment</em>." in anonymous.get(url).text


def test_nothing_is_kept_while_templates_are_developed(make_app, monkeypatch):
    monkeypatch.setenv("FLASK_DEBUG", "1")
    app = make_app()
    assert app.debug
    app.test_client().get("/")
    assert app.extensions[FRAGMENTS]._kept == {}


def test_a_page_with_thumbnails_keeps_no_text_of_its_posts(app, alice, anonymous):
    """Of several images, the text says which is shown."""
    post = alice.create_post("Two images", content="x" * 500)
    alice.add_image(post)
    image = alice.add_image(post, pictures.png())
    content = f"![]({image['url']})" + "long" * 1000
    assert alice.patch(f"/posts/{post['id']}", json={"content": content}).status_code == 200
    assert f"{image['id']}/thumbnail" in anonymous.get("/").text
    assert "long" * 1000 not in str(app.extensions[FRAGMENTS]._kept)
