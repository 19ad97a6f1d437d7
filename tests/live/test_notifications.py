"""Notifications while many members act at once: each is told once, and no request fails."""

from collections import Counter
from functools import partial

import pytest
import sqlalchemy as sa

from tests.live.clients import clone, run_concurrently, scaled, sign_in

pytestmark = pytest.mark.usefixtures("stays_consistent")

COMMENT = {"content": "And cloth?"}


def create_post(client, url, content="x"):
    response = client.post(f"{url}/posts", json={"title": "x", "content": content}, timeout=20)
    assert response.status_code == 201, response.text
    return f"{url}/posts/{response.json()['id']}"


def choose(client, post, level):
    response = client.put(f"{post}/subscription", json={"level": level}, timeout=20)
    assert response.status_code == 200, response.text


def comment(client, post, **fields):
    return partial(client.post, f"{post}/comments", json=COMMENT | fields, timeout=20)


def told(client, url):
    response = client.get(f"{url}/notifications?limit=100", timeout=20)
    assert response.status_code == 200, response.text
    return response.json()


def count_rows(database, condition="TRUE"):
    return database.scalar(sa.text(f"SELECT count(*) FROM notifications WHERE {condition}"))


@pytest.fixture
def commenters(url):
    return [sign_in(url, f"commenter-{number}") for number in range(10)]


def test_ten_comments_at_once_tell_three_followers_of_each(url, pool, database, commenters):
    ada = sign_in(url, "ada")
    post = create_post(ada, url)
    choose(ada, post, "muted")
    followers = [sign_in(url, f"follower-{number}") for number in range(3)]
    for follower in followers:
        choose(follower, post, "all")
    rounds = scaled(3, 10)
    for _ in range(rounds):
        statuses = run_concurrently(pool, [comment(client, post) for client in commenters])
        assert statuses == [201] * 10
    assert count_rows(database) == 30 * rounds
    for follower in followers:
        comments = Counter(each["comment"]["id"] for each in told(follower, url))
        assert len(comments) == 10 * rounds
        assert set(comments.values()) == {1}


@pytest.mark.parametrize("content", ["keep", "delete"])
def test_recipients_delete_their_accounts_meanwhile(url, pool, database, commenters, content):
    for number in range(scaled(5, 50)):
        names = [f"recipient-{number}-{each}" for each in range(4)]
        recipients = [sign_in(url, name) for name in names]
        post = create_post(recipients[0], url)
        parent_id = comment(recipients[1], post)().json()["id"]
        choose(recipients[2], post, "all")
        body = {"content": f"@{names[3]}", "parent_id": parent_id}
        comments = [comment(client, post, **body) for client in commenters]
        deletions = [
            partial(client.delete, f"{url}/users/me?content={content}", timeout=20)
            for client in recipients
        ]
        statuses = run_concurrently(pool, [*comments, *deletions])
        assert statuses[10:] == [204] * 4
        # The post or the parent may be gone.
        assert set(statuses[:10]) <= ({201} if content == "keep" else {201, 404, 422})
        assert count_rows(database, "user_id NOT IN (SELECT id FROM users)") == 0


def test_actors_delete_their_accounts_meanwhile(url, pool, database, status_counts):
    ada = sign_in(url, "ada")
    post = create_post(ada, url)
    expected = 0
    for number in range(scaled(5, 30)):
        actors = [sign_in(url, f"actor-{number}-{each}") for each in range(4)]
        comments = [comment(clone(actor), post) for actor in actors for _ in range(2)]
        deletions = [partial(actor.delete, f"{url}/users/me", timeout=20) for actor in actors]
        statuses = run_concurrently(pool, [*comments, *deletions])
        assert statuses[8:] == [204] * 4
        assert set(statuses[:8]) <= {201, 401}
        expected += statuses[:8].count(201)
        status_counts.update(statuses)
    assert count_rows(database) == count_rows(database, "actor_id IS NULL") == expected
    assert {each["actor"] for each in told(ada, url)} <= {None}


def test_a_post_is_deleted_meanwhile(url, pool, database, commenters, status_counts):
    ada = sign_in(url, "ada")
    for _ in range(scaled(5, 50)):
        post = create_post(ada, url, "@commenter-0 @commenter-1")
        comments = [comment(client, post) for client in commenters]
        deletion = partial(clone(ada).delete, post, timeout=20)
        *commented, deleted = run_concurrently(pool, [*comments, deletion])
        assert deleted == 204
        assert set(commented) <= {201, 404}
        assert count_rows(database) == 0
        status_counts.update(commented)


def test_a_member_reads_while_comments_are_deleted(url, pool, commenters, status_counts):
    ada = sign_in(url, "ada")
    post = create_post(ada, url)
    readers = [clone(ada) for _ in range(4)]
    for _ in range(scaled(5, 30)):
        ids = [comment(client, post)().json()["id"] for client in commenters]
        newest = told(ada, url)[0]["id"]
        deletions = [
            partial(client.delete, f"{url}/comments/{id}", timeout=20)
            for client, id in zip(commenters, ids, strict=True)
        ]
        read = {"json": {"up_to": newest}, "timeout": 20}
        reads = [partial(reader.post, f"{url}/notifications/read", **read) for reader in readers]
        statuses = run_concurrently(pool, [*deletions, *reads])
        assert statuses[:10] == [204] * 10
        assert set(statuses[10:]) <= {200, 422}
        status_counts.update(statuses)
    assert told(ada, url) == []


def test_concurrent_edits_tell_a_member_once(url, pool, status_counts):
    ada, bob = sign_in(url, "ada"), sign_in(url, "bob")
    clients = [clone(ada) for _ in range(8)]
    rounds = scaled(5, 50)
    for _ in range(rounds):
        post = create_post(ada, url)
        comment_id = comment(ada, post)().json()["id"]
        for path in (post, f"{url}/comments/{comment_id}"):
            edits = [
                partial(client.patch, path, json={"content": f"@bob {number}"}, timeout=20)
                for number, client in enumerate(clients)
            ]
            statuses = run_concurrently(pool, edits)
            assert statuses == [200] * 8
            status_counts.update(statuses)
    assert len(told(bob, url)) == 2 * rounds
