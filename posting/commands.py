"""All commands."""

from posting.accounts.commands import moderation, users
from posting.ops.commands import data, db, demo, doctor, openapi, search

COMMANDS = (
    db.db,
    users,
    moderation,
    demo.fill_with_demo,
    data.export_archive,
    data.import_archive,
    data.back_up,
    data.restore,
    doctor.examine,
    search.search,
    openapi.openapi,
)
