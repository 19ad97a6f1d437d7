"""Reactions."""

from marshmallow import fields

from posting.reactions.models import EMOJI, NAMES
from posting.web.schemas import Identifier, Output, described, extensible


def _count(name: str) -> fields.Integer:
    return fields.Integer(metadata=described(0, EMOJI[name]))


class Reactions(Output):
    """The number of members who have reacted to a text, for each reaction."""

    thumbs_up = _count("thumbs_up")
    heart = _count("heart")
    party = _count("party")
    laugh = _count("laugh")
    surprise = _count("surprise")
    thanks = _count("thanks")


class OwnReaction(Output):
    """A reaction of the current user."""

    id = Identifier("The ID of the post or comment.")
    reaction = fields.String(metadata=extensible(NAMES, "heart"))
