#!/usr/bin/env python3
"""The package where it is installed, with neither the source tree nor a compiler in reach: planned, priced and verified in a folder of its own.

usage: installed_test.py CMAKE BUILD_FOLDER     what `cmake --install --component python` of a build writes
       installed_test.py --wheel [PIP OPTION...]   what pip makes of apps/python: a wheel, installed into a new virtual environment. Needs a network
                                                that pip trusts, for scikit-build-core; takes minutes
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = ROOT / "testdata" / "specs" / "llama3-8b-fsdp8-tp8.json"
PLAN = ROOT / "testdata" / "plans" / "llama3-8b-fsdp8-tp8.plan.json"

PROGRAM = """
import pathlib, sys
import meshplan
assert "torch" not in sys.modules and "numpy" not in sys.modules
package = pathlib.Path(meshplan.__file__).parent
assert package.is_relative_to(sys.argv[1]), package
assert (package / "py.typed").exists() and not list(package.rglob("*.cc"))
plan = meshplan.plan(pathlib.Path("spec.json").read_text())
assert plan == pathlib.Path("expected.json").read_text() and meshplan.verify(plan) == []
assert meshplan.transfers(plan, "forward.wq.gather", rank=3)["redistributions"][0]["steps"]
cost = meshplan.cost({"dp": 2, "tp": 8}, ["S(0)", "R"], ["R", "R"], (4096, 96), "bfloat16")
assert 0 < cost < 1000, cost
print(meshplan.version(), cost)
"""


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def check(python, prefix, folder, environment):
    """The package under `prefix`, asked from a folder that has nothing of this tree."""
    away = folder / "away"
    away.mkdir()
    shutil.copy(SPEC, away / "spec.json")
    shutil.copy(PLAN, away / "expected.json")
    version, _ = run(python, "-c", PROGRAM, prefix, cwd=away, env=environment).split()
    said = run(python, "-m", "meshplan", "--version", cwd=away, env=environment)
    assert said == f"meshplan {version}\n", said
    run(python, "-m", "meshplan", "plan", "spec.json", "-q", "-W", "no-missing-flatten", "-o", "plan.json", cwd=away, env=environment)
    assert (away / "plan.json").read_bytes() == PLAN.read_bytes()
    return version


def from_build(cmake, build, folder):
    prefix = folder / "site"
    run(cmake, "--install", build, "--component", "python", "--prefix", prefix)
    return check(sys.executable, prefix, folder, {"PATH": "/nonexistent", "PYTHONPATH": str(prefix), "PYTHONDONTWRITEBYTECODE": "1"})


def from_wheel(folder):
    launcher = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}
    tools = folder / "tools"
    run("/usr/bin/python3", "-m", "venv", tools)
    run(tools / "bin" / "pip", "wheel", "-q", "--no-deps", *sys.argv[2:], "-w", folder, ROOT / "apps" / "python", env={**os.environ, **launcher})
    (wheel,) = folder.glob("*.whl")
    assert "-py3-none-" in wheel.name, wheel
    environment = folder / "clean"
    run("/usr/bin/python3", "-m", "venv", environment)
    run(environment / "bin" / "pip", "install", "-q", "--no-index", wheel)
    for binary in environment.rglob("meshplan/bin/meshplan"), environment.rglob("libmeshplan.so"):
        needed = run("ldd", next(binary))
        names = [line.split()[0] for line in needed.splitlines()]
        assert all(n.startswith(("linux-vdso", "libc.so", "libm.so", "/lib64/ld-linux", "ld-linux")) for n in names), needed
    said = run(environment / "bin" / "meshplan", "--version", env={"PATH": "/nonexistent"})
    version = check(environment / "bin" / "python", environment, folder, {"PATH": "/nonexistent"})
    assert said == f"meshplan {version}\n", said
    return f"{version} ({wheel.name})"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = from_wheel(folder) if sys.argv[1:2] == ["--wheel"] else from_build(*sys.argv[1:], folder)
    print(f"installed: meshplan {found} plans, verifies, prices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
