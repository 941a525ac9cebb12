"""Tables of the built-in kinds: names, subresources, list keys and defaults (see `parse_compact_schema`)."""

from __future__ import annotations

from windlass.sandbox.apiserver.objects.kinds import STANDARD_VERBS, ScalePaths, ServedKind
from windlass.sandbox.apiserver.objects.schemas import SchemaNode, parse_compact_schema

METADATA_SCHEMA = "labels:texts\nannotations:texts\nownerReferences[uid]\nfinalizers[]"
CONTAINER_SCHEMA = """
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
POD_SCHEMA = """
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
TEMPLATE_SCHEMA = "metadata.finalizers[]\nspec @pod"
WORKLOAD_SCHEMA = "metadata @metadata\nstatus.conditions[type]\nspec.selector{}\nspec.template @template\n"

COMPACT_SCHEMAS = {
    "Pod": 'spec @pod\nstatus={"phase":"Pending","qosClass":"BestEffort"}\nstatus.podIPs[ip]\nstatus.conditions[type]',
    "Deployment": WORKLOAD_SCHEMA
    + """
        status={}
        spec.replicas:integer=1
        spec.strategy={"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}
        spec.revisionHistoryLimit=10
        spec.progressDeadlineSeconds=600
    """,
    "StatefulSet": WORKLOAD_SCHEMA
    + """
        status={"availableReplicas":0,"replicas":0}
        spec.replicas:integer=1
        spec.podManagementPolicy="OrderedReady"
        spec.updateStrategy={"type":"RollingUpdate","rollingUpdate":{"partition":0}}
        spec.revisionHistoryLimit=10
        spec.persistentVolumeClaimRetentionPolicy={"whenDeleted":"Retain","whenScaled":"Retain"}
    """,
    "DaemonSet": WORKLOAD_SCHEMA
    + """
        spec.updateStrategy={"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}
        spec.revisionHistoryLimit=10
    """,
    "ReplicaSet": WORKLOAD_SCHEMA + 'spec.replicas:integer=1\nstatus={"replicas":0}',
    "Job": WORKLOAD_SCHEMA
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
KINDS_TABLE = """
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
TOP_LEVEL_FIELDS = {
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
    "services": {"proxy"},
    "serviceaccounts": {"token"},
    "namespaces": {"finalize"},
}


def built_in_kinds() -> list[ServedKind]:
    parts = {"metadata": parse_compact_schema(METADATA_SCHEMA), "container": parse_compact_schema(CONTAINER_SCHEMA)}
    parts["pod"] = parse_compact_schema(POD_SCHEMA, parts)
    parts["template"] = parse_compact_schema(TEMPLATE_SCHEMA, parts)
    return [_parse_row(row.split(), parts) for row in KINDS_TABLE.strip().splitlines()]


def _parse_row(row: list[str], parts: dict[str, SchemaNode]) -> ServedKind:
    api_version, plural, kind, flags, short_names = row
    group, _, version = api_version.rpartition("/")
    flag_subresources = {"s": "status", "c": "scale"}
    subresources = {flag_subresources[flag] for flag in flags if flag in flag_subresources} | EXTRA_SUBRESOURCES.get(
        plural, set()
    )
    fields = TOP_LEVEL_FIELDS.get(kind, "spec status").replace(" ", "\n")
    schema = parse_compact_schema(f"{fields}\n{COMPACT_SCHEMAS.get(kind, '')}\nmetadata @metadata", parts)
    schema.preserves = False
    selector = "" if "c" not in flags else ".spec.selector"
    return ServedKind(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced="C" not in flags,
        singular=kind.lower(),
        short_names=() if short_names == "-" else tuple(short_names.split(",")),
        categories=("all",) if "a" in flags else (),
        subresources=frozenset(subresources),
        has_generation="g" in flags,
        allows_unconditional_update="u" not in flags,
        returns_deleted_object="d" in flags,
        schema=schema,
        scale=ScalePaths(selector=selector) if "c" in flags else None,
        verbs=("create",)
        if "q" in flags
        else tuple(v for v in STANDARD_VERBS if "n" not in flags or v != "deletecollection"),
    )
