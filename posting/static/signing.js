// Signing up and signing in.

import { setMe } from "./account.js";
import { Problem, request } from "./api.js";
import { all } from "./dom.js";
import { bodyOf } from "./fields.js";
import { onForm } from "./forms.js";
import "./main.js";
import { goTo, nextUrl, ready, root } from "./page.js";

onForm("sign-up", {
  async sent(form) {
    const { username, password } = bodyOf(form);
    try {
      const { data } = await request("POST", `${root}/signin`, { body: { username, password } });
      if (setMe(data)) return goTo(nextUrl());
    } catch {
      // The account exists: only sign in again.
    }
    goTo(`${root}/signin${location.search}`);
  },
});

onForm("sign-in", {
  sent(_form, data) {
    if (setMe(data)) return goTo(nextUrl());
    const detail =
      "You are signed in, but your browser stores nothing for this site. Allow it, and try again.";
    throw new Problem(0, { detail });
  },
});

ready(() => {
  for (const link of all(document, "[data-keep-next]")) link.search = location.search;
});
