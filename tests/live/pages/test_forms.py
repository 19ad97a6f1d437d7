"""Forms: what is said about what was typed, keys, and what is shown while a form is sent."""

import re

import pytest
from playwright.sync_api import expect

from tests.helpers import pictures
from tests.live.browser import (
    PASSWORD,
    answer,
    expect_post,
    fill_editor,
    name_of,
    open_tab,
    press_rare,
    publish,
    write,
)

IMAGE = r"!\[\]\(/images/[\w-]{21}\)"


def test_a_text_that_is_too_long_is_counted_and_not_cut(sign_up):
    page = sign_up()
    write(page)
    text, error = page.get_by_label("Your comment"), page.locator("#comment-content-error")
    text.fill("😀" * 8000)
    expect(error).to_be_empty()
    text.fill("😀" * 9500)
    expect(error).to_have_text("500 characters left.")
    text.fill("😀" * 10_001)
    expect(error).to_have_text("This is 1 character too long.")
    page.get_by_role("button", name="Comment").click()
    expect(text).to_be_focused()
    expect(text).to_have_attribute("aria-invalid", "true")
    assert len(text.input_value()) == 10_001
    text.fill("😀" * 10_000)
    page.get_by_role("button", name="Comment").click()
    expect(page.get_by_role("status")).to_have_text("Your comment is published.")


def test_what_is_missing_is_said_in_words(sign_up):
    page = sign_up()
    fill_editor(page, " ", "")
    publish(page)
    expect(page.locator("#post-title-error")).to_have_text("Give your post a title.")
    expect(page.locator("#post-content-error")).to_have_text("Write something here.")


def test_a_name_is_trimmed_and_a_taken_one_is_said_at_its_field(people, url, sign_up):
    name = name_of(sign_up())
    page = people.open_page(base_url=url)
    page.goto("/signup")
    page.get_by_label("Username").fill(f"{name.upper()} ")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    expect(page.locator("#sign-up-username-error")).to_have_text(
        "This name is taken. Choose another one."
    )
    page.goto("/signin")
    page.get_by_label("Username").fill(f"{name} ")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".menu")).to_contain_text(name)


def test_a_password_can_be_shown(people, url):
    page = people.open_page(base_url=url)
    page.goto("/signin")
    password = page.get_by_label("Password", exact=True)
    show = page.get_by_role("button", name="Show the password")
    for shown in ("text", "password"):
        show.click()
        expect(password).to_have_attribute("type", shown)


def test_enter_goes_from_the_title_to_the_text_and_control_enter_sends(sign_up):
    page = sign_up()
    fill_editor(page, "On engines", "They weave algebra.")
    page.get_by_label("Title").press("Enter")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect_post(page)


def test_a_form_says_that_it_is_being_sent(sign_up):
    page = sign_up()
    write(page)
    held = []

    def hold(route):
        held.append(route)

    page.route("**/comments", hold)
    page.get_by_label("Your comment").fill("And cloth?")
    form = page.locator("form.comment")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_role("button", name="Publishing …")).to_be_visible()
    expect(form).to_have_attribute("aria-busy", "true")
    expect(page.get_by_role("status")).to_have_text("Publishing …")
    held[0].continue_()
    expect(page.get_by_role("button", name="Comment", exact=True)).to_be_visible()
    expect(form).not_to_have_attribute("aria-busy", "true")


def test_a_button_says_what_is_under_way(sign_up):
    page = sign_up()
    write(page)
    page.on("dialog", lambda dialog: dialog.accept())
    held = []

    def hold(route):
        held.append(route)

    page.route("**/posts/*", hold)
    press_rare(page, "Delete")
    button = page.locator("[data-action=delete-post]")
    expect(button).to_have_text("Deleting …")
    expect(page.get_by_role("status")).to_have_text("Deleting …")
    held[0].abort()
    expect(button).to_have_text("Delete")
    expect(page.get_by_role("status")).to_have_text(
        "There is no connection, so nothing was deleted. Try again."
    )


def test_what_is_kept_without_a_connection_is_a_text_alone(people, url, sign_up):
    page = sign_up()
    page.goto("/settings")
    expect(page.get_by_label("Username", exact=True)).not_to_have_value("")
    page.context.set_offline(True)
    open_tab(page, "Programs")
    page.get_by_label("Name", exact=True).fill("Backup")
    page.get_by_role("button", name="Create a token").click()
    token = page.locator("form[data-form=token] > .problem")
    expect(token).to_have_text("There is no connection. Try again.")
    open_tab(page, "Profile")
    page.get_by_label("About you").fill("I write.")
    page.get_by_role("button", name="Save").click()
    profile = page.locator("form[data-form=profile] > .problem")
    expect(profile).to_have_text("There is no connection. Your text is kept; try again.")


def test_a_session_that_ends_before_what_is_not_kept(sign_up):
    page = sign_up()
    page.goto("/settings#programs")
    page.wait_for_load_state("networkidle")
    page.context.clear_cookies()
    page.get_by_label("Name", exact=True).fill("Backup")
    page.get_by_role("button", name="Create a token").click()
    expect(page.locator(".problem a")).to_have_text("Sign in again.")


def test_choices_have_a_legend(sign_up):
    page = sign_up()
    page.goto("/settings")
    choices = (("Programs", "What it may do", 3), ("Account", "Your posts and comments", 2))
    for tab, name, number in choices:
        open_tab(page, tab)
        group = page.get_by_role("group", name=name)
        expect(group.get_by_role("radio")).to_have_count(number)


# An input method says so by `isComposing`; Safari says so by the code of the key.
@pytest.mark.parametrize("sign", [{"isComposing": True}, {"keyCode": 229}])
def test_a_key_that_ends_a_word_of_an_input_method_is_not_for_the_page(sign_up, sign):
    page = sign_up()
    write(page)
    answer(page, "And cloth?")
    page.get_by_role("link", name="Reply").click()
    press = """(control, options) => {
      const event = new KeyboardEvent("keydown", {...options, bubbles: true, cancelable: true});
      return control.dispatchEvent(event);
    }"""
    assert page.get_by_label("Your reply").evaluate(press, {"key": "Escape", **sign})
    expect(page.get_by_label("Your reply")).to_be_visible()
    page.goto("/write")
    title = page.get_by_label("Title")
    title.focus()
    assert title.evaluate(press, {"key": "Enter", **sign})
    expect(title).to_be_focused()
    for key in ("Enter", "b"):
        options = {"key": key, "ctrlKey": True, **sign}
        assert page.get_by_label("Text", exact=True).evaluate(press, options)
    expect(page.get_by_label("Text", exact=True)).to_have_value("")
    expect(page.locator("[aria-invalid]")).to_have_count(0)  # nothing was sent


def test_those_who_are_signed_in_need_no_form_for_it(people, url, sign_up):
    page = sign_up()
    for path in ("/signin", "/signup"):
        page.goto(f"{path}?next=/settings")
        expect(page.get_by_text(f"You are signed in as {name_of(page)}.")).to_be_visible()
        expect(page.get_by_label("Username")).to_be_hidden()
    page.get_by_role("link", name="Go on").click()
    expect(page).to_have_url(f"{url}/settings")


def test_a_forgotten_password_is_not_the_end(people, serve, tmp_path):
    (tmp_path / "about.md").write_text("Write to Morgan.")
    database = f"sqlite:///{tmp_path / 'posting.db'}"
    server = serve(POSTING_INSTANCE_PATH=str(tmp_path), POSTING_DATABASE_URL=database)
    page = people.open_page(base_url=server.url)
    page.goto("/signin")
    words = page.get_by_text("Forgotten your password?")
    expect(words).to_contain_text("ask the people who run Posting for a link")
    words.get_by_role("link", name="About").click()
    expect(page.get_by_text("Write to Morgan.")).to_be_visible()


def test_a_deletion_without_a_connection(sign_up):
    page = sign_up()
    write(page)
    answer(page, "And cloth?")
    page.on("dialog", lambda dialog: dialog.accept())
    page.context.set_offline(True)
    press_rare(page.locator(".level-1"), "Delete")
    expect(page.get_by_role("status")).to_have_text(
        "There is no connection, so nothing was deleted. Try again."
    )


class TestImages:
    @pytest.fixture
    def picture(self, tmp_path):
        file = tmp_path / "loom.png"
        file.write_bytes(pictures.png())
        return file

    def test_one_is_inserted_into_the_text(self, sign_up, picture):
        page = sign_up()
        fill_editor(page, "On engines", "# Looms\n\nThey weave.")
        page.get_by_label("Text", exact=True).press("Control+Home")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Image", exact=True).click()
        chooser.value.set_files(picture)
        text = page.get_by_label("Text", exact=True)
        expect(text).to_have_value(re.compile(f"^# Looms\n\n{IMAGE}\n\nThey weave.$"))
        publish(page)
        expect_post(page)
        expect(page.locator(".text img")).to_have_js_property("naturalWidth", 48)
        expect(page.locator("figure")).to_have_count(0)

    @pytest.mark.parametrize("event", ["paste", "drop"])
    def test_one_is_pasted_or_dropped(self, sign_up, event):
        page = sign_up()
        fill_editor(page, "On engines", "They weave.")
        page.get_by_label("Text", exact=True).evaluate(
            """async (text, type) => {
              const canvas = document.createElement("canvas");
              const blob = await new Promise((done) => canvas.toBlob(done));
              const files = new DataTransfer();
              files.items.add(new File([blob], "loom.png", { type: "image/png" }));
              const options = { bubbles: true, cancelable: true };
              const data = { clipboardData: files, dataTransfer: files };
              const Kind = { paste: ClipboardEvent, drop: DragEvent }[type];
              text.dispatchEvent(new Kind(type, { ...options, ...data }));
            }""",
            event,
        )
        text = page.get_by_label("Text", exact=True)
        expect(text).to_have_value(re.compile(f"^They weave.\n\n{IMAGE}\n\n$"))
