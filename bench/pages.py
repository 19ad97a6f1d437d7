"""`make pages`: check the pages, and print a table.

Lighthouse, axe-core, html-validate and vnu come from npm, and run with the Chromium and the Java of
the system. The exit code is 1 if a goal is missed. `--screenshots FOLDER` also saves each page.
`--pictures FOLDER` only takes the pictures of the documentation.
"""

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import requests
from PIL import Image, ImageChops
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from bench import nginx
from bench.servers import ROOT, gunicorn
from posting.pages.views import NOT_FOR_ROBOTS

NPM = ("axe-core@4.14.1", "html-validate@9.7.1", "lighthouse@13.5.0", "vnu-jar@26.9.27")
# Rules of style that the templates do not follow; all rules of validity are on.
HTML_VALIDATE = {
    "extends": ["html-validate:recommended"],
    "rules": {
        "attribute-boolean-style": "off",
        "doctype-style": "off",
        "no-implicit-button-type": "off",
        "no-trailing-whitespace": "off",
        "long-title": "off",
    },
}
MAX_FIRST_PAGE = 25 * 1024
MAX_SCRIPT = 5000  # bytes of the modules of the front page
MAX_SHIFT = 0.02  # what moves while a page is loaded
MIN_SCORE = 0.98
MAX_RUNS = 5  # of Lighthouse on a page: other load on the machine lowers its score for performance
NAME, MODERATOR, PASSWORD = "ada", "morgan", "a long walk by the sea"
SETTINGS = {
    "POSTING_NAME": "Elm Street",
    "POSTING_DESCRIPTION": "News and questions of the people who live on Elm Street.",
    "POSTING_INVITATIONS": "members",
    "POSTING_RATE_LIMITS": "off",
    "POSTING_PASSWORD_HASH": "scrypt:128:8:1",
}
SCHEMES = ("light", "dark")
GUIDE = ROOT / "bench" / "style-guide"  # images of all elements of the pages
SCREENS = [("light", 320), ("light", 360), ("light", 1280), ("dark", 320), ("dark", 1280)]
# All rules of axe-core but the experimental ones.
AXE = """async () => {
  const rules = {};
  for (const { ruleId, tags } of axe.getRules())
    rules[ruleId] = { enabled: !tags.includes("experimental") && !tags.includes("deprecated") };
  const { violations } = await axe.run({ rules });
  return violations;
}"""
SHIFT = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 300);
})"""
OVERFLOW = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

LONG_NAME = "Wolfeschlegelsteinhausenbergerdorff-Featherstonehaugh-Cholmondel"
UNUSUAL = """A table, and an image without a description:

![](/images/{image})

| Wednesday | Photographs | Responsibility | Neighbourhood | Description | Contributions |
|---|--:|:-:|---|---|---|
| 1 | 2 | 3 | 4 | 5 | 6 |

- [x] A task
- [ ] Another one[^1]

> A quote
> of two lines

```
{line}
```

# {line}

[^1]: A note.
"""
HEBREW = "מים רבים לא יוכלו לכבות את האהבה"
RIGHT_TO_LEFT = f"{HEBREW}\n\n> {HEBREW}\n\n- {HEBREW}\n\nAnd English.\n\n> A quote."
COMMENTS = 1000
# What the pictures show.
TITLE = "What should become of our bread oven?"
TEXT = """The oven behind the market hall is *thirty years old*. Twelve of us met on Sunday:

- the bricks are sound, and the door is not
- two people know **how to bake**

> We tried it for a month, and it went better than anybody thought.
"""
ANSWERS = [
    ("grace", "Count me in! What does a new door cost?"),
    ("ada", "About 400, and somebody who can *weld*."),
    ("grace", "I have a door that fits. It needs paint, and a Sunday."),
]


def open_forms(page: Page) -> None:
    """Open the form for a reply, and send it without a text."""
    page.get_by_role("link", name="Reply").first.click()
    page.locator(".opened").get_by_role("button", name="Reply").click()
    page.locator(".opened .error:not(:empty)").wait_for()


def enlarge(page: Page) -> None:
    """Look at the images of a post, one after the other."""
    page.locator("#post a:has(> img)").first.click()
    page.get_by_role("button", name="Next").click()


def write(page: Page) -> None:
    """Write a text, come back to it, preview it, choose an image, and publish without a title."""
    page.get_by_label("Text", exact=True).fill("# News\n\n- one\n\n|a|b|\n|-|-|\n|1|2|")
    page.reload()
    page.get_by_role("button", name="Discard it").wait_for()
    page.get_by_role("button", name="Preview").click()
    page.locator("[data-preview] table").wait_for()
    image = {"name": "icon.png", "mimeType": "image/png", "buffer": b"not a picture"}
    page.get_by_label("Add images").set_input_files(image)
    page.get_by_role("button", name="Publish").click()
    page.locator(".error:not(:empty)").wait_for()


def guess(page: Page) -> None:
    """Sign in with a wrong password."""
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Sign in").click()
    page.locator(".problem:not(:empty)").wait_for()


def use_code(page: Page) -> None:
    """Choose a password with a recovery code that is none."""
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Recovery code").fill("not a code")
    page.get_by_label("New password").filter(visible=True).fill("another walk by the sea")
    page.get_by_role("button", name="Save the password").click()
    page.locator(".error:not(:empty)").wait_for()


def create_secrets(page: Page) -> None:
    """Make recovery codes, an invitation and a token in the settings."""
    tabs = page.get_by_role("navigation", name="Settings")
    tabs.get_by_role("link", name="Security").click()
    page.get_by_label("Your password, to be sure").fill(PASSWORD)
    page.get_by_role("button", name="Make ten new codes").click()
    page.locator(".codes").wait_for()
    tabs.get_by_role("link", name="Invitations").click()
    page.get_by_label("Whom it is for").fill(
        "For the people in the new house at the end of the street"
    )
    page.get_by_role("button", name="Create an invitation").click()
    page.locator("[data-invitations] > li").first.wait_for()
    tabs.get_by_role("link", name="Programs").click()
    page.get_by_label("Name", exact=True).fill("Backup")
    page.get_by_role("button", name="Create a token").click()
    page.locator("[data-tokens] > li").first.wait_for()


def act(page: Page) -> None:
    """Open the form to suspend the author of what was reported, and send it without a reason."""
    page.get_by_role("button", name="Suspend the author").first.click()
    page.locator(".opened").get_by_role("button", name="Suspend").click()
    page.locator(".opened .error:not(:empty)").wait_for()


def moderate(page: Page) -> None:
    """Show what moderators see of a member, and ask to delete everything."""
    page.get_by_role("button", name="Moderate").click()
    page.get_by_role("button", name="Delete everything by this member").click()
    page.locator(".opened").wait_for()


def report(page: Page) -> None:
    """Report a member without a reason."""
    page.get_by_role("button", name="Report").click()
    page.locator(".opened").get_by_role("button", name="Report").click()
    page.locator(".opened .error:not(:empty)").wait_for()


def delete(page: Page) -> None:
    """Open the form to delete what another member has written."""
    page.locator("#post .rare summary").click()
    page.locator("#post").get_by_role("button", name="Delete").click()
    page.locator(".opened").wait_for()


def try_out(page: Page) -> None:
    """Open the form of an operation in the documentation of the API."""
    page.goto(f"{page.url}#/posts/create_post")
    page.reload()  # a link within the page opens nothing
    operation = page.locator("[id$='-create_post']")
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").wait_for()


# What people do on a page, which makes it another one.
ACTIONS = {
    "visitor": {"signin": guess, "reset": use_code, "docs": try_out, "unusual": enlarge},
    "member": {"post": open_forms, "write": write, "settings": create_secrets, "member": report},
    "moderator": {"moderation": act, "member": moderate, "post": delete},
}
# The pages on which moderators see more than other members.
FOR_MODERATORS = (
    *("front", "post", "unusual", "locked", "member", "moderation"),
    *("keeping", "pictures", "topics", "care", "webhooks"),
)


def run(folder: Path, *command: str) -> None:
    """Run a command of the service."""
    subprocess.run(
        [sys.executable, "-m", "flask", "--app", "posting", *command],
        cwd=ROOT,
        env=os.environ | environment(folder),
        check=True,
        capture_output=True,
    )


def environment(folder: Path) -> dict[str, str]:
    """Return the settings of a community in a folder."""
    return SETTINGS | {
        "POSTING_INSTANCE_PATH": str(folder),
        "POSTING_DATABASE_URL": f"sqlite:///{folder / 'posting.db'}",
    }


@contextmanager
def community(folder: Path) -> Iterator[str]:
    """Serve a community with generated content; yield its URL."""
    run(folder, "db", "upgrade")
    demo = ("--posts", "60", "--users", "12", "--comments", "600", "--images", "40")
    run(folder, "demo", *demo)
    (folder / "about.md").write_text("# Elm Street\n\nAll who live here are *welcome*.\n")
    with gunicorn("wsgi:app", "/readyz", **environment(folder)) as (url, _):
        yield url


def list_pages(folder: Path, url: str) -> dict[str, str]:
    """Add unusual posts and reports, and return the paths of the pages to check by their names."""
    posts = requests.get(f"{url}/posts?limit=60", timeout=60).json()
    post = max(posts, key=lambda each: each["comment_count"])
    member = Member(url, "featherstonehaugh-cholmondeley-w", LONG_NAME)
    unusual = member.write("A post with everything", "See below.")
    picture = (ROOT / "posting" / "static" / "icon.png").read_bytes()
    ids = [
        member.post(f"/posts/{unusual}/images", files={"file": ("icon.png", picture)})["id"]
        for _ in range(2)  # the second one is shown below the text
    ]
    text = UNUSUAL.format(image=ids[0], line="one-long-line-" * 10)
    member.session.patch(f"{url}/posts/{unusual}", json={"content": text}, timeout=60)
    hebrew = member.write(HEBREW, RIGHT_TO_LEFT)
    long = member.write("A long thread", "With whole pages of comments.")
    for id, answers in (
        (unusual, [text]),
        (hebrew, [RIGHT_TO_LEFT]),
        (long, ["Me too."] * COMMENTS),
    ):
        for answer in answers:
            member.post(f"/posts/{id}/comments", json={"content": answer})
    locked = member.write("A post that is locked and pinned", "See below.")
    moderator = Member(url, MODERATOR, "Morgan")
    run(folder, "users", "promote", MODERATOR, "--owner")
    for mark in ("lock", "pin"):
        moderator.session.put(f"{url}/posts/{locked}/{mark}", timeout=60).raise_for_status()
    picture = requests.get(find_picture(url), timeout=60).content
    for name in ("logo", "cover"):
        change = moderator.session.put(
            f"{url}/site/{name}", files={"file": (name, picture)}, timeout=60
        )
        change.raise_for_status()
    topics = requests.get(f"{url}/topics", timeout=60).json()
    reason = {"reason": f"See this line: {'one-long-line-' * 10}"}
    for target in (f"posts/{unusual}", f"posts/{post['id']}", f"users/{post['author']['id']}"):
        moderator.post(f"/{target}/reports", json=reason)
    return {
        "front": "/",
        "active": "/?sort=active",
        "topic": f"/t/{topics[0]['id']}",
        "search": "/search?q=ab*+the",
        "found-comments": "/search?q=sunday&show=comments",
        "found-members": "/search?q=a&show=members",
        "post": f"/p/{post['id']}",
        "newest": f"/p/{post['id']}?sort=newest",
        "unusual": f"/p/{unusual}",
        "hebrew": f"/p/{hebrew}",
        "long": f"/p/{long}",
        "locked": f"/p/{locked}",
        "member": f"/@{post['author']['username']}",
        "comments": f"/@{post['author']['username']}?show=comments",
        "name": f"/@{member.name}",
        "signin": "/signin",
        "invited": "/signup#code",
        "signup": "/signup",
        "reset-by-link": "/reset#code",
        "reset": "/reset",
        "write": "/write",
        "edit": f"/p/{unusual}/edit",
        "settings": "/settings",
        "inbox": "/inbox",
        "moderation": "/moderation",
        "members": "/members",
        "keeping": "/keeping",
        "pictures": "/keeping#pictures",
        "topics": "/keeping#topics",
        "care": "/keeping#care",
        "webhooks": "/keeping#webhooks",
        "unsent": "/unsent",
        "deleted": "/account-deleted",
        "about": "/about",
        "error": "/nowhere",
        "docs": "/docs",
    }


def find_picture(url: str) -> str:
    """Return the URL of a picture of some post."""
    posts = requests.get(f"{url}/posts?limit=20&expand=images", timeout=60).json()
    return next(str(image["url"]) for post in posts for image in post["images"])


class Member:
    """A member who writes through the API."""

    def __init__(self, url: str, name: str, display_name: str) -> None:
        self.url, self.name, self.session = url, name, requests.Session()
        account = {"username": name, "password": PASSWORD}
        if not requests.get(f"{url}/users?username={name}", timeout=60).json():
            self.post("/signup", json=account | {"display_name": display_name})
        self.post("/signin", json=account)

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        response = self.session.post(self.url + path, timeout=60, **body)
        response.raise_for_status()
        created: dict[str, Any] = response.json()
        return created

    def write(self, title: str, text: str) -> str:
        """Publish a post, and return its id."""
        id: str = self.post("/posts", json={"title": title, "content": text})["id"]
        return id

    def open_page(self, chromium: Browser, **options: Any) -> Page:
        """Return a page on which the member is signed in."""
        page = chromium.new_context(base_url=self.url, **options).new_page()
        page.goto("/signin")
        page.get_by_label("Username").fill(self.name)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{self.url}/")
        return page


def install(folder: Path) -> Path:
    """Install the tools of npm; return the folder with their modules."""
    subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, *NPM],
        check=True,
    )
    return folder / "node_modules"


def weigh(url: str) -> tuple[int, int]:
    """Return the bytes of the front page with style and script, and of the script alone."""
    with urlopen(url) as response:
        html = response.read()
    names = re.findall(r'"[^"]*/static/[\w-]+/([\w.-]+\.(?:css|js))"', html.decode())
    files = {name: (ROOT / "posting" / "static" / name).read_bytes() for name in names}
    sizes = {name: len(gzip.compress(body, 6)) for name, body in files.items()}
    script = sum(size for name, size in sizes.items() if name.endswith(".js"))
    return len(gzip.compress(html, 6)) + sum(sizes.values()), script


def invalid_html(modules: Path, folder: Path, pages: dict[str, str]) -> list[str]:
    """Return the errors of html-validate and vnu in pages, given as HTML by name."""
    config = folder / "htmlvalidate.json"
    config.write_text(json.dumps(HTML_VALIDATE))
    for name, html in pages.items():
        (folder / f"{name}.html").write_text(html)
    files = [str(folder / f"{name}.html") for name in pages]
    vnu = modules / "vnu-jar" / "build" / "dist" / "vnu.jar"
    errors = []
    for tool in (
        [modules / ".bin" / "html-validate", "--config", config, "--formatter", "text", *files],
        ["java", "-jar", vnu, "--errors-only", "--stdout", *files],
    ):
        run = subprocess.run(tool, check=False, capture_output=True, text=True)
        if run.returncode and not run.stdout:
            raise RuntimeError(run.stderr)
        errors += run.stdout.splitlines()
    return errors


def violations(page: Page, axe: str) -> list[str]:
    """Return the violations that axe-core finds on a page."""
    page.evaluate(axe)
    found = page.evaluate(AXE)
    return [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in found]


def faults(page: Page, axe: str) -> list[str]:
    """Return what is wrong with a page that was just loaded."""
    shift = page.evaluate(SHIFT)
    moved = [f"moves by {shift:.3f} while it is loaded"] if shift > MAX_SHIFT else []
    wide = ["is wider than the screen"] if page.evaluate(OVERFLOW) else []
    return [*moved, *wide, *violations(page, axe)]


def lighthouse(modules: Path, folder: Path, url: str) -> dict[str, float]:
    """Return the scores of Lighthouse, with its settings for mobile."""
    report = folder / "lighthouse.json"
    is_for_robots = not urlsplit(url).path.startswith(NOT_FOR_ROBOTS)
    skipped = [] if is_for_robots else ["--skip-audits=is-crawlable"]
    subprocess.run(
        [
            *(modules / ".bin" / "lighthouse", url, "--quiet", "--output=json"),
            f"--output-path={report}",
            *skipped,
            "--only-categories=performance,accessibility,best-practices,seo",
            "--chrome-flags=--headless=new --no-sandbox --ignore-certificate-errors",
        ],
        env=os.environ | {"CHROME_PATH": str(shutil.which("chromium"))},
        check=True,
        capture_output=True,
    )
    categories = json.loads(report.read_text())["categories"]
    return {name: category["score"] for name, category in categories.items()}


def best_scores(
    modules: Path, folder: Path, urls: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """Return the scores of Lighthouse for each page, by its name.

    What misses the goal is the best of some runs. They are apart from each other, since other load
    on the machine may last for a while.
    """
    best: dict[str, dict[str, float]] = {name: {} for name in urls}
    for _ in range(MAX_RUNS):
        for name, former in best.items():
            if min(former.values(), default=0) < MIN_SCORE:
                scores = lighthouse(modules, folder, urls[name])
                best[name] = {
                    each: max(score, former.get(each, 0)) for each, score in scores.items()
                }
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshots", type=Path, help="folder for an image of each page")
    parser.add_argument(
        "--style-guide", action="store_true", help="keep the images of the style guide"
    )
    parser.add_argument(
        "--pictures", type=Path, help="folder for the pictures of the documentation"
    )
    options = parser.parse_args()
    missed: list[str] = []
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with community(folder) as url:
            if options.pictures:
                take_pictures(chromium, url, options.pictures)
            elif options.style_guide:
                look_at_style_guide(chromium, folder, GUIDE)
            else:
                missed = check(chromium, folder, url, options.screenshots)
        chromium.close()
    if missed:
        sys.exit("Missed:\n" + "\n".join(missed))


def check(chromium: Browser, folder: Path, url: str, screenshots: Path | None) -> list[str]:
    """Print a table of figures, and return the goals that are missed."""
    modules = install(folder)
    pages = list_pages(folder, url)
    print("| what | figure | goal |")
    print("|---|---|---|")
    missed = check_sizes(url)
    compare_style_guide(chromium, folder)
    missed += check_in_browser(chromium, modules, url, pages, screenshots)
    headers = {"Accept": "text/html"}
    html = {
        name: requests.get(url + path, headers=headers, timeout=60).text
        for name, path in pages.items()
    }
    errors = invalid_html(modules, folder, html)
    print(f"| errors found by html-validate and vnu on {len(html)} pages | {len(errors)} | 0 |")
    missed += errors
    return missed + check_with_lighthouse(modules, folder, pages)


def look_at_style_guide(chromium: Browser, folder: Path, images: Path) -> None:
    """Save an image of the style guide in light and in dark, as of a certain day."""
    images.mkdir(exist_ok=True, parents=True)
    with gunicorn("wsgi:app", "/readyz", **environment(folder), FLASK_DEBUG="1") as (url, _):
        for scheme in SCHEMES:
            page = chromium.new_page(color_scheme=scheme, viewport={"width": 900, "height": 800})
            page.clock.set_fixed_time(datetime(2026, 3, 8, 9, 30, tzinfo=UTC))
            page.goto(f"{url}/styleguide")
            page.wait_for_load_state("networkidle")
            page.screenshot(path=images / f"{scheme}.png", full_page=True)
            page.close()


def compare_style_guide(chromium: Browser, folder: Path) -> None:
    """Print how much of the style guide looks different from its images, and show the difference.

    A difference is not a fault, because another machine has other fonts, and a change may be meant.
    `--style-guide` keeps the present images.
    """
    look_at_style_guide(chromium, folder, folder / "style-guide")
    for scheme in SCHEMES:
        name = f"{scheme}.png"
        present = Image.open(folder / "style-guide" / name).convert("RGB")
        kept = Image.open(GUIDE / name).convert("RGB") if (GUIDE / name).exists() else None
        what = f"style guide in {scheme}: pixels that differ from {GUIDE.name}/{name}"
        if kept is None or kept.size != present.size:
            size = "none" if kept is None else "another size"
            print(f"| {what} | {size} | shown |")
            continue
        difference = ImageChops.difference(present, kept)
        pixels = sum(difference.convert("L").point(lambda value: value > 0).histogram()[1:])
        print(f"| {what} | {pixels / (present.width * present.height):.2%} | shown |")
        if pixels:
            file = ROOT / "instance" / f"style-guide-{name}"
            difference.save(file)
            print(f"| the difference is in {file.relative_to(ROOT)} | | |")


def check_with_lighthouse(modules: Path, folder: Path, pages: dict[str, str]) -> list[str]:
    """Print the scores behind the shipped nginx, and return the goals that are missed."""
    missed = []
    settings = environment(folder)
    with nginx.serve(folder / "nginx", settings["POSTING_DATABASE_URL"], **settings) as site:
        names = ("front", "post", "search", "signup", "write", "inbox", "moderation")
        urls = {name: site.posting + pages[name] for name in names}
        for name, scores in best_scores(modules, folder, urls).items():
            shown = ", ".join(f"{each} {score * 100:.0f}" for each, score in scores.items())
            print(f"| Lighthouse on {name}, for mobile | {shown} | 98 |")
            missed += [f"{name}: {each}" for each, score in scores.items() if score < MIN_SCORE]
    return missed


def check_sizes(url: str) -> list[str]:
    """Print the sizes of what the front page loads, and return the goals that are missed."""
    size, script = weigh(url)
    goals = [
        ("front page, style and script, compressed", size, MAX_FIRST_PAGE),
        ("script of the front page, compressed", script, MAX_SCRIPT),
    ]
    for what, bytes_, goal in goals:
        print(f"| {what} | {bytes_:,} bytes | {goal:,} |")
    return [what for what, bytes_, goal in goals if bytes_ > goal]


def check_in_browser(
    chromium: Browser, modules: Path, url: str, pages: dict[str, str], screenshots: Path | None
) -> list[str]:
    """Look at the pages as a visitor, a member and a moderator; return the faults."""
    axe = (modules / "axe-core" / "axe.min.js").read_text()
    states: dict[str, Any] = {"visitor": None}
    for who, name in (("member", NAME), ("moderator", MODERATOR)):
        page = Member(url, name, LONG_NAME).open_page(chromium)
        states[who] = page.context.storage_state()
        page.context.close()
    Member(url, "grace", "Grace Hopper").write("On looms", f"Ask @{NAME}.")  # for the inbox
    missed: list[str] = []
    count = 0
    for scheme, width in SCREENS:
        for who, state in states.items():
            context = chromium.new_context(
                color_scheme=scheme,
                viewport={"width": width, "height": 800},
                bypass_csp=True,
                storage_state=state,
            )
            for label, page in open_pages(context, url, pages, who):
                found = faults(page, axe)
                missed += [f"{label}, {width} pixels, {scheme}: {fault}" for fault in found]
                count += 1
                if screenshots:
                    screenshots.mkdir(exist_ok=True, parents=True)
                    file = screenshots / f"{label}-{width}-{scheme}.png"
                    page.screenshot(path=file, full_page=True)
            context.close()
    print(f"| faults that axe-core and the browser find on {count} pages | {len(missed)} | 0 |")
    return missed


def open_pages(
    context: BrowserContext, url: str, pages: dict[str, str], who: str
) -> Iterator[tuple[str, Page]]:
    """Open each page, and again to do what such people do on it."""
    page = context.new_page()
    looked_at = FOR_MODERATORS if who == "moderator" else pages
    for name, action in [*dict.fromkeys(looked_at).items(), *ACTIONS[who].items()]:
        page.goto(url + pages[name])
        page.wait_for_load_state("networkidle")
        if action:
            action(page)
        yield f"{name}-{action.__name__ if action else who}", page


def take_pictures(chromium: Browser, url: str, folder: Path) -> None:
    """Save the pictures of the documentation: the front page, a thread, and the editor."""
    ada, grace = Member(url, "ada", "Ada Lovelace"), Member(url, "grace", "Grace Hopper")
    post = ada.write(TITLE, TEXT)
    parent = None
    for author, answer in ANSWERS:
        body = {"content": answer, "parent_id": parent}
        member = ada if author == "ada" else grace
        parent = member.post(f"/posts/{post}/comments", json=body)["id"]
    page = ada.open_page(chromium, viewport={"width": 900, "height": 640})
    save(page, "/", folder / "front-page.png")
    page.set_viewport_size({"width": 900, "height": 1000})
    save(page, f"/p/{post}", folder / "thread.png")
    phone = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}
    page = ada.open_page(chromium, **phone, device_scale_factor=2)
    page.goto("/write")
    page.get_by_label("Title").fill(TITLE)
    page.get_by_label("Text", exact=True).fill(TEXT)
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    page.screenshot(path=folder / "editor.png")


def save(page: Page, path: str, file: Path) -> None:
    """Save a picture of a page."""
    page.goto(path)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=file)


if __name__ == "__main__":
    main()
