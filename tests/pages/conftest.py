"""Fixtures for the tests of pages."""

import pytest

from posting.pages.templating import POLICY
from tests.helpers.pages import Reader


@pytest.fixture
def read(anonymous):
    """Return a function that reads a page and checks what holds for all of them."""

    def read(path, status=200):
        response = anonymous.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert response.status_code == status, response.text
        assert response.content_type == "text/html; charset=utf-8"
        assert response.headers["Content-Security-Policy"] == POLICY
        page = Reader(response.text)
        assert not [
            a for _, a in page.elements if any(k.startswith("on") or k == "style" for k in a)
        ]
        assert page.all("style") == []
        assert not any("maxlength" in a for _, a in page.elements)  # which cuts what is pasted
        assert all("src" in script for script in page.all("script"))
        ids = [found["id"] for _, found in page.elements if "id" in found]
        assert len(set(ids)) == len(ids)
        assert len(page.all("h1")) == 1
        return page

    return read
