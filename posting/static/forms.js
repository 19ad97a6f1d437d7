// Forms: `<form data-api>` is sent as one request to its action. What follows is said by `data-done`,
// `data-next`, or the module that owns the form, by its `data-form`.

import { me, writer } from "./account.js";
import { Problem, request, versionOf } from "./api.js";
import { all, onEvent } from "./dom.js";
import { forgetDraft, keepDraft, keyOf, restoreDraft } from "./drafts.js";
import { addLink, bodyOf, clearErrors, noticeOf, showErrors } from "./fields.js";
import { goTo, ready, root } from "./page.js";

/**
 * @typedef {object} Handler
 * @property {(form: HTMLFormElement, data: any, etag: string | null) => unknown} sent Return false
 *   to go on as for other forms.
 * @property {() => Promise<unknown>} [prepare] What must be done before the form is sent.
 * @property {() => boolean} [hasFiles] Whether it holds files, which no draft can keep.
 * @property {boolean} [isFilled] Whether the module makes the form usable when it has filled it.
 */

/** @type {Record<string, Handler>} */
const handlers = {};

/**
 * Register what follows when forms with a name were sent.
 * @param {string} name
 * @param {Handler} handler
 */
export function onForm(name, handler) {
  handlers[name] = handler;
}

const fill = (template, values) =>
  template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));

/** @param {HTMLFormElement} form */
async function send(form) {
  const { api, version } = form.dataset;
  const handler = handlers[form.dataset.form];
  let url = fill(decodeURI(form.action), { me: writer });
  const body = bodyOf(form);
  /** @type {Record<string, string>} */
  const headers = {};
  if (api === "POST" && me) headers["Idempotency-Key"] = keyOf(form, body);
  if (version) headers["If-Match"] = `"${version}"`;
  if (api === "DELETE") url += `?${new URLSearchParams(body)}`;
  const { data, etag } = await request(api, url, {
    body: api === "DELETE" ? undefined : body,
    headers,
  });
  forgetDraft(form);
  if (handler && (await handler.sent(form, data, etag)) !== false) return;
  if (form.dataset.done) return showDone(form);
  goTo(form.dataset.next ? fill(form.dataset.next, data) : location.href);
}

/** @param {HTMLFormElement} form */
export function showDone(form) {
  const place = noticeOf(form);
  place.textContent = form.dataset.done;
  place.classList.add("done");
}

/** @param {HTMLFormElement} form */
async function submit(form) {
  const handler = handlers[form.dataset.form];
  if (form.dataset.confirm && !confirm(form.dataset.confirm)) return;
  form.classList.add("busy");
  clearErrors(form);
  // What is typed while the text is being sent would be lost.
  const controls = all(form, "input, textarea").filter((control) => !control.readOnly);
  for (const control of controls) control.readOnly = true;
  try {
    await handler?.prepare?.();
    await send(form);
  } catch (error) {
    const problem = error instanceof Problem ? error : new Problem(0);
    showErrors(form, problem);
    if (problem.status === 401 && form.dataset.form !== "sign-in")
      offerToSignIn(form, handler?.hasFiles?.());
    if (problem.status === 412) await offerToReplace(form);
  } finally {
    form.classList.remove("busy");
    for (const control of controls) control.readOnly = false;
  }
}

function offerToSignIn(form, hasFiles) {
  keepDraft(form);
  const here = encodeURIComponent(location.pathname + location.search);
  // This page can wait for another tab.
  if (hasFiles) addLink(form, "Sign in in a new tab, and try again.", `${root}/signin`, "_blank");
  else addLink(form, "Sign in; what you wrote is kept.", `${root}/signin?next=${here}`);
}

/** After a conflict, let the next attempt replace what is there now. */
async function offerToReplace(form) {
  addLink(form, "See what is there now", form.dataset.current ?? location.href, "_blank");
  try {
    const { etag } = await request("GET", form.action);
    form.dataset.version = versionOf(etag);
  } catch {
    return; // it is gone, or there is no connection
  }
  keepDraft(form);
  noticeOf(form).append(", or save again to replace it.");
}

onEvent("submit", (form, event) => {
  if (!form.dataset.api) return;
  event.preventDefault();
  if (!form.classList.contains("busy")) submit(form);
});

ready(() => {
  for (const form of document.forms) {
    if (handlers[form.dataset.form]?.isFilled) continue;
    form.inert = false;
    restoreDraft(form);
  }
});
