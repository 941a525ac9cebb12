"""Mutants of what meets the outside: secrets, encryption, bounds."""

from __future__ import annotations

from tests.mutant_rows import Mutant

CREDENTIALS = "kube/transport/test_http_credentials.py"
REDACTIONS = "kube/test_redactions.py"

EDGE_MUTANTS = (
    Mutant(
        "the redactor does not learn a credential",
        "secrets",
        "kube/transport/http.py",
        "        self._add_secrets(identity.secrets)\n",
        "",
        CREDENTIALS,
    ),
    Mutant(
        "credentials travel without TLS",
        "secrets",
        "kube/transport/http.py",
        'connection.server.startswith("http:") and not is_local:',
        "False:",
        CREDENTIALS,
    ),
    Mutant(
        "Go's JSON shows a secret",
        "secrets",
        "kube/redactions.py",
        "repr(part)[1:-1], json_text.translate(_GO_ESCAPES)):",
        "repr(part)[1:-1]):",
        CREDENTIALS,
    ),
    Mutant(
        "a commit is hidden",
        "secrets",
        "kube/redactions.py",
        "is_digest or _COMMIT.fullmatch(match[0]) else",
        "is_digest else",
        REDACTIONS,
    ),
    Mutant(
        "a pattern scans again",
        "bounds",
        "kube/redactions.py",
        r"(?<![a-z0-9])(?-i:eyJ)[a-z0-9_-]{8,}+(?:\.[a-z0-9_-]*+){0,2}",
        r"\beyJ[\w-]+\.[\w-]*\.?[\w-]*",
        f"{REDACTIONS}::test_no_pattern_backtracks",
    ),
    Mutant(
        "an excerpt is cut before it is redacted",
        "secrets",
        "kube/redactions.py",
        "            return shortened(self.one_line(text), start, end)",
        "            return self.one_line(shortened(text, start, end))",
        "kube/test_api_errors.py",
    ),
    Mutant(
        "a report hides that nothing is verified",
        "secrets",
        "cli/observers.py",
        "    notices = (*reader.notices, *report.notices)",
        "    notices = report.notices",
        "cli/test_insecure_connections.py",
    ),
    Mutant(
        "an answer has no limit",
        "bounds",
        "kube/transport/transports.py",
        "        if remaining < 0:",
        "        if False:",
        "kube/transport/test_http.py",
    ),
    Mutant(
        "a number has no limit",
        "bounds",
        "kube/yaml_documents.py",
        "    if len(digits) > MAX_NUMBER_LENGTH:",
        "    if False:",
        "kube/test_yaml_documents.py",
    ),
    Mutant(
        "a list has no limit",
        "bounds",
        "kube/client/readers.py",
        "            if len(items) > MAX_LIST_ITEMS:",
        "            if False:",
        "kube/client/test_clients.py",
    ),
)
