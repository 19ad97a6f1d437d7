// The editor of a post.

import { me } from "./account.js";
import { finishAttachments, hasUnsentFiles, withAttachments } from "./attaching.js";
import { first } from "./dom.js";
import { onForm } from "./forms.js";
import { onKey } from "./keys.js";
import { gettext } from "./language.js";
import "./main.js";
import { goTo, ready, root } from "./page.js";
import { sayNext } from "./status.js";
import "./text.js";
import { withTopics } from "./topics.js";

onForm("post", {
  prepare: finishAttachments,
  toBody: ({ topics, ...values }, form) => withTopics(withAttachments(values, form), topics, form),
  hasFiles: hasUnsentFiles,
  sent(form, data) {
    const isNew = form.dataset.api === "POST";
    sayNext(isNew ? gettext("Your post is published.") : gettext("Your post is saved."));
    goTo(`${root}/p/${data.id}`);
  },
});

/** Show who may not edit the post that they may not, if they are known. */
function showAuthor() {
  const form = first(document, "form.editor");
  const isOther = me !== null && (form.dataset.author ?? me.id) !== me.id;
  first(document, "#not-author").hidden = !isOther;
  form.hidden = isOther;
}

document.addEventListener("account", showAuthor);
ready(showAuthor);
onKey((target, event) => {
  if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
  const { form, type } = target;
  if (!form?.matches(".editor") || type !== "text") return;
  // Enter leads to the text, such as from the title. In the description of an image, it does nothing.
  if (!target.closest("[data-images]")) form.elements.content.focus();
  event.preventDefault();
});
