"""A view with an incomplete declaration is refused or fails on its first request."""

from io import BytesIO

import pytest
import sqlalchemy as sa
from flask import Flask, g
from marshmallow import Schema
from werkzeug.exceptions import Conflict

from posting.accounts.current_user import (
    READERS,
    SESSION_OPTIONAL,
    SIGNED_IN,
    CurrentUser,
    current_user,
)
from posting.db.transactions import execute, fetch_all, unit_of_work
from posting.images.views import ImagesBusy
from posting.posts.models import Post
from posting.web.endpoint import PUBLIC, SHARED, Blueprint, Endpoint
from posting.web.limits import Counts, Limit, RateWindow
from tests.conftest import PASSWORD
from tests.helpers import pictures
from tests.helpers.transactions import is_in_transaction


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
    with pytest.raises(TypeError, match="limit"):
        blueprint.get("/extra", access=PUBLIC, limit=())(lambda: None)


@pytest.mark.parametrize("name", ["body", "form", "query", "condition", "id", "prepared", "hits"])
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


class TestUnitOfWork:
    """The endpoint commits what a view writes, or nothing."""

    @pytest.fixture
    def texts(self, app):
        """Return a function that returns the titles of all posts, and the hits of all limits."""

        def texts():
            with app.app_context():
                titles = [row.title for row in fetch_all(sa.select(Post.title))]
                return titles, [row.hits for row in fetch_all(sa.select(RateWindow.hits))]

        return texts

    @pytest.fixture
    def extra(self, blueprint, make_app, alice):
        """Return a function that sends a request to a view that writes a post, and may fail."""

        def extra(*, error=None, counts=Counts.SUCCESSES, headers=None, **declarations):
            refunded = (ImagesBusy,) if counts is Counts.ATTEMPTS else ()
            limit = Limit("extra", "LIMIT_POSTS", str, counts, refunded=refunded)

            @blueprint.post("/extra", access=SIGNED_IN, limits=[limit], returns={}, **declarations)
            def write():
                execute(sa.insert(Post), author_id=current_user.id, title="x", content="x")
                if error:
                    raise error
                return {}

            app = make_app(RATE_LIMITS="on", PROPAGATE_EXCEPTIONS=False)
            app.register_blueprint(blueprint)
            return alice.copy(app).post("/extra", headers=headers)

        return extra

    def test_what_a_view_writes_is_committed_with_its_hit(self, extra, texts):
        assert extra().status_code == 200
        assert texts() == (["x"], [1])

    @pytest.mark.parametrize("error", [Conflict, KeyError])
    @pytest.mark.parametrize(("counts", "hits"), [(Counts.SUCCESSES, []), (Counts.ATTEMPTS, [1])])
    def test_a_view_that_fails_leaves_nothing(self, extra, texts, error, counts, hits):
        response = extra(error=error, counts=counts)
        assert response.status_code == (409 if error is Conflict else 500)
        assert texts() == ([], hits)

    @pytest.mark.parametrize("error", [Conflict, KeyError])
    def test_an_idempotent_view_that_fails_leaves_nothing(self, extra, texts, error):
        response = extra(error=error, idempotent=True, headers={"Idempotency-Key": "a"})
        assert response.status_code == (409 if error is Conflict else 500)
        assert texts() == ([], [])

    def test_an_attempt_that_is_refunded_does_not_count(self, extra, texts):
        assert extra(error=ImagesBusy, counts=Counts.ATTEMPTS).status_code == 503
        assert texts() == ([], [0])

    @pytest.mark.parametrize("fails", [False, True])
    def test_failures_are_counted_before_the_view(self, blueprint, make_app, texts, fails):
        limit = Limit("extra", "LIMIT_SIGNIN", str, Counts.FAILURES)

        def check(hits):
            hits.count_before((limit, "someone"))
            if fails:
                raise Conflict
            with unit_of_work():
                hits.refund()

        @blueprint.post("/extra", access=PUBLIC, limits=[limit], prepare=check, status=204)
        def write():
            execute(sa.insert(Post), title="x", content="x")

        app = make_app(RATE_LIMITS="on")
        app.register_blueprint(blueprint)
        assert app.test_client().post("/extra").status_code == (409 if fails else 204)
        assert texts() == (([], [1]) if fails else (["x"], [0]))

    def test_preparing_begins_no_transaction_and_cannot_write(self, blueprint, client):
        @blueprint.post(
            "/extra",
            access=PUBLIC,
            prepare=lambda: execute(sa.insert(Post), title="x", content="x"),
            status=204,
        )
        def write():
            pass

        with pytest.raises(RuntimeError, match="outside of a unit of work"):
            client().post("/extra")


def test_a_limit_on_a_read_is_refused(blueprint):
    limit = Limit("extra", "LIMIT_POSTS", str)
    with pytest.raises(TypeError, match="has a limit, but a GET commits nothing"):
        blueprint.get("/extra", access=PUBLIC, limits=[limit])(lambda: None)


def test_a_limit_of_failures_that_nothing_counts_is_refused(blueprint):
    limit = Limit("extra", "LIMIT_SIGNIN", str, Counts.FAILURES)
    with pytest.raises(TypeError, match="nothing counts them"):
        blueprint.post("/extra", access=PUBLIC, limits=[limit])(lambda: None)


@pytest.mark.parametrize("setting", ["on", "off"])
def test_hits_of_a_success_that_are_not_refunded_are_an_error(make_app, blueprint, setting):
    limit = Limit("extra", "LIMIT_SIGNIN", str, Counts.FAILURES)

    def count(hits):
        hits.count_before((limit, "someone"))

    @blueprint.post("/extra", access=PUBLIC, limits=[limit], prepare=count, status=204)
    def forgetful():
        pass

    app = make_app(RATE_LIMITS=setting)
    app.register_blueprint(blueprint)
    with pytest.raises(RuntimeError, match="forgetful did not refund"):
        app.test_client().post("/extra")


@pytest.mark.parametrize(
    "prepare", [lambda: None, lambda _id: None, lambda id, body: None, lambda id, hits: None]
)
def test_a_prepare_with_other_parameters_is_refused(blueprint, prepare):
    with pytest.raises(TypeError, match="`prepare` of <lambda> takes"):
        blueprint.post("/extra/<nanoid:id>", access=PUBLIC, prepare=prepare)(lambda id: None)


def test_a_prepare_of_a_read_is_refused(blueprint):
    with pytest.raises(TypeError, match="is a GET, for which nothing is prepared"):
        blueprint.get("/extra", access=PUBLIC, prepare=lambda: None)(lambda: None)


def test_attempts_and_successes_are_not_both_refunded(blueprint):
    """A refund would take back hits of successes that are rolled back."""
    attempts = Limit("attempts", "LIMIT_POSTS", str, Counts.ATTEMPTS, refunded=(ImagesBusy,))
    successes = Limit("successes", "LIMIT_POSTS", str)
    with pytest.raises(TypeError, match="would refund hits that are rolled back"):
        blueprint.post("/extra", access=PUBLIC, limits=[attempts, successes])(lambda: None)


def test_an_idempotent_view_without_a_user_is_refused(blueprint):
    with pytest.raises(TypeError, match="keys belong to users"):
        blueprint.post("/extra", access=PUBLIC, idempotent=True)(lambda: None)


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
            assert set(g) - {"_login_user", "user"} == {"request_id", "started", "user_id"}


def test_a_request_leaves_no_transaction_open(app, alice, post):
    with app.app_context():
        alice.get(f"/posts/{post['id']}")
        assert not is_in_transaction()
