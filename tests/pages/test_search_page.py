"""The search page."""

import re
from itertools import product
from urllib.parse import unquote_plus

import pytest

from posting.pages import highlight
from posting.pages import search as search_page
from posting.search import results as results_of_search
from posting.search.index import Index
from posting.search.words import parse_query
from posting.web.errors import QueryTimeout

SHOWN = ["posts", "comments", "members"]
HOSTILE = "\"><script>alert(1)</script>'&{{ 7007*11 }}"


def results(html):
    """Return the title and the excerpt of each result, as HTML."""
    titles = re.findall(r'<h2>(?:On )?<a href="/p/[^"]+" dir="auto">(.*?)</a></h2>', html)
    return list(
        zip(titles, re.findall(r'<p class="excerpt" dir="auto">(.*?)</p>', html), strict=True)
    )


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(search_page, "TEXTS_PER_PAGE", 2)
    monkeypatch.setattr(search_page, "MEMBERS_PER_PAGE", 2)


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
    alice.add_comment(alice.create_post(HOSTILE, content=HOSTILE), HOSTILE)
    alice.patch("/users/me", json={"display_name": HOSTILE, "bio": HOSTILE})
    for q, show in product((HOSTILE, "script", "alert 11"), ("posts", "comments", "members")):
        html = search(q, show=show)
        assert "<script>" not in html
        assert "77077" not in html
    assert "<mark>script</mark>" in search("script")
    assert "<mark>alert</mark>" in search("alert", show="comments")
    assert "&lt;script&gt;" in search("script", show="members").partition("<h2>")[2]


@pytest.mark.usefixtures("small_pages")
def test_results_follow_on_the_next_page(alice, anonymous, search):
    for number in range(5):
        alice.create_post(f"Post {number} & more")
    found, html = [], search('post & "more"')
    while html:
        found += [re.search(r"\d", title)[0] for title, _ in results(html)]
        older = re.search(r'rel="next" href="\?([^"]+)"', html)
        html = older and anonymous.get(f"/search?{older[1].replace('&amp;', '&')}").text
    assert found == [post["title"].split()[1] for post in anonymous.get("/posts").json]


@pytest.mark.parametrize(
    ("q", "show", "text"),
    [
        ("nowhere", "posts", "No post has all of these words."),
        ("nowhere", "comments", "No comment has all of these words."),
        ("nobody", "members", "No member has a name that begins like this."),
        *product(["🧵 !"], SHOWN, ["Type at least one word."]),
        *product(
            ["loom w*"],
            ["posts", "comments"],
            ["Type at least two characters before <kbd>*</kbd>."],
        ),
        *product([""], SHOWN, [""]),
    ],
)
def test_a_search_that_finds_nothing_says_so(alice, search, q, show, text):
    post = alice.create_post("On looms", content="A loom weaves cloth.")
    alice.add_comment(post, "A loom weaves cloth.")
    html = search(q, show=show)
    assert text in html
    assert "<article>" not in html


@pytest.mark.parametrize("show", SHOWN)
def test_a_blank_query_shows_the_same_as_none(search, show):
    assert search(" ", show=show) == search("", show=show)


def test_comments_say_whose_they_are_and_on_which_post(alice, bob, search):
    post = alice.create_post("On looms & mills", content="A loom weaves cloth.")
    bob.add_comment(post, "And *silk*?")
    comment = alice.add_comment(post, "Silk and **cloth**.")
    html = search("cloth silk", show="comments")
    marked = "<mark>Silk</mark> and <mark>cloth</mark>."
    assert results(html) == [("On looms &amp; mills", marked)]
    permalink = f"/p/{post['id']}?comment={comment['id']}#c-{comment['id']}"
    assert f'<h2>On <a href="{permalink}" dir="auto">' in html
    [meta] = re.findall(r'<p class="meta by">(.*?)</p>', html)
    assert meta.startswith('<a class="author" href="/@alice" dir="auto" data-initial="A"')
    assert ">Alice</a> · <time " in meta


def test_members_are_found_by_name(sign_in, search):
    sign_in("ada", display_name="Ada Lovelace", bio="I write about engines.")
    sign_in("love-joy", role="moderator")
    sign_in("bob", bio="I love engines.")
    html = search("love")
    assert 'aria-current="true">Members 2</a>' in html  # the first of which some are found
    links = re.findall(r'<h2><a class="author" href="/@([^"]+)" [^>]+>(.*?)</a></h2>', html)
    assert links == [("love-joy", "love-joy"), ("ada", "Ada Lovelace")]
    assert ">@love-joy</span> · <span>moderator</span> · <span>joined <time " in html
    assert '<p class="excerpt" dir="auto">I write about engines.</p>' in html


def test_a_choice_leads_to_posts_comments_and_members(alice, search, anonymous):
    post = alice.create_post("On & looms", content="alice")
    alice.add_comment(post, "On looms")
    html = search("on & looms")
    nav = re.search(r'<nav class="orders".*?</nav>', html, re.DOTALL)[0]
    links = re.findall(r'<a href="([^"]+)"( aria-current="true")?>([\w ]+)</a>', nav)
    assert [(bool(current), text) for _, current, text in links] == [
        (True, "Posts 1"),
        (False, "Comments 1"),
        (False, "Members 0"),
    ]
    for url, _, text in links:
        shown = anonymous.get(url.replace("&amp;", "&")).text
        assert f'aria-current="true">{text}</a>' in shown
        assert 'value="on &amp; looms"' in shown
    assert '<nav class="orders"' not in search("")
    assert '<input type="hidden" name="show" value="comments">' in search("x", show="comments")


@pytest.mark.parametrize(
    ("show", "pattern"), [("comments", r"</mark> (\d)\."), ("members", r">@loom-(\d)<")]
)
@pytest.mark.usefixtures("small_pages")
def test_comments_and_members_follow_on_the_next_page(alice, sign_in, search, show, pattern):
    post = alice.create_post("Title")
    for number in range(5):
        alice.add_comment(post, f"loom {number}.")
        sign_in(f"loom-{number}")
    found, html = [], search("loom", show=show)
    while html:
        found += re.findall(pattern, html)
        more = re.search(r'rel="next" href="\?([^"]+)">', html)
        html = more and alice.get(f"/search?{more[1].replace('&amp;', '&')}").text
    assert found == list("43210" if show == "comments" else "01234")


def test_an_unknown_choice_is_an_error_page(anonymous):
    response = anonymous.get("/search?q=x&show=images")
    assert (response.status_code, response.mimetype) == (422, "text/html")


def test_a_query_that_is_too_long_is_an_error_page(anonymous):
    response = anonymous.get("/search", query_string={"q": "x" * 201})
    assert (response.status_code, response.mimetype) == (422, "text/html")


MARKED = "<mark>loom</mark> "


@pytest.mark.parametrize("word", ["loom", "機", "手機", "loomloomloom"])
@pytest.mark.parametrize(
    "filler", ["x ", "布", "布布布布布布布布布布布布布布布布布布布 ", "हिन्दी", "👨‍👩‍👧"]
)
def test_an_excerpt_contains_what_was_found_wherever_it_is(word, filler):
    terms = parse_query(word)
    for length in range(0, 500, 7):
        text = filler * (length // len(filler) + 1)
        shown = highlight.excerpt(f"{text} {word} {filler * 300}", terms)
        assert word in re.sub("</?mark>", "", shown)
        assert "<mark>" in shown
        assert len(re.sub("</?mark>", "", shown)) <= 206


@pytest.mark.parametrize(
    ("text", "query", "excerpt"),
    [
        ("A *loom*.", "loom", "A <mark>loom</mark>."),
        ("A loom.", "title", "A loom."),
        (f"{'x ' * 100}the loom", "loom", f"… {'x ' * 27}the <mark>loom</mark>"),
        (f"the loom {'y ' * 200}", "loom", f"the <mark>loom</mark> {'y ' * 95}…"),
        ("x" * 500 + " loom", "loom", f"… {'x' * 59} <mark>loom</mark>"),
        ("布" * 200 + "機" + "布" * 9, "機", f"… {'布' * 60}<mark>機</mark>{'布' * 9}"),
        ("<b>a</b> & loom", "loom", "&lt;b&gt;a&lt;/b&gt; &amp; <mark>loom</mark>"),
        ("<!-- a loom -->", "loom", "&lt;!-- a <mark>loom</mark> --&gt;"),
        ("東京タワー", "京", "東<mark>京</mark>タワー"),
        ("報 " + "布" * 300 + "機", "機", f"… {'布' * 60}<mark>機</mark>"),
        ("京都" + "布" * 300 + "東京", "東京", f"… {'布' * 60}<mark>東</mark><mark>京</mark>"),
        (
            "loom " * 99 + "a loom",
            '"a loom"',
            "… " + MARKED * 11 + f"<mark>a</mark> {MARKED}".strip(),
        ),
        (
            f"[a](https://b.example/loom){' c' * 200}",
            "loom",
            f"[a](https://b.example/<mark>loom</mark>){' c' * 86} …",
        ),
        ("हिन्दी" * 99 + " loom", "loom", f"… {'हिन्दी' * 10} <mark>loom</mark>"),
    ],
)
def test_an_excerpt_shows_the_first_word_found(text, query, excerpt):
    assert highlight.excerpt(text, parse_query(query)) == excerpt


@pytest.mark.parametrize("path", ["/", "/signin", "/nowhere"])
def test_every_page_has_the_box(anonymous, path):
    html = anonymous.get(path, headers={"Accept": "text/html"}).text
    assert '<form class="search" role="search" action="/search"' in html


def tabs(html):
    """Return the tabs of a page of results, with their numbers, and the one that is shown."""
    found = re.findall(r'<a href="[^"]*show=\w+"( aria-current="true")?>(\w+ ?[\d+]*)</a>', html)
    return [text for _, text in found], next(text for current, text in found if current)


def test_the_first_tab_with_results_is_shown_and_all_have_counts(alice, bob, search):
    post = alice.create_post("On looms", content="They weave.")
    for _ in range(2):
        alice.add_comment(post, "The wind is strong.")
    assert tabs(search("wind")) == (["Posts 0", "Comments 2", "Members 0"], "Comments 2")
    assert tabs(search("bob")) == (["Posts 0", "Comments 0", "Members 1"], "Members 1")
    assert tabs(search("nowhere")) == (["Posts 0", "Comments 0", "Members 0"], "Posts 0")
    assert tabs(search("wind", show="posts")) == (["Posts 0", "Comments 2", "Members 0"], "Posts 0")


def test_many_results_are_not_counted_to_the_end(alice, sign_in, search, monkeypatch):
    monkeypatch.setattr(results_of_search, "MAX_COUNT", 2)
    monkeypatch.setattr(search_page, "MAX_COUNT", 2)
    for number in range(3):
        post = alice.create_post("On looms")
        alice.add_comment(post, f"A loom {number}.")
        sign_in(f"loom-{number}")
    assert tabs(search("loom"))[0] == ["Posts 2+", "Comments 2+", "Members 2+"]


@pytest.mark.usefixtures("small_pages")
def test_further_pages_have_no_counts(alice, anonymous, search):
    for number in range(3):
        alice.create_post(f"Loom {number}")
    older = re.search(r'rel="next" href="\?([^"]+)"', search("loom"))[1].replace("&amp;", "&")
    assert tabs(anonymous.get(f"/search?{older}").text) == (
        ["Posts", "Comments", "Members"],
        "Posts",
    )


def test_the_last_word_may_be_a_beginning(alice, search):
    alice.create_post("On weavers", content="A loom weaves cloth.")
    for q in ("wea", "cloth weav", "weav*"):
        assert tabs(search(q))[1] == "Posts 1", q
    assert "<mark>weaves</mark>" in search("weav")
    for q in ("we", '"weav"', "weav cloth", "weav."):
        assert tabs(search(q))[1] == "Posts 0", q


@pytest.mark.parametrize(
    ("q", "suggestion"),
    [
        ("kettel", "kettle"),  # two letters exchanged
        ("ketle", "kettle"),  # one too few
        ("kettlle", "kettle"),  # one too many
        ("kattle", "kettle"),  # another one
        ("My KETTEL whistles", "My kettle whistles"),
        ('whistles "kettel"', 'whistles "kettle"'),
        ("ketl", None),  # two slips
        ("kte", None),  # too short
        ("kettel nowhere", None),
        ("nowhere", None),
        ("чайнек", "чайник"),
        ("שלוום", "שלום"),
        ("whistl* kettel", "whistl* kettle"),
    ],
)
def test_a_slip_of_a_letter_is_offered(alice, bob, search, q, suggestion):
    post = alice.create_post("On tea", content="Чайник. שלום")
    bob.add_comment(post, "My kettle whistles.")
    found = re.search(r'Did you mean <a href="\?q=([^"]+)" dir="auto">', search(q))
    assert (found and unquote_plus(found[1])) == suggestion
    if suggestion:
        html = search(suggestion)
        assert "<article>" in html
        assert "Did you mean" not in html


def test_the_word_that_is_most_common_is_offered(alice, search):
    for text in ("A loom.", "The room.", "A room.", "Loom, room, room."):
        alice.create_post("Title", content=text)
    assert '?q=room"' in search("noom")
    for text in ("Looms and a loom.", "My loom, your loom, no loom."):
        alice.create_post("Title", content=text)
    assert '?q=loom"' in search("noom")


@pytest.mark.parametrize(
    "q",
    [
        "x" * 64,
        "ж" * 64,
        "".join(chr(code) for code in range(0x561, 0x586)),
        "aжբا" * 16,
        " ".join(f"{letter}жբا" * 5 for letter in "abcdefgh"),
    ],
)
def test_a_long_word_is_not_looked_up(app, alice, search, statements, q):
    alice.create_post("On looms")
    html = search(q[:200])
    assert "Did you mean" not in html
    assert max(map(len, statements)) < 5_000


def test_without_time_nothing_is_offered(alice, search, monkeypatch):
    alice.create_post("On tea", content="kettle")
    assert "Did you mean" in search("kettel")

    def fail(*_):
        raise QueryTimeout

    monkeypatch.setattr(Index, "count_similar", fail)
    html = search("kettell")
    assert "Did you mean" not in html
    assert "No post has all of these words." in html


def test_nothing_is_offered_beside_results(alice, search):
    alice.create_post("On kettles", content="kettle")
    alice.add_comment(alice.create_post("Title"), "kettel")
    assert "Did you mean" not in search("kettel")
