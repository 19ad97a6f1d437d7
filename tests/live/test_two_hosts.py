"""Two hosts: gunicorns that share a Postgres database, behind one nginx."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from urllib.parse import urlsplit

import pytest
import requests

from tests.conftest import POSTGRES
from tests.live.clients import PASSWORD, sign_in
from tests.live.load import Load, wait_until
from tests.live.sites import ROOT

pytestmark = [
    pytest.mark.skipif(not POSTGRES, reason="two hosts need Postgres"),
    pytest.mark.usefixtures("stays_consistent"),
]
LIMITS = {"POSTING_LIMIT_POSTS": "10/hour"}
NEXT_VERSION = '''
"""A migration of a later version."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "next", "{newest}"


def upgrade() -> None:
    op.add_column("users", sa.Column("pronouns", sa.String(32)))
    op.create_table("likes", sa.Column("id", sa.String(21), primary_key=True))
'''


@pytest.fixture
def site(start_site):
    return start_site(hosts=2, WEB_CONCURRENCY="1", POSTING_RATE_LIMITS="on", **LIMITS)


@pytest.fixture
def send(site):
    """Send a request to one of the hosts directly, with a session or without."""

    def send(host, method, path, token="", **body):
        _, port = site.gunicorns[host].listener.getsockname()
        name = f"__Host-session-{urlsplit(site.url).port}"
        headers = {"Cookie": f"{name}={token}"} if token else {}
        url = f"http://127.0.0.1:{port}{path}"
        return requests.request(method, url, headers=headers, timeout=20, **body)

    return send


def test_sessions_are_shared(send):
    ada = {"username": "ada", "password": PASSWORD}
    assert send(0, "POST", "/signup", json=ada).status_code == 201
    [token] = send(1, "POST", "/signin", json=ada).cookies.values()
    assert [send(host, "GET", "/users/me", token).status_code for host in (0, 1)] == [200, 200]
    assert send(0, "POST", "/signout", token).status_code == 204
    assert [send(host, "GET", "/users/me", token).status_code for host in (0, 1)] == [401, 401]


def test_limits_and_cursors_are_shared(site, send):
    [token] = sign_in(site.url, "ada", site.client()).cookies.values()
    body = {"title": "x", "content": "x"}
    statuses = [send(n % 2, "POST", "/posts", token, json=body).status_code for n in range(24)]
    assert Counter(statuses) == {201: 10, 429: 14}
    link = send(0, "GET", "/posts?limit=4").links["next"]["url"]
    second = send(1, "GET", link.removeprefix(site.url)).json()
    assert len(second) == 4


def test_no_read_fails_when_a_host_dies(start_site, check_load):
    site = start_site(hosts=2, WEB_CONCURRENCY="2")
    ada = sign_in(site.url, "ada", site.client())
    dying = site.gunicorns[1]
    with Load(site.url, ada, writers=4, readers=4) as load:
        load.wait_for_writes(50)
        dying.kill()
        dying.listener.close()
        load.wait_for_writes(50)
    check_load(load, "one of two hosts killed under load")
    assert set(load.failures) <= {"POST 502", "POST ChunkedEncodingError"}


def test_an_upgrade_fails_no_request(start_site, tmp_path, check_load):
    """The old version serves during the migration; then each host is restarted with the new."""
    site = start_site(hosts=2, WEB_CONCURRENCY="2")
    ada = sign_in(site.url, "ada", site.client())
    code = next_version(tmp_path / "next")
    with Load(site.url, ada, writers=4, readers=4) as load:
        load.wait_for_writes(50)
        environment = os.environ | site.gunicorns[0].environment
        upgrade = [sys.executable, "-m", "flask", "--app", "wsgi", "db", "upgrade"]
        subprocess.run(upgrade, cwd=code, env=environment, check=True, capture_output=True)
        load.wait_for_writes(50)
        for gunicorn in site.gunicorns:
            gunicorn.stop()
            gunicorn.start(code)
            wait_until(gunicorn.workers)
        load.wait_for_writes(50)
        assert site.get("/readyz").status_code == 200
    check_load(load, "migrated and restarted under load")
    assert load.failures == {}


def next_version(folder):
    """Return the folder of a copy of the code with one more migration."""
    shutil.copytree(ROOT / "posting", folder / "posting")
    shutil.copytree(ROOT / "deploy", folder / "deploy")
    shutil.copy(ROOT / "wsgi.py", folder)
    versions = folder / "posting" / "db" / "migrations" / "versions"
    newest = max(path.stem[:4] for path in versions.glob("0*.py"))
    (versions / "next.py").write_text(NEXT_VERSION.format(newest=newest))
    return folder
