"""Pages, feeds and lists with texts that the renderer of Markdown fails on."""

import html
from itertools import product

import comrak
import pytest

from posting.db.transactions import unit_of_work
from posting.markdown import _plain_beginning
from posting.pages import markdown
from posting.site.store import edit_site, lock_site
from posting.web.hosts import url_template
from tests.conftest import add_topic
from tests.helpers.moderation import open_reports, report
from tests.helpers.notifications import told
from tests.helpers.panics import Panic

TEXT = "*Some* <b>text</b> & more"


@pytest.fixture
def broken(request, monkeypatch):
    """Make a part of the renderer fail."""

    def fail(*_, **__):
        raise (Panic if "panics" in request.param else ValueError)(TEXT)

    if "nh3" in request.param:
        monkeypatch.setattr(markdown, "_allowed", fail)
    else:
        monkeypatch.setattr(comrak, "render_markdown", fail)
    _plain_beginning.cache_clear()
    yield
    _plain_beginning.cache_clear()


@pytest.fixture
def client(make_app, alice, tmp_path):
    (tmp_path / "about.md").write_text(TEXT)
    (tmp_path / "custom.css").touch()
    with alice.application.app_context(), unit_of_work():
        edit_site(lock_site(), {"accent": "#204f95"})
    return alice.copy(make_app(INSTANCE_PATH=str(tmp_path)))


LISTS = [
    *("/", "/?sort=active", "/@alice"),
    *("/search?q=engines", "/search?q=more", "/search?q=more&show=comments"),
]
TEXTS = [
    *("/about", "/p/{id}", "/p/{id}?sort=newest", "/p/{id}/edit", "/@alice?show=comments"),
    *("/feed.atom", "/feed.json", "/comments/feed.atom", "/comments/feed.json"),
    *("/@alice/feed.atom", "/@alice/feed.json", "/p/{id}/feed.atom", "/p/{id}/feed.json"),
]


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        *product(LISTS + TEXTS, ["comrak fails", "comrak panics"]),
        *product(TEXTS, ["nh3 fails"]),  # lists have plain text, which nh3 does not read
    ],
    indirect=["broken"],
)
def test_every_page_shows_them_as_they_are(path, client, broken):
    post = client.create_post("On engines", content=TEXT)
    client.add_comment(post, TEXT)
    response = client.get(path.format(id=post["id"]))
    assert response.status_code == 200, response.text
    text = html.unescape(response.text) if path.endswith(".atom") else response.text
    assert "text&lt;/b&gt; &amp; " in text
    assert "<b>" not in text


@pytest.mark.parametrize("broken", ["comrak fails", "nh3 fails"], indirect=["broken"])
def test_no_page_and_no_feed_fails(client, broken):
    topic = add_topic(client.application)
    post = client.create_post("On engines", content=TEXT, topics=[topic])
    client.add_comment(post, TEXT)
    token = client.post("/tokens", json={"name": "Reader", "scope": "feed"}).json["token"]
    paths = [
        url_template(rule.rule).format(
            id=topic if "/t/" in rule.rule else post["id"], username="alice", token=token
        )
        for rule in client.application.url_map.iter_rules()
        if rule.endpoint.startswith(("pages.", "feeds.")) and "GET" in rule.methods
        if not rule.endpoint.startswith(("feeds.get_image", "feeds.get_file"))
        if rule.endpoint != "pages.show_style_guide"
    ]
    assert len(paths) > 20
    for path in paths:
        with client.get(path) as response:
            assert response.status_code == 200, path


@pytest.mark.parametrize(
    "broken", ["comrak fails", "comrak panics", "nh3 fails"], indirect=["broken"]
)
def test_a_preview_shows_them_as_they_are(client, broken, caplog):
    response = client.post("/preview", json={"content": TEXT})
    assert response.json == {"html": f'<p class="as-it-is">{html.escape(TEXT)}</p>'}
    assert f"A text of {len(TEXT)} characters cannot be rendered" in caplog.text
    assert "*Some*" not in caplog.text


@pytest.mark.parametrize("broken", ["comrak fails", "comrak panics"], indirect=["broken"])
def test_notifications_and_reports_have_them_as_they_are(alice, bob, moderator, broken):
    post = alice.create_post("On engines", content=TEXT)
    comment = bob.add_comment(post, TEXT)
    report(bob, "post", post)
    report(alice, "comment", comment)
    [notification] = told(alice)
    assert notification["comment"]["excerpt"] == TEXT
    excerpts = {each["target"]["excerpt"] for each in open_reports(moderator)}
    assert excerpts == {TEXT, f"On engines: {TEXT}"}
