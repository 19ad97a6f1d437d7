"""Markdown as plain text."""

from unittest.mock import Mock

import comrak
import pytest

from posting import markdown
from tests.helpers.panics import Panic
from tests.helpers.texts import SHOW_NOTHING


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n\n**b** <i>c</i> & [d](https://example.com)", "A b <i>c</i> & d"),
        ("a\n\n\n b", "a b"),
        ("1 < 2 &amp; 3", "1 < 2 & 3"),
        ('"a" &amp;lt; &quot;b&quot; &nbsp;c <http://d.e/?f&g>', '"a" &lt; "b" c http://d.e/?f&g'),
        ("![a > b](/c) d  \n`<e>`", "d <e>"),
        ("x" * 300, "x" * 200 + " …"),
        ("word " * 60, ("word " * 40).strip() + " …"),
        ("お知らせ " + "布" * 300, "お知らせ " + "布" * 195 + " …"),
        ("布" * 180 + " " + "布" * 180, "布" * 180 + " …"),
        ("x" * 199 + "e\u0301" + "x" * 9, "x" * 199 + " …"),
        ("👨\u200d👩\u200d👧" * 50, "👨\u200d👩\u200d👧" * 40 + " …"),
        ("🇩🇪" * 150, "🇩🇪" * 100 + " …"),
        ("x" + "🇩🇪" * 150, "x" + "🇩🇪" * 99 + " …"),
        ("x" + "\u0301" * 300, "x" + "\u0301" * 199 + " …"),
        (f"[a](https://b.example/{'c' * 3000}) d", "a"),
        (f"b ![a](data:image/png;base64,{'c' * 30_000}) d", "b"),
        (f"[a](https://b.example/{'c' * 1900}) d", "a d"),
        (f"a [![b](/c)](https://d.example/(e{'f' * 3000})) g", "a"),
        (
            f"[a](https://b.example/(c) {'d ' * 2000}",
            "[a](https://b.example/(c) " + "d " * 86 + "d …",
        ),
        (f"[a](<https://b.example/(c {'d' * 3000}>) e", "a"),
        (f"a <https://b.example/{'c' * 3000}> d", f"a https://b.example/{'c' * 180} …"),
        (f"a [![b](/{'c' * 3000})](https://d.example) e", "a"),
        ("\\" * 2100, "\\" * 200 + " …"),
        (f"[a](https://b.example/{'c' * 1977}\\_d) e", "a"),
        ("", ""),
        ("std::vector<int> v", "std::vector<int> v"),
        ("if a <b and c> d", "if a <b and c> d"),
        ("<!-- a\nb -->\n\n<p>*c*</p>\n\n*d*", "<!-- a b --> <p>*c*</p> d"),
    ],
)
def test_an_excerpt_is_plain_text_in_one_line(text, expected):
    assert markdown.excerpt(text) == expected


@pytest.mark.parametrize("text", SHOW_NOTHING)
def test_the_excerpt_of_a_text_that_shows_nothing_is_the_text(text):
    assert markdown.excerpt(text) == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![A > B](/c)", "A > B"),
        ("![](/c)", "🖼️"),
        ("![ ](https://b.example/c)", "🖼️"),
        ("![&nbsp;\u2800](/c)", "🖼️"),
        ("![ ](javascript:c)", "![ ](javascript:c)"),
        ("![A](javascript:c)", "A"),
        ("![A](/c)\n\n![](/d)", "A 🖼️"),
    ],
)
def test_the_excerpt_of_an_image_alone_is_its_description(text, expected):
    assert markdown.excerpt(text) == expected


def test_an_excerpt_leaves_footnotes_out():
    assert markdown.excerpt("a[^1] b\n\n[^1]: c\n\nd") == "a b d"


def test_the_excerpt_of_a_text_that_cannot_be_rendered_is_its_beginning(monkeypatch, caplog):
    panic = Panic("byte index 1 is not a char boundary of `secret`")
    monkeypatch.setattr(comrak, "render_markdown", Mock(side_effect=panic))
    assert markdown.excerpt("*secret* <i>\n") == "*secret* <i>"
    message = "A text of 13 characters cannot be rendered and is shown as it is (Panic)"
    assert [record.message for record in caplog.records] == [message]
    assert "secret" not in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_is_no_failure_of_a_text(monkeypatch, error):
    monkeypatch.setattr(comrak, "render_markdown", Mock(side_effect=error))
    with pytest.raises(error):
        markdown.to_plain("*b*")
