"""The `sh container` blocks of README.md, docs/deploy.md and deploy/README.md, run as a reader would, but that `docker` is
podman, buildah and docker-compose, and that what comes from a registry is made here."""
import subprocess
import sys

from compose_checks import podman_service
from containers import REPO

sys.path.insert(0, str(REPO / "tests/docs"))

import pages  # noqa: E402

PAGES = ("README.md", "docs/deploy.md", "deploy/README.md")
DOCKER = """#!/bin/sh
case $1 in
  compose) shift; exec docker-compose "$@" ;;
  build) shift; exec buildah bud --isolation=chroot --network=host --layers --format=docker {contexts} "$@" ;;
  *) exec podman "$@" ;;
esac
"""
# It would run this test again.
SKIPPED = ("./dev deploy-test",)


def blocks():
    for page in PAGES:
        for block in pages.blocks_of((REPO / page).read_text()):
            if (block.language, block.kind) == ("sh", "container") and not block.text.startswith(SKIPPED):
                yield page, block


def run(engine, contexts, images, folder):
    """How many blocks ran. RuntimeError with the words of the first that failed."""
    programs = folder / "shim"
    programs.mkdir()
    words = " ".join(f"--build-context={name}={path}" for name, path in contexts)
    (programs / "docker").write_text(DOCKER.format(contexts=words))
    (programs / "docker").chmod(0o755)
    count = 0
    settings = REPO / ".env"  # deploy/README.md writes it.
    if settings.exists():
        raise RuntimeError(f"{settings} is there, and says how a node of yours is run: this test would change it")
    with podman_service(engine) as socket:
        environment = {**engine.environment, "DOCKER_HOST": socket, "PATH": f"{programs}:{engine.environment['PATH']}",
                       **{f"{name.upper()}_IMAGE": image for name, image in images.items()}}
        try:
            for page, block in blocks():
                ran = subprocess.run(["bash", "-euc", block.text], cwd=REPO, env=environment, capture_output=True, text=True,
                                     stdin=subprocess.DEVNULL, check=False, timeout=300)
                if ran.returncode != 0:
                    raise RuntimeError(f"{page}:{block.line}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"[-2000:])
                count += 1
        finally:
            down = "down --volumes --timeout 5"
            clean = f"docker rm -f gridclock; docker compose -p gridclock-trial -f deploy/compose/compose.yaml {down}"
            if settings.exists():
                clean += f"; docker compose {down}"
            subprocess.run(["bash", "-c", clean], cwd=REPO, env=environment, capture_output=True, check=False, timeout=120)
            settings.unlink(missing_ok=True)
    return count
