// What is new to a member: notifications that are not read, comments on the posts of a list, and for
// moderators what waits for them.

import "./listed.js";
import "./unread.js";
import "./waiting.js";
