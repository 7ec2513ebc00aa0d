"""Installs distributions in plain Debian systems, and does the steps of the Dockerfile in others.

    python .ci/systems.py DIST WORK

Each system is made by mmdebstrap in the folder WORK, and entered by chroot in a mount namespace of its own, so as root.
In each one a short run must give the same digest.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
RELEASES = ("bookworm", "trixie")
RUST = "/usr/local/rust"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
WAYS = ("pip_index", "pip_trusted", "pip_default_timeout", "cargo_net", "cargo_registries", "http", "no_proxy")
"""Variables that say how this machine reaches the registries begin so."""
RUN = ["tidegate", "run", "home-broadband", "--set", "duration=5s", "--json"]
PATH = f"{RUST}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def make(root: Path, release: str, packages: Sequence[str] = ()) -> None:
    """Makes a Debian system of a release with its smallest set of packages and these."""
    shutil.rmtree(root, ignore_errors=True)
    include = ",".join(["ca-certificates", *packages])
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={include}", release, root], check=True)
    # names and certificates are those of this machine, which may reach the registries by its own ways
    for file in ("/etc/resolv.conf", "/etc/hosts", CERTIFICATES):
        shutil.copy(file, root / file[1:])


def inside(root: Path, command: Sequence[str], *, env: Mapping[str, str], folder: str = "/") -> str:
    """Does a command in a system; returns what it prints."""
    mounts = f"mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev"
    if env.get("WITH_RUST"):
        toolchain = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout
        mounts += f" && mkdir -p {root}{RUST} && mount --bind -o ro {toolchain.strip()} {root}{RUST}"
    enter = f"exec chroot {root} /bin/sh -c {shlex.quote(f'cd {folder} && exec ' + shlex.join(command))}"
    inherited = {key: value for key, value in os.environ.items() if key.lower().startswith(WAYS)}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{mounts} && {enter}"],
        env={"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **inherited, "PIP_CERT": CERTIFICATES, **env},
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{root.name}: {shlex.join(command)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def dockerfile(work: Path) -> tuple[Path, dict[str, str], list[str]]:
    """Does the steps of the Dockerfile; returns the last stage's system, its environment and its entry point."""
    stages: dict[str, Path] = {}
    root, env, folder, entry = work, {}, "/", []
    text = (REPOSITORY / "Dockerfile").read_text()
    for line in text.replace("\\\n", " ").splitlines():
        step, _, rest = line.partition(" ")
        match step:
            case "" | "#" | "CMD":
                continue
            case "FROM":
                image, *name = rest.split(" AS ")
                root, env, folder = work / f"stage-{len(stages)}", {}, "/"
                stages[name[0] if name else ""] = root
                # the image of Rust is Debian's with a C compiler and Rust
                rust = image == "rust:1-slim-bookworm"
                assert rust or image == "debian:bookworm-slim", image
                make(root, "bookworm", ["gcc", "libc6-dev"] if rust else [])
                env = {"WITH_RUST": "1"} if rust else {}
            case "RUN":
                inside(root, ["/bin/sh", "-c", rest], env=env, folder=folder)
            case "WORKDIR":
                folder = rest
                (root / folder[1:]).mkdir(parents=True, exist_ok=True)
            case "ENV":
                key, _, value = rest.partition("=")
                env[key] = value.replace("$PATH", PATH)
            case "ENTRYPOINT":
                entry = json.loads(rest)
            case "COPY" if rest == ". .":
                copy_checkout(root / folder[1:])
            case "COPY":
                stage, source, target = rest.split()
                shutil.copytree(stages[stage.removeprefix("--from=")] / source[1:], root / target[1:])
            case _:
                sys.exit(f"Dockerfile: a step that .ci/systems.py does not know: {line}")
    return root, env, entry


def copy_checkout(target: Path) -> None:
    """Copies the checkout but for what .dockerignore names."""
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    names = [f"./{line}".replace("./**/", "*/") for line in lines if line and not line.startswith("#")]
    pack = ["tar", "-c", "--anchored", "--wildcards", *(f"--exclude={name}" for name in names), "."]
    with subprocess.Popen(pack, cwd=REPOSITORY, stdout=subprocess.PIPE) as packing:
        subprocess.run(["tar", "-x", "-C", target], stdin=packing.stdout, check=True)


def main() -> None:
    """Tries wheel, source distribution and Dockerfile."""
    dist, work = (Path(name).resolve() for name in sys.argv[1:])
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    digests = {}
    for release in RELEASES:
        for file in [wheel, source] if release == RELEASES[0] else [wheel]:
            rust = file == source
            root = work / f"{release}-{'source' if rust else 'wheel'}"
            make(root, release, ["python3-venv", *(["gcc", "libc6-dev"] if rust else [])])
            shutil.copy(file, root / file.name)
            env = {"WITH_RUST": "1"} if rust else {}
            inside(root, ["python3", "-m", "venv", "/here"], env=env)
            inside(root, ["/here/bin/pip", "install", "--quiet", f"/{file.name}"], env=env)
            shown = inside(root, RUN, env={"PATH": f"/here/bin:{PATH}"})
            digests[f"Debian {release}, {file.name}"] = json.loads(shown)["digest"]
            shutil.rmtree(root)
            print(f"Debian {release}: {file.name} works", flush=True)
    root, env, entry = dockerfile(work)
    digests["the container"] = json.loads(inside(root, [*entry, *RUN[1:]], env=env, folder="/work"))["digest"]
    if len(set(digests.values())) != 1:
        sys.exit(f"a run has not the same digest everywhere: {digests}")
    print("Dockerfile: its steps work; the digest of a run is the same in all of them")


main()
