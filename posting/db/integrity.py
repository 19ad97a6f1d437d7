"""What holds of all rows together, and no constraint of a table can say."""

import sqlalchemy as sa

# What is wrong with a row, and the query that finds such rows.
FAULTS = {
    "comment {} is not on the post of its parent, or not later": """
        SELECT reply.id FROM comments AS reply JOIN comments AS parent
        ON parent.id = reply.parent_id
        WHERE reply.post_id <> parent.post_id OR reply.created_at <= parent.created_at""",
    "post {} has another number of comments than it counts": """
        SELECT id FROM posts WHERE comment_count <> (
            SELECT count(*) FROM comments WHERE post_id = posts.id AND content IS NOT NULL
        )""",
    "image {} has not as many bytes as its size says": """
        SELECT id FROM images LEFT JOIN image_data ON image_id = id
        WHERE size <> coalesce(length(data), 0)""",
}


def find_fault(connection: sa.Connection) -> str | None:
    """Return what is wrong, with the first row of which it is true; None when all is well."""
    if connection.dialect.name == "sqlite":  # where who writes may do without foreign keys
        orphan = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if orphan:
            return f"a row of {orphan[0]} refers to none of {orphan[2]}; flask doctor says more"
    for fault, query in FAULTS.items():
        row_id = connection.scalar(sa.text(f"{query} ORDER BY 1 LIMIT 1"))
        if row_id is not None:
            return fault.format(row_id)
    return None
