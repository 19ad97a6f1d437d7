"""Webhooks with real workers, which share the work."""

import json
from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import sqlalchemy as sa

from tests.live.clients import PASSWORD, clone, run_concurrently, sign_in
from tests.live.load import wait_until


@pytest.fixture
def receiver():
    """A program that keeps the events that it gets, and its URL."""
    events = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield events, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_four_workers_send_each_event_once(serve, database, pool, receiver):
    url = serve(WEB_CONCURRENCY="4", POSTING_WEBHOOKS="all").url
    events, address = receiver
    client = sign_in(url, "morgan")
    database.execute(sa.text("UPDATE users SET role = 'owner' WHERE username = 'morgan'"))
    body = {"url": address, "events": ["post.created"], "current_password": PASSWORD}
    assert client.post(f"{url}/webhooks", json=body, timeout=20).status_code == 201

    authors = [clone(client) for _ in range(8)]
    for number in range(5):
        body = {"title": f"Number {number}", "content": "x"}
        write = [partial(author.post, f"{url}/posts", json=body, timeout=20) for author in authors]
        assert set(run_concurrently(pool, write)) == {201}
    wait_until(lambda: len(events) >= 41)
    posts = Counter(event["data"]["id"] for event in events if event["type"] == "post.created")
    assert len(posts) == 40
    assert set(posts.values()) == {1}
