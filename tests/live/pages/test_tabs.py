"""The tabs of the settings."""

from playwright.sync_api import expect

from tests.live.browser import open_tab

MARKED = "[data-tabs] > [aria-current]"


def test_the_url_names_the_tab(url, sign_up):
    page = sign_up()
    page.goto("/settings")
    expect(page.locator(MARKED)).to_have_text("Profile")
    expect(page.get_by_role("heading", name="Password")).to_be_hidden()
    open_tab(page, "Security")
    expect(page).to_have_url(f"{url}/settings#security")
    expect(page.locator(MARKED)).to_have_text("Security")
    expect(page.get_by_role("heading", name="Password")).to_be_visible()
    expect(page.get_by_role("heading", name="Profile")).to_be_hidden()
    page.reload()
    expect(page.get_by_role("heading", name="Password")).to_be_visible()
    page.go_back()
    expect(page.locator(MARKED)).to_have_text("Profile")


def test_the_link_to_the_content_keeps_the_tab(sign_up):
    page = sign_up()
    page.goto("/settings#security")
    expect(page.locator(MARKED)).to_have_text("Security")
    page.get_by_role("link", name="Skip to the content").press("Enter")
    page.wait_for_url("**/settings#main")
    expect(page.get_by_role("heading", name="Password")).to_be_visible()
    expect(page.locator(MARKED)).to_have_text("Security")


def test_who_may_not_invite_sees_another_tab(sign_up):
    page = sign_up()
    page.goto("/settings#invitations")
    page.wait_for_load_state("networkidle")
    expect(page.locator(MARKED)).to_have_text("Profile")
    expect(page.get_by_role("heading", name="Profile")).to_be_visible()
    expect(page.get_by_role("link", name="Invitations")).to_be_hidden()


def test_the_page_stays_where_it_is_when_something_is_saved(sign_up):
    page = sign_up(viewport={"width": 360, "height": 400})
    page.goto("/settings")
    page.get_by_label("About you").fill("I write.")
    button = page.get_by_role("button", name="Save", exact=True)
    button.scroll_into_view_if_needed()
    page.evaluate("scrollTo({ top: 500, behavior: 'instant' })")
    before = page.evaluate("scrollY")
    page.evaluate("document.querySelector('form[data-form=profile]').requestSubmit()")
    expect(page.get_by_role("status")).to_have_text("Your profile is saved.")
    assert page.evaluate("scrollY") == before
