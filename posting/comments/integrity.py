"""Checks of comments that no constraint can express: for exports, imports and the doctor."""

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
}
