"""Views of a test, within a request."""

import pytest

from posting.web.endpoint import PUBLIC, Blueprint, Endpoint


@pytest.fixture
def in_request(make_app):
    """Return a function that calls a function in the view of a request, and returns its result."""

    def in_request(method, function):
        results = []

        def view():
            results.append(function())

        blueprint = Blueprint("extra", __name__, description="Extra")
        registered = "GET" if method == "HEAD" else method
        endpoint = Endpoint("extra", "/extra", registered, view, access=PUBLIC, status=204)
        blueprint.add_url_rule("/extra", "extra", endpoint, methods=[registered])
        app = make_app()
        app.register_blueprint(blueprint)
        assert app.test_client().open("/extra", method=method).status_code == 204
        [result] = results
        return result

    return in_request
