"""Posts: create, read, list, edit, delete, and preconditions."""

import pytest

from tests.helpers.assertions import assert_problem, error_locations, follow_pages

UNKNOWN = "/posts/" + "a" * 21


def path(post):
    return f"/posts/{post['id']}"


WHOLE = {"content", "images", "files"}  # what a list leaves out


def test_a_post_is_created_and_read(alice, anonymous):
    created = alice.post("/posts", json={"title": "On engines", "content": "Line one\n\nß 🚂"})

    assert created.status_code == 201
    post = created.json
    assert set(post) == {
        "id", "title", "content", "author", "created_at", "updated_at", "last_activity_at",
        "comment_count", "image_count", "file_count", "locked", "pinned", "images", "files",
        "topics", "reactions",
    }  # fmt: skip
    assert post["content"] == "Line one\n\nß 🚂"
    names = {"username": "alice", "display_name": "Alice", "avatar_url": None}
    assert post["author"] == {"id": alice.user["id"]} | names
    assert post["created_at"] == post["updated_at"]
    assert created.headers["Location"] == f"http://localhost{path(post)}"
    read = anonymous.get(created.headers["Location"])
    assert read.json == post
    assert read.headers["ETag"] == created.headers["ETag"]
    assert "🚂" in read.text  # non-ASCII is not escaped


def test_the_list_omits_content_images_and_files(anonymous, post):
    summary = {name: value for name, value in post.items() if name not in WHOLE}
    assert anonymous.get("/posts").json == [summary]


def test_a_list_may_have_whole_posts(alice, bob, anonymous, post):
    for number in range(3):
        illustrated = alice.create_post(f"Post {number}")
        for alt in ("first", "second")[:number]:
            alice.add_image(illustrated, alt=alt)
    rows = anonymous.get("/posts?expand=content,images,files").json
    assert rows == [anonymous.get(path(row)).json for row in rows]
    assert [image["alt"] for image in rows[0]["images"]] == ["first", "second"]
    for expand, names in (("content", {"content"}), ("images", {"images"}), ("files", {"files"})):
        [row] = anonymous.get(f"/posts?expand={expand}&limit=1").json
        assert row.keys() & WHOLE == names
    own = anonymous.get(f"/posts?expand=images,content&author={bob.user['id']}").json
    assert [row["author"]["id"] for row in own] == [bob.user["id"]] * len(own)


@pytest.mark.parametrize(
    "path", ["/posts?author={id}", "/posts?author={id}&q=engines", "/users/{id}/comments"]
)
def test_an_unknown_author_gets_404_in_each_list(alice, bob, anonymous, post, path):
    """A misspelt ID is not taken for that of a member who has written nothing."""
    assert anonymous.get(path.format(id=bob.user["id"])).json == []
    alice.add_comment(post, "Indeed.")
    assert len(anonymous.get(path.format(id=alice.user["id"])).json) == 1
    alice.delete("/users/me")
    for unknown in ("a" * 21, alice.user["id"]):
        problem = assert_problem(anonymous.get(path.format(id=unknown)), 404)
        assert problem["code"] == "no_such_user"


def test_the_fields_to_add_may_be_separate_parameters(alice, anonymous, post):
    """Some generated clients send an array this way, whatever the document says."""
    alice.create_post("On looms")
    separate = "/posts?limit=1&expand=content&expand=images"
    assert (
        anonymous.get(separate).json == anonymous.get("/posts?limit=1&expand=content,images").json
    )
    pages = list(follow_pages(anonymous, separate))
    assert [row.keys() & WHOLE for page in pages for row in page] == [
        {"content", "images"},
        {"content", "images"},
    ]
    assert error_locations(anonymous.get("/posts?expand=content&expand=x")) == {"expand"}


def test_a_list_of_whole_posts_is_bounded(alice, anonymous, monkeypatch):
    response = anonymous.get("/posts?expand=content&limit=51")
    assert error_locations(response) == {"limit"}
    for expand in ("", "comments", "content,", "content,x", "content;images"):
        assert error_locations(anonymous.get(f"/posts?expand={expand}")) == {"expand"}
    monkeypatch.setattr("posting.posts.views.MAX_CONTENT", 250)
    for number in range(4):
        alice.create_post(f"Post {number}", content="x" * 100)
    pages = list(follow_pages(anonymous, "/posts?expand=content"))
    assert [len(page) for page in pages] == [2, 2]
    titles = {row["title"] for page in pages for row in page}  # some are of one millisecond
    assert titles == {f"Post {number}" for number in range(4)}


@pytest.mark.parametrize(
    ("title", "content"),
    [("x" * 200, "y" * 100_000), (" padded ", "  kept\r\n\ttoo  "), ("日本語" * 66, "é")],
)
def test_text_is_stored_as_sent(alice, anonymous, title, content):
    post = alice.create_post(title, content=content)
    assert post["title"] == title
    assert anonymous.get(path(post)).json["content"] == content


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, {"/title", "/content"}),
        ({"title": "", "content": ""}, {"/title", "/content"}),
        ({"title": "x" * 201, "content": "x" * 100_001}, {"/title", "/content"}),
        ({"title": " \t\u3000", "content": "\n \n"}, {"/title", "/content"}),
        ({"title": None, "content": 1}, {"/title", "/content"}),
        ({"title": ["a"], "content": {"a": 1}}, {"/title", "/content"}),
        ({"title": "a\nb", "content": "c"}, {"/title"}),
        ({"title": "a\u2028b", "content": "c"}, {"/title"}),
        ({"title": "a\n", "content": "c"}, {"/title"}),
        ({"title": "a", "content": "b", "id": "x", "author": "y"}, {"/id", "/author"}),
        ({"title": "a", "content": "b", "comment_count": 9, "version": 9},
         {"/comment_count", "/version"}),
        ({"title": "a", "content": "b", "created_at": "2026-01-01", "a/b~c": 1},
         {"/created_at", "/a~1b~0c"}),
    ],
)  # fmt: skip
def test_an_invalid_post_gets_422_and_not_saved(alice, anonymous, body, expected):
    assert error_locations(alice.post("/posts", json=body)) == expected
    assert anonymous.get("/posts").json == []


INVISIBLE = "\ufeff\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064"


@pytest.mark.parametrize("text", [*INVISIBLE, INVISIBLE, f" {INVISIBLE}\t", " ", "\u3000\xa0"])
def test_invisible_text_is_blank(alice, post, text):
    for name in ("title", "content"):
        body = assert_problem(
            alice.post("/posts", json={"title": "x", "content": "x", name: text}), 422
        )
        assert body["errors"] == [
            {"code": "blank", "detail": "Must not be blank.", "pointer": f"/{name}"}
        ]
    body = assert_problem(alice.post(f"{path(post)}/comments", json={"content": text}), 422)
    assert body["errors"] == [
        {"code": "blank", "detail": "Must not be blank.", "pointer": "/content"}
    ]
    assert alice.create_post(f"{text}x{text}")["title"] == f"{text}x{text}"


def test_an_empty_text_has_one_error(alice):
    body = assert_problem(alice.post("/posts", json={"title": "", "content": ""}), 422)
    assert body["errors"] == [
        {"code": "too_short", "detail": "Must have 1 to 200 characters.", "pointer": "/title"},
        {
            "code": "too_short",
            "detail": "Must have 1 to 100,000 characters.",
            "pointer": "/content",
        },
    ]


def test_an_edit_changes_only_the_fields_sent(alice, anonymous, post):
    edited = alice.patch(path(post), json={"title": "On looms"})

    assert edited.status_code == 200
    assert edited.json["title"] == "On looms"
    assert edited.json["content"] == post["content"]
    assert edited.json["updated_at"] >= post["updated_at"]
    assert edited.json["created_at"] == post["created_at"]
    read = anonymous.get(path(post))
    assert read.json == edited.json
    assert read.headers["ETag"] == edited.headers["ETag"]


def test_an_edit_may_be_a_merge_patch(alice, post):
    edited = alice.patch(
        path(post), data='{"title": "On looms"}', content_type="application/merge-patch+json"
    )
    assert edited.json["title"] == "On looms"


@pytest.mark.parametrize("body", [{}, {"title": "On engines"}])
def test_an_edit_without_changes_keeps_the_etag(alice, post, body):
    before = alice.get(path(post)).headers["ETag"]
    edited = alice.patch(path(post), json=body)
    assert (edited.status_code, edited.json) == (200, post)
    assert edited.headers["ETag"] == before


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"title": None}, {"/title"}),
        ({"content": None, "title": "ok"}, {"/content"}),
        ({"author": None}, {"/author"}),
        ([], {""}),
    ],
)
def test_an_invalid_edit_gets_422_and_changes_nothing(alice, post, body, expected):
    assert error_locations(alice.patch(path(post), json=body)) == expected
    assert alice.get(path(post)).json == post


def test_only_the_author_edits_a_post(bob, moderator, post):
    for other in (bob, moderator):
        assert_problem(other.patch(path(post), json={"title": "Mine now"}), 403)
    assert bob.get(path(post)).json == post


def test_the_author_deletes_a_post(alice, anonymous, post):
    response = alice.delete(path(post))
    assert (response.status_code, response.data) == (204, b"")
    assert_problem(alice.delete(path(post)), 404)
    assert_problem(anonymous.get(path(post)), 404)
    assert anonymous.get("/posts").json == []


def test_a_moderator_deletes_a_post_but_another_member_does_not(bob, moderator, post):
    assert_problem(bob.delete(path(post)), 403)
    assert moderator.delete(path(post)).status_code == 204


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_an_unknown_post_gets_404(alice, method):
    response = alice.open(UNKNOWN, method=method, json={} if method == "PATCH" else None)
    assert assert_problem(response, 404)["detail"] == "There is no such post."


@pytest.mark.parametrize("id", ["short", "a" * 20, "a" * 22, "a" * 20 + "!", "a" * 20 + "é", "%00"])
def test_a_malformed_id_gets_422(alice, id):
    for method, body in (("get", None), ("patch", {}), ("delete", None)):
        assert error_locations(alice.open(f"/posts/{id}", method=method, json=body)) == {"id"}


def test_one_response_lists_all_errors(alice):
    assert error_locations(alice.patch("/posts/short", json={"title": "", "x": 1})) == {
        "id",
        "/title",
        "/x",
    }


class TestPreconditions:
    def test_a_change_with_an_old_etag_gets_412(self, alice, post):
        headers = {"If-Match": alice.get(path(post)).headers["ETag"]}
        edited = alice.patch(path(post), json={"title": "Two"}, headers=headers)
        assert edited.status_code == 200
        assert_problem(alice.patch(path(post), json={"title": "3"}, headers=headers), 412)
        assert_problem(alice.delete(path(post), headers=headers), 412)
        assert alice.get(path(post)).json == edited.json

    @pytest.mark.parametrize("header", ["{}", "W/{}", "{}, {}", '"x", {}', "*", ' "0" ,{} '])
    def test_an_etag_matches_in_any_valid_header(self, alice, post, header):
        etag = alice.get(path(post)).headers["ETag"]
        headers = {"If-Match": header.replace("{}", etag)}
        assert alice.patch(path(post), json={}, headers=headers).status_code == 200

    @pytest.mark.parametrize("suffix", [":gzip", "-gzip", ";br"])
    def test_an_etag_matches_with_the_suffix_of_a_compressing_proxy(self, alice, post, suffix):
        etag = alice.get(path(post)).headers["ETag"].removesuffix('"') + suffix + '"'
        assert alice.get(path(post), headers={"If-None-Match": etag}).status_code == 304
        assert alice.patch(path(post), json={}, headers={"If-Match": etag}).status_code == 200

    @pytest.mark.parametrize("header", ["", "garbage", '"', '""', "1", '"11"', '"1', "é"])
    def test_an_unknown_etag_gets_412(self, alice, post, header):
        assert_problem(alice.patch(path(post), json={}, headers={"If-Match": header}), 412)

    def test_a_read_with_the_current_etag_gets_304(self, anonymous, post):
        for url in ("/posts", path(post), f"/users/{post['author']['id']}", "/openapi.json"):
            first = anonymous.get(url)
            again = anonymous.get(url, headers={"If-None-Match": first.headers["ETag"]})
            assert (again.status_code, again.data) == (304, b""), url
            for name in ("ETag", "Cache-Control"):
                assert again.headers[name] == first.headers[name]
            assert "Content-Length" not in again.headers

    def test_a_new_name_of_the_author_changes_a_read_but_not_the_version(
        self, alice, anonymous, post
    ):
        etag = anonymous.get(path(post)).headers["ETag"]
        alice.patch(f"/users/{alice.user['id']}", json={"display_name": "A."})
        again = anonymous.get(path(post), headers={"If-None-Match": etag})
        assert again.json["author"]["display_name"] == "A."
        assert alice.patch(path(post), json={}, headers={"If-Match": etag}).status_code == 200
