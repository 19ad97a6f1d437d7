"""The docs page in a real browser: no policy is broken, and what it shows can be tried out."""

import os
import shutil
import subprocess
import time

import pytest
import requests
from live.conftest import free_port

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
# Opens an operation, writes its body, executes it, and returns the status that the page shows.
TRY_OUT = """
const [operation, body, done] = arguments;
const section = () => document.querySelector(`[id$="-${operation}"]`);
const until = (find, then) => {
  const found = find();
  return found ? then(found) : setTimeout(() => until(find, then), 50);
};
until(() => section()?.querySelector(".opblock-summary-control"), (summary) => {
  summary.click();
  until(() => section().querySelector(".try-out__btn"), (button) => {
    button.click();
    until(() => section().querySelector(".execute"), (execute) => {
      const area = section().querySelector("textarea.body-param__text");
      if (area) {
        const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
        set.call(area, body);
        area.dispatchEvent(new Event("input", { bubbles: true }));
        area.dispatchEvent(new Event("change", { bubbles: true }));
      }
      setTimeout(() => {
        execute.click();
        const status = ".live-responses-table tbody td.response-col_status";
        until(() => section().querySelector(status), (cell) => done([
          cell.innerText.trim(),
          section().querySelector(".live-responses-table .highlight-code").innerText,
        ]));
      }, 200);
    });
  });
});
"""


class Browser:
    """Headless Chromium, spoken to in the WebDriver protocol (W3C)."""

    def __init__(self, driver_url, profile):
        options = {"args": [*CHROMIUM, f"--user-data-dir={profile}"]}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.url = f"{driver_url}/session"
        session = self._post("", capabilities={"alwaysMatch": capabilities})
        self.url += f"/{session['sessionId']}"
        self._post("/timeouts", script=20_000)

    def _post(self, command, **body):
        answer = requests.post(self.url + command, json=body, timeout=60).json()["value"]
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer

    def open(self, url):
        self._post("/url", url=url)

    def try_out(self, operation, body=""):
        return self._post("/execute/async", script=TRY_OUT, args=[operation, body])

    def console(self):
        return [entry["message"] for entry in self._post("/se/log", type="browser")]

    def close(self):
        requests.delete(self.url, timeout=60)


@pytest.fixture
def browser(tmp_path):
    if not shutil.which("chromedriver") and "CI" not in os.environ:
        pytest.skip("the docs page needs chromedriver")
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


def test_the_docs_page_signs_up_and_in_and_posts(serve, browser):
    browser.open(f"{serve().url}/docs")
    ada = '{"username": "ada", "password": "a long walk by the sea"}'

    assert browser.try_out("sign_up", ada)[0].startswith("201")
    assert browser.try_out("sign_in", ada)[0].startswith("200")
    status, shown = browser.try_out("get_me")
    assert status.startswith("200")
    assert '"username": "ada"' in shown
    status, shown = browser.try_out("create_post", '{"title": "Hello", "content": "World"}')
    assert status.startswith("201")
    assert '"title": "Hello"' in shown
    assert browser.console() == []
