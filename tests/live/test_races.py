"""Concurrent requests to a real server: no update is lost and no request fails."""

import os
import subprocess
import sys
from collections import Counter
from functools import partial
from threading import local
from time import monotonic

import pytest
import requests
import sqlalchemy as sa

from tests.helpers import ROOT, pictures
from tests.helpers.assertions import assert_consistent
from tests.live.clients import PASSWORD, clone, run_concurrently, scaled, sign_in
from tests.live.load import wait_until


def test_eight_sign_ups_with_one_username_create_one_user(url, pool, status_counts):
    for number in range(scaled(20, 200)):
        body = {"username": f"Racer-{number}", "password": PASSWORD}
        sign_up = lambda: requests.post(f"{url}/signup", json=body, timeout=20)  # noqa: B023, E731
        statuses = Counter(run_concurrently(pool, [sign_up] * 8))
        assert statuses == {201: 1, 409: 7}
        status_counts += statuses


@pytest.fixture
def moderate(database):
    """Return a function that returns a client of a moderator."""

    def moderate(url):
        client = sign_in(url, "morgan")
        promote = "UPDATE users SET role = 'moderator' WHERE username = 'morgan'"
        database.execute(sa.text(promote))
        return client

    return moderate


@pytest.mark.parametrize("uses", [1, 3])
def test_as_many_accounts_as_an_invitation_has_uses(url, pool, moderate, status_counts, uses):
    """Sixteen people sign up by it at the same time."""
    morgan = moderate(url)
    for number in range(scaled(5, 50)):
        created = morgan.post(f"{url}/invitations", json={"uses": uses}, timeout=20).json()
        body = {"password": PASSWORD, "invitation": created["url"].partition("#")[2]}
        names = [f"guest-{number}-{each}" for each in range(16)]
        sign_ups = [
            partial(requests.post, f"{url}/signup", json=body | {"username": name}, timeout=20)
            for name in names
        ]
        statuses = Counter(run_concurrently(pool, sign_ups))
        assert statuses == {201: uses, 422: 16 - uses}
        shown = morgan.get(f"{url}/invitations/{created['id']}", timeout=20).json()
        assert (shown["uses_left"], len(shown["used_by"])) == (0, uses)
        found = [requests.get(f"{url}/users?username={name}", timeout=20).json() for name in names]
        assert sum(map(len, found)) == uses
        status_counts += statuses


def test_an_invitation_is_ended_while_people_sign_up_by_it(url, pool, moderate, status_counts):
    morgan = moderate(url)
    for number in range(scaled(5, 50)):
        created = morgan.post(f"{url}/invitations", json={"uses": 100}, timeout=20).json()
        body = {"password": PASSWORD, "invitation": created["url"].partition("#")[2]}
        actions = [
            partial(
                requests.post,
                f"{url}/signup",
                json=body | {"username": f"guest-{number}-{each}"},
                timeout=20,
            )
            for each in range(15)
        ]
        end = partial(morgan.delete, f"{url}/invitations/{created['id']}", timeout=20)
        *signed_up, ended = run_concurrently(pool, [*actions, end])
        assert ended == 204
        assert set(signed_up) <= {201, 422}
        status_counts.update(signed_up)


def test_an_application_is_approved_while_it_is_refused(url, serve, pool, moderate, status_counts):
    morgan = moderate(url)
    approving = serve(WEB_CONCURRENCY="2", POSTING_SIGNUP="approval").url
    clients = [clone(morgan) for _ in range(8)]
    body = {"username": "newcomer", "password": PASSWORD, "application": "Please."}
    for number in range(scaled(10, 100)):
        applied = body | {"username": f"newcomer-{number}"}
        id = requests.post(f"{approving}/signup", json=applied, timeout=20).json()["id"]
        path = f"{url}/applications/{id}"
        approvals = [partial(client.post, f"{path}/approval", timeout=20) for client in clients[:4]]
        refusals = [partial(client.delete, path, timeout=20) for client in clients[4:]]
        statuses = run_concurrently(pool, [*approvals, *refusals])
        [decided] = [status for status in statuses if status != 404]
        assert decided in (statuses[:4] if decided == 201 else statuses[4:])
        left = requests.get(f"{url}/users/{id}", timeout=20).status_code
        assert (decided, left) in {(201, 200), (204, 404)}
        status_counts.update(statuses)


def send_image(client, url):
    files = {"file": pictures.png()}
    response = client.post(f"{url}/images", files=files, timeout=20)
    assert response.status_code == 201, response.text
    return response.json()["id"]


def test_an_image_is_attached_once(url, pool, status_counts):
    """Four posts and four comments name it at the same time."""
    alice = sign_in(url, "alice")
    text = {"title": "On engines", "content": "They weave."}
    post = alice.post(f"{url}/posts", json=text, timeout=20).json()
    clients = [clone(alice) for _ in range(8)]
    for _ in range(scaled(10, 100)):
        id = send_image(alice, url)
        body, comments = text | {"images": [id]}, f"{url}/posts/{post['id']}/comments"
        comment = {"content": "Indeed.", "images": [id]}
        requests_ = [
            *(
                partial(client.post, f"{url}/posts", json=body, timeout=20)
                for client in clients[:4]
            ),
            *(partial(client.post, comments, json=comment, timeout=20) for client in clients[4:]),
        ]
        statuses = Counter(run_concurrently(pool, requests_))
        assert statuses == {201: 1, 422: 7}
        read = requests.get(f"{url}/images/{id}/metadata", timeout=20).json()
        assert read["post_id"]
        status_counts += statuses


def test_a_file_is_attached_once(url, pool, status_counts):
    """Four posts and four comments name it at the same time, and two requests delete it."""
    alice = sign_in(url, "alice")
    text = {"title": "On engines", "content": "They weave."}
    post = alice.post(f"{url}/posts", json=text, timeout=20).json()
    clients = [clone(alice) for _ in range(10)]
    for _ in range(scaled(10, 100)):
        upload = {"file": ("minutes.pdf", b"%PDF-1.7")}
        id = alice.post(f"{url}/files", files=upload, timeout=20).json()["id"]
        comments = f"{url}/posts/{post['id']}/comments"
        body, comment = text | {"files": [id]}, {"content": "Indeed.", "files": [id]}
        *written, own, any_ = run_concurrently(
            pool,
            [
                *(
                    partial(each.post, f"{url}/posts", json=body, timeout=20)
                    for each in clients[:4]
                ),
                *(partial(each.post, comments, json=comment, timeout=20) for each in clients[4:8]),
                partial(clients[8].delete, f"{url}/users/me/files/{id}", timeout=20),
                partial(clients[9].delete, f"{url}/files/{id}", timeout=20),
            ],
        )
        statuses = Counter(written)
        assert statuses in ({201: 1, 422: 7}, {422: 8})
        assert (own, any_) in {(404, 204), (204, 404)}
        assert statuses[201] <= (own == 404)
        assert requests.get(f"{url}/files/{id}", timeout=20).status_code == 404
        status_counts.update([*written, own, any_])
    for path in ("posts?limit=50&expand=files", f"posts/{post['id']}/comments?limit=100"):
        assert not any(each["files"] for each in requests.get(f"{url}/{path}", timeout=20).json())


def test_an_image_is_deleted_and_described_while_it_is_attached(url, pool, status_counts):
    alice = sign_in(url, "alice")
    clients = [clone(alice) for _ in range(3)]
    text = {"title": "On engines", "content": "They weave."}
    for _ in range(scaled(20, 200)):
        id = send_image(alice, url)
        actions = [
            partial(clients[0].post, f"{url}/posts", json=text | {"images": [id]}, timeout=20),
            partial(clients[1].delete, f"{url}/images/{id}", timeout=20),
            partial(clients[2].patch, f"{url}/images/{id}", json={"alt": "x"}, timeout=20),
        ]
        created, deleted, described = run_concurrently(pool, actions)
        assert (created, deleted) in {(201, 204), (422, 204)}
        assert described in {200, 404}
        assert requests.get(f"{url}/images/{id}/metadata", timeout=20).status_code == 404
        status_counts.update((created, deleted, described))
    posts = requests.get(f"{url}/posts?limit=50&expand=images", timeout=20).json()
    assert all(post["image_count"] == len(post["images"]) == 0 for post in posts)


def run_command(database_url, *arguments):
    """Run a command as an operator does, and return its output."""
    return subprocess.run(
        [sys.executable, "-m", "flask", *arguments],
        cwd=ROOT,
        env=os.environ | {"POSTING_DATABASE_URL": database_url},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def test_a_link_works_once(url, fresh_url, pool, status_counts):
    """Sixteen requests use it at the same time, each with another password."""
    sign_in(url, "alice")
    for _ in range(scaled(3, 20)):
        code = run_command(fresh_url, "users", "reset-link", "alice").strip().rpartition("#")[2]
        assert_only_one_resets(url, pool, status_counts, {"code": code})


def test_each_recovery_code_works_once(url, pool, status_counts):
    alice = sign_in(url, "alice")
    password = {"current_password": PASSWORD}
    created = alice.post(f"{url}/recovery-codes", json=password, timeout=20).json()
    for code in created["codes"][: scaled(4, 10)]:
        ways = {"username": "alice", "recovery_code": code}
        assert_only_one_resets(url, pool, status_counts, ways)


def assert_only_one_resets(url, pool, status_counts, ways):
    passwords = [f"walk number {number} by the sea" for number in range(16)]
    resets = [
        partial(
            requests.post, f"{url}/password-resets", json=ways | {"password": password}, timeout=20
        )
        for password in passwords
    ]
    statuses = run_concurrently(pool, resets)
    assert Counter(statuses) == {200: 1, 422: 15}
    credentials = {"username": "alice", "password": passwords[statuses.index(200)]}
    assert requests.post(f"{url}/signin", json=credentials, timeout=20).status_code == 200
    status_counts.update(statuses)


@pytest.mark.parametrize("field", ["title", "bio", "alt"])
def test_no_edit_with_if_match_is_lost(url, pool, status_counts, field):
    alice = sign_in(url, "alice")
    post = alice.post(f"{url}/posts", json={"title": "0", "content": "x"}, timeout=20).json()
    path = read_path = f"{url}/posts/{post['id']}"
    if field == "bio":
        path = read_path = f"{url}/users/{alice.user['id']}"
    if field == "alt":
        files = {"file": pictures.png()}
        path = alice.post(f"{path}/images", files=files, timeout=20).json()["url"]
        read_path = f"{path}/metadata"
    alice.patch(path, json={field: "0"}, timeout=20)
    thread = local()

    def count_up(_):
        """Add one to the number in the field. If the response is 412, read and try again."""
        if not hasattr(thread, "client"):
            thread.client = clone(alice)
        tries = Counter()
        while not tries[200]:
            read = thread.client.get(read_path, timeout=20)
            edit = thread.client.patch(
                path,
                json={field: str(int(read.json()[field]) + 1)},
                headers={"If-Match": read.headers["ETag"]},
                timeout=20,
            )
            tries[edit.status_code] += 1
            assert set(tries) <= {200, 412}, edit.text
        return tries

    edits = scaled(100, 2000)
    for tries in pool.map(count_up, range(edits)):
        status_counts += tries
    assert alice.get(read_path, timeout=20).json()[field] == str(edits) == str(status_counts[200])


def test_no_token_outlives_a_change_of_the_password(url, pool, status_counts):
    new = {"name": "x", "scope": "write"}
    for number in range(scaled(10, 100)):
        alice = sign_in(url, f"alice-{number}")
        others = [sign_in(url, f"alice-{number}") for _ in range(3)]
        secrets = []

        def create(client):
            response = client.post(f"{url}/tokens", json=new, timeout=20)
            if response.status_code == 201:
                secrets.append(response.json()["token"])  # noqa: B023
            return response

        def change():
            body = {"current_password": PASSWORD, "password": "another walk by the sea"}
            return alice.patch(f"{url}/users/{alice.user['id']}", json=body, timeout=20)  # noqa: B023

        actions = [change, *(partial(create, client) for client in others)]
        status_counts.update(run_concurrently(pool, actions))
        for secret in secrets:
            headers = {"Authorization": f"Bearer {secret}"}
            assert requests.get(f"{url}/users/me", headers=headers, timeout=20).status_code == 401
    assert set(status_counts) <= {200, 201, 401}


def test_a_post_is_deleted_while_others_note_what_they_have_seen(url, pool, status_counts):
    """Two readers have two devices each, somebody comments, and the author deletes the post."""
    alice, bob, eve = (sign_in(url, name) for name in ("alice", "bob", "eve"))
    text = {"title": "On engines", "content": "They weave."}
    for _ in range(scaled(20, 200)):
        post = alice.post(f"{url}/posts", json=text, timeout=20).json()
        path = f"{url}/posts/{post['id']}"
        comments = [
            eve.post(f"{path}/comments", json={"content": "Indeed."}, timeout=20).json()["id"]
            for _ in range(2)
        ]
        devices = [clone(client) for client in (alice, bob) for _ in range(2)]
        actions = [
            partial(device.put, f"{path}/seen", json={"up_to": id}, timeout=20)
            for device in devices
            for id in comments
        ]
        comment = partial(clone(eve).post, f"{path}/comments", json={"content": "x"}, timeout=20)
        *seen, commented, deleted = run_concurrently(
            pool, [*actions, comment, partial(clone(alice).delete, path, timeout=20)]
        )
        assert deleted == 204
        assert commented in {201, 404}
        assert set(seen) <= {200, 404, 422}  # the comment is gone before the post
        status_counts.update([*seen, commented, deleted])


def test_reactions_are_counted_while_their_comment_and_a_member_go(
    url, pool, database, status_counts
):
    """Two members react to a post and to a comment on it, with several devices each."""
    alice = sign_in(url, "alice")
    text = {"title": "On engines", "content": "They weave."}
    for number in range(scaled(5, 50)):
        post = alice.post(f"{url}/posts", json=text, timeout=20).json()
        path = f"{url}/posts/{post['id']}"
        comment = alice.post(f"{path}/comments", json={"content": "x"}, timeout=20).json()["id"]
        reply = {"content": "y", "parent_id": comment}
        assert alice.post(f"{path}/comments", json=reply, timeout=20).status_code == 201
        members = [sign_in(url, f"reader-{number}-{each}") for each in range(2)]
        texts = path, f"{url}/comments/{comment}"
        actions = [
            partial(getattr(clone(member), method), f"{of}/reactions/{name}", timeout=20)
            for member in members
            for of in texts
            for method, name in (("put", "heart"), ("put", "laugh"), ("delete", "heart"))
        ]
        user = members[0].user["id"]
        ends = [
            partial(clone(alice).delete, texts[1], timeout=20),
            partial(members[0].delete, f"{url}/users/{user}?content=delete", timeout=20),
        ]
        *reacted, uncommented, left = run_concurrently(pool, [*actions, *ends])
        assert (uncommented, left) == (204, 204)
        assert set(reacted) <= {200, 401, 404}
        assert_consistent(database)
        status_counts.update(reacted)


def test_a_topic_is_deleted_while_posts_get_it(url, pool, database, status_counts):
    """Others comment on the posts, and edit the name of the topic, meanwhile."""
    alice, owner = sign_in(url, "alice"), sign_in(url, "owen")
    database.execute(sa.text("UPDATE users SET role = 'owner' WHERE username = 'owen'"))
    for number in range(scaled(10, 100)):
        new = {"name": f"Looms {number}", "color": "red"}
        topic = owner.post(f"{url}/topics", json=new, timeout=20).json()["id"]
        text = {"title": "x", "content": "x", "topics": [topic]}
        post = alice.post(f"{url}/posts", json=text, timeout=20).json()
        path, of_topic = f"{url}/posts/{post['id']}", f"{url}/topics/{topic}"
        writer = lambda: clone(alice)  # noqa: E731
        actions = [
            *(partial(writer().post, f"{url}/posts", json=text, timeout=20) for _ in range(3)),
            *(
                partial(writer().patch, path, json={"topics": ids}, timeout=20)
                for ids in ([], [topic])
            ),
            *(
                partial(writer().post, f"{path}/comments", json={"content": "x"}, timeout=20)
                for _ in range(2)
            ),
            partial(clone(owner).patch, of_topic, json={"color": "blue"}, timeout=20),
        ]
        *others, deleted = run_concurrently(
            pool, [*actions, partial(clone(owner).delete, of_topic, timeout=20)]
        )
        assert deleted == 204
        assert set(others) <= {200, 201, 404, 422}
        assert requests.get(f"{url}/topics", timeout=20).json() == []
        assert_consistent(database)
        status_counts.update(others)


@pytest.mark.parametrize("content", ["keep", "delete"])
def test_an_account_is_deleted_while_its_owner_posts(url, pool, status_counts, content):
    alice = sign_in(url, "alice")
    clients = [clone(alice) for _ in range(8)]

    def write(client):
        return lambda: client.post(f"{url}/posts", json={"title": "x", "content": "x"}, timeout=20)

    def delete():
        path = f"{url}/users/{alice.user['id']}?content={content}"
        return alice.delete(path, timeout=20)

    for _ in range(3):
        status_counts.update(run_concurrently(pool, [write(client) for client in clients]))
    assert set(status_counts) == {201}
    *posted, deleted = run_concurrently(pool, [*map(write, clients[:7]), delete])
    assert deleted == 204
    assert set(posted) <= {201, 401}
    status_counts.update([*posted, deleted])
    left = requests.get(f"{url}/posts?limit=100", timeout=20).json()
    assert {post["author"] for post in left} <= {None}
    assert len(left) == (24 + posted.count(201) if content == "keep" else 0)


@pytest.mark.usefixtures("stays_consistent")
@pytest.mark.parametrize("content", ["keep", "delete"])
def test_an_operator_deletes_an_account_that_writes(url, fresh_url, pool, database, content):
    """Eight clients write all the time, and are refused once the account is deleted."""
    alice = sign_in(url, "alice")
    give_up = monotonic() + 60

    def write(client):
        statuses = Counter()
        while not statuses[401]:
            assert monotonic() < give_up
            post = client.post(f"{url}/posts", json={"title": "x", "content": "x"}, timeout=20)
            comment = f"{url}/posts/{post.json().get('id')}/comments"
            for response in (post, client.post(comment, json={"content": "x"}, timeout=20)):
                statuses[response.status_code] += 1
            assert set(statuses) <= {201, 401, 404}, statuses
        return statuses

    writing = [pool.submit(write, clone(alice)) for _ in range(8)]
    wait_until(lambda: database.scalar(sa.text("SELECT count(*) FROM comments")) > 20)
    run_command(fresh_url, "users", "delete", "alice", "--content", content, "--yes")
    for each in writing:
        each.result()
    assert requests.get(f"{url}/users?username=alice", timeout=20).json() == []
    for table in ("posts", "comments"):
        count = sa.text(f"SELECT count(*), count(author_id) FROM {table}")
        left, with_author = database.execute(count).one()
        assert with_author == 0
        assert (left > 0) == (content == "keep")


def test_a_post_is_deleted_while_it_is_edited(url, pool, status_counts):
    alice = sign_in(url, "alice")
    clients = [clone(alice) for _ in range(8)]
    for _ in range(scaled(10, 100)):
        post = alice.post(f"{url}/posts", json={"title": "x", "content": "x"}, timeout=20).json()
        path = f"{url}/posts/{post['id']}"
        edits = [
            lambda client=client: client.patch(path, json={"title": "y"}, timeout=20)  # noqa: B023
            for client in clients[:6]
        ]
        deletions = [
            lambda client=client: client.delete(path, timeout=20)  # noqa: B023
            for client in clients[6:]
        ]
        statuses = run_concurrently(pool, edits + deletions)
        assert sorted(statuses[6:]) == [204, 404]
        assert set(statuses[:6]) <= {200, 404}
        status_counts.update(statuses)


def test_an_account_is_deleted_only_once(url, pool, status_counts):
    for number in range(scaled(5, 50)):
        alice = sign_in(url, f"alice-{number}")
        path = f"{url}/users/{alice.user['id']}"
        deletions = [
            lambda client=client: client.delete(path, timeout=20)  # noqa: B023
            for client in (clone(alice), clone(alice))
        ]
        statuses = run_concurrently(pool, deletions)
        assert sorted(statuses) == [204, 401]
        status_counts.update(statuses)


def test_a_password_is_changed_while_other_sessions_are_used(url, pool, status_counts):
    for number in range(scaled(5, 50)):
        alice, elsewhere = sign_in(url, f"alice-{number}"), sign_in(url, f"alice-{number}")
        change = {"password": "another walk by the sea", "current_password": PASSWORD}
        path = f"{url}/users/{alice.user['id']}"
        uses = [
            lambda client=client: client.patch(path, json={"bio": "x"}, timeout=20)  # noqa: B023
            for client in [clone(elsewhere) for _ in range(7)]
        ]
        changing = lambda: alice.patch(path, json=change, timeout=20)  # noqa: B023, E731
        *used, changed = run_concurrently(pool, [*uses, changing])
        assert changed == 200
        assert set(used) <= {200, 401}
        assert elsewhere.get(f"{url}/users/me", timeout=20).status_code == 401
        assert alice.get(f"{url}/users/me", timeout=20).status_code == 200
        status_counts.update([*used, changed])
