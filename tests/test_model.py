"""The service responds to generated requests like a model of it in plain Python."""

from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from posting.accounts.models import User
from posting.db.base import db
from posting.posts.schemas import IMAGES_PER_POST
from posting.testbed import delete_all_rows
from tests.conftest import PASSWORD
from tests.helpers import pictures
from tests.helpers.assertions import assert_consistent, assert_indexed, assert_problem, follow_pages

STEPS = 50
PARTS = 4  # which processes of pytest-xdist can run at the same time
PICTURE = pictures.png()

FIRST_USERS = ("ada", "bob", "cyd", "Dee")
names = st.sampled_from([*FIRST_USERS, "ADA", "eve"])
passwords = st.sampled_from([PASSWORD, PASSWORD, "another walk by the sea"])
texts = st.sampled_from(["one", "two", "\N{SPOOL OF THREAD} three", "", "  "])
keys = st.sampled_from([None, None, "key-1", "key-2"])
conditions = st.sampled_from(["none", "any", "current", "stale"])


def one_of(items):
    return st.runner().flatmap(lambda community: st.sampled_from(items(community)))


# Items that exist are drawn more often than deleted ones.
sessions = one_of(lambda it: [each for each in it.sessions if each.is_valid] * 5 + it.sessions)
accounts = one_of(lambda it: it.accounts)
posts = one_of(lambda it: [each for each in it.posts if each.exists] * 5 + it.posts)
comments = one_of(lambda it: [each for each in it.comments if each.content] * 2 + it.comments)
many_sessions = precondition(lambda self: sum(each.is_valid for each in self.sessions) > 3)
some_posts = precondition(lambda self: self.posts)
some_comments = precondition(lambda self: self.comments)


@dataclass(eq=False)
class Account:
    id: str
    name: str
    password: str
    is_moderator: bool = False
    is_suspended: bool = False
    exists: bool = True
    keys: dict[str, tuple[Any, str]] = field(default_factory=dict)


@dataclass(eq=False)
class Session:
    client: Any
    account: Account
    is_valid: bool = True


@dataclass(eq=False)
class Comment:
    id: str
    post: "Post"
    parent: "Comment | None"
    author: Account | None
    content: str | None
    version: int = 1

    @property
    def exists(self) -> bool:
        return self.post.exists and self in self.post.comments and self.content is not None


@dataclass(eq=False)
class Post:
    id: str
    author: Account | None
    title: str
    content: str
    version: int = 1
    comments: list[Comment] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    exists: bool = True

    def delete_comment(self, comment: Comment) -> None:
        """Make a comment a placeholder, and remove those from it upward without replies."""
        comment.content = comment.author = None
        while comment and comment.content is None and not self.has_replies(comment):
            self.comments.remove(comment)
            comment = comment.parent

    def has_replies(self, comment: Comment) -> bool:
        return any(other.parent is comment for other in self.comments)


def is_blank(text: str) -> bool:
    return not text.strip()


def if_match(condition: str, version: int) -> dict[str, str]:
    tags = {"any": "*", "current": f'"{version}"', "stale": f'"{version + 1}"'}
    return {"If-Match": tags[condition]} if condition in tags else {}


def status_of_change(
    session: Session,
    item: Post | Comment,
    success: int,
    *,
    is_invalid: bool = False,
    condition: str = "none",
    by_moderators: bool = False,
) -> int:
    """Return the expected status of an edit or a deletion."""
    if not session.is_valid:
        return 401
    if is_invalid:
        return 422
    if not item.exists:
        return 404
    is_allowed = by_moderators and session.account.is_moderator
    if item.author is not session.account and not is_allowed:
        return 403
    return 412 if condition == "stale" else success


class Community(RuleBasedStateMachine):
    """Users who sign up, write, reply, delete and leave."""

    app: Any = None
    status_counts: Any = None

    def __init__(self) -> None:
        super().__init__()
        delete_all_rows(self.app)
        self.anonymous = self.app.test_client()
        self.accounts: list[Account] = []
        self.sessions: list[Session] = []
        self.posts: list[Post] = []
        self.comments: list[Comment] = []

    def find_account(self, name: str) -> Account | None:
        existing = [account for account in self.accounts if account.exists]
        return next((each for each in existing if each.name.lower() == name.lower()), None)

    def end_sessions(self, account: Account, except_for: Session | None = None) -> None:
        for session in self.sessions:
            if session.account is account and session is not except_for:
                session.is_valid = False

    def send(self, status: int, session: Session, method: str, path: str, **body: Any) -> Any:
        """Send a request, and assert that the response has the expected status."""
        response = session.client.open(path, method=method, **body)
        self.status_counts[response.status_code] += 1
        assert response.status_code == status, response.text
        if status >= 400:
            assert_problem(response, status)
        return response

    @initialize()
    def begin(self):
        """Begin with four signed-in users, one of them a moderator, and two posts."""
        for name in FIRST_USERS:
            self.sign_up(name, PASSWORD)
            self.sign_in(name, PASSWORD)
        self.promote(self.accounts[0])
        for session in self.sessions[:2]:
            self.create_post(session, "one", "two", None)
            self.create_comment(session, self.posts[-1], "one", None)

    @rule(name=names, password=passwords)
    def sign_up(self, name, password):
        response = self.anonymous.post("/signup", json={"username": name, "password": password})
        if self.find_account(name):
            assert_problem(response, 409)
        else:
            assert response.status_code == 201, response.text
            self.accounts.append(Account(response.json["id"], name, password))

    @rule(name=names, password=passwords)
    def sign_in(self, name, password):
        client = self.app.test_client()
        response = client.post("/signin", json={"username": name, "password": password})
        account = self.find_account(name)
        if account is None or account.password != password:
            assert_problem(response, 401)
        elif account.is_suspended:
            assert_problem(response, 403)
        else:
            assert response.json["id"] == account.id
            self.sessions.append(Session(client, account))

    @many_sessions
    @rule(session=sessions)
    def sign_out(self, session):
        copy = session.client.copy()
        self.send(204, session, "POST", "/signout")
        session.client, session.is_valid = copy, False

    @many_sessions
    @rule(session=sessions, password=passwords, current=passwords)
    def change_password(self, session, password, current):
        account = session.account
        is_right = current == account.password
        status = 401 if not session.is_valid else 200 if is_right else 422
        change = {"password": password, "current_password": current}
        self.send(status, session, "PATCH", f"/users/{account.id}", json=change)
        if status == 200:
            account.password = password
            self.end_sessions(account, except_for=session)

    @rule(account=accounts)
    def promote(self, account):
        with self.app.app_context():
            db.session.execute(sa.update(User).values(role="moderator").filter_by(id=account.id))
            db.session.commit()
        account.is_moderator = True

    @many_sessions
    @rule(account=accounts, command=st.sampled_from(["suspend", "restore"]))
    def suspend_or_restore(self, account, command):
        if account.exists:
            result = self.app.test_cli_runner().invoke(args=["users", command, account.name])
            assert result.exit_code == 0, result.output
            account.is_suspended = command == "suspend"
            if account.is_suspended:
                self.end_sessions(account)

    @many_sessions
    @precondition(lambda self: len(self.comments) > 2)
    @rule(session=sessions, account=accounts, content=st.sampled_from(["keep", "delete"]))
    def delete_account(self, session, account, content):
        if not session.is_valid:
            status = 401
        elif session.account is account:
            status = 204
        else:
            status = 403 if account.exists else 404
        self.send(status, session, "DELETE", f"/users/{account.id}?content={content}")
        if status != 204:
            return
        account.exists = False
        self.end_sessions(account)
        for post in self.posts:
            if post.author is account:
                post.author = None
                post.exists &= content == "keep"
            for comment in post.comments:
                if comment.author is account:
                    comment.author = None
                    if content == "delete":
                        comment.content = None
            for comment in list(post.comments):
                if comment.content is None and comment in post.comments:
                    post.delete_comment(comment)

    @rule(session=sessions, title=texts, content=texts, key=keys)
    def create_post(self, session, title, content, key):
        account, body = session.account, {"title": title, "content": content}
        stored_body, stored_id = account.keys.get(key, (body, None))
        is_invalid = is_blank(title) or is_blank(content) or stored_body != body
        status = 401 if not session.is_valid else 422 if is_invalid else 201
        headers = {"Idempotency-Key": key} if key else {}
        response = self.send(status, session, "POST", "/posts", json=body, headers=headers)
        if status == 201 and stored_id:
            assert response.json["id"] == stored_id
        elif status == 201:
            self.posts.append(Post(response.json["id"], account, title, content))
            if key:
                account.keys[key] = (body, response.json["id"])

    @some_posts
    @rule(session=sessions, post=posts, title=texts, condition=conditions)
    def edit_post(self, session, post, title, condition):
        status = status_of_change(
            session, post, 200, is_invalid=is_blank(title), condition=condition
        )
        path, headers = f"/posts/{post.id}", if_match(condition, post.version)
        self.send(status, session, "PATCH", path, json={"title": title}, headers=headers)
        if status == 200 and title != post.title:
            post.title, post.version = title, post.version + 1

    @some_posts
    @rule(session=sessions, post=posts, condition=conditions)
    def delete_post(self, session, post, condition):
        status = status_of_change(session, post, 204, condition=condition, by_moderators=True)
        headers = if_match(condition, post.version)
        self.send(status, session, "DELETE", f"/posts/{post.id}", headers=headers)
        if status == 204:
            post.exists = False

    @some_posts
    @rule(session=sessions, post=posts, content=texts)
    def comment(self, session, post, content):
        self.create_comment(session, post, content, None)

    @some_comments
    @rule(session=sessions, parent=comments, content=texts)
    def reply(self, session, parent, content):
        self.create_comment(session, parent.post, content, parent)

    def create_comment(self, session, post, content, parent):
        if not session.is_valid:
            status = 401
        elif is_blank(content):
            status = 422
        elif not post.exists:
            status = 404
        else:
            status = 201 if parent is None or parent.exists else 422
        body = {"content": content, "parent_id": parent and parent.id}
        response = self.send(status, session, "POST", f"/posts/{post.id}/comments", json=body)
        if status == 201:
            comment = Comment(response.json["id"], post, parent, session.account, content)
            post.comments.append(comment)
            self.comments.append(comment)

    @some_comments
    @rule(session=sessions, comment=comments, content=texts, condition=conditions)
    def edit_comment(self, session, comment, content, condition):
        status = status_of_change(
            session, comment, 200, is_invalid=is_blank(content), condition=condition
        )
        path, headers = f"/comments/{comment.id}", if_match(condition, comment.version)
        self.send(status, session, "PATCH", path, json={"content": content}, headers=headers)
        if status == 200 and content != comment.content:
            comment.content, comment.version = content, comment.version + 1

    @some_comments
    @rule(session=sessions, comment=comments, condition=conditions)
    def delete_comment(self, session, comment, condition):
        status = status_of_change(session, comment, 204, condition=condition, by_moderators=True)
        headers = if_match(condition, comment.version)
        self.send(status, session, "DELETE", f"/comments/{comment.id}", headers=headers)
        if status == 204:
            comment.post.delete_comment(comment)

    @some_posts
    @rule(session=sessions, post=posts)
    def add_image(self, session, post):
        status = status_of_change(session, post, 201)
        if status == 201 and len(post.images) == IMAGES_PER_POST:
            status = 422
        form = {"file": (BytesIO(PICTURE), "a.png")}
        response = self.send(status, session, "POST", f"/posts/{post.id}/images", data=form)
        if status == 201:
            post.images.append(response.json["id"])

    @rule()
    def compare_posts(self):
        existing = {post.id: post for post in self.posts if post.exists}
        rows = [row for page in follow_pages(self.anonymous, "/posts?limit=3") for row in page]
        assert rows == sorted(rows, key=lambda row: (row["created_at"], row["id"]), reverse=True)
        assert {row["id"] for row in rows} == existing.keys()
        for row in rows:
            post = existing[row["id"]]
            detail = self.anonymous.get(f"/posts/{post.id}")
            assert detail.headers["ETag"].startswith(f'"{post.version}-')
            assert [image["id"] for image in detail.json["images"]] == post.images
            assert detail.json["content"] == post.content
            assert detail.json.items() >= row.items()
            assert row["title"] == post.title
            assert (row["author"] or {}).get("id") == (post.author and post.author.id)
            undeleted = [comment for comment in post.comments if comment.content is not None]
            assert row["comment_count"] == len(undeleted)
            assert row["last_activity_at"] == (self.compare_comments(post) or row["created_at"])
        active = [
            row
            for page in follow_pages(self.anonymous, "/posts?sort=active&limit=3")
            for row in page
        ]
        rows.sort(key=lambda row: (row["last_activity_at"], row["id"]), reverse=True)
        assert active == rows

    def compare_comments(self, post):
        """Return when the last comment was written."""
        url = f"/posts/{post.id}/comments?limit=2"
        rows = [row for page in follow_pages(self.anonymous, url) for row in page]
        assert {
            (row["id"], row["parent_id"], (row["author"] or {}).get("id"), row["content"])
            for row in rows
        } == {
            (
                comment.id,
                comment.parent and comment.parent.id,
                comment.author and comment.author.id,
                comment.content,
            )
            for comment in post.comments
        }
        seen = {None}
        for row in rows:
            assert row["deleted"] == (row["content"] is None)
            assert row["parent_id"] in seen
            seen.add(row["id"])
        return max((row["created_at"] for row in rows), default=None)

    def teardown(self):
        self.compare_posts()
        for session in self.sessions:
            self.send(200 if session.is_valid else 401, session, "GET", "/users/me")
        with self.app.app_context(), db.engine.connect() as connection:
            assert_consistent(connection)
            assert_indexed(connection)


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("cached_codec")
def test_the_service_responds_like_its_model(app, status_counts, part):
    Community.app, Community.status_counts = app, status_counts
    is_random = not settings().derandomize
    run_state_machine_as_test(
        Community if is_random else seed(part)(Community),
        settings=settings(
            max_examples=2 * settings().max_examples,
            stateful_step_count=STEPS,
            derandomize=False,  # else all parts would be the same
        ),
    )
