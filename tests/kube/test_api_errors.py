"""Refusals become errors that carry the server's word, and show nothing they should not."""

from __future__ import annotations

import msgspec
import pytest

from windlass.kube import api_errors
from windlass.kube.api_errors import (
    BODY_EXCERPT_LENGTH,
    ApiError,
    Denial,
    Status,
    error_from_status,
    missing_right,
    parse_status,
)
from windlass.kube.redactions import Redactor

ACCOUNT = "system:serviceaccount:a:b"
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


@pytest.mark.parametrize(
    ("message", "denial"),
    [
        (
            'pods is forbidden: User "bob" cannot list resource "pods" in API group "" at the cluster scope',
            Denial("bob", "list", "pods"),
        ),
        (
            f'no: User "{ACCOUNT}" cannot get resource "deployments" in API group "apps" in the namespace "a"',
            Denial(ACCOUNT, "get", "deployments.apps", "a"),
        ),
        (
            'x is forbidden: User "o\\"neil" cannot get resource "pods/log" in API group "" in the namespace "a"',
            Denial('o\\"neil', "get", "pods/log", "a"),
        ),
        (
            'User "x" cannot patch resource "deployments/scale" in API group "apps" in the namespace "a"',
            Denial("x", "patch", "deployments.apps/scale", "a"),
        ),
    ],
)
def test_a_missing_right_is_named(message: str, denial: Denial) -> None:
    error = error_from_status(Status(code=403, reason="Forbidden", message=message), "here")
    assert isinstance(error, api_errors.NotPermitted)
    assert error.denial == denial
    assert (missing_right(error), error.what) == (str(denial), f"{denial} (403 Forbidden)")
    assert error.recommendation_key == "RightsMissing"


def test_a_missing_right_is_told_with_its_place() -> None:
    assert str(Denial("bob", "get", "pods/log", "a")) == "user bob may not get pods/log in namespace a"
    assert str(Denial("bob", "list", "pods")) == "user bob may not list pods in the whole cluster"


@pytest.mark.parametrize(
    "message",
    [
        'pods "x" is forbidden: exceeded quota: small',
        'admission webhook "y" denied the request: User "x" cannot do that',
        'User "a\x1b[31m" cannot get resource "pods" in API group "" at the cluster scope',
        f'User "{"x" * 300}" cannot get resource "pods" in API group "" at the cluster scope',
        "",
    ],
)
def test_any_other_refusal_names_no_right(message: str) -> None:
    error = error_from_status(Status(code=403, reason="Forbidden", message=message), "here")
    assert type(error) is api_errors.Forbidden
    assert (missing_right(error), error.recommendation_key) == ("", "")


def test_a_refusal_without_words_still_says_something() -> None:
    words = "HTTP 502 without a body, unlike an API server: is it the right address?"
    assert str(error_from_status(parse_status(502, b"", REDACTOR), "here")) == f"here: {words} (502)"
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


@pytest.mark.parametrize("before", ["", "x" * 190, "Bearer " + "x" * 250 + " " + "y" * 190, " " * 999], ids=len)
def test_a_secret_that_an_excerpt_would_cut_in_half_is_redacted_before(before: str) -> None:
    body = f"{before}known s3cret and more".encode()
    assert "known" not in str(error_from_status(parse_status(502, body, REDACTOR), "here"))
    for place in range(BODY_EXCERPT_LENGTH, 3 * BODY_EXCERPT_LENGTH):
        body = b" " * place + b"known s3cret" + b" " * 9_999
        assert "known" not in str(error_from_status(parse_status(502, body, REDACTOR), "here"))


def test_nulls_do_not_hide_the_servers_word() -> None:
    body = b'{"kind": "Status", "reason": "NotFound", "message": "no", "details": {"causes": null}}'
    assert str(error_from_status(parse_status(404, body, REDACTOR), "here")) == "here: no (404 NotFound)"


def test_no_hint_no_parentheses() -> None:
    error = api_errors.KubeError("what", where="where", hint="hint")
    assert str(error) == "where: what (hint)"
    assert str(api_errors.KubeError("what")) == "what"
