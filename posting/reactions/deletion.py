"""Deletion of reactions, in steps. The texts count those that are left."""

from collections import Counter

import sqlalchemy as sa

from posting.comments.models import Comment
from posting.db.cascades import Step
from posting.db.transactions import execute, fetch_all
from posting.posts.models import Post
from posting.posts.store import lock_posts
from posting.reactions.models import NAMES, Reaction

REACTIONS_PER_STEP = 500

_KEY = (Reaction.user_id, Reaction.post_id, Reaction.text_id)
_SUBTRACT = {
    model: sa.update(model)
    .where(model.id == sa.bindparam("text"))
    .values({name: getattr(model, name) - sa.bindparam(f"less_{name}") for name in NAMES})
    for model in (Post, Comment)
}


def delete_reactions(condition: sa.ColumnElement[bool], limit: int | None = None) -> int:
    """Delete reactions to locked posts and their comments, up to `limit`. Return how many."""
    rows = sa.select(*_KEY, Reaction.comment_id, Reaction.name).where(condition).limit(limit)
    reactions = fetch_all(rows)
    for model, is_on_comment in ((Post, False), (Comment, True)):
        counts: dict[str, Counter[str]] = {}
        for each in reactions:
            if (each.comment_id is not None) == is_on_comment:
                counts.setdefault(each.text_id, Counter())[each.name] += 1
        if counts:
            changes = [
                {"text": id} | {f"less_{name}": count[name] for name in NAMES}
                for id, count in sorted(counts.items())
            ]
            execute(_SUBTRACT[model], changes)
    keys = [(each.user_id, each.post_id, each.text_id) for each in reactions]
    for start in range(0, len(keys), REACTIONS_PER_STEP):
        some = keys[start : start + REACTIONS_PER_STEP]
        execute(sa.delete(Reaction).where(sa.tuple_(*_KEY).in_(some)))
    return len(reactions)


def reaction_counts(model: type[Post | Comment]) -> dict[str, sa.ColumnElement[int]]:
    """Return SQL for the number of each reaction to a text, by the name of its column."""
    is_on_text = sa.and_(
        Reaction.text_id == model.id,
        Reaction.comment_id.is_(None) if model is Post else Reaction.comment_id == model.id,
    )
    return {
        name: sa.select(sa.func.count()).where(is_on_text, Reaction.name == name).scalar_subquery()
        for name in NAMES
    }


def clear_step(user_id: str) -> Step:
    """Delete some reactions of a user."""
    own = Reaction.user_id == user_id
    posts = sa.select(Reaction.post_id).where(own).limit(REACTIONS_PER_STEP)
    ids = {row.post_id for row in fetch_all(posts)}
    if not ids:
        return Step(0, has_more=False)
    lock_posts(Post.id.in_(ids))
    delete_reactions(sa.and_(own, Reaction.post_id.in_(ids)), REACTIONS_PER_STEP)
    return Step(0, has_more=True)


def clear_rest(user_id: str) -> None:
    """Delete the reactions of a user to posts that are locked."""
    delete_reactions(Reaction.user_id == user_id)
