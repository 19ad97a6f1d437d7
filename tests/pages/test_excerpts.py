"""The beginnings of texts in lists, notifications and reports."""

import re

from tests.helpers.moderation import report
from tests.helpers.notifications import told

LINK = f"[Looms](https://example.org/{'x' * 1900}) weave"
UNSPACED = f"お知らせ {'布' * 300}"
SHORT = {LINK: "Looms weave", UNSPACED: f"お知らせ {'布' * 195} …"}


def excerpts(html):
    return re.findall(r'<p class="excerpt" dir="auto">(.*?)</p>', html)


def test_they_are_plain_and_of_the_same_length_everywhere(alice, bob, anonymous):
    posts = {text: alice.create_post("Looms", content=text) for text in SHORT}
    newest_first = [*reversed(SHORT.values())]
    for path in ("/", "/?sort=active", "/@alice"):
        assert excerpts(anonymous.get(path).text) == newest_first
    for text, post in posts.items():
        comment = bob.add_comment(post, text)
        assert told(alice)[0]["comment"]["excerpt"] == SHORT[text]
        assert report(alice, "comment", comment)["target"]["excerpt"] == SHORT[text]
        assert report(bob, "post", post)["target"]["excerpt"].startswith(
            "Looms: " + SHORT[text][:180]
        )
        [description] = re.findall(
            r'<meta name="description" content="(.*?)">', anonymous.get(f"/p/{post['id']}").text
        )
        assert SHORT[text].startswith(description.removesuffix(" …"))
        assert len(description) > 10
