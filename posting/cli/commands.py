"""All commands."""

from posting.cli import data, demo, doctor, moderation, openapi, search, users

COMMANDS = (
    users.users,
    moderation.moderation,
    demo.fill_with_demo,
    data.export_archive,
    data.import_archive,
    data.back_up,
    data.restore,
    doctor.examine,
    search.search,
    openapi.openapi,
)
