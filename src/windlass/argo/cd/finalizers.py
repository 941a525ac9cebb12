"""Known finalizers and the controller that must remove each before the object can be deleted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FinalizerController:
    """A workload with kind and name, or, without kind, a control plane component, which is identified by its Lease."""

    name: str
    kind: str = ""
    action: str = ""
    """What it does before it removes the finalizer."""


_CONTROLLER_MANAGER = "kube-controller-manager"
_ROOK = FinalizerController("rook-ceph-operator", "Deployment", "it waits until the cluster's data may go")
_ARGOCD_CONTROLLER = "argocd-application-controller"
KNOWN_FINALIZERS: tuple[tuple[str, FinalizerController], ...] = (
    (
        "resources-finalizer.argocd.argoproj.io",
        FinalizerController(_ARGOCD_CONTROLLER, "StatefulSet", "it deletes what was deployed"),
    ),
    (
        "post-delete-finalizer.argocd.argoproj.io",
        FinalizerController(_ARGOCD_CONTROLLER, "StatefulSet", "it runs the hooks after a delete"),
    ),
    (
        "foregroundDeletion",
        FinalizerController(_CONTROLLER_MANAGER, action="it waits until all that the object owns is gone"),
    ),
    ("orphan", FinalizerController(_CONTROLLER_MANAGER, action="it frees what the object owns")),
    (
        "kubernetes.io/pvc-protection",
        FinalizerController(_CONTROLLER_MANAGER, action="it waits until no pod uses the claim"),
    ),
    (
        "kubernetes.io/pv-protection",
        FinalizerController(_CONTROLLER_MANAGER, action="it waits until the volume is not bound"),
    ),
    ("external-provisioner.volume.kubernetes.io/finalizer", FinalizerController("csi-provisioner", "Deployment")),
    ("external-attacher/", FinalizerController("csi-attacher", "Deployment")),
    ("snapshot.storage.kubernetes.io/", FinalizerController("snapshot-controller", "Deployment")),
    (
        "customresourcecleanup.apiextensions.k8s.io",
        FinalizerController("kube-apiserver", action="it deletes the kind's objects"),
    ),
    ("service.kubernetes.io/load-balancer-cleanup", FinalizerController("cloud-controller-manager", "Deployment")),
    ("cephcluster.ceph.rook.io", _ROOK),
    ("cephblockpool.ceph.rook.io", _ROOK),
    ("cephfilesystem.ceph.rook.io", _ROOK),
    ("cephobjectstore.ceph.rook.io", _ROOK),
    ("postgres-operator", FinalizerController("postgres-operator", "Deployment")),
    ("acme.cert-manager.io/finalizer", FinalizerController("cert-manager", "Deployment")),
    ("strimzi.io/topic-operator", FinalizerController("strimzi-cluster-operator", "Deployment")),
)
"""Finalizer prefixes and their controllers."""


def find_controller(finalizer: str) -> FinalizerController | None:
    return next((found for name, found in KNOWN_FINALIZERS if finalizer.startswith(name)), None)
