#!/usr/bin/env python3
"""What a shell really offers after some words of a meshplan command line.

usage: completion.py MESHPLAN bash|zsh|fish      exit status 77: the shell is not installed
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

# An interactive zsh whose ^X completes and appends every word offered to the file `offered`, then a line "done".
ZSH = r"""
PS1= ; fpath=($PWD/_ $fpath); autoload -Uz compinit; compinit -u -D
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  local -a hits
  builtin compadd -A hits "$@"
  (( $#hits )) && print -rl -- $hits >> _/offered
}
capture() { _main_complete; print -r -- done >> _/offered }
zle -C capture list-choices capture
bindkey '^X' capture
print ready >> _/offered
"""
FISH = r"""
source _/completions
complete -C $argv[1] | string split -f1 \t
"""
BASH = r"""
source _/completions
# As readline splits the line: "=" is a word of its own.
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _meshplan; printf '%s\n' "${COMPREPLY[@]}"
"""


class Shell:
    """One shell in a scratch folder with a spec.json and a folder specs."""

    def __init__(self, name, meshplan, folder):
        self.name, self.folder = name, pathlib.Path(folder)
        (self.folder / "spec.json").touch()
        (self.folder / "specs").mkdir()
        (self.folder / "_").mkdir()
        text = subprocess.run([meshplan, "completion", name], capture_output=True, text=True, check=True).stdout
        (self.folder / "_" / ("_meshplan" if name == "zsh" else "completions")).write_text(text)
        self.offered, self.seen = self.folder / "_" / "offered", 0
        if name == "zsh":
            self.offered.touch()
            pid, self.terminal = pty.fork()
            if pid == 0:
                os.chdir(self.folder)
                os.environ.update(TERM="dumb", LC_ALL="C.UTF-8", HOME=str(self.folder))
                os.execvp("zsh", ["zsh", "-f", "-i"])
            (self.folder / "_" / "setup").write_text(ZSH)
            self.type_to_zsh(". _/setup\n", "ready")

    def type_to_zsh(self, keys, until):
        os.write(self.terminal, keys.encode())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 0.05)[0]:
                os.read(self.terminal, 65536)
            lines = self.offered.read_text().splitlines()[self.seen:]
            if until in lines:
                self.seen += len(lines)
                return lines[:-1]
        sys.exit(f"zsh said nothing for a minute after {keys!r}")

    def complete(self, line):
        if self.name == "zsh":
            words = self.type_to_zsh("\x15" + line + "\x18", "done")
        elif self.name == "fish":
            done = subprocess.run(["fish", "--no-config", "-c", FISH, line], cwd=self.folder, capture_output=True, text=True, check=False,
                                  env={**os.environ, "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "LC_ALL": "C.UTF-8"})
            words = done.stdout.splitlines()
            if done.stderr:
                sys.exit(done.stderr)
        else:
            split = [word for word in re.split(r"(=)| ", line) if word] + [""] * line.endswith((" ", "="))
            if line.endswith("="):
                split.pop()  # readline hands "=" itself to the function
            done = subprocess.run(["bash", "--norc", "-c", BASH, "bash", *split], cwd=self.folder, capture_output=True, text=True, check=True)
            words = done.stdout.split()
        # zsh offers folders without a slash, fish with one; fish repeats the flag in --flag=value, zsh escapes.
        return {re.sub(r"^--[a-z-]+=(?=.)", "", word).rstrip("/") for word in words if word}


def long_flags(meshplan, command):
    text = subprocess.run([meshplan, command, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))


def check(shell, meshplan):
    failures = []

    def expect(line, wanted, exactly=True):
        offered = shell.complete(line)
        if offered != wanted if exactly else not wanted <= offered:
            failures.append(f"after \"{line}\": missing {sorted(wanted - offered)}" + (f", not wanted {sorted(offered - wanted)}" if exactly else ""))

    overview = subprocess.run([meshplan, "--help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  ([a-z]+) ", overview.split("\nCommands:\n")[1].split("\n\n")[0], re.MULTILINE))
    expect("meshplan ", commands, exactly=shell.name != "bash")
    expect("meshplan pl", {"plan"})
    for command in sorted(commands):
        expect(f"meshplan {command} --", long_flags(meshplan, command))
    expect("meshplan plan --pl", {"--planner"})
    for sides in ("--planner ", "--planner="):
        expect(f"meshplan plan {sides}", {"greedy", "graph", "optimal"})
        expect(f"meshplan plan {sides}g", {"greedy", "graph"})
    expect("meshplan completion ", {"bash", "zsh", "fish"})
    expect("meshplan schema ", {"spec", "plan", "mesh", "diff", "report", "transfers"})
    expect("meshplan plan s", {"spec.json", "specs"})
    expect("meshplan plan spec.json -o s", {"spec.json", "specs"})
    expect("meshplan show plan.json --format p", {"perfetto"})
    expect("meshplan plan spec.json --topology h", {"h100", "h200"})
    expect("meshplan plan spec.json --topology s", {"spec.json", "specs"})
    expect("meshplan plan spec.json -W no-", {"no-missing-flatten", "no-uneven-shape", "no-non-ascending", "no-incomplete-recording", "no-one-copy", "no-slower-bundle", "no-outermost-ranks"})
    expect("meshplan plan -W error spec.json -W err", {"error", "error=missing-flatten", "error=uneven-shape", "error=non-ascending", "error=incomplete-recording", "error=one-copy", "error=slower-bundle", "error=outermost-ranks"})
    expect("meshplan diff check show --fail-on ", {"slower", "numerics", "warnings", "any"})
    expect("meshplan diff --fail-on slower --fail-on w", {"warnings"})
    expect("meshplan explain E020", {f"E020{i}" for i in range(1, 10)})
    expect("meshplan explain s", {"spec.json", "specs"})
    return failures


def main(arguments):
    if len(arguments) != 2 or arguments[1] not in ("bash", "zsh", "fish"):
        print(__doc__, file=sys.stderr)
        return 2
    meshplan, name = str(pathlib.Path(arguments[0]).resolve()), arguments[1]
    if shutil.which(name) is None:
        print(f"{name} is not installed: its completions were not tried")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        failures = check(Shell(name, meshplan, folder), meshplan)
    print("\n".join(failures) or f"{name} completes as it should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
