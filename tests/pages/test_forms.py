"""Limits of form controls are those of the API."""

import re
from html.parser import HTMLParser

import pytest

from posting.pages import forms

TEXTS = ("a", "ab", "abc", "a" * 7, "a" * 8, "-ab", "a b", "a_-9", "a" * 32, "a" * 33, "ä" * 5)


@pytest.fixture(autouse=True)
def _context(app):
    with app.app_context():
        yield


@pytest.mark.parametrize(
    ("form", "name", "expected"),
    [
        ("sign-up", "username", {"required": "", "pattern": r"[A-Za-z0-9][A-Za-z0-9_\-]{2,31}"}),
        ("sign-up", "password", {"required": "", "minlength": 8, "maxlength": 256}),
        ("sign-in", "username", {"required": "", "maxlength": 256}),
        ("post", "title", {"required": "", "minlength": 1, "maxlength": 200}),
        ("post", "content", {"required": "", "minlength": 1, "maxlength": 100_000}),
        ("comment", "content", {"required": "", "minlength": 1, "maxlength": 10_000}),
        ("profile", "display_name", {"maxlength": 64}),
        ("profile", "bio", {"maxlength": 500}),
        ("image", "alt", {"maxlength": 500}),
    ],
)
def test_attributes_follow_the_schemas(form, name, expected):
    assert forms.attributes(form, name) == {"name": name} | expected


@pytest.mark.parametrize("form", forms.SCHEMAS)
def test_a_control_refuses_only_what_the_api_refuses(form):
    schema = forms.SCHEMAS[form]
    for name in schema.fields:
        if name in {"file", "parent_id"}:  # no text of the user
            continue
        attributes = forms.attributes(form, name)
        too_long = "a" * (attributes.get("maxlength", 100_000) + 1)
        for text in (*TEXTS, too_long):
            if is_refused(text, attributes):
                assert name in schema.validate({name: text}), (name, text)
        if "maxlength" in attributes:
            assert is_refused(too_long, attributes)


def is_refused(text, attributes):
    """Return whether a browser refuses a text."""
    return (
        len(text) < attributes.get("minlength", 0)
        or len(text) > attributes.get("maxlength", len(text))
        or not re.fullmatch(attributes.get("pattern", ".*"), text)
    )


def test_the_setting_of_the_shortest_password_is_used(make_app):
    with make_app(PASSWORD_MIN="15").app_context():
        assert forms.attributes("sign-up", "password")["minlength"] == 15


class Controls(HTMLParser):
    """Collects the controls of a page by their names."""

    def __init__(self, html):
        super().__init__()
        self.found = {}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in {"input", "textarea"} and "name" in attributes:
            self.found.setdefault(attributes["name"], attributes)


@pytest.mark.parametrize(
    ("path", "form", "names"),
    [
        ("/signup", "sign-up", ["username", "password"]),
        ("/signin", "sign-in", ["username", "password"]),
        ("/write", "post", ["title", "content"]),
        ("/settings", "profile", ["username", "display_name", "bio", "password"]),
        ("/p/{id}", "comment", ["content"]),
    ],
)
def test_pages_have_controls_with_these_attributes(anonymous, post, path, form, names):
    controls = Controls(anonymous.get(path.format(**post)).text).found
    for name in names:
        expected = {key: str(value) for key, value in forms.attributes(form, name).items()}
        assert expected.items() <= controls[name].items(), name


def test_only_images_that_the_api_accepts_are_offered(anonymous):
    assert forms.image_types() == "image/png,image/jpeg,image/webp,image/gif"
    assert f'accept="{forms.image_types()}"' in anonymous.get("/write").text
