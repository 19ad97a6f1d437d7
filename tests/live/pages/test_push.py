"""Notifications on a device, in Chromium. DevTools take the place of a push service."""

import json
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.live.browser import sign_out

# A browser without a network has no push service.
SUBSCRIBE = """
const keys = {p256dh: "B" + "A".repeat(86), auth: "A".repeat(22)};
PushManager.prototype.getSubscription = async () => {
  const endpoint = localStorage.getItem("endpoint");
  const key = localStorage.getItem("key");
  return endpoint && {
    endpoint,
    options: {applicationServerKey: Uint8Array.fromBase64(key, {alphabet: "base64url"}).buffer},
    toJSON: () => ({endpoint, expirationTime: null, keys}),
    unsubscribe: async () => {
      localStorage.removeItem("endpoint");
      localStorage.setItem("ended", "yes");
      return true;
    },
  };
};
PushManager.prototype.subscribe = async function ({applicationServerKey}) {
  if (applicationServerKey.length !== 87) throw Error("no key");
  localStorage.setItem("endpoint", "https://push.example.net/" + Math.random());
  localStorage.setItem("key", applicationServerKey);
  return this.getSubscription();
};
"""


# Nothing but a person can click on a notification, so the event has stand-ins.
CLICK = """
async (path) => {
  const went = [];
  self.clients.openWindow = async (url) => went.push(`opened ${url}`);
  WindowClient.prototype.focus = async function () { went.push(`showed ${this.url}`); };
  const event = new Event("notificationclick");
  event.notification = {data: {path}, close: () => went.push("closed")};
  let handled;
  event.waitUntil = (promise) => { handled = promise; };
  self.dispatchEvent(event);
  await handled;
  return went;
}
"""


@pytest.fixture
def member(sign_up, url):
    page = sign_up()
    page.context.grant_permissions(["notifications"], origin=url)
    page.context.add_init_script(SUBSCRIBE)
    page.goto("/settings#notifications")
    return page


def test_a_member_turns_notifications_on_and_off(member):
    expect(member.get_by_text("Notifications are off for this device.")).to_be_visible()
    member.get_by_role("button", name="Show notifications on this device").click()
    expect(member.get_by_text("Notifications are on for this device.")).to_be_visible()
    member.get_by_role("button", name="Show no notifications on this device").click()
    expect(member.get_by_text("Notifications are off for this device.")).to_be_visible()


def test_the_settings_add_a_device_that_the_service_has_forgotten(member):
    member.get_by_role("button", name="Show notifications on this device").click()
    expect(member.get_by_text("Notifications are on for this device.")).to_be_visible()
    with member.expect_request(lambda request: request.method == "PUT") as added:
        member.reload()
    assert added.value.url.endswith("/push/subscriptions")
    expect(member.get_by_text("Notifications are on for this device.")).to_be_visible()


def test_a_device_with_the_key_of_another_database_is_off(member):
    """Such as after the import of an archive. It can be turned on again."""
    member.get_by_role("button", name="Show notifications on this device").click()
    expect(member.get_by_text("Notifications are on for this device.")).to_be_visible()
    member.evaluate("localStorage.setItem('key', 'B' + 'A'.repeat(86))")
    member.reload()
    member.get_by_role("button", name="Show notifications on this device").click()
    expect(member.get_by_text("Notifications are on for this device.")).to_be_visible()
    assert member.evaluate("localStorage.getItem('ended')") == "yes"


def test_signing_out_ends_them(member):
    member.get_by_role("button", name="Show notifications on this device").click()
    expect(member.get_by_text("Notifications are on for this device.")).to_be_visible()
    sign_out(member)
    expect(member.get_by_role("link", name="Sign in").first).to_be_visible()
    member.wait_for_function("localStorage.getItem('ended') == 'yes'")


def test_the_worker_shows_what_is_pushed(member, url):
    member.get_by_role("button", name="Show notifications on this device").click()
    expect(member.get_by_text("Notifications are on for this device.")).to_be_visible()
    tools = member.context.new_cdp_session(member)
    registrations = []
    tools.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda e: registrations.extend(e["registrations"]),
    )
    tools.send("ServiceWorker.enable")
    member.wait_for_function("navigator.serviceWorker.ready.then(() => true)")
    while not registrations:
        member.wait_for_timeout(50)
    message = {"title": "bob commented", "body": "And cloth?", "path": "/inbox", "tag": "x"}
    tools.send(
        "ServiceWorker.deliverPushMessage",
        {
            "origin": url,
            "registrationId": registrations[-1]["registrationId"],
            "data": json.dumps(message),
        },
    )
    member.wait_for_function(
        """async () => {
          const registration = await navigator.serviceWorker.ready;
          const [shown] = await registration.getNotifications();
          return shown?.title === "bob commented" && shown.body === "And cloth?"
            && shown.data.path === "/inbox";
        }"""
    )


def test_a_click_shows_the_page_in_its_tab_or_in_a_new_one(member, url):
    with member.context.expect_event("serviceworker") as worker:
        member.get_by_role("button", name="Show notifications on this device").click()
    expect(member.get_by_text("Notifications are on for this device.")).to_be_visible()
    click = partial(worker.value.evaluate, CLICK)
    settings = "/settings#notifications"
    assert click(settings) == ["closed", f"showed {url}{settings}"]
    comment = "/p/a?comment=b#c-b"
    assert click(comment) == ["closed", f"opened {url}{comment}"]


def test_without_permission_nothing_is_sent(sign_up):
    page = sign_up()
    page.context.add_init_script("Notification.requestPermission = async () => 'denied'")
    page.goto("/settings#notifications")
    page.get_by_role("button", name="Show notifications on this device").click()
    expect(page.get_by_role("status")).to_contain_text(
        "Your browser blocks notifications of this site."
    )
