"""Posts over HTTP."""


def test_a_post_is_created_and_read(alice, anonymous):
    created = alice.post("/posts", json={"title": "On engines", "content": "Line one\n\nß 🚂"})

    assert created.status_code == 201
    post = created.json
    assert set(post) == {
        "id", "title", "content", "author", "created_at", "updated_at", "comment_count",
    }  # fmt: skip
    assert post["content"] == "Line one\n\nß 🚂"
    assert post["author"] == {
        "id": alice.user["id"],
        "username": "alice",
        "display_name": "Alice",
    }
    assert post["created_at"] == post["updated_at"]
    read = anonymous.get(created.headers["Location"])
    assert read.json == post
    assert read.headers["ETag"] == created.headers["ETag"]
    assert "🚂" in read.text  # non-ASCII is not escaped
