"""A worker that has shown all hostile texts stays small."""

import re
from pathlib import Path

import requests

from tests.helpers.hostile_texts import STANDING
from tests.live.clients import scaled, sign_in
from tests.live.test_uploads import workers

MAX_MEMORY = 124  # MiB; the data of a language take 5
MAX_GROWTH = 8  # MiB, once each page has been shown a few times


def memory(pid):
    """Return the memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def test_a_worker_stays_small_with_hostile_texts(serve, pool, figure):
    server = serve(WEB_CONCURRENCY="1", POSTING_RESPONSE_CACHE="off")
    [worker] = workers(server, 1)
    ada = sign_in(server.url, "ada")
    paths = ["/", "/@ada", "/feed.atom", "/feed.json", "/search?q=engines", "/search?q=a*"]
    paths += ["/search?q=engines&show=comments", "/comments?q=engines", "/comments/feed.atom"]
    for text in STANDING:
        body = {"title": "On engines", "content": text}
        post = ada.post(f"{server.url}/posts", json=body, timeout=20).json()
        body = {"content": f"engines {text}"[:10_000]}
        ada.post(f"{server.url}/posts/{post['id']}/comments", json=body, timeout=20)
        paths += [f"/p/{post['id']}", f"/p/{post['id']}/edit"]

    def read(path):
        response = requests.get(f"{server.url}{path}", timeout=60)
        assert response.status_code == 200, response.text[:1000]

    before = memory(worker)
    list(pool.map(read, paths * 3))
    between = memory(worker)
    list(pool.map(read, paths * scaled(2, 16)))
    after = memory(worker)
    figure(
        f"{before:.0f} MiB before {len(paths) * 3:,} pages, {between:.0f} MiB after them, and "
        f"{after:.0f} MiB after {len(paths) * scaled(2, 16):,} more"
    )
    assert after < MAX_MEMORY
    assert after - between < MAX_GROWTH
