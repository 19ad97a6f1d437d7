"""Changes while sixteen clients write and one reads all the time: none is missing or repeated."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic

import pytest

from tests.live.clients import clone, new_client, scaled, sign_in

WRITERS = 16


class Reader:
    """A client that follows the changes, and asks again at once."""

    def __init__(self, url):
        self.url, self.client = f"{url}/changes", new_client()
        self.found = []
        self.cursor = self.read({})["cursor"]

    def read(self, query):
        response = self.client.get(self.url, params=query, timeout=20)
        assert response.status_code == 200, response.text
        return response.json()

    def follow(self):
        body = self.read({"after": self.cursor, "limit": 5})
        self.found += [(each["kind"], each["id"], each["change"]) for each in body["changes"]]
        self.cursor = body["cursor"]

    def follow_until(self, has_ended):
        while not has_ended.is_set():
            self.follow()

    def follow_to(self, count):
        """Follow until there are so many changes. On Postgres, other transactions delay them."""
        deadline = monotonic() + 60
        while len(self.found) < count and monotonic() < deadline:
            self.follow()
        self.follow()


class Writer:
    """A client that writes, edits and deletes, and sends requests that fail as well."""

    def __init__(self, url, client, shared_post, rounds):
        self.url, self.client, self.shared_post, self.rounds = url, client, shared_post, rounds
        self.written, self.written_once = [], set()

    def send(self, method, path, status, body=None, **headers):
        response = self.client.request(
            method, f"{self.url}{path}", json=body, headers=headers, timeout=20
        )
        assert response.status_code in status, response.text
        return response

    def write(self):
        for number in range(self.rounds):
            post = self.create("post", "/posts", {"title": "x", "content": "x"})
            self.create_once(number)
            path = f"/posts/{self.shared_post}/comments"
            comment = self.create("comment", path, {"content": str(number)})
            self.send("POST", path, {422}, {"content": "x", "parent_id": "a" * 21})
            self.send("PATCH", f"/posts/{post}", {412}, {"content": "y"}, **{"If-Match": '"7"'})
            self.change("PATCH", "post", post, "edited", {"content": "z"})
            self.change("DELETE", "comment", comment, "deleted")
            if number % 2:
                self.change("DELETE", "post", post, "deleted")

    def create_once(self, number):
        """Create a post, as all writers do. Those that come second fail after their INSERT."""
        key = {"Idempotency-Key": f"round-{number}"}
        response = self.send("POST", "/posts", {201, 409}, {"title": "x", "content": "y"}, **key)
        if response.status_code == 201:
            self.written_once.add(("post", response.json()["id"], "created"))

    def create(self, kind, path, body):
        id = self.send("POST", path, {201}, body).json()["id"]
        self.written.append((kind, id, "created"))
        return id

    def change(self, method, kind, id, change, body=None):
        self.send(method, f"/{kind}s/{id}", {200, 204}, body)
        self.written.append((kind, id, change))


@pytest.mark.usefixtures("stays_consistent")
def test_a_reader_that_never_stops_sees_each_change_once(serve, figure):
    url = serve(WEB_CONCURRENCY="2").url
    ada = sign_in(url, "ada")
    body = {"title": "x", "content": "x"}
    post = ada.post(f"{url}/posts", json=body, timeout=20).json()["id"]
    reader, has_ended = Reader(url), Event()
    writers = [Writer(url, clone(ada), post, scaled(6, 60)) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        following = pool.submit(reader.follow_until, has_ended)
        try:
            for writing in [pool.submit(writer.write) for writer in writers]:
                writing.result()
        finally:
            has_ended.set()
        following.result()
    seen = len(reader.found)
    written = Counter(change for writer in writers for change in writer.written)
    written += Counter(set().union(*(writer.written_once for writer in writers)))
    reader.follow_to(written.total())
    # The first cursor may be before the first post, which is then listed too.
    found = Counter(change for change in reader.found if change[1] != post)
    assert found == written
    assert set(written.values()) == {1}
    for writer in writers:  # what happened one after the other is listed in this order
        own = set(writer.written)
        assert [change for change in reader.found if change in own] == writer.written
    figure(f"{written.total():,} changes by {WRITERS} writers, {seen:,} of them read meanwhile")
