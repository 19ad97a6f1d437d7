"""Errors in words for people, by their code. Clients of the API get the details of `web.errors`."""

from collections.abc import Mapping
from typing import Any

from flask_babel import LazyString, lazy_gettext

TRY_AGAIN = lazy_gettext("Try again in a moment.")
MAY_BE_DELETED = lazy_gettext("The link is not complete, or leads to something that was deleted.")
BUSY = (lazy_gettext("The service does not answer at this moment"), TRY_AGAIN)

# The heading and the sentence of a page, by the code of the error.
WORDS: Mapping[str, tuple[LazyString, LazyString]] = {
    "not_found": (lazy_gettext("This page does not exist"), MAY_BE_DELETED),
    "no_such_post": (lazy_gettext("This post does not exist"), MAY_BE_DELETED),
    "no_such_comment": (lazy_gettext("This comment does not exist"), MAY_BE_DELETED),
    "no_such_topic": (lazy_gettext("This topic does not exist"), MAY_BE_DELETED),
    "no_such_user": (lazy_gettext("This member does not exist"), MAY_BE_DELETED),
    "other_host": (
        lazy_gettext("This community has another address"),
        lazy_gettext("Open it at the address that you know."),
    ),
    "suspended": (
        lazy_gettext("Your account is suspended"),
        lazy_gettext("Ask the people who run this community."),
    ),
    "pending_approval": (
        lazy_gettext("A moderator has not approved your account yet"),
        lazy_gettext("Try again later."),
    ),
    "too_many_requests": (
        lazy_gettext("That was too often for now"),
        lazy_gettext("Try again later."),
    ),
    "query_timeout": (
        lazy_gettext("This takes too long at this moment"),
        lazy_gettext("Try again later, or search for less."),
    ),
    "database_busy": BUSY,
    "search_busy": BUSY,
    "service_unavailable": BUSY,
    "database_moved": (
        lazy_gettext("The service must be restarted"),
        lazy_gettext("Tell the people who run this community."),
    ),
    "internal_server_error": (
        lazy_gettext("Something went wrong in the service"),
        lazy_gettext("Try again later. The people who run it find the error in their log."),
    ),
}
# By the code of the first error in the input.
OF_INPUT = {
    "too_long": (lazy_gettext("This search is too long"), lazy_gettext("Search for fewer words."))
}
BAD_LINK = (
    lazy_gettext("This link is not valid"),
    lazy_gettext("A part of its address is wrong, or has expired."),
)
OTHER = (
    lazy_gettext("This page cannot be shown"),
    lazy_gettext("Go back, or ask the people who run this community."),
)


def words_for(problem: Mapping[str, Any]) -> tuple[LazyString, LazyString]:
    """Return the heading and the sentence of the page for a problem."""
    if errors := problem.get("errors"):
        return OF_INPUT.get(errors[0]["code"], BAD_LINK)
    return WORDS.get(problem["code"], OTHER)
