"""Checks of images that no constraint can express: for exports, imports and the doctor."""

# The message about a row that breaks a rule, and the query that finds such rows.
CHECKS = {
    "the size of image {} is not the number of its bytes": """
        SELECT id FROM images LEFT JOIN image_data ON image_id = id
        WHERE size <> coalesce(length(data), 0)""",
    "the image_count of post {} is wrong": """
        SELECT id FROM posts WHERE deleted_at IS NULL AND image_count <> (
            SELECT count(*) FROM images WHERE post_id = posts.id
        )""",
}
