"""A view with an incomplete declaration is refused or fails on its first request."""

import inspect
from io import BytesIO

import pytest
import sqlalchemy as sa
from flask import Flask, g
from marshmallow import Schema

from posting.accounts.current_user import (
    READERS,
    SESSION_OPTIONAL,
    SIGNED_IN,
    CurrentUser,
    current_user,
)
from posting.db.transactions import commit, execute, is_in_transaction
from posting.posts.models import Post
from posting.web.endpoint import PUBLIC, SAFE_METHODS, SHARED, Blueprint, Endpoint
from posting.web.limits import Counts, Limit
from tests.conftest import PASSWORD
from tests.helpers import pictures


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
    with pytest.raises(TypeError, match=r"missing .* 'access'"):
        blueprint.get("/extra")(lambda: None)
    with pytest.raises(TypeError, match="without an access rule"):
        blueprint.route("/extra")(lambda: None)


def test_an_unknown_declaration_is_refused(blueprint):
    with pytest.raises(TypeError, match="limits"):
        blueprint.get("/extra", access=PUBLIC, limits=())(lambda: None)


@pytest.mark.parametrize("name", ["body", "form", "query", "condition", "id", "once", "hits"])
def test_an_undeclared_parameter_is_refused(blueprint, name):
    view = eval(f"lambda {name}: None")
    with pytest.raises(TypeError, match=f"takes .*{name}.* but declares"):
        blueprint.post("/extra", access=PUBLIC)(view)


@pytest.mark.parametrize(
    ("declared", "parameter"),
    [
        ({"body": Schema()}, "body"),
        ({"form": Schema()}, "form"),
        ({"query": Schema()}, "query"),
        ({"conditional": True}, "condition"),
    ],
)
def test_a_declaration_without_its_parameter_is_refused(blueprint, declared, parameter):
    with pytest.raises(TypeError, match=f"but declares .*{parameter}"):
        blueprint.post("/extra", access=PUBLIC, **declared)(lambda: None)


def test_a_view_that_does_not_commit_fails(blueprint, client, sign_in):
    author = sign_in("ada").user["id"]

    @blueprint.post("/extra", access=PUBLIC, status=204)
    def forgetful():
        execute(sa.insert(Post), author_id=author, title="x", content="x")

    with pytest.raises(RuntimeError, match="forgetful did not commit"):
        client().post("/extra")


@pytest.mark.parametrize("sent", [{}, {"Idempotency-Key": "a"}])
@pytest.mark.parametrize("commits", [True, False])
def test_an_idempotent_view_that_does_not_commit_by_once_fails(
    blueprint, client, alice, sent, commits
):
    @blueprint.post("/extra", access=SIGNED_IN, idempotent=True, returns={})
    def forgetful(once):
        execute(sa.insert(Post), author_id=current_user.id, title="x", content="x")
        if commits:
            commit()
        return {}

    signed_in = alice.copy(client().application)
    error = "forgetful did not call once.commit" if commits else "forgetful did not commit"
    with pytest.raises(RuntimeError, match=error):
        signed_in.post("/extra", headers=sent)


@pytest.mark.parametrize("sent", [{}, {"Idempotency-Key": "a"}])
def test_an_idempotent_view_that_neither_writes_nor_commits_fails(blueprint, client, alice, sent):
    @blueprint.post("/extra", access=SIGNED_IN, idempotent=True, returns={})
    def forgetful(once):
        return {}

    signed_in = alice.copy(client().application)
    with pytest.raises(RuntimeError, match="forgetful did not call"):
        signed_in.post("/extra", headers=sent)


def test_an_idempotent_view_without_its_parameter_is_refused(blueprint):
    with pytest.raises(TypeError, match=r"but declares .*once"):
        blueprint.post("/extra", access=SIGNED_IN, idempotent=True)(lambda: None)


def test_a_limit_on_a_read_is_refused(blueprint):
    limit = Limit("extra", "LIMIT_POSTS", str)
    with pytest.raises(TypeError, match="has a limit, but a GET commits nothing"):
        blueprint.get("/extra", access=PUBLIC, limit=limit)(lambda: None)


def test_a_limit_of_failures_without_its_parameter_is_refused(blueprint):
    limit = Limit("extra", "LIMIT_SIGNIN", str, Counts.FAILURES)
    with pytest.raises(TypeError, match=r"but declares .*hits"):
        blueprint.post("/extra", access=PUBLIC, limit=limit)(lambda: None)


@pytest.mark.parametrize("setting", ["on", "off"])
def test_a_view_that_does_not_refund_the_hits_of_a_success_fails(make_app, blueprint, setting):
    limit = Limit("extra", "LIMIT_SIGNIN", str, Counts.FAILURES)

    @blueprint.post("/extra", access=PUBLIC, limit=limit, status=204)
    def forgetful(hits):
        hits.count((limit, "someone"))
        hits.commit()

    app = make_app(RATE_LIMITS=setting)
    app.register_blueprint(blueprint)
    with pytest.raises(RuntimeError, match="forgetful did not refund"):
        app.test_client().post("/extra")


def test_an_idempotent_view_without_a_user_is_refused(blueprint):
    with pytest.raises(TypeError, match="keys belong to users"):
        blueprint.post("/extra", access=PUBLIC, idempotent=True)(lambda once: None)


def test_a_shared_cache_on_a_write_is_refused(blueprint):
    with pytest.raises(TypeError, match="no POST is cached"):
        blueprint.post("/extra", access=PUBLIC, cache=SHARED)(lambda: None)


def test_a_shared_cache_of_what_only_users_may_read_is_refused(blueprint):
    with pytest.raises(TypeError, match="is for one user"):
        blueprint.get("/extra", access=SIGNED_IN, cache=SHARED)(lambda: None)


@pytest.mark.parametrize("access", [PUBLIC, READERS, SESSION_OPTIONAL])
def test_a_view_with_a_shared_cache_cannot_read_the_current_user(
    blueprint, client, anonymous, alice, access
):
    @blueprint.get("/extra", access=access, cache=SHARED, returns={})
    def personal():
        return {"name": current_user.username}

    app = client().application
    for sender, headers in ((anonymous, {}), (alice, {}), (anonymous, alice.authorization())):
        with pytest.raises(RuntimeError, match="personal requires no user, but reads"):
            sender.copy(app).get("/extra", headers=headers)


def test_a_cache_is_private_unless_an_endpoint_declares_another(blueprint, client):
    @blueprint.get("/extra", access=PUBLIC, returns={})
    def private():
        return {}

    @blueprint.get("/shared", access=PUBLIC, cache=SHARED, returns={})
    def shared():
        return {}

    anonymous = client()
    assert anonymous.get("/extra").headers["Cache-Control"] == "private, no-store"
    assert anonymous.get("/shared").headers["Cache-Control"].startswith("public")
    assert anonymous.get("/shared?x=1").headers["Cache-Control"] == "private, no-store"


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
    """Or it ends with another view that does."""
    others = {"edit_user": "edit_me", "delete_user": "delete_me"}
    for endpoint in endpoints(app):
        if endpoint.method not in SAFE_METHODS:
            other = others.get(endpoint.name)
            end = "return once.commit(" if endpoint.idempotent else "    commit()"
            last = f"return {other}(" if other else end
            assert last in inspect.getsource(endpoint.view), endpoint.name


def test_only_the_id_the_start_and_the_user_of_a_request_are_in_g(make_app, alice, post):
    file = {"file": (BytesIO(pictures.png()), "a.png")}
    requests = {
        f"/posts/{post['id']}/images": {"data": file, "headers": {"Idempotency-Key": "a"}},
        "/posts": {"json": {"title": "x", "content": "y"}, "headers": {"Idempotency-Key": "b"}},
        "/signin": {"json": {"username": "alice", "password": PASSWORD}},
    }
    client = alice.copy(make_app(RATE_LIMITS="on"))
    for path, arguments in requests.items():
        with client:  # keeps `g`
            assert "RateLimit" in client.post(path, **arguments).headers
            assert set(g) - {"_login_user"} == {"request_id", "started", "user_id"}


def test_a_request_leaves_no_transaction_open(app, alice, post):
    with app.app_context():
        alice.get(f"/posts/{post['id']}")
        assert not is_in_transaction()
