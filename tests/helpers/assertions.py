"""Assertions about responses and about the database."""

from copy import deepcopy
from typing import Any

import sqlalchemy as sa
from werkzeug.http import parse_options_header

from posting.indexes import INDEXES
from posting.web.errors import input_codes, problem_codes

# Headers that the document does not list, since clients need not read them.
EVERYWHERE = {
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
    "Content-Length",
    "Content-Security-Policy",
    "Content-Type",
    "Cross-Origin-Resource-Policy",
    "Referrer-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
}


def assert_problem(response: Any, status: int) -> dict[str, Any]:
    """Assert that the response is a problem document with this status, and return the document."""
    assert response.status_code == status, response.text
    assert response.content_type == "application/problem+json"
    body = response.json
    assert body["status"] == status
    assert body["type"] == "about:blank"
    assert body["title"]
    assert body["code"] in problem_codes()
    assert {error["code"] for error in body.get("errors", ())} <= set(input_codes())
    assert body["detail"]
    assert body["request_id"] == response.headers["X-Request-ID"]
    assert ("errors" in body) == (
        status == 422 or body["code"] in {"username_taken", "topic_taken"}
    )
    return body


def error_locations(response: Any) -> set[str]:
    """Assert that the response is 422, and return where its errors are: pointers and names."""
    return {
        next(value for name, value in error.items() if name not in {"code", "detail"})
        for error in assert_problem(response, 422)["errors"]
    }


def resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Return what a node of an OpenAPI document refers to, or the node itself."""
    while "$ref" in node:
        target = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def strict(document: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI document that allows no properties and values of later versions."""
    document = deepcopy(document)
    for schema in document["components"]["schemas"].values():
        schema["additionalProperties"] = False
        for field in schema["properties"].values():
            if "x-extensible-enum" in field:
                field["enum"] = field["x-extensible-enum"]
    return document


def assert_headers(response: Any, headers: dict[str, Any], document: dict[str, Any]) -> None:
    """Assert that a response has the headers that a document describes, and no others."""
    described = {name: resolved(document, header) for name, header in headers.items()}
    required = {name for name, header in described.items() if header.get("required")}
    sent = set(response.headers.keys()) - EVERYWHERE
    assert required <= sent <= described.keys(), response.request.url


def next_url(response):
    if "Link" not in response.headers:
        return None
    target, options = parse_options_header(response.headers["Link"])
    assert options == {"rel": "next"}
    return target.strip("<>")


def follow_pages(client, url):
    """Yield each page of a list."""
    while url:
        response = client.get(url)
        assert response.status_code == 200, response.text
        yield response.json
        url = next_url(response)


def follow_list(client, url):
    """Return the items of all pages of a list."""
    return [item for page in follow_pages(client, url) for item in page]


# Each rule holds at all times; its query selects the rows that break it.
CONSISTENCY_RULES = {
    "image_count is exact": """
        SELECT id FROM posts WHERE deleted_at IS NULL AND image_count <>
            (SELECT count(*) FROM images WHERE post_id = posts.id AND comment_id IS NULL)""",
    "image_count of comments is exact": """
        SELECT id FROM comments WHERE image_count <>
            (SELECT count(*) FROM images WHERE comment_id = comments.id)""",
    "file_count is exact": """
        SELECT id FROM posts WHERE deleted_at IS NULL AND file_count <>
            (SELECT count(*) FROM files WHERE post_id = posts.id AND comment_id IS NULL)""",
    "file_count of comments is exact": """
        SELECT id FROM comments WHERE file_count <>
            (SELECT count(*) FROM files WHERE comment_id = comments.id)""",
    "a topic of a post has the times of the post": """
        SELECT posts.id FROM posts JOIN post_topics ON post_id = posts.id
        WHERE has_topics IS FALSE OR deleted_at IS NOT NULL
        OR post_topics.created_at <> posts.created_at
        OR last_activity_at <> coalesce(last_comment_at, posts.created_at)""",
    "a reaction to a comment is on its post, and to no placeholder": """
        SELECT comments.id FROM reactions JOIN comments ON comments.id = comment_id
        WHERE reactions.post_id <> comments.post_id OR content IS NULL""",
    **{
        f"{name} of {table} is exact": f"""
        SELECT id FROM {table} WHERE {name} <> (SELECT count(*) FROM reactions
            WHERE text_id = {table}.id AND name = '{name}')"""
        for table in ("posts", "comments")
        for name in ("thumbs_up", "heart", "party", "laugh", "surprise", "thanks")
    },
    "a file of a comment is on its post": """
        SELECT files.id FROM files JOIN comments ON comments.id = comment_id
        WHERE files.post_id <> comments.post_id OR content IS NULL""",
    "a file that is not attached has an owner": """
        SELECT id FROM files WHERE post_id IS NULL AND owner_id IS NULL""",
    "an image of a comment is on its post": """
        SELECT images.id FROM images JOIN comments ON comments.id = comment_id
        WHERE images.post_id <> comments.post_id OR content IS NULL""",
    "an image that is not attached has an owner": """
        SELECT id FROM images WHERE post_id IS NULL AND owner_id IS NULL""",
    "comment_count is exact": """
        SELECT id FROM posts WHERE deleted_at IS NULL AND comment_count <>
        (SELECT count(*) FROM comments WHERE post_id = posts.id AND content IS NOT NULL)""",
    "last_comment_at is exact": """
        SELECT id FROM posts WHERE deleted_at IS NULL AND last_comment_at IS DISTINCT FROM
        (SELECT max(created_at) FROM comments WHERE post_id = posts.id AND content IS NOT NULL)""",
    "a reply is on the post of its parent, and created later": """
        SELECT r.id FROM comments r JOIN comments p ON p.id = r.parent_id
        WHERE r.post_id <> p.post_id OR r.created_at <= p.created_at""",
    "a placeholder has replies and no author": """
        SELECT id FROM comments c WHERE content IS NULL AND (author_id IS NOT NULL
        OR NOT EXISTS (SELECT 1 FROM comments r WHERE r.parent_id = c.id))""",
    "a comment is on a post": """
        SELECT c.id FROM comments c LEFT JOIN posts ON posts.id = c.post_id
        LEFT JOIN comments p ON p.id = c.parent_id
        WHERE posts.id IS NULL OR (c.parent_id IS NOT NULL AND p.id IS NULL)""",
    "an image belongs to a post": """
        SELECT id FROM images WHERE (
            post_id IS NOT NULL AND post_id NOT IN (SELECT id FROM posts)
        ) OR id NOT IN (SELECT image_id FROM image_data)""",
    "bytes belong to an image": """
        SELECT image_id FROM image_data WHERE image_id NOT IN (SELECT id FROM images)
        UNION ALL SELECT image_id FROM thumbnails WHERE image_id NOT IN (SELECT id FROM images)
        UNION ALL SELECT image_id FROM image_sizes WHERE image_id NOT IN (SELECT id FROM images)""",
    "an invitation has created as many accounts as it says at most": """
        SELECT id FROM invitations WHERE uses - uses_left <
        (SELECT count(*) FROM invitation_uses WHERE invitation_id = invitations.id)""",
    "a notification is for a user, by a user": """
        SELECT id FROM notifications WHERE user_id NOT IN (SELECT id FROM users)
        OR (actor_id IS NOT NULL AND actor_id NOT IN (SELECT id FROM users))""",
    "a notification is about what exists, and no placeholder": """
        SELECT id FROM notifications
        WHERE (post_id IS NOT NULL AND post_id NOT IN (SELECT id FROM posts))
        OR (comment_id IS NOT NULL AND comment_id NOT IN
        (SELECT id FROM comments WHERE content IS NOT NULL))""",
    "a subscription is that of a user to a post": """
        SELECT post_id FROM subscriptions WHERE post_id NOT IN (SELECT id FROM posts)
        OR user_id NOT IN (SELECT id FROM users)""",
    "an author is a user": """
        SELECT id FROM posts
        WHERE author_id IS NOT NULL AND author_id NOT IN (SELECT id FROM users)
        UNION ALL SELECT id FROM comments
        WHERE author_id IS NOT NULL AND author_id NOT IN (SELECT id FROM users)
        UNION ALL SELECT user_id FROM idempotency_keys WHERE user_id NOT IN (SELECT id FROM users)
        UNION ALL SELECT id FROM sessions WHERE user_id NOT IN (SELECT id FROM users)""",
}


def assert_consistent(connection: sa.Connection) -> None:
    """Assert that the database has no orphans and no wrong counts."""
    for rule, query in CONSISTENCY_RULES.items():
        assert connection.exec_driver_sql(query).all() == [], rule


def assert_indexed(connection: sa.Connection) -> None:
    """Assert that each row that can be searched is in its index as it is."""
    for index in INDEXES:
        assert index.count_stale(connection) == 0, index.name
