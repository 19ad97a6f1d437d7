"""The page of a post with its comments, and the form to edit it."""

import re
import time

import pytest

from posting.pages import views
from tests.helpers.pages import links, path_of


def test_a_post_is_shown_with_its_text_images_and_comments(alice, bob, read):
    post = alice.create_post("On engines", content="# Looms\n\nThey *weave*.")
    image = alice.add_image(post, alt="A loom")
    comment = bob.add_comment(post, "And **cloth**?")
    page = read(path_of(post))
    assert "On engines" in page.text
    assert "Looms They weave" in page.text
    assert page.all("img", src=f"/images/{image['id']}", alt="A loom", width="48", height="32")
    assert "1 comment By thread Newest first bob" in page.text
    assert page.all("li", id=f"c-{comment['id']}")
    assert f"#c-{comment['id']}" in links(page)


def test_an_image_in_the_text_is_not_repeated_below_it(alice, post, read):
    image = alice.add_image(post)
    alice.patch(f"/posts/{post['id']}", json={"content": f"![A loom](/images/{image['id']})"})
    assert len(read(path_of(post)).all("figure")) == 0
    alice.patch(f"/posts/{post['id']}", json={"content": f"[A loom](/images/{image['id']})"})
    assert len(read(path_of(post)).all("figure")) == 1


def test_those_who_may_delete_images_are_offered_to(alice, post, read):
    image = alice.add_image(post)
    page = read(path_of(post))
    assert page.all("div", **{"data-author": alice.user["id"]})
    assert page.all("details", hidden=None)
    assert page.all("button", **{"data-api": "DELETE", "data-url": f"/images/{image['id']}"})


def test_an_edited_post_says_so(alice, post, read):
    assert "Edited" not in read(path_of(post)).text
    alice.patch(f"/posts/{post['id']}", json={"title": "On looms"})
    assert "Edited" in read(path_of(post)).text


def test_a_deleted_comment_keeps_its_place(alice, bob, post, read):
    comment = alice.add_comment(post, "First")
    bob.add_comment(post, "Second", parent_id=comment["id"])
    alice.delete(f"/comments/{comment['id']}")
    text = read(path_of(post)).text
    assert "First" not in text
    assert text.index("deleted") < text.index("Second")


def test_comments_newest_first_are_not_in_threads(alice, post, read, monkeypatch):
    monkeypatch.setattr(views, "COMMENTS_PER_PAGE", 2)
    first = alice.add_comment(post, "Comment 0")
    time.sleep(0.002)  # with the same timestamp, their ids would decide
    alice.add_comment(post, "Comment 1")
    reply = alice.add_comment(post, "Comment 2", parent_id=first["id"])
    page = read(f"{path_of(post)}?sort=newest")
    assert re.findall(r"Comment \d", page.text)[0] == "Comment 2"
    assert page.all("li", id=f"c-{reply['id']}", **{"class": "level-1"})
    assert f"#c-{first['id']}" in links(page)
    [more] = [link["href"] for link in page.all("a", rel="next")]
    following = read(path_of(post) + more.partition("#")[0])
    assert re.findall(r"Comment \d", following.text) == ["Comment 0"]


@pytest.mark.parametrize("query", ["?sort=best", "?cursor=x", "?sort=newest&cursor=x"])
def test_a_query_of_a_post_is_checked(post, read, query):
    assert "This link is not valid" in read(path_of(post) + query, 422).text


def test_the_edit_form_contains_the_post(alice, read):
    post = alice.create_post('On "engines"', content="\n They\n</textarea>")
    page = read(f"{path_of(post)}/edit")
    assert page.all("input", name="title", value='On "engines"')
    assert page.all("form", action=f"/posts/{post['id']}", **{"data-version": "1"})
    assert "They\n</textarea>" in page.texts
