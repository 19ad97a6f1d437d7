"""Compare the responses of two checkouts: `.venv/bin/python -m bench.compare ../other`.

Each checkout runs the same scenario, in its own `.venv`, on a new SQLite database. Every response
that differs is printed as a diff. IDs, times and secrets are numbered in the order in which they
appear, because they differ in each run.
"""

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from posting import create_app

ROOT = Path(__file__).parents[1]
PASSWORD = "a long walk by the sea"
ACCOUNT = {"username": "ada", "password": PASSWORD}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c636000000002000148afa4710000000049454e44ae426082"
)
TEXT = (
    "# A heading\n\nSome *text*, `code`, <b>raw</b> HTML & a [link](https://example.org).\n\n- one"
)
# What differs in each run: an ID has 21 characters, a secret 43.
VARIABLE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT"
    r"|(?<=title=\")[^\"]* UTC|(?<=\.)\d{13}(?=\.))"
    r"|(?P<digest>(?<=/static/)[0-9a-f]{12})"
    r"|(?P<etag>(?<=ETag: )[^\n]+)"
    r"|(?P<request>(?<=\"request_id\": \")[\w-]+|(?<=>Request )[\w-]{14})"
    r"|(?P<id>(?:(?<![\w-])|(?<=[#3\"]c-))(?:posting_)?(?:[\w-]{21}|[\w-]{43})(?![\w-]))"
)
HIDDEN = re.compile(r"(?im)^(X-Request-Id|Content-Length|RateLimit): .*")


class Recorder:
    """Sends requests to an app, and records its responses in a comparable form."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._names: dict[str, str] = {}
        self.records: dict[str, str] = {}

    def send(
        self, method: str, path: str, body: Any = None, client: Any = None, **options: Any
    ) -> Any:
        """Send a request, and return the JSON of its response, if it is JSON."""
        if body is not None:
            options["json"] = body
        response = (client or self._client).open(path, method=method, **options)
        lines = [f"{response.status_code}"]
        lines += [f"{name}: {value}" for name, value in sorted(response.headers)]
        text = response.get_data().decode("utf-8", "backslashreplace")
        with suppress(ValueError):
            text = json.dumps(json.loads(text), indent=1, ensure_ascii=False)
        number = len(self.records) + 1
        record = "\n".join([*lines, "", text])
        self.records[self._comparable(f"{number:03} {method} {path}")] = self._comparable(record)
        return response.get_json(silent=True)

    def _comparable(self, text: str) -> str:
        def name(match: re.Match[str]) -> str:
            if match.lastgroup == "id":
                return self._names.setdefault(match[0], f"<id {len(self._names) + 1}>")
            return f"<{match.lastgroup}>"

        return HIDDEN.sub(r"\1: <hidden>", VARIABLE.sub(name, text))


def sign_up(recorder: Recorder) -> str:
    """Sign up and in, and return the path of the user."""
    send = recorder.send
    for body in ({}, {"username": "x", "password": "short"}, ACCOUNT, ACCOUNT):
        send("POST", "/signup", body)
    send("POST", "/posts", {"title": "a", "content": "b"})
    send("POST", "/signin", ACCOUNT | {"password": "a wrong password"})
    user = f"/users/{send('POST', '/signin', ACCOUNT)['id']}"
    for path in ("/users/me", user, "/users/short", "/users?username=ada", "/sessions", "/tokens"):
        send("GET", path)
    send("PATCH", user, {"display_name": "Ada", "bio": "A countess."})
    send("PATCH", user, {"display_name": "x" * 1000, "unknown": 1})
    send("PATCH", user, {"password": "another long walk", "current_password": "no"})
    return user


def write_posts(recorder: Recorder) -> str:
    """Write and edit posts, and return the path of the first one."""
    send = recorder.send
    key = {"Idempotency-Key": "a" * 20}
    for _ in range(2):
        post = send("POST", "/posts", {"title": "On engines", "content": TEXT}, headers=key)
    send("POST", "/posts", {"title": "Another", "content": TEXT}, headers=key)
    path = f"/posts/{post['id']}"
    for body in ({}, {"title": ""}, {"title": "a\nb", "content": "x"}, {"title": 1, "content": []}):
        send("POST", "/posts", body)
        send("PATCH", path, body)
    send("POST", "/posts", data="{", content_type="application/json")
    send("POST", "/posts", data="title=a", content_type="text/plain")
    send("PATCH", path, {"title": "On the engine"}, headers={"If-Match": 'W/"no"'})
    send("PATCH", path, {"title": "On the engine"})
    other = {"Origin": "https://other.example"}
    send("POST", "/posts", {"title": "a", "content": "b"}, headers=other)
    for number in range(3):
        send("POST", "/posts", {"title": f"Number {number}", "content": "Some words."})
    return path


def write_comments(recorder: Recorder, post: str) -> str:
    """Comment on a post, and return the path of a comment that has a reply."""
    send = recorder.send
    first = send("POST", f"{post}/comments", {"content": "A comment."})
    reply = send("POST", f"{post}/comments", {"content": "*A* reply.", "parent_id": first["id"]})
    send("POST", f"{post}/comments", {"content": "", "parent_id": "x"})
    send("PATCH", f"/comments/{reply['id']}", {"content": "An edited reply."})
    for query in ("", "?limit=1", f"?parent_id={first['id']}", "?unknown=1"):
        send("GET", f"{post}/comments{query}")
    send("GET", f"/comments/{reply['id']}")
    return f"/comments/{first['id']}"


def add_images(recorder: Recorder, post: str) -> str:
    """Add images to a post, and return the path of the one that can be used."""
    send = recorder.send
    send("POST", f"{post}/images", data={"file": (BytesIO(b"no image"), "a.png")})
    form = {"file": (BytesIO(PNG), "a.png"), "alt": "A pixel"}
    image = f"/images/{send('POST', f'{post}/images', data=form)['id']}"
    send("PATCH", image, {"alt": "A grey pixel"})
    for method, path in (("GET", image), ("HEAD", image), ("GET", f"{post}/images")):
        send(method, path)
    return image


def use_token(recorder: Recorder) -> None:
    send = recorder.send
    token = send("POST", "/tokens", {"name": "A program", "scope": "read"})
    bearer = {"Authorization": f"Bearer {token['token']}"}
    send("GET", "/tokens")
    send("GET", "/users/me", headers=bearer)
    send("POST", "/posts", {"title": "a", "content": "b"}, headers=bearer)
    send("DELETE", f"/tokens/{token['id']}")


def read_everything(recorder: Recorder, post: str, user: str) -> None:
    """Read lists, pages, feeds, and what belongs to no feature."""
    send = recorder.send
    page, author = post.replace("/posts/", "/p/"), user.rpartition("/")[2]
    lists = ("", "?limit=2", "?limit=0", "?sort=active", "?q=engine", "?cursor=no", "?unknown=1")
    for query in (*lists, f"?author={author}", "?author=short", "?expand=content"):
        send("GET", f"/posts{query}")
    pages = ("/", "/search?q=engine", page, "/@ada", "/write", "/settings", "/signin", "/about")
    feeds = ("/feed.atom", "/feed.json", f"{page}/feed.atom", "/@ada/feed.json")
    system = ("/healthz", "/readyz", "/openapi.json", "/docs", "/robots.txt", "/nowhere")
    for path in (post, f"{post}?unknown=1", "/posts/short", *pages, *feeds, *system):
        send("GET", path)
    send("GET", "/nowhere", headers={"Accept": "text/html"})
    for method, path in (("PUT", post), ("OPTIONS", post), ("OPTIONS", "/posts"), ("HEAD", post)):
        send(method, path)


def moderate(recorder: Recorder, app: Any, post: str, comment: str, image: str) -> None:
    """Send the requests of a moderator, and of a member who has to do with them."""
    moderator, member = app.test_client(), app.test_client()
    users = {}
    for name, client in (("morgan", moderator), ("grace", member)):
        body = {"username": name, "password": PASSWORD}
        users[name] = f"/users/{recorder.send('POST', '/signup', body, client)['id']}"
        if client is moderator:
            assert not app.test_cli_runner().invoke(args=["users", "promote", name]).exit_code
        recorder.send("POST", "/signin", body, client)

    send, ask = (partial(recorder.send, client=client) for client in (moderator, member))
    own = f"/posts/{ask('POST', '/posts', {'title': 'By Grace', 'content': 'See @ada.'})['id']}"
    ask("POST", f"{post}/comments", {"content": "A comment by @morgan's friend."})
    for level in ("all", "some"):
        ask("PUT", f"{post}/subscription", {"level": level})
    recorder.send("POST", f"{post}/comments", {"content": "For those who follow."})
    for path in ("/notifications", "/notifications?unread=true&limit=1", "/notifications/unread"):
        ask("GET", path)
        recorder.send("GET", path)
    [latest, *_] = ask("GET", "/notifications")
    ask("POST", "/notifications/read", {"up_to": latest["id"]})
    ask("POST", "/notifications/read", {"up_to": "x" * 21})
    ask("GET", f"{post}/subscription")
    ask("DELETE", f"{post}/subscription")
    reason = {"reason": "It is an advertisement."}
    reports = [
        ask("POST", f"{path}/reports", reason) for path in (post, comment, "/users/" + "x" * 21)
    ]
    ask("POST", f"{post}/reports", reason)
    ask("POST", f"{users['morgan']}/reports", reason)
    ask("GET", "/reports")
    for path in ("/reports", "/reports?limit=1", "/reports?state=closed", "/reports?state=no"):
        send("GET", path)
    report = f"/reports/{reports[0]['id']}"
    for each in (ask, send):
        each("GET", report)
        each("PATCH", report, {"outcome": "dismissed", "note": "It is not."})
    send("PATCH", report, {"outcome": "removed"})
    act(recorder, (moderator, member), post, own, users)
    invite(recorder, moderator, member)
    recover(recorder, member)
    ask("POST", "/preview", {"content": TEXT})
    follow(recorder, member, post)
    send("POST", f"/moderation{users['grace']}/removal", {"reason": "All of it."})
    send("DELETE", f"/moderation{users['grace']}")
    send("GET", users["grace"])
    send("DELETE", f"{image}?reason=Blurred")


def act(
    recorder: Recorder, clients: tuple[Any, Any], post: str, own: str, users: Mapping[str, str]
) -> None:
    """Lock, pin, remove, suspend, and read the log."""
    send, ask = (partial(recorder.send, client=client) for client in clients)
    for name in ("lock", "pin"):
        for method in ("GET", "PUT", "PUT", "GET"):
            send(method, f"{post}/{name}")
        ask("PUT", f"{own}/{name}")
        ask("POST", f"{post}/comments", {"content": "May I?"})
        send("DELETE", f"{post}/{name}")
    send("GET", "/posts?pinned=true")
    for path in (users["grace"], users["morgan"], "/users/" + "x" * 21):
        send("GET", f"/moderation{path}")
        send("GET", f"{path}/suspension")
    send("DELETE", f"{own}?reason=Advertising")
    send("DELETE", f"/images/{'x' * 21}")
    send("PUT", f"{users['grace']}/suspension", {"reason": "Advertising."})
    send("PUT", f"{users['grace']}/suspension", {"reason": "Again."})
    ask("GET", "/users/me")
    ask("POST", "/signin", {"username": "grace", "password": PASSWORD})
    send("DELETE", f"{users['grace']}/suspension")
    ask("POST", "/signin", {"username": "grace", "password": PASSWORD})
    send("PUT", f"{users['morgan']}/suspension", {"reason": "Me."})
    for path in ("/moderation/log", "/moderation/log?limit=1", f"/moderation/log?user={'x' * 21}"):
        send("GET", path)
        ask("GET", path)


def invite(recorder: Recorder, moderator: Any, member: Any) -> None:
    """Create, use and end invitations, and decide on an application."""
    send = recorder.send
    send("POST", "/invitations", {"uses": 2, "note": "For the choir"}, member)
    invitation = send("POST", "/invitations", {"uses": 2, "note": "For the choir"}, moderator)
    code = invitation["url"].partition("#")[2]
    for name, used in (("joan", code), ("jane", "x" * 64)):
        send("POST", "/signup", {"username": name, "password": PASSWORD, "invitation": used})
    for client in (moderator, member):
        for path in ("/invitations", "/invitations?limit=1", f"/invitations/{invitation['id']}"):
            send("GET", path, client=client)
    for _ in range(2):
        send("DELETE", f"/invitations/{invitation['id']}", client=moderator)
    app = moderator.application
    app.config["SIGNUP"] = "approval"
    applicants = [
        send("POST", "/signup", {"username": name, "password": PASSWORD, "application": "Please."})
        for name in ("hope", "hilda")
    ]
    send("POST", "/signin", {"username": "hope", "password": PASSWORD}, app.test_client())
    for client in (moderator, member):
        send("GET", "/applications", client=client)
    first, second = (f"/applications/{applicant['id']}" for applicant in applicants)
    for method, path in (("POST", f"{first}/approval"), ("DELETE", second), ("DELETE", second)):
        send(method, path, client=moderator)
    app.config["SIGNUP"] = "open"


def recover(recorder: Recorder, member: Any) -> None:
    """Create recovery codes, and set a new password with one of them."""
    send = recorder.send
    for password in ("wrong", PASSWORD):
        send("POST", "/recovery-codes", {"current_password": password}, member)
    send("GET", "/recovery-codes", client=member)
    send("POST", "/password-resets", {"code": "x" * 64, "password": PASSWORD})
    reset = {"username": "grace", "recovery_code": "7G3K-9QWE-2M4X-V8ZA", "password": PASSWORD}
    send("POST", "/password-resets", reset)
    body = {"current_password": PASSWORD, "password": "a shorter walk by the sea"}
    send("PATCH", "/users/me", body, member)
    [session, *_] = send("GET", "/sessions", client=member)
    send("GET", f"/sessions/{session['id']}", client=member)
    for _ in range(2):
        send("DELETE", f"/sessions/{'x' * 21}", client=member)


def follow(recorder: Recorder, member: Any, post: str) -> None:
    """Read changes and feeds by a token."""
    send = recorder.send
    page = post.replace("/posts/", "/p/")
    cursor = send("GET", "/changes")["cursor"]
    send("POST", "/posts", {"title": "A change", "content": "To follow."})
    send("GET", f"/changes?after={cursor}&limit=1")
    for after in ("x", "0" * 16 + ".0.0"):
        send("GET", f"/changes?after={after}")
    token = send("POST", "/tokens", {"name": "A reader", "scope": "feed"}, member)["token"]
    paths = ("", "/@ada", page, "/comments", "/@nobody-at-all", f"/p/{'x' * 21}")
    for format in ("atom", "json"):
        for path in paths:
            for prefix in ("", f"/feeds/{token}", "/feeds/wrong"):
                send("GET", f"{prefix}{path}/feed.{format}")
        send("GET", f"/feed.{format}?before=x")
        send("GET", f"/feed.{format}?utm_source=x")
    send("GET", f"/feeds/{token}/images/{'x' * 21}")
    for path in ("/site", "/metrics", "/comments", "/comments?q=reply", "/comments?author=x"):
        send("GET", path)
    more = ("/inbox", "/moderation", "/unsent", "/reset", "/account-deleted", "/custom.css")
    for path in (*more, f"{page}?sort=newest", f"{page}/edit", "/@ada?show=comments", "/@nobody"):
        send("GET", path)
    for show in ("posts", "comments", "members"):
        send("GET", f"/search?q=ada&show={show}")


def scenario(recorder: Recorder, app: Any) -> None:
    """Send the requests of one run."""
    send = recorder.send
    user = sign_up(recorder)
    post = write_posts(recorder)
    commented, image = write_comments(recorder, post), add_images(recorder, post)
    use_token(recorder)
    read_everything(recorder, post, user)
    moderate(recorder, app, post, commented, image)
    for path in (commented, image):
        send("DELETE", path)
    send("GET", f"{post}/comments")
    for _ in range(2):
        send("DELETE", post)
    for body in ({"current_password": PASSWORD}, {"password": PASSWORD}):
        send("DELETE", user, body)
    send("POST", "/signout")
    send("GET", "/users/me")


def print_responses() -> None:
    """Run the scenario on the checkout of the working directory, and print the responses."""
    with TemporaryDirectory() as folder:
        cheap = "scrypt:1024:8:1"
        settings = {"TESTING": True, "PASSWORD_HASH": cheap, "INSTANCE_PATH": folder}
        settings |= {"RATE_LIMITS": "on"}
        app = create_app(settings | {"DATABASE_URL": f"sqlite:///{folder}/posting.db"})
        recorder = Recorder(app.test_client())
        scenario(recorder, app)
        json.dump(recorder.records, sys.stdout)


def responses_of(checkout: Path) -> dict[str, str]:
    """Run the scenario in the environment of a checkout."""
    if not (checkout / ".venv" / "bin" / "python").exists():
        sys.exit(f"{checkout} has no environment. Run `make install` there.")
    run = subprocess.run(
        [".venv/bin/python", str(Path(__file__).resolve()), "--record"],
        cwd=checkout,
        env={"PYTHONPATH": str(checkout.resolve()), "PYTHONHASHSEED": "0"},
        check=False,
        capture_output=True,
        text=True,
    )
    if run.returncode:
        sys.exit(f"The scenario fails in {checkout}:\n{run.stderr[-2000:]}")
    responses: dict[str, str] = json.loads(run.stdout)
    return responses


def differences(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    """Yield a diff of each response that differs."""
    for request in sorted(old.keys() | new.keys()):
        before, after = old.get(request, ""), new.get(request, "")
        if before != after:
            diff = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
            yield "\n".join([f"== {request}", *list(diff)[2:], ""])


def main() -> None:
    if sys.argv[1:] == ["--record"]:
        print_responses()
        return
    others = [Path(argument) for argument in sys.argv[1:]]
    if not others or len(others) > 2 or "--help" in sys.argv:
        sys.exit("Usage: .venv/bin/python -m bench.compare OLD [NEW]; else NEW is this checkout")
    old, new = (responses_of(checkout) for checkout in (others[0], [*others, ROOT][1]))
    found = list(differences(old, new))
    print("\n".join(found))
    print(f"{len(found)} of {len(new)} responses differ.")


if __name__ == "__main__":
    main()
