// Forms: `<form data-api>` is sent as one request to its action. What follows is said by
// `data-done`, or done by the module that owns the form, by its `data-form`.

import { me, writer } from "./account.js";
import { request, tagOf } from "./api.js";
import { showBusy } from "./busy.js";
import { all, first, onEvent } from "./dom.js";
import { forgetDraft, keepDraft, keyOf, restoreDraft } from "./drafts.js";
import { addLink, bodyOf, clearErrors, errorsOf, showErrors } from "./fields.js";
import { onKey } from "./keys.js";
import { gettext } from "./language.js";
import { ready, root } from "./page.js";
import { problemOf } from "./problem.js";
import { say } from "./status.js";

/** @typedef {import("./problem.js").Problem} Problem */

/**
 * @typedef {object} Handler
 * @property {(form: HTMLFormElement, data: any, etag: string | null) => unknown} [sent]
 * @property {(form: HTMLFormElement) => unknown} [prepare] What must be done first. With false, the
 *   form is not sent.
 * @property {(body: Record<string, string | null>, form: HTMLFormElement) => object} [toBody] What is sent, if it is not
 *   what the controls hold.
 * @property {(form: HTMLFormElement, problem: Problem) => unknown} [failed] What is done about a
 *   problem. With true, the problem is not shown.
 * @property {(form: HTMLFormElement) => boolean} [hasFiles] Whether it holds files that are not sent
 *   yet, which no draft can keep.
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

/**
 * Show a notice of the page in place of a form that was sent.
 * @param {HTMLFormElement} form
 * @param {string} selector
 */
export function replaceForm(form, selector) {
  const notice = first(document, selector);
  form.remove();
  notice.hidden = false;
  notice.focus();
}

/** @param {HTMLFormElement} form */
async function send(form) {
  const { api, version, done, draft } = form.dataset;
  // By its id, since somebody else may have signed in in another tab.
  let url = form.action.replace(/\/users\/me$/, `/users/${writer}`);
  const handler = handlers[form.dataset.form];
  const values = bodyOf(form);
  const body = handler?.toBody?.(values, form) ?? values;
  /** @type {Record<string, string>} */
  const headers = {};
  if (api === "POST" && me) headers["Idempotency-Key"] = keyOf(form, body);
  if (version) headers["If-Match"] = `"${version}"`;
  if (api === "DELETE") url += `?${new URLSearchParams(values)}`;
  const { data, etag } = await request(api, url, {
    body: api === "DELETE" ? undefined : body,
    headers,
    task: draft ? "write" : undefined,
  });
  forgetDraft(form);
  await handler?.sent?.(form, data, etag);
  if (done) say(done);
}

/** @param {HTMLFormElement} form */
async function submit(form) {
  const handler = handlers[form.dataset.form];
  clearErrors(form);
  const errors = errorsOf(form);
  if (errors.length > 0) return showErrors(form, { errors });
  const finish = showSending(form);
  try {
    if ((await handler?.prepare?.(form)) === false) return;
    await send(form);
  } catch (error) {
    const problem = problemOf(error);
    if (await handler?.failed?.(form, problem)) return;
    showErrors(form, problem);
    if (problem.status === 401 && form.dataset.form !== "sign-in")
      offerToSignIn(form, handler?.hasFiles?.(form));
    if (problem.status === 412) await offerToReplace(form);
  } finally {
    finish();
  }
}

/** Show that a form is being sent. Return the function that ends this. */
function showSending(form) {
  // What is typed while the text is being sent would be lost.
  const controls = all(form, "input, textarea").filter((control) => !control.readOnly);
  for (const control of controls) control.readOnly = true;
  const finish = showBusy(form, first(form, "button:not([type=button])"));
  return () => {
    for (const control of controls) control.readOnly = false;
    finish();
  };
}

/** @type {Set<HTMLFormElement>} forms that say that the reader is signed out */
const waiting = new Set();

function offerToSignIn(form, hasFiles) {
  keepDraft(form);
  waiting.add(form);
  const comment = form.closest("li[id]");
  const here = location.pathname + location.search + (comment ? `#${comment.id}` : "");
  const url = `${root}/signin?next=${encodeURIComponent(here)}`;
  // This page can wait for another tab.
  if (hasFiles)
    addLink(form, gettext("Sign in in a new tab, and try again."), `${root}/signin`, "_blank");
  else if (form.dataset.draft) addLink(form, gettext("Sign in; your text is kept."), url);
  else addLink(form, gettext("Sign in again."), url);
}

document.addEventListener("account", () => {
  if (!me) return;
  for (const form of waiting) clearErrors(form);
  waiting.clear();
});

/** After a conflict, let the next attempt replace what is there now. */
async function offerToReplace(form) {
  const url = form.dataset.current ?? location.href;
  const link = addLink(form, gettext("See what is there now"), url, "_blank");
  try {
    const { etag } = await request("GET", form.action);
    form.dataset.version = tagOf(etag);
  } catch {
    return; // it is gone, or there is no connection
  }
  keepDraft(form);
  const text = gettext("%(link)s, or save again to replace it.", { link: "\n" });
  const [before, after] = text.split("\n");
  link.before(before);
  link.after(after);
}

onEvent("submit", (form, event) => {
  if (!form.dataset.api) return;
  event.preventDefault();
  if (!form.classList.contains("busy")) submit(form);
});

onKey(({ form }, event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form?.requestSubmit();
});

ready(() => {
  for (const form of document.forms) {
    if (!form.dataset.api || handlers[form.dataset.form]?.isFilled) continue;
    form.inert = false;
    restoreDraft(form);
  }
});
