"""nginx with the shipped configuration in front of gunicorn with its own."""

import re
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.helpers import pictures
from tests.live.clients import sign_in
from tests.live.sites import ROOT, needs


@pytest.fixture
def site(start_site):
    return start_site(WEB_CONCURRENCY="2", POSTING_METRICS="on")


@pytest.fixture
def ada(site):
    return sign_in(site.url, "ada", site.client())


def problem(answer, status):
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["type"] == "about:blank"
    assert body["title"]
    assert body["detail"]
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "max-age" in answer.headers["Strict-Transport-Security"]
    return answer


def asked(site, path):
    """Return how often the service itself was asked for a route."""
    [gunicorn] = site.gunicorns
    return gunicorn.log.read_text().count(f"method=GET route={path} ")


def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), 10, source_address=(source, 0))


def exchange(connection, host):
    """Ask for the figures under a name; return what comes back, perhaps nothing."""
    connection.sendall(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return connection.recv(65536)


class TestAnswersOfItsOwn:
    """They are problems, as the service's are."""

    def test_a_body_that_is_too_large(self, site, ada):
        problem(ada.post(f"{site.url}/posts", data=b"x" * 7 * 2**20, timeout=20), 413)

    def test_headers_that_are_too_long(self, site):
        problem(site.get("/posts", headers={"X-Long": "x" * 9000}), 400)
        problem(site.get("/posts?x=" + "x" * 9000), 414)
        assert site.get("/posts?cursor=" + "x" * 7000).status_code == 422
        assert site.get("/posts", headers={f"X-{n}": "" for n in range(80)}).status_code == 200
        answer = site.get("/posts?limit=9", headers={f"X-{n}": "" for n in range(500)})
        assert (answer.status_code, answer.json()["status"]) == (431, 431)  # gunicorn's own

    @pytest.mark.parametrize(
        ("method", "headers", "status"),
        [
            ("TRACE", {}, 405),
            ("GET", {"If-Match": '"stale"'}, 412),
            ("GET", {"Transfer-Encoding": "gzip"}, 501),
        ],
    )
    def test_what_it_does_not_do(self, site, method, headers, status):
        with site.client() as client:
            answer = client.request(method, f"{site.url}/posts", headers=headers, timeout=20)
        problem(answer, status)

    def test_plain_http_where_tls_is_spoken(self, site):
        answer = requests.get(f"http://localhost:{site.nginx.https}/posts", timeout=20)
        problem(answer, 400)

    def test_what_is_none_of_the_service(self, site):
        problem(site.get("/nginx-problem"), 404)

    def test_too_many_guesses(self, site):
        guess = {"username": "nobody", "password": "a guess of a password"}
        with site.client() as client:
            answers = [client.post(f"{site.url}/signin", json=guess, timeout=20) for _ in range(60)]
        assert {answer.status_code for answer in answers} == {401, 429}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert problem(refused, 429).headers["Retry-After"] == "1"
        assert site.get("/posts").status_code == 200

    def test_a_service_that_is_away(self, site, ada):
        [gunicorn] = site.gunicorns
        gunicorn.listener.close()
        gunicorn.stop()
        answer = problem(ada.post(f"{site.url}/posts", json={}, timeout=20), 502)
        assert answer.headers["Retry-After"] == "2"
        gunicorn.process.wait = lambda *_: None

    def test_figures_are_for_this_machine_alone(self, site):
        assert "posting_requests_total" in site.get("/metrics").text
        context = ssl.create_default_context(cafile=site.nginx.certificate)
        with (
            connect(site.nginx.https, source="127.0.0.2") as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            assert b" 403 " in exchange(connection, "localhost")


class TestHttp2:
    """By it nginx accepts longer URLs than gunicorn does, and bodies without their length."""

    @pytest.fixture
    def ask(self, site, tmp_path):
        """Send a request by HTTP/2; return the answer as `requests` would."""
        needs("curl")

        def ask(path, *options):
            body, head = tmp_path / "answer", tmp_path / "head"
            certificate = ("--cacert", site.nginx.certificate)
            files = ("--output", body, "--dump-header", head)
            form = "%{http_version} %{http_code}"
            command = ["curl", "--http2", "--silent", *certificate, *files, "--write-out", form]
            done = subprocess.run(
                [*command, *options, site.url + path], capture_output=True, text=True, check=True
            )
            version, status = done.stdout.split()
            assert version == "2"
            answer = requests.Response()
            answer.status_code = int(status)
            answer._content = body.read_bytes()
            lines = head.read_text().splitlines()[1:]
            answer.headers.update(line.split(": ", 1) for line in lines if line)
            return answer

        return ask

    @pytest.mark.parametrize("options", [(), ("-H", "Content-Length:")], ids=["length", "none"])
    def test_a_body_that_is_too_large(self, ask, tmp_path, options):
        (tmp_path / "large").write_bytes(b"x" * 7 * 2**20)
        body = ("--data-binary", f"@{tmp_path / 'large'}")
        problem(ask("/posts", *body, "-H", "Content-Type: application/json", *options), 413)

    @pytest.mark.parametrize("path", ["/posts?x=", "/images/", "/signin?x=", "/metrics?x="])
    # They are sent as 8, 7 and 5 bits, and nginx takes 8 KiB of those.
    @pytest.mark.parametrize(("character", "longest"), [("Z", 8180), ("x", 9300), ("a", 13000)])
    def test_a_long_url(self, ask, path, character, longest):
        for length in (8001, 8160, 8170, 8180, longest):
            problem(ask(path + character * (length - len(path))), 414)
        answer = ask(path + character * (8000 - len(path)))
        assert answer.status_code in {200, 404, 405, 422}
        assert "html" not in answer.headers["Content-Type"]

    def test_it_answers_other_requests(self, ask):
        assert ask("/posts").json() == []


class TestLog:
    def test_the_access_log_has_the_id_of_each_request(self, site):
        given = site.get("/posts", headers={"X-Request-ID": "find-me"})
        made = [site.get(path) for path in ("/users/me", "/nowhere", "/posts?x=" + "x" * 9000)]
        with requests.get(f"http://localhost:{site.nginx.http}/x", allow_redirects=False) as plain:
            assert plain.status_code == 308
        [gunicorn] = site.gunicorns
        lines = (site.nginx.folder / "posting.access.log").read_text().splitlines()
        for answer in (given, *made):
            request_id = answer.headers["X-Request-ID"]
            [line] = [line for line in lines if line.endswith(f" {request_id}")]
            assert f" {answer.status_code} " in line
            assert (f"[{request_id}]" in gunicorn.log.read_text()) == (answer.status_code != 414)
        assert '"GET /x HTTP/1.1" 308 ' in "".join(lines)

    def test_debian_rotates_it(self):
        site = (ROOT / "deploy" / "nginx.conf").read_text()
        assert set(re.findall(r"access_log (\S+)", site)) == {"/var/log/nginx/posting.access.log"}


class TestNames:
    def test_plain_http_leads_to_https(self, site):
        plain = f"http://localhost:{site.nginx.http}/posts?limit=3"
        answer = requests.get(plain, timeout=20, allow_redirects=False)
        assert answer.status_code == 308
        assert answer.headers["Location"] == "https://localhost/posts?limit=3"

    def test_other_names_are_not_answered(self, site):
        with connect(site.nginx.http) as connection:
            assert exchange(connection, "evil.example") == b""
        context = ssl.create_default_context(cafile=site.nginx.certificate)
        with connect(site.nginx.https) as plain, pytest.raises(ssl.SSLError):
            context.wrap_socket(plain, server_hostname="evil.example")
        with (
            connect(site.nginx.https) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            assert exchange(connection, "evil.example") == b""

    def test_what_clients_say_of_themselves_is_overwritten(self, site, ada):
        spoofed = {
            "X-Forwarded-For": "203.0.113.7",
            "X-Forwarded-Host": "evil.example",
            "X-Forwarded-Proto": "http",
            "X-Forwarded-Prefix": "/evil",
            "X-Request-ID": "find-me",
        }
        body = {"title": "x", "content": "x"}
        answer = ada.post(f"{site.url}/posts", json=body, headers=spoofed, timeout=20)
        assert answer.headers["Location"].startswith(f"{site.url}/posts/")
        assert answer.headers["X-Request-ID"] == "find-me"
        ada.post(f"{site.url}/signout", headers=spoofed, timeout=20)
        log = site.gunicorns[0].log.read_text()
        assert "203.0.113.7" not in log
        assert "event=sign-out" in log
        assert "address=127.0.0.1" in log

    def test_a_browser_writes_from_here_and_from_nowhere_else(self, site, ada):
        body = {"title": "x", "content": "x"}
        for origin, status in ((site.url, 201), ("https://localhost", 403), ("null", 403)):
            headers = {"Origin": origin}
            answer = ada.post(f"{site.url}/posts", json=body, headers=headers, timeout=20)
            assert answer.status_code == status


class TestCache:
    def test_pages_are_kept_a_second_for_those_who_are_not_signed_in(self, site, ada):
        first = site.get("/posts")
        body = {"title": "New", "content": "x"}
        assert ada.post(f"{site.url}/posts", json=body, timeout=20).status_code == 201
        shown = ada.get(f"{site.url}/posts", timeout=20).json()
        assert [post["title"] for post in shown] == ["New"]
        before = asked(site, "/posts")
        ids = {site.get("/posts").headers["X-Request-ID"] for _ in range(20)}
        assert len(ids) == 20
        assert asked(site, "/posts") <= before + 2
        assert first.json() == []
        time.sleep(2.1)  # nginx counts whole seconds
        assert [post["title"] for post in site.get("/posts").json()] == ["New"]

    def test_what_is_deleted_is_gone_for_those_who_read_all_the_while(self, site, ada):
        body = {"title": "x", "content": "x"}
        url = ada.post(f"{site.url}/posts", json=body, timeout=20).headers["Location"]

        def statuses(seconds):
            with ThreadPoolExecutor(4) as pool, site.client() as client:
                end = time.monotonic() + seconds
                ask = lambda _: client.get(url, timeout=20).status_code  # noqa: E731
                while time.monotonic() < end:
                    yield from pool.map(ask, range(4))

        assert set(statuses(1)) == {200}
        assert ada.delete(url, timeout=20).status_code == 204
        list(statuses(2.1))
        assert set(statuses(1)) == {404}

    def test_nobody_waits_for_what_is_not_kept(self, site):
        with ThreadPoolExecutor(24) as pool:
            began = time.perf_counter()
            statuses = list(pool.map(lambda _: site.get("/users/me").status_code, range(24)))
        assert set(statuses) == {401}
        assert time.perf_counter() - began < 2

    def test_what_is_private_is_not_kept(self, site, ada):
        for _ in range(3):
            assert ada.get(f"{site.url}/users/me", timeout=20).json()["username"] == "ada"
            assert site.get("/users/me").status_code == 401
            site.get("/readyz")
        assert asked(site, "/users/me") == 6
        assert asked(site, "/readyz") >= 3

    def test_a_picture_is_kept(self, site, ada):
        body = {"title": "x", "content": "x"}
        post = ada.post(f"{site.url}/posts", json=body, timeout=20).json()
        files = {"file": pictures.png()}
        path = f"{site.url}/posts/{post['id']}/images"
        url = ada.post(path, files=files, timeout=20).json()["url"]
        answers = [client.get(url, timeout=20) for client in (ada, site.client(), ada)]
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        assert {answer.headers["Cache-Control"] for answer in answers} == {
            "public, max-age=31536000, immutable"
        }
        assert asked(site, "/images/{id}") == 1
        for query in ("?", "?copy=1", "?copy=2", "?&"):
            assert site.get(f"/images/{url[-21:]}{query}").content == answers[0].content
        assert asked(site, "/images/{id}") == 1
        kept = (site.nginx.folder / "posting-images").rglob("*")
        assert sum(path.is_file() for path in kept) == 1

    def test_a_picture_is_not_kept_under_a_query(self, site, ada):
        body = {"title": "x", "content": "x"}
        post = ada.post(f"{site.url}/posts", json=body, timeout=20).json()
        path = f"{site.url}/posts/{post['id']}/images"
        url = ada.post(path, files={"file": pictures.png()}, timeout=20).json()["url"]
        assert ada.get(f"{url}?copy=1", timeout=20).status_code == 422
        assert ada.get(url, timeout=20).status_code == 200

    def test_conditions_hold_with_compression_and_without(self, site, ada):
        body = {"title": "x", "content": "long " * 1000}
        url = ada.post(f"{site.url}/posts", json=body, timeout=20).headers["Location"]
        for encoding in ("gzip", "identity"):
            for client in (ada, site.client()):
                headers = {"Accept-Encoding": encoding}
                answer = client.get(url, headers=headers, timeout=20)
                assert answer.headers.get("Content-Encoding", "identity") == encoding
                headers |= {"If-None-Match": answer.headers["ETag"]}
                assert client.get(url, headers=headers, timeout=20).status_code == 304
            guard = {"If-Match": answer.headers["ETag"]}
            assert ada.patch(url, json={}, headers=guard, timeout=20).status_code == 200
        stale = {"If-Match": '"7"'}
        assert ada.patch(url, json={"title": "y"}, headers=stale, timeout=20).status_code == 412
