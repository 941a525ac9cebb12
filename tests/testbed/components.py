"""What the test bed is made of: one description per component, everything else is derived from these."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Program:
    """A main package and the name its binary gets."""

    package: str
    binary: str


@dataclass(frozen=True, slots=True)
class Image:
    """A container image: a base, and what is put on top of it."""

    references: tuple[str, ...]
    """Upstream's names without the registry, which every registry's name leads to."""
    base: str
    """Either `debian` or `busybox`."""
    copies: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Path in the image to (component, path below bin/ or files/ of what was built)."""
    links: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    directories: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Path to owner and mode."""
    user: str = "0"
    workdir: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Component:
    """A pinned Go module and what is taken from it."""

    name: str
    module: str
    version: str
    programs: tuple[Program, ...]
    stamps: dict[str, str] = field(default_factory=dict)
    """Variables set at link time: full name to value."""
    files: tuple[str, ...] = ()
    """Files of the module (manifests, scripts) that are kept beside the binaries, so that the Go caches can go."""
    manifests: tuple[str, ...] = ()
    """Those of the files that are applied to the cluster, unmodified."""
    images: tuple[Image, ...] = ()
    """What those manifests name."""
    staging: str | None = None
    """Version of the modules that the module replaces by directories of its own repository."""


def _kubernetes(version: str) -> Component:
    major, minor, _ = version.removeprefix("v").split(".")
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return Component(
        name="kubernetes",
        module="k8s.io/kubernetes",
        version=version,
        programs=tuple(Program(f"k8s.io/kubernetes/cmd/{name}", name) for name in names),
        # Unstamped servers report a version that clients cannot parse.
        stamps={f"{package}.{name}": value for package in packages for name, value in stamps.items()},
        # v1.N.P of Kubernetes goes with v0.N.P of the modules in its staging directory.
        staging=version.replace("v1.", "v0.", 1),
    )


def _argocd(version: str) -> Component:
    module = "github.com/argoproj/argo-cd/v3"
    return Component(
        name="argocd",
        module=module,
        version=version,
        programs=(Program(f"{module}/cmd", "argocd"),),
        stamps={
            f"{module}/common.version": version.removeprefix("v"),
            f"{module}/common.gitTag": version,
            f"{module}/common.gitTreeState": "clean",
        },
        files=("manifests/install.yaml", "hack/gpg-wrapper.sh", "hack/git-verify-wrapper.sh", "entrypoint.sh"),
        manifests=("manifests/install.yaml",),
        images=(_argocd_image(version), _REDIS_FOR_ARGOCD, _DEX_FOR_ARGOCD),
    )


def _argocd_image(version: str) -> Image:
    programs = "/usr/local/bin"
    roles = (
        *("server", "repo-server", "cmp-server", "application-controller", "dex", "notifications"),
        *("applicationset-controller", "k8s-auth", "commit-server"),
    )
    config = "/app/config"
    user = "argocd"
    home = f"/home/{user}"
    return Image(
        references=(f"argoproj/argocd:{version}",),
        base="debian",
        copies={
            f"{programs}/argocd": ("argocd", "bin/argocd"),
            f"{programs}/kustomize": ("kustomize", "bin/kustomize"),
            f"{programs}/helm": ("helm", "bin/helm"),
            f"{programs}/gpg-wrapper.sh": ("argocd", "files/hack/gpg-wrapper.sh"),
            f"{programs}/git-verify-wrapper.sh": ("argocd", "files/hack/git-verify-wrapper.sh"),
            f"{programs}/entrypoint.sh": ("argocd", "files/entrypoint.sh"),
        },
        links={
            **{f"{programs}/argocd-{role}": "argocd" for role in roles},
            f"{programs}/uid_entrypoint.sh": "entrypoint.sh",
            "/etc/ssh/ssh_known_hosts": f"{config}/ssh/ssh_known_hosts",
        },
        directories={
            f"{config}/ssh": (0, 0o755),
            f"{config}/tls": (0, 0o755),
            f"{config}/gpg/source": (0, 0o755),
            f"{config}/gpg/keys": (999, 0o700),
            home: (999, 0o775),
        },
        user="999",
        workdir=home,
        environment={"USER": user, "HOME": home},
        entrypoint=("/usr/bin/tini", "--"),
    )


_REDIS_FOR_ARGOCD = Image(
    references=("docker/library/redis:8.2.2-alpine",),
    base="debian",
    user="999",
    workdir="/tmp",
    entrypoint=("redis-server",),
)
# Without a dex.config nobody logs in through it; its container only wants a program of that name.
_DEX_FOR_ARGOCD = Image(
    references=("dexidp/dex:v2.43.0",),
    base="busybox",
    scripts={"/usr/local/bin/dex": "#!/bin/sh\nexec sleep 1000000\n"},
    user="1001",
)


def _single(name: str, module: str, version: str, package: str | None = None) -> Component:
    return Component(name, module, version, (Program(package or module, name),))


KUBERNETES = _kubernetes("v1.34.2")
ETCD = _single("etcd", "go.etcd.io/etcd/server/v3", "v3.6.6")
COREDNS = _single("coredns", "github.com/coredns/coredns", "v1.12.4")
KUSTOMIZE = _single("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "v5.7.1")
HELM = _single("helm", "helm.sh/helm/v3", "v3.19.2", "helm.sh/helm/v3/cmd/helm")
ARGOCD = _argocd("v3.2.1")

COMPONENTS = (ETCD, KUBERNETES, COREDNS, KUSTOMIZE, HELM, ARGOCD)
