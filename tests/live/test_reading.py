"""Reading for members only, through nginx with warm caches."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from posting import create_app
from tests.helpers import pictures
from tests.live.clients import sign_in

MARK = "zyzzyva"  # in all that is written, so that it can be found
UNKNOWN = {"username": "unknown", "token": "unknown"}
# The routes that respond to visitors. On all other routes, visitors get 401.
OPEN = {
    *("/signin", "/signup", "/reset", "/about", "/account-deleted", "/custom.css", "/robots.txt"),
    *("/favicon.ico", "/favicon.svg", "/static/<path:filename>", "/docs/<path:filename>"),
    *("/confirm", "/manifest.webmanifest", "/worker.js", "/accent.css", "/styleguide"),
    *("/site/logo/<nanoid:id>", "/site/logo/<nanoid:id>/64"),
    *("/site/cover/<nanoid:id>", "/site/cover/<nanoid:id>/768"),
    *("/unsubscribe/notifications/<nanoid:id>", "/unsubscribe/letter/<nanoid:id>"),
    *("/healthz", "/readyz", "/metrics", "/site", "/openapi.json", "/docs"),
}
IGNORED = {"X-Request-ID", "Date", "Content-Length", "Transfer-Encoding", "Connection"}


@pytest.fixture
def site(start_site):
    return start_site(WEB_CONCURRENCY="2", POSTING_READING="members")


@pytest.fixture
def ada(site):
    return sign_in(site.url, "ada", site.client())


def create_token(site, ada, scope):
    body = {"name": "x", "scope": scope}
    return ada.post(f"{site.url}/tokens", json=body, timeout=20).json()["token"]


def with_token(site, token):
    program = site.client()
    program.headers["Authorization"] = f"Bearer {token}"
    return program


@pytest.fixture
def program(site, ada):
    """A client with a token of Ada, and without a session."""
    return with_token(site, create_token(site, ada, "read"))


def write(site, ada):
    """Return ids and names of what Ada has written, by the words in the rules of routes."""

    def send(path, **options):
        response = ada.post(site.url + path, timeout=20, **options)
        assert response.status_code == 201, response.text
        return response.json()["id"]

    profile = {"display_name": f"{MARK} Ada", "bio": f"About {MARK}"}
    assert ada.patch(f"{site.url}/users/me", json=profile, timeout=20).status_code == 200
    file = send("/files", files={"file": ("minutes.txt", MARK.encode())})
    text = {"title": f"On {MARK}", "content": f"They weave {MARK}.", "files": [file]}
    post = send("/posts", json=text)
    comment = send(f"/posts/{post}/comments", json={"content": f"More {MARK}"})
    photo = pictures.encoded(pictures.scene(size=(1000, 700)), "JPEG")
    form = {"files": {"file": photo}, "data": {"alt": f"A {MARK}"}}
    return {
        "posts": post,
        "p": post,
        "comments": comment,
        "images": send(f"/posts/{post}/images", **form),
        "files": file,
        "users": ada.user["id"],
        "username": "ada",
        "token": create_token(site, ada, "feed"),
    }


@pytest.fixture
def content(site, ada):
    return write(site, ada)


@pytest.fixture(scope="module")
def rules():
    """The rules of all routes that can be read."""
    app = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
    return sorted(rule.rule for rule in app.url_map.iter_rules() if "GET" in rule.methods)


def fill(rule, values):
    """Return the path of a route with ids and names that exist, or with others."""
    folder = rule.removeprefix("/feeds/<token>").split("/")[1]
    file = "swagger-ui.css" if folder == "docs" else "x/pages.css"
    names = {"id": values.get(folder, "u" * 21), "filename": file, "side": "640"}
    names |= {"name": "minutes.txt", "reaction": "heart"}
    names |= UNKNOWN | values
    return re.sub(r"<(?:[^<>]*:)?(\w+)>", lambda name: names[name[1]], rule)


def walk(rules, values):
    """Yield the rules with their paths, and with queries that find something."""
    queries = {
        "/posts": ("?limit=1", f"?q={MARK}", "?expand=content,images", "?sort=active"),
        "/search": (f"?q={MARK}",),
        "/users": (f"?username={(UNKNOWN | values)['username']}",),
        "/": ("?sort=active",),
    }
    for rule in rules:
        for query in ("", *queries.get(rule, ())):
            yield rule, fill(rule, values) + query


def answer(site, client, url, method="GET", **headers):
    """Return all that a response says, without what differs from request to request."""
    response = client.request(method, site.url + url, headers=headers, timeout=20)
    head = {name: value for name, value in response.headers.items() if name not in IGNORED}
    body = re.sub(rb'"request_id":"[^"]*"|next=[^"]*"|Request [^ ]*', b"", response.content)
    path = url.partition("?")[0].encode()
    return response.status_code, head, body.replace(b'href="%b"' % path, b"")


def read_everything(site, clients, rules, content):
    for _ in range(3):
        for client in clients:
            for rule, url in walk(rules, content):
                response = client.get(site.url + url, timeout=20)
                assert response.status_code < 500, url
                if rule not in OPEN:
                    assert "public" not in response.headers["Cache-Control"], url


def cached_bytes(site):
    """Return all that nginx has in its caches."""
    folders = (site.nginx.folder / name for name in ("posting-pages", "posting-images"))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files)


def test_a_visitor_gets_no_byte_of_content(site, ada, program, content, rules):
    """Before and after a member has read everything, and nginx keeps nothing of it."""
    picture = ada.get(f"{site.url}/images/{content['images']}", timeout=20).content
    with site.client() as visitor:
        hidden = content | UNKNOWN  # a visitor has no token for feeds
        before = {url: answer(site, visitor, url) for _, url in walk(rules, hidden)}
        read_everything(site, [ada, program], rules, content)
        for rule, url in walk(rules, hidden):
            response = answer(site, visitor, url)
            if rule != "/metrics":
                assert response == before[url], url
            status, _, body = response
            assert (status == 401) == (rule not in OPEN), url
            assert MARK.encode() not in body.replace(url.encode(), b""), url
            assert picture not in body, url
    kept = cached_bytes(site)
    assert b"Disallow" in kept  # what is open is cached
    for secret in (MARK.encode(), picture, content["token"].encode()):
        assert secret not in kept


def test_a_visitor_cannot_tell_what_exists(site, ada, program, content, rules):
    read_everything(site, [ada, program], rules, content)
    existing, unknown = ([*walk(rules, values)] for values in (content | UNKNOWN, {}))
    with site.client() as visitor:
        for (_, one), (_, other) in zip(existing, unknown, strict=True):
            for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE"):
                expected = answer(site, visitor, other, method)
                assert answer(site, visitor, one, method) == expected, (method, one)
            tagged = {"If-None-Match": "*"}
            assert answer(site, visitor, one, **tagged) == answer(site, visitor, other, **tagged)


def test_visitors_read_everything_if_everyone_may(start_site, make_app, fresh_url, rules):
    """Also what nginx has kept while a member and a program read it."""
    site = start_site(WEB_CONCURRENCY="2")
    ada = sign_in(site.url, "ada", site.client())
    content = write(site, ada)
    program = with_token(site, create_token(site, ada, "read"))
    expected = {}
    direct = make_app(DATABASE_URL=fresh_url).test_client()
    for _, url in walk(rules, content):
        with direct.get(url) as response:
            expected[url] = response.status_code
    with site.client() as visitor:
        for client in (visitor, ada, program, visitor):
            for _, url in walk(rules, content):
                status = client.get(site.url + url, timeout=20, allow_redirects=False).status_code
                assert status == expected[url] or client is not visitor, url
        shown = visitor.get(f"{site.url}/posts", timeout=20).text
    assert MARK in shown
    assert expected["/posts"] == expected["/"] == 200
    assert expected["/users/me"] == 401


def test_members_read_with_a_session_and_with_a_token(site, ada, program, content):
    for client in (ada, program):
        for path in ("/posts", "/", f"/p/{content['p']}", f"/search?q={MARK}", "/feed.atom"):
            response = client.get(site.url + path, timeout=20)
            assert (response.status_code, MARK in response.text) == (200, True)
            assert response.headers["Cache-Control"] == "private, no-store"
            headers = {"If-None-Match": response.headers["ETag"]}
            again = client.get(site.url + path, headers=headers, timeout=20)
            assert again.status_code == 304
        image = client.get(f"{site.url}/images/{content['images']}", timeout=20)
        assert image.status_code == 200
        assert image.headers["Cache-Control"] == "private, max-age=31536000, immutable"


def test_a_feed_reader_reads_with_an_address_alone(site, content):
    with site.client() as reader:
        feed = reader.get(f"{site.url}/feeds/{content['token']}/feed.json", timeout=20).json()
        [item] = feed["items"]
        assert MARK in item["content_html"]
        types = {"images": "image/jpeg", "files": "text/plain"}
        for found, (kind, type) in zip(item["attachments"], types.items(), strict=True):
            assert found["url"].startswith(f"{site.url}/feeds/{content['token']}/{kind}/")
            assert reader.get(found["url"], timeout=20).headers["Content-Type"] == type


def test_a_member_who_is_refused_gets_nothing_from_a_cache(site, ada, program, content):
    file = f"/files/{content['files']}/minutes.txt"
    paths = ("/posts", "/", f"/images/{content['images']}", file)
    other = sign_in(site.url, "grace", site.client())
    for client in (other, program, ada):
        for path in paths:
            assert client.get(site.url + path, timeout=20).status_code == 200
    copy = site.client()
    copy.cookies.update(ada.cookies)
    ada.post(f"{site.url}/signout", timeout=20)
    for path in paths:
        assert copy.get(site.url + path, timeout=20).status_code == 401
        assert other.get(site.url + path, timeout=20).status_code == 200


def test_members_do_not_wait_for_each_other(site, ada, content):
    """Responses that nginx does not cache do not hold up requests for the same URL."""
    url = f"{site.url}/images/{content['images']}"
    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        cookies = ada.cookies.get_dict()

        def read(_):
            with site.client() as client:
                return client.get(url, cookies=cookies, timeout=20).status_code

        assert set(pool.map(read, range(64))) == {200}
    assert time.monotonic() - started < 15


def test_a_trusted_page_reads_images_with_a_token(start_site):
    """For requests with a token, nginx passes on their origin, and keeps no response."""
    origin = "https://app.example.org"
    site = start_site(POSTING_READING="members", POSTING_TRUSTED_ORIGINS=origin)
    ada = sign_in(site.url, "ada", site.client())
    content = write(site, ada)
    program = with_token(site, create_token(site, ada, "read"))
    url = f"{site.url}/images/{content['images']}"
    response = program.get(url, headers={"Origin": origin}, timeout=20)
    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Origin"] == origin
    preflight = {"Origin": origin, "Access-Control-Request-Headers": "authorization"}
    with site.client() as browser:
        allowed = browser.options(url, headers=preflight, timeout=20)
        assert allowed.status_code == 200
        assert allowed.headers["Access-Control-Allow-Origin"] == origin


def test_the_setting_is_changed_by_a_restart(start_site):
    site = start_site()
    ada = sign_in(site.url, "ada", site.client())
    content = write(site, ada)
    image, page = f"/images/{content['images']}", f"/p/{content['p']}"
    assert [site.get(path).status_code for path in (image, page)] == [200, 200]
    [gunicorn] = site.gunicorns
    gunicorn.stop()
    gunicorn.environment["POSTING_READING"] = "members"
    gunicorn.start()
    site.wait()
    time.sleep(1)  # nginx keeps pages until the end of the second
    assert site.get(page).status_code == 401
    assert site.get(image).status_code == 401
    assert ada.get(site.url + image, timeout=20).status_code == 200


def test_an_owner_closes_everything_at_once(start_site, rules):
    """One second later, no cache of nginx or of a worker serves anything to a visitor."""
    site = start_site(WEB_CONCURRENCY="2")
    ada = sign_in(site.url, "ada", site.client())
    site.flask("users", "promote", "ada", "--owner")
    content = write(site, ada)
    with site.client() as visitor:

        def read_all():
            return {
                (rule, url): visitor.get(site.url + url, timeout=20)
                for rule, url in walk(rules, content)
                if "<token>" not in rule
            }

        image = f"{site.url}/images/{content['images']}"
        for reading in ("members", "everyone", "members"):
            for _ in range(3):
                before = read_all()
            visitor.get(image, timeout=20)  # in the second of the change, with the former answer
            response = ada.patch(f"{site.url}/site", json={"reading": reading}, timeout=20)
            assert response.status_code == 200, response.text
            visitor.get(image, timeout=20)
            time.sleep(1)
            after = read_all()
            for (rule, url), response in after.items():
                is_open = rule in OPEN or (reading == "everyone" and before[rule, url].ok)
                assert response.ok or response.status_code in {401, 404, 405, 422}, url
                if reading == "members" and rule not in OPEN:
                    assert response.status_code == 401, url
                    assert "?" in url or MARK not in response.text, url
                elif is_open:
                    assert response.status_code == before[rule, url].status_code, url
        assert ada.get(image, timeout=20).status_code == 200
