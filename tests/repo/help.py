#!/usr/bin/env python3
"""What --help promises is so: its examples run, every format that it lists is one, every schema prints, the README names every command.

usage: help.py MESHPLAN
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
SPECS = TOP / "testdata" / "specs"
# Examples that write outside the scratch folder or need processes, GPUs, programs or reports that are not here.
NOT_RUN = re.compile(r"/etc/|~/|fpath|mpirun|nccl|--launch|report\.json|topology\.json|git:|--ran |--record ")
MAY_EXIT = {"diff": {0, 1}, "check": {0, 1}, "run": {0, 4}}


class Help:
    def __init__(self, meshplan, folder):
        self.meshplan, self.folder, self.failures = meshplan, folder, []

    def run(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={"PATH": f"{pathlib.Path(self.meshplan).parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "COLUMNS": "200"})

    def check(self, truth, sentence):
        if not truth:
            self.failures.append(sentence)

    def text(self, words):
        result = self.run(f"meshplan {words}")
        self.check(result.returncode == 0 and result.stderr == "", f"meshplan {words}: exit {result.returncode}\n{result.stderr}")
        return result.stdout

    def examples(self, command, text):
        lines = text.split("Examples:\n")[1].split("\n\n")[0].splitlines()
        self.check(lines, f"meshplan {command} --help has no example")
        for line in lines:
            example = re.sub(r"\s+# .*", "", line.strip())
            if NOT_RUN.search(example):
                continue
            result = self.run(example)
            self.check(result.returncode in MAY_EXIT.get(command, {0}), f"{example}: exit {result.returncode}\n{result.stderr}")

    def formats(self, command, arguments, text):
        found = re.search(r"^  --format (\S+)", text, re.MULTILINE)
        seen = {}
        for word in found.group(1).split("|") if found else []:
            result = self.run(f"meshplan {command} {arguments} --format {word}")
            self.check(result.returncode in MAY_EXIT.get(command, {0}), f"meshplan {command} --format {word}: exit {result.returncode}\n{result.stderr}")
            twin = seen.get(result.stdout)
            self.check(twin is None, f"meshplan {command} --format {word} prints what {twin} does")
            seen[result.stdout] = word

    def all(self):
        text = self.text("--help")
        commands = re.findall(r"^  ([a-z]+) ", text.split("\nCommands:\n")[1].split("\n\n")[0], re.MULTILINE)
        self.check(len(commands) > 5, "meshplan --help lists no commands")
        self.examples("", text)
        readme = (TOP / "README.md").read_text(encoding="utf-8")
        for command in commands:
            self.check(f"`meshplan {command} " in readme, f"README.md does not name meshplan {command}")
        arguments = {"plan": "spec.json", "show": "plan.json", "diff": "old.json new.json", "mesh": "spec.json"}
        for command in commands:
            text = self.text(f"{command} --help")
            self.examples(command, text)
            if command in arguments:
                self.formats(command, arguments[command], text)
        for name in re.search(r"meshplan schema (\S+)", self.text("schema --help").split("Usage:")[1]).group(1).split("|"):
            schema = self.text(f"schema {name}")
            self.check(schema and name in json.loads(schema)["$id"], f"schema {name} names itself in $id")
        for shell in ("bash", "zsh", "fish"):
            self.check(len(self.text(f"completion {shell}")) > 500, f"completion {shell} is empty")
        result = self.run("meshplan completion bash | bash -n")
        self.check((result.returncode, result.stderr) == (0, ""), f"completion bash: {result.stderr}")


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        help_ = Help(str(pathlib.Path(arguments[0]).resolve()), folder)
        plain, flat = SPECS / "llama3-8b-fsdp8-tp8.json", SPECS / "llama3-8b-fsdp8-tp8-flattened.json"
        (folder / "specs").mkdir()
        for spec, copy in ((plain, "spec.json"), (plain, "old.json"), (flat, "new.json"), (plain, "a.json"), (flat, "b.json"),
                           (plain, "specs/a.json")):
            shutil.copy(spec, folder / copy)
        for spec, plan in (("spec", "plan"), ("old", "old.plan"), ("new", "new.plan")):
            help_.text(f"plan {spec}.json -o {plan}.json -q -W no-missing-flatten")
        # The ids that the examples use.
        text = (folder / "spec.json").read_text().replace("backward.wq.reduce_scatter", "layers.wq.grad")
        text = text.replace('"redistributions": [', '"bundles": [{"id": "sync", "redistributions": ["layers.*"]}],\n  "redistributions": [', 1)
        (folder / "spec.json").write_text(text)
        help_.text("plan spec.json -o plan.json -q -W no-missing-flatten")
        help_.all()
    print("\n".join(help_.failures) or "what --help promises is so")
    return 1 if help_.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
