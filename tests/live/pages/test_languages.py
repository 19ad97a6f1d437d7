"""A walk through all pages in languages that are made up, which finds texts that are English.

Members, moderators and owners press each button and send each form, without values and with some.
In the language that is written from right to left, the screen is as narrow as one of 320 pixels.
"""

import re
from contextlib import suppress

import pytest
from playwright.sync_api import Error as PlaywrightError

from posting.web.errors import input_codes, problem_codes
from tests.helpers import pictures
from tests.helpers.pseudo import LETTERS, to_pseudo, write_catalogs
from tests.helpers.translations import as_list, extract
from tests.live.browser import PASSWORD
from tests.live.layout import OVERFLOW
from tests.live.mails import link_in
from tests.live.moderation import flask

NAMES = ("ada", "bob", "morgan", "olga", "mallory", "grace")
TEXT = "Ένα κείμενο."  # of members: none of it is English
ADDRESS = "ada@example.net"
# All texts of the page, and of the parts that are shown later. What has another language says so.
TEXTS = """() => {
  const names = ["title", "aria-label", "alt", "placeholder", "content", "label", "data-busy",
    "data-done", "data-confirm", "data-offline", "data-draft", "data-visitor", "data-new",
    "data-waiting"];
  const others = "script, style, code, kbd, pre, .codes, [data-agent], [lang]:not(html)";
  const found = [];
  const collect = (part) => {
    for (const element of part.querySelectorAll("*")) {
      if (element.matches("template")) collect(element.content);
      if (element.closest(others) || element.matches("meta[name=viewport], meta[name=theme-color]"))
        continue;
      for (const name of names)
        if (element.hasAttribute(name)) found.push(element.getAttribute(name));
      for (const node of element.childNodes)
        if (node.nodeType === Node.TEXT_NODE) found.push(node.data);
    }
  };
  collect(document);
  return [...new Set(found.map((text) => text.trim()))];
}"""
# What a reader can press, in the order of the page, each with a name by which it is known again.
CONTROLS = """() => {
  const found = [];
  for (const control of document.querySelectorAll("main button, main summary, .menu summary")) {
    if (!control.checkVisibility({ visibilityProperty: true }) || control.closest("[inert]"))
      continue;
    const { action, mark, level, reaction } = control.dataset;
    const form = control.closest("form")?.dataset.form ?? "";
    const place = control.closest("[id]:not(h2):not(p)")?.id.replace(/[A-Za-z0-9_-]{21}/, "") ?? "";
    const name = [control.localName, action ?? place, mark, level, reaction, form].join(" ");
    if (!found.some((other) => other.name === name)) found.push({ name, form: action ? "" : form });
    control.dataset.control ??= name;
  }
  return found;
}"""
# Fill a form as a member does who is in a hurry.
FILL = """(form, values) => {
  for (const control of form.elements) {
    if (control.type === "checkbox" || control.type === "radio") control.checked = true;
    else if (control.name in values) control.value = values[control.name];
    else if (control.type === "password") control.value = values.password;
    else if (control.matches("textarea, [type=text]")) control.value ||= values.text;
    control.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""
VALUES = {
    "password": PASSWORD,
    "current_password": PASSWORD,
    "text": TEXT,
    "url": "https://chat.example.net/x",
    "email": ADDRESS,
    "accent": "#204f95",
    "username": "newcomer",
}
LAST = ("delete", "end-session", "remove-everything", "backup", "account", "removal")
# Addresses, ids, secrets, colors, names of programs and "Re:" are the same in all languages.
SAME = re.compile(
    r"https?://\S+|\S+@\S+|@[\w-]+|#[0-9a-f]{6}|\b[\w-]{21,}\b|\b(?:UTC|Europe/Berlin)\b|"
    rf"\b(?:{'|'.join(NAMES)}|newcomer)\b|"
    r"\bRe:|</?[^>]+>|\b[kMG]B\b|\.png\b|\b(?:Chrome|Linux)\b"
)
ENGLISH = re.compile("[A-Za-z]{2,}")


# What the script says about each error, by its code.
EXPLAIN = """async ([problems, inputs]) => {
  const { src } = document.querySelector("script[type=module]");
  const { explainError, explainProblem } = await import(new URL("words.js", src));
  const tasks = ["write", "delete", "file", "image", "other"];
  return [
    ...tasks.flatMap((task) => problems.map((code) => explainProblem({ code }, task))),
    ...tasks.map((task) => explainProblem(null, task)),
    ...inputs.map((code) => explainError({ code }, "content")),
  ];
}"""


class Walk:
    """The pages as one member sees them."""

    def __init__(self, page, seen):
        self.page, self.seen, self.done = page, seen, set()
        self.wrong = {}
        page.on("dialog", self._answer)

    def _answer(self, dialog):
        self.note([dialog.message])
        dialog.accept()

    def note(self, texts):
        self.seen.update(texts)
        for text in texts:
            if ENGLISH.search(SAME.sub("", text)):
                self.wrong.setdefault(text, self.page.url)

    def read(self, script):
        """Return what a script finds on the page, once a form does not lead to another one."""
        for _ in range(10):
            with suppress(PlaywrightError):
                return self.page.evaluate(script)
            self.page.wait_for_timeout(500)
        raise AssertionError(self.page.url)

    def check(self):
        """Note what of the page is English, and whether anything is too wide."""
        self.note(self.read(TEXTS))
        if self.read(OVERFLOW):
            self.wrong.setdefault("it is too wide", self.page.url)

    def visit(self, path):
        """Open a page, and press all that was not pressed yet, in this order: what deletes is last.

        A form is sent without values first.
        """
        self.open(path)
        for _ in range(60):
            controls = [each for each in self.read(CONTROLS) if self.is_new(each)]
            if not controls:
                break
            controls.sort(key=lambda each: any(word in each["name"] for word in LAST))
            self.press(controls[0])
            if not self.page.url.endswith(path):
                self.open(path)

    def open(self, path):
        self.page.goto(path)
        self.page.wait_for_timeout(300)
        self.check()

    def is_new(self, control):
        is_last = "sign-out" in control["name"]  # what follows would be that of a visitor
        return not is_last and (control["name"], "") not in self.done

    def press(self, control):
        name, form = control["name"], control["form"]
        button = self.page.locator(f'[data-control="{name}"]').filter(visible=True).first
        is_empty = bool(form) and (name, "empty") not in self.done
        self.done.add((name, "empty" if is_empty else ""))
        with suppress(PlaywrightError):  # what the press before has removed, or has led away from
            if form and not is_empty:
                filled = self.page.locator(f'form[data-form="{form}"]').filter(visible=True).first
                filled.evaluate(FILL, VALUES, timeout=1000)
            button.click(timeout=1000)
        self.page.wait_for_timeout(250)
        self.check()


@pytest.fixture
def start(start_site, tmp_path, start_mail_server):
    """Return a function that starts a site in a language that is made up, with mails."""

    def start(language):
        write_catalogs(tmp_path / "languages")
        return start_site(
            app="tests.live.pseudo:app",
            PSEUDO_LANGUAGES=str(tmp_path / "languages"),
            PSEUDO=language,
            POSTING_NAME="織機",
            POSTING_DESCRIPTION="織",
            POSTING_SMTP_URL=f"smtp://localhost:{start_mail_server()}",
            POSTING_MAIL_FROM="織 <posting@example.org>",
            WEB_CONCURRENCY="2",
            GUNICORN_CMD_ARGS="--threads 4",
        )

    return start


class Content:
    """The content of a site, with a thing of each kind that pages show."""

    def __init__(self, site):
        self.site = site
        self.clients = {name: self.sign_up(name) for name in NAMES}
        database = site.gunicorns[0].environment["POSTING_DATABASE_URL"]
        flask(database, "users", "promote", "morgan")
        flask(database, "users", "promote", "olga", "--owner")
        choices = {"about": TEXT, "rules": TEXT, "moderation_log": "public", "accent": "#204f95"}
        self.send("olga", "PATCH", "/site", json=choices | {"invitations": "members"})
        topic = self.send("olga", "POST", "/topics", json={"name": "Θέμα", "color": "red"})["id"]
        self.post = self.write("ada", topics=[topic])
        self.topic = f"/t/{topic}"
        for alt in ("", "Εικόνα"):
            self.send("ada", "POST", f"{self.post}/images", files=picture(), data={"alt": alt})
        comment = self.answer("bob", f"{TEXT} @ada @morgan")
        self.answer("ada", parent_id=comment)
        self.send("ada", "PATCH", f"/comments/{self.answer('ada')}", json={"content": "Νέο."})
        deleted = self.answer("mallory")
        self.answer("bob", parent_id=deleted)
        self.send("bob", "DELETE", f"/comments/{self.answer('bob', parent_id=deleted)}")
        self.send("morgan", "DELETE", f"/comments/{deleted}?reason={TEXT}")
        self.send("bob", "PUT", f"{self.post}/reactions/heart")
        self.other = self.write("mallory", content=f"{TEXT}[^α]\n\n|α|\n|-|\n\n![](/x)\n\n[^α]: Α.")
        for target in (self.other, f"/comments/{comment}", self.user("mallory")):
            self.send("ada", "POST", f"{target}/reports", json={"reason": TEXT})
        for mark in ("lock", "pin"):
            self.send("morgan", "PUT", f"{self.other}/{mark}")
        for _ in range(60):
            self.answer("grace")

    def sign_up(self, name):
        client = self.site.client()
        account = {"username": name, "password": PASSWORD}
        client.post(f"{self.site.url}/signup", json=account).raise_for_status()
        client.post(f"{self.site.url}/signin", json=account).raise_for_status()
        return client

    def send(self, name, method, path, **body):
        response = self.clients[name].request(method, self.site.url + path, **body)
        assert response.ok, (path, response.text)
        return response.json() if response.content else None

    def write(self, name, **fields):
        post = self.send(name, "POST", "/posts", json={"title": "Τίτλος", "content": TEXT} | fields)
        return f"/posts/{post['id']}"

    def answer(self, name, content=TEXT, **fields):
        body = {"content": content} | fields
        return self.send(name, "POST", f"{self.post}/comments", json=body)["id"]

    def user(self, name):
        return f"/users/{self.send(name, 'GET', '/users/me')['id']}"

    def paths(self):
        """Return the paths of the pages by who reads them."""
        post, other = (path.replace("/posts/", "/p/") for path in (self.post, self.other))
        content = ["/", "/?sort=active", self.topic, post, f"{post}?sort=newest", other, "/@ada"]
        content += ["/@ada?show=comments", "/members", "/members?sort=name"]
        search = ["/search", "/search?q=Κείμενο", "/search?q=ada&show=members", "/search?q=Τιτλοσ"]
        entry = ["/signin", "/signup", "/signup#code", "/reset", f"/reset#{'a' * 64}"]
        entry += [f"/confirm#{'a' * 64}", f"/unsubscribe/letter/{'a' * 21}"]
        entry += [f"/unsubscribe/notifications/{'a' * 21}", "/account-deleted?content=kept"]
        errors = ["/nowhere", f"/p/{'a' * 21}", "/@unknown", "/?cursor=x", f"/search?q={'ε' * 300}"]
        own = ["/write", f"{post}/edit", "/inbox", "/unsent"]
        settings = ["profile", "notifications", "security", "invitations", "programs", "account"]
        own += [f"/settings#{tab}" for tab in settings]
        keeping = ["site", "pictures", "topics", "care", "webhooks"]
        return {
            "": [*content, *search, *entry, *errors, "/about", *own[:4], "/moderation", "/keeping"],
            "bob": ["/", post, other, "/@ada", "/@bob", *own],
            "ada": [post, "/write", "/inbox"],
            "morgan": ["/moderation", post, "/@mallory"],
            "olga": [*(f"/keeping#{tab}" for tab in keeping), "/@grace"],
        }


def picture():
    return {"file": ("εικόνα.png", pictures.png())}


def sign_in_at(page, name):
    """Sign in by the form, whose labels are in another language."""
    page.goto("/signin")
    page.locator("[name=username]").fill(name)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("form[data-form=sign-in] button:not([type=button])").click()
    page.wait_for_url(lambda url: url.endswith("/"))


@pytest.mark.parametrize("language", LETTERS)
def test_no_text_of_a_page_is_english(language, start, people):
    """Each page has a place for texts that are longer, and that are written from right to left."""
    content = Content(start(language))
    seen = set()
    is_narrow = language == "ar"
    size = {"width": 320, "height": 800} if is_narrow else {"width": 1280, "height": 800}
    for name, paths in content.paths().items():
        page = people.open_page(base_url=content.site.url, ignore_https_errors=True, viewport=size)
        if name:
            sign_in_at(page, name)
        walk = Walk(page, seen)
        for path in paths:
            (walk.visit if is_narrow else walk.open)(path)
        assert walk.wrong == {}, name
        direction = page.evaluate("getComputedStyle(document.body).direction")
        assert direction == ("rtl" if is_narrow else "ltr")
    if is_narrow:
        pseudo = to_pseudo(language)
        texts = {pseudo(as_list(message.id)[0]) for message in extract("script") if message.id}
        assert len(texts & seen) > 30  # without those that have values


@pytest.mark.usefixtures("app")  # which imports all features, and so all codes
def test_no_error_of_the_script_is_english(start, people):
    page = people.open_page(base_url=start("el").url, ignore_https_errors=True)
    page.goto("/signin")
    walk = Walk(page, set())
    walk.note(page.evaluate(EXPLAIN, [problem_codes(), input_codes()]))
    assert walk.wrong == {}
    assert len(walk.seen) > 80


def test_no_mail_is_english(start, people, mailbox):
    """A mail has a place for longer texts too, on the screen of a phone."""
    content = Content(start("ar"))
    body = {"email": ADDRESS, "current_password": PASSWORD}
    content.send("ada", "PUT", "/users/me/email", json=body)
    code = link_in(mailbox.wait_for_one(ADDRESS), "/confirm#").partition("#")[2]
    content.send("ada", "POST", "/email-confirmations", json={"code": code})
    content.send("ada", "PATCH", "/users/me/notifications", json={"mail": "each"})
    content.answer("bob", f"{TEXT} @ada")
    content.send("grace", "POST", "/password-resets/requests", json={"name": "ada"})
    mails = mailbox.wait_for(3)
    page = people.open_page(viewport={"width": 320, "height": 800})
    walk = Walk(page, set())
    for mail in mails:
        page.set_content(mail.get_body(("html",)).get_content())
        walk.check()
        walk.note([mail["Subject"]])
        assert page.evaluate("getComputedStyle(document.body).direction") == "rtl"
    assert walk.wrong == {}
