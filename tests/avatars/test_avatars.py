"""Avatars: the faces of members."""

from io import BytesIO

import pytest
import sqlalchemy as sa
from PIL import Image as Pillow

from posting.accounts.models import User
from posting.avatars.models import Avatar
from posting.db.base import db
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.changes import changes_after, cursor_of_now

PATH = "/users/me/avatar"


def form(data=None):
    return {
        "file": (BytesIO(data or pictures.encoded(pictures.scene(size=(600, 400)), "JPEG")), "a")
    }


def put(client, data=None):
    response = client.put(PATH, data=form(data))
    assert response.status_code == 200, response.text
    return response.json["avatar_url"]


def opened(client, url):
    response = client.get(url)
    assert (response.status_code, response.content_type) == (200, "image/webp")
    return Pillow.open(BytesIO(response.data))


def count(app):
    with app.app_context():
        avatars = db.session.scalar(sa.select(sa.func.count()).select_from(Avatar))
        named = db.session.scalar(sa.select(sa.func.count(User.avatar_id)))
        return avatars, named


def test_a_member_has_a_square_picture(alice, anonymous):
    assert alice.get("/users/me").json["avatar_url"] is None
    response = alice.put(PATH, data=form())
    url = response.json["avatar_url"]
    assert url.startswith("http://localhost/avatars/")
    assert alice.get("/users/me").json == response.json
    assert anonymous.get(f"/users/{alice.user['id']}").json["avatar_url"] == url
    assert opened(anonymous, url).size == (256, 256)
    assert opened(anonymous, f"{url}/64").size == (64, 64)


def test_it_shows_the_middle_of_the_picture(alice, anonymous):
    picture = Pillow.new("RGB", (900, 300), "red")
    picture.paste("blue", (300, 0, 600, 300))
    shown = opened(anonymous, put(alice, pictures.encoded(picture, "PNG"))).convert("RGB")
    for place in ((3, 3), (128, 128), (252, 252)):
        red, _, blue = shown.getpixel(place)
        assert (red < 50, blue > 200) == (True, True)


def test_a_small_picture_is_not_enlarged(alice, anonymous):
    url = put(alice, pictures.png())
    assert opened(anonymous, url).size == opened(anonymous, f"{url}/64").size == (32, 32)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_an_animation_becomes_its_first_frame(alice, anonymous, format):
    url = put(alice, pictures.animation(format))
    assert not getattr(opened(anonymous, url), "is_animated", False)


def test_it_is_cached_forever_and_served_in_a_sandbox(alice, anonymous):
    url = put(alice)
    for path in (url, f"{url}/64"):
        picture = anonymous.get(path)
        assert picture.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert picture.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        etag = picture.headers["ETag"]
        again = anonymous.get(path, headers={"If-None-Match": etag})
        assert (again.status_code, again.data) == (304, b"")


def test_all_that_names_an_author_has_it(alice, bob, anonymous, post):
    comment = alice.add_comment(post, "Indeed.")
    bob_comment = bob.add_comment(post, "Yes.", parent_id=comment["id"])
    url = put(alice)
    assert anonymous.get("/posts").json[0]["author"]["avatar_url"] == url
    assert anonymous.get(f"/posts/{post['id']}").json["author"]["avatar_url"] == url
    assert anonymous.get(f"/comments/{comment['id']}").json["author"]["avatar_url"] == url
    assert anonymous.get(f"/comments/{bob_comment['id']}").json["author"]["avatar_url"] is None
    assert alice.create_post("x")["author"]["avatar_url"] == url
    alice.add_comment(post, "And more.", parent_id=bob_comment["id"])
    assert bob.get("/notifications").json[0]["actor"]["avatar_url"] == url
    assert anonymous.get("/users?q=ali").json[0]["avatar_url"] == url


def test_another_one_replaces_it(app, alice, anonymous):
    former = put(alice)
    url = put(alice)
    assert url != former
    assert_problem(anonymous.get(former), 404)
    assert opened(anonymous, url).size == (256, 256)
    assert count(app) == (1, 1)


def test_a_member_deletes_it(app, alice, anonymous):
    url = put(alice)
    for _ in range(2):
        assert alice.delete(PATH).status_code == 204
    assert_problem(anonymous.get(url), 404)
    assert assert_problem(anonymous.get(f"{url}/64"), 404)["code"] == "no_such_avatar"
    assert alice.get("/users/me").json["avatar_url"] is None
    assert count(app) == (0, 0)


def test_it_is_deleted_with_the_account(app, alice, anonymous):
    url = put(alice)
    assert alice.delete("/users/me").status_code == 204
    assert_problem(anonymous.get(url), 404)
    assert count(app) == (0, 0)


def test_apps_that_keep_a_copy_learn_of_it(alice):
    for act in (put, lambda client: client.delete(PATH)):
        cursor = cursor_of_now(alice)
        act(alice)
        [change] = changes_after(alice, cursor)
        assert (change["kind"], change["id"]) == ("user", alice.user["id"])
        assert change["change"] == "edited"


def test_a_moderator_deletes_the_one_of_a_member(alice, bob, moderator, anonymous):
    url = put(alice)
    path = f"/users/{alice.user['id']}/avatar"
    assert_problem(bob.delete(path), 403)
    assert_problem(alice.delete(path), 403)
    assert moderator.delete(f"{path}?reason=Why").status_code == 204
    assert_problem(anonymous.get(url), 404)
    assert assert_problem(moderator.delete(path), 404)["code"] == "no_such_avatar"
    assert assert_problem(moderator.delete(f"/users/{'a' * 21}/avatar"), 404)["code"] == (
        "no_such_user"
    )
    [act] = moderator.get("/moderation/log").json
    assert (act["action"], act["target"]["kind"], act["reason"]) == ("deleted", "avatar", "Why")
    [notification] = alice.get("/notifications").json
    assert (notification["kind"], notification["reason"]) == ("removal", "Why")


@pytest.mark.parametrize("data", [b"x", b"%PDF-1.7", pictures.png()[:60]])
def test_what_is_no_picture_gets_422(app, alice, data):
    response = alice.put(PATH, data=form(data))
    assert error_locations(response) == {"/file"}
    assert count(app) == (0, 0)


def test_attempts_count_as_images_do(alice, make_app):
    client = alice.copy(make_app(RATE_LIMITS="on", LIMIT_IMAGES="2/hour"))
    for _ in range(2):
        client.put(PATH, data=form(b"x"))
    assert_problem(client.put(PATH, data=form()), 429)
    assert_problem(client.post("/images", data=form()), 429)


class TestOnPages:
    def test_an_author_without_one_has_an_initial(self, alice, anonymous, post):
        html = anonymous.get(f"/p/{post['id']}").text
        assert ' data-initial="A" data-hue="' in html
        assert 'class="face"' not in html

    def test_it_is_beside_the_name(self, alice, anonymous, post):
        path = put(alice).removeprefix("http://localhost")
        for page in ("/", f"/p/{post['id']}", "/search?q=engines"):
            html = anonymous.get(page).text
            assert f'<img class="face" src="{path}/64" alt="" width="64" height="64">' in html
        assert f'<img class="portrait" src="{path}"' in anonymous.get("/@alice").text

    @pytest.mark.parametrize(
        ("name", "initial"), [("ß x", "S"), ("«élan»", "É"), ("🧵", "🧵"), ("<i>", "I")]
    )
    def test_an_initial_is_the_first_letter_or_digit(self, alice, anonymous, post, name, initial):
        alice.patch("/users/me", json={"display_name": name})
        assert f'data-initial="{initial}"' in anonymous.get(f"/p/{post['id']}").text
