"""The service beside a model of it in plain Python: whatever is asked, both say the same."""

import os
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from posting.db.engine import db
from posting.db.models import User
from posting.schemas.fields import IMAGES_PER_POST
from tests.conftest import PASSWORD
from tests.helpers import pictures
from tests.helpers.assertions import problem, sound, walk

RUNS = int(os.environ.get("FUZZ_CASES", "200"))
STEPS = 50
PICTURE = pictures.png()

FIRST = ("ada", "bob", "cyd", "Dee")
names = st.sampled_from([*FIRST, "ADA", "eve"])
passwords = st.sampled_from([PASSWORD, PASSWORD, "another walk by the sea"])
texts = st.sampled_from(["one", "two", "\N{SPOOL OF THREAD} three", "", "  "])
keys = st.sampled_from([None, None, "key-1", "key-2"])
conditions = st.sampled_from(["none", "any", "current", "stale"])


def one_of(things):
    """Draw one of what the community has; what is still there is drawn more often."""
    return st.runner().flatmap(lambda community: st.sampled_from(things(community)))


sessions = one_of(lambda it: [each for each in it.signed_in if each.is_alive] * 5 + it.signed_in)
accounts = one_of(lambda it: it.people)
posts = one_of(lambda it: [each for each in it.written if each.is_there] * 5 + it.written)
comments = one_of(lambda it: [each for each in it.said if each[1].content] * 2 + it.said)
many_sessions = precondition(lambda self: sum(each.is_alive for each in self.signed_in) > 3)
some_posts = precondition(lambda self: self.written)
some_comments = precondition(lambda self: self.said)


@dataclass(eq=False)
class Account:
    id: str
    name: str
    password: str
    is_moderator: bool = False
    is_suspended: bool = False
    is_there: bool = True
    keys: dict[str, tuple[Any, str]] = field(default_factory=dict)


@dataclass(eq=False)
class Session:
    client: Any
    account: Account
    is_alive: bool = True


@dataclass(eq=False)
class Comment:
    id: str
    parent: "Comment | None"
    author: Account | None
    content: str | None
    version: int = 1


@dataclass(eq=False)
class Post:
    id: str
    author: Account | None
    title: str
    content: str
    version: int = 1
    comments: list[Comment] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    is_there: bool = True

    def remove(self, comment: Comment) -> None:
        """Empty a comment; it and the empty ones above it go while nothing is under them."""
        comment.content = comment.author = None
        comment.version += 1
        while comment and comment.content is None and not self.replies(comment):
            self.comments.remove(comment)
            comment = comment.parent

    def replies(self, comment: Comment) -> bool:
        return any(other.parent is comment for other in self.comments)


def blank(text: str) -> bool:
    return not text.strip()


def stale(condition: str) -> bool:
    return condition == "stale"


def headers_for(condition: str, version: int) -> dict[str, str]:
    tags = {"any": "*", "current": f'"{version}"', "stale": f'"{version + 1}"'}
    return {"If-Match": tags[condition]} if condition in tags else {}


class Community(RuleBasedStateMachine):
    """People who sign up, write, reply, delete and leave."""

    app: Any = None
    answers: Any = None

    def __init__(self) -> None:
        super().__init__()
        with self.app.app_context(), db.engine.begin() as connection:
            for table in reversed(db.metadata.sorted_tables):
                connection.execute(sa.delete(table))
        self.anonymous = self.app.test_client()
        self.people: list[Account] = []
        self.signed_in: list[Session] = []
        self.written: list[Post] = []
        self.said: list[tuple[Post, Comment]] = []

    def named(self, name: str) -> Account | None:
        there = [person for person in self.people if person.is_there]
        return next((person for person in there if person.name.lower() == name.lower()), None)

    def end_sessions(self, account: Account, but: Session | None = None) -> None:
        for session in self.signed_in:
            if session.account is account and session is not but:
                session.is_alive = False

    def ask(self, status: int, session: Session, method: str, path: str, **body: Any) -> Any:
        answer = session.client.open(path, method=method, **body)
        self.answers[answer.status_code] += 1
        assert answer.status_code == status, answer.text
        if status >= 400:
            problem(answer, status)
        return answer

    @initialize()
    def begin(self):
        """Four people have signed in, and one is a moderator."""
        for name in FIRST:
            self.sign_up(name, PASSWORD)
            self.sign_in(name, PASSWORD)
        self.promote(self.people[0])
        for session in self.signed_in[:2]:
            self.write(session, "one", "two", None)
            self.say(session, self.written[-1], "one", None)

    @rule(name=names, password=passwords)
    def sign_up(self, name, password):
        answer = self.anonymous.post("/signup", json={"username": name, "password": password})
        if self.named(name):
            problem(answer, 409)
        else:
            assert answer.status_code == 201, answer.text
            self.people.append(Account(answer.json["id"], name, password))

    @rule(name=names, password=passwords)
    def sign_in(self, name, password):
        client = self.app.test_client()
        answer = client.post("/signin", json={"username": name, "password": password})
        account = self.named(name)
        if account is None or account.password != password:
            problem(answer, 401)
        elif account.is_suspended:
            problem(answer, 403)
        else:
            assert answer.json["id"] == account.id
            self.signed_in.append(Session(client, account))

    @many_sessions
    @rule(session=sessions)
    def sign_out(self, session):
        token = session.client.get_cookie("session")
        self.ask(204, session, "POST", "/signout")
        session.is_alive = False
        if token:  # as one who has copied the cookie
            session.client.set_cookie("session", token.value)

    @many_sessions
    @rule(session=sessions, password=passwords, current=passwords)
    def change_password(self, session, password, current):
        account = session.account
        right = current == account.password
        status = 401 if not session.is_alive else 200 if right else 422
        change = {"password": password, "current_password": current}
        self.ask(status, session, "PATCH", f"/users/{account.id}", json=change)
        if status == 200:
            account.password = password
            self.end_sessions(account, but=session)

    @rule(account=accounts)
    def promote(self, account):
        with self.app.app_context():
            db.session.execute(sa.update(User).values(role="moderator").filter_by(id=account.id))
            db.session.commit()
        account.is_moderator = True

    @many_sessions
    @rule(account=accounts, command=st.sampled_from(["suspend", "restore"]))
    def suspend_or_restore(self, account, command):
        if account.is_there:
            run = self.app.test_cli_runner().invoke(args=["users", command, account.name])
            assert run.exit_code == 0, run.output
            account.is_suspended = command == "suspend"
            if account.is_suspended:
                self.end_sessions(account)

    @many_sessions
    @precondition(lambda self: len(self.said) > 2)
    @rule(session=sessions, account=accounts, content=st.sampled_from(["keep", "delete"]))
    def delete_account(self, session, account, content):
        if not session.is_alive:
            status = 401
        elif session.account is account:
            status = 204
        else:
            status = 403 if account.is_there else 404
        self.ask(status, session, "DELETE", f"/users/{account.id}?content={content}")
        if status != 204:
            return
        account.is_there = False
        self.end_sessions(account)
        for post in self.written:
            if post.author is account:
                post.author = None
                post.is_there &= content == "keep"
            for comment in [each for each in post.comments if each.author is account]:
                comment.author = None
                if content == "delete":
                    comment.content = None
            for comment in list(post.comments):
                if comment.content is None and comment in post.comments:
                    post.remove(comment)

    @rule(session=sessions, title=texts, content=texts, key=keys)
    def write(self, session, title, content, key):
        account, body = session.account, {"title": title, "content": content}
        known = account.keys.get(key)
        wrong = blank(title) or blank(content) or (known is not None and known[0] != body)
        status = 401 if not session.is_alive else 422 if wrong else 201
        headers = {"Idempotency-Key": key} if key else {}
        answer = self.ask(status, session, "POST", "/posts", json=body, headers=headers)
        if status == 201 and known is not None:
            assert answer.json["id"] == known[1]
        elif status == 201:
            self.written.append(Post(answer.json["id"], account, title, content))
            if key:
                account.keys[key] = (body, answer.json["id"])

    @some_posts
    @rule(session=sessions, post=posts, title=texts, condition=conditions)
    def edit(self, session, post, title, condition):
        if not session.is_alive:
            status = 401
        elif blank(title):
            status = 422
        elif not post.is_there:
            status = 404
        elif post.author is not session.account:
            status = 403
        else:
            status = 412 if stale(condition) else 200
        headers = headers_for(condition, post.version)
        path = f"/posts/{post.id}"
        self.ask(status, session, "PATCH", path, json={"title": title}, headers=headers)
        if status == 200 and title != post.title:
            post.title, post.version = title, post.version + 1

    @some_posts
    @rule(session=sessions, post=posts, condition=conditions)
    def delete(self, session, post, condition):
        if not session.is_alive:
            status = 401
        elif not post.is_there:
            status = 404
        elif post.author is not session.account and not session.account.is_moderator:
            status = 403
        else:
            status = 412 if stale(condition) else 204
        headers = headers_for(condition, post.version)
        self.ask(status, session, "DELETE", f"/posts/{post.id}", headers=headers)
        if status == 204:
            post.is_there = False

    @some_posts
    @rule(session=sessions, post=posts, content=texts)
    def comment(self, session, post, content):
        self.say(session, post, content, None)

    @some_comments
    @rule(session=sessions, told=comments, content=texts)
    def reply(self, session, told, content):
        self.say(session, told[0], content, told[1])

    def say(self, session, post, content, parent):
        replied = parent is None or (parent in post.comments and parent.content is not None)
        if not session.is_alive:
            status = 401
        elif blank(content):
            status = 422
        elif not post.is_there:
            status = 404
        else:
            status = 201 if replied else 422
        body = {"content": content, "parent_id": parent and parent.id}
        answer = self.ask(status, session, "POST", f"/posts/{post.id}/comments", json=body)
        if status == 201:
            post.comments.append(Comment(answer.json["id"], parent, session.account, content))
            self.said.append((post, post.comments[-1]))

    @some_comments
    @rule(session=sessions, told=comments, content=texts, condition=conditions)
    def edit_comment(self, session, told, content, condition):
        status = self.of_comment(session, told, condition, moderators=False)
        if session.is_alive and blank(content):
            status = 422
        path, headers = f"/comments/{told[1].id}", headers_for(condition, told[1].version)
        status = status or 200
        self.ask(status, session, "PATCH", path, json={"content": content}, headers=headers)
        if status == 200 and content != told[1].content:
            told[1].content, told[1].version = content, told[1].version + 1

    @some_comments
    @rule(session=sessions, told=comments, condition=conditions)
    def delete_comment(self, session, told, condition):
        status = self.of_comment(session, told, condition, moderators=True) or 204
        path, headers = f"/comments/{told[1].id}", headers_for(condition, told[1].version)
        self.ask(status, session, "DELETE", path, headers=headers)
        if status == 204:
            told[0].remove(told[1])

    def of_comment(self, session, told, condition, *, moderators):
        """Return why somebody may not change a comment, if so."""
        post, comment = told
        if not session.is_alive:
            return 401
        if not post.is_there or comment not in post.comments or comment.content is None:
            return 404
        may = moderators and session.account.is_moderator
        if comment.author is not session.account and not may:
            return 403
        return 412 if stale(condition) else None

    @some_posts
    @rule(session=sessions, post=posts)
    def add_image(self, session, post):
        if not session.is_alive:
            status = 401
        elif not post.is_there:
            status = 404
        elif post.author is not session.account:
            status = 403
        else:
            status = 201 if len(post.images) < IMAGES_PER_POST else 422
        form = {"file": (BytesIO(PICTURE), "a.png")}
        answer = self.ask(status, session, "POST", f"/posts/{post.id}/images", data=form)
        if status == 201:
            post.images.append(answer.json["id"])

    @rule()
    def read_all(self):
        self.compare()

    def compare(self):
        there = {post.id: post for post in self.written if post.is_there}
        rows = [row for page in walk(self.anonymous, "/posts?limit=3") for row in page]
        assert rows == sorted(rows, key=lambda row: (row["created_at"], row["id"]), reverse=True)
        assert {row["id"] for row in rows} == there.keys()
        for row in rows:
            post = there[row["id"]]
            whole = self.anonymous.get(f"/posts/{post.id}")
            assert whole.headers["ETag"].startswith(f'"{post.version}-')
            assert [image["id"] for image in whole.json["images"]] == post.images
            assert whole.json["content"] == post.content
            assert whole.json.items() >= row.items()
            assert row["title"] == post.title
            assert (row["author"] or {}).get("id") == (post.author and post.author.id)
            live = [comment for comment in post.comments if comment.content is not None]
            assert row["comment_count"] == len(live)
            self.compare_comments(post)

    def compare_comments(self, post):
        url = f"/posts/{post.id}/comments?limit=2"
        rows = [row for page in walk(self.anonymous, url) for row in page]
        assert {
            (
                row["id"],
                row["parent_id"],
                (row["author"] or {}).get("id"),
                row["content"],
                row["deleted"],
            )
            for row in rows
        } == {
            (
                comment.id,
                comment.parent and comment.parent.id,
                comment.author and comment.author.id,
                comment.content,
                comment.content is None,
            )
            for comment in post.comments
        }
        seen = {None}
        for row in rows:
            assert row["parent_id"] in seen
            seen.add(row["id"])

    def teardown(self):
        self.compare()
        for session in self.signed_in:
            status = 200 if session.is_alive else 401
            self.ask(status, session, "GET", "/users/me")
        with self.app.app_context(), db.engine.connect() as connection:
            sound(connection)


@pytest.mark.fuzz
def test_the_service_and_its_model_say_the_same(app, answers):
    Community.app, Community.answers = app, answers
    run_state_machine_as_test(
        Community,
        settings=settings(
            max_examples=RUNS,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize="FUZZ_CASES" not in os.environ,
            suppress_health_check=list(HealthCheck),
        ),
    )
