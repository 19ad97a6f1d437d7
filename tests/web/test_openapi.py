"""The OpenAPI document is valid, complete, and describes the routes as they are."""

import json
import re
import unicodedata

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from posting.comments import schemas as comments
from posting.posts import schemas as posts
from posting.posts.schemas import IMAGES_PER_POST
from posting.web.hosts import url_template
from tests.helpers.assertions import assert_problem, resolved, strict
from tests.web.test_access import DOCUMENTED_PAGES, NAMES, template

SCHEMAS = {"PostInput": posts.PostInput, "CommentChange": comments.CommentChange}


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


def is_undocumented(rule):
    """Return whether a route is a page, a file, or metrics."""
    is_page = rule.endpoint.startswith("pages.") and "GET" in rule.methods
    is_page = is_page and f"GET {NAMES.get(rule.rule, rule.rule)}" not in DOCUMENTED_PAGES
    return is_page or rule.rule == "/metrics" or "filename" in rule.arguments


def test_it_is_valid(document):
    assert document["openapi"] == "3.1.0"
    validate(document)


def test_it_has_exactly_the_routes_of_the_app(app, document):
    routes = {
        (method.lower(), url_template(rule.rule))
        for rule in app.url_map.iter_rules()
        if not is_undocumented(rule)
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert {(method, path) for method, path, _ in operations(document)} == routes


def test_every_operation_has_an_id_a_summary_and_a_tag(document):
    listed = operations(document)
    ids = [operation["operationId"] for _, _, operation in listed]
    assert len(set(ids)) == len(ids)
    assert {"list_posts", "create_post", "sign_in", "edit_user"} <= set(ids)
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for _, _, operation in listed:
        assert operation["summary"]
        assert set(operation["tags"]) <= tags


def test_security_requires_a_session_or_token_where_the_routes_do(app, document, writer):
    for method, path, operation in operations(document):
        url = path.replace("{id}", "a" * 21).replace("{reaction}", "heart")
        if "{token}" in path:  # OpenAPI has no scheme for a token in the path
            assert operation["security"] == []
            assert "401" in operation["responses"]
            continue
        needs_user = app.test_client().open(url, method=method).status_code == 401
        by_token = writer.open(url, method=method)
        refused = by_token.status_code in {401, 403}
        code = by_token.json["code"] if refused else ""
        takes_token = code in {"", "not_moderator"}
        schemes = [{"session": []}, {"token": []}][: 2 if takes_token else 1]
        assert (operation["security"] == schemes) == needs_user, path
        assert not needs_user or "401" in operation["responses"]
        assert takes_token or code == "token_not_allowed"
    scheme = document["components"]["securitySchemes"]["session"]
    assert (scheme["in"], scheme["name"]) == ("cookie", "session")


def test_behind_https_the_cookie_has_its_secure_name(make_app):
    document = make_app(PUBLIC_URL="https://example.org").test_client().get("/openapi.json").json
    assert document["components"]["securitySchemes"]["session"]["name"] == "__Host-session"


def test_every_response_is_described(document):
    for method, path, operation in operations(document):
        for status, reference in operation["responses"].items():
            response = resolved(document, reference)
            assert response["description"]
            assert "X-Request-ID" in response["headers"], (path, status)
            if int(status) >= 400:
                [(media_type, content)] = response["content"].items()
                if f"{method.upper()} {path}" in {template(page) for page in DOCUMENTED_PAGES}:
                    assert media_type == "text/html"
                    continue
                assert media_type == "application/problem+json"
                for code, example in content["examples"].items():
                    assert example["value"]["code"] == code
                    assert example["value"]["status"] == int(status)
            elif status in {"200", "201"} or (status == "202" and "content" in response):
                assert all("schema" in content for content in response["content"].values())
            else:
                assert "content" not in response
        assert {"400", "500", "503"} <= operation["responses"].keys()
        is_page = f"{method.upper()} {path}" in DOCUMENTED_PAGES
        assert ("422" in operation["responses"]) != is_page


STREAMED = {"/users/me/export", "/backup"}  # which are made while they are sent


def test_every_read_documents_etag_and_304(document):
    for method, path, operation in operations(document):
        if method == "get" and path not in STREAMED:
            assert "304" in operation["responses"]
            assert "ETag" in operation["responses"]["200"]["headers"]


def test_conditional_and_idempotent_operations_document_their_errors(document):
    for header, status, minimum in (("If-Match", "412", 4), ("Idempotency-Key", "409", 3)):
        with_header = [
            operation
            for _, _, operation in operations(document)
            if header in {parameter["name"] for parameter in operation.get("parameters", [])}
        ]
        assert len(with_header) >= minimum
        for operation in with_header:
            assert status in operation["responses"], operation["operationId"]


def test_every_field_has_an_example(document):
    for name, schema in document["components"]["schemas"].items():
        for field, description in schema.get("properties", {}).items():
            if "$ref" not in str(description) and description.get("format") != "binary":
                assert description.get("examples"), f"{name}.{field}"


def test_examples_match_their_schemas(document):
    components = {"components": document["components"]}
    problem_schema = components | {"$ref": "#/components/schemas/Problem"}
    for _, _, operation in operations(document):
        for reference in operation["responses"].values():
            content = resolved(document, reference).get("content", {})
            for example in content.get("application/problem+json", {}).get("examples", {}).values():
                Draft202012Validator(problem_schema).validate(example["value"])
    for schema in document["components"]["schemas"].values():
        for field in schema.get("properties", {}).values():
            for example in field.get("examples", []):
                Draft202012Validator(components | field).validate(example)


def test_only_request_bodies_exclude_additional_properties(document):
    """Responses may get new fields, which clients must ignore."""
    request_schemas = {
        content["schema"]["$ref"].rpartition("/")[2]
        for _, _, operation in operations(document)
        for content in operation.get("requestBody", {}).get("content", {}).values()
    }
    assert {"PostInput", "ImageUpload", "Credentials"} <= request_schemas
    request_schemas |= {"Keys"}  # which is part of one
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("additionalProperties", True) == (name not in request_schemas), name


def test_responses_match_their_schemas(alice, post, document):
    components = {"components": strict(document)["components"]}

    def check(path, method, status, body):
        content = document["paths"][path][method]["responses"][str(status)]["content"]
        Draft202012Validator(components | content["application/json"]["schema"]).validate(body)

    check("/posts", "get", 200, alice.get("/posts").json)
    check("/posts/{id}", "get", 200, alice.get(f"/posts/{post['id']}").json)
    comment = alice.add_comment(post, "Indeed.")
    alice.add_comment(post, "And more.", parent_id=comment["id"])
    alice.delete(f"/comments/{comment['id']}")
    image = alice.add_image(post, alt="An engine")
    check("/posts/{id}", "get", 200, alice.get(f"/posts/{post['id']}").json)
    check("/posts/{id}/comments", "get", 200, alice.get(f"/posts/{post['id']}/comments").json)
    check("/posts/{id}/comments", "post", 201, comment)
    check("/comments/{id}", "get", 200, alice.get(f"/comments/{comment['id']}").json)
    check("/posts/{id}/images", "post", 201, image)
    check("/users/me", "get", 200, alice.get("/users/me").json)
    check("/sessions", "get", 200, alice.get("/sessions").json)
    schema = components | {"$ref": "#/components/schemas/Problem"}
    Draft202012Validator(schema).validate(assert_problem(alice.post("/posts", json={}), 422))


def test_all_fields_of_a_response_are_required(document):
    for name in ("Post", "Comment", "Image", "File", "User", "Session", "Author"):
        schema = document["components"]["schemas"][name]
        assert set(schema["required"]) == set(schema["properties"]), name
    brief, whole = (document["components"]["schemas"][name] for name in ("PostBrief", "Post"))
    assert set(whole["required"]) - set(brief["required"]) == {"content", "images", "files"}


def test_the_minimum_length_of_passwords_is_the_setting(make_app):
    document = make_app(PASSWORD_MIN=15).test_client().get("/openapi.json").json
    for name in ("SignUp", "ProfileChange"):
        assert document["components"]["schemas"][name]["properties"]["password"]["minLength"] == 15


def test_size_limits_are_the_settings(make_app):
    document = make_app(MAX_IMAGE_BYTES=123_456).test_client().get("/openapi.json").json
    file = document["components"]["schemas"]["ImageUpload"]["properties"]["file"]
    assert "123,456 bytes" in file["description"]
    document = make_app(MAX_FILE_BYTES=234_567).test_client().get("/openapi.json").json
    file = document["components"]["schemas"]["FileUpload"]["properties"]["file"]
    assert "234,567 bytes" in file["description"]
    images = document["components"]["schemas"]["Post"]["properties"]["images"]
    assert images["maxItems"] == IMAGES_PER_POST


def test_form_fields_are_not_nullable_and_no_field_has_a_default(document):
    """Generated clients take a field with a default for a required one."""
    schemas = document["components"]["schemas"]
    assert schemas["ImageUpload"]["properties"]["alt"]["type"] == "string"
    assert schemas["ImageChange"]["properties"]["alt"]["type"] == ["string", "null"]
    for name, schema in schemas.items():
        for field, described in schema["properties"].items():
            assert "default" not in described, f"{name}.{field}"


def test_the_former_name_of_a_parameter_is_deprecated(document):
    parameters = document["paths"]["/posts/{id}/comments"]["get"]["parameters"]
    deprecated = {each["name"]: each.get("deprecated", False) for each in parameters}
    assert (deprecated["order"], deprecated["sort"]) == (True, False)


def nodes(node):
    """Yield all objects in a document, at any depth."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from nodes(child)


def strings(document, keyword):
    """Yield the texts under a keyword in a document."""
    for node in nodes(document):
        if isinstance(node.get(keyword), str):
            yield node[keyword]


def test_no_schema_combines_keywords_that_generators_cannot(document):
    """Schemas that orval generates for such combinations throw when they are imported."""
    annotations = {"type", "description", "examples", "default"}
    choices = [node for node in nodes(document) if isinstance(node.get("enum"), list)]
    files = [node for node in nodes(document) if node.get("format") == "binary"]
    assert len(choices) > 4
    assert len(files) > 1
    for schema in choices:
        assert schema.keys() <= annotations | {"enum"}
    for schema in files:
        assert schema.keys() <= annotations | {"format"}


def test_responses_may_have_further_values(document):
    """Clients that are generated from an enum would refuse them."""
    found, left = [], [operation["responses"] for _, _, operation in operations(document)]
    while left:
        found.append(left.pop())
        references = {node["$ref"] for node in nodes(found[-1]) if "$ref" in node}
        targets = [resolved(document, {"$ref": reference}) for reference in sorted(references)]
        left += [target for target in targets if target not in found + left]
    extensible = [node for node in nodes(found) if "x-extensible-enum" in node]
    assert len(extensible) >= 6
    assert not [node for node in nodes(found) if "enum" in node]
    for field in extensible:
        assert field["type"] in ("string", ["string", "null"])
        assert all(f"`{value}`" in field["description"] for value in field["x-extensible-enum"])


def test_all_formats_are_registered(document):
    """The registry is https://spec.openapis.org/registry/format/.

    With its format `password`, a client of datamodel-code-generator sends asterisks.
    """
    formats = {"binary", "date-time", "email", "uri", "uri-reference"}
    assert set(strings(document, "format")) == formats


def test_patterns_contain_no_line_separators(document):
    """Code generators resolve escapes, and a line separator ends a regular expression."""
    patterns = set(strings(document, "pattern"))
    assert len(patterns) > 5
    for pattern in patterns:
        assert not re.search(r"[\u2028\u2029]|\\u202[89]|\\u0000", pattern)


# White space, invisible characters, line breaks, and characters next to them or similar to them.
CHARACTERS = {
    *filter(str.isspace, map(chr, range(0x10000))),
    *map(chr, [*range(0x1, 0x100), *range(0x17F0, 0x1820), *range(0x1FF0, 0x2080), 0xFEFE, 0xFEFF]),
    *"ẞ日🚂\u0301\u2800\u3164\ufffd\uffff\U000e0061",
}
# Patterns cannot say which characters are not assigned, which of those beyond U+FFFF are invisible,
# and whether a change of direction is closed. So they accept some texts that validators refuse.
BEYOND_PATTERNS = {
    *"\u202a\u202b\u202d\u202e\u2066\u2067\u2068\U000e0061",
    *(character for character in CHARACTERS if unicodedata.category(character) == "Cn"),
}
ECMA_SPACE = r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


TEXTS = [("PostInput", "title"), ("PostInput", "content"), ("CommentChange", "content")]


@pytest.mark.parametrize("space", [r"\s", ECMA_SPACE], ids=["Python", "ECMA-262"])
@pytest.mark.parametrize(("schema", "name"), TEXTS)
def test_patterns_match_what_validators_accept(schema, name, space, document):
    described = document["components"]["schemas"][schema]["properties"][name]
    pattern = described["pattern"].replace(r"\s", space).removesuffix("$") + r"\Z"
    validator = SCHEMAS[schema](partial=True)
    for character in CHARACTERS:
        for form in ("{}", "{} ", "a{}", "{}a", "\ufeff{}"):
            text = form.format(character)
            refused = bool(validator.validate({name: text}))
            matches = bool(re.search(pattern, text))
            if character in BEYOND_PATTERNS:
                assert matches or refused, ascii(text)
            else:
                assert matches != refused, ascii(text)


def test_the_server_url_has_the_prefix_of_the_app(anonymous):
    for prefix, server in (("", "/"), ("/community", "/community")):
        response = anonymous.get("/openapi.json", environ_overrides={"SCRIPT_NAME": prefix})
        assert response.json["servers"] == [{"url": server}]


def test_the_server_url_is_the_public_url_if_it_is_set(make_app, flask):
    url = "https://example.org/community"
    app = make_app(PUBLIC_URL=url)
    response = app.test_client().get("/openapi.json", environ_overrides={"SCRIPT_NAME": "/other"})
    assert response.json["servers"] == [{"url": url}]
    assert json.loads(flask("openapi", "print", on=app)[1])["servers"] == [{"url": url}]


def test_options_and_405_list_the_methods_of_the_document(anonymous, document):
    for path, item in document["paths"].items():
        url = re.sub(
            "{.*?}", "a" * 21, path.replace("{side}", "640").replace("{reaction}", "heart")
        )
        methods = {method.upper() for method in item if method != "parameters"}
        methods |= {"OPTIONS", *({"HEAD"} if "GET" in methods else ())}
        other = next(method for method in ("PUT", "POST") if method not in methods)
        for response in (anonymous.options(url), anonymous.open(url, method=other)):
            assert set(response.allow) == methods, path


def test_feeds_have_their_media_types(document):
    types = {
        path: list(resolved(document, item["get"]["responses"]["200"])["content"])
        for path, item in document["paths"].items()
        if "/feed." in path
    }
    assert types == {
        f"{prefix}{path}/feed.{format}": [media_type]
        for prefix in ("", "/feeds/{token}")
        for path in ("", "/@{username}", "/comments", "/p/{id}", "/t/{id}")
        for format, media_type in (
            ("atom", "application/atom+xml"),
            ("json", "application/feed+json"),
        )
    }


def test_several_words_of_a_parameter_are_an_array(document):
    parameters = document["paths"]["/posts"]["get"]["parameters"]
    [expand] = [parameter for parameter in parameters if parameter["name"] == "expand"]
    assert (expand["style"], expand["explode"]) == ("form", False)
    schema = {"type": "array", "items": {"type": "string", "enum": ["content", "images", "files"]}}
    assert schema.items() <= expand["schema"].items()
    assert schema["items"] == expand["schema"]["items"]


def test_every_parameter_has_a_description(document):
    items = document["paths"].values()
    parameters = [each for item in items for each in item.get("parameters", [])]
    for _, _, operation in operations(document):
        parameters += operation.get("parameters", [])
    assert len(parameters) > 50
    for parameter in parameters:
        assert resolved(document, parameter)["description"].endswith("."), parameter["name"]


def test_operations_with_traps_say_so(document):
    for _, path, operation in operations(document):
        description = operation.get("description", "")
        names = {parameter["name"] for parameter in operation.get("parameters", [])}
        for name in ("If-Match", "Idempotency-Key"):
            assert (name in names) == (f"`{name}`" in description), path
        if "cursor" in names and "Link" in str(operation["responses"]["200"]["headers"]):
            assert "`Link`" in description, path
        if "multipart/form-data" in str(operation.get("requestBody")):
            assert "no null" in description


def test_urls_and_headers_that_are_too_long_are_documented(document):
    for _, path, operation in operations(document):
        assert {"414", "431"} <= operation["responses"].keys(), path


def test_each_body_has_one_media_type(document):
    """With two, openapi-python-client generates functions that fail."""
    bodies = [each["requestBody"] for _, _, each in operations(document) if "requestBody" in each]
    assert len(bodies) > 20
    for body in bodies:
        [media_type] = body["content"]
        assert media_type in {"application/json", "multipart/form-data"}
