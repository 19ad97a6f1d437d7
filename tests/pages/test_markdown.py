"""Markdown as HTML: what is shown, and what is made inert."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import nh3
import pytest

from posting.pages import markdown

IMAGE_URLS = "/images/", "https://example.org/images/"
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
        ("1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>"),
        ("3. a", '<ol start="3">\n<li>a</li>\n</ol>'),
        ("> a", "<blockquote>\n<p>a</p>\n</blockquote>"),
        ("# a", "<h2>a</h2>"),
        ("###### a", "<h6>a</h6>"),
        ("`<h1>`", "<p><code>&lt;h1&gt;</code></p>"),
        ("```python\na < b\n```", '<pre tabindex="0"><code>a &lt; b\n</code></pre>'),
        ("---", "<hr>"),
    ],
)
def test_markdown_is_rendered(text, html):
    assert render(text) == html


def test_headings_begin_below_those_of_the_page():
    assert render("# a\n\n### b\n\n###### c", heading=4) == "<h4>a</h4>\n<h6>b</h6>\n<h6>c</h6>"


def test_a_table_scrolls_inside_itself_and_keeps_its_alignment():
    html = render("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert html.startswith('<div class="table" tabindex="0"><table>')
    assert '<td class="right">2</td>' in html
    assert "align" not in html
    assert "style" not in html


def test_links_say_that_the_service_does_not_vouch_for_them():
    link = '<a href="https://example.com/?a&amp;b" rel="nofollow ugc noopener">'
    assert render("https://example.com/?a&b") == f"<p>{link}https://example.com/?a&amp;b</a></p>"
    assert render("[a](https://example.com/?a&b)") == f"<p>{link}a</a></p>"
    assert "mailto:ada@example.org" in render("<ada@example.org>")
    assert 'href="/p/x"' in render("[a](/p/x)")


@pytest.mark.parametrize("before", ["", "A\n", "- ", "> ", "A. ", "A: "])
@pytest.mark.parametrize("scheme", ["Http", "Https"])
def test_a_url_at_the_beginning_of_a_sentence_may_be_capitalized(before, scheme):
    url = f"{scheme.lower()}://example.com/Ada"
    assert f'<a href="{url}"' in render(f"{before}{scheme}://example.com/Ada is a link.")


def test_capitalized_urls_in_code_are_shown_as_they_are():
    assert render("`Https://` or\n\n    Https://a") == (
        '<p><code>Https://</code> or</p>\n<pre tabindex="0"><code>Https://a\n</code></pre>'
    )


@pytest.mark.parametrize("url", ["/images/a", "https://example.org/images/a"])
def test_images_of_this_service_are_shown(url):
    html = render(f'![A "loom"]({url} "title")')
    assert html == f'<p><img src="{url}" alt="A &quot;loom&quot;" loading="lazy"></p>'


@pytest.mark.parametrize(
    "url", ["https://example.com/a.png", "//example.com/a.png", "/imagesx", "data:image/png,a"]
)
def test_other_images_become_links(url):
    html = render(f"![A loom]({url})")
    assert "<img" not in html
    assert "A loom</a>" in html


# After OWASP's cheat sheet on cross-site scripting filter evasion, and CommonMark's own syntax.
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<a href="javascript:alert(1)">a</a>',
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](java&Tab;script:alert(1))",
    "[a](\x01javascript:alert(1))",
    "[a](vbscript:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](file:///etc/passwd)",
    "![a](javascript:alert(1))",
    '![a](/images/x"onerror="alert(1))',
    '![a" onerror="alert(1)](/images/x)',
    '![a](/images/x "t\\" onerror=alert(1) ")',
    "<javascript:alert(1)>",
    "[a]: javascript:alert(1)\n\n[a]",
    "<svg/onload=alert(1)>",
    "<iframe src=https://example.com>",
    "<style>@import 'https://example.com'</style>",
    "<b style=background:url(https://example.com)>a</b>",
    "<form action=https://example.com><input name=password></form>",
    "<meta http-equiv=refresh content=0>",
    "<base href=https://example.com>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    '```"><script>alert(1)</script>\na\n```',
    "<!--><script>alert(1)</script>-->",
    "<div id=main class=for-members>a</div>",
    '| a |\n|---|\n| <td onclick="alert(1)"> |',
    "[a](/x 'b\" onclick=alert(1) c')",
    "<h1 onclick=alert(1)>",
    '<img src="/images/a" alt="b" onerror="alert(1)">',
]
HARMLESS = {
    *("a blockquote br code del div em h2 h3 h4 h5 h6 hr img li ol p pre strong").split(),
    *"table tbody td th thead tr ul".split(),
}


@pytest.mark.parametrize("text", ATTACKS)
def test_attacks_are_inert(text):
    html = render(text)
    found = []

    def note(tag, attribute, value):
        found.append((tag, attribute, value))
        return value

    attributes = {tag: {"*"} for tag in HARMLESS}
    nh3.clean(html, tags=HARMLESS, attributes=attributes, attribute_filter=note, link_rel=None)
    assert nh3.clean(html, tags=set()) == nh3.clean(html, tags=set(), clean_content_tags=set())
    for tag, attribute, value in found:
        assert tag in HARMLESS
        assert attribute in {"href", "rel", "title", "src", "alt", "loading", "tabindex", "class"}
        if attribute in {"href", "src"}:
            assert value.startswith(("/", "http://", "https://", "mailto:")), value
    for part in ("<script", "<svg", "<iframe", "<style", "<form", "<input", "<meta", "<base"):
        assert part not in html.lower()


@pytest.mark.parametrize(
    "text",
    [
        ">" * 100_000,
        ">" * 10_000 + "a",
        "- " * 50_000 + "a",
        "\n".join("  " * depth + "- a" for depth in range(440)),
        "[" * 100_000,
        "*" * 100_000,
        "**a " * 25_000,
        "**a" * 16_000 + "b**" * 16_000,
        "[a](" * 25_000,
        "![" * 50_000,
        "`a" * 50_000,
        "<" * 100_000,
        "<a " * 33_000,
        "|a" * 50_000 + "\n" + "|-" * 50_000,
        "https://a.b/" * 8_000,
        "&#" * 50_000,
        "[a]: b\n" * 14_000 + "[a]",
        "|a" * 200 + "\n" + "|-" * 200 + "\n" + "a\n" * 50_000,
        "|a" * 200 + "\r" + "|-" * 200 + "\r" + "a\r" * 50_000,
        "|a" * 10_000 + "\n" + "|-" * 10_000 + "\n" + "a\n" * 25_000,
        "a@b.c " * 16_666,
        "+@.c" * 25_000,
        "+&#64;.c" * 12_500,
        "_www." * 19_999 + "_!",
        "www.a.b" + ")" * 99_000,
        "(www..<" * 14_000,
        "ftp://a.b<" * 10_000,
        ("+@.c" * 500 + "\n") * 50,
        ("_www." * 400 + " ") * 50,
        ("(www..<" * 280 + "\f") * 25 + ("\U0001f600" * 480 + "\v") * 100,
        "_www." * 3_000 + "\U0001f600" * 80_000,
        "&#119;ww." * 11_000,
        ("a" * 80 + "://") * 1_200,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_texts_are_rendered_quickly(text):
    started = time.process_time()
    html = render(text[:100_000])
    markdown.excerpt(text[:600])
    assert time.process_time() - started < 0.5
    assert len(html) < 15 * len(text)


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
    text = ">" * 101 + " <b>a</b>"
    assert render(text) == "<p>" + "&gt;" * 101 + " &lt;b&gt;a&lt;/b&gt;</p>"
    assert render(">" * 90 + " a").count("<blockquote>") == 90


def test_the_images_that_a_text_shows():
    image, other = "a" * 21, "b" * 21
    shown = render(f"![x](/images/{image}) `/images/{other}` [x](/images/{other})")
    assert markdown.image_ids(shown) == {image}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n\n**b** <i>c</i> & [d](https://example.com)", "A b c & d"),
        ("a\n\n\n b", "a b"),
        ("1 < 2 &amp; 3", "1 < 2 & 3"),
        ("x" * 300, "x" * 200 + " …"),
        ("word " * 60, ("word " * 40).strip() + " …"),
        ("", ""),
    ],
)
def test_an_excerpt_is_plain_text_in_one_line(text, expected):
    assert markdown.excerpt(text) == expected
