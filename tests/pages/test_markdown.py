"""Markdown as HTML: what is shown, and what is made inert."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import nh3
import pytest

from posting.pages import markdown
from tests.helpers.panics import Panic

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


@pytest.mark.parametrize("url", [f"{start}{'a' * 21}" for start in IMAGE_URLS])
def test_images_of_this_service_are_shown(url):
    html = render(f'![A "loom"]({url} "title")')
    assert html == f'<p><img src="{url}" alt="A &quot;loom&quot;" loading="lazy"></p>'


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
    assert render(">" * 19 + " a").count("<blockquote>") == 19


def test_text_that_becomes_too_much_html_is_shown_as_it_is():
    word = "*a* "
    assert render(word * 9_999).count("<em>") == 9_999
    assert render(word * 10_000) == f'<p class="as-it-is">{word * 10_000}</p>'
    line = f"{'>' * 19}a\n\n"
    assert render(line * 8).count("<blockquote>") == 19 * 8
    assert render(line * 80).count("<blockquote>") == 0


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

    allowed = markdown.MAX_DEPTH - levels
    assert render(quoted(allowed)).count("<blockquote>") == allowed
    assert render(quoted(allowed + 1)).count("<blockquote>") == 0


def test_a_text_that_cannot_be_rendered_is_shown_as_it_is(monkeypatch, caplog):
    panic = Panic("byte index 1 is not a char boundary of `secret`")
    monkeypatch.setattr(markdown.comrak, "render_markdown", Mock(side_effect=panic))
    assert render("*secret* <b>\n") == '<p class="as-it-is">*secret* &lt;b&gt;\n</p>'
    assert markdown.excerpt("*secret* <i>\n") == "*secret* <i>"
    message = "A text of 13 characters cannot be rendered and is shown as it is (Panic)"
    assert [record.message for record in caplog.records] == [message] * 2
    assert "secret" not in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_is_no_failure_of_a_text(monkeypatch, error):
    monkeypatch.setattr(markdown.comrak, "render_markdown", Mock(side_effect=error))
    with pytest.raises(error):
        render("*b*")
    with pytest.raises(error):
        markdown.to_plain("*b*")


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
        ('"a" &amp;lt; &quot;b&quot; &nbsp;c <http://d.e/?f&g>', '"a" &lt; "b" c http://d.e/?f&g'),
        ("![a > b](/c) d  \n`<e>`", "d <e>"),
        ("x" * 300, "x" * 200 + " …"),
        ("word " * 60, ("word " * 40).strip() + " …"),
        ("", ""),
    ],
)
def test_an_excerpt_is_plain_text_in_one_line(text, expected):
    assert markdown.excerpt(text) == expected
