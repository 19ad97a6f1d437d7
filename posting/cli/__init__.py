"""The `flask` commands: one module per group."""

from flask import Flask

from posting.cli import data, demo, doctor, moderation, openapi, search, users


def init_app(app: Flask) -> None:
    for command in (
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
    ):
        app.cli.add_command(command)
