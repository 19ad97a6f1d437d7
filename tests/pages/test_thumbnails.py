"""Thumbnails in lists of posts: of which image they are, and how they are shown."""

import re

import pytest
import sqlalchemy as sa

from posting.db.transactions import transaction
from posting.images.models import Thumbnail
from tests.helpers import pictures

PATHS = ["/", "/?sort=active", "/@alice", "/search?q=engines"]


@pytest.fixture
def shown(anonymous):
    """Return a function that returns the ids of the images whose thumbnails a page shows."""

    def shown(path="/"):
        html = anonymous.get(path).text
        found = re.findall(r'<img src="/images/([\w-]{21})/thumbnail"', html)
        assert len(found) == html.count("<img")
        return found

    return shown


@pytest.fixture
def images(alice, post):
    """Three images of Alice's post, in the order in which they were added."""
    return [alice.add_image(post, alt=str(number)) for number in range(3)]


def write(client, post, content):
    assert client.patch(f"/posts/{post['id']}", json={"content": content}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_a_list_shows_the_first_image_of_each_post(alice, anonymous, shown, path):
    first = alice.create_post("On engines")
    alice.create_post("On engines without an image")
    last = alice.create_post("More on engines")
    picture = pictures.encoded(pictures.scene(size=(640, 480)), "PNG")
    images = [alice.add_image(post, picture, alt="x")["id"] for post in (first, last)]
    assert shown(path) == images[::-1]
    link = (
        f'<a href="/p/{first["id"]}" dir="auto"><img src="/images/{images[0]}/thumbnail" '
        'width="320" height="240" alt="" loading="lazy">'
    )
    html = anonymous.get(path).text
    assert link in html
    # The link of the title is the only one to a post without comments.
    assert len(re.findall(rf'href="/p/{first["id"]}["#]', html)) == 1


def test_a_post_that_is_only_an_image_is_shown_by_it(alice, anonymous):
    post = alice.create_post("A view")
    image = alice.add_image(post, pictures.encoded(pictures.scene(size=(900, 480)), "PNG"), alt="x")
    write(alice, post, f"![](/images/{image['id']})")
    html = anonymous.get("/").text
    assert f'<a class="photo" href="/p/{post["id"]}" tabindex="-1" aria-hidden="true">' in html
    assert f'<img src="/images/{image["id"]}" width="900" height="480" srcset="' in html
    assert "/thumbnail" not in html
    assert '<p class="excerpt"' not in html
    write(alice, post, f"Words. ![](/images/{image['id']})")
    html = anonymous.get("/").text
    assert 'class="photo"' not in html
    assert f'"/images/{image["id"]}/thumbnail"' in html


def test_the_first_image_is_the_one_that_was_added_first(images, shown):
    assert shown() == [images[0]["id"]]


@pytest.mark.parametrize(
    "content",
    [
        "![x](/images/{2}) and ![x](/images/{1})",
        "![x](http://localhost/images/{2}) and ![x](/images/{1})",
        "x " * 10_000 + "![x](/images/{2}) and ![x](/images/{1}) and ![x](/images/{2})",
        "![x][loom]\n\n[loom]: /images/{2}",
    ],
    ids=["path", "URL", "late", "reference"],
)
def test_images_in_the_text_come_before_the_others(alice, post, images, shown, content):
    ids = [image["id"] for image in images]
    write(alice, post, content.format(*ids))
    assert shown() == [ids[2]]
    alice.delete(f"/images/{ids[2]}")
    assert shown() == [ids[1] if "{1}" in content else ids[0]]


def test_images_of_other_posts_in_the_text_do_not_count(alice, post, images, shown):
    other = alice.create_post("On looms", content=f"See ![x](/images/{images[2]['id']})")
    assert shown() == [images[0]["id"]]
    image = alice.add_image(other)
    assert shown() == [image["id"], images[0]["id"]]


def test_images_without_a_thumbnail_are_left_out(app, alice, post, images, shown):
    for image, following in zip(images, [*images[1:], None], strict=True):
        assert shown() == [image["id"]]
        with app.app_context(), transaction() as connection:
            connection.execute(sa.delete(Thumbnail).where(Thumbnail.image_id == image["id"]))
        assert shown() == ([following["id"]] if following else [])


def test_comments_of_a_member_have_no_thumbnails(alice, post, images, shown):
    alice.add_comment(post, "A comment")
    assert shown("/@alice?show=comments") == []


@pytest.mark.parametrize("path", PATHS)
def test_one_query_finds_the_thumbnails_of_a_page(alice, shown, statements, path):
    posts = [alice.create_post(f"On engines {number}") for number in range(10)]
    for posts_with_images in (0, 10):
        for post in posts[:posts_with_images]:
            alice.add_image(post)
        statements.clear()
        assert len(shown(path)) == posts_with_images
        queries = [statement for statement in statements if "thumbnails" in statement]
        assert len(queries) == (1 if posts_with_images else 0)


def test_a_thumbnail_in_a_text_is_a_link(alice, post, images, anonymous):
    path = f"/images/{images[0]['id']}/thumbnail"
    write(alice, post, f"![x]({path}) ![y](http://localhost{path})")
    html, _, _list_to_delete = anonymous.get(f"/p/{post['id']}").text.rpartition("<details")
    assert f'src="{path}"' not in html
    assert html.count(f'{path}" rel="nofollow ugc noopener">') == 2
