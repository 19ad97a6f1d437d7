"""The number of statements of a request, and the indexes that they use."""

import re
from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.accounts import names
from posting.accounts.models import User
from posting.comments.models import Comment
from posting.db.base import db
from posting.db.types import new_id, now
from posting.images.models import Image, ImageData, Thumbnail
from posting.invitations.models import InvitationUse
from posting.notifications.models import Notification
from posting.posts.models import Post
from tests.conftest import POSTGRES, apply, invite
from tests.helpers.assertions import assert_consistent, next_url


def queries(statements):
    return [sql for sql in statements if not sql.startswith(("BEGIN", "PRAGMA"))]


@pytest.fixture
def many_rows(app, alice):
    """Insert enough rows for the planner to use indexes."""
    with app.app_context():
        authors = [alice.user["id"], *(new_id() for _ in range(99))]
        people = [
            {"id": author, "username": f"user-{number}", "password_hash": "x"}
            for number, author in enumerate(authors)
        ]
        db.session.execute(sa.insert(User), people[1:])
        db.session.execute(
            sa.insert(Post),
            [
                {
                    "id": new_id(),
                    "author_id": authors[number % 100],
                    "title": "x",
                    "content": "x",
                    "version": 1,
                    "created_at": now() + timedelta(milliseconds=number),
                }
                for number in range(2000)
            ],
        )
        images = [
            {
                "id": new_id(),
                "post_id": post_id,
                "media_type": "image/png",
                "width": 1,
                "height": 1,
                "size": 1,
            }
            for post_id in db.session.scalars(sa.select(Post.id))
        ]
        db.session.execute(sa.insert(Image), images)
        db.session.execute(sa.update(Post).values(image_count=1))
        data = [{"image_id": image["id"], "data": b"x"} for image in images]
        db.session.execute(sa.insert(ImageData), data)
        thumbnails = [row | {"width": 1, "height": 1} for row in data]
        db.session.execute(sa.insert(Thumbnail), thumbnails)
        posts = list(db.session.scalars(sa.select(Post.id).limit(40)))
        comments = [
            {
                "id": new_id(),
                "post_id": posts[number % 40],
                "parent_id": None,
                "author_id": authors[number % 100],
                "content": "x",
                "version": 1,
                "created_at": now() + timedelta(milliseconds=number),
            }
            for number in range(4000)
        ]
        for number, row in enumerate(comments):
            row["parent_id"] = comments[number % 40]["id"] if number >= 40 else None
        db.session.execute(sa.insert(Comment), comments)
        db.session.execute(sa.update(Post).where(Post.id.in_(posts)).values(comment_count=100))
        latest = sa.select(sa.func.max(Comment.created_at)).where(Comment.post_id == Post.id)
        db.session.execute(sa.update(Post).values(last_comment_at=latest.scalar_subquery()))
        db.session.commit()


@pytest.fixture
def plan(statements, many_rows, vacuum):
    """Return the query plans of a request, as text, perhaps without those of some statements."""

    def plan(client, url, method="GET", without=()):
        seen = []

        def explain(connection, cursor, statement, parameters, *_):
            is_planned = statement.startswith(("SELECT", "UPDATE", "DELETE", "WITH"))
            if is_planned and not any(part in statement for part in without):
                prefix = "EXPLAIN " if POSTGRES else "EXPLAIN QUERY PLAN "
                inner = connection.connection.cursor()
                if POSTGRES:  # its planner prefers to scan and to sort small tables
                    inner.execute("SET enable_seqscan = off; SET enable_sort = off")
                inner.execute(prefix + statement, parameters)
                seen.append("\n".join(str(row) for row in inner.fetchall()))
                if POSTGRES:
                    inner.execute("RESET enable_seqscan; RESET enable_sort")

        vacuum()
        sa.event.listen(sa.Engine, "before_cursor_execute", explain)
        try:
            assert client.open(url, method=method).status_code in {200, 204}
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", explain)
        return "\n".join(seen)

    return plan


def lists(anonymous, alice):
    own = f"author={alice.user['id']}"
    for query in ("", own, "sort=active", f"sort=active&{own}"):
        url = f"/posts?limit=5&{query}".rstrip("&")
        yield url
        link = anonymous.get(url).headers["Link"]
        yield re.search("<(.*)>", link)[1]


@pytest.fixture
def commented(app):
    with app.app_context():
        return db.session.scalars(sa.select(Comment).order_by(Comment.created_at)).first()


def assert_no_table_scan(text):
    content = "posts|comments|images|files|thumbnails|reports|acts"
    tables = f"({content}|users|notifications|seen|subscriptions)"
    assert not re.search(f"Seq Scan on {tables}", text), text
    assert not re.search(f"SCAN {tables}(?! USING INDEX)", text), text


@pytest.mark.parametrize(
    ("path", "index"),
    [
        ("/posts/{0.post_id}/comments?limit=5", "ix_comments_post_id_created_at_id"),
        ("/posts/{0.post_id}/comments?limit=5&sort=newest", "ix_comments_post_id_created_at_id"),
        ("/users/{0.author_id}/comments?limit=5", "ix_comments_author_id_created_at_id"),
        ("/comments?limit=5", "ix_comments_created_at_id"),
        ("/comments?limit=5&author={0.author_id}", "ix_comments_author_id_created_at_id"),
    ],
)
def test_comments_are_listed_by_index(plan, anonymous, commented, path, index):
    first = path.format(commented)
    link = anonymous.get(first).headers["Link"]
    for url in (first, re.search("<(.*)>", link)[1]):
        text = plan(anonymous, url)
        assert index in text, text
        assert "Sort" not in text, text
        assert "TEMP B-TREE" not in text, text
        assert_no_table_scan(text)


def test_members_are_found_by_index(plan, app, anonymous):
    with app.app_context():
        assert sum(names.INDEX.rebuild()) == 100
    first = "/users?q=user&limit=5"
    for url in (first, next_url(anonymous.get(first))):
        text = plan(anonymous, url)
        index = "pk_user_search" if POSTGRES else "SEARCH user_search USING PRIMARY KEY (name>"
        assert index in text, text
        assert "Sort" not in text, text
        assert "TEMP B-TREE" not in text, text
        assert_no_table_scan(text)


@pytest.mark.parametrize(
    ("sort", "index"), [("newest", "ix_users_created_at_id"), ("name", "uq_users_username")]
)
def test_all_members_are_listed_by_index(plan, anonymous, sort, index):
    first = f"/users?sort={sort}&limit=5"
    for url in (first, next_url(anonymous.get(first))):
        text = plan(anonymous, url)
        assert index in text, text
        assert "Sort" not in text, text
        assert "TEMP B-TREE" not in text, text
        assert_no_table_scan(text)


def test_changes_are_listed_by_index(plan, anonymous, alice):
    cursor = anonymous.get("/changes").json["cursor"]
    for number in range(5):
        alice.create_post(str(number))
    text = plan(anonymous, f"/changes?after={cursor}&limit=3")
    index = "ix_changes_transaction_id_seq" if POSTGRES else "USING INTEGER PRIMARY KEY (rowid>?)"
    assert index in text, text
    assert "Sort" not in text, text
    assert "TEMP B-TREE" not in text, text


def test_deletion_scans_no_table(plan, app, alice, moderator, commented):
    assert_no_table_scan(plan(moderator, f"/comments/{commented.id}", "DELETE"))
    assert_no_table_scan(plan(moderator, f"/posts/{commented.post_id}", "DELETE"))
    url = f"/users/{alice.user['id']}?content=delete"
    deleted = plan(alice, url, "DELETE")
    assert_no_table_scan(deleted)
    # Postgres runs a SubPlan for each row. Only the search for a post's last comment may be one.
    last_comment = "Index Only Scan Backward using ix_comments_post_id_created_at_id"
    assert deleted.count("SubPlan") == deleted.count(last_comment), deleted
    with app.app_context(), db.engine.connect() as connection:
        assert_consistent(connection)


def test_posts_are_listed_by_index(plan, anonymous, alice):
    for url in lists(anonymous, alice):
        text = plan(anonymous, url)
        column = "last_activity" if "active" in url else "created"
        index = f"{'author_id_' if 'author=' in url else ''}{column}_at_id"
        assert f"ix_posts_{index}" in text, text
        assert "Sort" not in text, text
        assert "TEMP B-TREE" not in text, text
        assert "Seq Scan on posts" not in text, text
        assert not re.search(r"SCAN posts(?! USING INDEX)", text), text


def test_pinned_posts_are_found_by_index(plan, anonymous):
    text = plan(anonymous, "/")
    assert "ix_posts_pinned_at_id" in text, text
    assert_no_table_scan(text)


def test_thumbnails_of_a_page_are_found_by_index(plan, anonymous):
    text = plan(anonymous, "/")
    assert "ix_images_post_id_comment_id" in text, text
    assert_no_table_scan(text)


def test_applications_are_listed_by_index(plan, app, moderator):
    first = "/applications?limit=1"
    for _ in range(2):
        apply(app)
    link = moderator.get(first).headers["Link"]
    for url in (first, re.search("<(.*)>", link)[1]):
        text = plan(moderator, url)
        assert "ix_users_pending_since_id" in text, text
        assert "Sort" not in text, text
        assert "TEMP B-TREE" not in text, text
        assert_no_table_scan(text)


@pytest.fixture
def moderated(alice, moderator):
    """Two open reports, two closed ones, and the decisions on these in the log."""
    for number in range(4):
        post = alice.create_post(f"Post {number}")
        url = f"/posts/{post['id']}/reports"
        report = moderator.post(url, json={"reason": "This is advertising."}).json
        if number % 2:
            moderator.patch(f"/reports/{report['id']}", json={"outcome": "dismissed"})


@pytest.mark.usefixtures("moderated")
@pytest.mark.parametrize(
    "url", ["/reports?", "/reports?state=closed&", "/moderation/log?", "/moderation/log?user={}&"]
)
def test_reports_and_acts_are_listed_by_index(plan, alice, moderator, url):
    first = f"{url.format(alice.user['id'])}limit=1"
    link = moderator.get(first).headers["Link"]
    for page in (first, re.search("<(.*)>", link)[1]):
        text = plan(
            moderator, page, without=("FROM images", "FROM files")
        )  # a few, which are sorted
        assert "Sort" not in text, text
        assert "TEMP B-TREE" not in text, text
        assert_no_table_scan(text)


@pytest.fixture
def notified(app, alice, many_rows):
    """Let a hundred members have many notifications, half of which are read."""
    with app.app_context():
        rows = [
            {
                "user_id": user_id,
                "created_at": now() + timedelta(milliseconds=number),
                "id": new_id(),
                "kind": "comment",
                "read_at": now() if number % 2 else None,
            }
            for number in range(40)
            for user_id in db.session.scalars(sa.select(User.id))
        ]
        db.session.execute(sa.insert(Notification), rows)
        db.session.commit()


@pytest.mark.usefixtures("notified")
@pytest.mark.parametrize(
    ("query", "index"), [("", "pk_notifications"), ("&unread=true", "ix_notifications_unread")]
)
def test_notifications_are_listed_by_index(plan, alice, query, index):
    first = f"/notifications?limit=5{query}"
    index = index if POSTGRES else "SEARCH notifications USING PRIMARY KEY"
    for url in (first, next_url(alice.get(first))):
        text = plan(alice, url)
        assert index in text, text
        assert "Sort" not in text, text
        assert "TEMP B-TREE" not in text, text
        assert_no_table_scan(text)


@pytest.mark.usefixtures("notified")
def test_unread_notifications_are_counted_by_one_partial_index(plan, alice):
    text = plan(alice, "/notifications/unread")
    index = "ix_notifications_unread"
    assert (index if POSTGRES else f"COVERING INDEX {index}") in text, text
    assert_no_table_scan(text)


@pytest.fixture
def uses(app, many_rows):
    """Say of all users that they came by invitations."""
    with app.app_context():
        people = db.session.scalars(sa.select(User.id))
        uses = [{"user_id": person, "invitation_id": new_id()} for person in people]
        db.session.execute(sa.insert(InvitationUse), uses)
        db.session.commit()


@pytest.mark.usefixtures("notified")
def test_what_is_new_on_a_post_is_found_by_index(plan, alice):
    post = alice.get("/posts?limit=1").json[0]
    path = f"/posts/{post['id']}/seen"
    assert alice.put(path, json={"up_to": None}).status_code == 200
    text = plan(alice, path)
    assert "ix_comments_post_id_created_at_id" in text, text
    assert "Sort" not in text, text
    assert "TEMP B-TREE" not in text, text
    assert_no_table_scan(text)


@pytest.mark.usefixtures("notified")
def test_what_is_new_on_many_posts_is_found_by_index(plan, alice):
    posts = [post["id"] for post in alice.get("/posts?limit=20").json]
    for post in posts:
        alice.put(f"/posts/{post}/seen", json={"up_to": None})
    text = plan(alice, f"/seen?ids={','.join(posts)}")
    assert "ix_comments_post_id_created_at_id" in text, text
    assert_no_table_scan(text)


@pytest.mark.usefixtures("notified")
def test_notifications_by_post_are_found_by_index(plan, alice):
    text = plan(alice, "/notifications/posts")
    index = "notifications" if POSTGRES else "SEARCH notifications USING PRIMARY KEY"
    assert index in text, text
    assert_no_table_scan(text)


@pytest.mark.usefixtures("uses")
@pytest.mark.parametrize("role", ["alice", "moderator"])
def test_invitations_are_listed_by_index(request, plan, app, alice, role):
    client, first = request.getfixturevalue(role), "/invitations?limit=1"
    for _ in range(100):  # of others, without which Postgres may choose another index
        invite(app, None)
    for _ in range(2):
        invite(app, alice.user["id"])
    link = client.get(first).headers["Link"]
    for url in (first, re.search("<(.*)>", link)[1]):
        text = plan(client, url)
        assert f"ix_invitations_{'created_by_id_' if role == 'alice' else ''}created_at_id" in text
        assert "ix_invitation_uses_invitation_id" in text
        assert_no_table_scan(text)


@pytest.mark.usefixtures("many_rows")
def test_lists_select_no_content(anonymous, alice, statements):
    for url in lists(anonymous, alice):
        statements.clear()
        anonymous.get(url)
        [statement] = queries(statements)
        assert "content" not in statement
        assert "count(" not in statement.lower()


@pytest.mark.parametrize(
    ("url", "anonymous_queries", "signed_in_queries"),
    [
        ("/posts", 1, 1),
        ("/posts?expand=content,images", 2, 2),
        ("/users?username=alice", 1, 1),
        ("/posts/{post}", 1, 1),
        ("/posts/{illustrated}", 2, 2),
        ("/posts/{post}/comments", 2, 2),
        ("/posts/{illustrated}/comments", 1, 1),
        ("/comments/{comment}", 1, 1),
        ("/images/{image}", 1, 1),
        ("/images/{image}/thumbnail", 1, 1),
        ("/images/{image}/640", 1, 1),
        ("/images/{image}/metadata", 1, 1),
        ("/", 4, 4),  # the posts, the pinned posts, their thumbnails, and the topics
        ("/users/me", 0, 1),
        ("/sessions", 0, 2),
        ("/openapi.json", 0, 0),
    ],
)
def test_no_request_makes_a_needless_query(
    request, statements, url, anonymous_queries, signed_in_queries
):
    post, anonymous, alice = map(request.getfixturevalue, ("post", "anonymous", "alice"))
    illustrated = alice.create_post("With an image and a comment")
    comment = alice.add_comment(illustrated, "A comment")
    named = {"post": post, "illustrated": illustrated, "comment": comment}
    named["image"] = alice.add_image(illustrated)
    url = url.format(**{name: record["id"] for name, record in named.items()})
    for client, count in ((anonymous, anonymous_queries), (alice, signed_in_queries)):
        statements.clear()
        client.get(url)
        assert len(queries(statements)) == count, statements
        assert ("image_data" in " ".join(statements)) == (url == f"/images/{named['image']['id']}")


def test_a_session_is_found_by_index(plan, alice):
    text = plan(alice, "/users/me")
    if not POSTGRES:  # Postgres scans so few sessions
        assert "sqlite_autoindex_sessions" in text
        assert "SCAN" not in text
