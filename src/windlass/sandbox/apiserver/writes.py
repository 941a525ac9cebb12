"""The write path: create, update, patch and apply of an object or its subresources `status` and `scale`.

Every write passes through decode, default and prune, validate, admit and store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver import object_meta, reads
from windlass.sandbox.apiserver.objects import (
    admission,
    managed_fields,
    name_rules,
    patches,
    schema_validation,
    schemas,
)
from windlass.sandbox.apiserver.objects.managed_fields import Writer
from windlass.sandbox.apiserver.requests import Outcome
from windlass.sandbox.apiserver.subresources import scale_of, scaled
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.sandbox.apiserver.objects.kinds import Kind
    from windlass.sandbox.apiserver.requests import Ask
    from windlass.sandbox.apiserver.store import Store, Stored
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.clock import Sources


class Writing:
    def __init__(self, store: Store, sources: Sources) -> None:
        self._store = store
        self._sources = sources
        self.check: Callable[[Ask, Body | None, Body], None] = lambda ask, before, after: None
        """Admission of a write (request, before, after): raises to reject it, may modify `after`."""

    def create(self, ask: Ask) -> Outcome:
        body = object_meta.decoded(ask, ask.body)
        object_meta.require_address(ask, body["metadata"])
        if body["metadata"].get("resourceVersion"):
            raise api_status.broken("resourceVersion should not be set on objects to be created")
        body["metadata"].pop("managedFields", None)
        body, warnings = self._shaped(ask, body)
        body = self._born(ask, body)
        writer = self._writer(ask, "Update")
        body = managed_fields.after_update({"metadata": {}}, body, ask.kind.schema, writer)
        return Outcome(201, self._commit(ask, None, body), warnings)

    def update(self, ask: Ask) -> Outcome:
        old = reads.named(self._store, ask)
        if ask.subresource == "scale":
            return self._change(ask, old, lambda before: scaled(ask.kind, before, ask.body))
        return self._change(ask, old, lambda _: object_meta.decoded(ask, ask.body))

    def patch(self, ask: Ask) -> Outcome:
        if ask.patch == patches.APPLY:
            return self._apply(ask)
        old = reads.named(self._store, ask)
        if ask.subresource == "scale":
            shown = scale_of(ask.kind, old.body)
            return self._change(ask, old, lambda before: scaled(ask.kind, before, self.patched(ask, shown)))
        return self._change(
            ask, old, lambda before: object_meta.decoded(ask, self.patched(ask, {**ask.kind.head, **before}))
        )

    def patched(self, ask: Ask, before: Body) -> Any:
        """The object after the patch of the request."""
        if ask.patch == patches.JSON_PATCH:
            return patches.json_patch(before, ask.body)
        if not isinstance(ask.body, dict):
            raise api_status.bad_request("error decoding patch: no JSON object")
        if ask.patch == patches.STRATEGIC:
            if ask.kind.custom:
                raise api_status.unsupported_media(patches.JSON_PATCH, patches.MERGE, patches.APPLY)
            return patches.strategic(before, ask.body, ask.kind.schema)
        return patches.merge(before, ask.body)

    def _apply(self, ask: Ask) -> Outcome:
        object_meta.require_applicable(ask)
        config = object_meta.decoded(ask, ask.body)
        object_meta.require_address(ask, config["metadata"])
        config = {name: value for name, value in config.items() if name not in {"kind", "apiVersion"}}
        config["metadata"] = {**config["metadata"], "name": ask.name}
        if ask.subresource == "status":
            config = {name: config[name] for name in ("status",) if name in config} | {"metadata": {"name": ask.name}}
        elif "status" in ask.kind.subresources:
            config.pop("status", None)
        unknown: list[str] = []
        schemas.shaped(config, ask.kind.schema, None, unknown, nulls=True)
        if unknown:
            what = f"{ask.namespace}/{ask.name}; {ask.kind.api_version}, Kind={ask.kind.kind}"
            why = ", ".join(f".{path}: field not declared in schema" for path in unknown)
            raise api_status.broken(f"failed to create typed patch object ({what}): {why}")
        writer = self._writer(ask, "Apply")
        old = self._store.get(ask.kind.id, ask.namespace, ask.name)
        if old is not None:
            schema, force = ask.kind.schema, ask.options.force
            return self._change(ask, old, lambda was: managed_fields.applied(was, config, schema, writer, force=force))
        if ask.subresource:
            raise api_status.not_found(ask.kind, ask.name)
        config["metadata"].pop("resourceVersion", None)
        if uid := config["metadata"].get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise api_status.conflict(ask.kind, ask.name, why)
        body = managed_fields.applied(None, config, ask.kind.schema, writer, force=True)
        body, warnings = self._shaped(ask, body)
        return Outcome(201, self._commit(ask, None, self._born(ask, body)), warnings)

    def _change(self, ask: Ask, old: Stored, change: Callable[[Body], Body]) -> Outcome:
        """Compute, validate and store a new state of an existing object."""
        kind, before = ask.kind, old.body
        after = change(before)
        object_meta.require_unchanged(ask, before, after)
        after, warnings = self._shaped(ask, after, before)
        after = object_meta.carried_over(ask, before, after)
        if not kind.custom and ask.subresource != "status":
            admission.fill_in(kind.id, after, before)
        generation = object_meta.next_generation(ask, before, after)
        if generation is not None:
            after["metadata"]["generation"] = generation
        if ask.patch != patches.APPLY:
            after = managed_fields.after_update(before, after, kind.schema, self._writer(ask, "Update"))
        after.pop("kind", None)
        after.pop("apiVersion", None)
        if after == before:
            return Outcome(200, old, warnings)
        self._require_valid(ask, before, after)
        return Outcome(200, self._commit(ask, old, after), warnings)

    def _shaped(self, ask: Ask, body: Body, before: Body | None = None) -> tuple[Body, tuple[str, ...]]:
        """The body without unknown fields and with defaults, and a warning per unknown field (an error if Strict)."""
        kind = ask.kind
        paths: list[str] = []
        # Built-in kinds have no null values: a null field counts as absent.
        body = schemas.shaped(body, kind.schema, before, paths, nulls=kind.custom)
        if not kind.custom and (wrong := schema_validation.mistyped(body, kind.schema, before)):
            raise object_meta.mistyped(ask, f"{kind.kind}.{wrong}")
        unknown = tuple(f'unknown field "{path}"' for path in paths)
        if unknown and ask.options.validation == "Strict":
            raise api_status.not_handled(kind, f"strict decoding error: {', '.join(unknown)}")
        return body, unknown if ask.options.validation == "Warn" else ()

    def _born(self, ask: Ask, body: Body) -> Body:
        """A new object with what the server sets: generated name, uid, creationTimestamp, generation, defaults.

        Validates it, and requires a namespace that exists and is not being deleted.
        """
        kind = ask.kind
        given = {name: value for name, value in body["metadata"].items() if name not in object_meta.NOT_TAKEN}
        if not given.get("name") and given.get("generateName"):
            given["name"] = given["generateName"] + self._sources.suffix()
        meta = {**given, "uid": self._sources.uid(), "creationTimestamp": self._sources.timestamp()}
        if kind.namespaced:
            meta["namespace"] = ask.namespace
        if kind.has_generation:
            meta["generation"] = 1
        body = {**body, "metadata": api_status.present(meta)}
        if "status" in kind.subresources:
            body.pop("status", None)
            if not kind.custom:
                filled = schemas.shaped({}, kind.schema, None, [], nulls=False)
                body |= {name: value for name, value in filled.items() if name not in body}
        errors = name_rules.metadata_errors(kind, meta)
        if errors:
            raise api_status.invalid(kind, meta.get("name", ""), errors)
        if not kind.custom:
            admission.fill_in(kind.id, body)
        self._require_namespace(kind, ask.namespace, meta["name"])
        self._require_valid(ask, None, body)
        return body

    def _require_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        found = self._store.get("namespaces", "", namespace)
        if found is None:
            message, details = f'namespaces "{namespace}" not found', {"name": namespace, "kind": "namespaces"}
            raise api_status.Refusal(404, "NotFound", message, details)
        if b'"deletionTimestamp"' in found.tail and found.body["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            refusal = api_status.forbidden(kind, name, why)
            message = f"namespace {namespace} is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
            refusal.details = {**(refusal.details or {}), "causes": [cause]}
            raise refusal

    def _require_valid(self, ask: Ask, before: Body | None, after: Body) -> None:
        kind = ask.kind
        errors = name_rules.finalizer_errors(before, after) if before else []
        if kind.custom:
            errors += schema_validation.errors(after, kind.schema, known=before)
        elif ask.subresource != "status":  # a status update cannot change what is validated here
            errors += admission.errors(kind.id, before, after)
        if before is not None and not ask.subresource:
            errors += name_rules.metadata_errors(kind, after["metadata"], before["metadata"])
        if errors:
            raise api_status.invalid(kind, after["metadata"]["name"], errors)
        self.check(ask, before, after)

    def _commit(self, ask: Ask, old: Stored | None, body: Body) -> Stored | Body:
        """Store the object, or remove it if its deletion has nothing left to wait for. A dry run changes nothing."""
        kind = ask.kind
        name = body["metadata"]["name"]
        if old is None and (rival := self._store.get(kind.id, ask.namespace, name)):
            deleting = bool(rival.body["metadata"].get("deletionTimestamp"))
            raise api_status.already_exists(kind, name, deleting=deleting)
        if ask.options.dry_run:
            return {**kind.head, **body}
        if old is not None and is_released(kind, body):
            self._store.remove(old)
            return {**kind.head, **body}
        return self._store.put(kind.id, body)

    def _writer(self, ask: Ask, operation: str) -> Writer:
        return Writer(ask.manager, operation, ask.kind.api_version, ask.subresource, self._sources.timestamp())


def is_released(kind: Kind, body: Body) -> bool:
    """Whether an object is being deleted and has no finalizers and no grace period left."""
    meta = body["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return kind.id != "namespaces" or not body.get("spec", {}).get("finalizers")
