"""Markdown as plain text."""

from unittest.mock import Mock

import comrak
import pytest

from posting import markdown
from tests.helpers.panics import Panic


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
