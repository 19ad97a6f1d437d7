"""The search page."""

import re

import pytest

from posting.pages import highlight, views
from posting.posts.search.words import parse_query

HOSTILE = "\"><script>alert(1)</script>'&{{ 7007*11 }}"


def results(html):
    """Return the title and the excerpt of each result, as HTML."""
    titles = re.findall(r'<h2><a href="/p/[^"]+" dir="auto">(.*?)</a></h2>', html)
    return list(
        zip(titles, re.findall(r'<p class="excerpt" dir="auto">(.*?)</p>', html), strict=True)
    )


@pytest.fixture
def search(anonymous):
    def search(q, **others):
        response = anonymous.get("/search", query_string={"q": q} | others)
        assert response.status_code == 200, response.text
        return response.text

    return search


def test_words_are_highlighted_in_results(alice, search):
    alice.create_post("On looms", content="A *loom* weaves cloth.")
    alice.create_post("On engines & looms", content="They weave **algebra**.")
    assert results(search("looms weav*")) == [
        ("On engines &amp; <mark>looms</mark>", "They <mark>weave</mark> algebra."),
        ("On <mark>looms</mark>", "A loom <mark>weaves</mark> cloth."),
    ]


def test_the_box_keeps_the_words(alice, search):
    assert 'value="loo* &#34;on x&#34;"' in search('loo* "on x"')
    assert 'value=""' in search("")


def test_what_users_write_and_search_is_escaped(alice, search):
    alice.create_post(HOSTILE, content=HOSTILE)
    for q in (HOSTILE, "script", "alert 11"):
        html = search(q)
        assert "<script>" not in html
        assert "77077" not in html
    assert "<mark>script</mark>" in search("script")


def test_results_follow_on_the_next_page(alice, anonymous, search, monkeypatch):
    monkeypatch.setattr(views, "POSTS_PER_PAGE", 2)
    for number in range(5):
        alice.create_post(f"Post {number} & more")
    found, html = [], search('post & "more"')
    while html:
        found += [re.search(r"\d", title)[0] for title, _ in results(html)]
        older = re.search(r'rel="next" href="\?([^"]+)"', html)
        html = older and anonymous.get(f"/search?{older[1].replace('&amp;', '&')}").text
    assert found == [post["title"].split()[1] for post in anonymous.get("/posts").json]


@pytest.mark.parametrize(
    ("q", "text"),
    [
        ("nowhere", "No post has all of these words."),
        ("🧵 !", "Type at least one word."),
        ("loom w*", "Type at least two characters before <kbd>*</kbd>."),
        ("", ""),
    ],
)
def test_a_search_that_finds_nothing_says_so(alice, search, q, text):
    alice.create_post("On looms", content="A loom weaves cloth.")
    html = search(q)
    assert text in html
    assert not results(html)


def test_a_blank_query_shows_the_same_as_none(search):
    assert search(" ") == search("")


def test_a_query_that_is_too_long_is_an_error_page(anonymous):
    response = anonymous.get("/search", query_string={"q": "x" * 201})
    assert (response.status_code, response.mimetype) == (422, "text/html")


@pytest.mark.parametrize(
    ("text", "query", "excerpt"),
    [
        ("A *loom*.", "loom", "A <mark>loom</mark>."),
        ("A loom.", "title", "A loom."),
        (f"{'x ' * 100}the loom", "loom", f"… {'x ' * 27}the <mark>loom</mark>"),
        (f"the loom {'y ' * 200}", "loom", f"the <mark>loom</mark> {'y ' * 95}…"),
        ("x" * 500 + " loom", "loom", "… <mark>loom</mark>"),
        ("布" * 200 + "機" + "布" * 9, "機", f"… {'布' * 60}<mark>機</mark>{'布' * 9}"),
        ("<b>a</b> & loom", "loom", "a &amp; <mark>loom</mark>"),
        ("東京タワー", "京", "東<mark>京</mark>タワー"),
    ],
)
def test_an_excerpt_shows_the_first_word_found(text, query, excerpt):
    assert highlight.excerpt(text, parse_query(query)) == excerpt


def test_the_front_page_has_the_box(alice, anonymous):
    alice.create_post("On engines")
    assert '<form class="search" role="search" action="/search">' in anonymous.get("/").text
