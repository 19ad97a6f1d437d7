"""The `flask` commands, a module for each group of them."""

from flask import Flask

from posting.cli import archive, backup, demo, doctor, moderation, openapi, users


def init_app(app: Flask) -> None:
    for command in (
        users.users,
        moderation.moderation,
        demo.fill_with_demo,
        archive.export_archive,
        archive.import_archive,
        backup.back_up,
        backup.restore,
        doctor.examine,
        openapi.openapi,
    ):
        app.cli.add_command(command)
