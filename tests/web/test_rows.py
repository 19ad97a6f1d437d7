"""Queries have the fields of the output schemas."""

import pytest
from marshmallow import fields

from posting.posts.models import Post
from posting.web.schemas import Output, columns, select


class Headline(Output):
    computed = ("shout",)

    id = fields.String()
    title = fields.String()
    shout = fields.String()


class Misspelled(Output):
    titel = fields.String()


def test_columns_are_in_the_order_of_the_fields_without_those_that_are_computed():
    assert [column.name for column in columns(Headline, Post)] == ["id", "title"]
    assert [column.name for column in select(Headline, Post).selected_columns] == ["id", "title"]
    assert [column.name for column in columns(Headline, Post, without=["id"])] == ["title"]


def test_a_field_that_is_neither_a_column_nor_computed_is_an_error():
    with pytest.raises(TypeError, match=r"Misspelled\.titel is not a column of Post"):
        columns(Misspelled, Post)
