"""The pictures and files that pages show with posts and comments."""

import re

from posting.files.store import add_files_to_comments
from posting.images.store import (
    IMAGE_PATH,
    find_thumbnails_of_posts,
    get_images_of_comments,
    get_images_of_posts,
)
from posting.web.pagination import Page
from posting.web.schemas import Item

MEMBERS_PER_PAGE = 50
MAX_LENGTH = 2**16  # characters of Markdown on a page of comments or search results
ONLY_AN_IMAGE = re.compile(rf"\s*!\[[^\]]*\]\(\S*{IMAGE_PATH.pattern}\)\s*", re.ASCII)  # a text


def add_pictures(posts: Page) -> None:
    """Add to posts the thumbnail of their first image, or None.

    A post whose text is nothing but one of its images has this image as its `photo` instead.
    """
    illustrated = [post for post in posts.items if post["image_count"]]
    texts = {post["id"]: ONLY_AN_IMAGE.fullmatch(post["content"]) for post in illustrated}
    shown = {id: text[1] for id, text in texts.items() if text}
    images = get_images_of_posts(list(shown))
    photos = {id: image for id in shown for image in images[id] if image["id"] == shown[id]}
    others = [post["id"] for post in illustrated if post["id"] not in photos]
    thumbnails = find_thumbnails_of_posts(others) if others else {}
    for post in posts.items:
        post["photo"] = photos.get(post["id"])
        post["thumbnail"] = thumbnails.get(post["id"])


def add_attachments(comments: list[Item]) -> None:
    """Add to comments their images without URLs, and their files, in place of the numbers."""
    add_files_to_comments(comments)
    illustrated = [comment for comment in comments if comment.pop("image_count")]
    images = get_images_of_comments([comment["id"] for comment in illustrated])
    for comment in illustrated:
        comment["images"] = images[comment["id"]]
