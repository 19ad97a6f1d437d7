"""Markdown as HTML: what is shown, and what is made inert."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html import escape, unescape
from unittest.mock import Mock
from urllib.parse import unquote

import comrak
import pytest

from posting.markdown import MAX_DEPTH, to_plain
from posting.pages import markdown
from posting.pages.elements import COLUMN
from tests.helpers.attacks import ATTACKS, assert_inert
from tests.helpers.panics import Panic
from tests.helpers.texts import SHOW_NOTHING

IMAGE_URLS = "/images/", "https://example.org/images/"
FEED_BASE = f"https://{'h' * 60}.example/p/{'x' * 21}"
# Render a text that is too long to be cached a thousand times, and print by which factor the memory
# grows when it is rendered a thousand times more.
MEASURE_MEMORY = """
from pathlib import Path
from posting.pages.markdown import render
pages = []
for _ in range(2):
    for _ in range(1000):
        render("Some *words*. " * 100, image_urls=())
    pages.append(int(Path("/proc/self/statm").read_text().split()[1]))
print(pages[1] / pages[0])
"""
# Render a hostile text of 100 KB, and print the largest amount of memory, in KB, of the process.
MEASURE_PEAK = """
import re
from pathlib import Path
from posting.pages.markdown import render
render("{text}" * (100_000 // len("{text}")), image_urls=())
print(re.search("VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1])
"""


def render(text, **options):
    return markdown.render(text, image_urls=IMAGE_URLS, **options).strip()


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**a** *b* ~~c~~ `d`", "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d</code></p>"),
        ("1. a\n2. b", '<ol dir="auto">\n<li>a</li>\n<li>b</li>\n</ol>'),
        ("3. a", '<ol start="3" dir="auto">\n<li>a</li>\n</ol>'),
        ("> a", '<blockquote dir="auto">\n<p>a</p>\n</blockquote>'),
        ("a\nb  \nc\\\nd", "<p>a<br>\nb<br>\nc<br>\nd</p>"),
        (
            "- [ ] a\n- [x] b",
            '<ul dir="auto">\n<li class="task">☐ a</li>\n<li class="task">☑ b</li>\n</ul>',
        ),
        ("# a", "<h2>a</h2>"),
        ("###### a", "<h6>a</h6>"),
        ("`<h1>`", "<p><code>&lt;h1&gt;</code></p>"),
        ("```python\na < b\n```", '<pre tabindex="0"><code>a &lt; b\n</code></pre>'),
        ("a\n\n---", "<p>a</p>\n<hr>"),
    ],
)
def test_markdown_is_rendered(text, html):
    assert render(text) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("std::vector<int> v", "<p>std::vector&lt;int&gt; v</p>"),
        ("git checkout <branch>", "<p>git checkout &lt;branch&gt;</p>"),
        ("if a <b and c> d", "<p>if a &lt;b and c&gt; d</p>"),
        ("<p>Hello</p>", "<p>&lt;p&gt;Hello&lt;/p&gt;</p>"),
        ("a <!-- b --> c", "<p>a &lt;!-- b --&gt; c</p>"),
        ("<!-- b\n\nc -->", "<p>&lt;!-- b<br>\n<br>\nc --&gt;</p>"),
        (
            "<details>\n<summary>a</summary>\n\n*b*\n\n</details>",
            "<p>&lt;details&gt;<br>\n&lt;summary&gt;a&lt;/summary&gt;</p>\n"
            "<p><em>b</em></p>\n<p>&lt;/details&gt;</p>",
        ),
        ("<p>a\nb\n</p>", "<p>&lt;p&gt;a<br>\nb<br>\n&lt;/p&gt;</p>"),
        ("a <b\nc=d> e", "<p>a &lt;b<br>\nc=d&gt; e</p>"),
        ("a\n<b>c</b>\nd", "<p>a<br>\n&lt;b&gt;c&lt;/b&gt;<br>\nd</p>"),
        (
            "> <p>\n> a\n\nb",
            '<blockquote dir="auto">\n<p>&lt;p&gt;<br>\na</p>\n</blockquote>\n<p>b</p>',
        ),
        ("- <p>a</p>\n  b", '<ul dir="auto">\n<li>\n&lt;p&gt;a&lt;/p&gt;<br>\nb\n</li>\n</ul>'),
        ("```\n\n<a>\n<b>\n```", '<pre tabindex="0"><code>\n&lt;a&gt;\n&lt;b&gt;\n</code></pre>'),
        (
            '[a](/b "c\n<d>\ne")',
            '<p><a href="/b" title="c\n&lt;d&gt;\ne" rel="nofollow ugc noopener">a</a></p>',
        ),
    ],
)
def test_raw_html_is_shown_as_it_was_typed(text, html):
    assert render(text) == html


@pytest.mark.parametrize("text", SHOW_NOTHING)
def test_a_text_that_shows_nothing_is_shown_as_it_is(text):
    assert render(text) == f'<p class="as-it-is">{escape(text)}</p>'


@pytest.mark.parametrize("text", ["- [ ]", "&hearts;", "\\", "[](/x)a", f"![](/images/{'a' * 21})"])
def test_a_text_that_shows_something_is_rendered(text):
    assert "as-it-is" not in render(text)


def test_headings_begin_below_those_of_the_page():
    assert render("# a\n\n### b\n\n###### c", heading=4) == "<h4>a</h4>\n<h6>b</h6>\n<h6>c</h6>"


def test_each_process_renders_the_same_html():
    """Otherwise a page would have another ETag in each worker, and feeds would change."""
    blocks = ["| a |\n|---|\n| b |", "> c", "- [x] d", "[e](/f 'g')[^1]", "[^1]: i"]
    text = "\n\n".join([*blocks, f"![h](/images/{'a' * 21})", "```\nj\n```"])
    rendered = set()
    for _ in range(20):
        markdown._allowed.cache_clear()
        rendered.add(render(text))
    assert len(rendered) == 1


def test_a_table_scrolls_inside_itself_and_keeps_its_alignment():
    html = render("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert html.startswith('<div class="table" ')
    assert {'tabindex="0"', 'role="group"', 'aria-label="Table"'} <= set(
        html.partition(">")[0].split()
    )
    assert '<td class="right">2</td>' in html
    assert "align" not in html
    assert "style" not in html


class TestFootnotes:
    TEXT = "a[^1] b[^1]\n\n[^1]: See *c*."

    def test_they_lead_to_the_note_and_back(self):
        html = render(self.TEXT)
        ids = re.findall(r'id="([^"]*)"', html)
        targets = re.findall(r'href="#([^"]*)"', html)
        assert len(ids) == len(set(ids)) == 3
        assert set(targets) == set(ids)
        assert "See <em>c</em>." in html

    def test_those_of_two_texts_on_a_page_have_other_ids(self):
        """Even if the texts are the same."""
        texts = [render(self.TEXT, name=name) for name in ("one", "two")]
        ids = [set(re.findall(r'id="([^"]*)"', text)) for text in texts]
        assert ids[0].isdisjoint(ids[1])

    @pytest.mark.parametrize(
        "text",
        [
            "a[^1]\n\n[^1]: One\n\n[^1]: Two",
            "a[^x]\n\n[^x]: One\n\n[^X]: Two\n\n[^x]: Three",
            "a[^1] b[^1] c[^1-2]\n\n[^1]: One\n\n[^1-2]: Two",  # both marks would be `1-2`
            "a[^1]\n\n> [^1]: One\n\n[^1]: Two",
        ],
    )
    def test_an_id_is_that_of_one_element(self, text):
        html = render(text)
        ids = re.findall(r'id="([^"]*)"', html)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]*)"', html)) <= set(ids)
        assert "One" in html
        assert "Two" in html

    def test_a_long_text_may_have_many(self):
        text = f"{'Some words. ' * 80}[^{{0}}]\n\n[^{{0}}]: A note\n\n"
        html = render("".join(text.format(number) for number in range(100)))
        assert html.count('<li id="fn-') == 100

    @pytest.mark.parametrize("name", ['"><b>', "'onclick=alert(1)", "a b", "&quot;"])
    def test_a_hostile_name_is_inert(self, name):
        html = render(f"a[^{name}]\n\n[^{name}]: b")
        assert "<b>" not in html
        assert "onclick=" not in re.sub('"[^"]*"', "", html).replace("[^", "").split("<p>")[0]


def test_links_say_that_the_service_does_not_vouch_for_them():
    link = '<a href="https://example.com/?a&amp;b" rel="nofollow ugc noopener">'
    assert render("https://example.com/?a&b") == f"<p>{link}https://example.com/?a&amp;b</a></p>"
    assert render("[a](https://example.com/?a&b)") == f"<p>{link}a</a></p>"
    assert "mailto:ada@example.org" in render("<ada@example.org>")
    assert 'href="/p/x"' in render("[a](/p/x)")


def link_to(url, name):
    return f'<a href="{url}{name}" rel="nofollow ugc noopener">@{name}</a>'


def test_a_mention_is_a_link_to_the_member():
    assert render("Ask *@Ada* or @bob.", member_url="/root/@") == (
        f"<p>Ask <em>{link_to('/root/@', 'Ada')}</em> or {link_to('/root/@', 'bob')}.</p>"
    )


def test_a_mention_in_a_feed_has_an_absolute_url():
    url = "https://example.org/community/@"
    html = render("@ada", member_url=url, base="https://example.org/community/p/x")
    assert html == f"<p>{link_to(url, 'ada')}</p>"


def test_what_is_no_mention_is_no_link():
    text = "`@ada` [@ada](/x) ada@example.org /@ada\n\n    @ada"
    assert 'href="/@' not in render(text)


def test_the_description_of_an_image_mentions_nobody():
    """Neither if the image is shown, nor if it becomes a link."""
    image = f"![@ada](/images/{'a' * 21})"
    assert 'alt="@ada"' in render(image)
    assert ">@ada</a>" in render("![@ada](/x.png)")
    assert 'href="/@' not in render(f"{image} ![@ada](/x.png)")


def test_only_the_first_twenty_mentions_are_links():
    html = render("@ada " * 30)
    assert html.count('<a href="/@ada"') == 20
    assert html.count("@ada") == 20 * 2 + 10


def test_a_text_that_is_shown_as_it_is_has_no_mentions():
    assert render(">" * 30 + " @ada") == f'<p class="as-it-is">{"&gt;" * 30} @ada</p>'


def test_mentions_in_a_short_text_stay_in_its_budget():
    html = render("@ada " * 20, member_url=f"https://{'h' * 60}.example/@", base=FEED_BASE)
    assert html.count("@ada</a>") == 20


def links_in(html):
    """Return the text of each link, and what it leads to."""
    links = re.findall('<a href="([^"]*)"[^>]*>(.*?)</a>', html)
    return [(unescape(text), unescape(unquote(url))) for url, text in links]


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.org", "https://example.org/a?b=c&d#e", "http://localhost:3000/x"),
        *("http://nas:8080/", "http://127.0.0.1:8080", "https://[::1]:80/x", "https://ada@host/x.git"),
        *("HTTPS://EXAMPLE.ORG/A", "Http://example.org/Ada", "https://example.org/__init__.py"),
        *("https://пример.рф/путь", "https://例え.jp/字", "https://en.wikipedia.org/wiki/Go_(game)"),
        *("https://ru.wikipedia.org/wiki/Закон_Бойля_—_Мариотта", "https://example.org/a–b"),
        *("https://ja.wikipedia.org/wiki/レオナルド・ダ・ヴィンチ", "https://example.org/l’a"),
        *("https://ca.wikipedia.org/wiki/Col·legi", "https://example.org/?a[1]=b"),
        "https://fa.wikipedia.org/wiki/\u0645\u06cc\u200c\u062e",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("before", "after"),
    [
        *(("", ""), ("See ", " there."), ("見よ", "。次"), ("（", "）"), ("「", "」と")),
        ("『", "』"),
        ("“", "”"),
        *(("“", ".”"), ("„", "“"), ("«", "»"), ("‹", "›"), ("‘", "’"), ("(", ").")),
        *(("[", "]"), ("[[", "]]"), ("{", "}"), ('"', '"'), ("'", "'"), ("<b>", "</b>")),
        *(("<", ">"), ("**", "**"), ("~~", "~~"), ("- [x] ", ""), ("", " — and")),
        *(("", after) for after in "…、，！？،؟।·–"),
        *(("", after) for after in ("—and", "；次", "\u3000次", "\xa0a", "\u200bab", "\u2028a")),
    ],
)  # fmt: skip
def test_a_url_is_a_link_that_ends_where_readers_see_its_end(url, before, after):
    assert links_in(render(f"{before}{url}{after}")) == [(url, url)]


@pytest.mark.parametrize("text", ["`{}`", "```\n{}\n```", "    {}"])
@pytest.mark.parametrize("url", ["https://example.org/a。b", "[https://example.org][1]"])
def test_code_with_a_url_is_shown_as_it_is(text, url):
    html = render(text.format(url))
    assert url in html
    assert not links_in(html)


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("www.example.org。次", [("www.example.org", "http://www.example.org")]),
        ("（ada@example.org）", [("ada@example.org", "mailto:ada@example.org")]),
        ("[a](https://b.c/d。e)", [("a", "https://b.c/d。e")]),
        ("[a](<https://b.c/d。e>)", [("a", "https://b.c/d。e")]),
        ("[a][1]\n\n[1]: https://b.c/d。e", [("a", "https://b.c/d。e")]),
        ("[https://a.b/c][1]\n\n[1]: https://d.e", [("https://a.b/c", "https://d.e")]),
        ("[see https://a.b/c。 here](https://d.e)", [("see https://a.b/c。 here", "https://d.e")]),
        ("[https://a.b](https://d.e)", [("https://a.b", "https://d.e")]),
        ("https://a.b/c。**d**https://e.f", [(u, u) for u in ("https://a.b/c", "https://e.f")]),
        ("[![a](https://b.c/d.png)](https://e.f)", [("a", "https://e.f")]),
        ("[![](https://b.c/d.png)](https://e.f)", [("https://b.c/d.png", "https://e.f")]),
        ("[a ![b](/c.png) *d*](/e) ![f](/g)", [("a b <em>d</em>", "/e"), ("f", "/g")]),
    ],
)
def test_links_lead_where_they_say(text, links):
    assert links_in(render(text)) == links
    assert "\ufdd0" not in render(text)


@pytest.mark.parametrize(
    "text",
    [
        *("javascript://x/a", "data:text/html,a", "vbscript://a", "file:///etc/passwd", "ftp://a.b/c"),
        *("x://y", "://y", "https://", "Use https:// always", "https://。", "git+ssh://a/b"),
        *("xmpp:a@b.c", "irc://a.b", "@ada@example.org", "@ada:example.org", "example.org"),
    ],
)  # fmt: skip
def test_other_text_is_not_a_link(text):
    assert render(text) == f"<p>{text}</p>"


def test_the_mark_that_ends_a_url_may_be_typed():
    text = "https://example.org/a<\ufdd0。b"
    assert render(text).endswith("</a>&lt;\ufdd0。b</p>")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        *((text, text) for text in ("9~10時と14~15時", "~a~", "H~2~O", "~ a ~", "~a *b~ c*")),
        ("~~a~~ ~b~", "<del>a</del> ~b~"),
        ("~~a ~b~ c~~", "<del>a ~b~ c</del>"),
        ("~*a*~", "~<em>a</em>~"),
        ("これは**「重要」**です", "これは<strong>「重要」</strong>です"),
        ("**重要。**次", "<strong>重要。</strong>次"),
        ("한국어**(강조)**는", "한국어<strong>(강조)</strong>는"),
        ("*「a」*字~~（b）~~字", "<em>「a」</em>字<del>（b）</del>字"),
        ("a**b**c, 2 * 3 * 4, a_b_c", "a<strong>b</strong>c, 2 * 3 * 4, a_b_c"),
    ],
)
def test_emphasis(text, html):
    assert render(text) == f"<p>{html}</p>"
    assert to_plain(text) == re.sub("<[^>]*>", "", html)


@pytest.mark.parametrize("url", [f"{start}{'a' * 21}" for start in IMAGE_URLS])
def test_images_of_this_service_are_shown(url):
    html = render(f'![A "loom"]({url} "title")')
    image = f'<img src="{url}" alt="A &quot;loom&quot;" loading="lazy">'
    assert html == f'<p><a href="{url}" rel="nofollow ugc noopener">{image}</a></p>'


def test_an_image_has_its_size():
    images = [{"id": letter * 21, "width": 48, "height": 32, "sizes": []} for letter in "ab"]
    html = render(f"![A loom](/images/{'a' * 21})\n![](/images/{'c' * 21})")
    sized = markdown.add_sizes(html, "", images)
    assert f'<img src="/images/{"a" * 21}" width="48" height="32" alt="A loom"' in sized
    assert sized.count("width=") == 1


@pytest.mark.parametrize(
    ("width", "height", "sizes", "files"),
    [
        (4000, 3000, [(640, 640, 480), (1600, 1600, 1200)], "{0}/640 640w, {0}/1600 1600w"),
        (3000, 4000, [(640, 480, 640), (1600, 1200, 1600)], "{0}/640 480w, {0}/1600 1200w"),
        (1000, 500, [(640, 640, 320)], "{0}/640 640w, {0} 1000w"),
    ],
)
def test_a_browser_chooses_a_size_of_an_image(width, height, sizes, files):
    image = {"id": "a" * 21, "width": width, "height": height, "sizes": sizes}
    path = f"/c/images/{'a' * 21}"
    html = markdown.add_sizes(f'<img src="{path}" alt="A loom">', "/c", [image])
    assert html == (
        f'<img src="{path}" width="{width}" height="{height}" srcset="{files.format(path)}" '
        f'sizes="{COLUMN}" alt="A loom">'
    )


def test_an_image_without_a_description_has_a_name():
    for alt in ("", " ", "&nbsp;", "\u2800"):
        html = render(f"![{alt}](/images/{'a' * 21})")
        assert 'alt="Image without a description"' in html


def test_another_image_without_a_description_is_shown_as_its_url():
    assert ">https://a.example/b</a>" in render("![ ](https://a.example/b)")


def test_an_image_without_a_safe_url_is_shown_as_its_description():
    assert render("![A loom](javascript:a)") == "<p>A loom</p>"


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.com/a.png", "//example.com/a.png", "/imagesx", "data:image/png,a"),
        *("/images/", "/images/a", f"/images/{'a' * 22}", f"/images/{'a' * 20}é", "/images/../x"),
        *(f"/images/../{'a' * 21}", f"/images/x/{'a' * 21}", f"/images/{'a' * 21}?x"),
        *(f"/images/{'a' * 21}#x", f"/images/{'a' * 21}/", f"/images//{'a' * 21}", "a" * 21),
        *(f"images/{'a' * 21}", f"//images/{'a' * 21}", f"/images/{'a' * 10}%2F{'a' * 8}"),
    ],
)
def test_other_images_become_links(url):
    html = render(f"![A loom]({url})")
    assert "<img" not in html
    assert "A loom</a>" in html


@pytest.mark.parametrize("text", ATTACKS)
def test_attacks_are_inert(text):
    assert_inert(render(text))


def test_rendering_keeps_no_memory():
    command = [sys.executable, "-c", MEASURE_MEMORY]
    growth = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(growth) < 1.1


@pytest.mark.parametrize("text", ["a@b.c ", "+@.c", "+&#64;.c", "a@b.c \U0001f600"])
def test_hostile_texts_take_little_memory(text):
    code = MEASURE_PEAK.format(text=text)
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(run.stdout) < 100_000


@pytest.mark.parametrize("link", ["https://example.com/a?b=c", "www.example.com", "a@example.com"])
@pytest.mark.parametrize(
    "text", ["Some words.\n\n" * 7000, "字" * 10_000, "x" * 100_000, "R&D " * 20_000]
)
def test_links_are_found_in_long_texts(text, link):
    assert f">{link}</a>" in render(f"{text}\n\nSee {link} for more.")


def test_many_links_are_found_in_long_texts():
    html = render("See https://example.com/a?b=c or a@example.com for more.\n\n" * 1000)
    assert html.count('<a href="https://example.com/a?b=c"') == 1000
    assert html.count('<a href="mailto:a@example.com"') == 1000


def test_a_list_may_end_without_a_line_break():
    assert render("- a\n1.").count("<li>") == 2


def test_threads_do_not_change_what_others_render():
    """A renderer may share state, such as the characters that begin an extension."""
    texts = ["~~a~~ https://example.com\n" * 50, "|a|b|\n|-|-|\n|~~c~~|d|\n\n" * 50]
    with ThreadPoolExecutor(8) as pool:
        rendered = set(pool.map(render, texts * 500))
    assert rendered == {render(text) for text in texts}


def test_a_table_may_have_many_cells_if_the_text_has_them():
    row = "| a | b |\n"
    html = render(row + "|---|---|\n" + row * 500)
    assert html.count("<tr>") == 501
    assert render("|a|b|\n|-|-|\n|1|").count("<td>") == 2
    row = "| a | b | c | d | e | f |\n"
    assert "<table>" in render("- milk\n" * 60 + "\n" + row + "|---" * 6 + "|\n" + row)


def test_text_that_is_nested_too_deep_is_shown_as_it_is():
    text = ">" * 20 + " <b>a</b>\n> b"
    shown = "&gt;" * 20 + " &lt;b&gt;a&lt;/b&gt;\n&gt; b"
    assert render(text) == f'<p class="as-it-is">{shown}</p>'
    assert render(">" * 19 + " a").count("<blockquote ") == 19


def test_a_long_line_within_many_lists_is_shown_as_it_is():
    assert render("1. " * 20 + "a" * 5_000).startswith('<p class="as-it-is">1. 1. ')
    assert render("1. " * 9 + "a" * 5_000).count("<ol ") == 9
    assert render("- " * 2_000 + "\n\na") == "<hr>\n<p>a</p>"


def test_a_text_with_very_many_marks_of_footnotes_has_none():
    line, note = "Some words. " * 4 + "[^1]\n", "\n[^1]: A note."
    assert 'class="footnotes"' in render(line * 1_000 + note)
    assert render(line * 2_000 + note).count("[^1]") == 2_001


def test_text_that_becomes_too_much_html_is_shown_as_it_is():
    word = "*a* "
    assert render(word * 9_999).count("<em>") == 9_999
    assert render(word * 10_000) == f'<p class="as-it-is">{word * 10_000}</p>'
    line = f"{'>' * 19}a\n\n"
    assert render(line * 6).count("<blockquote ") == 19 * 6
    assert render(line * 80).count("<blockquote ") == 0


def test_text_of_very_many_lines_is_shown_as_it_is():
    lines = "ab\n" * 19_998
    assert render(f"```\n{lines}```") == f'<pre tabindex="0"><code>{lines}</code></pre>'
    windows = lines.replace("\n", "\r\n")
    assert render(f"```\r\n{windows}```").startswith("<pre ")
    for text in ("```\n\n\n" + lines, "```\r\r\r" + windows):
        assert render(text).startswith('<p class="as-it-is">')


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("![](b)" * 16_600, None),  # images that become links
        ("[](b)" * 9_900, FEED_BASE),
        ('[](b "c")' * 9_900, FEED_BASE),
        ("[a]: b\n\n" + "[a]" * 9_900, FEED_BASE),
        ("[]()" * 9_900, None),
        ("|a|\n|-|\n\n" * 2_000, None),
    ],
    ids=lambda value: value and value[:12],
)
def test_what_is_added_to_the_html_counts(text, base):
    assert render(text, base=base).startswith('<p class="as-it-is">')


@pytest.mark.parametrize(
    ("lines", "levels"), [(["![a](b)"], 2), (["|a|", "|-|"], 5)], ids=["link", "table"]
)
def test_levels_that_are_added_to_the_html_count(lines, levels):
    def quoted(depth):
        return "\n".join(">" * depth + line for line in lines)

    allowed = MAX_DEPTH - levels
    assert render(quoted(allowed)).count("<blockquote ") == allowed
    assert render(quoted(allowed + 1)).count("<blockquote ") == 0


def test_a_text_that_cannot_be_rendered_is_shown_as_it_is(monkeypatch, caplog):
    panic = Panic("byte index 1 is not a char boundary of `secret`")
    monkeypatch.setattr(comrak, "render_markdown", Mock(side_effect=panic))
    assert render("*secret* <b>\n") == '<p class="as-it-is">*secret* &lt;b&gt;\n</p>'
    message = "A text of 13 characters cannot be rendered and is shown as it is (Panic)"
    assert [record.message for record in caplog.records] == [message]
    assert "secret" not in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_is_no_failure_of_a_text(monkeypatch, error):
    monkeypatch.setattr(comrak, "render_markdown", Mock(side_effect=error))
    with pytest.raises(error):
        render("*b*")


def test_the_images_that_a_text_shows():
    image, other = "a" * 21, "b" * 21
    shown = render(f"![x](/images/{image}) `/images/{other}` [x](/images/{other})")
    assert markdown.image_ids(shown) == {image}
