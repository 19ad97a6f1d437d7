"""The buttons and forms of moderators, and what others see of a locked post."""

import pytest

from tests.helpers.pages import path_of


def test_moderators_lock_and_pin_a_post(moderator, post, read):
    for name, on, off in (("lock", "Lock", "Unlock"), ("pin", "Pin", "Unpin")):
        url = f"/posts/{post['id']}/{name}"
        for method, label, following in (("PUT", on, "DELETE"), ("DELETE", off, "PUT")):
            page = read(path_of(post))
            assert page.all("button", id=name, **{"data-api": method, "data-url": url}), label
            assert label in page.texts
            assert moderator.open(url, method=method).status_code == 204
            [button] = read(path_of(post)).all("button", id=name)
            assert button["data-api"] == following


def test_a_locked_post_says_so(moderator, post, read):
    assert "This post is locked." not in read(path_of(post)).text
    moderator.put(f"/posts/{post['id']}/lock")
    assert "This post is locked. Only moderators can comment." in read(path_of(post)).text


@pytest.mark.parametrize(
    ("path", "forms"),
    [
        ("/p/{id}", ["report", "deletion"]),
        ("/@alice", ["report", "suspension", "removal", "account-deletion", "role", "reset-link"]),
        ("/moderation", ["deletion", "suspension", "dismissal"]),
    ],
)
def test_a_page_has_forms_for_reasons(post, read, path, forms):
    page = read(path.format(**post))
    found = [form["data-form"] for form in page.all("form") if "data-form" in form]
    assert [name for name in found if "comment" not in name] == forms
