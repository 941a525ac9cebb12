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
from windlass.sandbox.apiserver.objects.managed_fields import FieldManager
from windlass.sandbox.apiserver.requests import ApiResult
from windlass.sandbox.apiserver.subresources import build_scale, with_scale
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.sandbox.apiserver.objects.kinds import ServedKind
    from windlass.sandbox.apiserver.requests import ApiRequest
    from windlass.sandbox.apiserver.store import Store, StoredObject
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.clock import SandboxClock


class WriteHandler:
    def __init__(
        self, store: Store, clock: SandboxClock, admit: Callable[[ApiRequest, Body | None, Body], None]
    ) -> None:
        """`admit` gets the request, the object before and after; it raises to reject the write, or modifies `after`."""
        self._store = store
        self._clock = clock
        self._admit = admit

    def create(self, request: ApiRequest) -> ApiResult:
        body = object_meta.decode_object(request, request.body)
        object_meta.require_url_match(request, body["metadata"])
        if body["metadata"].get("resourceVersion"):
            raise api_status.internal_error("resourceVersion should not be set on objects to be created")
        body["metadata"].pop("managedFields", None)
        body, warnings = self._default_and_prune(request, body)
        body = self._prepare_new_object(request, body)
        manager = self._field_manager(request, "Update")
        body = managed_fields.after_update({"metadata": {}}, body, request.kind.schema, manager)
        return ApiResult(201, self._commit(request, None, body), warnings)

    def update(self, request: ApiRequest) -> ApiResult:
        old = reads.require_object(self._store, request)
        if request.subresource == "scale":
            return self._update_existing(request, old, lambda before: with_scale(request.kind, before, request.body))
        return self._update_existing(request, old, lambda _: object_meta.decode_object(request, request.body))

    def patch(self, request: ApiRequest) -> ApiResult:
        if request.patch == patches.APPLY_PATCH:
            return self._server_side_apply(request)
        old = reads.require_object(self._store, request)
        if request.subresource == "scale":
            scale = build_scale(request.kind, old.body)
            return self._update_existing(
                request, old, lambda before: with_scale(request.kind, before, self.apply_patch(request, scale))
            )
        return self._update_existing(
            request,
            old,
            lambda before: object_meta.decode_object(
                request, self.apply_patch(request, {**request.kind.type_meta, **before})
            ),
        )

    def apply_patch(self, request: ApiRequest, before: Body) -> Any:
        """The object after the patch of the request."""
        if request.patch == patches.JSON_PATCH:
            return patches.json_patch(before, request.body)
        if not isinstance(request.body, dict):
            raise api_status.bad_request("error decoding patch: no JSON object")
        if request.patch == patches.STRATEGIC_MERGE_PATCH:
            if request.kind.is_custom:
                raise api_status.unsupported_media_type(patches.JSON_PATCH, patches.MERGE_PATCH, patches.APPLY_PATCH)
            return patches.strategic_merge_patch(before, request.body, request.kind.schema)
        return patches.merge_patch(before, request.body)

    def _server_side_apply(self, request: ApiRequest) -> ApiResult:
        object_meta.require_apply_type(request)
        config = object_meta.decode_object(request, request.body)
        object_meta.require_url_match(request, config["metadata"])
        config = {name: value for name, value in config.items() if name not in {"kind", "apiVersion"}}
        config["metadata"] = {**config["metadata"], "name": request.name}
        if request.subresource == "status":
            config = {name: config[name] for name in ("status",) if name in config} | {
                "metadata": {"name": request.name}
            }
        elif "status" in request.kind.subresources:
            config.pop("status", None)
        unknown: list[str] = []
        schemas.default_and_prune(config, request.kind.schema, None, unknown, keep_nulls=True)
        if unknown:
            what = f"{request.namespace}/{request.name}; {request.kind.api_version}, Kind={request.kind.kind}"
            why = ", ".join(f".{path}: field not declared in schema" for path in unknown)
            raise api_status.internal_error(f"failed to create typed patch object ({what}): {why}")
        manager = self._field_manager(request, "Apply")
        old = self._store.get(request.kind.id, request.namespace, request.name)
        if old is not None:
            schema, force = request.kind.schema, request.options.force
            return self._update_existing(
                request, old, lambda was: managed_fields.server_side_apply(was, config, schema, manager, force=force)
            )
        if request.subresource:
            raise api_status.not_found(request.kind, request.name)
        config["metadata"].pop("resourceVersion", None)
        if uid := config["metadata"].get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise api_status.conflict(request.kind, request.name, why)
        body = managed_fields.server_side_apply(None, config, request.kind.schema, manager, force=True)
        body, warnings = self._default_and_prune(request, body)
        return ApiResult(201, self._commit(request, None, self._prepare_new_object(request, body)), warnings)

    def _update_existing(self, request: ApiRequest, old: StoredObject, modify: Callable[[Body], Body]) -> ApiResult:
        """Compute, validate and store a new state of an existing object."""
        kind, before = request.kind, old.body
        after = modify(before)
        object_meta.check_preconditions(request, before, after)
        after, warnings = self._default_and_prune(request, after, before)
        after = object_meta.keep_allowed_changes(request, before, after)
        if not kind.is_custom and request.subresource != "status":
            admission.apply_defaults(kind.id, after, before)
        generation = object_meta.next_generation(request, before, after)
        if generation is not None:
            after["metadata"]["generation"] = generation
        if request.patch != patches.APPLY_PATCH:
            after = managed_fields.after_update(before, after, kind.schema, self._field_manager(request, "Update"))
        after.pop("kind", None)
        after.pop("apiVersion", None)
        if after == before:
            return ApiResult(200, old, warnings)
        self._require_valid(request, before, after)
        return ApiResult(200, self._commit(request, old, after), warnings)

    def _default_and_prune(
        self, request: ApiRequest, body: Body, before: Body | None = None
    ) -> tuple[Body, tuple[str, ...]]:
        """The body without unknown fields and with defaults, and a warning per unknown field (an error if Strict)."""
        kind = request.kind
        unknown_paths: list[str] = []
        # Built-in kinds have no null values: a null field counts as absent.
        body = schemas.default_and_prune(body, kind.schema, before, unknown_paths, keep_nulls=kind.is_custom)
        if not kind.is_custom and (type_error := schema_validation.first_type_error(body, kind.schema, before)):
            raise object_meta.type_error(request, f"{kind.kind}.{type_error}")
        warnings = tuple(f'unknown field "{path}"' for path in unknown_paths)
        if warnings and request.options.validation == "Strict":
            raise api_status.decoding_error(kind, f"strict decoding error: {', '.join(warnings)}")
        return body, warnings if request.options.validation == "Warn" else ()

    def _prepare_new_object(self, request: ApiRequest, body: Body) -> Body:
        """A new object with what the server sets: generated name, uid, creationTimestamp, generation, defaults.

        Validates it, and requires a namespace that exists and is not being deleted.
        """
        kind = request.kind
        client_meta = {
            name: value for name, value in body["metadata"].items() if name not in object_meta.IGNORED_FIELDS
        }
        if not client_meta.get("name") and client_meta.get("generateName"):
            client_meta["name"] = client_meta["generateName"] + self._clock.name_suffix()
        meta = {**client_meta, "uid": self._clock.uid(), "creationTimestamp": self._clock.timestamp()}
        if kind.namespaced:
            meta["namespace"] = request.namespace
        if kind.has_generation:
            meta["generation"] = 1
        body = {**body, "metadata": api_status.without_empty(meta)}
        if "status" in kind.subresources:
            body.pop("status", None)
            if not kind.is_custom:
                defaults = schemas.default_and_prune({}, kind.schema, None, [], keep_nulls=False)
                body |= {name: value for name, value in defaults.items() if name not in body}
        errors = name_rules.metadata_errors(kind, meta)
        if errors:
            raise api_status.invalid(kind, meta.get("name", ""), errors)
        if not kind.is_custom:
            admission.apply_defaults(kind.id, body)
        self._require_namespace(kind, request.namespace, meta["name"])
        self._require_valid(request, None, body)
        return body

    def _require_namespace(self, kind: ServedKind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        found = self._store.get("namespaces", "", namespace)
        if found is None:
            message, details = f'namespaces "{namespace}" not found', {"name": namespace, "kind": "namespaces"}
            raise api_status.StatusError(404, "NotFound", message, details)
        if b'"deletionTimestamp"' in found.tail and found.body["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = api_status.forbidden_error(kind, name, why)
            message = f"namespace {namespace} is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error

    def _require_valid(self, request: ApiRequest, before: Body | None, after: Body) -> None:
        kind = request.kind
        errors = name_rules.finalizer_errors(before, after) if before else []
        if kind.is_custom:
            errors += schema_validation.errors(after, kind.schema, previous=before)
        elif request.subresource != "status":  # a status update cannot change what is validated here
            errors += admission.errors(kind.id, before, after)
        if before is not None and not request.subresource:
            errors += name_rules.metadata_errors(kind, after["metadata"], before["metadata"])
        if errors:
            raise api_status.invalid(kind, after["metadata"]["name"], errors)
        self._admit(request, before, after)

    def _commit(self, request: ApiRequest, old: StoredObject | None, body: Body) -> StoredObject | Body:
        """Store the object, or remove it if its deletion has nothing left to wait for. A dry run changes nothing."""
        kind = request.kind
        name = body["metadata"]["name"]
        if old is None and (existing := self._store.get(kind.id, request.namespace, name)):
            deleting = bool(existing.body["metadata"].get("deletionTimestamp"))
            raise api_status.already_exists(kind, name, deleting=deleting)
        if request.options.dry_run:
            return {**kind.type_meta, **body}
        if old is not None and is_removable(kind, body):
            self._store.remove(old)
            return {**kind.type_meta, **body}
        return self._store.put(kind.id, body)

    def _field_manager(self, request: ApiRequest, operation: str) -> FieldManager:
        return FieldManager(
            request.manager, operation, request.kind.api_version, request.subresource, self._clock.timestamp()
        )


def is_removable(kind: ServedKind, body: Body) -> bool:
    """Whether an object is being deleted and has no finalizers and no grace period left."""
    meta = body["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return kind.id != "namespaces" or not body.get("spec", {}).get("finalizers")
