"""Every code of an error is registered and documented."""

import ast
import inspect
import re
from http import HTTPStatus
from pathlib import Path

import flask
import pytest
import werkzeug
from gunicorn.workers.base import Worker
from werkzeug.exceptions import HTTPException

import posting
from posting.web.errors import Coded, Message, input_codes, plain_code, problem_codes
from tests.helpers.assertions import assert_problem

ROOT = Path(__file__).parents[2]


def subclasses(error):
    for subclass in error.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_each_error_of_the_service_registers_its_code():
    own = [error for error in subclasses(HTTPException) if hasattr(error, "error_code")]
    assert len(own) > 25
    for error in own:
        assert issubclass(error, Coded), error
        assert error.error_code in problem_codes()


def test_an_error_without_a_code_is_refused():
    with pytest.raises(AttributeError, match="error_code"):
        type("NoCode", (Coded, HTTPException), {})


def test_each_other_code_is_the_phrase_of_a_status():
    phrases = {plain_code(status) for status in HTTPStatus if status >= 400}
    assert set(problem_codes()) - Coded.codes <= phrases


def test_each_message_is_defined_when_its_module_is_imported():
    """Otherwise the document would lack its code until the message is first needed."""
    trees = [ast.parse(file.read_text()) for file in (ROOT / "posting").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    assert sum(map(is_message, nodes)) > 25
    for function in nodes:
        if isinstance(function, ast.FunctionDef):
            assert not any(map(is_message, ast.walk(function))), function.name


def is_message(node):
    """Return whether a node of a source defines a message with a code of its own."""
    return (
        isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "Message"
        and isinstance(node.args[0], ast.Constant)
    )


def test_formatting_a_message_keeps_its_code():
    template = Message("too_short", "Must have at least {} characters.")
    message = template.format("{}")
    assert (message, message.code) == ("Must have at least {} characters.", "too_short")


def test_each_code_of_a_library_is_listed():
    statuses = set(map(int, re.findall(r"status_int = (\d+)", inspect.getsource(Worker))))
    assert 417 in statuses
    for package in (werkzeug, flask, posting):
        for file in Path(package.__file__).parent.rglob("*.py"):
            for name in re.findall(r"\braise (?:exceptions\.)?(\w+)", file.read_text()):
                error = getattr(werkzeug.exceptions, name, None)
                statuses |= {getattr(error, "code", None)} - {None}
    assert {404, 405, 413, 416} <= statuses
    assert {plain_code(status) for status in statuses if status >= 400} <= set(problem_codes())


def test_each_code_is_documented():
    text = (ROOT / "docs" / "interface.md").read_text()
    section = text.partition("### Errors")[2].partition("### ")[0]
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert set(problem_codes()) | set(input_codes()) <= named


def test_the_document_lists_the_codes(anonymous):
    schemas = anonymous.get("/openapi.json").json["components"]["schemas"]
    for name, codes in (("Problem", problem_codes()), ("ProblemError", input_codes())):
        code = schemas[name]["properties"]["code"]
        assert code["x-extensible-enum"] == list(codes)
        assert all(f"`{each}`" in code["description"] for each in codes)


def test_the_codes_of_nginx_are_listed():
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    codes = text.partition("map $status $posting_code {")[2].partition("}")[0]
    assert set(re.findall(r"\d+ (\w+);", codes)) <= set(problem_codes())


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
    with anonymous.get("/static/pages.css", headers=headers) as response:
        assert assert_problem(response, 416)["code"] == "range_not_satisfiable"
