"""Images of posts: add, read, describe, delete."""

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from time import sleep

import pytest
import sqlalchemy as sa
from PIL import Image as Pillow

from posting.db.base import db
from posting.db.transactions import transaction
from posting.images import codec as imaging
from posting.images.models import Image, ImageData, ImageSize, Thumbnail
from posting.posts.models import Post
from posting.web.etags import if_none_match
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.uploads import form, list_path, row_counts

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21


def path(image):
    return f"/images/{image['id']}"


@pytest.fixture
def image(alice, post):
    return alice.add_image(post, alt="A loom")


@pytest.fixture
def during_processing(monkeypatch):
    """Return a function that sets what happens while an image is processed."""
    reencode = imaging.reencode

    def during_processing(action):
        def act_and_reencode(data, *, max_bytes):
            action()
            return reencode(data, max_bytes=max_bytes)

        monkeypatch.setattr(imaging, "reencode", act_and_reencode)

    return during_processing


def test_an_image_is_added_and_read(alice, anonymous, post):
    created = alice.post(list_path(post), data=form(alt="A *loom* 🧶"))

    assert created.status_code == 201
    image = created.json
    picture = anonymous.get(path(image))
    assert image == {
        "id": image["id"],
        "url": f"http://localhost{path(image)}",
        "thumbnail_url": f"http://localhost{path(image)}/thumbnail",
        "sizes": [],
        "post_id": post["id"],
        "comment_id": None,
        "media_type": "image/png",
        "width": 48,
        "height": 32,
        "size": len(picture.data),
        "alt": "A *loom* 🧶",
        "created_at": image["created_at"],
        "updated_at": image["created_at"],
    }
    assert created.headers["Location"] == image["url"]
    assert Pillow.open(BytesIO(picture.data)).convert("RGB").tobytes() == pictures.scene().tobytes()


def test_the_metadata_of_an_image_is_read_as_json(alice, anonymous, image):
    read = anonymous.get(f"{path(image)}/metadata")
    assert (read.status_code, read.json) == (200, image)
    assert read.headers["Cache-Control"] == "public, max-age=0, must-revalidate"
    edited = alice.patch(path(image), json={"alt": "A mill"}).json
    assert anonymous.get(f"{path(image)}/metadata").json == edited


def test_an_image_is_cached_forever_and_served_in_a_sandbox(anonymous, image):
    picture = anonymous.get(path(image))
    assert picture.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert picture.headers["ETag"] == f'"{image["id"]}"'
    assert picture.content_type == "image/png"
    assert picture.headers["X-Content-Type-Options"] == "nosniff"
    assert picture.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert int(picture.headers["Content-Length"]) == image["size"]
    head = anonymous.head(path(image))
    assert (head.data, head.headers["Content-Length"]) == (b"", str(image["size"]))
    for etag in (picture.headers["ETag"], f"W/{picture.headers['ETag']}", "*"):
        again = anonymous.get(path(image), headers={"If-None-Match": etag})
        assert (again.status_code, again.data) == (304, b"")
        for name in ("ETag", "Cache-Control", "Content-Security-Policy"):
            assert again.headers[name] == picture.headers[name]
    other = anonymous.get(path(image), headers={"If-None-Match": '"other"'})
    assert (other.status_code, other.data) == (200, picture.data)


class TestSizes:
    @pytest.fixture
    def image(self, alice, post):
        return alice.add_image(post, pictures.photo((2000, 1500)))

    def test_an_image_lists_its_sizes(self, anonymous, post, image):
        assert image["sizes"] == [
            {"width": 640, "height": 480, "url": f"{image['url']}/640"},
            {"width": 1600, "height": 1200, "url": f"{image['url']}/1600"},
        ]
        assert anonymous.get(f"{path(image)}/metadata").json == image
        assert anonymous.get(f"/posts/{post['id']}").json["images"] == [image]
        assert anonymous.get("/posts?expand=images").json[0]["images"] == [image]

    def test_they_are_served_like_the_image(self, anonymous, image):
        picture = anonymous.get(image["url"])
        for size in image["sizes"]:
            file = anonymous.get(size["url"])
            assert file.content_type == "image/webp"
            assert Pillow.open(BytesIO(file.data)).size == (size["width"], size["height"])
            for name in (
                "ETag",
                "Cache-Control",
                "Content-Security-Policy",
                "Cross-Origin-Resource-Policy",
                "X-Content-Type-Options",
            ):
                assert file.headers[name] == picture.headers[name]
            again = anonymous.get(size["url"], headers={"If-None-Match": file.headers["ETag"]})
            assert (again.status_code, again.data) == (304, b"")

    def test_a_size_that_an_image_does_not_have_gets_404(self, alice, anonymous, post):
        small = alice.add_image(post)
        assert small["sizes"] == []
        for headers in ({}, {"If-None-Match": f'"{small["id"]}"'}):
            problem = assert_problem(anonymous.get(f"{path(small)}/640", headers=headers), 404)
            assert problem["code"] == "no_such_size"
        assert_problem(anonymous.get(f"/images/{UNKNOWN}/640"), 404)
        assert error_locations(anonymous.get("/images/short/640")) == {"id"}
        assert assert_problem(anonymous.get(f"{path(small)}/320"), 404)["code"] == "not_found"

    def test_they_are_deleted_with_the_image(self, app, alice, anonymous, image):
        assert alice.delete(path(image)).status_code == 204
        for size in image["sizes"]:
            assert_problem(anonymous.get(size["url"]), 404)
        with app.app_context():
            assert db.session.scalar(sa.select(sa.func.count()).select_from(ImageSize)) == 0


class TestThumbnail:
    def test_it_is_served_like_its_image(self, alice, anonymous, post):
        image = alice.add_image(post, pictures.encoded(pictures.scene(size=(640, 480)), "PNG"))
        thumbnail = anonymous.get(image["thumbnail_url"])
        assert thumbnail.content_type == "image/webp"
        assert Pillow.open(BytesIO(thumbnail.data)).size == (320, 240)
        picture = anonymous.get(image["url"])
        for name in (
            "ETag",
            "Cache-Control",
            "Content-Security-Policy",
            "Cross-Origin-Resource-Policy",
            "X-Content-Type-Options",
        ):
            assert thumbnail.headers[name] == picture.headers[name]
        head = anonymous.head(image["thumbnail_url"])
        assert (head.data, head.content_length) == (b"", len(thumbnail.data))
        etag = {"If-None-Match": thumbnail.headers["ETag"]}
        again = anonymous.get(image["thumbnail_url"], headers=etag)
        assert (again.status_code, again.data) == (304, b"")
        other = anonymous.get(image["thumbnail_url"], headers={"If-None-Match": '"other"'})
        assert (other.status_code, other.data) == (200, thumbnail.data)

    def test_an_image_without_one(self, app, alice, anonymous, post, image):
        with app.app_context(), transaction() as connection:
            connection.execute(sa.delete(Thumbnail))
        problem = assert_problem(anonymous.get(image["thumbnail_url"]), 404)
        assert problem["code"] == "no_such_thumbnail"
        headers = {"If-None-Match": f'"{image["id"]}"'}
        assert_problem(anonymous.get(image["thumbnail_url"], headers=headers), 404)
        former = image | {"thumbnail_url": None}
        metadata = anonymous.get(f"{path(image)}/metadata")
        assert metadata.json == former
        assert anonymous.get(f"/posts/{post['id']}").json["images"] == [former]
        assert anonymous.get("/posts?expand=images").json[0]["images"] == [former]
        headers = {"If-Match": metadata.headers["ETag"]}
        edited = alice.patch(path(image), json={"alt": "A mill"}, headers=headers)
        assert (edited.status_code, edited.json["thumbnail_url"]) == (200, None)
        assert alice.delete(path(image)).status_code == 204

    def test_lists_of_posts_with_images_have_its_url(self, alice, anonymous, post, image):
        [listed] = anonymous.get("/posts?expand=images").json
        assert listed["images"] == [image]

    def test_an_unknown_id_gets_404_and_a_malformed_one_422(self, anonymous):
        assert_problem(anonymous.get(f"/images/{UNKNOWN}/thumbnail"), 404)
        assert error_locations(anonymous.get("/images/short/thumbnail")) == {"id"}

    def test_it_is_deleted_with_its_image(self, alice, anonymous, image):
        assert anonymous.get(image["thumbnail_url"]).status_code == 200
        assert alice.delete(path(image)).status_code == 204
        assert_problem(anonymous.get(image["thumbnail_url"]), 404)


def test_an_etag_matches_with_the_suffix_of_a_compressing_proxy(app):
    for etag in ("x-br", "x-gzip", "x"):
        with app.test_request_context(headers={"If-None-Match": f'"{etag}"'}):
            assert if_none_match(etag)


def test_a_post_includes_its_images_but_the_list_does_not(alice, anonymous, post):
    images = [alice.add_image(post, alt=str(number)) for number in range(3)]
    assert anonymous.get(f"/posts/{post['id']}").json == post | {"image_count": 3, "images": images}
    edited = alice.patch(f"/posts/{post['id']}", json={"title": "On looms"}).json
    assert edited["images"] == images
    assert "images" not in anonymous.get("/posts").json[0]


def test_a_list_has_the_number_of_images_and_another_etag(alice, anonymous, post):
    def counts():
        response = anonymous.get("/posts")
        etags.add(response.headers["ETag"])
        read = anonymous.get(f"/posts/{post['id']}").json
        return response.json[0]["image_count"], read["image_count"]

    etags = set()
    assert post["image_count"] == 0
    assert counts() == (0, 0)
    image = alice.add_image(post)
    assert counts() == (1, 1)
    alice.add_image(post)
    assert counts() == (2, 2)
    assert len(etags) == 3
    assert alice.delete(f"/images/{image['id']}").status_code == 204
    assert counts() == (1, 1)


def test_an_image_changes_a_read_but_not_the_version_of_its_post(alice, post):
    path = f"/posts/{post['id']}"
    etag = alice.get(path).headers["ETag"]
    alice.add_image(post)
    assert alice.get(path, headers={"If-None-Match": etag}).status_code == 200
    edit = alice.patch(path, json={"title": "x"}, headers={"If-Match": etag})
    assert edit.status_code == 200


def test_only_the_author_of_the_post_adds_images(app, bob, moderator, post):
    for other in (bob, moderator):
        assert_problem(other.post(list_path(post), data=form()), 403)
    assert_problem(bob.post(f"/posts/{UNKNOWN}/images", data=form()), 404)
    assert row_counts(app) == [0] * 3


def test_a_post_has_at_most_ten_images(app, alice, post):
    for _ in range(10):
        last = alice.add_image(post)
    assert error_locations(alice.post(list_path(post), data=form())) == {"/file"}
    assert row_counts(app) == [10] * 3
    alice.delete(path(last))
    alice.add_image(post)


class TestEdit:
    @pytest.mark.parametrize("alt", ["", "x" * 500, None, "ß 🧶"])
    def test_the_author_changes_the_text_alternative(self, alice, anonymous, post, image, alt):
        sleep(0.002)  # timestamps have milliseconds
        response = alice.patch(path(image), json={"alt": alt})
        change = {"alt": alt, "updated_at": response.json["updated_at"]}
        assert (response.status_code, response.json) == (200, image | change)
        assert response.json["updated_at"] > image["updated_at"]
        assert anonymous.get(f"/posts/{post['id']}").json["images"] == [response.json]

    def test_an_edit_that_changes_nothing_is_no_update(self, alice, image):
        for body in ({}, {"alt": image["alt"]}):
            assert alice.patch(path(image), json=body).json == image

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"alt": 5}, {"/alt"}),
            ({"alt": "x" * 501}, {"/alt"}),
            ({"file": "x", "width": 5}, {"/file", "/width"}),
        ],
    )
    def test_an_invalid_edit_gets_422(self, alice, image, body, expected):
        assert error_locations(alice.patch(path(image), json=body)) == expected

    def test_only_the_author_changes_it(self, bob, moderator, image):
        for other in (bob, moderator):
            assert_problem(other.patch(path(image), json={"alt": "x"}), 403)


class TestIfMatch:
    @pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
    def test_the_etag_of_the_metadata_protects_it(self, alice, anonymous, image, form):
        metadata = f"{path(image)}/metadata"
        headers = {"If-Match": form.format(anonymous.get(metadata).headers["ETag"])}
        edited = alice.patch(path(image), json={"alt": "A mill"}, headers=headers)
        assert edited.status_code == 200
        assert edited.headers["ETag"] == anonymous.get(metadata).headers["ETag"]
        stale = alice.patch(path(image), json={"alt": "x"}, headers=headers)
        assert stale.status_code == (200 if form == "*" else 412)
        headers = {"If-Match": edited.headers["ETag"]}
        deleted = alice.delete(path(image), headers=headers)
        assert deleted.status_code == (412 if form == "*" else 204)

    def test_the_etag_of_an_image_is_valid_as_long_as_it_exists(self, alice, image):
        headers = {"If-Match": alice.get(path(image)).headers["ETag"]}
        for alt in ("x", "y"):
            edited = alice.patch(path(image), json={"alt": alt}, headers=headers)
            assert edited.status_code == 200
        assert alice.delete(path(image), headers=headers).status_code == 204

    @pytest.mark.parametrize("tag", ['"other"', "", "x", '"1"'])
    def test_another_etag_gets_412_and_changes_nothing(self, alice, anonymous, image, tag):
        headers = {"If-Match": tag}
        assert_problem(alice.patch(path(image), json={"alt": "x"}, headers=headers), 412)
        assert_problem(alice.delete(path(image), headers=headers), 412)
        assert anonymous.get(f"{path(image)}/metadata").json == image


class TestDeletion:
    def test_the_author_deletes_an_image(self, app, alice, anonymous, post, image):
        headers = {"If-None-Match": f'"{image["id"]}"'}
        assert alice.delete(path(image)).status_code == 204
        assert_problem(alice.delete(path(image)), 404)
        assert_problem(anonymous.get(path(image)), 404)
        assert_problem(anonymous.get(path(image), headers=headers), 404)
        assert_problem(alice.patch(path(image), json={"alt": "x"}), 404)
        assert anonymous.get(f"/posts/{post['id']}").json["images"] == []
        assert row_counts(app) == [0] * 3

    def test_a_moderator_deletes_an_image_but_another_member_does_not(self, bob, moderator, image):
        assert_problem(bob.delete(path(image)), 403)
        assert moderator.delete(path(image)).status_code == 204

    def test_images_are_deleted_with_their_post(self, app, alice, post, image):
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert row_counts(app) == [0] * 3

    @pytest.mark.parametrize(("content", "expected"), [("keep", [1] * 3), ("delete", [0] * 3)])
    def test_images_are_kept_or_deleted_with_the_posts_of_an_account(
        self, app, alice, image, content, expected
    ):
        response = alice.delete(f"/users/{alice.user['id']}?content={content}")
        assert response.status_code == 204
        assert row_counts(app) == expected
        assert alice.get(path(image)).status_code == (200 if content == "keep" else 404)

    def test_only_a_moderator_deletes_an_image_without_an_owner(self, alice, bob, moderator, image):
        alice.delete(f"/users/{alice.user['id']}")
        assert_problem(bob.delete(path(image)), 403)
        assert moderator.delete(path(image)).status_code == 204


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_an_unknown_id_gets_404_and_a_malformed_one_422(alice, method):
    body = {} if method == "PATCH" else None
    response = alice.open(f"/images/{UNKNOWN}", method=method, json=body)
    assert assert_problem(response, 404)["detail"] == "There is no such image."
    assert error_locations(alice.open("/images/short", method=method, json=body)) == {"id"}
    assert_problem(alice.get(f"/images/{UNKNOWN}/metadata"), 404)
    assert error_locations(alice.get("/images/short/metadata")) == {"id"}


def test_image_urls_start_with_the_public_url(make_app, alice, post, image):
    client = make_app(PUBLIC_URL="https://example.org/community").test_client()
    [listed] = client.get(f"/posts/{post['id']}").json["images"]
    assert listed["url"] == f"https://example.org/community{path(image)}"


def test_an_upload_gets_503_while_too_many_others_wait(alice, post):
    while imaging._queue.acquire(blocking=False):
        pass
    try:
        response = alice.post(list_path(post), data=form())
    finally:
        for _ in range(imaging.MAX_UPLOADS):
            imaging._queue.release()
    assert_problem(response, 503)
    assert response.headers["Retry-After"] == "2"
    assert alice.post(list_path(post), data=form()).status_code == 201


def test_no_lock_is_held_while_an_image_is_processed(alice, post, during_processing):
    path = f"/posts/{post['id']}"
    during_processing(lambda: alice.patch(path, json={"title": "Meanwhile"}))
    assert alice.post(list_path(post), data=form()).status_code == 201
    assert alice.get(path).json["title"] == "Meanwhile"


def test_an_upload_refused_with_503_is_not_counted(make_app, alice, post, monkeypatch):
    def refuse(*_, **__):
        raise imaging.BusyError

    client = alice.copy(make_app(RATE_LIMITS="on", LIMIT_IMAGES="2/hour"))
    with monkeypatch.context() as patch:
        patch.setattr(imaging, "reencode", refuse)
        for _ in range(4):
            assert_problem(client.post(list_path(post), data=form()), 503)
    assert client.post(list_path(post), data=form()).status_code == 201


class TestOnePlaceForEachMember:
    """A member whose image is being processed is refused, and others are not."""

    def test_a_second_image_of_a_member_gets_503_and_counts(
        self, make_app, alice, bob, post, during_processing
    ):
        app = make_app(RATE_LIMITS="on", LIMIT_IMAGES="3/hour")
        client, other = alice.copy(app), bob.copy(app)
        other_post = bob.post("/posts", json={"title": "x", "content": "x"}).json
        uploads = [(client.copy(), post), (other, other_post)]
        responses = []

        def send_others():  # in other threads, since the first request has not ended
            while uploads:
                sender, target = uploads.pop(0)
                with ThreadPoolExecutor(1) as pool:
                    response = pool.submit(sender.post, list_path(target), data=form()).result()
                responses.append(response)

        during_processing(send_others)
        assert client.post(list_path(post), data=form()).status_code == 201
        refused, added = responses
        problem = assert_problem(refused, 503)
        assert problem["code"] == "own_image_in_progress"
        assert refused.headers["Retry-After"] == "2"
        assert added.status_code == 201
        assert client.post(list_path(post), data=form()).status_code == 201
        assert_problem(client.post(list_path(post), data=form()), 429)

    def test_a_place_is_free_again_after_a_failure(self, alice, post):
        for _ in range(2):
            assert error_locations(alice.post(list_path(post), data=form(b"x"))) == {"/file"}
        assert alice.post(list_path(post), data=form()).status_code == 201


class TestChecksBeforeProcessing:
    """Processing takes seconds, so every check that can refuse the upload comes first."""

    @pytest.fixture(autouse=True)
    def no_processing(self, monkeypatch):
        def fail(*_, **__):
            raise AssertionError("The image was processed.")

        monkeypatch.setattr(imaging, "reencode", fail)

    def test_the_post_exists_and_belongs_to_the_user(self, bob, post):
        assert_problem(bob.post(list_path(post), data=form()), 403)
        assert_problem(bob.post(f"/posts/{UNKNOWN}/images", data=form()), 404)

    def test_the_post_has_space_for_another_image(self, app, alice, post):
        row = {"post_id": post["id"], "media_type": "image/png", "width": 1, "height": 1, "size": 1}
        with app.app_context():
            for number in range(10):
                image = Image(**row)
                db.session.add(image)
                db.session.flush()
                db.session.add(ImageData(image_id=image.id, data=bytes([number])))
            db.session.execute(sa.update(Post).values(image_count=10))
            db.session.commit()
        assert error_locations(alice.post(list_path(post), data=form())) == {"/file"}

    def test_every_attempt_counts_toward_the_limit(self, make_app, alice, post):
        client = alice.copy(make_app(RATE_LIMITS="on", LIMIT_IMAGES="2/hour"))
        for _ in range(2):
            assert_problem(client.post(f"/posts/{UNKNOWN}/images", data=form()), 404)
        assert_problem(client.post(list_path(post), data=form()), 429)


class TestChecksAfterProcessing:
    """Access is checked again, because it may have changed during the processing."""

    def assert_refused(self, alice, post, status):
        assert_problem(alice.post(list_path(post), data=form()), status)
        assert row_counts(alice.application) == [0] * 3

    def test_a_suspended_user_gets_401(self, flask, alice, post, during_processing):
        during_processing(lambda: flask("users", "suspend", "alice"))
        self.assert_refused(alice, post, 401)

    def test_an_ended_session_gets_401(self, alice, post, during_processing):
        during_processing(lambda: alice.copy().post("/signout"))
        self.assert_refused(alice, post, 401)

    def test_a_deleted_account_gets_401(self, alice, post, during_processing):
        during_processing(lambda: alice.copy().delete(f"/users/{alice.user['id']}"))
        self.assert_refused(alice, post, 401)

    def test_a_deleted_post_gets_404(self, alice, post, during_processing):
        during_processing(lambda: alice.copy().delete(f"/posts/{post['id']}"))
        self.assert_refused(alice, post, 404)
