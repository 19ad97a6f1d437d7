// The script of the pages. Reading works without it; all writing goes through the JSON API.

const root = new URL("../", import.meta.url).pathname.replace(/\/$/, "");
const html = document.documentElement;

// Who is signed in: a mark that sign-in leaves, so that visitors cause no request and no flicker.

const KEY = `posting:${root}:`;

/** Return a stored value, or null. Browsers may refuse to store anything. */
function read(name) {
  try {
    return JSON.parse(localStorage.getItem(KEY + name) ?? "null");
  } catch {
    return null;
  }
}

/** Store a value, or remove it if it is null; return whether the browser did so. */
function store(name, value) {
  try {
    if (value === null) localStorage.removeItem(KEY + name);
    else localStorage.setItem(KEY + name, JSON.stringify(value));
    return true;
  } catch {
    return false; // it is full or turned off
  }
}

let me = read("me");
let writer = me?.id ?? null; // whose texts this page holds, also after their session has ended
let shownFor; // the member whose actions the page shows

function setMe(user) {
  me = user && { id: user.id, username: user.username, name: user.display_name, role: user.role };
  writer = me?.id ?? writer;
  const isStored = store("me", me);
  showMe();
  return isStored;
}

function showMe() {
  html.classList.toggle("member", me !== null);
  for (const element of document.querySelectorAll("[data-my-name]")) {
    element.textContent = me ? me.name || me.username : "Settings";
  }
  for (const element of document.querySelectorAll("[data-my-username]")) {
    element.value = me?.username ?? "";
  }
  for (const form of document.forms) {
    // A text that is being written stays in sight when the session ends.
    if (!me && writer && hasDraft(form) && hasText(form)) form.closest(".for-members")?.classList.remove("for-members");
  }
  const who = me && `${me.id} ${me.role}`;
  if (who === shownFor) return; // what has the focus keeps it
  shownFor = who;
  for (const actions of document.querySelectorAll(".actions[data-author]")) {
    actions.hidden = !showActions(actions, actions.dataset.author);
  }
  for (const comment of document.querySelectorAll(".thread > li")) showCommentActions(comment);
}

/** Show what the reader may do with something of an author; return whether that is anything. */
function showActions(actions, author) {
  const isAuthor = me !== null && author === me.id;
  const mayDelete = isAuthor || me?.role === "moderator";
  for (const part of actions.querySelectorAll(".for-author")) part.hidden = !isAuthor;
  for (const part of actions.querySelectorAll(".for-deleter")) part.hidden = !mayDelete;
  return isAuthor || mayDelete;
}

function showCommentActions(comment) {
  comment.querySelector(".actions")?.remove();
  if (!me || comment.querySelector(".deleted")) return;
  const actions = document.getElementById("comment-actions").content.cloneNode(true).firstElementChild;
  actions.querySelector("[data-api]").dataset.url = `${root}/comments/${comment.id.slice(2)}`;
  showActions(actions, comment.dataset.author);
  const meta = comment.querySelector(".meta");
  meta.id = `${comment.id}-meta`;
  for (const button of actions.querySelectorAll("button")) button.setAttribute("aria-describedby", meta.id);
  comment.querySelector("article").append(actions);
}

html.classList.toggle("member", me !== null);
html.classList.add("ready");

// Requests to the API. A failed one throws a `Problem`, which has the details of RFC 9457.

// What to tell people where the API speaks to programs, by the code of a problem.
const WORDS = {
  not_signed_in: "You are signed out.",
  still_under_way: "It is still being sent. Wait a moment, and try again.",
  stale_version: "It has been changed since you opened it.",
};
const OFFLINE = "There is no connection. What you wrote is kept; try again.";

class Problem extends Error {
  constructor(status, details) {
    super(details.detail ?? "Something went wrong. Try again.");
    this.status = status;
    this.errors = details.errors ?? [];
  }
}

async function request(method, url, { body, headers = {}, onProgress } = {}) {
  if (body && !(body instanceof FormData)) {
    headers = { ...headers, "Content-Type": "application/json" };
    body = JSON.stringify(body);
  }
  // XMLHttpRequest, because fetch does not report the progress of an upload.
  const response = await new Promise((resolve) => {
    const sender = new XMLHttpRequest();
    sender.open(method, url);
    for (const [name, value] of Object.entries(headers)) sender.setRequestHeader(name, value);
    sender.timeout = body instanceof FormData ? 300_000 : 30_000; // milliseconds
    sender.upload.onprogress = (event) => onProgress?.(event.loaded / event.total);
    sender.onloadend = () => resolve(sender);
    sender.send(body);
  });
  let data = null;
  try {
    data = JSON.parse(response.responseText);
  } catch {
    // An empty response, or one that did not come from the service.
  }
  if (data?.code === "not_signed_in" && me) setMe(null);
  if (response.status >= 200 && response.status < 300) {
    return { data, etag: response.getResponseHeader("ETag") };
  }
  const detail = response.status === 0 ? OFFLINE : (WORDS[data?.code] ?? data?.detail);
  throw new Problem(response.status, { detail, errors: data?.errors });
}

const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const fill = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));

/** Go to a URL of this service, even if it differs from the present one in its fragment alone. */
function goTo(url) {
  const target = new URL(url, location.href);
  const isSamePage = target.pathname + target.search === location.pathname + location.search;
  if (!isSamePage) return location.assign(target);
  history.replaceState(null, "", target);
  location.reload();
}

/** Return where to go after sign-in: the `next` of the query if it is a path of this service. */
function nextUrl() {
  const front = `${location.origin}${root}/`;
  try {
    const next = new URL(new URLSearchParams(location.search).get("next") ?? "", front);
    return next.href.startsWith(front) ? next.href : front;
  } catch {
    return front;
  }
}

// Errors: beside the control that their pointer names, the others above the button.

function showErrors(form, problem) {
  const others = [];
  for (const { pointer = "", detail } of problem.errors) {
    const control = form.elements.namedItem(pointer.slice(1));
    const place = control && document.getElementById(`${control.id}-error`);
    if (!place) {
      others.push(detail);
      continue;
    }
    place.textContent = detail;
    control.setAttribute("aria-invalid", "true");
  }
  if (problem.errors.length === 0 || others.length > 0) {
    form.querySelector(":scope > .problem").textContent = others.join(" ") || problem.message;
  }
  form.querySelector("[aria-invalid]")?.focus();
}

function clearErrors(form) {
  for (const place of form.querySelectorAll(".problem, .error")) {
    place.replaceChildren();
    place.classList.remove("done");
  }
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
}

/** Show a link beside the problem of a form. */
function addLink(form, text, url, target = "") {
  const link = Object.assign(document.createElement("a"), { href: url, textContent: text, target });
  form.querySelector(":scope > .problem").append(" ", link);
}

// Forms: `<form data-api>` is sent as one request to its action.

const keys = new WeakMap();

function bodyOf(form) {
  const body = {};
  for (const control of form.elements) {
    if (!control.name || control.closest("[data-images]")) continue;
    if (control.type === "radio" && !control.checked) continue;
    if (control.value !== "" || control.required) body[control.name] = control.value;
    else if (form.dataset.api === "PATCH") body[control.name] = null;
  }
  return body;
}

async function send(form) {
  const { api, version, signsUp, signsIn, signsOut } = form.dataset;
  let url = fill(decodeURI(form.action), { me: writer });
  const body = bodyOf(form);
  const headers = {};
  if (api === "POST" && me && signsUp === undefined && signsIn === undefined) {
    // One key until the text changes: a repeated request creates nothing twice.
    const [text, key] = keys.get(form) ?? [];
    const same = JSON.stringify(body);
    keys.set(form, [same, same === text ? key : newKey()]);
    keepDraft(form);
    headers["Idempotency-Key"] = keys.get(form)[1];
  }
  if (version) headers["If-Match"] = `"${version}"`;
  if (api === "DELETE") url += `?${new URLSearchParams(body)}`;
  const options = { body: api === "DELETE" ? undefined : body, headers };
  const { data, etag } = await request(api, url, options);
  if (signsUp !== undefined) {
    const { username, password } = body;
    try {
      const signedIn = await request("POST", `${root}/signin`, { body: { username, password } });
      if (setMe(signedIn.data)) return goTo(nextUrl());
    } catch {
      // The account exists: only sign in again.
    }
    return goTo(`${root}/signin${location.search}`);
  }
  if (signsIn !== undefined) {
    if (setMe(data)) return goTo(nextUrl());
    throw new Problem(0, { detail: "You are signed in, but your browser stores nothing for this site. Allow it, and try again." });
  }
  if (signsOut !== undefined) return leave();
  forgetDraft(form);
  if (form.matches(".editor")) {
    // The post is stored: whatever is sent again is an edit of this version.
    form.action = `${root}/posts/${data.id}`;
    form.dataset.api = "PATCH";
    form.dataset.version = versionOf(etag);
    await sendImages(form, data.id);
  }
  if (form.dataset.profile !== undefined) setMe(data);
  if (form.dataset.newToken !== undefined) return showSecret(form, data.token);
  if (form.dataset.done) return finish(form);
  goTo(form.dataset.then ? fill(form.dataset.then, data) : location.href);
}

function finish(form) {
  const place = form.querySelector(":scope > .problem");
  place.textContent = form.dataset.done;
  place.classList.add("done");
  if (form.dataset.password !== undefined) {
    form.reset();
    showSessions();
    showTokens();
  }
}

async function submit(event) {
  const form = event.target;
  if (!form.dataset.api) return;
  event.preventDefault();
  if (form.classList.contains("busy")) return;
  if (form.dataset.confirm && !confirm(form.dataset.confirm)) return;
  form.classList.add("busy");
  clearErrors(form);
  // What is typed while the text is being sent would be lost.
  const controls = [...form.querySelectorAll("input, textarea")].filter((control) => !control.readOnly);
  for (const control of controls) control.readOnly = true;
  try {
    await chosen; // images that are still being made smaller
    await send(form);
  } catch (error) {
    const problem = error instanceof Problem ? error : new Problem(0, {});
    showErrors(form, problem);
    if (problem.status === 401 && form.dataset.signsIn === undefined) {
      keepDraft(form);
      const here = encodeURIComponent(location.pathname + location.search);
      // Chosen images cannot be kept in a draft, but this page can wait for another tab.
      if (hasUnsentImages()) addLink(form, "Sign in in a new tab, and try again.", `${root}/signin`, "_blank");
      else addLink(form, "Sign in; what you wrote is kept.", `${root}/signin?next=${here}`);
    }
    if (problem.status === 412) await offerToReplace(form);
  } finally {
    form.classList.remove("busy");
    for (const control of controls) control.readOnly = false;
  }
}

const versionOf = (etag) => /"(\d+)/.exec(etag)[1]; // a proxy that compresses makes it weak

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
  form.querySelector(":scope > .problem").append(", or save again to replace it.");
}

// Drafts: what is typed into a form is kept until it is sent.

const draftName = (form) => `draft:${writer}:${new URL(form.action).pathname}:${form.elements.parent_id?.value ?? ""}`;
const hasDraft = (form) => form.dataset.api && form.querySelector("textarea");

function textsOf(form) {
  const { parent_id, ...texts } = bodyOf(form);
  return texts;
}

const hasText = (form) => Object.values(textsOf(form)).some(Boolean);

function keepDraft(form) {
  if (!hasDraft(form)) return;
  const { version } = form.dataset;
  const draft = { texts: textsOf(form), version, sent: keys.get(form) };
  store(draftName(form), hasText(form) ? draft : null);
}

/** Forget the draft of a form, unless another tab has stored another text. */
function forgetDraft(form) {
  const draft = hasDraft(form) && read(draftName(form));
  if (draft && JSON.stringify(draft.texts) === JSON.stringify(textsOf(form))) store(draftName(form), null);
}

function restoreDraft(form) {
  const draft = me && hasDraft(form) && read(draftName(form));
  if (!draft) return;
  for (const [name, value] of Object.entries(draft.texts)) {
    if (form.elements[name]) form.elements[name].value = value ?? "";
  }
  if (draft.sent) keys.set(form, draft.sent);
  // An edit goes on from the version that it began with, so that it overwrites no later one.
  if (draft.version) form.dataset.version = draft.version;
  form.prepend(document.getElementById("draft-notice").content.cloneNode(true));
}

function discardDraft(form) {
  forgetDraft(form);
  if (form.matches(".opened")) return closeForm(form);
  form.reset();
  location.reload();
}

// Images: sent once the post has an id, one after the other, each with its own progress.

let chosen = Promise.resolve(); // resolved when the images that were chosen are in the list

function hasUnsentImages() {
  return [...document.querySelectorAll("[data-images] > li")].some((row) => {
    const alt = row.querySelector("input");
    return !row.dataset.image || alt.value !== alt.defaultValue;
  });
}

async function addImages(input, files) {
  const list = input.form.querySelector("[data-images]");
  const place = document.getElementById("images-error");
  const left = [];
  for (const file of files) {
    if (file.size > input.dataset.maxBytes) place.textContent = `Making ${file.name} smaller …`;
    const fitting = file.size <= input.dataset.maxBytes ? file : await shrink(file);
    if (!fitting || fitting.size > input.dataset.maxBytes || list.children.length >= input.dataset.maxImages) {
      left.push(file.name);
      continue;
    }
    const row = document.getElementById("image-row").content.cloneNode(true).firstElementChild;
    row.querySelector("img").src = URL.createObjectURL(fitting);
    for (const place of row.querySelectorAll("[data-name]")) place.textContent = file.name;
    row.file = fitting;
    row.key = newKey();
    list.append(row);
  }
  place.textContent = left.length > 0 ? `Too large or too many: ${left.join(", ")}.` : "";
}

/** Return a picture, such as the photo of a phone, as a smaller JPEG; null if that is not possible. */
async function shrink(file) {
  if (file.type === "image/gif") return null; // it would stand still
  try {
    const picture = await createImageBitmap(file);
    const scale = Math.min(1, 2560 / Math.max(picture.width, picture.height));
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height].map((side) => Math.ceil(side * scale));
    const context = canvas.getContext("2d");
    context.fillStyle = "white"; // JPEG has no transparency
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.85));
  } catch {
    return null;
  }
}

async function sendImages(form, id) {
  let failure = null;
  for (const row of form.querySelectorAll("[data-images] > li")) {
    try {
      await sendImage(row, id);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      failure = problem;
      row.querySelector(".problem").textContent = problem.errors[0]?.detail ?? problem.message;
    }
  }
  if (failure) {
    const detail = "The post is saved, but some images are not. Try again, or remove them.";
    throw new Problem(failure.status === 401 ? 401 : 0, { detail });
  }
}

async function sendImage(row, post) {
  const control = row.querySelector("input");
  const alt = control.value;
  if (row.dataset.image) {
    if (control.defaultValue !== alt) {
      await request("PATCH", `${root}/images/${row.dataset.image}`, { body: { alt: alt || null } });
      control.defaultValue = alt;
    }
    return;
  }
  const body = new FormData();
  body.append("file", row.file);
  if (alt) body.append("alt", alt);
  if (row.sentAlt !== undefined && row.sentAlt !== alt) row.key = newKey(); // another request
  row.sentAlt = alt;
  const progress = row.querySelector("progress");
  progress.hidden = false;
  const options = {
    body,
    headers: { "Idempotency-Key": row.key },
    onProgress: (part) => (progress.value = part),
  };
  const upload = () => request("POST", `${root}/posts/${post}/images`, options);
  const { data } = await upload().catch((problem) => {
    // Once more with the same key if the connection or the service failed.
    if (problem.status !== 0 && problem.status !== 503) throw problem;
    return new Promise((wait) => setTimeout(wait, 2000)).then(upload);
  });
  progress.hidden = true;
  row.dataset.image = data.id;
  control.defaultValue = alt;
}

async function removeImage(row) {
  if (row.dataset.image) {
    if (!confirm("Remove this image?")) return;
    await request("DELETE", `${root}/images/${row.dataset.image}`);
  }
  row.remove();
  document.getElementById("images").focus();
}

function insertImage(row) {
  const text = row.closest("form").elements.content;
  const alt = row.querySelector("input").value.replace(/[[\]\\]/g, "\\$&");
  text.setRangeText(`![${alt}](${root}/images/${row.dataset.image})`, text.selectionStart, text.selectionEnd, "end");
  text.focus();
  keepDraft(text.form);
}

async function showPreview(form) {
  const { data } = await request("POST", `${root}/preview`, { body: { content: form.elements.content.value } });
  const place = form.querySelector("[data-preview]");
  // The HTML is the service's own, sanitized as on the page.
  place.innerHTML = data.html;
  place.focus();
}

// Comments: replies and edits in place, and links to comments on other pages.

function openForm(template, comment, opener, set) {
  document.querySelector(".opened")?.remove();
  const form = document.getElementById(template).content.cloneNode(true).firstElementChild;
  form.classList.add("opened");
  form.opener = opener;
  set(form);
  comment.querySelector("article").append(form);
  restoreDraft(form);
  form.querySelector("textarea").focus();
}

function closeForm(form) {
  const comment = form.closest("li");
  form.remove();
  // The buttons are new if the session has changed.
  (form.opener.isConnected ? form.opener : comment.querySelector(".actions button, .meta a")).focus();
}

/** Open a reply or an edit that was not sent. */
function reopenForm() {
  if (location.hash) return; // the reader wants to see another comment
  const post = location.pathname.slice(`${root}/p/`.length);
  for (const button of document.querySelectorAll(".thread [data-reply], .thread [data-edit]")) {
    const id = button.closest("li").id.slice(2);
    const name = "reply" in button.dataset ? `/posts/${post}/comments:${id}` : `/comments/${id}:`;
    if (!button.hidden && read(`draft:${me?.id}:${root}${name}`)) return press(button).catch(() => {});
  }
}

function reply(comment, opener) {
  openForm("reply-form", comment, opener, (form) => {
    form.elements.parent_id.value = comment.id.slice(2);
  });
}

async function edit(comment, opener) {
  const url = `${root}/comments/${comment.id.slice(2)}`;
  const { data, etag } = await request("GET", url);
  openForm("edit-form", comment, opener, (form) => {
    form.action = url;
    form.dataset.version = versionOf(etag);
    form.dataset.then = form.dataset.current = `${location.pathname}${location.search}#${comment.id}`;
    form.elements.content.value = data.content;
  });
}

/** Show the comment that the fragment names, which may be on another page of the thread. */
async function findComment() {
  const [, id] = /^#c-([\w-]{21})$/.exec(location.hash) ?? [];
  if (!id || document.getElementById(`c-${id}`)) return;
  const { data } = await request("GET", `${root}/comments/${id}`);
  const cursor = `${data.post_id}.${Date.parse(data.created_at) - 1}.${"-".repeat(21)}`;
  location.replace(`${root}/p/${data.post_id}?cursor=${cursor}${location.hash}`);
}

// Settings.

async function showSettings() {
  const form = document.querySelector("[data-profile]");
  const { data } = await request("GET", `${root}/users/me`);
  setMe(data);
  for (const name of ["username", "display_name", "bio"]) form.elements[name].value = data[name] ?? "";
  form.inert = false;
  restoreDraft(form);
  await showSessions();
  await showTokens();
}

/** Return a short name for a User-Agent, such as "Firefox on Linux". */
function programOf(agent) {
  const first = (names) => names.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = first([[/Firefox/, "Firefox"], [/Edg/, "Edge"], [/OPR/, "Opera"], [/Chrom/, "Chrome"], [/Safari/, "Safari"]]);
  const system = first([[/Android/, "Android"], [/iPhone|iPad/, "iOS"], [/Mac/, "macOS"], [/Windows/, "Windows"], [/Linux/, "Linux"]]);
  if (browser) return system ? `${browser} on ${system}` : browser;
  return agent.split("/")[0] || "Unknown program";
}

async function showSessions() {
  const list = document.querySelector("[data-sessions]");
  const { data } = await request("GET", `${root}/sessions`);
  const rows = data.map((session) => {
    const row = document.getElementById("session-row").content.cloneNode(true);
    const agent = row.querySelector("[data-agent]");
    agent.textContent = programOf(session.user_agent);
    agent.title = session.user_agent;
    agent.id = `session-${session.id}`;
    row.querySelector("button").setAttribute("aria-describedby", agent.id);
    row.querySelector("time").dateTime = session.last_seen_at;
    row.querySelector("button").dataset.url = `${root}/sessions/${session.id}`;
    row.querySelector(session.current ? "button" : "strong").hidden = true;
    row.querySelector(session.current ? "strong" : "button").hidden = false;
    return row;
  });
  list.replaceChildren(...rows);
  showTimes(list);
}

async function showTokens() {
  const list = document.querySelector("[data-tokens]");
  const { data } = await request("GET", `${root}/tokens`);
  const rows = data.map((token) => {
    const row = document.getElementById("token-row").content.cloneNode(true);
    const name = row.querySelector("[data-name]");
    name.textContent = token.name;
    name.id = `token-${token.id}`;
    row.querySelector("[data-scope]").textContent = token.scope === "write" ? "may read and write" : "may read";
    row.querySelector("time").dateTime = token.expires_at;
    row.querySelector("button").dataset.url = `${root}/tokens/${token.id}`;
    row.querySelector("button").setAttribute("aria-describedby", name.id);
    return row;
  });
  list.replaceChildren(...rows);
  showTimes(list);
}

/** Show the secret of a new token, once. */
async function showSecret(form, secret) {
  form.reset();
  const field = form.querySelector("[data-secret]");
  const control = field.querySelector("input");
  field.hidden = false;
  control.value = secret;
  control.select();
  await showTokens();
}

async function signOut() {
  await request("POST", `${root}/signout`);
  leave();
}

/** Forget the member and their drafts: others may use this computer. */
function leave() {
  setMe(null);
  const names = Object.keys(localStorage).filter((name) => name.startsWith(`${KEY}draft:${writer}:`));
  for (const name of names) localStorage.removeItem(name);
  goTo(`${root}/`);
}

// Times in words, in the reader's own language.

const UNITS = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

function showTimes(part) {
  const words = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });
  for (const time of part.querySelectorAll("time[datetime]")) {
    const then = new Date(time.dateTime);
    const seconds = Math.round((then - Date.now()) / 1000);
    const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS.at(-1);
    time.textContent = words.format(Math.trunc(seconds / length), unit);
    time.lang = words.resolvedOptions().locale;
    time.title = exact.format(then);
  }
}

// Events.

/** Do what a button says; a problem is shown beside it. */
async function press(button) {
  const { dataset } = button;
  const comment = button.closest("li[id^=c-]");
  const row = button.closest("[data-images] > li");
  if ("signOut" in dataset) await signOut();
  else if ("reply" in dataset) reply(comment, button);
  else if ("edit" in dataset) await edit(comment, button);
  else if ("cancel" in dataset) {
    forgetDraft(button.form);
    closeForm(button.form);
  }
  else if ("discard" in dataset) discardDraft(button.form);
  else if ("showPreview" in dataset) await showPreview(button.form);
  else if ("insert" in dataset) insertImage(row);
  else if ("remove" in dataset) await removeImage(row);
  else if (dataset.api) {
    if (dataset.confirm && !confirm(dataset.confirm)) return;
    await request(dataset.api, dataset.url);
    const list = button.closest("[data-sessions], [data-tokens]");
    if (list) {
      await ("tokens" in list.dataset ? showTokens() : showSessions());
      list.focus();
    } else goTo(dataset.then ?? location.pathname + location.search + "#comments");
  }
}

async function click(event) {
  const button = event.target.closest("button[type=button]");
  if (!button || button.closest(".busy")) return;
  const place = button.closest("form")?.querySelector(":scope > .problem");
  place?.replaceChildren();
  place?.classList.remove("done");
  button.classList.add("busy");
  try {
    await press(button);
  } catch (error) {
    const problem = error instanceof Problem ? error : new Problem(0, {});
    if (place) place.textContent = problem.errors[0]?.detail ?? problem.message;
    else alert(problem.message);
  } finally {
    button.classList.remove("busy");
  }
}

function start() {
  showMe();
  showTimes(document);
  for (const form of document.forms) {
    form.inert = form.dataset.profile !== undefined; // until it is filled
    if (!form.inert) restoreDraft(form);
  }
  const { search } = location;
  for (const link of document.querySelectorAll("[data-keep-next]")) link.search = search;
  document.addEventListener("submit", submit);
  document.addEventListener("click", click);
  document.addEventListener("keydown", (event) => {
    // Enter in the description of an image does not publish the post.
    if (event.key === "Enter" && event.target.closest("[data-images] input")) event.preventDefault();
  });
  document.addEventListener("input", ({ target }) => target.form && keepDraft(target.form));
  document.getElementById("images")?.addEventListener("change", ({ target }) => {
    const files = [...target.files];
    target.value = "";
    chosen = chosen.then(() => addImages(target, files));
  });
  addEventListener("beforeunload", (event) => hasUnsentImages() && event.preventDefault());
  addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
  addEventListener("storage", (event) => {
    if (event.key !== `${KEY}me`) return;
    me = read("me");
    // What this page holds is of another member, or was left out for a visitor.
    if (me && me.id !== writer && (writer || [...document.forms].some(hasDraft))) return location.reload();
    writer = me?.id ?? writer;
    showMe();
  });
  addEventListener("hashchange", findComment);
  findComment().catch(() => {});
  reopenForm();
  const profile = document.querySelector("[data-profile] .problem");
  if (me && profile) showSettings().catch((problem) => (profile.textContent ||= problem.message));
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
