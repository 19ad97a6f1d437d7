"""Checks that no constraint can express: for exports, imports and the doctor."""

import sqlalchemy as sa

# The message about a row that breaks a rule, and the query that finds such rows.
CHECKS = {
    "comment {} is not on the post of its parent, or not later than it": """
        SELECT reply.id FROM comments AS reply JOIN comments AS parent
        ON parent.id = reply.parent_id
        WHERE reply.post_id <> parent.post_id OR reply.created_at <= parent.created_at""",
    "comment {} is not in the thread of its parent": """
        SELECT comment.id FROM comments AS comment LEFT JOIN comments AS parent
        ON parent.id = comment.parent_id
        WHERE comment.thread_id IS DISTINCT FROM coalesce(parent.thread_id, comment.id)
        OR comment.thread_at IS DISTINCT FROM coalesce(parent.thread_at, comment.created_at)""",
    "the comment_count of post {} is wrong": """
        SELECT id FROM posts WHERE deleted_at IS NULL AND comment_count <> (
            SELECT count(*) FROM comments WHERE post_id = posts.id AND content IS NOT NULL
        )""",
    "the last_comment_at of post {} is wrong": """
        SELECT id FROM posts LEFT JOIN (
            SELECT post_id, max(created_at) AS latest FROM comments
            WHERE content IS NOT NULL GROUP BY post_id
        ) AS found ON post_id = posts.id
        WHERE deleted_at IS NULL AND last_comment_at IS DISTINCT FROM latest""",
    "the size of image {} is not the number of its bytes": """
        SELECT id FROM images LEFT JOIN image_data ON image_id = id
        WHERE size <> coalesce(length(data), 0)""",
    "the image_count of post {} is wrong": """
        SELECT id FROM posts WHERE deleted_at IS NULL AND image_count <> (
            SELECT count(*) FROM images WHERE post_id = posts.id AND comment_id IS NULL
        )""",
    "the image_count of comment {} is wrong": """
        SELECT id FROM comments WHERE image_count <> (
            SELECT count(*) FROM images WHERE comment_id = comments.id
        )""",
    "the size of file {} is not the number of its bytes": """
        SELECT id FROM files LEFT JOIN file_data ON file_id = id
        WHERE size <> coalesce(length(data), 0)""",
    "the file_count of post {} is wrong": """
        SELECT id FROM posts WHERE deleted_at IS NULL AND file_count <> (
            SELECT count(*) FROM files WHERE post_id = posts.id AND comment_id IS NULL
        )""",
    "the file_count of comment {} is wrong": """
        SELECT id FROM comments WHERE file_count <> (
            SELECT count(*) FROM files WHERE comment_id = comments.id
        )""",
    "the reactions of post {} are counted wrong": """
        SELECT id FROM posts WHERE deleted_at IS NULL
        AND (thumbs_up, heart, party, laugh, surprise, thanks) <> (
            SELECT count(*) FILTER (WHERE name = 'thumbs_up'),
            count(*) FILTER (WHERE name = 'heart'), count(*) FILTER (WHERE name = 'party'),
            count(*) FILTER (WHERE name = 'laugh'), count(*) FILTER (WHERE name = 'surprise'),
            count(*) FILTER (WHERE name = 'thanks')
            FROM reactions WHERE post_id = posts.id AND comment_id IS NULL
        )""",
    "the reactions of comment {} are counted wrong": """
        SELECT comments.id FROM comments JOIN posts ON posts.id = post_id
        WHERE posts.deleted_at IS NULL AND (
            comments.thumbs_up, comments.heart, comments.party,
            comments.laugh, comments.surprise, comments.thanks
        ) <> (
            SELECT count(*) FILTER (WHERE name = 'thumbs_up'),
            count(*) FILTER (WHERE name = 'heart'), count(*) FILTER (WHERE name = 'party'),
            count(*) FILTER (WHERE name = 'laugh'), count(*) FILTER (WHERE name = 'surprise'),
            count(*) FILTER (WHERE name = 'thanks')
            FROM reactions WHERE comment_id = comments.id
        )""",
    "post {} has topics, but has_topics is false, or a time in post_topics is another one": """
        SELECT posts.id FROM posts JOIN post_topics ON post_id = posts.id
        WHERE has_topics IS FALSE OR post_topics.created_at <> posts.created_at
        OR last_activity_at <> coalesce(last_comment_at, posts.created_at)""",
    "a reaction to comment {} is not on its post": """
        SELECT comments.id FROM reactions JOIN comments ON comments.id = comment_id
        WHERE reactions.post_id <> comments.post_id OR content IS NULL""",
    "the avatar_id of user {} is wrong": """
        SELECT users.id FROM users LEFT JOIN avatars ON user_id = users.id
        WHERE avatar_id IS DISTINCT FROM avatars.id""",
    "image {} is not on the post of its comment": """
        SELECT images.id FROM images JOIN comments ON comments.id = comment_id
        WHERE images.post_id <> comments.post_id""",
    "file {} is not on the post of its comment": """
        SELECT files.id FROM files JOIN comments ON comments.id = comment_id
        WHERE files.post_id <> comments.post_id""",
}


def find_violation(connection: sa.Connection) -> str | None:
    """Return a message about the first row that breaks a rule or a foreign key, or None."""
    if connection.dialect.name == "sqlite":  # which lets a connection turn foreign keys off
        orphan = connection.exec_driver_sql("PRAGMA foreign_key_check").mappings().first()
        if orphan:
            return f"a row of {orphan['table']} refers to a missing row of {orphan['parent']}"
    return find_inconsistency(connection)


def find_inconsistency(connection: sa.Connection) -> str | None:
    """Return a message about the first row that breaks a rule, or None."""
    for message, query in CHECKS.items():
        row_id = connection.scalar(sa.text(f"{query} ORDER BY 1 LIMIT 1"))
        if row_id is not None:
            return message.format(row_id)
    return None
