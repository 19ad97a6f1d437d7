"""Sixteen clients in one conversation: counts stay exact, nothing is orphaned, nobody fails."""

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
from tests.live.clients import at_once, copy_of, sign_in, sized

pytestmark = pytest.mark.usefixtures("stays_sound")
NAMES = ("ada", "bob", "cyd", "dee")
LIVE = 20


@pytest.fixture
def people(url):
    """Four users."""
    return [sign_in(url, name) for name in NAMES]


def write_post(url, client, title="x"):
    post = {"title": title, "content": "x"}
    answer = client.post(f"{url}/posts", json=post, timeout=LIVE)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def comment(url, client, post, parent=None):
    body = {"content": "x", "parent_id": parent}
    return client.post(f"{url}/posts/{post}/comments", json=body, timeout=LIVE)


def commenting(url, client, post, parent=None):
    return lambda: comment(url, client, post, parent)


def test_the_count_is_exact_while_sixteen_comment_and_delete(url, pool, people, answers):
    post = write_post(url, people[0])
    made = []

    def take_part(number):
        """Comment and reply to anybody, and delete every second comment again, in any order."""
        chance = random.Random(number)
        client, own = copy_of(people[number % 4]), []
        seen = Counter()
        for _ in range(sized(12, 200)):
            parent = chance.choice([None, *made[-6:]])
            answer = comment(url, client, post, parent)
            seen[answer.status_code] += 1
            if answer.status_code == 201:
                made.append(answer.json()["id"])
                own.append(made[-1])
            if own and chance.random() < 0.5:
                target = own.pop(chance.randrange(len(own)))
                deleted = client.delete(f"{url}/comments/{target}", timeout=LIVE)
                assert deleted.status_code == 204, deleted.text
                seen[204] += 1
        return seen

    for seen in pool.map(take_part, range(16)):
        answers += seen
    assert set(answers) <= {201, 204, 422}  # 422: its parent was deleted before
    assert answers[201] > 100
    shown = requests.get(f"{url}/posts/{post}", timeout=LIVE).json()
    assert shown["comment_count"] == answers[201] - answers[204]


def test_a_post_goes_while_others_comment(url, pool, people, answers):
    clients = [copy_of(people[number % 4]) for number in range(15)]
    for _ in range(sized(10, 100)):
        post = write_post(url, people[0])
        first = comment(url, people[1], post).json()["id"]
        path = f"{url}/posts/{post}"
        *commented, deleted = at_once(
            pool,
            [
                *(
                    commenting(url, client, post, random.choice([None, first]))
                    for client in clients
                ),
                lambda: people[0].delete(path, timeout=LIVE),  # noqa: B023
            ],
        )
        assert deleted == 204
        assert set(commented) <= {201, 404}
        answers.update([*commented, deleted])
        assert requests.get(path, timeout=LIVE).status_code == 404


@pytest.mark.parametrize("content", ["keep", "delete"])
def test_an_account_goes_while_others_comment(url, pool, people, answers, content):
    """On posts of its own and of others, and on its comments there."""
    bob = people[1]
    for round in range(sized(6, 60)):
        leaver = sign_in(url, f"leaver-{round}")
        own, other = write_post(url, leaver), write_post(url, bob)
        said = comment(url, leaver, other).json()["id"]
        reply = comment(url, bob, other, said).json()["id"]
        comment(url, leaver, other, reply)
        path = f"{url}/users/{leaver.user['id']}?content={content}"
        *said_at_once, deleted = at_once(
            pool,
            [
                *(commenting(url, copy_of(person), own) for person in people),
                *(commenting(url, copy_of(person), other) for person in people),
                *(commenting(url, copy_of(person), other, said) for person in people),
                *(commenting(url, copy_of(leaver), other) for _ in range(3)),
                lambda: leaver.delete(path, timeout=LIVE),  # noqa: B023
            ],
        )
        assert deleted == 204
        assert set(said_at_once[:4]) <= ({201} if content == "keep" else {201, 404})
        assert set(said_at_once[4:8]) == {201}
        # A comment that is gone is none to reply to.
        assert set(said_at_once[8:12]) <= ({201} if content == "keep" else {201, 422})
        assert set(said_at_once[12:]) <= {201, 401}
        answers.update([*said_at_once, deleted])
        left = requests.get(f"{url}/posts/{other}/comments", timeout=LIVE).json()
        assert reply in {comment["id"] for comment in left}
        assert leaver.user["id"] not in {
            comment["author"] and comment["author"]["id"] for comment in left
        }


@pytest.mark.parametrize("content", ["keep", "delete"])
def test_others_write_while_an_account_with_very_many_comments_goes(
    url, people, database, figure, content
):
    ada, bob = people[:2]
    post, total = write_post(url, bob), sized(10_000, 160_000)
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
    figure(f"{total:,} comments in {lasted:.1f} s; longest wait of others {max(waits):.2f} s")
    shown = requests.get(f"{url}/posts/{post}", timeout=LIVE).json()
    assert shown["comment_count"] == len(waits) + (total if content == "keep" else 0)


def insert_comments(database, post, author, count):
    """Insert comments as the service would, half of them replies to the one before."""
    moment = datetime.now(UTC) - timedelta(days=1)
    table = sa.table("comments", *map(sa.column, (
        "id", "post_id", "parent_id", "author_id", "content", "version", "created_at", "updated_at"
    )))  # fmt: skip
    rows = []
    for number in range(count):
        at = moment + timedelta(milliseconds=number)
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


@pytest.mark.parametrize("what", ["post", "comment", "image"])
def test_sixteen_with_one_key_create_once(url, pool, people, answers, what):
    ada = people[0]
    post = write_post(url, ada)
    clients = [copy_of(ada) for _ in range(16)]
    picture = pictures.png()
    bodies = {
        "post": ("/posts", {"json": {"title": "once", "content": "x"}}),
        "comment": (f"/posts/{post}/comments", {"json": {"content": "once"}}),
        "image": (f"/posts/{post}/images", {"files": {"file": picture}, "data": {"alt": "once"}}),
    }
    path, body = bodies[what]
    for round in range(10):
        given = []

        def create(client, key=f"round-{round}", given=given):
            while True:
                answer = client.post(
                    url + path, headers={"Idempotency-Key": key}, timeout=LIVE, **body
                )
                if answer.status_code != 503:  # which an image is answered while many come in
                    given.append(answer)
                    return answer

        assert set(at_once(pool, [lambda c=client: create(c) for client in clients])) == {201}
        assert len({answer.text for answer in given}) == 1
        assert len({answer.headers["Location"] for answer in given}) == 1
        answers.update(answer.status_code for answer in given)
    shown = requests.get(f"{url}/posts/{post}", timeout=LIVE).json()
    made = {
        "post": len(requests.get(f"{url}/posts?limit=100", timeout=LIVE).json()) - 1,
        "comment": shown["comment_count"],
        "image": len(shown["images"]),
    }
    assert made == {"post": 0, "comment": 0, "image": 0} | {what: 10}
