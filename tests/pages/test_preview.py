"""Rendered text: the preview is as the page will be, and mentions are links."""

from posting.pages import views
from tests.helpers.assertions import assert_problem
from tests.helpers.pages import links, path_of
from tests.helpers.transactions import is_in_transaction


def test_a_mention_is_a_link_in_pages_previews_and_feeds(alice, bob, read):
    post = alice.create_post("On engines", content="Ask @bob.")
    bob.add_comment(post, "Ask @alice.")
    assert {"/@bob", "/@alice"} <= set(links(read(path_of(post))))
    html = alice.post("/preview", json={"content": "Ask @bob."}).json["html"]
    assert '<a href="/@bob"' in html
    for path, name in (("/feed.json", "bob"), (f"{path_of(post)}/feed.json", "alice")):
        [item] = alice.get(path).json["items"]
        assert f'<a href="http://localhost/@{name}"' in item["content_html"]


class TestPreview:
    def test_it_is_rendered_as_the_page_will_be(self, alice, read):
        content = "# A\n\n<b>b</b> https://example.com ![c](https://example.com/c.png)"
        html = alice.post("/preview", json={"content": content}).json["html"]
        post = alice.create_post("A title", content=content)
        page = alice.get(path_of(post)).text
        assert html.strip() in page

    def test_no_transaction_is_open_while_it_is_rendered(self, alice, monkeypatch):
        rendered = []
        real = views.markdown_renderer

        def renderer():
            rendered.append(is_in_transaction())
            return real()

        monkeypatch.setattr(views, "markdown_renderer", renderer)
        assert alice.post("/preview", json={"content": "x"}).status_code == 200
        assert rendered == [False]

    def test_an_invalid_text_gets_422(self, alice):
        for content in ("", " ", "x" * 100_001, 1, "\ud800"):
            response = alice.post("/preview", json={"content": content})
            [error] = assert_problem(response, 422)["errors"]
            assert error["pointer"] == "/content"

    def test_it_needs_a_session(self, anonymous):
        assert_problem(anonymous.post("/preview", json={"content": "x"}), 401)

    def test_it_is_limited(self, make_app, alice):
        app = make_app(RATE_LIMITS="on", LIMIT_POSTS="1/hour")
        client = alice.copy(app)
        for _ in range(4):
            assert client.post("/preview", json={"content": "x"}).status_code == 200
        assert_problem(client.post("/preview", json={"content": "x"}), 429)
