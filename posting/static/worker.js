// The service worker: it shows notifications, and opens their page. It keeps no pages.

/** @type {any} */
const worker = self;

worker.addEventListener("push", (event) => {
  const { title, body, path, tag } = event.data.json();
  const options = { body, tag, data: { path }, icon: "favicon.ico" };
  event.waitUntil(worker.registration.showNotification(title, options));
});

worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const url = worker.registration.scope.replace(/\/$/, "") + event.notification.data.path;
  event.waitUntil(open(url));
});

/** Show a page in the tab that has it already, or in a new one. */
async function open(url) {
  // Tabs that were open before the worker was there do not belong to it yet.
  const tabs = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const tab = tabs.find((each) => each.url === url);
  return tab ? tab.focus() : worker.clients.openWindow(url);
}
