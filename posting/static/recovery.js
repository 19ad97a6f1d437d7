// Recovery codes, in the settings: how many are left, and new ones.

import { me } from "./account.js";
import { request } from "./api.js";
import { copyOf, first } from "./dom.js";
import { onForm } from "./forms.js";
import { gettext, ngettext } from "./language.js";
import { root } from "./page.js";
import "./secrets.js";
import { dateOf } from "./times.js";

/** Say how many recovery codes the member has. */
export async function showCodesLeft() {
  const { data } = await request("GET", `${root}/recovery-codes`);
  sayHowMany(data);
}

function sayHowMany({ left, created_at }) {
  first(document, "[data-codes-left]").textContent = left
    ? ngettext(
        "You have %(num)s code, made on %(date)s.",
        "You have %(num)s codes, made on %(date)s.",
        left,
        { date: dateOf(created_at) },
      )
    : gettext("You have no codes.");
}

onForm("recovery-codes", {
  sent(form, data) {
    form.reset();
    sayHowMany(data);
    showCodes(data.codes);
  },
});

/** @param {string[]} codes */
function showCodes(codes) {
  const sheet = copyOf("codes-sheet");
  first(sheet, "[data-name]").textContent = me.username;
  first(sheet, "[data-address]").textContent = `${location.origin}${root}/reset`;
  const items = codes.map((code) =>
    Object.assign(document.createElement("li"), { textContent: code }),
  );
  first(sheet, "ol").replaceChildren(...items);
  first(document, "[data-codes]").replaceChildren(sheet);
  sheet.focus();
}
