"""nginx in front of gunicorn, both with the shipped configuration."""

import re
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import requests

from posting.web.errors import problem_codes
from tests.conftest import new_database
from tests.helpers import pictures
from tests.live.clients import patiently, sign_in
from tests.live.conftest import running_sites
from tests.live.load import wait_until
from tests.live.sites import ROOT, require_programs


@pytest.fixture
def site(start_site):
    return start_site(WEB_CONCURRENCY="2", POSTING_METRICS="on")


@pytest.fixture(scope="session")
def shared_site(template_url, tmp_path_factory):
    """A site for the tests that write nothing. No post is ever on it."""
    folder = tmp_path_factory.mktemp("site")
    with new_database(folder, template_url) as url, running_sites(url, folder) as start:
        few = {"GUNICORN_CMD_ARGS": "--threads 4"}  # for Postgres, as in the shared server
        yield start(WEB_CONCURRENCY="2", POSTING_METRICS="on", **few)


@pytest.fixture
def ada(site):
    return sign_in(site.url, "ada", site.client())


def assert_problem(response, status):
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["type"] == "about:blank"
    assert body["title"]
    assert body["code"] in problem_codes()
    assert body["detail"]
    assert body["request_id"] == response.headers["X-Request-ID"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "max-age" in response.headers["Strict-Transport-Security"]
    return response


def count_requests(site, path):
    """Return the number of requests for a route that reached the service."""
    [gunicorn] = site.gunicorns
    return gunicorn.log.read_text().count(f"method=GET route={path} ")


def get_as_it_is(site, path):
    """Request a path whose encoded characters `requests` would decode."""
    with site.client() as client:
        request = requests.Request("GET", site.url).prepare()
        request.url = site.url + path
        return client.send(request, timeout=20, verify=client.verify)


def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), 10, source_address=(source, 0))


def exchange(connection, host):
    """Request /metrics for a host name; return the response, or nothing."""
    connection.sendall(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return connection.recv(65536)


class TestErrors:
    """nginx's own errors are problem details."""

    def test_a_body_that_is_too_large(self, site, ada):
        assert_problem(ada.post(f"{site.url}/posts", data=b"x" * 12 * 2**20, timeout=20), 413)

    def test_a_url_or_headers_that_are_too_long(self, shared_site):
        assert_problem(shared_site.get("/posts", headers={"X-Long": "x" * 9000}), 400)
        too_long = shared_site.get("/posts?x=" + "x" * 9000)
        assert_problem(too_long, 414)
        assert too_long.headers["Access-Control-Allow-Origin"] == "*"
        assert shared_site.get("/posts?cursor=" + "x" * 7000).status_code == 422
        assert (
            shared_site.get("/posts", headers={f"X-{n}": "" for n in range(80)}).status_code == 200
        )
        response = shared_site.get("/posts?limit=9", headers={f"X-{n}": "" for n in range(500)})
        assert (response.status_code, response.json()["status"]) == (431, 431)  # from gunicorn

    def test_a_precondition_on_an_expired_page_crashes_no_worker(self, shared_site):
        assert shared_site.get("/posts?limit=6").status_code == 200
        time.sleep(2.1)  # nginx measures the age in whole seconds
        stale = shared_site.get("/posts?limit=6", headers={"If-Match": '"stale"'})
        assert_problem(stale, 412)
        time.sleep(0.5)  # until nginx has written about a worker that has crashed
        assert "exited on signal" not in (shared_site.nginx.folder / "error.log").read_text()

    @pytest.mark.parametrize(
        ("method", "headers", "status"),
        [
            ("TRACE", {}, 405),
            ("GET", {"If-Match": '"stale"'}, 412),
            ("GET", {"Transfer-Encoding": "gzip"}, 501),
        ],
    )
    def test_unsupported_requests(self, shared_site, method, headers, status):
        with shared_site.client() as client:
            response = client.request(
                method, f"{shared_site.url}/posts", headers=headers, timeout=20
            )
        assert_problem(response, status)

    def test_plain_http_on_the_https_port(self, shared_site):
        response = requests.get(f"http://localhost:{shared_site.nginx.https}/posts", timeout=20)
        assert_problem(response, 400)

    def test_the_internal_location_is_not_public(self, shared_site):
        assert_problem(shared_site.get("/nginx-problem"), 404)

    @pytest.mark.parametrize(
        ("path", "field", "status"),
        [("/signin", "username", 401), ("/password-resets", "code", 422)],
    )
    def test_too_many_guesses(self, site, path, field, status):
        guess = {field: "unknown", "password": "a guessed password"}
        with site.client() as client, ThreadPoolExecutor(8) as pool:
            send = patiently(partial(client.post, site.url + path, json=guess, timeout=20))
            responses = []
            while not (refused := [each for each in responses if each.status_code == 429]):
                responses += pool.map(lambda _: send(), range(20))
        assert {response.status_code for response in responses} == {status, 429}
        assert assert_problem(refused[0], 429).headers["Retry-After"] == "1"
        assert site.get("/posts").status_code == 200
        assert site.get("/signin").status_code == 200  # the page is not limited

    def test_too_many_writes_that_hash(self, site, ada):
        """Reads of the same path are not limited."""
        me = site.url + "/users/me"
        for send in (
            partial(ada.patch, me, json={}),
            partial(ada.post, site.url + "/recovery-codes", json={}),
        ):
            while (response := send(timeout=20)).status_code in {200, 422}:
                pass
            assert assert_problem(response, 429).headers["Retry-After"] == "1"
        assert {ada.get(me, timeout=20).status_code for _ in range(40)} == {200}

    def test_the_service_is_down(self, site, ada):
        [gunicorn] = site.gunicorns
        gunicorn.listener.close()
        gunicorn.stop()
        response = assert_problem(ada.post(f"{site.url}/posts", json={}, timeout=20), 502)
        assert response.headers["Retry-After"] == "2"
        gunicorn.process.wait = lambda *_: None

    def test_metrics_are_only_for_localhost(self, shared_site):
        assert "posting_requests_total" in shared_site.get("/metrics").text
        context = ssl.create_default_context(cafile=shared_site.nginx.certificate)
        with (
            connect(shared_site.nginx.https, source="127.0.0.2") as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            assert b" 403 " in exchange(connection, "localhost")


class TestHttp2:
    """Over HTTP/2, nginx accepts longer URLs than gunicorn, and bodies without a length."""

    @pytest.fixture
    def send(self, shared_site, tmp_path):
        """Return a function that sends a request over HTTP/2 and returns a `requests.Response`."""
        require_programs("curl")

        def send(path, *options):
            body, head = tmp_path / "response", tmp_path / "head"
            certificate = ("--cacert", shared_site.nginx.certificate)
            files = ("--output", body, "--dump-header", head)
            form = "%{http_version} %{http_code}"
            command = ["curl", "--http2", "--silent", *certificate, *files, "--write-out", form]
            done = subprocess.run(
                [*command, *options, shared_site.url + path],
                capture_output=True,
                text=True,
                check=True,
            )
            version, status = done.stdout.split()
            assert version == "2"
            response = requests.Response()
            response.status_code = int(status)
            response._content = body.read_bytes()
            lines = head.read_text().splitlines()[1:]
            response.headers.update(line.split(": ", 1) for line in lines if line)
            return response

        return send

    @pytest.mark.parametrize("options", [(), ("-H", "Content-Length:")], ids=["length", "none"])
    def test_a_body_that_is_too_large(self, send, tmp_path, options):
        (tmp_path / "large").write_bytes(b"x" * 12 * 2**20)
        body = ("--data-binary", f"@{tmp_path / 'large'}")
        assert_problem(send("/posts", *body, "-H", "Content-Type: application/json", *options), 413)

    @pytest.mark.parametrize("path", ["/posts?x=", "/images/", "/signin?x=", "/metrics?x="])
    # HTTP/2 encodes them in 8, 7 and 5 bits, and nginx accepts 8 KiB of the encoded text.
    @pytest.mark.parametrize(("character", "longest"), [("Z", 8180), ("x", 9300), ("a", 13000)])
    def test_a_long_url(self, send, path, character, longest):
        for length in (8001, 8160, 8170, 8180, longest):
            assert_problem(send(path + character * (length - len(path))), 414)
        response = send(path + character * (8000 - len(path)))
        assert response.status_code in {200, 404, 405, 422}
        # The page is the service's own; an HTML page of nginx would have no such policy.
        is_page = response.headers["Content-Type"].startswith("text/html")
        assert is_page == ("script-src" in response.headers.get("Content-Security-Policy", ""))

    def test_an_ordinary_request(self, send):
        assert send("/posts").json() == []


class TestLog:
    def test_the_access_log_has_the_id_of_each_request(self, shared_site):
        with_id = shared_site.get("/posts?limit=7", headers={"X-Request-ID": "find-me"})
        without_id = [
            shared_site.get(path) for path in ("/users/me", "/nowhere", "/posts?x=" + "x" * 9000)
        ]
        with requests.get(
            f"http://localhost:{shared_site.nginx.http}/x", allow_redirects=False
        ) as plain:
            assert plain.status_code == 308
        [gunicorn] = shared_site.gunicorns
        log = shared_site.nginx.folder / "posting.access.log"
        # nginx writes the line of a request after its response.
        wait_until(lambda: '"GET /x HTTP/1.1" 308 ' in log.read_text())
        for response in (with_id, *without_id):
            request_id = response.headers["X-Request-ID"]
            wait_until(lambda end=f" {request_id}\n": end in log.read_text())
            [line] = [line for line in log.read_text().splitlines() if request_id in line]
            assert f" {response.status_code} " in line
            assert (f"[{request_id}]" in gunicorn.log.read_text()) == (response.status_code != 414)

    def test_a_request_that_gunicorn_refuses_has_one_id(self, shared_site):
        headers = {f"X-{number}": "" for number in range(500)} | {"X-Request-ID": "find-me-not"}
        response = shared_site.get("/posts?limit=8", headers=headers)
        request_id = response.json()["request_id"]
        assert (response.status_code, response.headers["X-Request-ID"]) == (431, request_id)
        log, [gunicorn] = shared_site.nginx.folder / "posting.access.log", shared_site.gunicorns
        wait_until(lambda: f" {request_id}\n" in log.read_text())
        assert request_id in gunicorn.log.read_text()

    def test_no_log_has_the_token_of_a_feed(self, site):
        """Not even if the service is down, which nginx's error log notes with the whole request."""
        token = "posting_" + "x" * 43
        paths = (
            f"/feeds/{token}/feed.atom?a=b",
            f"/feeds//{token}/feed.atom",
            f"/%66eeds/{token}/p/{'a' * 21}/feed.json",
        )
        hidden = ("/feeds/{token}/feed.atom?a=b", f"/%66eeds/{{token}}/p/{'a' * 21}/feed.json")
        plain = f"http://localhost:{site.nginx.http}{paths[0]}"
        assert requests.get(plain, timeout=20, allow_redirects=False).status_code == 308
        for path in paths:
            assert_problem(get_as_it_is(site, path), 404 if "//" in path else 401)
        [gunicorn] = site.gunicorns
        assert "route=/feeds/{token}/feed.atom status=401" in gunicorn.log.read_text()
        gunicorn.listener.close()
        gunicorn.stop()
        for path in (*paths, "/posts?limit=3"):
            assert_problem(get_as_it_is(site, path), 502)
        gunicorn.process.wait = lambda *_: None
        access, errors = (site.nginx.folder / name for name in ("posting.access.log", "error.log"))
        wait_until(lambda: "/posts?limit=3 " in access.read_text())
        wait_until(lambda: "/posts?limit=3 " in errors.read_text())
        for path in hidden:
            assert access.read_text().count(f'"GET {path} HTTP/1.1"') >= 2
        for log in (access, errors, gunicorn.log):
            assert token not in log.read_text()

    def test_the_log_is_where_debian_rotates_it(self):
        site = (ROOT / "deploy" / "nginx.conf").read_text()
        assert set(re.findall(r"access_log (\S+)", site)) == {"/var/log/nginx/posting.access.log"}


class TestHosts:
    def test_plain_http_redirects_to_https(self, shared_site):
        plain = f"http://localhost:{shared_site.nginx.http}/posts?limit=3"
        response = requests.get(plain, timeout=20, allow_redirects=False)
        assert response.status_code == 308
        assert response.headers["Location"] == "https://localhost/posts?limit=3"

    def test_other_hosts_get_no_response(self, shared_site):
        with connect(shared_site.nginx.http) as connection:
            assert exchange(connection, "evil.example") == b""
        context = ssl.create_default_context(cafile=shared_site.nginx.certificate)
        with connect(shared_site.nginx.https) as plain, pytest.raises(ssl.SSLError):
            context.wrap_socket(plain, server_hostname="evil.example")
        with (
            connect(shared_site.nginx.https) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            assert exchange(connection, "evil.example") == b""

    def test_forwarded_headers_of_clients_are_overwritten(self, site, ada):
        spoofed = {
            "X-Forwarded-For": "203.0.113.7",
            "X-Forwarded-Host": "evil.example",
            "X-Forwarded-Proto": "http",
            "X-Forwarded-Prefix": "/evil",
            "X-Request-ID": "find-me",
        }
        body = {"title": "x", "content": "x"}
        response = ada.post(f"{site.url}/posts", json=body, headers=spoofed, timeout=20)
        assert response.headers["Location"].startswith(f"{site.url}/posts/")
        assert response.headers["X-Request-ID"] == "find-me"
        ada.post(f"{site.url}/signout", headers=spoofed, timeout=20)
        log = site.gunicorns[0].log.read_text()
        assert "203.0.113.7" not in log
        assert "event=sign-out" in log
        assert "address=127.0.0.1" in log

    def test_cross_origin_writes_are_refused(self, site, ada):
        body = {"title": "x", "content": "x"}
        for origin, status in ((site.url, 201), ("https://localhost", 403), ("null", 403)):
            headers = {"Origin": origin}
            response = ada.post(f"{site.url}/posts", json=body, headers=headers, timeout=20)
            assert response.status_code == status


class TestCache:
    def test_pages_are_cached_for_a_second_for_clients_that_are_not_signed_in(self, site, ada):
        first = site.get("/posts")
        body = {"title": "New", "content": "x"}
        assert ada.post(f"{site.url}/posts", json=body, timeout=20).status_code == 201
        shown = ada.get(f"{site.url}/posts", timeout=20).json()
        assert [post["title"] for post in shown] == ["New"]
        before, started = count_requests(site, "/posts"), time.monotonic()
        ids = {site.get("/posts").headers["X-Request-ID"] for _ in range(20)}
        assert len(ids) == 20
        assert count_requests(site, "/posts") <= before + 2 + time.monotonic() - started
        assert first.json() == []
        time.sleep(2.1)  # nginx measures the age in whole seconds
        assert [post["title"] for post in site.get("/posts").json()] == ["New"]

    def test_a_program_with_a_token_sees_what_it_has_written(self, site, ada):
        new = {"name": "x", "scope": "write"}
        secret = ada.post(f"{site.url}/tokens", json=new, timeout=20).json()["token"]
        program = site.client()
        program.headers["Authorization"] = f"Bearer {secret}"
        for number in range(5):
            site.get("/posts")  # nginx has the former list
            body = {"title": f"Post {number}", "content": "x"}
            assert program.post(f"{site.url}/posts", json=body, timeout=20).status_code == 201
            shown = program.get(f"{site.url}/posts", timeout=20).json()
            assert shown[0]["title"] == f"Post {number}"

    @pytest.mark.parametrize("value", ["Bearer x", "bearer", "BEARER x y"])
    def test_a_program_learns_that_its_token_is_not_valid(self, site, ada, value):
        body = {"title": "x", "content": "x"}
        post = ada.post(f"{site.url}/posts", json=body, timeout=20).json()
        path = f"{site.url}/posts/{post['id']}/images"
        image = ada.post(path, files={"file": pictures.png()}, timeout=20).json()
        headers = {"Authorization": value}
        for url in (f"{site.url}/posts", image["url"], f"{image['url']}/metadata"):
            read = site.client().get(url, timeout=20)  # now nginx has it
            assert read.status_code == 200
            refused = assert_problem(site.client().get(url, headers=headers, timeout=20), 401)
            assert refused.json()["code"] == "invalid_token"
            again = site.client().get(url, timeout=20)
            assert (again.status_code, again.content) == (200, read.content)
        assert count_requests(site, "/images/{id}") == 2

    def test_a_deleted_post_disappears_for_continuous_readers(self, site, ada):
        body = {"title": "x", "content": "x"}
        url = ada.post(f"{site.url}/posts", json=body, timeout=20).headers["Location"]

        def statuses(seconds):
            with ThreadPoolExecutor(4) as pool, site.client() as client:
                end = time.monotonic() + seconds
                read = lambda _: client.get(url, timeout=20).status_code  # noqa: E731
                while time.monotonic() < end:
                    yield from pool.map(read, range(4))

        assert set(statuses(1)) == {200}
        assert ada.delete(url, timeout=20).status_code == 204
        list(statuses(2.1))
        assert set(statuses(1)) == {404}

    def test_uncacheable_requests_do_not_wait_for_each_other(self, shared_site):
        """They take as long as responses from the cache, and not some seconds more."""
        seconds = []
        for path, status in (("/posts", 200), ("/users/me", 401)):
            with ThreadPoolExecutor(24) as pool:
                started = time.perf_counter()
                statuses = pool.map(lambda path: shared_site.get(path).status_code, [path] * 24)
                assert set(statuses) == {status}
            seconds.append(time.perf_counter() - started)
        assert seconds[1] < max(2, 3 * seconds[0])

    def test_private_responses_are_not_cached(self, site, ada):
        for _ in range(3):
            assert ada.get(f"{site.url}/users/me", timeout=20).json()["username"] == "ada"
            assert site.get("/users/me").status_code == 401
            site.get("/readyz")
        assert count_requests(site, "/users/me") == 6
        assert count_requests(site, "/readyz") >= 3

    def test_images_are_cached(self, site, ada):
        body = {"title": "x", "content": "x"}
        post = ada.post(f"{site.url}/posts", json=body, timeout=20).json()
        files = {"file": pictures.photo()}
        path = f"{site.url}/posts/{post['id']}/images"
        image = ada.post(path, files=files, timeout=20).json()
        for url, route in (
            (image["url"], "/images/{id}"),
            (image["thumbnail_url"], "/images/{id}/thumbnail"),
            (image["sizes"][0]["url"], "/images/{id}/{side}"),
        ):
            responses = [client.get(url, timeout=20) for client in (ada, site.client(), ada)]
            assert {response.status_code for response in responses} == {200}
            assert len({response.content for response in responses}) == 1
            assert {response.headers["Cache-Control"] for response in responses} == {
                "public, max-age=31536000, immutable"
            }
            assert count_requests(site, route) == 1
            again = site.get(url.removeprefix(site.url) + "?")
            assert again.content == responses[0].content
            assert count_requests(site, route) == 1
        cached = (site.nginx.folder / "posting-images").rglob("*")
        assert sum(path.is_file() for path in cached) == 3

    def test_files_are_cached(self, site, ada):
        upload = {"file": ("Grüße & Küsse.txt", b"A loom" * 100_000)}
        file = ada.post(f"{site.url}/files", files=upload, timeout=20).json()
        body = {"title": "x", "content": "x", "files": [file["id"]]}
        before = ada.get(file["url"], timeout=20)
        assert before.status_code == 404
        assert ada.post(f"{site.url}/posts", json=body, timeout=20).status_code == 201
        responses = [client.get(file["url"], timeout=20) for client in (ada, site.client(), ada)]
        for response in responses:
            assert response.content == upload["file"][1]
            assert response.headers["Content-Type"] == "text/plain"
            assert response.headers["Content-Disposition"].startswith("attachment; filename*=")
            assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert count_requests(site, "/files/{id}/{name}") == 2  # the 404, and one of the three
        assert site.client().get(file["url"] + "?x", timeout=20).status_code == 422

    def test_a_file_of_ten_megabytes_passes(self, site, ada):
        upload = {"file": ("a.txt", b"x" * 10 * 2**20)}
        response = ada.post(f"{site.url}/files", files=upload, timeout=20)
        assert response.status_code == 201
        upload = {"file": ("a.txt", b"x" * (10 * 2**20 + 1))}
        response = ada.post(f"{site.url}/files", files=upload, timeout=20)
        assert response.status_code == 413
        assert "10,485,760" in response.json()["detail"]

    def test_the_metadata_of_an_image_is_not_cached_like_the_image(self, site, ada):
        body = {"title": "x", "content": "x"}
        post = ada.post(f"{site.url}/posts", json=body, timeout=20).json()
        path = f"{site.url}/posts/{post['id']}/images"
        image = ada.post(path, files={"file": pictures.png()}, timeout=20).json()
        metadata = f"{image['url']}/metadata"
        assert site.client().get(metadata, timeout=20).json() == image
        edited = ada.patch(image["url"], json={"alt": "A loom"}, timeout=20).json()
        assert ada.get(metadata, timeout=20).json() == edited
        time.sleep(2.1)  # nginx measures the age in whole seconds
        assert site.client().get(metadata, timeout=20).json() == edited

    @pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
    def test_a_body_for_an_image_does_not_wait(self, site, ada, method):
        for body in (b'{"alt": "x"}', iter([b"{}"])):  # with its length, and in chunks
            url = f"{site.url}/images/{'u' * 21}"
            response = ada.request(method, url, data=body, timeout=20)
            assert response.status_code in {404, 405, 415}, response.text

    def test_a_body_over_http_2_does_not_wait(self, site):
        """HTTP/2 needs no length of a body."""
        url = f"{site.url}/images/{'u' * 21}"
        command = ["curl", "--http2", "--insecure", "--silent", "--max-time", "20", "--output", "-"]
        command += ["--request", "GET", "--header", "Content-Length:", "--data-binary", "@-", url]
        for _ in range(3):
            run = subprocess.run(command, input=b"x" * 1000, capture_output=True, check=True)
            assert b"no_such_image" in run.stdout

    def test_an_image_with_a_query_is_refused_whether_the_image_is_cached_or_not(self, site, ada):
        body = {"title": "x", "content": "x"}
        post = ada.post(f"{site.url}/posts", json=body, timeout=20).json()
        path = f"{site.url}/posts/{post['id']}/images"
        url = ada.post(path, files={"file": pictures.png()}, timeout=20).json()["url"]
        for _ in range(2):
            for query in ("?copy=1", "?copy=2", "?&", "?0"):
                for client in (ada, site.client()):
                    assert client.get(url + query, timeout=20).status_code == 422
            assert ada.get(url, timeout=20).status_code == 200

    def test_conditional_requests_work_with_and_without_compression(self, site, ada):
        body = {"title": "x", "content": "long " * 1000}
        url = ada.post(f"{site.url}/posts", json=body, timeout=20).headers["Location"]
        for encoding in ("gzip", "identity"):
            for client in (ada, site.client()):
                headers = {"Accept-Encoding": encoding}
                response = client.get(url, headers=headers, timeout=20)
                assert response.headers.get("Content-Encoding", "identity") == encoding
                headers |= {"If-None-Match": response.headers["ETag"]}
                assert client.get(url, headers=headers, timeout=20).status_code == 304
            guard = {"If-Match": response.headers["ETag"]}
            assert ada.patch(url, json={}, headers=guard, timeout=20).status_code == 200
        stale = {"If-Match": '"7"'}
        assert ada.patch(url, json={"title": "y"}, headers=stale, timeout=20).status_code == 412


class TestPages:
    def test_pages_and_their_files_are_compressed(self, shared_site):
        files = re.findall(r'(?:href|src)="(/static/[^"]*)"', shared_site.get("/").text)
        texts = [path for path in files if not path.endswith(".png")]
        assert len(texts) > 2
        for path in ("/", *texts):
            assert shared_site.get(path).headers["Content-Encoding"] == "gzip", path
        for path in files:
            assert "immutable" in shared_site.get(path).headers["Cache-Control"]

    def test_pages_are_cached_for_a_second_for_visitors(self, shared_site):
        before, started = count_requests(shared_site, "/write"), time.monotonic()
        bodies = {shared_site.get("/write").text for _ in range(20)}
        assert len(bodies) == 1
        assert count_requests(shared_site, "/write") <= before + 2 + time.monotonic() - started

    def test_errors_of_nginx_are_pages_for_browsers(self, shared_site):
        headers = {
            "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
            "X-Request-ID": "of-a-page",
        }
        response = shared_site.get("/", headers=headers | {"If-Match": '"stale"'})
        assert response.status_code == 412
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "<h1>Precondition Failed</h1>" in response.text
        assert "of-a-page" in response.text
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert_problem(shared_site.get("/nginx-page"), 404)
