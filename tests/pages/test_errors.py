"""Errors as pages for browsers, and as problem documents for other clients."""

import pytest
import sqlalchemy as sa

from posting.pages import views
from tests.helpers.assertions import assert_problem
from tests.helpers.pages import links


class TestErrors:
    @pytest.mark.parametrize(
        ("path", "heading"),
        [
            ("/p/" + "a" * 21, "This post does not exist"),
            ("/p/short", "This page does not exist"),
            ("/t/" + "a" * 21, "This topic does not exist"),
            ("/@unknown", "This member does not exist"),
            ("/@a%00b", "This page does not exist"),
            ("/nowhere", "This page does not exist"),
        ],
    )
    def test_an_unknown_page_is_a_page(self, read, path, heading):
        page = read(path, 404)
        assert heading in page.text
        assert "/" in links(page)

    def test_a_search_that_is_too_long_says_what_to_do(self, read):
        text = read(f"/search?q={'a' * 201}", 422).text
        assert "This search is too long Search for fewer words." in text

    @pytest.mark.parametrize("path", ["/?sort=best", "/?cursor=x", "/search?show=x"])
    def test_another_query_that_is_not_valid_is_a_link_that_is_not_valid(self, read, path):
        text = read(path, 422).text
        assert "This link is not valid A part of its address is wrong, or has expired." in text

    def test_it_names_the_request(self, anonymous):
        headers = {"X-Request-ID": "abc", "Accept": "text/html"}
        assert "Request abc" in anonymous.get("/nowhere", headers=headers).text

    @pytest.mark.parametrize("accept", ["*/*", "application/json", "image/*", "", "text/html;q=0"])
    def test_an_unknown_path_is_a_problem_for_other_clients(self, anonymous, accept):
        assert_problem(anonymous.get("/nowhere", headers={"Accept": accept}), 404)

    def test_errors_of_the_api_are_problems_for_all(self, anonymous):
        headers = {"Accept": "text/html"}
        assert_problem(anonymous.get("/posts/" + "a" * 21, headers=headers), 404)
        assert_problem(anonymous.post("/posts", headers=headers), 401)
        assert_problem(anonymous.post("/preview", headers=headers), 401)
        assert_problem(anonymous.get("/signout", headers=headers), 405)

    def test_a_database_that_does_not_answer_is_a_page(self, read, monkeypatch):
        def fail(*_, **__):
            raise sa.exc.OperationalError("", {}, Exception("locked"))

        monkeypatch.setattr(views, "list_posts", fail)
        assert "The service does not answer at this moment" in read("/", 503).text
