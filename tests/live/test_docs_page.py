"""The docs page in a real browser, with its "Try it out" forms."""

import os
import shutil
import subprocess
import time
from base64 import b64encode

import pytest
import requests

from tests.helpers import pictures
from tests.live.conftest import free_port

CHROMIUM = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,2400",
]
# Open an operation, fill in its path and its body (text, or a file as base64), execute it, and
# return the status that the page shows, the text of the response, and the width of its image.
TRY_OUT = """
const [operation, id, body, file, done] = arguments;
const section = () => document.querySelector(`[id$="-${operation}"]`);
const shown = (selector) => section()?.querySelector(selector);
const until = (find, then) => {
  const found = find();
  return found ? then(found) : setTimeout(() => until(find, then), 50);
};
const fill = (element, value) => {
  const set = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), "value").set;
  set.call(element, value);
  for (const type of ["input", "change"]) {
    element.dispatchEvent(new Event(type, { bubbles: true }));
  }
};
const upload = (element, name) => {
  const files = new DataTransfer();
  const bytes = Uint8Array.from(atob(file), (character) => character.charCodeAt(0));
  files.items.add(new File([bytes], name));
  element.files = files.files;
  element.dispatchEvent(new Event("change", { bubbles: true }));
};
const finish = (cell) => {
  const image = shown(".live-responses-table img");
  const text = shown(".live-responses-table .highlight-code");
  done([cell.innerText.trim(), text?.innerText, image?.naturalWidth]);
};
until(() => shown(".opblock-summary-control"), (summary) => {
  summary.click();
  until(() => shown(".try-out__btn"), (button) => {
    button.click();
    until(() => shown(".execute"), (execute) => {
      if (id) fill(shown("tr[data-param-name=id] input"), id);
      if (body) fill(shown("textarea.body-param__text"), body);
      if (file) upload(shown("input[type=file]"), "image");
      setTimeout(() => {
        execute.click();
        const status = ".live-responses-table tbody td.response-col_status";
        until(() => shown(status), (cell) => setTimeout(finish, 200, cell));
      }, 500); // the page processes input with a delay
    });
  });
});
"""


class Browser:
    """Headless Chromium, driven by the WebDriver protocol (W3C)."""

    def __init__(self, driver_url, profile):
        options = {"args": [*CHROMIUM, f"--user-data-dir={profile}"]}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.url = f"{driver_url}/session"
        session = self._post("", capabilities={"alwaysMatch": capabilities})
        self.url += f"/{session['sessionId']}"
        self._post("/timeouts", script=20_000)

    def _post(self, command, **body):
        value = requests.post(self.url + command, json=body, timeout=60).json()["value"]
        assert not (isinstance(value, dict) and "error" in value), value
        return value

    def open(self, url):
        self._post("/url", url=url)

    def try_out(self, operation, body="", id="", file=b""):
        args = [operation, id, body, b64encode(file).decode()]
        return self._post("/execute/async", script=TRY_OUT, args=args)

    def console(self):
        return [entry["message"] for entry in self._post("/se/log", type="browser")]

    def close(self):
        requests.delete(self.url, timeout=60)


@pytest.fixture
def browser(tmp_path):
    if not shutil.which("chromedriver") and "CI" not in os.environ:
        pytest.skip("needs chromedriver")
    port = free_port()
    driver = subprocess.Popen(
        ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(100):
        try:
            requests.get(f"{url}/status", timeout=5)
            break
        except requests.ConnectionError:
            time.sleep(0.05)
    browser = Browser(url, tmp_path / "profile")
    yield browser
    browser.close()
    driver.terminate()
    driver.wait(10)


def test_sign_up_sign_in_post_and_upload_on_the_docs_page(serve, browser):
    url = serve().url
    browser.open(f"{url}/docs")
    ada = '{"username": "ada", "password": "a long walk by the sea"}'

    assert browser.try_out("sign_up", ada)[0].startswith("201")
    assert browser.try_out("sign_in", ada)[0].startswith("200")
    status, text, _ = browser.try_out("get_me")
    assert status.startswith("200")
    assert '"username": "ada"' in text
    status, text, _ = browser.try_out("create_post", '{"title": "Hello", "content": "World"}')
    assert status.startswith("201")
    assert '"title": "Hello"' in text

    [post] = requests.get(f"{url}/posts", timeout=20).json()
    status, text, _ = browser.try_out("create_image", id=post["id"], file=pictures.png())
    assert status.startswith("201"), text
    [image] = requests.get(f"{url}/posts/{post['id']}", timeout=20).json()["images"]
    assert (image["width"], image["height"]) == (48, 32)
    status, _, width = browser.try_out("get_image", id=image["id"])
    assert status.startswith("200")
    assert width == 48
    assert browser.console() == []
