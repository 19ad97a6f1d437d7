"""Forms (RFC 7578), as the upload of an image reads them."""

from io import BytesIO
from random import Random

import pytest
from PIL import Image as Pillow
from urllib3.filepost import encode_multipart_formdata
from werkzeug.sansio.multipart import MultipartDecoder

from posting.images import codec as imaging
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.uploads import form, list_path, row_counts

pytestmark = pytest.mark.usefixtures("stays_consistent")

UNKNOWN = "a" * 21


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
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
def test_an_invalid_form_is_refused_and_not_saved(app, alice, post, fields, expected):
    response = alice.post(list_path(post), data=fields, content_type="multipart/form-data")
    assert error_locations(response) == expected
    assert row_counts(app) == [0] * 3


def test_a_field_without_a_name_gets_400(app, alice, post):
    kind = "multipart/form-data"
    assert_problem(alice.post(list_path(post), data={"": ""}, content_type=kind), 400)
    assert row_counts(app) == [0] * 3


def test_one_response_lists_all_errors(alice):
    fields = {"file": "x", "b": "c", "a": "b"}
    kind = "multipart/form-data"
    response = alice.post("/posts/short/images", data=fields, content_type=kind)
    assert error_locations(response) == {"id", "/file", "/a", "/b"}


@pytest.mark.parametrize("content_type", ["image/png", "application/json", None, "text/plain"])
def test_another_media_type_gets_415(alice, post, content_type):
    response = alice.post(list_path(post), data=pictures.png(), content_type=content_type)
    assert "multipart/form-data" in assert_problem(response, 415)["detail"]


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
        b"--b\r\nContent-Disposition: form-data; name=" + b"n" * 101 + b"\r\n\r\nx\r\n--b--\r\n",
        b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n" * 21 + b"--b--\r\n",
        b"--b\r\nContent-Disposition: form-data; name=a\r\n" + b"X: y\r\n" * 99_999,
    ],
    ids=range(11),
)
def test_a_malformed_form_gets_400(alice, post, body):
    kind = "multipart/form-data; boundary=b"
    assert_problem(alice.post(list_path(post), data=body, content_type=kind), 400)


def test_a_part_with_long_headers_gets_400_early(alice, post, monkeypatch):
    """The parser would spend seconds on a body that is one long header."""
    received = []
    receive = MultipartDecoder.receive_data
    monkeypatch.setattr(
        MultipartDecoder,
        "receive_data",
        lambda decoder, data: received.append(data) or receive(decoder, data),
    )
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="'
    kind = "multipart/form-data; boundary=b"
    response = alice.post(list_path(post), data=head + b"x" * 6_000_000, content_type=kind)
    assert "8,192 bytes of headers" in assert_problem(response, 400)["detail"]
    assert sum(map(len, received)) <= 2**17


def test_a_file_is_received_exactly_as_sent(alice, post, monkeypatch):
    """Also where line breaks and parts of the boundary fall on the edge of a chunk."""
    received = []

    def refuse(data, **_):
        received.append(data)
        raise imaging.ImageError("refused")

    monkeypatch.setattr(imaging, "reencode", refuse)
    random = Random(1)
    for length in range(2**16 - 120, 2**16 + 10, 7):
        data = b"".join(
            random.choice([b"\r", b"\n", b"\r\n", b"\r\n--b", b"\r\n--", b"--b", b"x"])
            for _ in range(length)
        )[:length].replace(b"\r\n--bb", b"")
        body = b'--bb\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        body += data + b"\r\n--bb--\r\n"
        kind = "multipart/form-data; boundary=bb"
        assert error_locations(alice.post(list_path(post), data=body, content_type=kind)) == {
            "/file"
        }
        assert received.pop() == data


def test_an_empty_body_gets_400(alice, post):
    kind = "multipart/form-data; boundary=b"
    response = alice.post(list_path(post), input_stream=BytesIO(), content_type=kind)
    assert "is empty" in assert_problem(response, 400)["detail"]


def test_a_truncated_form_gets_400(alice, post):
    start = b"--b\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\n"
    kind = "multipart/form-data; boundary=b"
    response = alice.post(list_path(post), data=start + pictures.png(), content_type=kind)
    expected = "The body is not a form: its last boundary is missing."
    assert assert_problem(response, 400)["detail"] == expected


@pytest.mark.parametrize(
    "boundary",
    ["", "; boundary=", '; boundary=""', "; boundary=é", f"; boundary={'-' * 101}"],
    ids=range(5),
)
def test_a_form_without_a_valid_boundary_gets_400(alice, post, boundary):
    """A long boundary that fills most of the body would block the whole process."""
    kind = f"multipart/form-data{boundary}"
    response = alice.post(list_path(post), data=b"--b\r\n", content_type=kind)
    assert "boundary" in assert_problem(response, 400)["detail"]


def test_a_form_may_have_any_valid_layout(alice, post):
    """A preamble, an epilogue, quoted names, an empty file name, spaces after a boundary."""
    body = (
        b"preamble\r\n--b b  \r\nContent-Type: image/png\r\n"
        b'content-disposition: form-data; filename=""; name="file"\r\n\r\n'
        + pictures.png()
        + b'\r\n--b b\r\nContent-Disposition: form-data; name="alt"\r\n\r\n'
        + "ß\r\n--c".encode()
        + b"\r\n--b b--\r\nepilogue"
    )
    kind = 'Multipart/Form-Data; boundary="b b"'
    response = alice.post(list_path(post), data=body, content_type=kind)
    assert response.status_code == 201, response.text
    assert response.json["alt"] == "ß\r\n--c"


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=b"])
def test_a_large_body_in_chunks_gets_413_before_the_form_is_checked(alice, post, kind):
    environ = {"wsgi.input": BytesIO(b"x" * 7_000_000), "wsgi.input_terminated": True}
    headers = {"Transfer-Encoding": "chunked"}
    options = {"environ_overrides": environ, "headers": headers, "content_type": kind}
    assert_problem(alice.post(list_path(post), **options), 413)


def test_the_size_of_a_file_and_of_a_body_is_limited(make_app, app, alice, post):
    for length, limit in (
        (5 * 2**20 + 1, "A file may have at most 5,242,880 bytes."),
        (6 * 2**20, "The body may have at most 6,291,456 bytes."),
    ):
        body, kind = encode_multipart_formdata({"file": ("a.png", b"x" * length)})
        response = alice.post(list_path(post), data=body, content_type=kind)
        assert assert_problem(response, 413)["detail"] == limit
    other = alice.copy(make_app(MAX_IMAGE_BYTES=2000))
    noise = pictures.encoded(Pillow.effect_noise((48, 48), 60), "PNG")
    assert 2000 < len(noise) < 4000
    assert_problem(other.post(list_path(post), data=form(noise)), 413)
    assert other.post(list_path(post), data=form()).status_code == 201
    body, kind = encode_multipart_formdata({"alt": "x" * (2**20 + 2000)})
    assert_problem(other.post(list_path(post), data=body, content_type=kind), 413)
    assert row_counts(app) == [1] * 3


def test_a_setting_allows_larger_images(make_app, alice, post):
    other = alice.copy(make_app(MAX_IMAGE_BYTES=8 * 2**20))
    large = pictures.png() + b"x" * 7 * 2**20
    body, kind = encode_multipart_formdata({"file": ("a.png", large)})
    response = other.post(list_path(post), data=body, content_type=kind)
    assert response.status_code == 201
