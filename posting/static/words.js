// Words for people, where the API speaks to programs: by the code of a problem or of an error.

import { FAILED } from "./problem.js";
import { dateOf } from "./times.js";

/** Responses that are errors, by their code or by the task of the request and their code. */
const PROBLEMS = {
  already_reported: "You have reported this already. A moderator will look at it.",
  already_suspended: "This member is suspended already. Load the page again.",
  bad_gateway: "The service does not answer at this moment. Try again.",
  content_too_large: "This is too long to be sent. Make it shorter.",
  cross_origin: "Your browser does not say where this comes from. Load the page again.",
  backup_busy: "Another backup is under way. Try again when it has ended.",
  busy: "Too many people are signing in at this moment. Try again.",
  export_busy: "Another download is under way. Try again in a minute.",
  database_busy: "Too many people are writing at this moment. Try again.",
  database_moved: "Nothing was saved. Tell the people who run this service to restart it.",
  gateway_timeout: "The service does not answer at this moment. Try again.",
  has_content: "This member has posts or comments left. Delete them first.",
  images_busy: "Too many images arrive at this moment. Try again.",
  last_owner: "This is the only owner. Make somebody else an owner first.",
  own_image_in_progress: "Another image of yours is being processed. Try again.",
  "file content_too_large": "This file is too large. Make it smaller, and add it again.",
  "image content_too_large": "This image is too large. Make it smaller, and add it again.",
  internal_server_error: "Something went wrong in the service. Try again later.",
  no_mail: "This service sends no mails.",
  no_such_application: "This application has been decided already. Load the page again.",
  no_such_avatar: "This picture has been deleted already.",
  no_such_comment: "This comment has been deleted.",
  no_such_file: "This file has been deleted.",
  no_such_image: "This image has been deleted.",
  no_such_logo: "The logo has been deleted already.",
  no_such_cover: "The cover picture has been deleted already.",
  no_such_invitation: "This invitation has ended already. Load the page again.",
  no_such_post: "This post has been deleted.",
  no_such_report: "This report has been deleted.",
  no_such_session: "This session has ended already. Load the page again.",
  no_such_token: "This token has been deleted already. Load the page again.",
  no_such_topic: "This topic has been deleted. Load the page again.",
  no_such_user: "This account has been deleted.",
  no_such_webhook: "This webhook has been deleted already. Load the page again.",
  quota_exceeded: "You have no room for more images and files. Delete some of yours.",
  not_author: "Only its author may do this.",
  not_moderator: "Only moderators may do this.",
  not_site_owner: "Only owners may do this.",
  not_owner: "Only the owner of the account may do this. Load the page again.",
  not_signed_in: "You are signed out.",
  pending_approval: "A moderator has not approved your account yet. Try again later.",
  post_locked: "This post is locked. Only moderators can comment.",
  query_timeout: "The service takes too long at this moment. Try again later.",
  report_closed: "Another moderator has closed this report already.",
  report_on_yourself:
    "This report is about you or what you wrote. Another moderator decides on it.",
  request_timeout: "Your connection is too slow for this. Try again.",
  service_unavailable: "The service does not answer at this moment. Try again.",
  signup_closed: "Sign-up is closed. Ask the people who run this community for an account.",
  stale_version: "It has been changed since you opened it.",
  still_under_way: "It is still being sent. Wait a moment, and try again.",
  storage_full: "The disk of the service is full. Tell the people who run it.",
  suspended: "Your account is suspended. Ask the people who run this community.",
  target_is_moderator: "This is a moderator. Only an owner can do this.",
  target_is_owner: "This is an owner. Take the role away first.",
  too_many_invitations: "You have as many open invitations as an account can have. End one first.",
  too_many_pinned: "Five posts are pinned already. Unpin one first.",
  too_many_requests: "That was too often for now. Try again later.",
  too_many_tokens: "You have as many tokens as an account can have. Delete one first.",
  topic_taken: "Another topic has this name. Choose another one.",
  too_many_topics: "There are thirty topics already. Delete one first.",
  too_many_webhooks: "You have as many webhooks as an account can have. Delete one first.",
  username_taken: "This name is taken. Choose another one.",
  wrong_credentials: "The username or the password is wrong.",
};
const OFFLINE = {
  write: "There is no connection. Your text is kept; try again.",
  delete: "There is no connection, so nothing was deleted. Try again.",
  file: "There is no connection, so the file was not sent. Try again.",
  image: "There is no connection, so the image was not sent. Try again.",
  other: "There is no connection. Try again.",
};

/** Errors in what was typed, by their code or by the name of the field and their code. */
const ERRORS = {
  blank: "Write something here.",
  common_password: "Many people use this password, so it is easy to guess. Choose another one.",
  fixed: "The operator of the service has set this, so you cannot change it here.",
  invalid_code: "This is wrong, or has expired or has been used.",
  invalid_invitation:
    "This invitation does not work. It may be incomplete, expired, used up or ended. Ask for another one.",
  line_break: "Write this in one line.",
  lost_image:
    "An image in this text is no longer there, since images are not kept. Insert it again, or delete its line.",
  malformed: "This has characters that are not allowed here.",
  masked_password:
    "This is one character repeated, or looks like a hidden password. Choose another one.",
  no_such_comment: "This comment has been deleted.",
  no_such_file:
    "One of the files has waited for more than a day, or is published already. Remove it, and add it again.",
  no_such_image:
    "One of the images has waited for more than a day, or is published already. Remove it, and add it again.",
  no_such_parent: "The comment to which you reply has been deleted.",
  no_such_topic: "One of the topics has been deleted. Choose another one.",
  not_own_name: "Type your username, to be sure.",
  open_direction: "This has an invisible character that turns text around. Type it again.",
  required: "Write something here.",
  reserved: "This name is reserved. Choose another one.",
  reused_key: "Something else was sent from here before. Load the page again.",
  same_as_username: "Your password must not be your username.",
  too_light: "This color is too light to be read on the page. Choose a darker one.",
  too_long: "This is too long. Make it shorter.",
  too_many_images: "A post can have ten images. Remove one of them.",
  too_many_unattached:
    "You have forty images or files that are in no text. Discard some of your unsent texts, or wait for a day.",
  too_short: "This is too short.",
  unsupported_character: "This has a character that cannot be stored.",
  unusable_file:
    "The service cannot use this file: it is not what the end of its name says. Add it as PDF or ZIP.",
  unusable_image:
    "The service cannot use this image. Make it smaller, or save it again as JPEG or PNG.",
  topic_taken: PROBLEMS.topic_taken,
  username_taken: PROBLEMS.username_taken,
  wrong_password: "This is not your current password.",
  "accent malformed": "Write a color such as #204f95.",
  "code invalid_code": "This link has expired or has been used.",
  "email malformed": "This is not a mail address. Type one such as ada@example.org.",
  "email required": "Type your mail address.",
  "current_password required": "Type your current password.",
  "invitation required": "You need an invitation to sign up. Open its link.",
  "name required": "Type a name.",
  "password required": "Type a password.",
  "recovery_code invalid_code":
    "The username or the code is wrong, or the code has been used already.",
  "recovery_code required": "Type one of your recovery codes.",
  "url malformed": "Write a URL that begins with https, such as https://chat.example.net/x.",
  "url required": "Write the URL of the program.",
  "title blank": "Give your post a title.",
  "title required": "Give your post a title.",
  "username malformed":
    "A username has 3 to 32 letters, digits, _ and -, and begins with a letter or a digit.",
  "username required": "Type your username.",
};

/**
 * Return a sentence about a response that is an error, or about its absence.
 * @param {{code?: string, detail?: string, reason?: string | null, until?: string | null} | null}
 *   problem null if there was no response
 * @param {keyof typeof OFFLINE} task what the request was for
 */
export function explainProblem(problem, task) {
  if (problem === null) return OFFLINE[task];
  const { code, detail } = problem;
  if (code === "suspended") return explainSuspension(problem);
  return PROBLEMS[`${task} ${code}`] ?? PROBLEMS[code] ?? detail ?? FAILED;
}

/**
 * Return until when an account is suspended, and why.
 * @param {{until?: string | null, reason?: string | null}} problem
 */
function explainSuspension({ until, reason }) {
  const start = until ? `Your account is suspended until ${dateOf(until)}.` : PROBLEMS.suspended;
  return reason ? `${start} Reason: ${reason}` : start;
}

/**
 * Return a sentence about an error in a field. What exceeds a limit, the page has counted itself.
 * @param {Partial<import("./fields.js").FieldError>} error
 * @param {string} [name] of the field
 */
export function explainError({ code, detail, excess, least, range }, name) {
  if (excess) return `This is ${count(excess, "character")} too long.`;
  if (least) return `Use at least ${count(least, "character")}.`;
  if (range) return `Type a number from ${range[0]} to ${range[1]}.`;
  return ERRORS[`${name} ${code}`] ?? ERRORS[code] ?? detail ?? FAILED;
}

/**
 * Return a number of things in words.
 * @param {number} number
 * @param {string} thing
 */
export function count(number, thing, things = `${thing}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? thing : things}`;
}
