"""Preconditions of writes (RFC 9110, section 13): each is compared, or the write is refused."""

from datetime import timedelta

import pytest
from werkzeug.http import http_date

from posting.db.types import now
from posting.web.endpoint import Endpoint
from tests.conftest import PASSWORD
from tests.helpers.assertions import assert_problem
from tests.web.test_access import MATRIX, ROLES, body_of, template, url_of  # noqa: F401 - fixture

WRITES = [name for name in MATRIX if not name.startswith("GET")]
CONDITIONAL = [
    name
    for name in WRITES
    if not name.startswith("POST")
    and name != "DELETE /applications/{application}"
    and not name.endswith(("/avatar", "/logo", "/cover", "/role", "/push/subscriptions"))
    and not name.endswith("/reactions/heart")
]
# Where GET has 404 until something is created.
ABSENT = {"/users/{user}/suspension", "/posts/{post}/lock", "/posts/{post}/pin"}
# The other writes have a time of the last edit.
WITHOUT_TIME = {
    "DELETE /moderation/users/{user}",
    "PATCH /site",
    "PATCH /topics/{topic}",
    "DELETE /topics/{topic}",
    "PATCH /reports/{report}",
    "PUT /posts/{post}/subscription",
    "PUT /posts/{post}/seen",
    "PUT /users/me/email",
    "DELETE /users/me/email",
    "PATCH /users/me/notifications",
    "DELETE /sessions/{session}",
    "DELETE /tokens/{token}",
    "DELETE /webhooks/{webhook}",
    "DELETE /invitations/{invitation}",
    "DELETE /users/me/files/{unattached_file}",
    "DELETE /files/{document}",
}
OLD, LATER = "Wed, 01 Jan 2020 00:00:00 GMT", http_date(now() + timedelta(days=1))


@pytest.fixture
def write(request, url_of):  # noqa: F811
    """Return a function that sends a write as somebody who may, to the same object each time."""
    urls = {}

    def write(operation, **headers):
        method, path = operation.split()
        allowed = MATRIX[operation]
        role = next(
            role
            for role in ("alice", "moderator", "owner", "anonymous")
            if allowed[ROLES.index(role)] not in {401, 403, 404}
        )
        url = urls.setdefault(operation, url_of(path))
        client = request.getfixturevalue(role)
        return client.open(url, method=method, headers=headers, **body_of(operation))

    write.urls = urls
    return write


@pytest.mark.parametrize("operation", WRITES)
def test_no_write_ignores_a_stale_precondition(operation, write):
    for headers in ({"If-Match": '"other"'}, {"If-Match": '"a", W/"b"'}, {"If-Match": ""}):
        problem = assert_problem(write(operation, **headers), 412)
        is_compared = operation in CONDITIONAL
        assert problem["code"] == ("stale_version" if is_compared else "unsupported_precondition")


@pytest.mark.parametrize("operation", WRITES)
def test_no_write_ignores_that_nothing_may_be_there(operation, write):
    response = write(operation, **{"If-None-Match": "*"})
    if operation.split()[1] in ABSENT:
        assert response.status_code < 300  # there is nothing yet
    else:
        assert_problem(response, 412)


HUGE = [
    "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
    "Mon, 01 Jan 2024 00:00:00 +99999999999999999999999",
]


@pytest.mark.parametrize("date", HUGE)
@pytest.mark.parametrize("header", ["If-Unmodified-Since", "If-Modified-Since", "If-Range"])
def test_a_date_that_no_calendar_has_is_ignored(app, alice, post, header, date):
    headers = {header: date, "Range": "bytes=0-1"}
    for method, path, status in (
        ("PATCH", f"/posts/{post['id']}", 200),
        ("POST", "/signin", 200),
        ("GET", f"/posts/{post['id']}", 200),
        ("GET", f"/p/{post['id']}", 200),
        ("GET", "/favicon.svg", 200),
    ):
        body = {"username": "alice", "password": PASSWORD} if method == "POST" else {"title": "x"}
        json = {} if method == "GET" else {"json": body}
        response = alice.copy().open(path, method=method, headers=headers, **json)
        assert response.status_code in {status, 206}, (method, path)


@pytest.mark.parametrize("operation", CONDITIONAL)
def test_the_etag_of_the_same_path_lets_a_write_pass(operation, write, owner, alice):
    path = operation.split()[1]
    if path in ABSENT:  # create it
        assert write(f"PUT {path}").status_code < 300
    write(operation, **{"If-Match": '"other"'})
    url = write.urls[operation]
    client = owner if MATRIX[operation][ROLES.index("alice")] in {403, 409} else alice
    etag = client.get(url).headers["ETag"]
    expected = MATRIX[operation][ROLES.index("owner" if client is owner else "alice")]
    assert_problem(write(operation, **{"If-Match": etag, "If-None-Match": etag}), 412)
    assert write(operation, **{"If-Match": f'"x", {etag}'}).status_code == expected


@pytest.mark.parametrize("operation", WRITES)
def test_dates_are_compared_where_there_is_a_time_of_the_last_edit(operation, write):
    has_time = operation in CONDITIONAL and not (
        operation in WITHOUT_TIME or operation.split()[1] in ABSENT or "/subscription" in operation
    )
    if has_time:
        assert_problem(write(operation, **{"If-Unmodified-Since": OLD}), 412)
    # A later date holds, an invalid one does not count, and there is no such condition of a write.
    for headers in (
        {"If-Unmodified-Since": LATER} if has_time else {"If-Unmodified-Since": OLD},
        {"If-Unmodified-Since": "yesterday"},
        {"If-Modified-Since": LATER},
    ):
        if "DELETE" not in operation:
            assert write(operation, **headers).status_code not in {412, 428}


def test_a_date_beside_if_match_does_not_count(alice, post):
    url = f"/posts/{post['id']}"
    headers = {"If-Match": alice.get(url).headers["ETag"], "If-Unmodified-Since": OLD}
    assert alice.patch(url, json={"title": "x"}, headers=headers).status_code == 200


def test_other_errors_come_first(alice, bob, moderator, post):
    headers = {"If-Match": '"other"'}
    unknown, url = f"/posts/{'a' * 21}", f"/posts/{post['id']}"
    assert_problem(alice.patch(unknown, json={}, headers=headers), 404)
    assert_problem(bob.patch(url, json={}, headers=headers), 403)
    assert_problem(alice.put(f"{url}/lock", headers=headers), 403)
    assert_problem(moderator.put(f"{unknown}/lock", headers=headers), 404)
    assert_problem(alice.post("/posts", json={"title": ""}, headers=headers), 422)


def test_each_edit_of_what_can_be_read_compares(app):
    """A new endpoint must take part."""
    paths = {name.partition(" ")[2] for name in MATRIX if name.startswith("GET")}
    for operation in WRITES:
        method, path = operation.split()
        if method != "POST":
            assert (path in paths) == (operation in CONDITIONAL), operation
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        if isinstance(view, Endpoint) and view.conditional:
            assert view.writes
            assert view.method != "POST"


def test_the_etag_of_a_new_object_is_that_of_its_url(alice, moderator, post):
    """`Location` of an image is its file; the ETag is that of its metadata, as after an edit."""
    sent = {
        "/tokens": {"name": "A program", "scope": "read"},
        f"/posts/{post['id']}/reports": {"reason": "Why?"},
        f"/users/{moderator.user['id']}/reports": {"reason": "Why?"},
        "/invitations": {},
        "/posts": {"title": "x", "content": "y"},
        f"/posts/{post['id']}/comments": {"content": "y"},
        "/signup": {"username": "newcomer", "password": "a long walk by the sea"},
        "/recovery-codes": {"current_password": "a long walk by the sea"},
    }
    for path, body in sent.items():
        created = moderator.post(path, json=body)
        assert created.status_code == 201, path
        read = moderator.get(created.headers["Location"])
        assert created.headers["ETag"] == read.headers["ETag"], path
    created = alice.post("/files", **body_of("POST /files"))
    read = alice.get(created.headers["Location"])
    assert created.headers["ETag"] == read.headers["ETag"]
    form = body_of("POST /posts/{post}/images")
    created = alice.post(f"/posts/{post['id']}/images", **form)
    url = f"/images/{created.json['id']}"
    assert created.headers["ETag"] == alice.get(f"{url}/metadata").headers["ETag"]
    headers = {"If-Match": created.headers["ETag"]}
    assert alice.patch(url, json={"alt": "A loom"}, headers=headers).status_code == 200
    assert_problem(alice.patch(url, json={"alt": "A mill"}, headers=headers), 412)
