"""Posts and comments. The tests in this folder search both in the same way."""

from typing import Any

import pytest

from posting.comments import store as comment_store
from posting.comments.models import Comment
from posting.db.base import db
from posting.posts import store as post_store
from posting.posts.models import Post


class Searched:
    """Rows of one kind, which are searched in the list at `path`."""

    path: str
    options: dict[str, str]  # of the list, so that it has the texts
    texts: list[str]
    model: Any
    index: Any

    def __init__(self, app):
        self.app = app

    def find(self, client, q, **others):
        """Return the contents of what a query finds."""
        response = client.get(self.path, query_string={"q": q} | self.options | others)
        assert response.status_code == 200, response.text
        return [item["content"] for item in response.json]

    def edit(self, client, item, content):
        response = client.patch(f"{self.path}/{item['id']}", json={"content": content})
        assert response.status_code == 200, response.text

    def delete(self, client, item):
        assert client.delete(f"{self.path}/{item['id']}").status_code == 204

    def count_stale(self):
        """Return how many rows are wrong in the index."""
        with self.app.app_context(), db.engine.connect() as connection:
            return self.index.count_stale(connection)

    def rebuild(self):
        with self.app.app_context():
            return sum(self.index.rebuild())


class Posts(Searched):
    """Posts. Those of `create` have the word title in their titles."""

    path, options, texts = "/posts", {"expand": "content"}, ["title", "content"]
    model, index = Post, post_store.INDEX

    def create(self, client, text):
        return client.create_post("Title", content=text)

    def row(self, text, *, title="Title", **columns):
        """Return a row for the database."""
        return {"title": title, "content": text, **columns}


class Comments(Searched):
    """Comments on one post."""

    path, options, texts = "/comments", {}, ["content"]
    model, index = Comment, comment_store.INDEX

    def __init__(self, app, post):
        super().__init__(app)
        self.post = post

    def create(self, client, text):
        return client.add_comment(self.post, text)

    def row(self, text, *, title="", **columns):
        return {"post_id": self.post["id"], "content": text, **columns}


@pytest.fixture(params=["posts", "comments"])
def kind(request, app):
    if request.param == "posts":
        return Posts(app)
    return Comments(app, request.getfixturevalue("post"))
