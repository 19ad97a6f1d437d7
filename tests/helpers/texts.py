"""Texts with a visible character, which would show nothing as Markdown."""

SHOW_NOTHING = [
    *("#", "######", ">", "> >", "-", "1.", "***", "- - -", "```\n```", "~~~x\n \n~~~"),
    *("&nbsp;", "&#x3164;", "&zwnj; &shy;", "[](https://example.org)", "![]()", "[]()", "[ ](x)"),
    *("[Update]: https://example.org", "[a]: b 'c'\n[d]: e", "[^1]: A note", "||\n|-|", "> #\n> -"),
]
INVISIBLE = [
    *("\u3164", "\u2800", "\u00ad", "\u034f", "\ufe0f", "\u202e", "\u115f", "\u1160", "\uffa0"),
    *("\u17b5", "\u180b", "\u061c", "\u2066", "\ufffb", "\ufffc", "\U000e0041", "\U000e0100"),
    *("\x01", "\x1b", "\x7f", "\x85", "\xa0", "\u3000", "\u2028"),
    *("\ue000", "\U0010fffd", "\u0378", "\uffff", "\U0001d159", "\U00013441", "\U0001d173"),
    "\U00016fe4",
    " \t\u3164\u2800\u00ad\u034f\ufe0f\u202e\u202c ",
]
