"""Pages: what they show, that they are the same for everybody, and errors as pages."""

import gzip
import re
import time
from html.parser import HTMLParser
from io import BytesIO

import PIL.Image
import pytest
import sqlalchemy as sa

from posting.pages import views
from posting.web.static_files import FOLDER
from tests.helpers.assertions import assert_problem

HOSTILE = "\"><script>alert(1)</script>'&{{ 7*7 }}"
VOID = {"meta", "link", "img", "input", "br", "hr"}


class Reader(HTMLParser):
    """Checks that elements are closed in order, and collects elements and text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data.strip())

    def all(self, tag, **attributes):
        return [
            found
            for name, found in self.elements
            if name == tag and attributes.items() <= found.items()
        ]

    @property
    def text(self):
        return " ".join(filter(None, self.texts))


@pytest.fixture
def read(anonymous):
    """Return a function that reads a page and checks what holds for all of them."""

    def read(path, status=200):
        response = anonymous.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert response.status_code == status, response.text
        assert response.content_type == "text/html; charset=utf-8"
        assert response.headers["Content-Security-Policy"] == views.POLICY
        page = Reader(response.text)
        assert not [
            a for _, a in page.elements if any(k.startswith("on") or k == "style" for k in a)
        ]
        assert page.all("style") == []
        assert all("src" in script for script in page.all("script"))
        ids = [found["id"] for _, found in page.elements if "id" in found]
        assert len(set(ids)) == len(ids)
        assert len(page.all("h1")) == 1
        return page

    return read


def path_of(post):
    return f"/p/{post['id']}"


def links(page):
    return [link["href"] for link in page.all("a")]


def test_the_front_page_shows_the_latest_posts(alice, bob, read):
    post = alice.create_post("On engines", content="They *weave* algebra.")
    bob.add_comment(post, "And cloth?")
    page = read("/")
    assert "On engines Alice ·" in page.text
    assert "1 comment They weave algebra." in page.text
    assert {path_of(post), f"{path_of(post)}#comments", "/@alice"} <= set(links(page))
    assert page.all("time", datetime=post["created_at"])


def test_the_front_page_has_the_name_and_the_description_of_the_community(make_app):
    client = make_app(NAME="Elm Street", DESCRIPTION='Where "we" live').test_client()
    page = Reader(client.get("/").text)
    assert "Elm Street" in page.text
    assert page.all("meta", name="description", content='Where "we" live')


def test_a_page_has_a_description_for_search_engines(alice, post, read):
    for path in ("/", path_of(post), "/@alice", "/signin"):
        [description] = read(path).all("meta", name="description")
        assert description["content"]


def test_older_posts_follow_by_the_cursor_of_the_api(alice, anonymous, read, monkeypatch):
    monkeypatch.setattr(views, "POSTS_PER_PAGE", 2)
    for number in range(5):
        alice.create_post(f"Post {number}")
    found, url = [], "/"
    while url:
        page = read(url)
        found += re.findall(r"Post \d", page.text)
        url = next(("/" + link["href"] for link in page.all("a", rel="next")), None)
    assert found == [post["title"] for post in anonymous.get("/posts").json]
    first = anonymous.get("/posts?limit=2").headers["Link"]
    [older] = [link["href"] for link in read("/").all("a", rel="next")]
    assert re.search("cursor=[^&>]*", first)[0] == re.search("cursor=.*", older)[0]


def test_the_front_page_has_both_orders(alice, read, monkeypatch):
    posts = []
    for number in range(3):
        posts.append(alice.create_post(f"Post {number}"))
        time.sleep(0.002)  # with the same timestamp, their ids would decide
    alice.add_comment(posts[0], "A comment")
    for path, order, titles in (("/", "New", "210"), ("/?sort=active", "Active", "021")):
        page = read(path)
        assert re.findall(r"Post (\d)", page.text) == [*titles]
        [link] = page.all("a", **{"aria-current": "true"})
        assert ("sort=active" in link["href"]) == (order == "Active")
    monkeypatch.setattr(views, "POSTS_PER_PAGE", 2)
    alice.create_post("Post 3")
    [older] = read("/?sort=active").all("a", rel="next")
    assert re.findall(r"Post (\d)", read("/" + older["href"]).text) == ["2", "1"]


def test_pinned_posts_come_first_and_once(alice, moderator, read, monkeypatch):
    monkeypatch.setattr(views, "POSTS_PER_PAGE", 3)
    posts = [alice.create_post(f"Post {number}") for number in range(7)]
    for number in (0, 5):
        time.sleep(0.002)  # with the same timestamp, their ids would decide
        assert moderator.put(f"/posts/{posts[number]['id']}/pin").status_code == 204
    for query in ("", "sort=active"):
        found, url = [], f"/?{query}"
        while url:
            page = read(url)
            assert page.text.count("Pinned") == (0 if found else 2)
            found.append(re.findall(r"Post (\d)", page.text))
            url = next(("/" + link["href"] for link in page.all("a", rel="next")), None)
        assert found[0][:2] == ["5", "0"], query
        assert sorted(number for shown in found for number in shown) == [*"0123456"]
    assert "Pinned" not in read("/@alice").text
    moderator.delete(f"/posts/{posts[0]['id']}/pin")
    assert read("/").text.count("Pinned") == 1


def test_only_pinned_posts_are_no_empty_page(post, moderator, read):
    moderator.put(f"/posts/{post['id']}/pin")
    assert "There are no posts yet." not in read("/").text


@pytest.mark.parametrize("path", ["/", "/p/{id}", "/@alice"])
def test_names_in_the_query_that_trackers_add_are_ignored(read, post, path):
    read(path.format(**post) + "?fbclid=x&utm_source=y&utm_source=z")
    assert "Not a cursor of this list" in read(path.format(**post) + "?cursor=x", 422).text


def test_a_post_is_shown_with_its_text_images_and_comments(alice, bob, read):
    post = alice.create_post("On engines", content="# Looms\n\nThey *weave*.")
    image = alice.add_image(post, alt="A loom")
    comment = bob.add_comment(post, "And **cloth**?")
    page = read(path_of(post))
    assert "On engines" in page.text
    assert "Looms They weave" in page.text
    assert page.all("img", src=f"/images/{image['id']}", alt="A loom", width="48", height="32")
    assert "1 comment By thread Newest first bob" in page.text
    assert page.all("li", id=f"c-{comment['id']}")
    assert f"#c-{comment['id']}" in links(page)


def test_an_image_in_the_text_is_not_repeated_below_it(alice, post, read):
    image = alice.add_image(post)
    alice.patch(f"/posts/{post['id']}", json={"content": f"![A loom](/images/{image['id']})"})
    assert len(read(path_of(post)).all("figure")) == 0
    alice.patch(f"/posts/{post['id']}", json={"content": f"[A loom](/images/{image['id']})"})
    assert len(read(path_of(post)).all("figure")) == 1


def test_those_who_may_delete_images_are_offered_to(alice, post, read):
    image = alice.add_image(post)
    page = read(path_of(post))
    assert page.all("div", **{"data-author": alice.user["id"]})
    assert page.all("details", hidden=None)
    assert page.all("button", **{"data-api": "DELETE", "data-url": f"/images/{image['id']}"})


def test_moderators_lock_and_pin_a_post(moderator, post, read):
    for name, on, off in (("lock", "Lock", "Unlock"), ("pin", "Pin", "Unpin")):
        url = f"/posts/{post['id']}/{name}"
        for method, label, following in (("PUT", on, "DELETE"), ("DELETE", off, "PUT")):
            page = read(path_of(post))
            assert page.all("button", id=name, **{"data-api": method, "data-url": url}), label
            assert label in page.texts
            assert moderator.open(url, method=method).status_code == 204
            [button] = read(path_of(post)).all("button", id=name)
            assert button["data-api"] == following


def test_a_locked_post_says_so(moderator, post, read):
    assert "This post is locked." not in read(path_of(post)).text
    moderator.put(f"/posts/{post['id']}/lock")
    assert "This post is locked. Only moderators can comment." in read(path_of(post)).text


@pytest.mark.parametrize(
    ("path", "forms"),
    [
        ("/p/{id}", ["report", "deletion"]),
        ("/@alice", ["report", "suspension", "removal", "account-deletion"]),
        ("/moderation", ["deletion", "suspension", "dismissal"]),
    ],
)
def test_a_page_has_forms_for_reasons(post, read, path, forms):
    page = read(path.format(**post))
    found = [form["data-form"] for form in page.all("form") if "data-form" in form]
    assert [name for name in found if "comment" not in name] == forms


def test_an_edited_post_says_so(alice, post, read):
    assert "Edited" not in read(path_of(post)).text
    alice.patch(f"/posts/{post['id']}", json={"title": "On looms"})
    assert "Edited" in read(path_of(post)).text


def test_a_deleted_comment_keeps_its_place(alice, bob, post, read):
    comment = alice.add_comment(post, "First")
    bob.add_comment(post, "Second", parent_id=comment["id"])
    alice.delete(f"/comments/{comment['id']}")
    text = read(path_of(post)).text
    assert "First" not in text
    assert text.index("deleted") < text.index("Second")


def test_comments_newest_first_are_not_in_threads(alice, post, read, monkeypatch):
    monkeypatch.setattr(views, "COMMENTS_PER_PAGE", 2)
    first = alice.add_comment(post, "Comment 0")
    time.sleep(0.002)  # with the same timestamp, their ids would decide
    alice.add_comment(post, "Comment 1")
    reply = alice.add_comment(post, "Comment 2", parent_id=first["id"])
    page = read(f"{path_of(post)}?sort=newest")
    assert re.findall(r"Comment \d", page.text)[0] == "Comment 2"
    assert page.all("li", id=f"c-{reply['id']}", **{"class": "level-1"})
    assert f"#c-{first['id']}" in links(page)
    [more] = [link["href"] for link in page.all("a", rel="next")]
    following = read(path_of(post) + more.partition("#")[0])
    assert re.findall(r"Comment \d", following.text) == ["Comment 0"]


@pytest.mark.parametrize("query", ["?sort=best", "?cursor=x", "?sort=newest&cursor=x"])
def test_a_query_of_a_post_is_checked(post, read, query):
    assert "This link is not valid" in read(path_of(post) + query, 422).text


def test_a_member_is_shown_with_their_posts(alice, bob, read):
    alice.patch(f"/users/{alice.user['id']}", json={"bio": "I write\nabout engines."})
    post = alice.create_post("On engines")
    bob.create_post("Another one")
    page = read("/@ALICE")
    assert "Alice @alice" in page.text
    assert "about engines." in page.text
    assert path_of(post) in links(page)
    assert "Another one" not in page.text


def test_content_of_accounts_that_are_gone_is_shown_without_an_author(alice, post, read):
    alice.add_comment(post, "A comment")
    alice.delete(f"/users/{alice.user['id']}")
    assert read(path_of(post)).text.count("a former member") == 2
    assert "a former member" in read("/").text
    read("/@alice", 404)


@pytest.mark.parametrize("path", ["/write", "/signin", "/signup", "/reset", "/settings"])
def test_pages_with_forms_say_that_they_need_javascript(read, path):
    page = read(path)
    assert page.all("noscript")
    assert page.all("form", method="post") == page.all("form", inert=None) != []


def test_the_edit_form_contains_the_post(alice, read):
    post = alice.create_post('On "engines"', content="\n They\n</textarea>")
    page = read(f"{path_of(post)}/edit")
    assert page.all("input", name="title", value='On "engines"')
    assert page.all("form", action=f"/posts/{post['id']}", **{"data-version": "1"})
    assert "They\n</textarea>" in page.texts


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("approval", "A moderator reads this and approves the account."),
        ("invitation", "You need an invitation to sign up."),
        ("closed", "Sign-up is closed"),
    ],
)
def test_the_page_to_sign_up_says_what_the_setting_asks_for(make_app, mode, text):
    page = Reader(make_app(SIGNUP=mode).test_client().get("/signup").text)
    assert text in page.text
    assert len(page.all("form", method="post")) == (mode != "closed")
    assert len(page.all("textarea", name="application")) == (mode == "approval")


@pytest.mark.parametrize("path", ["/", "/p/{id}", "/@alice", "/signin", "/reset", "/nowhere"])
def test_no_page_offers_to_sign_up_while_that_is_closed(make_app, post, path):
    path, accept = path.format(**post), {"Accept": "text/html"}
    for mode in ("open", "approval", "invitation", "closed"):
        page = Reader(make_app(SIGNUP=mode).test_client().get(path, headers=accept).text)
        assert ("/signup" in links(page)) == (mode != "closed"), mode


@pytest.mark.parametrize(
    ("settings", "inviters"),
    [
        ({}, "moderators"),
        ({"INVITATIONS": "members"}, "members"),
        ({"SIGNUP": "invitation", "INVITATIONS": "members"}, "members"),
        ({"SIGNUP": "closed", "INVITATIONS": "members"}, None),
    ],
)
def test_the_settings_have_invitations_for_those_who_may_invite(make_app, settings, inviters):
    page = Reader(make_app(**settings).test_client().get("/settings").text)
    sections = [each for each in page.all("section", hidden=None) if "data-inviters" in each]
    assert [section["data-inviters"] for section in sections] == [inviters] * bool(inviters)
    assert len(page.all("form", action="/invitations")) == bool(inviters)


def test_who_forgot_the_password_is_told_what_to_do(make_app, tmp_path):
    client = make_app(INSTANCE_PATH=str(tmp_path), NAME="Elm Street").test_client()
    page = Reader(client.get("/signin").text)
    assert "/reset" in links(page)
    for path in ("/signin", "/reset"):
        assert "ask the people who run Elm Street for a link." in client.get(path).text
    (tmp_path / "about.md").write_text("Write to Morgan.")
    client = make_app(INSTANCE_PATH=str(tmp_path), NAME="Elm Street").test_client()
    for path in ("/signin", "/reset"):
        assert "run Elm Street for a link (see About )." in Reader(client.get(path).text).text


def test_a_password_is_chosen_with_a_link_or_a_recovery_code(read):
    page = read("/reset")
    assert len(page.all("form", action="/password-resets", method="post")) == 2
    assert page.all("input", type="hidden", name="code")
    assert page.all("input", name="recovery_code", required=None)


def test_about_shows_what_the_operator_wrote(make_app, read, tmp_path):
    read("/about", 404)
    assert "/about" not in links(read("/"))
    file = tmp_path / "about.md"
    file.write_text("# We\n\nAll **welcome**.")
    client = make_app(INSTANCE_PATH=str(tmp_path)).test_client()
    assert "/about" in links(Reader(client.get("/").text))
    assert "All welcome" in Reader(client.get("/about").text).text
    file.write_text("Changed without a commit")
    response = client.get("/about")
    assert "Changed without a commit" in response.text
    assert response.headers["Cache-Control"] == "no-cache"


def test_an_operator_adds_a_style_sheet(make_app, anonymous, tmp_path):
    assert anonymous.get("/custom.css").status_code == 404
    (tmp_path / "custom.css").write_text("body { color: red }")
    client = make_app(INSTANCE_PATH=str(tmp_path)).test_client()
    assert Reader(client.get("/").text).all("link", href="/custom.css")
    with client.get("/custom.css") as response:
        assert (response.text, response.mimetype) == ("body { color: red }", "text/css")


def test_static_files_change_their_url_with_their_content(read, anonymous):
    urls = [
        *[link["href"] for link in read("/").all("link", rel="stylesheet")],
        *[link["href"] for link in read("/").all("link", rel="modulepreload")],
        *[script["src"] for script in read("/").all("script")],
    ]
    assert len(urls) > 3
    for url in urls:
        with anonymous.get(url) as response:
            assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        name = url.rpartition("/")[2]
        for other in (f"/static/{name}", f"/static/0123456789ab/{name}"):
            with anonymous.get(other) as response:
                assert response.status_code == 200
                assert response.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/p/{id}", "/@alice", "/write", "/settings", "/inbox", "/moderation"),
        *("/signin", "/signup", "/reset"),
    ],
)
def test_no_module_waits_for_another(read, anonymous, post, path):
    """A page preloads all modules that its script imports, and each once."""
    page = read(path.format(id=post["id"]))
    [script] = [script["src"] for script in page.all("script")]
    preloaded = [link["href"] for link in page.all("link", rel="modulepreload")]
    loaded = [script, *preloaded]
    assert len(set(loaded)) == len(loaded)
    imported = set()
    for url in loaded:
        with anonymous.get(url) as response:
            names = re.findall(r'^(?:import|.* from) "\./(.*)";$', response.text, re.MULTILINE)
        imported |= {f"{url.rpartition('/')[0]}/{name}" for name in names}
    assert imported == set(preloaded)


def test_the_front_page_needs_little_script(read):
    urls = [
        *[link["href"] for link in read("/").all("link", rel="modulepreload")],
        *[script["src"] for script in read("/").all("script")],
    ]
    files = [FOLDER / url.rpartition("/")[2] for url in urls]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 5000


def test_only_members_load_what_counts_their_notifications(read):
    page = read("/")
    loaded = [link["href"] for link in page.all("link", rel="modulepreload")]
    assert not [url for url in loaded if url.endswith("/unread.js")]
    assert page.all("a", href="/inbox")
    assert page.all("b", hidden=None, **{"data-unread": None})


def test_a_mention_is_a_link_in_pages_previews_and_feeds(alice, bob, read):
    post = alice.create_post("On engines", content="Ask @bob.")
    bob.add_comment(post, "Ask @alice.")
    assert {"/@bob", "/@alice"} <= set(links(read(path_of(post))))
    html = alice.post("/preview", json={"content": "Ask @bob."}).json["html"]
    assert '<a href="/@bob"' in html
    for path, name in (("/feed.json", "bob"), (f"{path_of(post)}/feed.json", "alice")):
        [item] = alice.get(path).json["items"]
        assert f'<a href="http://localhost/@{name}"' in item["content_html"]


def test_the_attributes_that_templates_and_script_share_are_listed_in_one_place():
    templates = FOLDER.parent / "templates" / "pages"
    listed, base = (templates / "base.html").read_text().split("#}", 1)
    files = [file for file in templates.iterdir() if file.name != "base.html"]
    used = base + "".join(file.read_text() for file in files)
    limits = {"data-max"}  # which `forms.attributes` adds
    assert set(re.findall("data-[a-z-]+", listed)) == set(re.findall("data-[a-z-]+", used)) | limits
    script = "".join(file.read_text() for file in FOLDER.glob("*.js") if file.name != "docs.js")
    names = {re.sub("([A-Z])", r"-\1", name) for name in re.findall(r"\bdataset\.(\w+)", script)}
    assert {f"data-{name.lower()}" for name in names} <= set(re.findall("data-[a-z-]+", listed))


@pytest.mark.parametrize("path", ["/", "/p/{id}", "/@alice"])
def test_a_page_says_what_it_is_when_it_is_shared(alice, post, read, path):
    alice.patch(f"/users/{alice.user['id']}", json={"bio": "I write about engines."})
    page = read(path.format(**post))
    [description] = page.all("meta", name="description")
    shared = {meta["property"]: meta["content"] for meta in page.all("meta") if "property" in meta}
    assert shared.keys() == {"og:site_name", "og:title", "og:description"}
    assert shared["og:description"] == description["content"] != ""
    schemes = {"(prefers-color-scheme: light)", "(prefers-color-scheme: dark)"}
    assert {meta["media"] for meta in page.all("meta", name="theme-color")} == schemes


def test_a_page_has_icons(read, anonymous):
    [icon] = read("/").all("link", rel="apple-touch-icon")
    for path in (icon["href"], "/favicon.ico"):
        with anonymous.get(path) as response:
            assert response.mimetype == "image/png"
            assert PIL.Image.open(BytesIO(response.data)).size == (180, 180)


def test_search_engines_are_told_what_not_to_read(anonymous):
    response = anonymous.get("/robots.txt")
    assert response.mimetype == "text/plain"
    assert response.text.startswith("User-agent: *\nDisallow: /search\nDisallow: /settings\n")
    disallowed = {f"Disallow: {path}" for path in ("/p/*/edit", "/reset", "/inbox", "/moderation")}
    assert disallowed < set(response.text.splitlines())


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/search?q=engines",
        "/p/{id}",
        "/p/{id}/edit",
        "/@alice",
        "/write",
        "/signin",
        "/reset",
        "/settings",
        "/inbox",
        "/moderation",
        "/no",
    ],
)
def test_the_policy_of_pages_allows_nothing_inline_and_no_other_server(anonymous, path, post):
    headers = anonymous.get(path.format(**post), headers={"Accept": "text/html"}).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["img-src"] == "'self' blob:"
    assert policy["form-action"] == "'self'"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/search?q=a",
        "/p/{post}",
        "/@alice",
        "/write",
        "/p/{post}/edit",
        "/settings",
        "/inbox",
        "/moderation",
        "/signin",
        "/signup",
        "/reset",
    ],
)
@pytest.mark.usefixtures("alice")
def test_a_page_is_the_same_for_everybody(path, request, post):
    path = path.format(post=post["id"])
    clients = map(request.getfixturevalue, ("anonymous", "alice", "bob", "moderator"))
    responses = [client.get(path) for client in clients]
    assert len({response.data for response in responses}) == 1
    assert {response.headers["Cache-Control"] for response in responses} == {
        "public, max-age=0, must-revalidate"
    }
    assert len({response.headers["ETag"] for response in responses}) == 1
    assert {"Set-Cookie", "Vary"}.isdisjoint(responses[1].headers.keys())


def test_a_page_that_has_not_changed_gets_304(anonymous, alice, post):
    etag = anonymous.get(path_of(post)).headers["ETag"]
    again = anonymous.get(path_of(post), headers={"If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")
    alice.add_comment(post, "A comment")
    assert anonymous.get(path_of(post), headers={"If-None-Match": etag}).status_code == 200


def test_what_users_write_is_escaped_everywhere(sign_in, read):
    client = sign_in("mallory", display_name=HOSTILE[:64])
    client.patch(f"/users/{client.user['id']}", json={"bio": HOSTILE})
    post = client.create_post(HOSTILE, content=HOSTILE)
    client.add_image(post, alt=HOSTILE)
    client.add_comment(post, HOSTILE)
    for path in ("/", path_of(post), f"{path_of(post)}/edit", "/@mallory"):
        page = read(path)
        assert len(page.all("script")) == 1
        assert "49" not in page.text
        assert any(HOSTILE[:30] in text for text in page.texts), path
    assert read(path_of(post)).all("img", alt=HOSTILE)


class TestErrors:
    @pytest.mark.parametrize(
        "path", ["/p/" + "a" * 21, "/p/short", "/@unknown", "/@a%00b", "/nowhere"]
    )
    def test_an_unknown_page_is_a_page(self, read, path):
        page = read(path, 404)
        assert "Not Found" in page.text
        assert "/" in links(page)

    def test_it_names_the_request(self, anonymous):
        headers = {"X-Request-ID": "abc", "Accept": "text/html"}
        assert "Request abc" in anonymous.get("/nowhere", headers=headers).text

    @pytest.mark.parametrize("accept", ["*/*", "application/json", "image/*", "", "text/html;q=0"])
    def test_an_unknown_path_is_a_problem_for_other_clients(self, anonymous, accept):
        assert_problem(anonymous.get("/nowhere", headers={"Accept": accept}), 404)

    def test_errors_of_the_api_are_problems_for_all(self, anonymous):
        headers = {"Accept": "text/html"}
        assert_problem(anonymous.get("/posts/" + "a" * 21, headers=headers), 404)
        assert_problem(anonymous.post("/posts", headers=headers), 401)
        assert_problem(anonymous.post("/preview", headers=headers), 401)
        assert_problem(anonymous.get("/signout", headers=headers), 405)

    def test_a_database_that_does_not_answer_is_a_page(self, read, monkeypatch):
        def fail(*_, **__):
            raise sa.exc.OperationalError("", {}, Exception("locked"))

        monkeypatch.setattr(views, "paginate", fail)
        assert "Service Unavailable" in read("/", 503).text


class TestPreview:
    def test_it_is_rendered_as_the_page_will_be(self, alice, read):
        content = "# A\n\n<b>b</b> https://example.com ![c](https://example.com/c.png)"
        html = alice.post("/preview", json={"content": content}).json["html"]
        post = alice.create_post("A title", content=content)
        page = alice.get(path_of(post)).text
        assert html.strip() in page

    def test_an_invalid_text_gets_422(self, alice):
        for content in ("", " ", "x" * 100_001, 1, "\ud800"):
            response = alice.post("/preview", json={"content": content})
            [error] = assert_problem(response, 422)["errors"]
            assert error["pointer"] == "/content"

    def test_it_needs_a_session(self, anonymous):
        assert_problem(anonymous.post("/preview", json={"content": "x"}), 401)

    def test_it_is_limited(self, make_app, alice):
        app = make_app(RATE_LIMITS="on", LIMIT_POSTS="1/hour")
        client = alice.copy(app)
        for _ in range(4):
            assert client.post("/preview", json={"content": "x"}).status_code == 200
        assert_problem(client.post("/preview", json={"content": "x"}), 429)


class TestWithoutPages:
    @pytest.fixture
    def client(self, make_app):
        return make_app(PAGES="off").test_client()

    def test_the_root_redirects_to_the_documentation(self, client):
        response = client.get("/")
        assert (response.status_code, response.headers["Location"]) == (
            302,
            "http://localhost/docs",
        )

    @pytest.mark.parametrize("path", ["/write", "/settings", "/@alice", "/robots.txt", "/preview"])
    def test_there_are_no_pages(self, client, path):
        assert_problem(client.get(path, headers={"Accept": "text/html"}), 404)

    def test_sign_in_is_only_posted(self, client):
        assert_problem(client.get("/signin"), 405)
