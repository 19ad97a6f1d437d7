"""CONTRIBUTING.md names files that exist (tests/live/test_recipes.py follows it)."""

import re

import pytest

from tests.helpers import ROOT
from tests.helpers.recipes import RECIPES, steps


def test_the_guide_has_a_recipe_for_each_common_change():
    assert set(RECIPES) == {
        f"Add {change}"
        for change in (
            "a feature",
            "a field",
            "a migration",
            "an endpoint",
            "a setting",
            "a command",
            "a language",
        )
    }


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_file_of_a_recipe_exists(recipe):
    prose = re.sub(r"```.*?```", "", RECIPES[recipe], flags=re.DOTALL)
    named = re.findall(r"`((?:posting|tests|docs)/[\w/.<>-]*|[A-Z]+\.md)`", prose)
    assert steps(recipe).keys() <= set(named)
    for path in named:
        assert [*ROOT.glob(re.sub("<.*?>", "*", path).rstrip("/"))], path


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_step_names_what_is_in_its_file(recipe):
    for path, text in steps(recipe).items():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for name in re.findall(r"`([A-Z]\w+)`", prose):
            if "<" not in path and name not in {"CHECK", "NUMBER"}:
                assert name in (ROOT / path).read_text(), (path, name)


def test_commands_have_the_tests_that_the_recipe_names(app):
    *_, test = steps("Add a command")
    assert 'flask("users", "promote"' in (ROOT / test).read_text()
