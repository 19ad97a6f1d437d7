"""Export the content of the database to one file, and import it. docs/archive.md has the format.

A row that an export has written is imported as it is. All other rows must follow the rules of the
API: see `checks`.

An archive depends on nothing but the rows. SQLite and Postgres with the same rows give the same
file.
"""
