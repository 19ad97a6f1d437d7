"""A view with an incomplete declaration is refused or fails on its first request."""

import inspect

import pytest
from flask import Flask
from marshmallow import Schema

from posting.auth.login import SIGNED_IN, CurrentUser
from posting.db.engine import SAFE_METHODS, db, insert
from posting.db.models import Post
from posting.http import idempotency
from posting.http.endpoint import PUBLIC, Blueprint, Endpoint
from posting.http.rate_limits import Limit


@pytest.fixture
def blueprint():
    return Blueprint("extra", __name__, description="Extra")


@pytest.fixture
def client(make_app, blueprint):
    """Return a function that creates a client of an app with the blueprint."""

    def client():
        app = make_app()
        app.register_blueprint(blueprint)
        return app.test_client()

    return client


def endpoints(app: Flask) -> list[Endpoint]:
    return [view for view in app.view_functions.values() if isinstance(view, Endpoint)]


def test_an_access_rule_is_required(blueprint):
    with pytest.raises(TypeError, match="declares no access rule"):
        blueprint.get("/extra")(lambda: None)


def test_an_unknown_declaration_is_refused(blueprint):
    with pytest.raises(TypeError, match="limits"):
        blueprint.get("/extra", access=PUBLIC, limits=())(lambda: None)


@pytest.mark.parametrize("name", ["body", "form", "query", "if_match", "id"])
def test_an_undeclared_parameter_is_refused(blueprint, name):
    view = eval(f"lambda {name}: None")
    with pytest.raises(TypeError, match=f"takes .*{name}.* but declares"):
        blueprint.post("/extra", access=PUBLIC)(view)


@pytest.mark.parametrize(
    "declared", [{"body": Schema()}, {"form": Schema()}, {"query": Schema()}, {"if_match": True}]
)
def test_a_declaration_without_its_parameter_is_refused(blueprint, declared):
    with pytest.raises(TypeError, match=f"but declares .*{next(iter(declared))}"):
        blueprint.post("/extra", access=PUBLIC, **declared)(lambda: None)


def test_a_view_that_does_not_commit_fails(blueprint, client, sign_in):
    author = sign_in("ada").user["id"]

    @blueprint.post("/extra", access=PUBLIC, status=204)
    def forgetful():
        insert(Post, author_id=author, title="x", content="x")

    with pytest.raises(RuntimeError, match="forgetful did not commit"):
        client().post("/extra")


@pytest.mark.parametrize("sent", [{}, {"Idempotency-Key": "a"}])
def test_an_idempotent_view_that_does_not_save_its_response_fails(blueprint, client, alice, sent):
    @blueprint.post("/extra", access=SIGNED_IN, idempotent=True, returns={})
    def forgetful():
        return {}

    signed_in = alice.copy(client().application)
    with pytest.raises(RuntimeError, match="forgetful did not call"):
        signed_in.post("/extra", headers=sent)


def test_a_view_that_is_not_idempotent_cannot_save_its_response(blueprint, client):
    @blueprint.post("/extra", access=PUBLIC, returns={})
    def confused():
        idempotency.save({}, {})
        return {}

    with pytest.raises(RuntimeError, match="confused is not declared idempotent"):
        client().post("/extra")


def test_a_limit_on_a_read_is_refused(blueprint):
    limit = Limit("extra", "LIMIT_POSTS", str)
    with pytest.raises(TypeError, match="has a limit, but a GET commits nothing"):
        blueprint.get("/extra", access=PUBLIC, limit=limit)(lambda: None)


def test_an_idempotent_view_without_a_user_is_refused(blueprint):
    with pytest.raises(TypeError, match="keys belong to users"):
        blueprint.post("/extra", access=PUBLIC, idempotent=True)(lambda: None)


def test_a_response_with_an_object_fails(blueprint, client):
    @blueprint.get("/extra", access=PUBLIC, returns={})
    def leaking():
        return CurrentUser(
            "a", "ada", False, {}, session_id="secret", token_id=None, may_write=True
        )

    with pytest.raises(TypeError, match="not JSON serializable"):
        client().get("/extra")


@pytest.mark.parametrize(("returns", "body"), [(None, {}), ({}, None)])
def test_a_view_must_return_a_body_exactly_if_it_declares_one(blueprint, client, returns, body):
    @blueprint.get("/extra", access=PUBLIC, returns=returns)
    def mistaken():
        return body

    with pytest.raises(RuntimeError, match="mistaken returned another body"):
        client().get("/extra")


def test_every_view_that_writes_contains_its_commit(app):
    for endpoint in endpoints(app):
        if endpoint.method not in SAFE_METHODS:
            assert "db.session.commit()" in inspect.getsource(endpoint.view), endpoint.name


def test_a_request_leaves_no_transaction_open(app, alice, post):
    with app.app_context():
        alice.get(f"/posts/{post['id']}")
        assert not db.session.registry.has() or not db.session().in_transaction()
