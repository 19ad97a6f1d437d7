"""The OpenAPI document: valid, whole, and true of the routes."""

import re

import pytest
from asserts import problem
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

UNDOCUMENTED = {"/", "/metrics", "/docs/<path:filename>", "/static/<path:filename>"}


@pytest.fixture
def document(anonymous):
    return anonymous.get("/openapi.json").json


def operations(document):
    return [
        (method, path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    ]


def resolved(document, node):
    while "$ref" in node:
        target = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def test_it_is_valid(document):
    assert document["openapi"] == "3.1.0"
    validate(document)


def test_it_has_every_route_and_no_other(app, document):
    routes = {
        (method.lower(), re.sub("<nanoid.*:id>", "{id}", rule.rule))
        for rule in app.url_map.iter_rules()
        if rule.rule not in UNDOCUMENTED
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert {(method, path) for method, path, _ in operations(document)} == routes


def test_every_operation_says_what_it_is(document):
    listed = operations(document)
    names = [operation["operationId"] for _, _, operation in listed]
    assert len(set(names)) == len(names)
    assert {"list_posts", "create_post", "sign_in", "edit_user"} <= set(names)
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for _, _, operation in listed:
        assert operation["summary"]
        assert set(operation["tags"]) <= tags


def test_who_may_ask_is_told(app, document):
    for method, path, operation in operations(document):
        answer = app.test_client().open(path.replace("{id}", "a" * 21), method=method)
        needs_session = answer.status_code == 401
        assert operation["security"] == ([{"session": []}] if needs_session else []), path
        assert not needs_session or "401" in operation["responses"]
    scheme = document["components"]["securitySchemes"]["session"]
    assert (scheme["in"], scheme["name"]) == ("cookie", "session")


def test_the_cookie_is_named_as_it_is(make_app):
    document = make_app(PUBLIC_URL="https://example.org").test_client().get("/openapi.json").json
    assert document["components"]["securitySchemes"]["session"]["name"] == "__Host-session"


def test_every_answer_is_described(document):
    for _, path, operation in operations(document):
        for status, reference in operation["responses"].items():
            response = resolved(document, reference)
            assert response["description"]
            assert "X-Request-ID" in response["headers"], (path, status)
            if int(status) >= 400:
                [(media_type, content)] = response["content"].items()
                assert media_type == "application/problem+json"
                assert content["example"]["status"] == int(status)
            elif status in {"200", "201"}:
                assert all("schema" in content for content in response["content"].values())
            else:
                assert "content" not in response
        assert {"400", "500", "503"} <= operation["responses"].keys()


def test_every_read_is_conditional(document):
    for method, _, operation in operations(document):
        if method == "get":
            assert "304" in operation["responses"]
            assert "ETag" in operation["responses"]["200"]["headers"]


def test_what_a_header_can_bring_about_is_told(document):
    for header, status, least in (("If-Match", "412", 4), ("Idempotency-Key", "409", 3)):
        taking = [
            operation
            for _, _, operation in operations(document)
            if header in {parameter["name"] for parameter in operation.get("parameters", [])}
        ]
        assert len(taking) >= least
        for operation in taking:
            assert status in operation["responses"], operation["operationId"]


def test_every_field_has_an_example(document):
    for name, schema in document["components"]["schemas"].items():
        for field, description in schema.get("properties", {}).items():
            if "$ref" not in str(description) and description.get("format") != "binary":
                assert description.get("examples"), f"{name}.{field}"


def test_examples_follow_their_schemas(document):
    components = {"components": document["components"]}
    problem_schema = components | {"$ref": "#/components/schemas/Problem"}
    for response in document["components"]["responses"].values():
        for content in response["content"].values():
            Draft202012Validator(problem_schema).validate(content["example"])
    for schema in document["components"]["schemas"].values():
        for field in schema.get("properties", {}).values():
            for example in field.get("examples", []):
                Draft202012Validator(components | field).validate(example)


def test_answers_follow_their_schemas(alice, post, document):
    components = {"components": document["components"]}

    def check(path, method, status, answer):
        content = document["paths"][path][method]["responses"][str(status)]["content"]
        Draft202012Validator(components | content["application/json"]["schema"]).validate(answer)

    check("/posts", "get", 200, alice.get("/posts").json)
    check("/posts/{id}", "get", 200, alice.get(f"/posts/{post['id']}").json)
    comment = alice.comment_on(post, "Indeed.")
    alice.comment_on(post, "And more.", parent_id=comment["id"])
    alice.delete(f"/comments/{comment['id']}")
    image = alice.illustrate(post, alt="An engine")
    check("/posts/{id}", "get", 200, alice.get(f"/posts/{post['id']}").json)
    check("/posts/{id}/comments", "get", 200, alice.get(f"/posts/{post['id']}/comments").json)
    check("/posts/{id}/comments", "post", 201, comment)
    check("/comments/{id}", "get", 200, alice.get(f"/comments/{comment['id']}").json)
    check("/posts/{id}/images", "post", 201, image)
    check("/users/me", "get", 200, alice.get("/users/me").json)
    check("/sessions", "get", 200, alice.get("/sessions").json)
    error = problem(alice.post("/posts", json={}), 422)
    schema = components | {"$ref": "#/components/schemas/Problem"}
    Draft202012Validator(schema).validate(error)


def test_outputs_are_whole(document):
    """What goes out always has all its fields, and says so."""
    for name in ("PostBrief", "Post", "Comment", "Image", "User", "Session", "Author"):
        schema = document["components"]["schemas"][name]
        assert set(schema["required"]) == set(schema["properties"]), name


def test_the_least_password_is_that_of_the_settings(make_app):
    document = make_app(PASSWORD_MIN=15).test_client().get("/openapi.json").json
    for name in ("SignUp", "ProfileChange"):
        assert document["components"]["schemas"][name]["properties"]["password"]["minLength"] == 15


def test_it_names_the_prefix_under_which_it_is_mounted(anonymous):
    for prefix, server in (("", "/"), ("/community", "/community")):
        answer = anonymous.get("/openapi.json", environ_overrides={"SCRIPT_NAME": prefix})
        assert answer.json["servers"] == [{"url": server}]


def test_edits_take_merge_patches(document):
    for path in ("/posts/{id}", "/comments/{id}", "/images/{id}", "/users/{id}"):
        content = document["paths"][path]["patch"]["requestBody"]["content"]
        assert set(content) == {"application/json", "application/merge-patch+json"}
