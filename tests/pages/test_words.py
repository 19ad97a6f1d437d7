"""The pages have a sentence of their own for each error that a member can cause."""

import re

import pytest

from posting.web.errors import input_codes, problem_codes
from posting.web.system import FOLDER

WORDS = (FOLDER / "words.js").read_text()
# These have no sentence: the script sends no such request, or shows the errors beside the fields.
OF_PROGRAMS = set(
    "already_current bad_request cursor_expired expectation_failed forbidden "
    "http_version_not_supported insufficient_scope invalid_input invalid_token "
    "method_not_allowed misdirected_request no_such_lock no_such_pin no_such_size "
    "no_such_suspension no_such_thumbnail no_webhooks not_confirmed not_found "
    "not_implemented other_host precondition_failed range_not_satisfiable "
    "request_header_fields_too_large search_busy token_not_allowed "
    "unsupported_media_type unsupported_precondition uri_too_long".split()
)
OF_PROGRAMS_IN_INPUT = set(
    "more no_such_notification not_a_choice null out_of_range repeated too_many unknown "
    "wrong_type".split()
)


def keys(name):
    """Return the keys of an object in the module."""
    [body] = re.findall(rf"const {name} = \{{\n(.*?)\n\}};", WORDS, re.DOTALL)
    return set(re.findall(r'^  (?:"[\w ]+? )?(\w+)"?:', body, re.MULTILINE))


@pytest.mark.usefixtures("app")
def test_each_problem_has_a_sentence():
    assert set(problem_codes()) - OF_PROGRAMS == keys("PROBLEMS")


@pytest.mark.usefixtures("app")
def test_each_error_in_a_field_has_a_sentence():
    of_the_page = {"lost_image", "not_own_name"}
    codes = set(input_codes()) - OF_PROGRAMS_IN_INPUT | of_the_page
    assert codes == keys("ERRORS")
