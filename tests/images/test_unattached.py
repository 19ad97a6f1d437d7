"""Images that are sent before the post or comment that has them."""

from datetime import timedelta
from io import BytesIO
from itertools import product

import pytest
import sqlalchemy as sa
from PIL import Image as Pillow

from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now
from posting.images.models import Image
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.changes import changes_after, cursor_of_now
from tests.helpers.uploads import form, row_counts

pytestmark = pytest.mark.usefixtures("stays_consistent", "cached_codec")
UNKNOWN = "a" * 21
TEXT = {"title": "On looms", "content": "They weave."}


@pytest.fixture
def image(alice):
    return alice.send_image(alt="A loom")


def ids(images):
    return [image["id"] for image in images]


def read(client, image):
    return client.get(f"/users/me/images/{image['id']}")


class TestBefore:
    def test_an_image_is_sent_without_a_post(self, alice):
        created = alice.post("/images", data=form(alt="A loom"))
        assert created.status_code == 201
        image = created.json
        assert (image["post_id"], image["comment_id"], image["alt"]) == (None, None, "A loom")
        own = f"http://localhost/users/me/images/{image['id']}"
        assert created.headers["Location"] == own
        assert alice.get(own).status_code == 200
        assert alice.get("/users/me/images").json == [image]

    def test_nobody_reads_it_by_its_later_urls(self, alice, bob, moderator, anonymous):
        image = alice.send_image(pictures.photo((2000, 1500)))
        suffixes = ("", "/thumbnail", "/640", "/1600", "/metadata")
        for client, suffix in product((alice, bob, moderator, anonymous), suffixes):
            problem = assert_problem(client.get(f"/images/{image['id']}{suffix}"), 404)
            assert problem["code"].startswith("no_such_")

    def test_only_its_owner_reads_it(self, alice, bob, moderator, anonymous, image):
        picture = read(alice, image)
        assert Pillow.open(BytesIO(picture.data)).size == (image["width"], image["height"])
        assert picture.headers["Cache-Control"] == "private, no-store"
        assert picture.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert picture.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        for other in (bob, moderator):
            assert assert_problem(read(other, image), 404)["code"] == "no_such_image"
            assert other.get("/users/me/images").json == []
        assert_problem(read(anonymous, image), 401)
        assert_problem(anonymous.get("/users/me/images"), 401)
        assert_problem(alice.get(f"/users/me/images/{UNKNOWN}"), 404)
        assert error_locations(alice.get("/users/me/images/short")) == {"id"}

    def test_its_owner_reads_a_large_one_in_its_smallest_size(self, alice):
        image = alice.send_image(pictures.photo((2000, 1500)))
        picture = read(alice, image)
        assert picture.content_type == "image/webp"
        assert Pillow.open(BytesIO(picture.data)).size == (640, 480)

    def test_only_its_owner_describes_and_deletes_it(self, app, alice, bob, moderator, image):
        path = f"/images/{image['id']}"
        for other in (bob, moderator):
            assert_problem(other.patch(path, json={"alt": "x"}), 404)
            assert_problem(other.delete(path), 404)
        edited = alice.patch(path, json={"alt": "A mill"})
        assert (edited.status_code, edited.json["alt"]) == (200, "A mill")
        headers = {"If-Match": edited.headers["ETag"]}
        assert alice.get("/users/me/images").json == [edited.json]
        assert_problem(alice.delete(path, headers={"If-Match": '"other"'}), 412)
        assert alice.delete(path, headers=headers).status_code == 204
        assert row_counts(app) == [0] * 3

    def test_its_owner_deletes_it_unless_a_text_has_it(self, app, alice, bob, image):
        path = f"/users/me/images/{image['id']}"
        assert_problem(bob.delete(path), 404)
        assert_problem(alice.delete(path, headers={"If-Match": '"other"'}), 412)
        etag = alice.get(path).headers["ETag"]
        assert alice.delete(path, headers={"If-Match": etag}).status_code == 204
        assert_problem(alice.delete(path), 404)
        other = alice.send_image()
        post = alice.create_post("x", images=[other["id"]])
        assert_problem(alice.delete(f"/users/me/images/{other['id']}"), 404)
        assert len(alice.get(f"/posts/{post['id']}").json["images"]) == 1
        assert row_counts(app) == [1] * 3

    def test_apps_that_keep_a_copy_learn_of_it_when_it_is_attached(self, alice):
        cursor = cursor_of_now(alice)
        image = alice.send_image()
        alice.patch(f"/images/{image['id']}", json={"alt": "x"})
        other = alice.send_image()
        alice.delete(f"/images/{other['id']}")
        assert changes_after(alice, cursor) == []
        post = alice.create_post("x", images=[image["id"]])
        found = [(each["kind"], each["id"]) for each in changes_after(alice, cursor)]
        assert found == [("post", post["id"]), ("image", image["id"])]

    def test_a_member_has_forty_at_most(self, app, alice, bob, image):
        with app.app_context(), transaction() as connection:
            row = connection.execute(sa.select(Image.__table__)).one()._mapping
            others = [{**row, "id": f"{number:021}"} for number in range(39)]
            connection.execute(sa.insert(Image), others)
        problem = alice.post("/images", data=form())
        assert error_locations(problem) == {"/file"}
        assert problem.json["errors"][0]["code"] == "too_many_unattached"
        bob.send_image()
        alice.delete(f"/images/{image['id']}")
        alice.send_image()
        with app.app_context(), transaction() as connection:  # the others have no bytes
            day_before = now() - timedelta(days=1, hours=1)
            connection.execute(sa.update(Image).values(unattached_since=day_before))
        assert alice.send_image()["id"] in ids(alice.get("/users/me/images").json)
        assert row_counts(app) == [1] * 3

    def test_it_expires_after_a_day(self, app, alice, bob, image):
        def age(**ago):
            with app.app_context(), transaction() as connection:
                rows = connection.execute(sa.select(Image.id, Image.unattached_since)).all()
                for row in rows:
                    values = {"unattached_since": row.unattached_since - timedelta(**ago)}
                    connection.execute(sa.update(Image).where(Image.id == row.id).values(values))

        age(hours=23)
        bob.send_image()
        assert ids(alice.get("/users/me/images").json) == [image["id"]]
        age(hours=2)
        bob.send_image()
        assert alice.get("/users/me/images").json == []
        refused = alice.post("/posts", json=TEXT | {"images": [image["id"]]})
        assert error_locations(refused) == {"/images/0"}

    def test_it_is_deleted_with_the_account(self, app, alice, image):
        alice.create_post("x", images=[alice.send_image()["id"]])
        assert alice.delete("/users/me").status_code == 204
        with app.app_context():
            assert db.session.scalars(sa.select(Image.owner_id)).all() == [None]


class TestOfPosts:
    def test_a_post_is_published_with_its_images_in_their_order(self, alice, anonymous):
        first, second = alice.send_image(), alice.send_image(alt="A mill")
        post = alice.create_post("On looms", images=ids([second, first]))
        assert post["image_count"] == 2
        assert ids(post["images"]) == ids([second, first])
        assert post["images"][0] == second | {"post_id": post["id"]}
        assert anonymous.get(f"/posts/{post['id']}").json == post
        [listed] = anonymous.get("/posts?expand=images").json
        assert listed["images"] == post["images"]
        picture = anonymous.get(f"/images/{first['id']}")
        assert picture.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert alice.get("/users/me/images").json == []
        assert_problem(read(alice, first), 404)

    def test_the_response_has_the_etag_of_the_post(self, alice):
        images = [alice.send_image()["id"]]
        created = alice.post("/posts", json=TEXT | {"images": images})
        etag = alice.get(created.headers["Location"]).headers["ETag"]
        assert created.headers["ETag"] == etag

    def test_a_post_that_is_refused_leaves_them(self, alice, bob, anonymous, image):
        others = {"another's": bob.send_image()["id"], "unknown": UNKNOWN}
        for other in others.values():
            refused = alice.post("/posts", json=TEXT | {"images": [image["id"], other]})
            assert error_locations(refused) == {"/images/1"}
            assert refused.json["errors"][0]["code"] == "no_such_image"
        assert anonymous.get("/posts").json == []
        assert alice.get("/users/me/images").json == [image]
        assert ids(bob.get("/users/me/images").json) == [others["another's"]]

    def test_an_image_is_attached_once(self, alice, image):
        alice.create_post("x", images=[image["id"]])
        refused = alice.post("/posts", json=TEXT | {"images": [image["id"]]})
        assert error_locations(refused) == {"/images/0"}

    @pytest.mark.parametrize(
        ("images", "expected"),
        [
            ("x", {"/images"}),
            (["x"], {"/images/0"}),
            ([UNKNOWN, 5, None], {"/images/1", "/images/2"}),
            ([UNKNOWN, "b" * 21, UNKNOWN], {"/images"}),
            ([f"{number:021}" for number in range(11)], {"/images"}),
            (None, {"/images"}),
        ],
    )
    def test_a_list_that_is_not_valid_gets_422(self, alice, post, images, expected):
        for request in (
            alice.post("/posts", json=TEXT | {"images": images}),
            alice.patch(f"/posts/{post['id']}", json={"images": images}),
        ):
            assert error_locations(request) == expected

    def test_an_edit_adds_removes_and_moves_images(self, app, alice, anonymous):
        first, second, third = (alice.send_image() for _ in range(3))
        post = alice.create_post("x", images=ids([first, second]))
        path = f"/posts/{post['id']}"
        cursor = cursor_of_now(alice)
        edited = alice.patch(path, json={"images": ids([third, first])})
        assert edited.status_code == 200
        assert ids(edited.json["images"]) == ids([third, first])
        assert edited.json["image_count"] == 2
        assert anonymous.get(path).json == edited.json
        assert_problem(anonymous.get(f"/images/{second['id']}"), 404)
        assert row_counts(app) == [2] * 3
        changes = changes_after(alice, cursor)
        assert {(each["kind"], each["id"], each["change"]) for each in changes} == {
            ("post", post["id"], "edited"),
            ("image", second["id"], "deleted"),
            ("image", third["id"], "created"),
        }
        assert alice.patch(path, json={"images": []}).json["images"] == []
        assert row_counts(app) == [0] * 3

    def test_an_edit_of_the_images_alone_is_an_edit(self, alice):
        first, second = alice.send_image(), alice.send_image()
        created = alice.post("/posts", json=TEXT | {"images": ids([first, second])})
        path, etag = created.headers["Location"], created.headers["ETag"]
        same = alice.patch(path, json={"images": ids([first, second])})
        assert same.headers["ETag"] == etag
        moved = alice.patch(path, json={"images": ids([second, first])}, headers={"If-Match": etag})
        assert moved.status_code == 200
        stale = alice.patch(path, json={"images": []}, headers={"If-Match": etag})
        assert_problem(stale, 412)
        assert ids(alice.get(path).json["images"]) == ids([second, first])

    def test_an_edit_without_images_leaves_them(self, alice, image):
        post = alice.create_post("x", images=[image["id"]])
        edited = alice.patch(f"/posts/{post['id']}", json={"title": "y"})
        assert ids(edited.json["images"]) == [image["id"]]

    def test_an_edit_takes_no_image_of_another_post(self, alice, image):
        alice.create_post("x", images=[image["id"]])
        other = alice.create_post("y")
        refused = alice.patch(f"/posts/{other['id']}", json={"images": [image["id"]]})
        assert error_locations(refused) == {"/images/0"}

    def test_an_image_that_is_added_later_is_the_last_one(self, alice):
        post = alice.create_post("x", images=ids([alice.send_image(), alice.send_image()]))
        last = alice.add_image(post)
        read = alice.get(f"/posts/{post['id']}").json
        assert ids(read["images"]) == [*ids(post["images"]), last["id"]]

    def test_a_repeated_request_publishes_once(self, alice, image):
        headers = {"Idempotency-Key": "k" * 20}
        body = TEXT | {"images": [image["id"]]}
        created = [alice.post("/posts", json=body, headers=headers) for _ in range(2)]
        assert [response.status_code for response in created] == [201, 201]
        assert created[0].json == created[1].json
        assert len(alice.get("/posts").json) == 1


class TestOfComments:
    def test_a_comment_has_images(self, alice, bob, anonymous, post):
        first, second = bob.send_image(), bob.send_image(alt="A mill")
        comment = bob.add_comment(post, "See these.", images=ids([second, first]))
        place = {"post_id": post["id"], "comment_id": comment["id"]}
        assert comment["images"] == [second | place, first | place]
        assert anonymous.get(f"/comments/{comment['id']}").json == comment
        assert anonymous.get(f"/posts/{post['id']}/comments").json == [comment]
        [listed] = anonymous.get("/comments").json
        assert listed["images"] == comment["images"]
        [found] = anonymous.get("/comments?q=these").json
        assert found["images"] == comment["images"]
        assert anonymous.get(f"/images/{first['id']}").status_code == 200
        assert anonymous.get(f"/images/{first['id']}/metadata").json == first | place

    def test_they_are_no_images_of_the_post(self, alice, bob, anonymous, post):
        bob.add_comment(post, "x", images=[bob.send_image()["id"]])
        read = anonymous.get(f"/posts/{post['id']}").json
        assert (read["image_count"], read["images"]) == (0, [])
        own = alice.add_image(post)
        assert ids(anonymous.get(f"/posts/{post['id']}").json["images"]) == [own["id"]]

    def test_a_comment_has_four_at_most(self, alice, post):
        images = [f"{number:021}" for number in range(5)]
        response = alice.post(
            f"/posts/{post['id']}/comments", json={"content": "x", "images": images}
        )
        assert error_locations(response) == {"/images"}

    def test_a_comment_that_is_refused_leaves_them(self, bob, anonymous, post):
        image = bob.send_image()
        path = f"/posts/{post['id']}/comments"
        body = {"content": "x", "images": [image["id"], UNKNOWN]}
        assert error_locations(bob.post(path, json=body)) == {"/images/1"}
        assert anonymous.get(path).json == []
        assert bob.get("/users/me/images").json == [image]

    def test_its_author_decides_about_them(self, alice, bob, moderator, anonymous, post):
        image = bob.send_image()
        comment = bob.add_comment(post, "x", images=[image["id"]])
        path = f"/images/{image['id']}"
        assert_problem(alice.patch(path, json={"alt": "x"}), 403)  # the author of the post
        assert_problem(alice.delete(path), 403)
        assert bob.patch(path, json={"alt": "A mill"}).json["alt"] == "A mill"
        assert moderator.delete(path).status_code == 204
        assert anonymous.get(f"/comments/{comment['id']}").json["images"] == []

    def test_an_edit_gives_it_other_images(self, app, bob, anonymous, post):
        first, second = bob.send_image(), bob.send_image()
        comment = bob.add_comment(post, "x", images=[first["id"]])
        path = f"/comments/{comment['id']}"
        etag = bob.get(path).headers["ETag"]
        edited = bob.patch(path, json={"images": [second["id"]]}, headers={"If-Match": etag})
        assert ids(edited.json["images"]) == [second["id"]]
        assert edited.json["updated_at"] >= comment["updated_at"]
        assert edited.headers["ETag"] == bob.get(path).headers["ETag"] != etag
        assert row_counts(app) == [1] * 3
        assert_problem(bob.patch(path, json={"images": []}, headers={"If-Match": etag}), 412)

    @pytest.mark.parametrize("has_reply", [False, True])
    def test_they_are_deleted_with_the_comment(self, app, alice, bob, post, has_reply):
        image = bob.send_image()
        comment = bob.add_comment(post, "x", images=[image["id"]])
        if has_reply:
            alice.add_comment(post, "y", parent_id=comment["id"])
        cursor = cursor_of_now(alice)
        assert bob.delete(f"/comments/{comment['id']}").status_code == 204
        assert_problem(bob.get(f"/images/{image['id']}"), 404)
        assert row_counts(app) == [0] * 3
        changes = {(each["kind"], each["id"]) for each in changes_after(alice, cursor)}
        assert ("image", image["id"]) in changes

    def test_they_are_deleted_with_the_post(self, app, alice, bob, post):
        bob.add_comment(post, "x", images=[bob.send_image()["id"]])
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert row_counts(app) == [0] * 3

    @pytest.mark.parametrize(("query", "left"), [("", 1), ("?content=delete", 0)])
    def test_they_stay_or_go_with_the_account(self, alice, bob, post, query, left):
        comment = bob.add_comment(post, "x", images=[bob.send_image()["id"]])
        alice.add_comment(post, "y", parent_id=comment["id"])
        assert bob.delete(f"/users/me{query}").status_code == 204
        assert row_counts(alice.application) == [left] * 3
        assert len(alice.get(f"/comments/{comment['id']}").json["images"]) == left


class TestQuota:
    @pytest.fixture
    def alice(self, make_app, alice):
        size = alice.send_image()["size"]
        return alice.copy(make_app(MAX_MEMBER_BYTES=max(1024, 3 * size)))

    def test_all_images_of_a_member_have_a_total(self, alice, bob):
        post = alice.create_post("x")
        most = alice.get("/site").json["images"]["max_member_bytes"]
        size = alice.get("/users/me/images").json[0]["size"]
        for _ in range(most // size - 1):
            last = alice.add_image(post)
        for path in ("/images", f"/posts/{post['id']}/images"):
            refused = alice.post(path, data=form())
            assert assert_problem(refused, 413)["code"] == "quota_exceeded"
        bob.send_image()
        alice.delete(f"/images/{last['id']}")
        alice.send_image()

    def test_images_beyond_it_are_not_decoded(self, app, alice, monkeypatch):
        with app.app_context(), transaction() as connection:
            connection.execute(sa.update(Image).values(size=2**31 - 1))
        monkeypatch.setattr("posting.images.codec.reencode", None)
        assert_problem(alice.post("/images", data=form()), 413)
        with app.app_context(), transaction() as connection:
            connection.execute(sa.delete(Image))
