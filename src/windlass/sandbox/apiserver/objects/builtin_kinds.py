"""Tables of the built-in kinds: names, subresources, list keys and defaults (see `parse_compact_schema`)."""

from __future__ import annotations

from windlass.sandbox.apiserver.objects.kinds import READ_WRITE, Kind, ScalePaths
from windlass.sandbox.apiserver.objects.schemas import Node, sketch

METADATA = "labels:texts\nannotations:texts\nownerReferences[uid]\nfinalizers[]"
CONTAINER = """
    env[name]
    ports[containerPort,protocol].protocol="TCP"
    volumeMounts[mountPath]
    volumeDevices[devicePath]
    restartPolicyRules
    resources={}
    resources.claims[name]
    terminationMessagePath="/dev/termination-log"
    terminationMessagePolicy="File"
"""
POD = """
    containers[name] @container
    initContainers[name] @container
    ephemeralContainers[name] @container
    volumes[name]
    imagePullSecrets[name]
    hostAliases[ip]
    topologySpreadConstraints[topologyKey,whenUnsatisfiable]
    nodeSelector{}
    restartPolicy="Always"
    dnsPolicy="ClusterFirst"
    schedulerName="default-scheduler"
    terminationGracePeriodSeconds=30
    securityContext={}
"""
TEMPLATE = "metadata.finalizers[]\nspec @pod"
WORKLOAD = "metadata @metadata\nstatus.conditions[type]\nspec.selector{}\nspec.template @template\n"

SKETCHES = {
    "Pod": 'spec @pod\nstatus={"phase":"Pending","qosClass":"BestEffort"}\nstatus.podIPs[ip]\nstatus.conditions[type]',
    "Deployment": WORKLOAD
    + """
        status={}
        spec.replicas:integer=1
        spec.strategy={"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}
        spec.revisionHistoryLimit=10
        spec.progressDeadlineSeconds=600
    """,
    "StatefulSet": WORKLOAD
    + """
        status={"availableReplicas":0,"replicas":0}
        spec.replicas:integer=1
        spec.podManagementPolicy="OrderedReady"
        spec.updateStrategy={"type":"RollingUpdate","rollingUpdate":{"partition":0}}
        spec.revisionHistoryLimit=10
        spec.persistentVolumeClaimRetentionPolicy={"whenDeleted":"Retain","whenScaled":"Retain"}
    """,
    "DaemonSet": WORKLOAD
    + """
        spec.updateStrategy={"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}
        spec.revisionHistoryLimit=10
    """,
    "ReplicaSet": WORKLOAD + 'spec.replicas:integer=1\nstatus={"replicas":0}',
    "Job": WORKLOAD
    + """
        status={}
        spec.parallelism=1
        spec.completions=1
        spec.backoffLimit=6
        spec.completionMode="NonIndexed"
        spec.suspend=false
        spec.podReplacementPolicy="TerminatingOrFailed"
    """,
    "CronJob": """
        spec.jobTemplate.spec.selector{}
        spec.jobTemplate.spec.template @template
        spec.concurrencyPolicy="Allow"
        spec.suspend=false
        spec.successfulJobsHistoryLimit=3
        spec.failedJobsHistoryLimit=1
    """,
    "Service": """
        spec.ports[port,protocol].protocol="TCP"
        spec.selector{}
        spec.type="ClusterIP"
        spec.sessionAffinity="None"
        spec.internalTrafficPolicy="Cluster"
        status={"loadBalancer":{}}
        status.conditions[type]
    """,
    "ServiceAccount": "secrets[name]",
    "Lease": "spec.acquireTime:time\nspec.renewTime:time",
    "ConfigMap": "data:texts\nbinaryData:coded",
    "Secret": 'data:coded\nstringData:texts\ntype="Opaque"',
    "Node": "status.conditions[type]\nstatus.addresses[type]",
    "PersistentVolume": 'spec.persistentVolumeReclaimPolicy="Retain"\nspec.volumeMode="Filesystem"\n'
    'status={"phase":"Pending"}',
    "PersistentVolumeClaim": 'spec.selector{}\nspec.volumeMode="Filesystem"\nstatus={"phase":"Pending"}\n'
    "status.conditions[type]",
    "StorageClass": 'reclaimPolicy="Delete"\nvolumeBindingMode="Immediate"',
    "PodDisruptionBudget": "spec.selector{}\nstatus.conditions[type]",
    "Namespace": 'spec.finalizers[]\nstatus={"phase":"Active"}\nstatus.conditions[type]',
    "ValidatingAdmissionPolicy": 'spec.failurePolicy="Fail"\nspec.matchConstraints{}\nstatus.conditions[type]',
    "ValidatingWebhookConfiguration": "webhooks[name]",
    "MutatingWebhookConfiguration": "webhooks[name]",
    "CustomResourceDefinition": 'spec.versions\nspec.conversion={"strategy":"None"}\nstatus.conditions[type]',
    "HorizontalPodAutoscaler": "spec.minReplicas=1\nstatus.conditions[type]",
    "Ingress": 'status={"loadBalancer":{}}',
}

# Columns: apiVersion, plural, kind, flags, short names. Flags: C cluster-scoped, s status, g generation, c scale,
# d a DELETE returns the object, n no deletecollection, u a PUT needs a resourceVersion, a category `all` (`kubectl get
# all`), q a review, never stored.
TABLE = """
v1                              namespaces                       Namespace                       Csn   ns
v1                              pods                             Pod                             sgda  po
v1                              services                         Service                         sda   svc
v1                              serviceaccounts                  ServiceAccount                  d     sa
v1                              configmaps                       ConfigMap                       -     cm
v1                              secrets                          Secret                          -     -
v1                              events                           Event                           -     ev
v1                              nodes                            Node                            Cs    no
v1                              persistentvolumes                PersistentVolume                Csd   pv
v1                              persistentvolumeclaims           PersistentVolumeClaim           sd    pvc
apps/v1                         deployments                      Deployment                      sgca  deploy
apps/v1                         statefulsets                     StatefulSet                     sgca  sts
apps/v1                         daemonsets                       DaemonSet                       sga   ds
apps/v1                         replicasets                      ReplicaSet                      sgca  rs
apps/v1                         controllerrevisions              ControllerRevision              -     -
batch/v1                        jobs                             Job                             sga   -
batch/v1                        cronjobs                         CronJob                         sga   cj
policy/v1                       poddisruptionbudgets             PodDisruptionBudget             sgu   pdb
autoscaling/v2                  horizontalpodautoscalers         HorizontalPodAutoscaler         sa    hpa
coordination.k8s.io/v1          leases                           Lease                           u     -
networking.k8s.io/v1            ingresses                        Ingress                         sg    ing
networking.k8s.io/v1            networkpolicies                  NetworkPolicy                   g     netpol
discovery.k8s.io/v1             endpointslices                   EndpointSlice                   g     -
storage.k8s.io/v1               storageclasses                   StorageClass                    C     sc
scheduling.k8s.io/v1            priorityclasses                  PriorityClass                   Cg    pc
rbac.authorization.k8s.io/v1    roles                            Role                            -     -
rbac.authorization.k8s.io/v1    rolebindings                     RoleBinding                     -     -
rbac.authorization.k8s.io/v1    clusterroles                     ClusterRole                     C     -
rbac.authorization.k8s.io/v1    clusterrolebindings              ClusterRoleBinding              C     -
admissionregistration.k8s.io/v1 validatingadmissionpolicies      ValidatingAdmissionPolicy       Csgu  -
admissionregistration.k8s.io/v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding Cgu -
admissionregistration.k8s.io/v1 validatingwebhookconfigurations  ValidatingWebhookConfiguration  Cgu   -
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations    MutatingWebhookConfiguration    Cgu   -
apiextensions.k8s.io/v1         customresourcedefinitions        CustomResourceDefinition        Csgu  crd,crds
authentication.k8s.io/v1        tokenreviews                     TokenReview                     Cq    -
authentication.k8s.io/v1        selfsubjectreviews               SelfSubjectReview               Cq    -
authorization.k8s.io/v1         subjectaccessreviews             SubjectAccessReview             Cq    -
authorization.k8s.io/v1         selfsubjectaccessreviews         SelfSubjectAccessReview         Cq    -
authorization.k8s.io/v1         selfsubjectrulesreviews          SelfSubjectRulesReview          Cq    -
"""
TOPS = {
    "ConfigMap": "data binaryData immutable",
    "Secret": "data stringData type immutable",
    "ServiceAccount": "secrets imagePullSecrets automountServiceAccountToken",
    "Event": "involvedObject reason message source firstTimestamp lastTimestamp count type eventTime series action "
    "related reportingComponent reportingInstance",
    "ControllerRevision": "data revision",
    "EndpointSlice": "addressType endpoints ports",
    "StorageClass": "provisioner parameters reclaimPolicy mountOptions allowVolumeExpansion volumeBindingMode "
    "allowedTopologies",
    "PriorityClass": "value globalDefault description preemptionPolicy",
    "Role": "rules",
    "ClusterRole": "rules aggregationRule",
    "RoleBinding": "subjects roleRef",
    "ClusterRoleBinding": "subjects roleRef",
    "ValidatingWebhookConfiguration": "webhooks",
    "MutatingWebhookConfiguration": "webhooks",
}
"""Top-level fields of the kinds that do not consist of spec and status."""
EXTRA_SUBRESOURCES = {
    "pods": {"log", "eviction"},
    "serviceaccounts": {"token"},
    "namespaces": {"finalize"},
}


def built_in_kinds() -> list[Kind]:
    parts = {"metadata": sketch(METADATA), "container": sketch(CONTAINER)}
    parts["pod"] = sketch(POD, parts)
    parts["template"] = sketch(TEMPLATE, parts)
    return [_kind(row.split(), parts) for row in TABLE.strip().splitlines()]


def _kind(row: list[str], parts: dict[str, Node]) -> Kind:
    api_version, plural, kind, flags, short = row
    group, _, version = api_version.rpartition("/")
    names = {"s": "status", "c": "scale"}
    subresources = {names[flag] for flag in flags if flag in names} | EXTRA_SUBRESOURCES.get(plural, set())
    tops = TOPS.get(kind, "spec status").replace(" ", "\n")
    schema = sketch(f"{tops}\n{SKETCHES.get(kind, '')}\nmetadata @metadata", parts)
    schema.preserves = False
    selector = "" if "c" not in flags else ".spec.selector"
    return Kind(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced="C" not in flags,
        singular=kind.lower(),
        short_names=() if short == "-" else tuple(short.split(",")),
        categories=("all",) if "a" in flags else (),
        subresources=frozenset(subresources),
        has_generation="g" in flags,
        unconditional="u" not in flags,
        returns_deleted="d" in flags,
        schema=schema,
        scale=ScalePaths(selector=selector) if "c" in flags else None,
        verbs=("create",)
        if "q" in flags
        else tuple(v for v in READ_WRITE if "n" not in flags or v != "deletecollection"),
    )
