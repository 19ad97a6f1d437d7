"""Images over HTTP."""

from io import BytesIO
from random import Random

import pytest
import sqlalchemy as sa
from PIL import Image as Pillow
from urllib3.filepost import encode_multipart_formdata
from werkzeug.sansio.multipart import MultipartDecoder

from posting.db.engine import db
from posting.db.models import Image, ImageData
from posting.domain import imaging
from posting.http.etags import if_none_match
from tests.helpers import pictures
from tests.helpers.assertions import faults, problem

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21


def images_of(post):
    return f"/posts/{post['id']}/images"


def path(image):
    return f"/images/{image['id']}"


def form(data=None, **fields):
    return {"file": (BytesIO(pictures.png() if data is None else data), "a.png")} | fields


def stored(app):
    with app.app_context():
        count = sa.select(sa.func.count())
        return [db.session.scalar(count.select_from(table)) for table in (Image, ImageData)]


@pytest.fixture
def image(alice, post):
    return alice.add_image(post, alt="A loom")


def test_an_image_is_added_and_handed_out(alice, anonymous, post):
    created = alice.post(images_of(post), data=form(alt="A *loom* 🧶"))

    assert created.status_code == 201
    image = created.json
    picture = anonymous.get(path(image))
    assert image == {
        "id": image["id"],
        "url": f"http://localhost{path(image)}",
        "media_type": "image/png",
        "width": 48,
        "height": 32,
        "size": len(picture.data),
        "alt": "A *loom* 🧶",
        "created_at": image["created_at"],
    }
    assert created.headers["Location"] == image["url"]
    assert Pillow.open(BytesIO(picture.data)).convert("RGB").tobytes() == pictures.scene().tobytes()


def test_a_picture_is_kept_for_good_and_may_run_nothing(anonymous, image):
    picture = anonymous.get(path(image))
    assert picture.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert picture.headers["ETag"] == f'"{image["id"]}"'
    assert picture.content_type == "image/png"
    assert picture.headers["X-Content-Type-Options"] == "nosniff"
    assert picture.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert int(picture.headers["Content-Length"]) == image["size"]
    head = anonymous.head(path(image))
    assert (head.data, head.headers["Content-Length"]) == (b"", str(image["size"]))
    for tag in (picture.headers["ETag"], f"W/{picture.headers['ETag']}", "*"):
        again = anonymous.get(path(image), headers={"If-None-Match": tag})
        assert (again.status_code, again.data) == (304, b"")
        for name in ("ETag", "Cache-Control", "Content-Security-Policy"):
            assert again.headers[name] == picture.headers[name]
    other = anonymous.get(path(image), headers={"If-None-Match": '"other"'})
    assert (other.status_code, other.data) == (200, picture.data)


def test_a_tag_may_end_as_if_a_proxy_had_compressed_it(app):
    for tag in ("x-br", "x-gzip", "x"):
        with app.test_request_context(headers={"If-None-Match": f'"{tag}"'}):
            assert if_none_match(tag)


def test_a_post_shows_its_images_and_lists_do_not(alice, anonymous, post):
    shown = [alice.add_image(post, alt=str(number)) for number in range(3)]
    assert anonymous.get(f"/posts/{post['id']}").json == post | {"images": shown}
    edited = alice.patch(f"/posts/{post['id']}", json={"title": "On looms"}).json
    assert edited["images"] == shown
    assert "images" not in anonymous.get("/posts").json[0]


def test_images_change_what_a_reader_has_but_not_what_an_author_edits(alice, post):
    path = f"/posts/{post['id']}"
    tag = alice.get(path).headers["ETag"]
    alice.add_image(post)
    assert alice.get(path, headers={"If-None-Match": tag}).status_code == 200
    edit = alice.patch(path, json={"title": "x"}, headers={"If-Match": tag})
    assert edit.status_code == 200


def test_only_the_author_of_the_post_adds_images(app, bob, moderator, post):
    for other in (bob, moderator):
        problem(other.post(images_of(post), data=form()), 403)
    problem(bob.post(f"/posts/{UNKNOWN}/images", data=form()), 404)
    assert stored(app) == [0, 0]


def test_ten_images_fit_a_post(app, alice, post):
    for _ in range(10):
        last = alice.add_image(post)
    assert faults(alice.post(images_of(post), data=form())) == {"/file"}
    assert stored(app) == [10, 10]
    alice.delete(path(last))
    alice.add_image(post)


class TestForms:
    @pytest.mark.parametrize(
        ("fields", "wrong"),
        [
            ({}, {"/file"}),
            ({"file": "text"}, {"/file"}),
            ({"alt": "x"}, {"/file"}),
            (form() | {"alt": "x" * 501}, {"/alt"}),
            (form() | {"alt": "a\x00b"}, {"/alt"}),
            (form() | {"alt": (BytesIO(b"x"), "alt.txt")}, {"/alt"}),
            (form() | {"id": UNKNOWN, "url": "x"}, {"/id", "/url"}),
            (form() | {"alt": ["one", "two"]}, {"/alt"}),
            ({"file": [(BytesIO(b"x"), "a"), (BytesIO(b"y"), "b")]}, {"/file"}),
            (form(b"") | {"alt": "x" * 501}, {"/alt"}),
        ],
    )
    def test_an_invalid_form_is_refused_whole(self, app, alice, post, fields, wrong):
        fields = fields or {"": ""}
        answer = alice.post(images_of(post), data=fields, content_type="multipart/form-data")
        if "" in fields:
            problem(answer, 400)
        else:
            assert faults(answer) == wrong
        assert stored(app) == [0, 0]

    def test_everything_wrong_is_told_at_once(self, alice):
        answer = alice.post("/posts/short/images", data={"file": "x", "b": "c"} | {"a": "b"},
                            content_type="multipart/form-data")  # fmt: skip
        assert faults(answer) == {"id", "/file", "/a", "/b"}

    @pytest.mark.parametrize("content_type", ["image/png", "application/json", None, "text/plain"])
    def test_only_a_form_is_taken(self, alice, post, content_type):
        answer = alice.post(images_of(post), data=pictures.png(), content_type=content_type)
        assert "multipart/form-data" in problem(answer, 415)["detail"]

    @pytest.mark.parametrize(
        "body",
        [
            b"x",
            b"--b",
            b"--b\r\n",
            b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\nx",
            b"--b\r\nContent-Disposition: form-data; name=alt\r\n\r\n\xff\r\n--b--\r\n",
            b"--b\r\nContent-Disposition: form-data; name=\xff\r\n\r\nx\r\n--b--\r\n",
            b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
            b"--b\r\n\r\nx\r\n--b--\r\n",
            b"--b\r\nContent-Disposition: form-data; name="
            + b"n" * 101
            + b"\r\n\r\nx\r\n--b--\r\n",
            b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n" * 21 + b"--b--\r\n",
            b"--b\r\nContent-Disposition: form-data; name=a\r\n" + b"X: y\r\n" * 99_999,
        ],
        ids=range(11),
    )
    def test_what_is_no_form_is_refused(self, alice, post, body):
        kind = "multipart/form-data; boundary=b"
        problem(alice.post(images_of(post), data=body, content_type=kind), 400)

    def test_a_part_with_a_long_header_is_refused_early(self, alice, post, monkeypatch):
        """The whole body in one header would keep the decoder busy for seconds."""
        received = []
        receive = MultipartDecoder.receive_data
        monkeypatch.setattr(
            MultipartDecoder,
            "receive_data",
            lambda decoder, data: received.append(data) or receive(decoder, data),
        )
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="'
        kind = "multipart/form-data; boundary=b"
        answer = alice.post(images_of(post), data=head + b"x" * 6_000_000, content_type=kind)
        assert "8,192 bytes of headers" in problem(answer, 400)["detail"]
        assert sum(map(len, received)) <= 2**17

    def test_a_file_of_any_bytes_arrives_as_it_was_sent(self, alice, post, monkeypatch):
        """Also where line breaks and parts of the boundary meet the edge of a chunk."""
        arrived = []

        def refuse(data, **_):
            arrived.append(data)
            raise imaging.ImageError("refused")

        monkeypatch.setattr(imaging, "reencode", refuse)
        chance = Random(1)
        for length in range(2**16 - 120, 2**16 + 10, 7):
            data = b"".join(
                chance.choice([b"\r", b"\n", b"\r\n", b"\r\n--b", b"\r\n--", b"--b", b"x"])
                for _ in range(length)
            )[:length].replace(b"\r\n--bb", b"")
            body = b'--bb\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
            body += data + b"\r\n--bb--\r\n"
            kind = "multipart/form-data; boundary=bb"
            assert faults(alice.post(images_of(post), data=body, content_type=kind)) == {"/file"}
            assert arrived.pop() == data

    def test_nothing_is_no_form(self, alice, post):
        kind = "multipart/form-data; boundary=b"
        answer = alice.post(images_of(post), input_stream=BytesIO(), content_type=kind)
        assert "is empty" in problem(answer, 400)["detail"]

    def test_a_form_that_is_cut_off_is_refused(self, alice, post):
        start = b"--b\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\n"
        kind = "multipart/form-data; boundary=b"
        answer = alice.post(images_of(post), data=start + pictures.png(), content_type=kind)
        expected = "The body is not a form: its last boundary is missing."
        assert problem(answer, 400)["detail"] == expected

    @pytest.mark.parametrize(
        "boundary",
        ["", "; boundary=", '; boundary=""', "; boundary=é", f"; boundary={'-' * 101}"],
        ids=range(5),
    )
    def test_a_form_without_a_good_boundary_is_refused(self, alice, post, boundary):
        """A long one, in a body that is nearly made of it, would hold up the whole process."""
        kind = f"multipart/form-data{boundary}"
        answer = alice.post(images_of(post), data=b"--b\r\n", content_type=kind)
        assert "boundary" in problem(answer, 400)["detail"]

    def test_a_form_may_be_laid_out_otherwise(self, alice, post):
        """No preamble or one, quoted names, no filename type, white space behind the boundary."""
        body = (
            b"preamble\r\n--b b  \r\nContent-Type: image/png\r\n"
            b'content-disposition: form-data; filename=""; name="file"\r\n\r\n'
            + pictures.png()
            + b'\r\n--b b\r\nContent-Disposition: form-data; name="alt"\r\n\r\n'
            + "ß\r\n--c".encode()
            + b"\r\n--b b--\r\nepilogue"
        )
        kind = 'Multipart/Form-Data; boundary="b b"'
        answer = alice.post(images_of(post), data=body, content_type=kind)
        assert answer.status_code == 201, answer.text
        assert answer.json["alt"] == "ß\r\n--c"

    @pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=b"])
    def test_size_comes_before_form_in_chunks_too(self, alice, post, kind):
        environ = {"wsgi.input": BytesIO(b"x" * 7_000_000), "wsgi.input_terminated": True}
        headers = {"Transfer-Encoding": "chunked"}
        options = {"environ_overrides": environ, "headers": headers, "content_type": kind}
        problem(alice.post(images_of(post), **options), 413)

    def test_sizes_are_limited(self, make_app, app, alice, post):
        for length, limit in (
            (5 * 2**20 + 1, "A file may have at most 5,242,880 bytes."),
            (6 * 2**20, "The body may have at most 6,291,456 bytes."),
        ):
            body, kind = encode_multipart_formdata({"file": ("a.png", b"x" * length)})
            answer = alice.post(images_of(post), data=body, content_type=kind)
            assert problem(answer, 413)["detail"] == limit
        other = make_app(MAX_IMAGE_BYTES=2000).test_client()
        other.set_cookie("session", alice.get_cookie("session").value)
        noise = pictures.encoded(Pillow.effect_noise((48, 48), 60), "PNG")
        assert 2000 < len(noise) < 4000
        problem(other.post(images_of(post), data=form(noise)), 413)
        assert other.post(images_of(post), data=form()).status_code == 201
        body, kind = encode_multipart_formdata({"alt": "x" * (2**20 + 2000)})
        problem(other.post(images_of(post), data=body, content_type=kind), 413)
        assert stored(app) == [1, 1]

    def test_one_setting_admits_larger_images(self, make_app, alice, post):
        other = make_app(MAX_IMAGE_BYTES=8 * 2**20).test_client()
        other.set_cookie("session", alice.get_cookie("session").value)
        large = pictures.png() + b"x" * 7 * 2**20
        body, kind = encode_multipart_formdata({"file": ("a.png", large)})
        answer = other.post(images_of(post), data=body, content_type=kind)
        assert answer.status_code == 201


class TestDescribing:
    @pytest.mark.parametrize("alt", ["", "x" * 500, None, "ß 🧶"])
    def test_the_author_describes(self, alice, anonymous, post, image, alt):
        answer = alice.patch(path(image), json={"alt": alt})
        assert (answer.status_code, answer.json) == (200, image | {"alt": alt})
        assert anonymous.get(f"/posts/{post['id']}").json["images"] == [answer.json]

    def test_nothing_changes_nothing(self, alice, image):
        assert alice.patch(path(image), json={}).json == image

    @pytest.mark.parametrize(
        ("body", "wrong"),
        [
            ({"alt": 5}, {"/alt"}),
            ({"alt": "x" * 501}, {"/alt"}),
            ({"file": "x", "width": 5}, {"/file", "/width"}),
        ],
    )
    def test_an_invalid_description_is_refused(self, alice, image, body, wrong):
        assert faults(alice.patch(path(image), json=body)) == wrong

    def test_others_do_not(self, bob, moderator, image):
        for other in (bob, moderator):
            problem(other.patch(path(image), json={"alt": "x"}), 403)


class TestDeleting:
    def test_the_author_deletes(self, app, alice, anonymous, post, image):
        tag = {"If-None-Match": f'"{image["id"]}"'}
        assert alice.delete(path(image)).status_code == 204
        problem(alice.delete(path(image)), 404)
        problem(anonymous.get(path(image)), 404)
        problem(anonymous.get(path(image), headers=tag), 404)
        problem(alice.patch(path(image), json={"alt": "x"}), 404)
        assert anonymous.get(f"/posts/{post['id']}").json["images"] == []
        assert stored(app) == [0, 0]

    def test_a_moderator_does_and_others_do_not(self, bob, moderator, image):
        problem(bob.delete(path(image)), 403)
        assert moderator.delete(path(image)).status_code == 204

    def test_images_go_with_their_post(self, app, alice, post, image):
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert stored(app) == [0, 0]

    @pytest.mark.parametrize(("content", "left"), [("keep", [1, 1]), ("delete", [0, 0])])
    def test_or_stay_and_go_as_posts_do(self, app, alice, image, content, left):
        leave = alice.delete(f"/users/{alice.user['id']}?content={content}")
        assert leave.status_code == 204
        assert stored(app) == left
        assert alice.get(path(image)).status_code == (200 if content == "keep" else 404)

    def test_an_image_of_nobodys_post_is_a_moderators(self, alice, bob, moderator, image):
        alice.delete(f"/users/{alice.user['id']}")
        problem(bob.delete(path(image)), 403)
        assert moderator.delete(path(image)).status_code == 204


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_unknown_and_malformed_ids(alice, method):
    body = {} if method == "PATCH" else None
    answer = alice.open(f"/images/{UNKNOWN}", method=method, json=body)
    assert problem(answer, 404)["detail"] == "There is no such image."
    assert faults(alice.open("/images/short", method=method, json=body)) == {"id"}


def test_urls_are_those_of_the_public_url(make_app, alice, post, image):
    client = make_app(PUBLIC_URL="https://example.org/community").test_client()
    [shown] = client.get(f"/posts/{post['id']}").json["images"]
    assert shown["url"] == f"https://example.org/community{path(image)}"


def test_too_many_at_once_are_told_to_come_back(alice, post, monkeypatch):
    while imaging._queue.acquire(blocking=False):
        pass
    try:
        answer = alice.post(images_of(post), data=form())
    finally:
        for _ in range(imaging.MAX_UPLOADS):
            imaging._queue.release()
    assert problem(answer, 503)
    assert answer.headers["Retry-After"] == "2"
    assert alice.post(images_of(post), data=form()).status_code == 201


def test_no_lock_is_held_while_an_image_is_decoded(alice, post, during_decoding):
    path = f"/posts/{post['id']}"
    during_decoding(lambda: alice.patch(path, json={"title": "Meanwhile"}))
    assert alice.post(images_of(post), data=form()).status_code == 201
    assert alice.get(path).json["title"] == "Meanwhile"


@pytest.fixture
def during_decoding(monkeypatch):
    """Do something while an image is decoded."""

    def do(action):
        def decode(data, *, max_bytes):
            action()
            return reencode(data, max_bytes=max_bytes)

        monkeypatch.setattr(imaging, "reencode", decode)

    reencode = imaging.reencode
    return do


def test_an_upload_that_finds_no_room_is_not_counted(make_app, alice, post, monkeypatch):
    def refuse(*_, **__):
        raise imaging.BusyError

    client = make_app(RATE_LIMITS="on", LIMIT_IMAGES="2/hour").test_client()
    client.set_cookie("session", alice.get_cookie("session").value)
    with monkeypatch.context() as patch:
        patch.setattr(imaging, "reencode", refuse)
        for _ in range(4):
            problem(client.post(images_of(post), data=form()), 503)
    assert client.post(images_of(post), data=form()).status_code == 201


class TestChecksBeforeDecoding:
    """Decoding costs seconds, so it comes after every check that can refuse the upload."""

    @pytest.fixture(autouse=True)
    def undecoded(self, monkeypatch):
        def decode(data, *, max_bytes):
            raise AssertionError("decoded")

        monkeypatch.setattr(imaging, "reencode", decode)

    def test_of_the_post(self, bob, post):
        problem(bob.post(images_of(post), data=form()), 403)
        problem(bob.post(f"/posts/{UNKNOWN}/images", data=form()), 404)

    def test_of_its_number_of_images(self, app, alice, post):
        row = {"post_id": post["id"], "media_type": "image/png", "width": 1, "height": 1, "size": 1}
        with app.app_context():
            for number in range(10):
                image = Image(**row)
                db.session.add(image)
                db.session.flush()
                db.session.add(ImageData(image_id=image.id, data=bytes([number])))
            db.session.commit()
        assert faults(alice.post(images_of(post), data=form())) == {"/file"}

    def test_and_of_the_limit_which_every_attempt_counts(self, make_app, alice, post):
        client = make_app(RATE_LIMITS="on", LIMIT_IMAGES="2/hour").test_client()
        client.set_cookie("session", alice.get_cookie("session").value)
        for _ in range(2):
            problem(client.post(f"/posts/{UNKNOWN}/images", data=form()), 404)
        problem(client.post(images_of(post), data=form()), 429)


class TestChecksAfterDecoding:
    """What was true before may not be true any more."""

    @pytest.fixture
    def other(self, app, alice):
        """Alice's session in another client."""
        client = app.test_client()
        client.set_cookie("session", alice.get_cookie("session").value)
        return client

    def assert_refused(self, alice, post, status):
        problem(alice.post(images_of(post), data=form()), status)
        assert stored(alice.application) == [0, 0]

    def test_a_suspended_user(self, flask, alice, post, during_decoding):
        during_decoding(lambda: flask("users", "suspend", "alice"))
        self.assert_refused(alice, post, 401)

    def test_an_ended_session(self, alice, other, post, during_decoding):
        during_decoding(lambda: other.post("/signout"))
        self.assert_refused(alice, post, 401)

    def test_a_deleted_account(self, alice, other, post, during_decoding):
        during_decoding(lambda: other.delete(f"/users/{alice.user['id']}"))
        self.assert_refused(alice, post, 401)

    def test_a_deleted_post(self, alice, other, post, during_decoding):
        during_decoding(lambda: other.delete(f"/posts/{post['id']}"))
        self.assert_refused(alice, post, 404)
