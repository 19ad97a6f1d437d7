"""Texts of allowed length that cost much time or memory, or that made something fail.

`STANDING` has each text that was ever expensive. `SHAPES` make texts of two atoms of Markdown or
Unicode.
"""

from itertools import product

LIMIT = 100_000  # characters of a post


def pairs(first: str, last: str) -> str:
    """Return all pairs of the letters in a range of Unicode, with spaces between them."""
    letters = [*filter(str.isalpha, map(chr, range(ord(first), ord(last) + 1)))]
    return " ".join(map("".join, product(letters, repeat=2)))[:LIMIT]


HAN = [*filter(str.isalnum, map(chr, (*range(0x3400, 0x9FFF), *range(0x20000, 0x323AF))))]

STANDING = [
    # Rows of non-starters, which `unicodedata` sorts by insertion.
    "a" + "\u0300" * 49_999 + "\u0316" * 50_000,
    "a" + "\ufe20" * 49_999 + "\u0316" * 50_000,
    "a" + "\U0001e8d0" * 49_999 + "\u0300" * 50_000,
    "א" + "\u05c1\u05b0" * 49_999,
    "ཀ" + "\u0f73\u0f71" * 49_999,
    "a" + "\u0344" * 99_999,
    "a" + "\u0300" * 49_999 + "\uff9e" * 50_000,
    ("\u094d" * 30 + "\u200d" + "\u093c" * 30 + "\u200d") * 1_612,
    # Lists in each other, for each of which the rest of the line is read; and many footnotes.
    ("1. " * 16_667 + '"' * 50_000)[:100_000],
    ("- " * 25_000 + "<?" * 25_000)[:100_000],
    ("[^b]a\n" * 16_667)[:100_000],
    # Entities of more digits than Python converts.
    "&#" + "1" * 4_400 + ";" + "&" * 250,
    "&#" + "1" * 99_997,
    ("&#" + "1" * 4_301 + ";@") * 23,
    # Small texts that become much HTML, or very many elements.
    (">" * 99 + "a\n\n") * 980,
    (">" * 19 + "a\n\n") * 4_500,
    "- " * 9 + "a\n\n" * 33_000,
    "|a" * 200 + "\n" + "|-" * 200 + "\n" + "a\n" * 49_599,
    "|a" * 200 + "\r" + "|-" * 200 + "\r" + "a\r" * 49_599,
    "|a" * 10_000 + "\n" + "|-" * 10_000 + "\n" + "a\n" * 24_999,
    "[a]: /" + "b" * 2_000 + "\n\n" + "[a]" * 32_000,
    "[^1]: a\n\n" + "[^1]" * 24_000,
    '"' * LIMIT,
    # HTML that grows after it was rendered.
    "![](b)" * 16_600,
    "[](b)" * 9_900,
    '[](b "c")' * 9_900,
    "[a]: b\n\n" + "[a]" * 9_900,
    "|a|\n|-|\n\n" * 2_000,
    # Nesting.
    ">" * LIMIT,
    ">" * 10_000 + "a",
    "- " * 49_999 + "a",
    "\n".join("  " * depth + "- a" for depth in range(310)),
    "- " * 99 + "a" + "\n" * 99_000,
    "[^a]: - " * 49 + "```" + "\n" * 99_000,
    ("1. " * 99 + "a" + "\r" * 9_700) * 10,
    "**a" * 16_000 + "b**" * 16_000,
    # Beginnings without ends.
    "[" * LIMIT,
    "*" * LIMIT,
    "**a " * 25_000,
    "[a](" * 25_000,
    "![" * 50_000,
    "`a" * 50_000,
    "".join("`" * length + " " for length in range(1, 440)),
    "<" * LIMIT,
    "<a " * 33_000,
    "<!--" * 25_000,
    "&#" * 50_000,
    "|a" * 25_000 + "\n" + "|-" * 24_999,
    "[a]: b\n" * 14_000 + "[a]",
    # Footnotes.
    "[^" * 20_000 + "_ " * 19_000 + "`a`" + "]" * 20_000,
    "[&Hat;" * 10_000 + "_ " * 13_000 + "[^`a`" + "]" * 10_000,
    "[^\U0001f600]: a\n\n" + "[^\U0001f600]" * 24_000,
    "".join(f"[^{number}]: [^{number + 1}]\n\n" for number in range(5_000)) + "[^0]",
    # URLs and e-mail addresses.
    "https://a.b/" * 8_000,
    "a@b.c " * 16_666,
    "+@.c" * 25_000,
    "+&#64;.c" * 12_500,
    "_www." * 19_999 + "_!",
    "www.a.b" + ")" * 99_000,
    "(www..<" * 14_000,
    "ftp://a.b<" * 10_000,
    ("+@.c" * 500 + "\n") * 49,
    ("_www." * 400 + " ") * 49,
    ("(www..<" * 280 + "\f") * 25 + ("\U0001f600" * 480 + "\v") * 100,
    "_www." * 3_000 + "\U0001f600" * 80_000,
    "&#119;ww." * 11_000,
    ("a" * 80 + "://") * 1_200,
    "https://a。" * 10_000,
    "https://" * 12_500,
    "https://a" + "·" * 99_000,
    "https://a" + "·—’" * 33_000 + "b",
    "[https://a][" * 8_000,
    "www.a.b" + "]" * 99_000,
    "www.a.b" + "}" * 99_000,
    "http://a.b/]}" * 7_600,
    "ftp://a.b " * 10_000,
    "[![](b)](c)" * 9_000,
    # Raw HTML.
    "<p>\n" * 19_000,
    "<p>\n\n" * 20_000,
    "<!-- -->\na\n" * 9_000,
    "<a\nb " * 16_000,
    "- <p>\n" * 14_000,
    "<a href='@abc'>" * 6_000,
    # Texts that show nothing, and a single tilde.
    "&nbsp;" * 16_000,
    "[a]: b\n" * 14_000,
    "&#x2800; " * 11_000,
    "~a~" * 33_000,
    # Mentions.
    "@abc " * 20_000,
    "*@abc*" * 9_000,
    "`@abc`" * 9_000,
    "[@abc](b)" * 9_000,
    "&commat;abc&" * 8_000,
    "@abc@" * 20_000,
    "@" * LIMIT,
    "@" + "a" * 99_999,
    # Words.
    "字" * LIMIT,
    "é " * 50_000,
    "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * LIMIT,
    "a" * LIMIT,
    "c " + "a " * 49_990,
    "\u3000a" * 50_000,
    # Very many different words.
    "".join(HAN * 2)[:LIMIT],
    " ".join(
        "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * length for length in range(1, 440)
    ),
    pairs("\u1e00", "\u1eff"),
    pairs("\u0400", "\u04ff"),
]

_MARKDOWN = (
    "a|ab |1|_|__|*|**|***|~|~~|`|``|```|[|]|(|)|[]|[a]|[a](|](|)|![|![a](|[^|[^a]: |[a]: |"
    '[a]: b "|<|>|<a>|</a>|<!--|-->|<?|<!A |<![CDATA[|<a@b.c>|<http:a>|<b "|/|\\|\\\\|\\*|'
    "&|&amp;|&#1;|&#x41;|&#|&nbsp;|&lt;|;|#|# |### |=|-|--|+|- |+ |1. |1) |0. |999999999. |"
    "> |>>|:|:-|'|\"|''|http|http://|https://|www.|www.a|ftp://|mailto:|@|a@b|a@b.c|.|..|.c|"
    "!|?|,|$|%|^|{|}|[ ] |- [ ] |://|a.b|Http://|/images/|[a](/images/|![](/images/|"
    '@abc|@abc |&commat;|&#64;|&#x0040;|[](b)|![](b)|[](b "c")|![](b "c")|[a][a]|![a]|![a][a]|'
    "[^a]|[^b]|[^a]: [^b]|![^a]|[[^a]](b)|[&Hat;|[^<b>|- [ ] |- [x] |1. [x] |[x] a"
).split("|")
_LINES = [
    *("\n", "\n\n", "\r", "\r\n", "\n ", "\n    ", "\n\t", "\na", "\n- ", "\n> ", "\n# ", "\n1. "),
    *(
        "\n```\n",
        "\n---\n",
        "\n===\n",
        "\n|a|b|\n|-|-|\n",
        "|a",
        "|-",
        "|",
        "\n|",
        "|:-",
        "\n<b>\n",
    ),
    *(" ", "  ", "    ", "\t", "\f", "\v", "\\\n", "  \n", "\n[a]: b", "\n[^a]: b", "\n: "),
    *('\n[a]: b "c"', "\n- [x] a", "\n- [ ] ", "a\n", "]\n", "\\\n]"),
    *("\n> [^a]: b\n\n", "\n    [^a]: ", "\n[^a]: [^b]\n\n[^b]: [^a]\n\n"),
    "\n[^\U0001f600]: a\n\n[^\U0001f600]",
]
_UNICODE = [
    *("\u0300", "\u0316", "\u0344", "\u0f73", "\ufe20", "\U0001e8d0", "\u05b0", "\u094d", "\u3099"),
    *(
        "\uff9e",
        "\u200d",
        "\u00ad",
        "\u200b",
        "\ufeff",
        "\u202e",
        "\u2028",
        "\x85",
        "\xa0",
        "\u3000",
    ),
    *(
        "é",
        "ß",
        "İ",
        "\ufb01",
        "\ufdfa",
        "\u1f82",
        "Σ",
        "字",
        "が",
        "한",
        "\u1100",
        "\u0e2a",
        "\U0001f9f5",
    ),
    *(
        "\U0001f468\u200d",
        "\U0001d4d0",
        "\U00012000",
        "\u2126",
        "½",
        "\ufffd",
        "\uffff",
        "\U0010ffff",
    ),
    *("\x01", "\x7f", "\x1b"),
]
ATOMS = [*dict.fromkeys(atom for atom in (*_MARKDOWN, *_LINES, *_UNICODE) if atom)]


def fill(unit: str, length: int = LIMIT) -> str:
    """Return a text of this length that repeats `unit`."""
    return (unit * (length // len(unit) + 1))[:length]


def alone(atom: str, _other: str) -> str:
    return fill(atom)


def alternating(atom: str, other: str) -> str:
    return fill(atom + other)


def one_before_the_other(atom: str, other: str) -> str:
    return fill(atom, LIMIT // 2) + fill(other, LIMIT // 2)


SHAPES = [alone, alternating, one_before_the_other]
