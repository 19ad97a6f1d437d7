"""Texts that would run a script or load something, if a page showed them as HTML."""

import nh3

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
    "[a](javascript\n:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a](javascript:alert(1) 'b')",
    "[a](javas\u200bcript:alert(1))",
    "[a](&#x6A;&#x61;vascript&colon;alert(1))",
    '[a](//example.com/"onmouseover=alert(1))',
    "[a](http://a'onmouseover='alert(1))",
    "[a][1]\n\n[1]: vbscript:alert(1) 'b'",
    "![a](data:image/svg+xml,<svg onload=alert(1)>)",
    "![<img src=x onerror=alert(1)>](/x)",
    "![a](x){onerror=alert(1)}",
    "http://a.example/<script>alert(1)</script>",
    'www.a.example/"onclick=alert(1)//',
    'a@example.com"onclick=alert(1)',
    '@a"onclick=alert(1)',
    "a[^1]\n\n[^1]: <script>alert(1)</script>",
    'a[^"onclick=alert(1)]\n\n[^"onclick=alert(1)]: b',
    "- [x] <img src=x onerror=alert(1)>",
    "~~~ <script>alert(1)</script>\na\n~~~",
    '~~~ a" onclick=alert(1)\nb\n~~~',
    "`<script>alert(1)</script>`",
    "    <script>alert(1)</script>",
    "# <img src=x onerror=alert(1)>",
    "> <svg><script>alert(1)</script></svg>",
    "**<img src=x onerror=alert(1)>**",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<select autofocus onfocus=alert(1)>",
    "<textarea autofocus onfocus=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<link rel=stylesheet href=https://example.com>",
    "<svg><animate onbegin=alert(1) attributeName=x>",
    "<svg><a xlink:href=javascript:alert(1)><text>a</text></a></svg>",
    "<svg><use href='data:image/svg+xml,<svg onload=alert(1)>'>",
    "<math href=javascript:alert(1)>a</math>",
    "<template><script>alert(1)</script></template>",
    "<textarea></textarea><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</template><script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<SCRIPT SRC=//example.com></SCRIPT>",
    "<script\n>alert(1)</script\n>",
    "<img\tsrc=x\tonerror=alert(1)>",
    "<img/src=x/onerror=alert(1)>",
    "<img src=x onerror=alert(1)//",
    "<img src=`x` onerror=alert(1)>",
    "<img src=x:x onerror=alert(1)>",
    "<<img src=x onerror=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\<script>alert(1)\\</script>",
    "\u2028<script>alert(1)</script>",
    "\ufeff<script>alert(1)</script>",
    "\u202e<script>alert(1)</script>",
    "<!-- --!><img src=x onerror=alert(1)> -->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><script>alert(1)</script>",
    "<!DOCTYPE x [<!ENTITY a '<script>alert(1)</script>'>]>&a;",
    "<x onclick=alert(1)>a</x>",
    "<p style='animation:x' onanimationstart=alert(1)>",
    "<button formaction=javascript:alert(1)>a</button>",
    "<form><button formaction=javascript:alert(1)>a",
    "<a href=javascript:alert(1)>a</a>",
    "<a href=' javascript:alert(1)'>a</a>",
    "<a href='java\nscript:alert(1)'>a</a>",
    "<a id=status name=status>a</a>",
    "<img name=forms><img name=cookie>",
    "<form id=me name=root><input name=action></form>",
    "<b data-action=sign-out data-api=DELETE data-url=/users/me>a</b>",
    "<form data-api=DELETE data-form=sign-in action=/users/me></form>",
    "| <script>alert(1)</script> | b |\n|---|---|\n| <img src=x onerror=alert(1)> | c |",
    '| a |\n|:-:" onclick="alert(1)|\n| b |',
    "{{ 7 * 7 }}{% raw %}",
    "${alert(1)}",
    "{{constructor.constructor('alert(1)')()}}",
    "'-alert(1)-'",
    '");alert(1);//',
    "';alert(1)//",
    "javascript:/*--></title></style></textarea></script><svg/onload='+/\"/+/onmouseover=1/+/[*/[]/+alert(1)//'>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
]

HARMLESS = {
    *("a blockquote br code del div em h2 h3 h4 h5 h6 hr img li ol p pre strong").split(),
    *"section sup table tbody td th thead tr ul".split(),
}
HARMLESS_ATTRIBUTES = {
    *("alt aria-label class dir href id loading rel role src tabindex title").split()
}
MARKS = ("<script", "<svg", "<iframe", "<style", "<form", "<input", "<meta", "<base")


def assert_inert(html: str) -> None:
    """Assert that nothing in the HTML of a text runs a script, or looks like a part of the page."""
    found = []

    def note(tag: str, attribute: str, value: str) -> str:
        found.append((tag, attribute, value))
        return value

    attributes = {tag: {"*"} for tag in HARMLESS}
    nh3.clean(html, tags=HARMLESS, attributes=attributes, attribute_filter=note, link_rel=None)
    assert nh3.clean(html, tags=set()) == nh3.clean(html, tags=set(), clean_content_tags=set())
    for tag, attribute, value in found:
        assert tag in HARMLESS
        assert attribute in HARMLESS_ATTRIBUTES
        if attribute in {"href", "src"}:
            assert value.startswith(("/", "#fn", "http://", "https://", "mailto:")), value
    for mark in MARKS:
        assert mark not in html.lower()
