"""What tests say of answers."""

from typing import Any


def problem(response: Any, status: int) -> dict[str, Any]:
    """Assert that the answer is a whole problem of this status, and return it."""
    assert response.status_code == status, response.text
    assert response.content_type == "application/problem+json"
    body = response.json
    assert body["status"] == status
    assert body["type"] == "about:blank"
    assert body["title"]
    assert body["detail"]
    assert body["request_id"] == response.headers["X-Request-ID"]
    assert ("errors" in body) == (status == 422)
    return body


def faults(response: Any) -> set[str]:
    """Return where a 422 says the input is wrong."""
    return {
        next(value for name, value in error.items() if name != "detail")
        for error in problem(response, 422)["errors"]
    }
