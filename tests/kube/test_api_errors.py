"""Refusals become errors that carry the server's word, and show nothing they should not."""

from __future__ import annotations

import msgspec
import pytest

from windlass.kube import api_errors
from windlass.kube.api_errors import ApiError, Status, error_from_status, parse_status
from windlass.kube.redactions import MAX_CUT_SOURCE, Redactor

REDACTOR = Redactor(["known s3cret"])


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", api_errors.BadRequest),
        (400, "Expired", api_errors.Expired),
        (401, "Unauthorized", api_errors.Unauthorized),
        (402, "Payment", ApiError),
        (403, "Forbidden", api_errors.Forbidden),
        (404, "NotFound", api_errors.NotFound),
        (405, "MethodNotAllowed", api_errors.MethodNotAllowed),
        (409, "AlreadyExists", api_errors.AlreadyExists),
        (409, "Conflict", api_errors.Conflict),
        (410, "Gone", api_errors.Expired),
        (422, "Invalid", api_errors.Invalid),
        (429, "TooManyRequests", api_errors.TooManyRequests),
        (500, "InternalError", api_errors.ServerError),
        (504, "Timeout", api_errors.ServerError),
    ],
)
def test_every_code_has_its_class(code: int, reason: str, expected: type[ApiError]) -> None:
    body = msgspec.json.encode({"kind": "Status", "code": code, "reason": reason, "message": "no"})
    error = error_from_status(parse_status(code, body, REDACTOR), "here")
    assert type(error) is expected
    assert (error.code, error.reason, error.status.causes) == (code, reason, ())
    assert str(error).startswith(f"here: no ({code} {reason})")


def test_a_refusal_without_words_still_says_something() -> None:
    assert str(error_from_status(parse_status(502, b"", REDACTOR), "here")) == "here: HTTP 502 (502)"
    assert str(error_from_status(Status(code=404, reason="NotFound"), "here")) == "here: NotFound (404 NotFound)"


@pytest.mark.parametrize(
    "body", [b"<html>\n<b>Bad\tgateway</b>\x00\x1b[31m", b"{}", b"[1]", b"\xff"], ids=["page", "empty", "list", "bytes"]
)
def test_a_body_that_is_no_status_is_shown_in_part_on_one_line(body: bytes) -> None:
    text = str(error_from_status(parse_status(502, body * 999, REDACTOR), "here"))
    assert "HTTP 502 with a body that is no Status" in text
    assert text.isprintable()
    assert len(text) < 400


def test_a_page_that_shows_our_request_to_us_shows_no_secret() -> None:
    page = b"<pre>GET /version\nAuthorization: Bearer s3cret\nCookie: x</pre>"
    text = str(error_from_status(parse_status(502, page, REDACTOR), "here"))
    assert "Authorization: Bearer [redacted] Cookie: x" in text
    assert "s3cret" not in text


@pytest.mark.parametrize(
    "before", ["", "x" * 190, "Bearer " + "x" * 250 + " " + "y" * 190, " " * MAX_CUT_SOURCE], ids=len
)
def test_a_secret_that_an_excerpt_would_cut_in_half_is_redacted_before(before: str) -> None:
    body = f"{before}known s3cret and more".encode()
    assert "known" not in str(error_from_status(parse_status(502, body, REDACTOR), "here"))
    cut_source = b" " * (MAX_CUT_SOURCE - 9) + b"known s3cret" + b" " * MAX_CUT_SOURCE
    assert "known" not in str(error_from_status(parse_status(502, cut_source, REDACTOR), "here"))


def test_nulls_do_not_hide_the_servers_word() -> None:
    body = b'{"kind": "Status", "reason": "NotFound", "message": "no", "details": {"causes": null}}'
    assert str(error_from_status(parse_status(404, body, REDACTOR), "here")) == "here: no (404 NotFound)"


def test_no_hint_no_parentheses() -> None:
    error = api_errors.KubeError("what", where="where", hint="hint")
    assert str(error) == "where: what (hint)"
    assert str(api_errors.KubeError("what")) == "what"
