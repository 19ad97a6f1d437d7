"""Descriptions, icons and robots.txt, for search engines and other programs."""

from io import BytesIO

import PIL.Image
import pytest

from tests.helpers.pages import path_of


def test_a_page_has_a_description_for_search_engines(alice, post, read):
    for path in ("/", path_of(post), "/@alice", "/signin"):
        [description] = read(path).all("meta", name="description")
        assert description["content"]


@pytest.mark.parametrize("path", ["/", "/p/{id}", "/@alice"])
def test_a_page_says_what_it_is_when_it_is_shared(alice, post, read, path):
    alice.patch(f"/users/{alice.user['id']}", json={"bio": "I write about engines."})
    page = read(path.format(**post))
    [description] = page.all("meta", name="description")
    shared = {meta["property"]: meta["content"] for meta in page.all("meta") if "property" in meta}
    assert shared.keys() == {"og:site_name", "og:title", "og:description"}
    assert shared["og:description"] == description["content"] != ""
    schemes = {"(prefers-color-scheme: light)", "(prefers-color-scheme: dark)"}
    assert {meta["media"] for meta in page.all("meta", name="theme-color")} == schemes


def test_a_page_has_icons(read, anonymous):
    [icon] = read("/").all("link", rel="apple-touch-icon")
    for path in (icon["href"], "/favicon.ico"):
        with anonymous.get(path) as response:
            assert response.mimetype == "image/png"
            assert PIL.Image.open(BytesIO(response.data)).size == (180, 180)


def test_search_engines_are_told_what_not_to_read(anonymous):
    response = anonymous.get("/robots.txt")
    assert response.mimetype == "text/plain"
    assert response.text.startswith("User-agent: *\nDisallow: /search\nDisallow: /settings\n")
    disallowed = {f"Disallow: {path}" for path in ("/p/*/edit", "/reset", "/inbox", "/moderation")}
    assert disallowed < set(response.text.splitlines())
