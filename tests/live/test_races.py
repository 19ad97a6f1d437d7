"""Clients that do the same thing at once, against a real server: nothing is lost, nobody fails."""

from collections import Counter
from threading import local

import pytest
import requests
from live.clients import PASSWORD, at_once, copy_of, sign_in, sized


def test_eight_sign_ups_for_one_name_make_one_user(url, pool):
    for number in range(sized(20, 200)):
        body = {"username": f"Racer-{number}", "password": PASSWORD}
        sign_up = lambda: requests.post(f"{url}/signup", json=body, timeout=20)  # noqa: B023, E731
        assert Counter(at_once(pool, [sign_up] * 8)) == {201: 1, 409: 7}


def test_no_guarded_edit_is_lost(url, pool):
    alice = sign_in(url, "alice")
    post = alice.post(f"{url}/posts", json={"title": "0", "content": "x"}, timeout=20).json()
    path = f"{url}/posts/{post['id']}"
    thread = local()

    def count_up(_):
        """Add one to the number in the title, reading again whenever somebody was faster."""
        if not hasattr(thread, "client"):
            thread.client = copy_of(alice)
        while True:
            read = thread.client.get(path, timeout=20)
            edit = thread.client.patch(
                path,
                json={"title": str(int(read.json()["title"]) + 1)},
                headers={"If-Match": read.headers["ETag"]},
                timeout=20,
            )
            if edit.status_code == 200:
                return
            assert edit.status_code == 412, edit.text

    edits = sized(200, 2000)
    list(pool.map(count_up, range(edits)))
    assert alice.get(path, timeout=20).json()["title"] == str(edits)


@pytest.mark.parametrize("content", ["keep", "delete"])
def test_an_account_goes_while_its_owner_posts(url, pool, content):
    alice = sign_in(url, "alice")
    clients = [copy_of(alice) for _ in range(8)]

    def write(client):
        return lambda: client.post(f"{url}/posts", json={"title": "x", "content": "x"}, timeout=20)

    def delete():
        path = f"{url}/users/{alice.user['id']}?content={content}"
        return alice.delete(path, timeout=20)

    for _ in range(3):
        assert set(at_once(pool, [write(client) for client in clients])) == {201}
    *posted, deleted = at_once(pool, [*map(write, clients[:7]), delete])
    assert deleted == 204
    assert set(posted) <= {201, 401}
    left = requests.get(f"{url}/posts?limit=100", timeout=20).json()
    assert {post["author"] for post in left} <= {None}
    assert len(left) == (24 + posted.count(201) if content == "keep" else 0)


def test_a_post_goes_while_it_is_edited(url, pool):
    alice = sign_in(url, "alice")
    clients = [copy_of(alice) for _ in range(8)]
    for _ in range(sized(10, 100)):
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
        statuses = at_once(pool, edits + deletions)
        assert sorted(statuses[6:]) == [204, 404]
        assert set(statuses[:6]) <= {200, 404}


def test_two_deletions_of_an_account_are_one(url, pool):
    for number in range(sized(5, 50)):
        alice = sign_in(url, f"alice-{number}")
        path = f"{url}/users/{alice.user['id']}"
        deletions = [
            lambda client=client: client.delete(path, timeout=20)  # noqa: B023
            for client in (copy_of(alice), copy_of(alice))
        ]
        assert sorted(at_once(pool, deletions)) == [204, 401]


def test_a_password_changes_while_other_sessions_are_used(url, pool):
    alice, elsewhere = sign_in(url, "alice"), sign_in(url, "alice")
    change = {"password": "another walk by the sea", "current_password": PASSWORD}
    path = f"{url}/users/{alice.user['id']}"
    uses = [
        lambda client=client: client.patch(path, json={"bio": "x"}, timeout=20)
        for client in [copy_of(elsewhere) for _ in range(7)]
    ]
    *used, changed = at_once(pool, [*uses, lambda: alice.patch(path, json=change, timeout=20)])
    assert changed == 200
    assert set(used) <= {200, 401}
    assert elsewhere.get(f"{url}/users/me", timeout=20).status_code == 401
    assert alice.get(f"{url}/users/me", timeout=20).status_code == 200
