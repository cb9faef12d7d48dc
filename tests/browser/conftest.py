"""The browser of the tests here: without one they are skipped, but not in CI."""

import os

import driver
import pytest


@pytest.fixture(scope="session")
def browser() -> str:
    """The path of a Chromium."""
    found = driver.find_browser()
    if found is None and os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(f"{driver.NO_BROWSER}; where CI is set, the browser tests must run")
    if found is None:
        pytest.skip(driver.NO_BROWSER)
    return found
