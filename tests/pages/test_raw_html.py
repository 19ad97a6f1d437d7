"""Raw HTML, and texts that show nothing as Markdown, are read everywhere as they were typed."""

import html
import re

import pytest

from tests.helpers.moderation import open_reports, report
from tests.helpers.notifications import told

TEXTS = [
    "<p>Hello @bob, loom<int></p>",
    "<details><!-- Hello @bob, loom<int> -->",
    "[Hello @bob, loom<int>]: /x",
]


@pytest.fixture(params=TEXTS)
def text(request):
    return request.param


@pytest.fixture
def post(alice, bob, text):
    post = alice.create_post("On engines", content=text)
    alice.add_comment(post, text)
    return post


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/p/{id}", "/@alice", "/@alice?show=comments"),
        *("/search?q=loom", "/search?q=loom&show=comments", "/feed.atom", "/comments/feed.atom"),
        *("/feed.json", "/comments/feed.json", "/p/{id}/feed.atom", "/@alice/feed.json"),
    ],
)
def test_pages_and_feeds_show_it(anonymous, post, text, path):
    response = anonymous.get(path.format(id=post["id"]))
    shown = html.unescape(response.text) if path.endswith(".atom") else response.text
    shown = re.sub(r"</?mark>|<a href=[^ ]*@bob[^>]*>(?=@bob</a>)|(?<=@bob)</a>", "", shown)
    assert html.escape(text) in shown


def test_notifications_and_reports_quote_it(alice, bob, moderator, post, text):
    comment = bob.add_comment(post, text)
    assert told(alice)[0]["comment"]["excerpt"] == text
    report(alice, "comment", comment)
    report(bob, "post", post)
    excerpts = {each["target"]["excerpt"] for each in open_reports(moderator)}
    assert excerpts == {text, f"On engines: {text}"}


def test_who_is_mentioned_in_shown_html_is_notified(bob, post, text):
    kinds = [notification["kind"] for notification in told(bob)]
    assert kinds == ([] if text.startswith("[") else ["mention", "mention"])
