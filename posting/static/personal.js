// What only members see on every page: their menu, and what is new to them, which are notifications
// that are not read, comments on the posts of a list, and for moderators what waits for them.

import "./listed.js";
import "./menu.js";
import "./unread.js";
import "./waiting.js";
