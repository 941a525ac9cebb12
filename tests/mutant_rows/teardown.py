"""The mutants of a teardown: what it deletes, waits for and keeps."""

from __future__ import annotations

from tests.mutant_rows import Mutant

LOOKS = "operations/teardown/test_incomplete_looks.py"
FOREIGN = "operations/teardown/test_foreign_objects.py"
PROBLEMS, LEFT = "operations/teardown/test_problems.py", "operations/teardown/test_left_behind.py"
DATA, RETENTION = "operations/teardown/test_volumes.py", "operations/teardown/volume_retention.py"
STEP, CLEANUP = "argo/cd/removal_step.py", "operations/teardown/cleanup.py"

TEARDOWN_MUTANTS = (
    Mutant(
        "an incomplete look opens a removal gate", "INV-5", STEP,
        "        if not present.objects and not present.unreadable:",
        "        if not present.objects:",
        f"{LOOKS}::test_no_gate_opens_while_objects_cannot_be_listed",
    ),
    Mutant(
        "nodes that a gone parent defined go with it", "INV-5", "operations/planner.py",
        "        left = {name: tuple(key for key in keys if key not in nodes) for name, keys in found.items()}",
        "        left = found",
        f"{LEFT}::test_nodes_that_a_gone_parent_defined_go_in_their_own_turn",
    ),
    Mutant(
        "a dependent that cannot be seen is gone", "INV-5", "core/platform/planning/plans.py",
        "        checked_nodes=existing | unknown,",
        "        checked_nodes=existing,",
        f"{LEFT}::test_a_dependent_counts_as_present_if_not_everything_can_be_listed",
    ),
    Mutant(
        "what cannot be listed is no foreign object", "INV-5", "core/platform/teardown/foreign_objects.py",
        "    return ForeignObjects(tuple(sorted(foreign)), listed.unreadable)",
        "    return ForeignObjects(tuple(sorted(foreign)))",
        f"{FOREIGN}::test_what_cannot_be_listed_counts_as_foreign",
    ),
    Mutant(
        "foreign objects are destroyed", "INV-5", STEP,
        "        if not containers or self.node.name in self.context.deletes_foreign:",
        "        if True:",
        f"{FOREIGN}::test_a_node_that_would_destroy_foreign_objects_is_left_alone",
    ),
    Mutant(
        "a definition goes on an incomplete look", "INV-5", CLEANUP,
        "        if contents.unreadable:",
        "        if False:",
        f"{LOOKS}::test_a_definition_stays_whose_objects_cannot_be_listed",
    ),
    Mutant(
        "a definition goes with its objects", "INV-5", CLEANUP,
        "        elif not contents.objects or found.key in self.crds_with_objects:",
        "        elif True:",
        f"{LOOKS}::test_a_definition_that_gets_an_object_at_the_last_moment_stays",
    ),
    Mutant(
        "a namespace goes on an incomplete look", "INV-5", CLEANUP,
        "        elif contents.unreadable:",
        "        elif False:",
        f"{LOOKS}::test_a_namespace_stays_whose_contents_cannot_be_listed",
    ),
    Mutant(
        "a namespace older than its Applications goes", "INV-5", CLEANUP,
        "        if found.created < oldest_application:",
        "        if False:",
        f"{LOOKS}::test_a_namespace_that_is_older_than_what_deploys_to_it_stays",
    ),
    Mutant(
        "removal waits for what was taken over", "INV-5", STEP,
        "        owned = (each for each in present.objects if each.instance(by_label=by_label) in instances "
        "and not each.is_kept)",
        "        owned = (each for each in present.objects if not each.is_kept)",
        f"{PROBLEMS}::test_what_another_application_took_over_or_what_says_that_it_stays_is_not_waited_for",
    ),
    Mutant(
        "removal waits for what says Delete=false", "INV-5", STEP,
        "        owned = (each for each in present.objects if each.instance(by_label=by_label) in instances "
        "and not each.is_kept)",
        "        owned = (each for each in present.objects if each.instance(by_label=by_label) in instances)",
        f"{PROBLEMS}::test_what_another_application_took_over_or_what_says_that_it_stays_is_not_waited_for",
    ),
    Mutant(
        "unmet is ignored under the teardown lock", "INV-5", "operations/teardown/teardown.py",
        "        result = await _delete_platform(run, writer, planned, listed) if planned.plan.can_run "
        "else TeardownResult()",
        "        result = await _delete_platform(run, writer, planned, listed)",
        f"{LEFT}::test_a_parent_that_comes_before_the_lock_is_held_stands_in_the_way",
    ),
    Mutant(
        "a dependent counts by its Application alone", "INV-5", "core/platform/planning/plans.py",
        "    existing = (snapshot.states.keys() | left.keys()) - platform.resource_nodes",
        "    existing = snapshot.states.keys() - platform.resource_nodes",
        f"{LEFT}::test_objects_of_a_dependent_block_a_scope_as_the_dependent_does",
    ),
    Mutant(
        "claims are found without their owners", "INV-5", "core/platform/teardown/volumes.py",
        "            or not self.owner_uids.isdisjoint((claim.uid, *claim.owner_uids))",
        "            or False",
        f"{DATA}::test_what_an_operator_made_is_retained_in_a_shared_namespace",
    ),
    Mutant(
        "retention is not verified", "INV-5", RETENTION,
        "        raise WindlassError(\n            f\"not retained although",
        "        str(\n            f\"not retained although",
        f"{DATA}::test_nothing_is_deleted_if_a_volume_is_not_retained_in_the_end",
    ),
    Mutant(
        "a volume that is not seen counts as retained", "INV-5", RETENTION,
        "            if not not_retained and not affected.missing:",
        "            if not not_retained:",
        f"{DATA}::test_nothing_is_deleted_if_the_volume_of_a_claim_is_not_seen",
    ),
    Mutant(
        "volumes that appear during the run are not retained", "INV-5", STEP,
        "            await self.context.objects.protect_volumes()",
        "            pass",
        f"{DATA}::test_a_volume_that_appears_during_the_run_is_retained_before_its_application_is_deleted",
    ),
    Mutant(
        "owners of new claims are not read", "INV-5", RETENTION,
        "        if not affected.has_new_claims:",
        "        if True:",
        f"{DATA}::test_a_volume_that_appears_during_the_run_is_retained_before_its_application_is_deleted",
    ),
    Mutant(
        "kinds are discovered once", "INV-5", "operations/teardown/cluster_objects.py",
        "        self.inventory = ClusterInventory(self.reader, await self.reader.discover())",
        "        pass",
        f"{DATA}::test_kinds_that_another_run_installed_before_it_released_the_lock_are_known",
    ),
    Mutant(
        "Helm's label counts as Argo CD's", "INV-5", "argo/cd/resource_tracking.py",
        "if row.is_legal and row.status == SyncStatus.SYNCED]",
        "if row.is_legal]",
        f"{FOREIGN}::test_what_helm_installed_and_argocd_never_synced_is_not_deleted",
    ),
    Mutant(
        "a version that is not served any more has no objects", "INV-5", "operations/teardown/cluster_objects.py",
        "        for ref in await self._served_otherwise(listing.unserved):",
        "        for ref in ():",
        f"{LOOKS}::test_objects_whose_kind_is_served_in_another_version_now_are_not_gone",
    ),
    Mutant(
        "a repeated delete relies on the first look", "INV-5", STEP,
        "                if obstacle := await self._check_removable():",
        "                if self.context.now() == self.started and (obstacle := await self._check_removable()):",
        f"{FOREIGN}::test_each_attempt_of_a_delete_is_preceded_by_a_look",
    ),
    Mutant(
        "claims of living StatefulSets are given up", "INV-5", "core/platform/teardown/volumes.py",
        "        and not any(template.matches(claim.key) for template in living)",
        "        and True",
        f"{DATA}::test_claims_of_a_stateful_set_that_exists_are_not_deleted",
    ),
    Mutant(
        "what was retained before us is deleted", "INV-5", "core/platform/teardown/volumes.py",
        "        return self.is_retained and self.mark is not None and self.mark.claim_uid == self.claim_uid",
        "        return self.is_retained",
        "core/platform/teardown/test_volumes.py",
    ),
)  # fmt: skip
