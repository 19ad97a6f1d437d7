"""Moderators suspend a member, delete everything by a member, and delete the account."""

from playwright.sync_api import expect

from tests.live.browser import answer, name_of, press_rare, sign_in, write
from tests.live.moderation import ADVERTISING, expect_in_inbox, fill_opened, press, status


def test_a_suspension_is_lifted(url, sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    author = name_of(ada)
    morgan.goto(f"/@{author}")
    press(morgan, "Moderate")
    panel = morgan.get_by_role("group", name="What moderators see")
    expect(panel).to_be_focused()
    expect(panel).to_contain_text("Has 0 posts, 0 comments, 0 images and 0 files.")
    expect(panel.get_by_role("button", name="Lift the suspension")).to_be_hidden()
    press(panel, "Suspend")
    morgan.get_by_label("Until a moderator lifts it").check()
    morgan.locator(".opened").get_by_role("textbox").focus()
    fill_opened(morgan, ADVERTISING, "Suspend")
    expect(panel).to_contain_text("until a moderator lifts it. Reason: This is advertising.")
    expect(panel).to_be_focused()
    ada.goto("/settings")
    expect(ada.get_by_text("Sign in to see your settings.")).to_be_visible()
    press(panel, "Lift the suspension")
    expect(status(morgan)).to_have_text("The suspension is lifted.")
    expect(panel).not_to_contain_text("Suspended since")
    ada.goto("/signin")
    sign_in(ada, author)
    expect(ada).to_have_url(f"{url}/")
    press(morgan, "Moderate")
    expect(panel).to_have_count(0)
    morgan.goto("/moderation")
    log = morgan.locator("[data-log] > li")
    for act in ("suspended", "restored"):
        text = f"{name_of(morgan)} {act} {author}"
        expect(log.filter(has_text=text)).to_have_count(1)
    expect(morgan.get_by_text("There are none.").first).to_be_visible()
    morgan.goto(f"/@{name_of(morgan)}")
    press(morgan, "Moderate")
    for name in ("Suspend", "Delete everything by this member", "Delete the account"):
        expect(panel.get_by_role("button", name=name)).to_be_hidden()


def test_a_second_suspension_shows_the_first_before_it_replaces_it(sign_up, sign_up_moderator):
    ada, morgan, olga = sign_up(), sign_up_moderator(), sign_up_moderator()
    panel = olga.get_by_role("group", name="What moderators see")
    for moderator in (morgan, olga):
        moderator.goto(f"/@{name_of(ada)}")
        press(moderator, "Moderate")
        press(moderator.get_by_role("group", name="What moderators see"), "Suspend")
    fill_opened(morgan, ADVERTISING, "Suspend")
    expect(morgan.get_by_role("button", name="Lift the suspension")).to_be_visible()
    fill_opened(olga, "Rude words.", "Suspend")
    problem = olga.locator(".opened .problem").last
    expect(problem).to_contain_text(f"Reason: {ADVERTISING} Suspend again to replace this.")
    expect(olga.locator(".opened").get_by_role("textbox")).to_have_value("Rude words.")
    press(olga.locator(".opened"), "Suspend")
    expect(panel).to_contain_text("Reason: Rude words.")


def test_everything_by_a_member_is_deleted_in_steps(sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    for title in ("On looms", "On mills"):
        write(ada, title)
        answer(ada, "Buy them now.")
    morgan.goto(f"/@{name_of(ada)}")
    press(morgan, "Moderate")
    press(morgan, "Delete everything by this member")
    form = morgan.locator(".opened")
    expect(form).to_contain_text("There are 2 posts, 2 comments, 0 images and 0 files.")
    steps = []

    def answer_late(route):
        """Pretend that there is much more, and let the test continue the second step."""
        steps.append(route)
        if len(steps) == 1:
            route.fulfill(json={"removed": 2000, "left": 4})
        elif len(steps) > 2:
            route.continue_()

    morgan.route("**/removal", answer_late)
    fill_opened(morgan, ADVERTISING, "Delete everything")
    expect(form.get_by_role("progressbar")).to_have_js_property("value", 2000)
    expect(form.get_by_role("progressbar")).to_have_js_property("max", 2004)
    steps[1].continue_()
    expect(morgan.get_by_text("No posts yet.")).to_be_visible()
    expect(status(morgan)).to_have_text("Everything by this member is deleted.")
    assert all(step.request.post_data_json == {"reason": ADVERTISING} for step in steps)
    expect_in_inbox(ada, "A moderator has deleted something of yours", f"Reason: {ADVERTISING}")


def test_a_removal_ends_while_the_member_goes_on_writing(sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    write(ada)
    morgan.goto(f"/@{name_of(ada)}")
    press(morgan, "Moderate")
    press(morgan, "Delete everything by this member")
    for removed in (0, 1):
        step = {"removed": removed, "left": 1}
        morgan.route("**/removal", lambda route: route.fulfill(json=step))  # noqa: B023
        fill_opened(morgan, ADVERTISING, "Delete everything")
        expect(status(morgan)).to_contain_text("The member has written something new.")
        expect(morgan.get_by_role("heading", level=1)).to_be_focused()
        press(morgan, "Moderate")
        press(morgan, "Delete everything by this member")


def test_an_account_is_deleted_when_nothing_by_it_is_left(url, sign_up, sign_up_moderator):
    ada, morgan = sign_up(), sign_up_moderator()
    name = name_of(ada)
    write(ada, "On looms")
    everything, account = "Delete everything by this member", "Delete the account"
    morgan.goto(f"/@{name}")
    press(morgan, "Moderate")
    expect(morgan.get_by_role("button", name=account)).to_be_hidden()
    press(morgan, everything)
    fill_opened(morgan, "", "Delete everything")
    expect(status(morgan)).to_have_text("Everything by this member is deleted.")
    press(morgan, "Moderate")
    expect(morgan.get_by_role("button", name=everything)).to_be_hidden()
    press(morgan, account)
    expect(morgan.locator(".opened")).to_contain_text(f"Delete the account of {name}?")
    write(ada, "On mills")  # meanwhile
    fill_opened(morgan, "", account)
    expect(morgan.locator(".opened .problem")).to_contain_text("has posts or comments left")
    ada.once("dialog", lambda dialog: dialog.accept())
    press_rare(ada.locator("#post"), "Delete")
    expect(status(ada)).to_have_text("The post is deleted.")
    press(morgan.locator(".opened"), account)
    expect(morgan).to_have_url(f"{url}/moderation")
    expect(status(morgan)).to_have_text("The account is deleted.")
    log = morgan.locator("[data-log] > li").first
    expect(log).to_contain_text(f"{name_of(morgan)} deleted a member")
    assert morgan.goto(f"/@{name}").status == 404
