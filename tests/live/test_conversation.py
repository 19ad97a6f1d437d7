"""Sixteen clients in one thread of comments: counts stay exact and no row is orphaned."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import requests
import sqlalchemy as sa

from tests.conftest import POSTGRES
from tests.helpers import pictures
from tests.live.clients import clone, run_concurrently, scaled, sign_in

pytestmark = pytest.mark.usefixtures("stays_consistent")
NAMES = ("ada", "bob", "cyd", "dee")
TIMEOUT = 20


@pytest.fixture
def users(url):
    """Four clients, signed in to different accounts."""
    return [sign_in(url, name) for name in NAMES]


def write_post(url, client, title="x"):
    post = {"title": title, "content": "x"}
    response = client.post(f"{url}/posts", json=post, timeout=TIMEOUT)
    assert response.status_code == 201, response.text
    return response.json()["id"]


def comment(url, client, post, parent=None):
    body = {"content": "x", "parent_id": parent}
    return client.post(f"{url}/posts/{post}/comments", json=body, timeout=TIMEOUT)


def commenting(url, client, post, parent=None):
    return lambda: comment(url, client, post, parent)


def test_the_comment_count_is_exact_during_concurrent_changes(url, pool, users, status_counts):
    post = write_post(url, users[0])
    comments = []

    def comment_and_delete(number):
        """Comment and reply at random, and delete every second comment again."""
        rng = random.Random(number)
        client, own = clone(users[number % 4]), []
        statuses = Counter()
        for _ in range(scaled(12, 200)):
            parent = rng.choice([None, *comments[-6:]])
            response = comment(url, client, post, parent)
            statuses[response.status_code] += 1
            if response.status_code == 201:
                comments.append(response.json()["id"])
                own.append(comments[-1])
            if own and rng.random() < 0.5:
                target = own.pop(rng.randrange(len(own)))
                deleted = client.delete(f"{url}/comments/{target}", timeout=TIMEOUT)
                assert deleted.status_code == 204, deleted.text
                statuses[204] += 1
        return statuses

    for statuses in pool.map(comment_and_delete, range(16)):
        status_counts += statuses
    assert set(status_counts) <= {201, 204, 422}  # 422: the parent has been deleted
    assert status_counts[201] > 100
    shown = requests.get(f"{url}/posts/{post}", timeout=TIMEOUT).json()
    assert shown["comment_count"] == status_counts[201] - status_counts[204]


def test_a_post_is_deleted_while_others_comment(url, pool, users, status_counts):
    clients = [clone(users[number % 4]) for number in range(15)]
    for _ in range(scaled(10, 100)):
        post = write_post(url, users[0])
        first = comment(url, users[1], post).json()["id"]
        path = f"{url}/posts/{post}"
        *created, deleted = run_concurrently(
            pool,
            [
                *(
                    commenting(url, client, post, random.choice([None, first]))
                    for client in clients
                ),
                lambda: users[0].delete(path, timeout=TIMEOUT),  # noqa: B023
            ],
        )
        assert deleted == 204
        assert set(created) <= {201, 404}
        status_counts.update([*created, deleted])
        assert requests.get(path, timeout=TIMEOUT).status_code == 404


@pytest.mark.parametrize("content", ["keep", "delete"])
def test_an_account_is_deleted_while_others_comment(url, pool, users, status_counts, content):
    """They comment on its posts, on posts of others, and reply to its comments."""
    bob = users[1]
    for round in range(scaled(6, 60)):
        leaver = sign_in(url, f"leaver-{round}")
        own, other = write_post(url, leaver), write_post(url, bob)
        first = comment(url, leaver, other).json()["id"]
        reply = comment(url, bob, other, first).json()["id"]
        comment(url, leaver, other, reply)
        path = f"{url}/users/{leaver.user['id']}?content={content}"
        *created, deleted = run_concurrently(
            pool,
            [
                *(commenting(url, clone(user), own) for user in users),
                *(commenting(url, clone(user), other) for user in users),
                *(commenting(url, clone(user), other, first) for user in users),
                *(commenting(url, clone(leaver), other) for _ in range(3)),
                lambda: leaver.delete(path, timeout=TIMEOUT),  # noqa: B023
            ],
        )
        assert deleted == 204
        assert set(created[:4]) <= ({201} if content == "keep" else {201, 404})
        assert set(created[4:8]) == {201}
        # A reply to a deleted comment is refused with 422.
        assert set(created[8:12]) <= ({201} if content == "keep" else {201, 422})
        assert set(created[12:]) <= {201, 401}
        status_counts.update([*created, deleted])
        left = requests.get(f"{url}/posts/{other}/comments", timeout=TIMEOUT).json()
        assert reply in {comment["id"] for comment in left}
        assert leaver.user["id"] not in {
            comment["author"] and comment["author"]["id"] for comment in left
        }


@pytest.mark.parametrize("content", ["keep", "delete"])
def test_deleting_an_account_with_many_comments_does_not_block_writers(
    url, users, database, figure, content
):
    ada, bob = users[:2]
    post, total = write_post(url, bob), scaled(10_000, 160_000)
    insert_comments(database, post, ada.user["id"], total)
    waits = []
    with ThreadPoolExecutor(1) as pool:
        path = f"{url}/users/{ada.user['id']}?content={content}"
        deleting = pool.submit(ada.delete, path, timeout=300)
        while not deleting.done():
            started = time.perf_counter()
            assert comment(url, bob, post).status_code == 201
            waits.append(time.perf_counter() - started)
            time.sleep(0.01)
    assert deleting.result().status_code == 204
    lasted = deleting.result().elapsed.total_seconds()
    figure(f"{total:,} comments in {lasted:.1f} s; slowest write of others {max(waits):.2f} s")
    shown = requests.get(f"{url}/posts/{post}", timeout=TIMEOUT).json()
    assert shown["comment_count"] == len(waits) + (total if content == "keep" else 0)


def insert_comments(database, post, author, count):
    """Insert comments, half of them replies to the previous one."""
    start_time = datetime.now(UTC) - timedelta(days=1)
    table = sa.table("comments", *map(sa.column, (
        "id", "post_id", "parent_id", "author_id", "content", "version", "created_at", "updated_at"
    )))  # fmt: skip
    rows = []
    for number in range(count):
        at = start_time + timedelta(milliseconds=number)
        rows.append(
            {
                "id": f"{number:021}",
                "post_id": post,
                "parent_id": f"{number - 1:021}" if number % 2 else None,
                "author_id": author,
                "content": "x",
                "version": 1,
                "created_at": at if POSTGRES else at.strftime("%Y-%m-%d %H:%M:%S.%f"),
                "updated_at": at if POSTGRES else at.strftime("%Y-%m-%d %H:%M:%S.%f"),
            }
        )
    database.exec_driver_sql("BEGIN")
    for start in range(0, count, 5000):
        database.execute(sa.insert(table), rows[start : start + 5000])
    added = {"count": count, "post": post}
    database.execute(
        sa.text("UPDATE posts SET comment_count = comment_count + :count WHERE id = :post"), added
    )
    database.exec_driver_sql("COMMIT")


@pytest.mark.parametrize("resource", ["post", "comment", "image"])
def test_sixteen_requests_with_one_idempotency_key_create_one_row(
    url, pool, users, status_counts, resource
):
    ada = users[0]
    post = write_post(url, ada)
    clients = [clone(ada) for _ in range(16)]
    png = pictures.png()
    bodies = {
        "post": ("/posts", {"json": {"title": "once", "content": "x"}}),
        "comment": (f"/posts/{post}/comments", {"json": {"content": "once"}}),
        "image": (f"/posts/{post}/images", {"files": {"file": png}, "data": {"alt": "once"}}),
    }
    path, body = bodies[resource]
    rounds = scaled(5, 10)
    for round in range(rounds):
        responses = []

        def create(client, key=f"round-{round}", responses=responses):
            while True:
                response = client.post(
                    url + path, headers={"Idempotency-Key": key}, timeout=TIMEOUT, **body
                )
                if response.status_code != 503:  # too many images are waiting
                    responses.append(response)
                    return response

        actions = [lambda client=client: create(client) for client in clients]
        assert set(run_concurrently(pool, actions)) == {201}
        assert len({response.text for response in responses}) == 1
        assert len({response.headers["Location"] for response in responses}) == 1
        status_counts.update(response.status_code for response in responses)
    shown = requests.get(f"{url}/posts/{post}", timeout=TIMEOUT).json()
    created = {
        "post": len(requests.get(f"{url}/posts?limit=100", timeout=TIMEOUT).json()) - 1,
        "comment": shown["comment_count"],
        "image": len(shown["images"]),
    }
    assert created == {"post": 0, "comment": 0, "image": 0} | {resource: rounds}
