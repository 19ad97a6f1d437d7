"""Permissions: the status of each route for each role. An unlisted route fails a test."""

import re
from io import BytesIO
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from flask import Flask

from posting.accounts.models import Session, User
from posting.db.base import db
from posting.db.types import now
from posting.reactions.views import OF_COMMENT, OF_POST
from posting.web.endpoint import Blueprint
from tests.helpers import pictures
from tests.helpers.assertions import assert_headers, error_locations, resolved

# Two of the roles are programs of Alice, with tokens that may read and write.
ROLES = ("anonymous", "bob", "alice", "moderator", "owner", "reader", "writer")
BODIES = {
    "POST /posts": {"title": "A title", "content": "Some text."},
    "POST /posts/{post}/comments": {"content": "Some text."},
    "POST /preview": {"content": "Some text."},
    "POST /signup": {"username": "newcomer", "password": "a long walk by the sea"},
    "POST /signin": {"username": "alice", "password": "a long walk by the sea"},
    "POST /password-resets": {"code": "unknown", "password": "another walk by the sea"},
    "POST /recovery-codes": {"current_password": "a long walk by the sea"},
    "POST /password-resets/requests": {"name": "alice"},
    "PUT /users/me/email": {"email": "a@example.org", "current_password": "a long walk by the sea"},
    "POST /email-confirmations": {"code": "unknown"},
    "PUT /push/subscriptions": {
        "endpoint": "https://push.example.net/x",
        "keys": {"p256dh": "B" + "A" * 86, "auth": "A" * 22},
    },
    "POST /webhooks": {
        "url": "https://chat.example.net/x",
        "events": ["post.created"],
        "current_password": "a long walk by the sea",
    },
    "PATCH /site": {"rules": "Be kind."},
    "POST /topics": {"name": "Engines", "color": "red"},
    "PATCH /topics/{topic}": {"name": "Engines"},
    "POST /session-confirmations": {"current_password": "a long walk by the sea"},
    "POST /users/{user}/reset-link": {"current_password": "a long walk by the sea"},
    "POST /notifications/read": {"up_to": "n" * 21},
    "PUT /posts/{post}/subscription": {"level": "all"},
    "PUT /posts/{post}/seen": {"up_to": None},
    "POST /tokens": {"name": "A program", "scope": "read"},
    "POST /posts/{post}/reports": {"reason": "Why?"},
    "POST /comments/{comment}/reports": {"reason": "Why?"},
    "POST /users/{user}/reports": {"reason": "Why?"},
    "PATCH /reports/{report}": {"outcome": "dismissed"},
    "PUT /users/{user}/suspension": {"reason": "Why?"},
    "PUT /users/{user}/role": {"role": "moderator", "current_password": "a long walk by the sea"},
}
UPLOADS = {
    *("POST /images", "POST /posts/{post}/images", "PUT /users/me/avatar"),
    *("PUT /site/logo", "PUT /site/cover"),
}
QUERIES = {
    "/changes": "?after={cursor}",
    "/users": "?username=alice",
    "/seen": "?ids=ppppppppppppppppppppp",
}

# The statuses for the roles, in their order, of pages, which are the same for everybody.
PAGES = {
    "GET /": (200, 200, 200, 200, 200, 200, 200),
    "GET /search": (200, 200, 200, 200, 200, 200, 200),
    "GET /p/{post}": (200, 200, 200, 200, 200, 200, 200),
    "GET /p/{post}/edit": (200, 200, 200, 200, 200, 200, 200),
    "GET /t/{topic}": (200, 200, 200, 200, 200, 200, 200),
    "GET /@{username}": (200, 200, 200, 200, 200, 200, 200),
    "GET /members": (200, 200, 200, 200, 200, 200, 200),
    "GET /write": (200, 200, 200, 200, 200, 200, 200),
    "GET /signin": (200, 200, 200, 200, 200, 200, 200),
    "GET /signup": (200, 200, 200, 200, 200, 200, 200),
    "GET /reset": (200, 200, 200, 200, 200, 200, 200),
    "GET /confirm": (200, 200, 200, 200, 200, 200, 200),
    "GET /unsubscribe/notifications/{mailbox}": (200, 200, 200, 200, 200, 200, 200),
    "GET /unsubscribe/letter/{mailbox}": (200, 200, 200, 200, 200, 200, 200),
    "GET /settings": (200, 200, 200, 200, 200, 200, 200),
    "GET /inbox": (200, 200, 200, 200, 200, 200, 200),
    "GET /moderation": (200, 200, 200, 200, 200, 200, 200),
    "GET /keeping": (200, 200, 200, 200, 200, 200, 200),
    "GET /unsent": (200, 200, 200, 200, 200, 200, 200),
    "GET /about": (404, 404, 404, 404, 404, 404, 404),
    "GET /account-deleted": (200, 200, 200, 200, 200, 200, 200),
    "GET /accent.css": (404, 404, 404, 404, 404, 404, 404),
    "GET /styleguide": (404, 404, 404, 404, 404, 404, 404),
    "GET /custom.css": (404, 404, 404, 404, 404, 404, 404),
    "GET /manifest.webmanifest": (200, 200, 200, 200, 200, 200, 200),
    "GET /worker.js": (200, 200, 200, 200, 200, 200, 200),
    "GET /favicon.ico": (200, 200, 200, 200, 200, 200, 200),
    "GET /feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /comments/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /comments/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /p/{post}/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /p/{post}/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /t/{topic}/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /t/{topic}/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /@{username}/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /@{username}/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /favicon.svg": (200, 200, 200, 200, 200, 200, 200),
    "GET /robots.txt": (200, 200, 200, 200, 200, 200, 200),
}
# Whoever has a token for feeds has the feeds.
FEEDS_BY_TOKEN = {
    "GET /feeds/{feed}/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/comments/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/comments/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/p/{post}/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/p/{post}/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/t/{topic}/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/t/{topic}/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/@{username}/feed.atom": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/@{username}/feed.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/images/{image}": (200, 200, 200, 200, 200, 200, 200),
    "GET /feeds/{feed}/files/{document}/{name}": (200, 200, 200, 200, 200, 200, 200),
}
# The statuses for the roles, in their order, where the objects belong to Alice.
MATRIX = {
    "GET /posts": (200, 200, 200, 200, 200, 200, 200),
    "POST /posts": (401, 201, 201, 201, 201, 403, 201),
    "GET /posts/{post}": (200, 200, 200, 200, 200, 200, 200),
    "PATCH /posts/{post}": (401, 403, 200, 403, 403, 403, 200),
    "DELETE /posts/{post}": (401, 403, 204, 204, 204, 403, 204),
    "GET /comments": (200, 200, 200, 200, 200, 200, 200),
    "GET /posts/{post}/comments": (200, 200, 200, 200, 200, 200, 200),
    "POST /posts/{post}/comments": (401, 201, 201, 201, 201, 403, 201),
    "GET /topics": (200, 200, 200, 200, 200, 200, 200),
    "POST /topics": (401, 403, 403, 403, 201, 403, 403),
    "GET /topics/{topic}": (200, 200, 200, 200, 200, 200, 200),
    "PATCH /topics/{topic}": (401, 403, 403, 403, 200, 403, 403),
    "DELETE /topics/{topic}": (401, 403, 403, 403, 204, 403, 403),
    "GET /posts/{post}/reactions": (401, 200, 200, 200, 200, 200, 200),
    "PUT /posts/{post}/reactions/heart": (401, 200, 200, 200, 200, 403, 200),
    "DELETE /posts/{post}/reactions/heart": (401, 200, 200, 200, 200, 403, 200),
    "PUT /comments/{comment}/reactions/heart": (401, 200, 200, 200, 200, 403, 200),
    "DELETE /comments/{comment}/reactions/heart": (401, 200, 200, 200, 200, 403, 200),
    "GET /users/{user}/comments": (200, 200, 200, 200, 200, 200, 200),
    "GET /comments/{comment}": (200, 200, 200, 200, 200, 200, 200),
    "PATCH /comments/{comment}": (401, 403, 200, 403, 403, 403, 200),
    "DELETE /comments/{comment}": (401, 403, 204, 204, 204, 403, 204),
    "POST /images": (401, 201, 201, 201, 201, 403, 201),
    "GET /users/me/images": (401, 200, 200, 200, 200, 200, 200),
    "GET /users/me/images/{unattached}": (401, 404, 200, 404, 404, 200, 200),
    "DELETE /users/me/images/{unattached}": (401, 404, 204, 404, 404, 403, 204),
    "POST /posts/{post}/images": (401, 403, 201, 403, 403, 403, 201),
    "GET /images/{image}": (200, 200, 200, 200, 200, 200, 200),
    "GET /images/{image}/thumbnail": (200, 200, 200, 200, 200, 200, 200),
    "GET /images/{photo}/{side}": (200, 200, 200, 200, 200, 200, 200),
    "GET /images/{image}/metadata": (200, 200, 200, 200, 200, 200, 200),
    "PATCH /images/{image}": (401, 403, 200, 403, 403, 403, 200),
    "DELETE /images/{image}": (401, 403, 204, 204, 204, 403, 204),
    "POST /files": (401, 201, 201, 201, 201, 403, 201),
    "GET /users/me/files": (401, 200, 200, 200, 200, 200, 200),
    "GET /users/me/files/{unattached_file}": (401, 404, 200, 404, 404, 200, 200),
    "DELETE /users/me/files/{unattached_file}": (401, 404, 204, 404, 404, 403, 204),
    "GET /files/{document}": (200, 200, 200, 200, 200, 200, 200),
    "GET /files/{document}/{name}": (200, 200, 200, 200, 200, 200, 200),
    "DELETE /files/{document}": (401, 403, 204, 204, 204, 403, 204),
    "PUT /users/me/avatar": (401, 200, 200, 200, 200, 403, 200),
    "DELETE /users/me/avatar": (401, 204, 204, 204, 204, 403, 204),
    "DELETE /users/{face}/avatar": (401, 403, 403, 204, 204, 403, 403),
    "GET /avatars/{avatar}": (200, 200, 200, 200, 200, 200, 200),
    "GET /avatars/{avatar}/64": (200, 200, 200, 200, 200, 200, 200),
    "POST /signup": (201, 201, 201, 201, 201, 201, 201),
    "POST /signin": (200, 200, 200, 200, 200, 200, 200),
    "GET /applications": (401, 403, 403, 200, 200, 403, 403),
    "POST /applications/{application}/approval": (401, 403, 403, 201, 201, 403, 403),
    "DELETE /applications/{application}": (401, 403, 403, 204, 204, 403, 403),
    "POST /password-resets": (422, 422, 422, 422, 422, 422, 422),
    "POST /password-resets/requests": (409, 409, 409, 409, 409, 409, 409),
    "GET /users/me/email": (401, 200, 200, 200, 200, 403, 403),
    "PUT /users/me/email": (401, 409, 409, 409, 409, 403, 403),
    "DELETE /users/me/email": (401, 204, 204, 204, 204, 403, 403),
    "POST /email-confirmations": (422, 422, 422, 422, 422, 422, 422),
    "GET /users/me/notifications": (401, 200, 200, 200, 200, 200, 200),
    "PATCH /users/me/notifications": (401, 200, 200, 200, 200, 403, 200),
    "GET /push/key": (401, 200, 200, 200, 200, 200, 200),
    "PUT /push/subscriptions": (401, 204, 204, 204, 204, 403, 403),
    "DELETE /push/subscriptions": (401, 204, 204, 204, 204, 403, 403),
    "GET /webhooks": (401, 403, 403, 403, 200, 403, 403),
    "POST /webhooks": (401, 403, 403, 403, 201, 403, 403),
    "GET /webhooks/{webhook}": (401, 403, 403, 403, 200, 403, 403),
    "DELETE /webhooks/{webhook}": (401, 403, 403, 403, 204, 403, 403),
    "GET /webhooks/{webhook}/deliveries": (401, 403, 403, 403, 200, 403, 403),
    "POST /unsubscribe/notifications/{mailbox}": (204, 204, 204, 204, 204, 204, 204),
    "POST /unsubscribe/letter/{mailbox}": (204, 204, 204, 204, 204, 204, 204),
    "GET /recovery-codes": (401, 200, 200, 200, 200, 403, 403),
    "POST /recovery-codes": (401, 201, 201, 201, 201, 403, 403),
    "GET /invitations": (401, 200, 200, 200, 200, 200, 200),
    "POST /invitations": (401, 403, 403, 201, 201, 403, 403),
    "GET /invitations/{invitation}": (401, 404, 200, 200, 200, 200, 200),
    "DELETE /invitations/{invitation}": (401, 404, 204, 204, 204, 403, 204),
    "POST /posts/{post}/reports": (401, 201, 201, 201, 201, 403, 201),
    "POST /comments/{comment}/reports": (401, 201, 201, 201, 201, 403, 201),
    "POST /users/{user}/reports": (401, 201, 201, 201, 201, 403, 201),
    "GET /reports": (401, 403, 403, 200, 200, 403, 403),
    "GET /reports/{report}": (401, 404, 200, 200, 200, 200, 200),
    "PATCH /reports/{report}": (401, 403, 403, 200, 200, 403, 403),
    "PUT /users/{user}/role": (401, 403, 403, 403, 200, 403, 403),
    "POST /users/{user}/reset-link": (401, 403, 403, 201, 201, 403, 403),
    "GET /users/{user}/suspension": (401, 403, 403, 404, 404, 403, 403),
    "PUT /users/{user}/suspension": (401, 403, 403, 200, 200, 403, 403),
    "DELETE /users/{user}/suspension": (401, 403, 403, 204, 204, 403, 403),
    "GET /posts/{post}/lock": (401, 403, 403, 404, 404, 403, 403),
    "PUT /posts/{post}/lock": (401, 403, 403, 204, 204, 403, 403),
    "DELETE /posts/{post}/lock": (401, 403, 403, 204, 204, 403, 403),
    "GET /posts/{post}/pin": (401, 403, 403, 404, 404, 403, 403),
    "PUT /posts/{post}/pin": (401, 403, 403, 204, 204, 403, 403),
    "DELETE /posts/{post}/pin": (401, 403, 403, 204, 204, 403, 403),
    "GET /moderation/users/{user}": (401, 403, 403, 200, 200, 403, 403),
    "DELETE /moderation/users/{user}": (401, 403, 403, 409, 409, 403, 403),
    "POST /moderation/users/{user}/removal": (401, 403, 403, 200, 200, 403, 403),
    "GET /moderation/open": (401, 403, 403, 200, 200, 403, 403),
    "GET /moderation/log": (401, 403, 403, 200, 200, 403, 403),
    "GET /changes": (200, 200, 200, 200, 200, 200, 200),
    "GET /notifications": (401, 200, 200, 200, 200, 200, 200),
    "GET /notifications/posts": (401, 200, 200, 200, 200, 200, 200),
    "GET /notifications/unread": (401, 200, 200, 200, 200, 200, 200),
    "POST /notifications/read": (401, 422, 422, 422, 422, 403, 422),
    "GET /posts/{post}/subscription": (401, 200, 200, 200, 200, 200, 200),
    "PUT /posts/{post}/subscription": (401, 200, 200, 200, 200, 403, 200),
    "DELETE /posts/{post}/subscription": (401, 204, 204, 204, 204, 403, 204),
    "GET /seen": (401, 200, 200, 200, 200, 200, 200),
    "GET /posts/{post}/seen": (401, 200, 200, 200, 200, 200, 200),
    "PUT /posts/{post}/seen": (401, 200, 200, 200, 200, 403, 200),
    "POST /signout": (204, 204, 204, 204, 204, 204, 204),
    "GET /users": (200, 200, 200, 200, 200, 200, 200),
    "GET /users/me": (401, 200, 200, 200, 200, 200, 200),
    "PATCH /users/me": (401, 200, 200, 200, 200, 403, 403),
    "DELETE /users/me": (401, 204, 204, 204, 409, 403, 403),
    "POST /session-confirmations": (401, 204, 204, 204, 204, 403, 403),
    "GET /users/me/export": (401, 200, 200, 200, 200, 403, 403),
    "GET /users/{user}": (200, 200, 200, 200, 200, 200, 200),
    "PATCH /users/{user}": (401, 403, 200, 403, 403, 403, 403),
    "DELETE /users/{user}": (401, 403, 204, 403, 403, 403, 403),
    "GET /sessions": (401, 200, 200, 200, 200, 403, 403),
    "GET /sessions/{session}": (401, 404, 200, 404, 404, 403, 403),
    "DELETE /sessions/{session}": (401, 404, 204, 404, 404, 403, 403),
    "GET /tokens": (401, 200, 200, 200, 200, 403, 403),
    "POST /tokens": (401, 201, 201, 201, 201, 403, 403),
    "GET /tokens/{token}": (401, 404, 200, 404, 404, 403, 403),
    "DELETE /tokens/{token}": (401, 404, 204, 404, 404, 403, 403),
    "GET /healthz": (200, 200, 200, 200, 200, 200, 200),
    "GET /readyz": (200, 200, 200, 200, 200, 200, 200),
    "GET /metrics": (404, 404, 404, 404, 404, 404, 404),
    "GET /openapi.json": (200, 200, 200, 200, 200, 200, 200),
    "GET /docs": (200, 200, 200, 200, 200, 200, 200),
    "GET /site": (200, 200, 200, 200, 200, 200, 200),
    "PATCH /site": (401, 403, 403, 403, 200, 403, 403),
    "PUT /site/logo": (401, 403, 403, 403, 200, 403, 403),
    "DELETE /site/logo": (401, 403, 403, 403, 204, 403, 403),
    "GET /site/state": (401, 403, 403, 403, 200, 403, 403),
    "GET /backup": (401, 403, 403, 403, 200, 403, 403),  # with the password given again
    "GET /site/logo/{logo}": (200, 200, 200, 200, 200, 200, 200),
    "GET /site/logo/{logo}/64": (200, 200, 200, 200, 200, 200, 200),
    "PUT /site/cover": (401, 403, 403, 403, 200, 403, 403),
    "DELETE /site/cover": (401, 403, 403, 403, 204, 403, 403),
    "GET /site/cover/{cover}": (200, 200, 200, 200, 200, 200, 200),
    "GET /site/cover/{cover}/768": (200, 200, 200, 200, 200, 200, 200),
    "GET /docs/{file}": (200, 200, 200, 200, 200, 200, 200),
    "GET /static/{file}": (200, 200, 200, 200, 200, 200, 200),
    "POST /preview": (401, 200, 200, 200, 200, 403, 200),
    **PAGES,
    **FEEDS_BY_TOKEN,
}
# The responses that visitors get even if only members may read. Other requests of theirs get 401.
OPEN = {
    *("POST /signup", "POST /signin", "POST /signout", "GET /signin", "GET /signup"),
    *("GET /reset", "POST /password-resets", "POST /password-resets/requests"),
    *("GET /confirm", "POST /email-confirmations"),
    *("GET /manifest.webmanifest", "GET /worker.js"),
    *("GET /unsubscribe/notifications/{mailbox}", "POST /unsubscribe/notifications/{mailbox}"),
    *("GET /unsubscribe/letter/{mailbox}", "POST /unsubscribe/letter/{mailbox}"),
    *("GET /about", "GET /account-deleted", "GET /custom.css", "GET /robots.txt"),
    *("GET /accent.css", "GET /site/logo/{logo}", "GET /site/logo/{logo}/64", "GET /styleguide"),
    *("GET /site/cover/{cover}", "GET /site/cover/{cover}/768"),
    *("GET /favicon.ico", "GET /favicon.svg", "GET /static/{file}"),
    *("GET /healthz", "GET /readyz", "GET /metrics"),
    *("GET /site", "GET /openapi.json", "GET /docs", "GET /docs/{file}"),
    *FEEDS_BY_TOKEN,
}
# The same for an image and a file of Alice that no post or comment has, and of one of her comments.
OF_OTHER_TEXTS = {
    "GET /images/{unattached}": (404, 404, 404, 404, 404, 404, 404),
    "GET /images/{unattached}/thumbnail": (404, 404, 404, 404, 404, 404, 404),
    "GET /images/{unattached}/metadata": (404, 404, 404, 404, 404, 404, 404),
    "PATCH /images/{unattached}": (401, 404, 200, 404, 404, 403, 200),
    "DELETE /images/{unattached}": (401, 404, 204, 404, 404, 403, 204),
    "GET /images/{image_of_comment}": (200, 200, 200, 200, 200, 200, 200),
    "GET /images/{image_of_comment}/thumbnail": (200, 200, 200, 200, 200, 200, 200),
    "GET /images/{image_of_comment}/metadata": (200, 200, 200, 200, 200, 200, 200),
    "PATCH /images/{image_of_comment}": (401, 403, 200, 403, 403, 403, 200),
    "DELETE /images/{image_of_comment}": (401, 403, 204, 204, 204, 403, 204),
    "GET /files/{unattached_file}": (404, 404, 404, 404, 404, 404, 404),
    "GET /files/{unattached_file}/{name}": (404, 404, 404, 404, 404, 404, 404),
    "DELETE /files/{unattached_file}": (401, 404, 204, 404, 404, 403, 204),
    "GET /files/{file_of_comment}": (200, 200, 200, 200, 200, 200, 200),
    "GET /files/{file_of_comment}/{name}": (200, 200, 200, 200, 200, 200, 200),
    "DELETE /files/{file_of_comment}": (401, 403, 204, 204, 204, 403, 204),
}
STATUSES = MATRIX | OF_OTHER_TEXTS
# Unknown names in a query are ignored.
FREE_QUERY = {*PAGES, *FEEDS_BY_TOKEN, "GET /metrics", "GET /docs/{file}", "GET /static/{file}"}
DOCUMENTED_PAGES = {  # at paths of the API
    *("GET /signin", "GET /signup"),
    *("GET /unsubscribe/notifications/{mailbox}", "GET /unsubscribe/letter/{mailbox}"),
}
FEEDS = {operation for operation in PAGES if "/feed." in operation} | FEEDS_BY_TOKEN.keys()
UNDOCUMENTED = FREE_QUERY - FEEDS - DOCUMENTED_PAGES
NAMES = {
    "/posts/<nanoid:id>": "/posts/{post}",
    "/posts/<nanoid:id>/comments": "/posts/{post}/comments",
    "/comments/<nanoid:id>": "/comments/{comment}",
    "/posts/<nanoid:id>/reactions": "/posts/{post}/reactions",
    OF_POST: "/posts/{post}/reactions/heart",
    OF_COMMENT: "/comments/{comment}/reactions/heart",
    "/posts/<nanoid:id>/images": "/posts/{post}/images",
    "/posts/<nanoid:id>/subscription": "/posts/{post}/subscription",
    "/posts/<nanoid:id>/seen": "/posts/{post}/seen",
    "/posts/<nanoid:id>/reports": "/posts/{post}/reports",
    "/posts/<nanoid:id>/lock": "/posts/{post}/lock",
    "/posts/<nanoid:id>/pin": "/posts/{post}/pin",
    "/comments/<nanoid:id>/reports": "/comments/{comment}/reports",
    '/users/<nanoid("me"):id>/reports': "/users/{user}/reports",
    '/users/<nanoid("me"):id>/role': "/users/{user}/role",
    '/users/<nanoid("me"):id>/reset-link': "/users/{user}/reset-link",
    '/users/<nanoid("me"):id>/suspension': "/users/{user}/suspension",
    "/reports/<nanoid:id>": "/reports/{report}",
    "/moderation/users/<nanoid:id>": "/moderation/users/{user}",
    "/moderation/users/<nanoid:id>/removal": "/moderation/users/{user}/removal",
    "/images/<nanoid:id>": "/images/{image}",
    "/images/<nanoid:id>/thumbnail": "/images/{image}/thumbnail",
    "/images/<nanoid:id>/<any('640','1600'):side>": "/images/{photo}/{side}",
    "/images/<nanoid:id>/metadata": "/images/{image}/metadata",
    "/files/<nanoid:id>": "/files/{document}",
    "/files/<nanoid:id>/<name>": "/files/{document}/{name}",
    "/users/me/files/<nanoid:id>": "/users/me/files/{unattached_file}",
    '/users/<nanoid("me"):id>/avatar': "/users/{face}/avatar",
    "/avatars/<nanoid:id>": "/avatars/{avatar}",
    "/avatars/<nanoid:id>/64": "/avatars/{avatar}/64",
    "/users/me/images/<nanoid:id>": "/users/me/images/{unattached}",
    '/users/<nanoid("me"):id>': "/users/{user}",
    '/users/<nanoid("me"):id>/comments': "/users/{user}/comments",
    "/sessions/<nanoid:id>": "/sessions/{session}",
    "/tokens/<nanoid:id>": "/tokens/{token}",
    "/webhooks/<nanoid:id>": "/webhooks/{webhook}",
    "/webhooks/<nanoid:id>/deliveries": "/webhooks/{webhook}/deliveries",
    "/invitations/<nanoid:id>": "/invitations/{invitation}",
    "/applications/<nanoid:id>": "/applications/{application}",
    "/applications/<nanoid:id>/approval": "/applications/{application}/approval",
    "/unsubscribe/notifications/<nanoid:id>": "/unsubscribe/notifications/{mailbox}",
    "/unsubscribe/letter/<nanoid:id>": "/unsubscribe/letter/{mailbox}",
    "/site/logo/<nanoid:id>": "/site/logo/{logo}",
    "/site/logo/<nanoid:id>/64": "/site/logo/{logo}/64",
    "/site/cover/<nanoid:id>": "/site/cover/{cover}",
    "/site/cover/<nanoid:id>/768": "/site/cover/{cover}/768",
    "/docs/<path:filename>": "/docs/{file}",
    "/static/<path:filename>": "/static/{file}",
    "/topics/<nanoid:id>": "/topics/{topic}",
    "/t/<page_id:id>": "/t/{topic}",
    "/t/<page_id:id>/feed.atom": "/t/{topic}/feed.atom",
    "/t/<page_id:id>/feed.json": "/t/{topic}/feed.json",
    "/feeds/<token>/t/<page_id:id>/feed.atom": "/feeds/{feed}/t/{topic}/feed.atom",
    "/feeds/<token>/t/<page_id:id>/feed.json": "/feeds/{feed}/t/{topic}/feed.json",
    "/p/<page_id:id>": "/p/{post}",
    "/p/<page_id:id>/edit": "/p/{post}/edit",
    "/p/<page_id:id>/feed.atom": "/p/{post}/feed.atom",
    "/p/<page_id:id>/feed.json": "/p/{post}/feed.json",
    "/@<member:username>": "/@{username}",
    "/@<member:username>/feed.atom": "/@{username}/feed.atom",
    "/@<member:username>/feed.json": "/@{username}/feed.json",
    "/feeds/<token>/feed.atom": "/feeds/{feed}/feed.atom",
    "/feeds/<token>/comments/feed.atom": "/feeds/{feed}/comments/feed.atom",
    "/feeds/<token>/comments/feed.json": "/feeds/{feed}/comments/feed.json",
    "/feeds/<token>/feed.json": "/feeds/{feed}/feed.json",
    "/feeds/<token>/p/<page_id:id>/feed.atom": "/feeds/{feed}/p/{post}/feed.atom",
    "/feeds/<token>/p/<page_id:id>/feed.json": "/feeds/{feed}/p/{post}/feed.json",
    "/feeds/<token>/@<member:username>/feed.atom": "/feeds/{feed}/@{username}/feed.atom",
    "/feeds/<token>/@<member:username>/feed.json": "/feeds/{feed}/@{username}/feed.json",
    "/feeds/<token>/images/<nanoid:id>": "/feeds/{feed}/images/{image}",
    "/feeds/<token>/files/<nanoid:id>/<name>": "/feeds/{feed}/files/{document}/{name}",
}


def operations(app: Flask):
    for rule in app.url_map.iter_rules():
        for method in rule.methods - {"HEAD", "OPTIONS"}:
            yield f"{method} {NAMES.get(rule.rule, rule.rule)}"


def test_every_route_is_in_the_matrix(app):
    assert sorted(operations(app)) == sorted(MATRIX)


def test_a_view_without_an_access_rule_does_not_register():
    with pytest.raises(TypeError, match=r"missing .* 'access'"):
        Blueprint("bare", __name__, description="Bare").get("/bare")(lambda: None)


@pytest.fixture
def url_of(app, id_of):
    """Return a function that fills the ids of objects of Alice into a path.

    For the path of the backup, everybody has just given the password again.
    """

    def url_of(path):
        if path == "/backup":
            with app.app_context():
                db.session.execute(sa.update(Session).values(confirmed_at=now()))
                db.session.commit()
        file = "docs.js" if path.startswith("/static") else "swagger-ui.css"
        fixed = {"file": file, "username": "alice", "name": "minutes.pdf"}
        path += QUERIES.get(path, "")
        names = re.findall(r"{(\w+)}", path)
        return path.format_map({name: fixed.get(name) or id_of(name) for name in names})

    return url_of


def template(path):
    """Return a path of the matrix as the document has it."""
    names = {"username": "{username}", "feed": "{token}", "side": "{side}", "name": "{name}"}
    path = re.sub("{(.+?)}", lambda name: names.get(name[1], "{id}"), path)
    return path.replace("/reactions/heart", "/reactions/{reaction}")


def body_of(operation):
    if operation in UPLOADS:
        return {"data": {"file": (BytesIO(pictures.png()), "a.png")}}
    if operation == "POST /files":
        return {"data": {"file": (BytesIO(b"A loom"), "a.txt")}}
    writes = operation.startswith(("PATCH", "POST", "PUT")) and not operation.endswith("/approval")
    return {"json": BODIES.get(operation, {} if writes else None)}


def documented_codes(client, operation, status):
    """Return the codes of the examples that the document has of an error."""
    method, path = operation.split()
    document = client.get("/openapi.json").json
    responses = document["paths"][template(path)][method.lower()]["responses"]
    response = resolved(document, responses[str(status)])
    examples = response["content"]["application/problem+json"]["examples"]
    return {example["value"]["code"] for example in examples.values()}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("operation", STATUSES)
def test_each_role_gets_the_status_in_the_matrix(operation, role, request, url_of):
    client = request.getfixturevalue(role)
    method, path = operation.split()
    with client.open(url_of(path), method=method, **body_of(operation)) as response:
        assert response.status_code == STATUSES[operation][ROLES.index(role)]
    if response.status_code in {401, 403} and operation not in UNDOCUMENTED:
        anonymous = request.getfixturevalue("anonymous")
        codes = documented_codes(anonymous, operation, response.status_code)
        assert response.json["code"] in codes


@pytest.mark.posting_settings(READING="members")
class TestMembersOnly:
    @pytest.mark.parametrize("role", ROLES)
    @pytest.mark.parametrize("operation", STATUSES)
    def test_visitors_get_401_and_the_other_roles_what_they_get_otherwise(
        self, operation, role, request, url_of
    ):
        client = request.getfixturevalue(role)
        method, path = operation.split()
        is_refused = role == "anonymous" and operation not in OPEN
        expected = 401 if is_refused else STATUSES[operation][ROLES.index(role)]
        with client.open(url_of(path), method=method, **body_of(operation)) as response:
            assert response.status_code == expected

    @pytest.mark.parametrize("operation", sorted(MATRIX.keys() - OPEN))
    def test_401_comes_before_all_other_errors(self, operation, anonymous):
        method, path = operation.split()
        url = f"{path.replace('{', '').replace('}', '')}?unknown=1&limit=x"
        response = anonymous.open(url, method=method, data="{", content_type="text/plain")
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Cookie"
        assert response.headers["Cache-Control"] == "private, no-store"

    @pytest.mark.parametrize("operation", sorted(MATRIX.keys() - UNDOCUMENTED - OPEN))
    def test_the_document_says_that_visitors_get_401(self, operation, anonymous, url_of):
        method, path = operation.split()
        document = anonymous.get("/openapi.json").json
        documented = document["paths"][template(path)][method.lower()]
        assert {"session": []} in documented["security"]
        assert {} not in documented["security"]
        response = anonymous.open(url_of(path), method=method, **body_of(operation))
        described = resolved(document, documented["responses"]["401"])["headers"]
        assert_headers(response, described, document)


@pytest.mark.parametrize("state", ["pending_since", "suspended_at"])
@pytest.mark.parametrize("operation", MATRIX)
def test_the_session_of_an_inactive_account_is_that_of_a_visitor(
    operation, state, app, owner, url_of
):
    method, path = operation.split()
    url = url_of(path)
    with app.app_context():
        setattr(db.session.get(User, owner.user["id"]), state, now())
        db.session.commit()
    with owner.open(url, method=method, **body_of(operation)) as response:
        assert response.status_code == STATUSES[operation][ROLES.index("anonymous")]


def may(role, operation):
    return MATRIX[operation][ROLES.index(role)] != 403


@pytest.mark.parametrize("operation", MATRIX)
def test_an_unknown_query_parameter_gets_422(operation, request, url_of):
    role = next(each for each in ("alice", "moderator", "owner") if may(each, operation))
    client = request.getfixturevalue(role)
    method, path = operation.split()
    url, expected = url_of(path), MATRIX[operation][ROLES.index(role)]
    query = f"{url}{'&' if '?' in url else '?'}unknown=1&another="
    with client.open(query, method=method, **body_of(operation)) as response:
        if operation in FREE_QUERY:
            assert response.status_code == expected
            return
        assert error_locations(response) == {"unknown", "another"}
    with client.open(url, method=method, **body_of(operation)) as response:
        assert response.status_code == expected  # the refused request changed nothing


def test_a_query_without_names_gets_422(anonymous, post):
    for query in ("&", "&&"):
        assert error_locations(anonymous.get(f"/posts/{post['id']}?{query}")) == {""}
    assert anonymous.get(f"/posts/{post['id']}?").status_code == 200


@pytest.mark.parametrize("operation", sorted(MATRIX.keys() - UNDOCUMENTED))
def test_security_is_documented_if_the_cookie_is_read(operation, app, alice, url_of, monkeypatch):
    """Generated clients send the cookie only where `security` names it."""
    method, path = operation.split()
    url, documented = url_of(path), alice.get("/openapi.json").json["paths"]
    read = []

    class Request(app.request_class):
        @property
        def cookies(self):
            read.append(self.path)
            return super().cookies

    monkeypatch.setattr(app, "request_class", Request)
    response = alice.open(url, method=method, **body_of(operation))
    assert response.status_code == MATRIX[operation][ROLES.index("alice")]
    security = documented[template(path)][method.lower()]["security"]
    assert ({"session": []} in security) == bool(read)
    assert ({} in security) == (bool(security) and MATRIX[operation][0] != 401)


@pytest.fixture
def long_lists(alice, post):
    """Alice has several posts, and one of them has several comments."""
    alice.create_post("Another post")
    for content in ("A comment", "Another one"):
        alice.add_comment(post, content)


@pytest.mark.parametrize("role", ["anonymous", "alice", "moderator", "owner"])
@pytest.mark.parametrize("operation", sorted(MATRIX.keys() - UNDOCUMENTED))
@pytest.mark.usefixtures("long_lists")
def test_the_headers_of_a_response_are_those_documented(operation, role, app, request, url_of):
    client = request.getfixturevalue(role)
    method, path = operation.split()
    is_long = operation in {"GET /posts", "GET /comments", "GET /posts/{post}/comments"}
    document, url = client.get("/openapi.json").json, url_of(path) + ("?limit=1" if is_long else "")
    responses = document["paths"][template(path)][method.lower()]["responses"]

    def send(**headers):
        with (
            patch.dict(app.config, RATE_LIMITS=True),
            client.open(url, method=method, headers=headers, **body_of(operation)) as response,
        ):
            described = resolved(document, responses[str(response.status_code)])["headers"]
            assert_headers(response, described, document)
            assert ("Link" in response.headers) == is_long
            return response

    response = send()
    is_steady = operation != "GET /site/state"  # which has the free room on the disk
    if "ETag" in response.headers and is_steady and method == "GET" and response.status_code == 200:
        assert send(**{"If-None-Match": response.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize("operation", [name for name, row in MATRIX.items() if row[0] == 401])
def test_401_comes_before_all_other_errors(operation, anonymous):
    method, path = operation.split()
    response = anonymous.open(path, method=method, data="{", content_type="text/plain")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Cookie"


@pytest.mark.parametrize("operation", [name for name in MATRIX if name.startswith("GET")])
def test_every_read_supports_head_and_options(operation, alice, url_of):
    url = url_of(operation.split()[1])
    with alice.head(url) as head:
        assert head.data == b""
    with alice.get(url) as get:
        assert head.status_code == get.status_code
        assert head.headers.get("ETag") == get.headers.get("ETag")
    options = alice.options(url)
    assert options.status_code == 200
    assert "GET" in options.headers["Allow"]
