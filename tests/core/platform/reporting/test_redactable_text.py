"""What others said, changed wherever it stands in a report; nothing else is."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import at
from tests.core.platform.reporting.sample_reports import FINDING, GOOD, SMALL, deployed
from windlass.core.platform.planning.plans import Step, Unmet, Verb
from windlass.core.platform.reporting import redactable_text, report_documents


def test_every_word_of_others_is_changed_and_none_of_ours() -> None:
    bad = replace(GOOD, judged_at=at(1), health_message="secret")
    report = deployed(SMALL, broken=["ceph"], diagnostics=("secret",))
    components = tuple(replace(each, evidence=bad) for each in report.components)
    report = replace(
        report,
        components=components,
        failures=tuple(replace(each, detail="a secret") for each in report.failures),
        steps=(Step("ceph", Verb.SYNC, "secret", ()),),
        unmet=(Unmet("ceph", (), "secret"),),
        compliance=(replace(FINDING, what="secret"),),
        notices=("secret",),
    )
    before = str(report_documents.document(report))
    after = str(
        report_documents.document(redactable_text.redact_report(report, lambda text: text.replace("secret", "***")))
    )
    assert "secret" not in after
    assert after == before.replace("secret", "***")


def test_without_evidence_a_component_stays_as_it_is() -> None:
    report = deployed(SMALL)
    report = replace(report, components=tuple(replace(each, evidence=None) for each in report.components))
    assert redactable_text.redact_report(report, str.upper).components == report.components
