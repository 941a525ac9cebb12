"""Text of other programs, changed wherever it is in a report or an event; fixed words and graphs are not."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import at, snapshot
from tests.core.platform.reporting.sample_reports import FINDING, GOOD, SMALL, deployed
from windlass.core.platform.events import PlanReady
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.planning import plans
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


def test_a_report_without_secrets_stays_as_it_is() -> None:
    report = deployed(SMALL, broken=["ceph"])
    assert redactable_text.redact_report(report, str) == report


def test_a_plan_keeps_its_graph() -> None:
    event = PlanReady(plans.plan_deploy(SMALL, snapshot(), parse_scope("platform")))
    redacted = redactable_text.redact_event(event, str.upper)
    assert isinstance(redacted, PlanReady)
    assert redacted.plan.graph is event.plan.graph
    assert {step.why for step in redacted.plan.steps} == {step.why.upper() for step in event.plan.steps}
