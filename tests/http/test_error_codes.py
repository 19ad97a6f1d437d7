"""The codes of errors are the same in the sources, the lists and the documentation."""

import re
from http import HTTPStatus
from pathlib import Path

from posting.http.errors import INPUT_CODES, PROBLEM_CODES, title
from tests.helpers.assertions import assert_problem

ROOT = Path(__file__).parents[2]
SOURCES = "\n".join(file.read_text() for file in (ROOT / "posting").rglob("*.py"))
PHRASES = {title(status).lower().replace(" ", "_") for status in HTTPStatus if status >= 400}


def test_each_code_in_the_sources_is_listed():
    declared = set(re.findall(r'error_code = "(\w+)"', SOURCES))
    assert declared <= set(PROBLEM_CODES)
    assert set(PROBLEM_CODES) - declared <= PHRASES
    assert set(re.findall(r'Message\(\s*"(\w+)"', SOURCES)) | {"too_short", "too_long"} == set(
        INPUT_CODES
    )


def test_no_code_is_listed_twice():
    assert len(set(PROBLEM_CODES)) == len(PROBLEM_CODES)
    assert len(set(INPUT_CODES)) == len(INPUT_CODES)


def test_each_code_is_documented():
    text = (ROOT / "docs" / "interface.md").read_text()
    section = text.partition("### Errors")[2].partition("### ")[0]
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert set(PROBLEM_CODES) | set(INPUT_CODES) <= named


def test_the_document_lists_the_codes(anonymous):
    schemas = anonymous.get("/openapi.json").json["components"]["schemas"]
    assert schemas["Problem"]["properties"]["code"]["enum"] == list(PROBLEM_CODES)
    assert schemas["ProblemError"]["properties"]["code"]["enum"] == list(INPUT_CODES)


def test_the_codes_of_nginx_are_listed():
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    codes = text.partition("map $status $posting_code {")[2].partition("}")[0]
    assert set(re.findall(r"\d+ (\w+);", codes)) <= set(PROBLEM_CODES)


def test_a_problem_and_its_errors_have_codes(alice, anonymous):
    assert anonymous.post("/posts").json["code"] == "not_signed_in"
    assert anonymous.post("/signin", json={"username": "a", "password": "b"}).json["code"] == (
        "wrong_credentials"
    )
    problem = alice.post("/posts", json={"title": "x" * 201, "content": None, "x": 1}).json
    assert problem["code"] == "invalid_input"
    assert {error["pointer"]: error["code"] for error in problem["errors"]} == {
        "/title": "too_long",
        "/content": "null",
        "/x": "unknown",
    }
    problem = alice.get("/posts?limit=0&cursor=x&author=y").json
    assert {error["parameter"]: error["code"] for error in problem["errors"]} == {
        "limit": "out_of_range",
        "author": "malformed",
    }
    assert alice.put("/posts").json["code"] == "method_not_allowed"


def test_a_range_beyond_a_file_has_a_code(anonymous):
    headers = {"Range": "bytes=999999999-"}
    with anonymous.get("/static/pages.js", headers=headers) as response:
        assert assert_problem(response, 416)["code"] == "range_not_satisfiable"
