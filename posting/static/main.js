// The script of every page. Reading works without it; all writing goes through the JSON API.
//
// Data attributes that templates and script share:
//
// data-action        what a button does: a name that a module gives to `onAction`
// data-form          what follows when a form was sent: a name that a module gives to `onForm`
// data-api, data-url the method and the URL of the request of a button; a form has its action
// data-confirm       a question before the request
// data-next          where to go after it; {id} is a field of the response
// data-done          what to say after it
// data-version       the version that an edit begins with
// data-current       the page that shows what an edit would replace
// data-author        the id of the author of a part
// data-my-name, data-my-username
//                    places for the names of the reader
// data-keep-next     a link that keeps the query
// data-images, data-image, data-name, data-max-images, data-max-bytes, data-preview
//                    of the editor
// data-sessions, data-tokens, data-agent, data-scope, data-secret
//                    of the settings

import "./account.js";
import { ready } from "./page.js";
import { showTimes } from "./times.js";

ready(() => showTimes(document));

// A page that comes back from the browser's memory may show what has changed since.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
