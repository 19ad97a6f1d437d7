"""The pages have a sentence of their own for each error that a member can cause."""

import re

import pytest

from posting.ops.doctor import postgres, sqlite, upkeep
from posting.ops.doctor.findings import QUERY, RUN
from posting.pages import problems
from posting.site.settings import CHOICES, TEXTS
from posting.web.errors import input_codes, problem_codes
from posting.web.system import FOLDER

WORDS = (FOLDER / "words.js").read_text()
KEEPING = (FOLDER / "keeping.js").read_text()
MODERATING = (FOLDER / "moderating.js").read_text()
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


def keys(name, module=WORDS):
    """Return the keys of an object in a module."""
    [body] = re.findall(rf"const {name} = \{{\n(.*?)\n\}};", module, re.DOTALL)
    return set(re.findall(r'^  (?:"[\w ]+? )?(\w+)"?:', body, re.MULTILINE))


@pytest.mark.usefixtures("app")
def test_each_problem_has_a_sentence():
    assert set(problem_codes()) - OF_PROGRAMS == keys("PROBLEMS")


@pytest.mark.usefixtures("app")
def test_each_error_in_a_field_has_a_sentence():
    of_the_page = {"lost_image", "not_own_name"}
    codes = set(input_codes()) - OF_PROGRAMS_IN_INPUT | of_the_page
    assert codes == keys("ERRORS")


@pytest.mark.usefixtures("app")
def test_each_page_of_an_error_is_about_a_code():
    assert set(problem_codes()) >= problems.WORDS.keys()
    assert set(input_codes()) >= problems.OF_INPUT.keys()


def test_each_quick_check_has_a_sentence():
    checks = (*upkeep.QUICK, *upkeep.CHECKS, *sqlite.QUICK, *postgres.CHECKS)
    names = {check.__name__.removeprefix("check_") for check in checks}
    assert names | {QUERY, RUN} == keys("FINDINGS", KEEPING)


def test_each_choice_of_owners_has_a_name():
    assert {*TEXTS, *CHOICES, "logo", "cover"} == keys("SETTINGS", MODERATING)
