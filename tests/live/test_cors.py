"""Pages of other origins, in a real browser and through nginx's cache."""

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import requests

from tests.live.clients import PASSWORD, sign_in
from tests.live.conftest import free_port

SIGN_IN_AND_WRITE = """async ([url, username, password]) => {
  const send = (method, path, body, headers = {}) => fetch(url + path, {
    method,
    credentials: "include",
    headers: {"Content-Type": "application/json", ...headers},
    body: JSON.stringify(body),
  });
  await send("POST", "/signup", {username, password});
  await send("POST", "/signin", {username, password});
  const post = {title: "On engines", content: "They weave algebra."};
  const created = await send("POST", "/posts", post, {"Idempotency-Key": "a"});
  const replayed = await send("POST", "/posts", post, {"Idempotency-Key": "a"});
  const {id} = await created.json();
  const stale = await send("PATCH", `/posts/${id}`, {title: "On looms"}, {"If-Match": '"9"'});
  return [
    created.status,
    created.headers.get("ETag") !== null,
    created.headers.get("Location").endsWith(id),
    replayed.headers.get("Idempotent-Replayed"),
    (await stale.json()).code,
  ];
}"""


READ_AND_WRITE = """async ([url, token]) => {
  const send = (path, options) =>
    fetch(url + path, options).then((response) => response.status, () => "blocked");
  const body = JSON.stringify({title: "On engines", content: "They weave algebra."});
  const post = {method: "POST", headers: {"Content-Type": "application/json"}, body};
  const headers = {Authorization: `Bearer ${token}`};
  return [
    await send("/posts"),
    await send("/posts", {credentials: "include"}),
    await send("/users/me", {headers}),
    await send("/posts", {...post, headers: {...post.headers, ...headers}}),
    await send("/posts", post),
    await send("/posts", {...post, credentials: "include"}),
  ];
}"""


class EmptyPage(BaseHTTPRequestHandler):
    """Serves an empty page at any path."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def other_origin(port):
    """Serve pages at another port, which is another origin of the same site."""
    server = ThreadingHTTPServer(("127.0.0.1", port), EmptyPage)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_page_of_a_trusted_origin_reads_and_writes(serve, people):
    port = free_port()
    url = serve(POSTING_TRUSTED_ORIGINS=f"http://127.0.0.1:{port}").url
    with other_origin(port) as origin:
        page = people.open_page()
        page.goto(origin)
        found = page.evaluate(SIGN_IN_AND_WRITE, [url, "ada", PASSWORD])
    assert found == [201, True, True, "true", "stale_version"]


@pytest.mark.parametrize(
    ("reading", "expected"),
    [("everyone", [200, "blocked", 200, 201, 403, "blocked"]), ("members", ["blocked"] * 6)],
)
def test_a_page_of_another_origin_reads_what_is_public(serve, people, reading, expected):
    origins = "https://app.example.org"
    url = serve(POSTING_TRUSTED_ORIGINS=origins, POSTING_READING=reading).url
    ada = sign_in(url, "ada")
    created = ada.post(f"{url}/tokens", json={"name": "x", "scope": "write"}, timeout=20)
    page = people.open_page()
    page.goto(f"{url}/signin")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/")
    with other_origin(free_port()) as origin:
        page.goto(origin)
        found = page.evaluate(READ_AND_WRITE, [url, created.json()["token"]])
    assert found == expected
    people.unexpected = [text for text in people.unexpected if "by CORS policy" not in text]


@pytest.mark.parametrize("path", ["/posts", "/openapi.json"])
def test_nginx_gives_no_origin_the_headers_of_another(start_site, path):
    site = start_site(POSTING_TRUSTED_ORIGINS="https://a.example https://b.example")
    for _ in range(3):
        for origin in ("https://a.example", None, "https://b.example", "https://evil.example"):
            headers = {"Origin": origin} if origin else {}
            with site.client() as client:
                response = client.get(f"{site.url}{path}", headers=headers, timeout=20)
            expected = origin if origin in {"https://a.example", "https://b.example"} else "*"
            assert response.status_code == requests.codes.ok
            assert response.headers.get("Access-Control-Allow-Origin") == expected
