"""The running version serves until its restart, while an upgrade replaces its files."""

import re
from io import BytesIO
from pathlib import Path

import pytest
import requests
from PIL import Image

from posting import create_app
from posting.web.system import DIGEST, FOLDER
from tests.live.conftest import free_port
from tests.live.test_server import SERVE, Checkout

ADA = {"username": "ada", "password": "a long walk by the sea"}
COMPARED = ("Content-Type", "Cache-Control", "Last-Modified", "Content-Security-Policy")
# These list what differs from one start to the next.
DIFFERENT = {
    *("/changes", "/metrics", "/sessions", "/tokens"),
    *("/users/me/export", "/backup", "/site/state"),
}
# An audit hook cannot be removed, so it asks whether this process is a worker.
AUDIT = """
import os, sys

def note(event, arguments):
    if is_worker and event == "open" and str(arguments[0]).startswith({code!r}):
        with open({notes!r}, "a") as notes:
            notes.write(f"{{arguments[0]}}\\n")

def begin():
    global is_worker
    is_worker = True

is_worker = False
sys.addaudithook(note)
os.register_at_fork(after_in_child=begin)
"""


@pytest.fixture
def checkout(tmp_path, fresh_url):
    checkout = Checkout(tmp_path / "checkout")
    instance = tmp_path / "instance"
    checkout.settings(
        POSTING_DATABASE_URL=fresh_url,
        POSTING_INSTANCE_PATH=instance,
        POSTING_METRICS="on",
        POSTING_RESPONSE_CACHE="off",
        PORT=free_port(),
        WEB_CONCURRENCY="1",
    )
    instance.mkdir()
    (instance / "about.md").write_text("Be kind.")
    (instance / "custom.css").write_text("a { color: teal }")
    return checkout


@pytest.fixture
def ada():
    with requests.Session() as ada:
        yield ada


def add_content(ada, url):
    """Add something of each kind, and return the values of parts of paths."""

    def create(path, **body):
        response = ada.post(url + path, json=body, timeout=60)
        assert response.status_code == 201, response.text
        return response.json()["token" if path == "/tokens" else "id"]

    post = create("/posts", title="On engines", content="*weave* https://example.org")
    comment = create(f"/posts/{post}/comments", content="`code` by @ada")
    assert add_image(ada, url, post).status_code == 201
    return {
        "<token>": create("/tokens", name="reader", scope="feed"),
        "<member:username>": "ada",
        "<page_id:id>": post,
        '/users/<nanoid("me"):id>': "/users/me",
        "/comments/<nanoid:id>": f"/comments/{comment}",
        "/posts/<nanoid:id>": f"/posts/{post}",
    }


def add_image(ada, url, post):
    picture = BytesIO()
    Image.new("RGB", (50, 50), "teal").save(picture, "JPEG")
    file = {"file": picture.getvalue()}
    return ada.post(f"{url}/posts/{post}/images", files=file, timeout=60)


def list_paths(values):
    """Return the paths of all endpoints, if `values` has their parts, and of all static files."""
    app = create_app({"DATABASE_URL": "sqlite://", "TESTING": True})
    paths = {rule.rule for rule in app.url_map.iter_rules() if "GET" in rule.methods}
    for part, value in values.items():
        paths = {path.replace(part, value) for path in paths}
    paths = {path for path in paths if "<" not in path} - DIFFERENT
    paths |= {f"/static/{DIGEST}-en/{file.name}" for file in FOLDER.iterdir()}
    docs = app.jinja_env.get_template("docs.html").filename
    paths |= {f"/docs/{name}" for name in re.findall("filename='(.*?)'", Path(docs).read_text())}
    others = {"/search?q=engines", "/account-deleted?content=keep", "/nowhere", "/static/x/main.js"}
    return sorted(paths | others)


def read_all(ada, url, paths):
    """Return what the server sends for each path, without the ids of requests."""
    responses = {}
    for path in paths:
        response = ada.get(url + path, headers={"Accept": "text/html, */*"}, timeout=60)
        headers = {name: response.headers.get(name) for name in COMPARED}
        body = response.text.replace(response.headers["X-Request-ID"], "")
        responses[path] = response.status_code, headers, body
    return responses


def test_pages_files_and_uploads_are_those_of_the_running_version(checkout, ada, tmp_path):
    with checkout.serving(*SERVE) as url:
        assert ada.post(f"{url}/signup", json=ADA, timeout=60).status_code == 201
        assert checkout.run(".venv/bin/flask", "users", "promote", "ada", "--owner")[0] == 0
        assert ada.post(f"{url}/signin", json=ADA, timeout=60).status_code == 200
        values = add_content(ada, url)
        paths = list_paths(values)
        before = read_all(ada, url, paths)
    assert {200, 404} <= {status for status, *_ in before.values()} <= {200, 404, 422}

    opened = tmp_path / "opened"
    code = (f"{checkout.folder}/", str(Path(requests.__file__).parent.parent))
    with (checkout.folder / "wsgi.py").open("a") as wsgi:
        wsgi.write(AUDIT.format(code=code, notes=str(opened)))
    with checkout.serving(*SERVE) as url:
        for name in ("posting", "deploy", "wsgi.py"):
            (checkout.folder / name).rename(tmp_path / f"former-{name}")
        after = read_all(ada, url, paths)
        assert {path: after[path] for path in paths if after[path] != before[path]} == {}
        again = {"current_password": ADA["password"]}
        assert ada.post(f"{url}/session-confirmations", json=again, timeout=60).ok
        for path in ("/metrics", "/users/me/export", "/backup", "/site/state"):
            assert ada.get(url + path, timeout=60).status_code == 200
        assert add_image(ada, url, values["<page_id:id>"]).status_code == 201
        wrong = ADA | {"password": "a long walk home"}
        assert ada.post(f"{url}/signin", json=wrong, timeout=60).status_code == 401
    # An upgrade of packages replaces their files as well, so the worker had read them all before.
    assert not opened.exists(), opened.read_text()
