"""Fixtures for the tests of archives."""

import pytest

from tests.helpers.archives import example_archive


@pytest.fixture
def lines():
    """The lines of the example archive, for a test to change."""
    return example_archive()
