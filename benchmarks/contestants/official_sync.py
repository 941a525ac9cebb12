"""The official client, synchronous: its custom objects API, 200 threads for the applies."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from kubernetes import client, watch

from benchmarks.applications import APPLICATIONS, APPLIES, EVENTS, IN_FLIGHT, application
from benchmarks.measurement import APPLICATIONS as APPS
from benchmarks.measurement import measured

scenario, port = sys.argv[1:]
configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
configuration.connection_pool_maxsize = IN_FLIGHT
api = client.CustomObjectsApi(client.ApiClient(configuration))


def apply(number: int) -> None:
    group, version, plural = APPS
    api.patch_namespaced_custom_object(
        group, version, "argocd", plural, f"application-{number:05d}", application(number),
        field_manager="windlass", force=True, _content_type="application/apply-patch+yaml",
    )  # fmt: skip


with measured():
    if scenario == "list":
        assert len(api.list_cluster_custom_object(*APPS)["items"]) == APPLICATIONS
    elif scenario == "watch":
        stream = watch.Watch().stream(api.list_cluster_custom_object, *APPS, resource_version="1")
        assert sum(1 for _, _ in zip(stream, range(EVENTS), strict=False)) == EVENTS
    else:
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            list(pool.map(apply, range(APPLIES)))
