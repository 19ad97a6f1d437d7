"""Concurrent requests to a real server: no update is lost and no request fails."""

from collections import Counter
from functools import partial
from threading import local

import pytest
import requests

from tests.helpers import pictures
from tests.live.clients import PASSWORD, clone, run_concurrently, scaled, sign_in


def test_eight_sign_ups_with_one_username_create_one_user(url, pool, status_counts):
    for number in range(scaled(20, 200)):
        body = {"username": f"Racer-{number}", "password": PASSWORD}
        sign_up = lambda: requests.post(f"{url}/signup", json=body, timeout=20)  # noqa: B023, E731
        statuses = Counter(run_concurrently(pool, [sign_up] * 8))
        assert statuses == {201: 1, 409: 7}
        status_counts += statuses


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
        """Add one to the number in the field; after a 412, read and try again."""
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
