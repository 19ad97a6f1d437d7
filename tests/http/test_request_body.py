"""What clients send that is no JSON, or more than JSON; the same at every endpoint with a body."""

import json
import re
from io import BytesIO

import pytest

from tests.helpers.assertions import faults, problem

LARGEST = 5 * 2**18
POST = '{"title": "On engines", "content": "Some text."%s}'

# Each operation that takes JSON, and fields of it that hold free text.
TEXTS = {
    "POST /posts": {"title", "content"},
    "PATCH /posts/{post}": {"title", "content"},
    "POST /posts/{post}/comments": {"content"},
    "PATCH /comments/{comment}": {"content"},
    "PATCH /images/{image}": {"alt"},
    "POST /signup": {"username", "password", "display_name", "bio"},
    "POST /signin": {"username", "password"},
    "PATCH /users/{user}": {"username", "password", "display_name", "bio", "current_password"},
}
INTEGERS = ("9223372036854775808", "-9223372036854775809", "-1", "1.5", "0", "1e5", "9" * 400)


@pytest.fixture(params=TEXTS)
def operation(request):
    return request.param


@pytest.fixture
def send(operation, alice, post):
    """Send raw bytes to one of the operations that take JSON."""
    method, path = operation.split()
    url = path.format(
        post=post["id"],
        user=alice.user["id"],
        comment=alice.comment_on(post, "Indeed.")["id"] if "{comment}" in path else "",
        image=alice.illustrate(post)["id"] if "{image}" in path else "",
    )

    def send(data, content_type="application/json", **options):
        return alice.open(url, method=method, data=data, content_type=content_type, **options)

    return send


def nested(depth):
    return b'{"title": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_no_operation_is_left_out(anonymous):
    document = anonymous.get("/openapi.json").json
    taking = {
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        for method, described in item.items()
        if method != "parameters"
        and "application/json" in described.get("requestBody", {}).get("content", {})
    }
    assert taking == {re.sub(r"{\w+}", "{id}", operation) for operation in TEXTS}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"not json",
        b'{"title": NaN}',
        b'{"title": -Infinity}',
        b'{"title": 1e999}',
        b'{"title": ' + b"9" * 5000 + b"}",
        b'{"title": "a", "title": "b"}',
        b'{"a": {"b": 1, "b": 2}}',
        b'{"title": "\xff"}',
        b'\xef\xbb\xbf{"title": "a"}',
        '{"title": "a"}'.encode("utf-16"),
        '{"title": "a"}'.encode("utf-32"),
        b'{"title": "\xed\xa0\x80"}',
        b'{"title": "a\x00b"}',
        b'{"title": "a"} {"title": "b"}',
        nested(101),
        nested(1000),
        nested(100_000),
    ],
    ids=range(19),
)
def test_what_is_no_json_is_400(send, body):
    problem(send(body), 400)


def test_nesting_up_to_a_hundred_is_read(send):
    assert "/title" in faults(send(nested(100)))


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"1", b"null", b"true"])
def test_json_that_is_no_object_is_422(send, body):
    assert faults(send(body)) == {""}


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "",
     "application/jsonx", "text/json"],
)  # fmt: skip
def test_other_media_types_are_415(send, content_type):
    problem(send(POST % "", content_type), 415)


def test_a_charset_does_not_matter(alice):
    answer = alice.post("/posts", data=POST % "", content_type="Application/JSON; charset=latin-1")
    assert answer.status_code == 201


def test_merge_patch_is_no_way_to_create(alice):
    answer = alice.post("/posts", data=POST % "", content_type="application/merge-patch+json")
    problem(answer, 415)


@pytest.mark.parametrize("text", ['"a\\ud800b"', '"\\udfff"', '"a\\u0000"'])
def test_text_that_cannot_be_stored_is_422(send, operation, text):
    fields = sorted(TEXTS[operation])
    body = ", ".join(f'"{field}": {text}' for field in fields)
    assert {f"/{field}" for field in fields} <= faults(send(f"{{{body}}}"))


def test_a_pair_of_surrogates_is_a_character(alice):
    answer = alice.post(
        "/posts",
        data='{"title": "\\ud83d\\ude82", "content": "c"}',
        content_type="application/json",
    )
    assert answer.json["title"] == "🚂"


def test_a_name_that_is_no_text_is_named_all_the_same(send):
    assert "/?" in faults(send(b'{"\\ud800": 1}'))


@pytest.mark.parametrize("value", [*INTEGERS, "true", "[]", "{}"])
def test_only_text_is_text(send, operation, value):
    fields = sorted(TEXTS[operation])
    body = ", ".join(f'"{field}": {value}' for field in fields)
    assert {f"/{field}" for field in fields} <= faults(send(f"{{{body}}}"))


@pytest.mark.parametrize("path", ["/posts", "/posts/{post}/comments"])
@pytest.mark.parametrize(
    "limit",
    [
        *INTEGERS[:4],
        "0",
        "101",
        "",
        " ",
        "x",
        "1x",
        "1_0",
        "\N{FULLWIDTH DIGIT ONE}",
        "+5",
        "1" * 5000,
        "%00",
        "%FF",
        "null",
    ],
)
def test_a_limit_that_is_none_is_422(anonymous, post, path, limit):
    url = path.format(post=post["id"])
    assert faults(anonymous.get(f"{url}?limit={limit}")) == {"limit"}
    assert faults(anonymous.get(f"{url}?limit=5&limit=6")) == {"limit"}


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("cursor=x", {"cursor"}),
        ("cursor=", {"cursor"}),
        ("cursor=%00", {"cursor"}),
        ("cursor=" + "x" * 9999, {"cursor"}),
        ("offset=5&a=b", {"offset", "a"}),
        ("%00=1", {"\0"}),
    ],
)
@pytest.mark.parametrize("path", ["/posts", "/posts/{post}/comments"])
def test_any_other_query_that_is_none_is_422(anonymous, post, path, query, wrong):
    assert faults(anonymous.get(f"{path.format(post=post['id'])}?{query}")) == wrong


@pytest.mark.parametrize("value", ["purge", "", "KEEP", "%00", "keep&content=keep"])
def test_what_becomes_of_an_account_is_asked_strictly(alice, value):
    url = f"/users/{alice.user['id']}?content={value}"
    assert faults(alice.delete(url)) == {"content"}
    assert alice.get("/users/me").status_code == 200


def test_an_object_with_more_names_than_any_schema_has_is_400(send):
    """Each unknown name would be an error of its own in the answer."""
    many = json.dumps({f"name{number}": 1 for number in range(51)})
    for body in (many, f'{{"title": {many}}}'):
        assert "more than 50 names" in problem(send(body), 400)["detail"]
    few = json.dumps({f"name{number}": 1 for number in range(40)})
    assert {f"/name{number}" for number in range(40)} <= faults(send(few))


def test_a_long_name_is_cut_in_errors(anonymous):
    body = json.dumps({"n" * 1_000_000: 1})
    answer = anonymous.post("/signin", data=body, content_type="application/json")
    assert "/" + "n" * 100 in faults(answer)


def test_at_most_fifty_errors_are_listed(anonymous):
    query = "&".join(f"name{number}=1" for number in range(1234))
    *errors, last = problem(anonymous.get(f"/posts?{query}"), 422)["errors"]
    assert len(errors) == 50
    assert {error["detail"] for error in errors} == {"Unknown field."}
    assert len({error["parameter"] for error in errors}) == 50
    assert last == {"detail": "1,184 more errors are not listed."}


def test_the_longest_content_may_be_written_in_escapes(alice):
    content = "\N{GRINNING FACE}" * 100_000
    body = json.dumps({"title": "\N{GRINNING FACE}" * 200, "content": content})
    answer = alice.post("/posts", data=body, content_type="application/json")
    assert answer.status_code == 201
    assert answer.json["content"] == content


def test_a_body_that_is_too_large_is_413(send):
    body = b'{"title": "' + b"x" * LARGEST + b'"}'
    assert problem(send(body), 413)["detail"] == "The body may have at most 1,310,720 bytes."


class Broken(BytesIO):
    """A body whose reading fails, as a server's does for chunks that are none."""

    def readinto(self, buffer):
        raise ValueError("bad chunk")

    def read(self, size=-1):
        raise ValueError("bad chunk")


def chunked(stream):
    """Hand a body over as a server does that came in chunks: without a length."""
    environ = {"wsgi.input": stream, "wsgi.input_terminated": True}
    return {"environ_overrides": environ, "headers": {"Transfer-Encoding": "chunked"}}


def test_a_body_in_chunks_is_read(send):
    problem(send(None, **chunked(BytesIO(b'{"title": ""}'))), 422)


def test_a_body_in_chunks_that_is_too_large_is_413(send):
    for length, status in ((LARGEST, 400), (LARGEST + 1, 413), (2**21, 413)):
        told = problem(send(None, **chunked(BytesIO(b"x" * length))), status)
        assert status == 400 or "1,310,720 bytes" in told["detail"]


def test_a_body_that_breaks_off_is_400(send):
    problem(send(None, **chunked(Broken())), 400)


def test_the_largest_body_is_a_setting(make_app):
    client = make_app(MAX_JSON_BYTES=1024).test_client()
    problem(client.post("/signup", data=b" " * 1025, content_type="application/json"), 413)
    problem(client.post("/signup", data=b" " * 1024, content_type="application/json"), 400)


def test_size_comes_before_type_and_type_before_form(alice):
    large = b"{" * (LARGEST + 1)
    problem(alice.post("/posts", data=large, content_type="text/plain"), 413)
    problem(alice.post("/posts", data=b"{", content_type="text/plain"), 415)
    problem(alice.post("/posts?x=1", data=b"{", content_type="application/json"), 400)


def test_where_no_body_is_taken_one_is_ignored(alice, post):
    for method, url in (("GET", "/posts"), ("DELETE", f"/posts/{post['id']}")):
        assert alice.open(url, method=method, data=b"{").status_code < 300
