"""Mentions in texts: which are found, and which `@` is none."""

from unittest.mock import Mock

import comrak
import pytest

from posting.accounts.mentions import MAX_MENTIONS, find_mentions
from tests.helpers.panics import Panic


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@ada", {"ada"}),
        ("Thanks, @Ada_Lovelace-2!", {"ada_lovelace-2"}),
        ("@ada, @bob: @ADA", {"ada", "bob"}),
        ('(@ada) "@bob" >@eve<', {"ada", "bob", "eve"}),
        ("@ada's @bob.", {"ada", "bob"}),
        ("@ada: hello. @bob:", {"ada", "bob"}),
        ("@ada:\n@bob:さん", {"ada", "bob"}),
        ("**@ada** ~~@bob~~ _@eve_", {"ada", "bob", "eve"}),
        ("# @ada\n\n> @bob\n\n- @eve\n\n|a|\n|-|\n|@dan|", {"ada", "bob", "eve", "dan"}),
        ("@adaさん 谢谢@bob é@eve", {"ada", "bob", "eve"}),
        ("&#64;ada &commat;bob &#x40;eve \\@dan", {"ada", "bob", "eve", "dan"}),
        ("@ada:你好 @bob.你好。x.y @eve:[loom] @dan:привет. Да", {"ada", "bob", "eve", "dan"}),
        ("@ada/@bob", {"ada"}),
        ("[^1]\n\n[^1]: @ada", {"ada"}),
        ("<p>@ada</p>\n\n<b title='@bob'> <!-- @eve -->", {"ada", "bob", "eve"}),
        (f"@{'a' * 32}", {"a" * 32}),
    ],
)
def test_a_mention_is_an_at_sign_and_a_name(text, names):
    assert find_mentions(text) == names


@pytest.mark.parametrize(
    "text",
    [
        *("ada", "@", "@ ada", "@ab", "@_ada", "@-ada", f"@{'a' * 33}"),
        *("ada@example.org", "<ada@example.org>", "a@ada", "a_@ada", "1@ada", "@@ada", "/@ada"),
        *("@ada@example.org", "@ada.example.org", "@ada:example.org", "@ada:8448", "@ada/engines"),
        *(
            "@ada:пример.рф",
            "@ada:例え.jp",
            "@ada.пример.рф",
            "@ada:उदाहरण.भारत",
            "@ada/при-мер.рф",
        ),
        *("@ada:[2001:db8::1]", "@ada:[::1]:8448"),
        *("https://example.org/@ada", "example.org/@ada", "https://example.org/?a=@ada"),
        *("`@ada`", "```\n@ada\n```", "    @ada", "``a ` @ada``"),
        *("[@ada](/x)", "[**@ada**](/x)", "![@ada](/x)", "[a](/x '@ada')", "[a]: /x '@ada'\n\n[a]"),
        *("<a href='/@ada'>", "[a](/@ada)", "[^@ada]\n\n[^@ada]: x"),
        ">" * 30 + " @ada",
    ],
)
def test_what_is_no_mention(text):
    assert find_mentions(text) == frozenset()


def test_only_the_first_twenty_of_a_text_count():
    names = [f"user-{number}" for number in range(MAX_MENTIONS + 5)]
    assert find_mentions(" ".join(f"@{name}" for name in names)) == set(names[:MAX_MENTIONS])


def test_a_text_without_an_at_sign_is_not_parsed(monkeypatch):
    monkeypatch.setattr(comrak, "render_markdown", Mock(side_effect=AssertionError))
    assert find_mentions("*They* weave algebra. &amp; &#6;") == frozenset()


def test_a_text_that_cannot_be_rendered_mentions_nobody(monkeypatch, caplog):
    monkeypatch.setattr(comrak, "render_markdown", Mock(side_effect=Panic("secret")))
    assert find_mentions("@ada") == frozenset()
    assert "cannot be rendered" in caplog.text
    assert "secret" not in caplog.text
