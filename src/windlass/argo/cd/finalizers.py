"""Known finalizers and the controller that must remove each before the object can be deleted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Controller:
    """A workload with kind and name, or, without kind, a control plane component, which is identified by its Lease."""

    name: str
    kind: str = ""
    does: str = ""
    """What it does before it removes the finalizer."""


_MANAGER = "kube-controller-manager"
_ROOK = Controller("rook-ceph-operator", "Deployment", "it waits until the cluster's data may go")
_ARGOCD = "argocd-application-controller"
KNOWN: tuple[tuple[str, Controller], ...] = (
    ("resources-finalizer.argocd.argoproj.io", Controller(_ARGOCD, "StatefulSet", "it deletes what was deployed")),
    (
        "post-delete-finalizer.argocd.argoproj.io",
        Controller(_ARGOCD, "StatefulSet", "it runs the hooks after a delete"),
    ),
    ("foregroundDeletion", Controller(_MANAGER, does="it waits until all that the object owns is gone")),
    ("orphan", Controller(_MANAGER, does="it frees what the object owns")),
    ("kubernetes.io/pvc-protection", Controller(_MANAGER, does="it waits until no pod uses the claim")),
    ("kubernetes.io/pv-protection", Controller(_MANAGER, does="it waits until the volume is not bound")),
    ("external-provisioner.volume.kubernetes.io/finalizer", Controller("csi-provisioner", "Deployment")),
    ("external-attacher/", Controller("csi-attacher", "Deployment")),
    ("snapshot.storage.kubernetes.io/", Controller("snapshot-controller", "Deployment")),
    ("customresourcecleanup.apiextensions.k8s.io", Controller("kube-apiserver", does="it deletes the kind's objects")),
    ("service.kubernetes.io/load-balancer-cleanup", Controller("cloud-controller-manager", "Deployment")),
    ("cephcluster.ceph.rook.io", _ROOK),
    ("cephblockpool.ceph.rook.io", _ROOK),
    ("cephfilesystem.ceph.rook.io", _ROOK),
    ("cephobjectstore.ceph.rook.io", _ROOK),
    ("postgres-operator", Controller("postgres-operator", "Deployment")),
    ("acme.cert-manager.io/finalizer", Controller("cert-manager", "Deployment")),
    ("strimzi.io/topic-operator", Controller("strimzi-cluster-operator", "Deployment")),
)
"""Finalizer prefixes and their controllers."""


def controller_of(finalizer: str) -> Controller | None:
    return next((found for name, found in KNOWN if finalizer.startswith(name)), None)
