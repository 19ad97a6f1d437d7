"""All commands."""

from posting.accounts.commands import moderation, users
from posting.invitations.commands import invitations
from posting.ops.commands import data, db, demo, doctor, images, openapi, search

COMMANDS = (
    db.db,
    users,
    invitations,
    moderation,
    demo.fill_with_demo,
    data.export_archive,
    data.import_archive,
    data.back_up,
    data.restore,
    doctor.examine,
    search.search,
    images.images,
    openapi.openapi,
)
