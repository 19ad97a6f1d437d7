"""Hostile texts in a real browser: no script runs, and nothing is loaded from elsewhere."""

from urllib.parse import urlencode

from playwright.sync_api import expect

from tests.helpers.attacks import ATTACKS
from tests.live.browser import ADD_COMMENTS, name_of

# Adds a post for each text, with a title and a content of it; returns the ids.
ADD_POSTS = """async (texts) => {
  const headers = {"Content-Type": "application/json"};
  const ids = [];
  for (const content of texts) {
    const title = content.replace(/\\s+/g, " ").trim().slice(0, 200);
    const body = JSON.stringify({title, content});
    const answer = await fetch("/posts", {method: "POST", headers, body});
    if (answer.status === 201) ids.push((await answer.json()).id);
  }
  return ids;
}"""


def test_no_hostile_text_runs_or_loads_anything(url, sign_up):
    page = sign_up()
    loaded, dialogs = [], []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: loaded.append(request.url))
    profile = {"display_name": "<img src=x onerror=alert(1)>", "bio": "<script>alert(1)</script>"}
    assert page.request.patch(f"{url}/users/me", data=profile).ok
    ids = page.evaluate(ADD_POSTS, ATTACKS)
    assert len(ids) > 0.9 * len(ATTACKS)
    page.goto(f"/p/{ids[0]}")
    assert all(page.evaluate(ADD_COMMENTS, ATTACKS))
    loaded.clear()
    for path in (
        *(f"/p/{id}" for id in ids),
        *("/", f"/@{name_of(page)}", f"/@{name_of(page)}?show=comments", f"/p/{ids[-1]}/edit"),
        *("/search?" + urlencode({"q": "alert", "show": show}) for show in ("posts", "comments")),
    ):
        page.goto(path)
    page.goto("/write")
    for text in ATTACKS[:40]:
        page.get_by_label("Text", exact=True).fill(text)
        with page.expect_response("**/preview") as previewed:
            page.get_by_role("button", name="Preview").click()
        assert previewed.value.ok
        expect(page.get_by_role("region", name="Preview")).to_be_focused()
    assert dialogs == []
    assert [other for other in loaded if not other.startswith(f"{url}/")] == []
    assert page.evaluate("document.cookie") == ""
