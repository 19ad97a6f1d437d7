"""A backup that an owner downloads while others write: little memory, and nothing that is left."""

import gzip
import os
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tests.live.clients import PASSWORD, clone, scaled, sign_in
from tests.live.conftest import CONFIG, ROOT
from tests.live.test_archive import add_large_images, flask
from tests.live.test_uploads import MIB, peak_memory, workers

IMAGES = scaled(20, 400)  # of 5 MiB
MAX_MEMORY = 120 * MIB  # of the worker


@pytest.fixture
def folder(tmp_path):
    """The folder of temporary files of the server."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def server(serve, folder):
    return serve(WEB_CONCURRENCY="1", GUNICORN_CMD_ARGS="--threads 4", TMPDIR=str(folder))


@pytest.fixture
def owner(server, fresh_url):
    owner = sign_in(server.url, "keeper")
    flask(fresh_url, "users", "promote", "keeper", "--owner")
    return owner


def begin_download(server, owner):
    """Give the password again, and return the response with a backup when no other is sent."""
    body = {"current_password": PASSWORD}
    response = owner.post(f"{server.url}/session-confirmations", json=body, timeout=20)
    assert response.status_code == 204
    while True:
        response = owner.get(f"{server.url}/backup", stream=True, timeout=60)
        if response.status_code == 200:
            return response
        assert response.json()["code"] == "backup_busy"
        time.sleep(0.1)


@pytest.fixture
def post(server, owner):
    body = {"title": "On engines", "content": "They weave algebra."}
    return owner.post(f"{server.url}/posts", json=body, timeout=20).json()["id"]


def write_until(ended, client, url):
    """Comment every 20 milliseconds until an event, and return the longest request in seconds."""
    longest = 0.0
    while not ended.is_set():
        started = time.perf_counter()
        response = client.post(url, json={"content": "Who backs this up?"}, timeout=30)
        assert response.status_code == 201, response.text
        longest = max(longest, time.perf_counter() - started)
        time.sleep(0.02)
    return longest


def test_it_takes_little_memory_while_others_write(server, owner, post, fresh_url, figure):
    add_large_images(fresh_url, IMAGES)
    [worker] = workers(server, 1)
    before, ended = peak_memory(worker), Event()
    with ThreadPoolExecutor(1) as pool:
        url = f"{server.url}/posts/{post}/comments"
        writing = pool.submit(write_until, ended, clone(owner), url)
        started = time.perf_counter()
        try:
            with begin_download(server, owner) as response:
                size = sum(map(len, response.raw.stream(MIB)))
        finally:
            ended.set()
        seconds, longest = time.perf_counter() - started, writing.result()
    figure(
        f"backup of {IMAGES} images of 5 MiB: {size / MIB:,.0f} MiB in {seconds:.1f} s, "
        f"the worker grew from {before / MIB:.0f} to {peak_memory(worker) / MIB:.0f} MiB, "
        f"the longest write took {longest:.2f} s"
    )
    assert peak_memory(worker) < MAX_MEMORY


def test_a_client_that_goes_away_leaves_nothing(server, owner, post, fresh_url, folder):
    add_large_images(fresh_url, 10)
    [worker] = workers(server, 1)
    for _ in range(3):  # each one ends the former one
        with begin_download(server, owner) as response:
            next(response.raw.stream(MIB))
    files = [os.readlink(f"/proc/{worker}/fd/{name}") for name in os.listdir(f"/proc/{worker}/fd")]
    assert not [file for file in files if str(folder) in file]
    assert [*folder.iterdir()] == []


def test_a_client_that_does_not_read_is_given_up(serve, tmp_path, fresh_url):
    shipped = (ROOT / CONFIG).read_text()
    assert shipped.count("SEND_SECONDS = 60\n") == 1
    config = tmp_path / "gunicorn.conf.py"
    config.write_text(shipped.replace("SEND_SECONDS = 60\n", "SEND_SECONDS = 1\n"))
    server = serve(WEB_CONCURRENCY="1", config=config)
    owner = sign_in(server.url, "keeper")
    flask(fresh_url, "users", "promote", "keeper", "--owner")
    body = {"title": "On engines", "content": "They weave algebra."}
    assert owner.post(f"{server.url}/posts", json=body, timeout=20).status_code == 201
    add_large_images(fresh_url, 10)
    idle = begin_download(server, owner)
    with begin_download(server, clone(owner)) as response:  # waits for the end of the first one
        next(response.raw.stream(MIB))
    idle.close()


def test_a_head_through_nginx_is_no_download(start_site):
    site = start_site(WEB_CONCURRENCY="1")
    owner = sign_in(site.url, "keeper", site.client())
    site.flask("users", "promote", "keeper", "--owner")
    body = {"current_password": PASSWORD}
    assert owner.post(f"{site.url}/session-confirmations", json=body, timeout=20).ok
    assert owner.head(f"{site.url}/backup", timeout=20).status_code == 200
    response = owner.get(f"{site.url}/backup", timeout=20)
    assert response.status_code == 200
    assert gzip.decompress(response.content).startswith(b'{"format":"posting archive"')
    assert response.headers["Cache-Control"] == "private, no-store"
