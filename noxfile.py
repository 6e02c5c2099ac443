"""Everything a developer or CI runs. `nox -l` lists it; without `-s`, tests, lint and typing run.

Versions come from constraints.txt, but for `lowest`, which takes the lower bounds of pyproject.toml, and `newest`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["tests", "lint", "typing"]
nox.options.default_venv_backend = "uv|virtualenv"  # uv where it is installed: the same, in seconds
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True

PROJECT = nox.project.load_toml("pyproject.toml")["project"]
EXTRAS = PROJECT["optional-dependencies"]
PINNED = ("-c", "constraints.txt")
PARALLEL = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")
"""A process for each core, each file in one of them: its fixtures are made once. conftest.py says which come first."""
SLOWEST = ("--durations=40", "--durations-min=5")
"""What the tests' minutes go to, at the end of their output."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""For each of these processes: more threads would wait for one another, on small matrices for longer than they work."""
LENIENT = ("-W", "default::DeprecationWarning", "-W", "default::PendingDeprecationWarning")
"""Libraries may use what others beside them call deprecated; that says nothing about netctrl."""
BIN = "Scripts" if os.name == "nt" else "bin"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().resolve() / "netctrl"
"""Where netctrl keeps what took long to make; nox's sessions of all checkouts share it."""
FRESH_VENV = ("python", "-m", "venv", "--clear", "--without-pip")
"""A virtual environment with nothing in it: pip installs from outside, and isn't weighed."""


def build_wheel(session: nox.Session) -> Path:
    """The wheel of this checkout, in the session's own temporary folder."""
    folder = Path(session.create_tmp()) / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("hatchling", "build", "-t", "wheel", "-d", str(folder), silent=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel(session: nox.Session, *requirements: str) -> None:
    """The checkout as a user gets it: a wheel, never the source tree, beside `requirements`."""
    session.install(*PINNED, "hatchling")
    wheel = build_wheel(session)
    session.install(*PINNED, str(wheel), *requirements)
    reinstall(session, wheel)
    # Kernels are compiled once for all sessions and checkouts: their key holds the sources and the compiler.
    session.env["NUMBA_CACHE_DIR"] = str(CACHE / "nox")
    session.env.update(ONE_THREAD)


def reinstall(session: nox.Session, wheel: Path) -> None:
    """The wheel in place of yesterday's, whose version is the same.

    As `run`, so that `nox -R`, which skips `install`, does not test that one either. Compiled: what runs in the kernel
    in virtual time keeps nothing.
    """
    pip = ("uv", "pip") if session.venv_backend == "uv" else ("pip",)
    options = ("--no-deps", "--force-reinstall", "--compile", "--quiet")
    session.run(*pip, "install", *options, str(wheel), external=pip[0] == "uv")


def pytest(session: nox.Session, *arguments: str) -> None:
    """Test the installed wheel; arguments after `--` go to pytest."""
    install_wheel(session, *EXTRAS["test"])
    session.install("--no-deps", "-r", "tests/openconfig.txt")
    # The executable, not `python -m pytest`, which would put the checkout on sys.path.
    session.run("pytest", "--import-mode=importlib", *SLOWEST, *PARALLEL, *arguments, *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Test the installed wheel in minutes, without what has a session of its own; arguments after `--` go to pytest."""
    pytest(session)


@nox.session
def slow(session: nox.Session) -> None:
    """Tests that take more than 2 s of processor time each: packets of many seeds, proofs over many points."""
    pytest(session, "-m", "slow and not (engines or lab or namespaces or site)")


@nox.session
def engines(session: nox.Session) -> None:
    """Tests in ns-3, and of other packages' laws on packets."""
    pytest(session, "-m", "engines")


@nox.session
def lab(session: nox.Session) -> None:
    """Tests in the Linux kernel in virtual time, which is built first."""
    install_wheel(session, *EXTRAS["test"])
    session.run("netctrl", "kernel", "build", "--n-jobs", "-1")
    session.run("pytest", "--import-mode=importlib", *PARALLEL, "-m", "lab", *session.posargs)


@nox.session
def namespaces(session: nox.Session) -> None:
    """Tests in network namespaces, which root may make; in real time, so one after another."""
    install_wheel(session, *EXTRAS["test"])
    session.run("pytest", "--import-mode=importlib", "-m", "namespaces", *session.posargs)


@nox.session
def kernel(session: nox.Session) -> None:
    """Build the Linux kernel in virtual time into the user's cache, five minutes of one core, unless it is there."""
    session.install(*PINNED, "hatchling", "msgspec", "cyclopts", "numpy")
    reinstall(session, build_wheel(session))
    session.run("netctrl", "kernel", "build", "--n-jobs", "-1")


@nox.session
def core(session: nox.Session) -> None:
    """Install requirements/core.txt, say how large that is, and run what it promises."""
    session.install(*PINNED, "hatchling")
    wheel = build_wheel(session)
    venv = Path(session.create_tmp()).resolve() / "venv"
    session.run(*FRESH_VENV, str(venv), silent=True)
    install = ("pip", "--python", str(venv), "install", "--no-compile", "--quiet")
    session.run(*install, "-r", "requirements/core.txt")
    session.run(*install, "--no-deps", str(wheel))
    session.env["NUMBA_CACHE_DIR"] = str(CACHE / "nox")
    folder = tempfile.mkdtemp()  # empty, so that netctrl isn't found in the checkout
    check = Path("tests", "support", "core_install.py").resolve()
    with session.chdir(folder):
        session.run(str(venv / BIN / "python"), "-P", str(check), external=True)


@nox.session
def package(session: nox.Session) -> None:
    """Build the sdist, from it the wheel; check both, and run the README's first command on a fresh installation."""
    session.install(*PINNED, *EXTRAS["package"])
    folder = Path(session.create_tmp()).resolve()
    shutil.rmtree(folder / "dist", ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(folder / "dist"), silent=True)
    files = sorted(map(str, (folder / "dist").iterdir()))
    session.run("twine", "check", "--strict", *files)
    session.run(*FRESH_VENV, str(folder / "venv"), silent=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    session.run("pip", "--python", str(folder / "venv"), "install", "--quiet", *PINNED, str(wheel))
    with session.chdir(tempfile.mkdtemp()):
        python = str(folder / "venv" / BIN / "python")
        session.run(python, "-m", "netctrl.design", "arc", "--N", "50", external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules and its format."""
    session.install(*PINNED, *EXTRAS["lint"])
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def typing(session: nox.Session) -> None:
    """The package's types, against those of the libraries it uses; then a user's script in pyright and mypy."""
    install_wheel(session, *EXTRAS["test"], *EXTRAS["typing"])
    session.run("ty", "check", "--python", session.virtualenv.location, *session.posargs)
    session.run("pytest", "--import-mode=importlib", "tests/typing")


@nox.session
def site(session: nox.Session) -> None:
    """The site, into site/; a warning is an error. Then its links, and its pages and reports in a browser, if any."""
    install_wheel(session, *EXTRAS["docs"], *EXTRAS["test"])
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # mkdocs-material's advertisement of its successor
    session.run("mkdocs", "build", "--strict", "--clean", *session.posargs, env=quiet)
    require = ",".join(filter(None, (os.environ.get("NETCTRL_REQUIRE"), "site")))
    tests = ("-m", "site", "tests/site", "tests/plotting/pages")
    session.run("pytest", "--import-mode=importlib", *tests, env=quiet | {"NETCTRL_REQUIRE": require})


@nox.session
def notebooks(session: nox.Session) -> None:
    """Execute every notebook from its first cell to its last; the site shows the executed copies."""
    install_wheel(session, *EXTRAS["notebooks"], *EXTRAS["test"])
    executed = Path(".nox", "executed")
    shutil.rmtree(executed, ignore_errors=True)
    shutil.copytree("notebooks", executed)
    command = ("pytest", "--import-mode=importlib", *PARALLEL, "--nbmake", "--overwrite", str(executed))
    session.run(*command, *session.posargs, env={"NETCTRL_QUIET": "1"})  # no page tells that kernels were compiled


@nox.session
def figures(session: nox.Session) -> None:
    """Draw the figures whose code or data changed since, with `-- --all` every one; fails where a number that we call
    reproduced no longer is."""
    install_wheel(session)
    session.run("python", "experiments/figures.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """One table of ratios, each against a named peer in the same run."""
    install_wheel(session, *EXTRAS["mpc"])
    session.run("python", "experiments/benchmarks/run.py", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """How many small changes of the numerical packages their tests notice; arguments as experiments/mutants.py."""
    session.install(*PINNED, *PROJECT["dependencies"], *EXTRAS["test"])
    session.run("python", "experiments/mutants.py", *session.posargs)


@nox.session(python="3.11", reuse_venv=False)
def lowest(session: nox.Session) -> None:
    """The tests on the lower bounds of pyproject.toml, with the oldest Python."""
    requirements = on_other_versions(session, "--resolution", "lowest-direct")
    check_lower_bounds(session, requirements)
    session.run("pytest", "--import-mode=importlib", *PARALLEL, *LENIENT, "-m", "", *session.posargs, env=ONE_THREAD)


@nox.session(reuse_venv=False)
def newest(session: nox.Session) -> None:
    """The tests on the newest libraries, candidates for a release among them: what will break before it does."""
    on_other_versions(session, "--upgrade", "--prerelease", "allow")
    session.run("uv", "pip", "list")
    session.run("pytest", "--import-mode=importlib", *PARALLEL, *LENIENT, *session.posargs, env=ONE_THREAD)


def on_other_versions(session: nox.Session, *options: str) -> list[str]:
    """Install the wheel and the tests' libraries as uv's options say; the requirements."""
    session.install("uv", "hatchling")
    # What the wheel asks for is named again: uv takes only what is named for direct.
    requirements = [*PROJECT["dependencies"], *EXTRAS["test"]]
    session.run("uv", "pip", "install", *options, str(build_wheel(session)), *requirements)
    return requirements


def check_lower_bounds(session: nox.Session, requirements: list[str]) -> None:
    """Fail where another version than the stated bound was installed: such a bound is not tested."""
    frozen = session.run("uv", "pip", "freeze", silent=True, log=False)
    installed = dict(line.lower().split("==") for line in str(frozen).splitlines() if "==" in line)
    for requirement in requirements:
        name, bound = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement).groups()
        if installed.get(name.lower()) != bound:
            session.error(f"{requirement} is not tested: {installed.get(name.lower())} was installed")
