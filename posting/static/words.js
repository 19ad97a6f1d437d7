// Words for people, where the API speaks to programs: by the code of a problem or of an error.

import { gettext, ngettext } from "./language.js";
import { FAILED } from "./problem.js";
import { dateOf } from "./times.js";

/** Responses that are errors, by their code or by the task of the request and their code. */
const PROBLEMS = {
  already_reported: gettext("You have reported this already. A moderator will look at it."),
  already_suspended: gettext("This member is suspended already. Load the page again."),
  bad_gateway: gettext("The service does not answer at this moment. Try again."),
  content_too_large: gettext("This is too long to be sent. Make it shorter."),
  cross_origin: gettext("Your browser does not say where this comes from. Load the page again."),
  backup_busy: gettext("Another backup is under way. Try again when it has ended."),
  busy: gettext("Too many people are signing in at this moment. Try again."),
  export_busy: gettext("Another download is under way. Try again in a minute."),
  database_busy: gettext("Too many people are writing at this moment. Try again."),
  database_moved: gettext("Nothing was saved. Tell the people who run this service to restart it."),
  gateway_timeout: gettext("The service does not answer at this moment. Try again."),
  has_content: gettext("This member has posts or comments left. Delete them first."),
  images_busy: gettext("Too many images arrive at this moment. Try again."),
  last_owner: gettext("This is the only owner. Make somebody else an owner first."),
  own_image_in_progress: gettext("Another image of yours is being processed. Try again."),
  "file content_too_large": gettext("This file is too large. Make it smaller, and add it again."),
  "image content_too_large": gettext("This image is too large. Make it smaller, and add it again."),
  internal_server_error: gettext("Something went wrong in the service. Try again later."),
  no_mail: gettext("This service sends no mails."),
  no_such_application: gettext("This application has been decided already. Load the page again."),
  no_such_avatar: gettext("This picture has been deleted already."),
  no_such_comment: gettext("This comment has been deleted."),
  no_such_file: gettext("This file has been deleted."),
  no_such_image: gettext("This image has been deleted."),
  no_such_logo: gettext("The logo has been deleted already."),
  no_such_cover: gettext("The cover picture has been deleted already."),
  no_such_invitation: gettext("This invitation has ended already. Load the page again."),
  no_such_post: gettext("This post has been deleted."),
  no_such_report: gettext("This report has been deleted."),
  no_such_session: gettext("This session has ended already. Load the page again."),
  no_such_token: gettext("This token has been deleted already. Load the page again."),
  no_such_topic: gettext("This topic has been deleted. Load the page again."),
  no_such_user: gettext("This account has been deleted."),
  no_such_webhook: gettext("This webhook has been deleted already. Load the page again."),
  quota_exceeded: gettext("You have no room for more images and files. Delete some of yours."),
  not_author: gettext("Only its author may do this."),
  not_moderator: gettext("Only moderators may do this."),
  not_site_owner: gettext("Only owners may do this."),
  not_owner: gettext("Only the owner of the account may do this. Load the page again."),
  not_signed_in: gettext("You are signed out."),
  pending_approval: gettext("A moderator has not approved your account yet. Try again later."),
  post_locked: gettext("This post is locked. Only moderators can comment."),
  query_timeout: gettext("The service takes too long at this moment. Try again later."),
  report_closed: gettext("Another moderator has closed this report already."),
  report_on_yourself: gettext(
    "This report is about you or what you wrote. Another moderator decides on it.",
  ),
  request_timeout: gettext("Your connection is too slow for this. Try again."),
  service_unavailable: gettext("The service does not answer at this moment. Try again."),
  signup_closed: gettext(
    "Sign-up is closed. Ask the people who run this community for an account.",
  ),
  stale_version: gettext("It has been changed since you opened it."),
  still_under_way: gettext("It is still being sent. Wait a moment, and try again."),
  storage_full: gettext("The disk of the service is full. Tell the people who run it."),
  suspended: gettext("Your account is suspended. Ask the people who run this community."),
  target_is_moderator: gettext("This is a moderator. Only an owner can do this."),
  target_is_owner: gettext("This is an owner. Take the role away first."),
  too_many_invitations: gettext(
    "You have as many open invitations as an account can have. End one first.",
  ),
  too_many_pinned: gettext("Five posts are pinned already. Unpin one first."),
  too_many_requests: gettext("That was too often for now. Try again later."),
  too_many_tokens: gettext("You have as many tokens as an account can have. Delete one first."),
  topic_taken: gettext("Another topic has this name. Choose another one."),
  too_many_topics: gettext("There are thirty topics already. Delete one first."),
  too_many_webhooks: gettext("You have as many webhooks as an account can have. Delete one first."),
  username_taken: gettext("This name is taken. Choose another one."),
  wrong_credentials: gettext("The username or the password is wrong."),
};
const OFFLINE = {
  write: gettext("There is no connection. Your text is kept; try again."),
  delete: gettext("There is no connection, so nothing was deleted. Try again."),
  file: gettext("There is no connection, so the file was not sent. Try again."),
  image: gettext("There is no connection, so the image was not sent. Try again."),
  other: gettext("There is no connection. Try again."),
};

/** Errors in what was typed, by their code or by the name of the field and their code. */
const ERRORS = {
  blank: gettext("Write something here."),
  common_password: gettext(
    "Many people use this password, so it is easy to guess. Choose another one.",
  ),
  fixed: gettext("The operator of the service has set this, so you cannot change it here."),
  invalid_code: gettext("This is wrong, or has expired or has been used."),
  invalid_invitation: gettext(
    "This invitation does not work. It may be incomplete, expired, used up or ended. Ask for another one.",
  ),
  line_break: gettext("Write this in one line."),
  lost_image: gettext(
    "An image in this text is no longer there, since images are not kept. Insert it again, or delete its line.",
  ),
  malformed: gettext("This has characters that are not allowed here."),
  masked_password: gettext(
    "This is one character repeated, or looks like a hidden password. Choose another one.",
  ),
  no_such_comment: gettext("This comment has been deleted."),
  no_such_file: gettext(
    "One of the files has waited for more than a day, or is published already. Remove it, and add it again.",
  ),
  no_such_image: gettext(
    "One of the images has waited for more than a day, or is published already. Remove it, and add it again.",
  ),
  no_such_parent: gettext("The comment to which you reply has been deleted."),
  no_such_topic: gettext("One of the topics has been deleted. Choose another one."),
  not_own_name: gettext("Type your username, to be sure."),
  open_direction: gettext("This has an invisible character that turns text around. Type it again."),
  required: gettext("Write something here."),
  reserved: gettext("This name is reserved. Choose another one."),
  reused_key: gettext("Something else was sent from here before. Load the page again."),
  same_as_username: gettext("Your password must not be your username."),
  too_light: gettext("This color is too light to be read on the page. Choose a darker one."),
  too_long: gettext("This is too long. Make it shorter."),
  too_many_images: gettext("A post can have ten images. Remove one of them."),
  too_many_unattached: gettext(
    "You have forty images or files that are in no text. Discard some of your unsent texts, or wait for a day.",
  ),
  too_short: gettext("This is too short."),
  unsupported_character: gettext("This has a character that cannot be stored."),
  unusable_file: gettext(
    "The service cannot use this file: it is not what the end of its name says. Add it as PDF or ZIP.",
  ),
  unusable_image: gettext(
    "The service cannot use this image. Make it smaller, or save it again as JPEG or PNG.",
  ),
  topic_taken: PROBLEMS.topic_taken,
  username_taken: PROBLEMS.username_taken,
  wrong_password: gettext("This is not your current password."),
  "accent malformed": gettext("Write a color such as #204f95."),
  "code invalid_code": gettext("This link has expired or has been used."),
  "email malformed": gettext("This is not a mail address. Type one such as ada@example.org."),
  "email required": gettext("Type your mail address."),
  "current_password required": gettext("Type your current password."),
  "invitation required": gettext("You need an invitation to sign up. Open its link."),
  "name required": gettext("Type a name."),
  "password required": gettext("Type a password."),
  "recovery_code invalid_code": gettext(
    "The username or the code is wrong, or the code has been used already.",
  ),
  "recovery_code required": gettext("Type one of your recovery codes."),
  "url malformed": gettext(
    "Write a URL that begins with https, such as https://chat.example.net/x.",
  ),
  "url required": gettext("Write the URL of the program."),
  "title blank": gettext("Give your post a title."),
  "title required": gettext("Give your post a title."),
  "username malformed": gettext(
    "A username has 3 to 32 letters, digits, _ and -, and begins with a letter or a digit.",
  ),
  "username required": gettext("Type your username."),
};

/**
 * Return a sentence about a response that is an error, or about its absence.
 * @param {{code?: string, reason?: string | null, until?: string | null} | null}
 *   problem null if there was no response
 * @param {keyof typeof OFFLINE} task what the request was for
 */
export function explainProblem(problem, task) {
  if (problem === null) return OFFLINE[task];
  const { code } = problem;
  if (code === "suspended") return explainSuspension(problem);
  return PROBLEMS[`${task} ${code}`] ?? PROBLEMS[code] ?? FAILED;
}

/**
 * Return until when an account is suspended, and why.
 * @param {{until?: string | null, reason?: string | null}} problem
 */
function explainSuspension({ until, reason }) {
  const start = until
    ? gettext("Your account is suspended until %(date)s.", { date: dateOf(until) })
    : PROBLEMS.suspended;
  return reason ? `${start} ${gettext("Reason: %(reason)s", { reason })}` : start;
}

/**
 * Return a sentence about an error in a field. What exceeds a limit, the page has counted itself.
 * @param {Partial<import("./fields.js").FieldError>} error
 * @param {string} [name] of the field
 */
export function explainError({ code, excess, least, range }, name) {
  if (excess)
    return ngettext(
      "This is %(num)s character too long.",
      "This is %(num)s characters too long.",
      excess,
    );
  if (least)
    return ngettext("Use at least %(num)s character.", "Use at least %(num)s characters.", least);
  if (range) {
    const [lowest, highest] = range;
    return gettext("Type a number from %(lowest)s to %(highest)s.", { lowest, highest });
  }
  return ERRORS[`${name} ${code}`] ?? ERRORS[code] ?? FAILED;
}
