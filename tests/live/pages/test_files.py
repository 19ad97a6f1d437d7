"""Files that are added to a text, in a browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.live.browser import (
    TEXT,
    TIMEOUT,
    TITLE,
    expect_post,
    fill_editor,
    press_rare,
    publish,
    tab_to,
)

ROWS = "form:visible [data-downloads] > li"


@pytest.fixture
def documents(tmp_path):
    """Two files, a PDF and a table."""
    (tmp_path / "minutes.pdf").write_bytes(b"%PDF-1.7\n")
    (tmp_path / "table.csv").write_bytes(b"a,b\n" * 500)
    return [tmp_path / "minutes.pdf", tmp_path / "table.csv"]


def add(page, files):
    """Add files, and wait until the service has them."""
    field = page.locator("form:visible [name=files]").last
    before = len(field.input_value().split())
    page.get_by_label("Add files").last.set_input_files(files)
    ids = rf"([\w-]{{21}} ?){{{before + len(files)}}}"
    expect(field).to_have_value(re.compile(ids), timeout=TIMEOUT)


def downloads(page, part="#post"):
    return page.locator(f"{part} .downloads a")


def save(page, link):
    """Click on a link to a file; return what is saved, and its name."""
    with page.expect_download() as saved:
        link.click()
    return saved.value.path().read_bytes(), saved.value.suggested_filename


def test_a_post_is_published_with_files(sign_up, documents):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, documents)
    expect(page.locator(ROWS)).to_have_text(
        [re.compile(r"minutes.pdf 9 bytes"), re.compile("2 kB")]
    )
    page.get_by_role("button", name="Remove table.csv").click()
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.get_by_label("Add files")).to_be_focused()
    publish(page)
    expect_post(page)
    expect(downloads(page)).to_have_text("minutes.pdf")
    assert save(page, downloads(page)) == (b"%PDF-1.7\n", "minutes.pdf")


def test_files_are_added_in_an_edit_and_deleted_in_place(sign_up, documents):
    page = sign_up()
    page.on("dialog", lambda dialog: dialog.accept())
    fill_editor(page, TITLE, TEXT)
    add(page, documents[:1])
    publish(page)
    expect_post(page)
    page.get_by_role("link", name="Edit").click()
    expect(page.locator(ROWS)).to_have_count(1)
    add(page, documents[1:])
    page.get_by_role("button", name="Save").click()
    expect(downloads(page)).to_have_text(["minutes.pdf", "table.csv"])
    page.get_by_text("Delete files").click()
    page.get_by_role("button", name="Delete minutes.pdf").click()
    expect(page.get_by_role("status")).to_have_text("The file is deleted.")
    expect(downloads(page)).to_have_text(["table.csv"])


def test_a_comment_and_its_edit_have_files(sign_up, documents):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    publish(page)
    expect_post(page)
    page.get_by_label("Your comment").fill("See this.")
    add(page, documents[:1])
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(downloads(page, ".thread")).to_have_text(["minutes.pdf"])
    expect(page.locator(ROWS)).to_have_count(0)
    press_rare(page.locator(".thread"), "Edit")
    opened = page.locator(".opened")
    expect(opened.locator("[data-downloads] > li")).to_have_count(1)
    opened.get_by_role("button", name="Remove minutes.pdf").click()
    opened.locator("[data-files=files]").set_input_files(documents[1])
    expect(opened.locator("[name=files]")).to_have_value(re.compile("."))
    opened.get_by_role("button", name="Save").click()
    expect(downloads(page, ".thread")).to_have_text(["table.csv"])


def test_a_draft_keeps_its_files(sign_up, documents):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, documents)
    page.reload()
    expect(page.locator(ROWS)).to_have_count(2)
    expect(page.locator(ROWS).first).to_contain_text("minutes.pdf 9 bytes")
    publish(page)
    expect(downloads(page)).to_have_count(2)


def test_a_draft_that_was_published_keeps_its_files(sign_up, documents):
    """The tab was closed after the request, so the draft is still there."""
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    add(page, documents[:1])
    draft = page.evaluate("JSON.stringify(localStorage)")
    publish(page)
    expect_post(page)
    url = page.url
    page.evaluate("(draft) => Object.assign(localStorage, JSON.parse(draft))", draft)
    page.goto(url.partition("/p/")[0] + "/unsent")
    page.get_by_role("link", name=TITLE).click()
    expect(page.locator(ROWS)).to_contain_text("minutes.pdf 9 bytes")
    publish(page)
    page.wait_for_url(url)  # once, by the same key


def test_what_cannot_be_added_is_named(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    files = []
    for name, data in (("a.exe", b"MZ"), ("b.pdf", b""), ("c.pdf", b"x" * 11_000_000)):
        files.append(tmp_path / name)
        files[-1].write_bytes(data)
    page.get_by_label("Add files").set_input_files(files)
    error = page.locator("#post-files-error")
    expect(error).to_contain_text("a.exe is not of a kind that can be added.")
    expect(error).to_contain_text("b.pdf is empty.")
    expect(error).to_contain_text("c.pdf is larger than 10.5 MB.")
    expect(page.locator(ROWS)).to_have_count(0)


def test_the_service_refuses_what_only_has_the_name(sign_up, tmp_path):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    (tmp_path / "a.pdf").write_bytes(b"<html>")
    page.get_by_label("Add files").set_input_files(tmp_path / "a.pdf")
    expect(page.locator(f"{ROWS} .problem")).to_contain_text("The service cannot use this file:")
    publish(page)
    expect(page.get_by_text("Some files could not be sent.")).to_be_visible()
    page.get_by_role("button", name="Remove a.pdf").click()
    publish(page)
    expect_post(page)


DROP = """([name, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([bytes], name, { type: name.endsWith("png") ? "image/png" : "" }));
  const event = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector("#post-content").dispatchEvent(event);
}"""


def test_a_file_is_dropped(sign_up):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    page.evaluate(DROP, ["minutes.pdf", "%PDF-1.7"])
    expect(page.locator(ROWS)).to_contain_text("minutes.pdf 8 bytes")
    expect(page.locator("[data-images] > li")).to_have_count(0)


def test_files_by_keyboard(sign_up, documents):
    page = sign_up()
    fill_editor(page, TITLE, TEXT)
    with page.expect_file_chooser() as chooser:
        tab_to(page, "Add files", "Enter")
    chooser.value.set_files(documents)
    expect(page.locator(ROWS)).to_have_count(2)
    tab_to(page, "Remove minutes.pdf", "Enter")
    expect(page.locator(ROWS)).to_have_count(1)
    tab_to(page, "Publish", "Enter")
    expect(downloads(page)).to_have_text("table.csv")


HOSTILE = "<!doctype html><script>window.parent.document.title = document.cookie</script>"
SEND = """async ([name, text]) => {
  const send = async (path, options) => (await fetch(path, { method: "POST", ...options })).json();
  const body = new FormData();
  body.append("file", new File([text], name));
  const { id } = await send("/files", { body });
  const headers = { "Content-Type": "application/json" };
  const post = { title: "x", content: "y", files: [id] };
  return (await send("/posts", { headers, body: JSON.stringify(post) })).files[0].url;
}"""


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.pdf", "a.gpx", "a.zip"])
def test_no_file_runs_in_a_browser(sign_up, name):
    """It is a download, whatever is in it. The policy of pages allows no frame with it either."""
    page = sign_up()
    beginning = {"a.pdf": "%PDF-1.7\n", "a.gpx": "<gpx >", "a.zip": "PK\x03\x04"}.get(name, "")
    url = page.evaluate(SEND, [name, beginning + HOSTILE])
    title = page.title()
    with page.expect_download() as saved:
        page.evaluate("(url) => { location = url }", url)
    assert saved.value.suggested_filename == name
    assert page.title() == title
    response = page.request.get(url)
    assert response.headers["content-type"].partition(";")[0] in {
        *("text/plain", "text/csv", "application/pdf", "application/gpx+xml", "application/zip")
    }
