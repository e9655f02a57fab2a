"""Containers without a Docker engine: podman and buildah with storage and settings of their own."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import tarfile
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = REPO / "deploy/docker/Dockerfile"
DEBIAN = "localhost/gridclock-debian:bookworm"
# What docs/deploy.md asks for: nothing that the server does not need.
HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=256")

STORAGE = """[storage]
driver = "{driver}"
runroot = "{folder}/run"
graphroot = "{folder}/storage"
"""
# runc and cgroupfs: what works without systemd and without the capability to raise limits, as in CI.
SETTINGS = """[containers]
default_ulimits = ["nofile=16384:16384", "nproc=8192:8192"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Engine:
    """Everything it stores lies under `folder`, which may be kept to be quicker the next time."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "storage.conf").write_text(STORAGE.format(driver="overlay", folder=self.folder))
        (self.folder / "containers.conf").write_text(SETTINGS)
        self.environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
                            "CONTAINERS_CONF": str(self.folder / "containers.conf")}

    def call(self, *words, check=True, timeout=600, **options):
        ran = subprocess.run([str(word) for word in words], env=self.environment, capture_output=True, text=True,
                             timeout=timeout, check=False, stdin=subprocess.DEVNULL, **options)
        if check and ran.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words[:4]))} ...: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"[-4000:])
        return ran

    def podman(self, *words, **options):
        return self.call("podman", *words, **options)

    def has(self, image):
        return self.podman("image", "exists", image, check=False).returncode == 0

    def remove_all(self):
        """So that the folder can be removed: the store is a mount of its own while it is used."""
        for words in (("rm", "--all", "--force", "--time=1"), ("rmi", "--all", "--force")):
            self.podman(*words, check=False)
        self.call("umount", "--lazy", self.folder / "storage/overlay", check=False)

    def make_debian(self):
        """A Debian made from its packages: no registry is asked."""
        if self.has(DEBIAN):
            return
        archive = self.folder / "debian.tar"
        self.call("mmdebstrap", "--quiet", "--variant=minbase", "--format=tar",
                  *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "locale", "info")),
                  "bookworm", archive)
        self.podman("import", "--quiet", archive, DEBIAN)
        archive.unlink()

    def build(self, target, image, contexts=(), arguments=(), volumes=(), dockerfile=DOCKERFILE, folder=REPO,
              fresh=False):
        """The id of the image. `contexts`: (stage, folder) that stand in for stages; `volumes`: (folder, path) that
        the build sees. A fresh one takes no layer from before and has the format whose description names no container,
        so that its id tells what it holds."""
        words = ["buildah", "bud", "--isolation=chroot", "--network=host", "--timestamp=0",
                 *(("--no-cache", "--format=oci") if fresh else ("--layers", "--format=docker")),
                 f"--file={dockerfile}", f"--target={target}", f"--tag={image}"]
        words += [f"--build-context={name}={path}" for name, path in contexts]
        words += [f"--build-arg={name}={value}" for name, value in arguments]
        words += [f"--volume={source}:{path}:rw" for source, path in volumes]
        self.call(*words, folder, timeout=2 * 3600)
        return self.inspect(image)["Id"]

    def inspect(self, name):
        return json.loads(self.podman("inspect", name).stdout)[0]

    def files(self, image):
        """Every file of an image, as tar describes it."""
        name = self.podman("create", image).stdout.strip()
        try:
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                archive = pathlib.Path(folder) / "image.tar"
                self.podman("export", f"--output={archive}", name)
                with tarfile.open(archive) as tar:
                    return tar.getmembers()
        finally:
            self.podman("rm", name)

    @contextlib.contextmanager
    def container(self, image, *arguments, options=HARDENED, network="none"):
        """A running server in its container; its name. Removed at the end, with its log if something fails."""
        name = f"gridclock-test-{os.getpid()}-{time.monotonic_ns()}"
        self.podman("run", "--detach", f"--name={name}", f"--network={network}", *options, image, *arguments)
        try:
            yield name
        except BaseException:
            print(self.podman("logs", name, check=False).stderr[-3000:], flush=True)
            raise
        finally:
            self.podman("rm", "--force", "--time=1", name, check=False)

    def execute(self, name, *words, check=True, **options):
        return self.podman("exec", name, *words, check=check, **options)
