"""The style sheets and the script of pages: URLs, modules and size."""

import gzip
import re

import pytest

from posting.web.system import FOLDER


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
    mark, script = [script["src"] for script in page.all("script")]
    assert mark.endswith("/mark.js")
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


def test_the_attributes_that_templates_and_script_share_are_listed_in_one_place():
    templates = FOLDER.parent / "templates" / "pages"
    listed, base = (templates / "base.html").read_text().split("#}", 1)
    files = [file for file in templates.iterdir() if file.name != "base.html"]
    used = base + "".join(file.read_text() for file in files)
    # Which `forms`, `elements` and the script add.
    limits = {"data-max", "data-initial", "data-hue", "data-new"}
    assert set(re.findall("data-[a-z-]+", listed)) == set(re.findall("data-[a-z-]+", used)) | limits
    script = "".join(file.read_text() for file in FOLDER.glob("*.js") if file.name != "docs.js")
    names = {re.sub("([A-Z])", r"-\1", name) for name in re.findall(r"\bdataset\.(\w+)", script)}
    assert {f"data-{name.lower()}" for name in names} <= set(re.findall("data-[a-z-]+", listed))
