// Reporting a post, a comment or a member to the moderators.

import { onAction } from "./actions.js";
import { onForm } from "./forms.js";
import { gettext } from "./language.js";
import { closeForm, openQuestion } from "./opening.js";
import { say } from "./status.js";

onAction("report", (button) => openQuestion("report-form", button));

onForm("report", {
  sent(form) {
    closeForm(form);
    say(
      gettext("Thank you. When a moderator has looked at it, you find the answer in your inbox."),
    );
  },
});
