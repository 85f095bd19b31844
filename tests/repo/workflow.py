#!/usr/bin/env python3
"""The README's workflow, its two meshplan steps run as they stand by `bash -e`, in a fresh repository with a `gh` that only notes what it is
asked: a pull request that changes nothing, makes the plan dearer, does so again, takes it back, adds the plan, and breaks it.

usage: workflow.py MESHPLAN
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

TOP = pathlib.Path(__file__).resolve().parents[2]
SPEC = (TOP / "testdata/specs/llama3-8b-fsdp8-tp8-flattened.json").read_text(encoding="utf-8")
DEARER = SPEC.replace('"count": 4', '"count": 8')
GH = r"""#!/usr/bin/env bash
echo "$*" >> "$NOTES/asked"
case "$*" in
  *--paginate*) cat "$NOTES/id" 2>/dev/null || true ;;
  *body=@*) cp comment.md "$NOTES/comment" ;;
esac
"""


def steps():
    text = (TOP / "README.md").read_text(encoding="utf-8").split("# .github/workflows/")[1].split("```")[0]
    check = re.search(r"- run: (meshplan check .*)\n", text).group(1)
    diff = re.search(r"- run: \|\n((?:          .*\n)+)", text).group(1)
    return check, textwrap.dedent(diff)


class Repository:
    def __init__(self, meshplan, folder):
        self.folder, self.notes, self.failures = pathlib.Path(folder, "work"), pathlib.Path(folder, "notes"), []
        tools = pathlib.Path(folder, "tools")
        for made in (self.folder / "specs", self.notes, tools):
            made.mkdir(parents=True)
        (tools / "meshplan").symlink_to(meshplan)
        (tools / "gh").write_text(GH)
        (tools / "gh").chmod(0o755)
        self.environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": folder, "NOTES": str(self.notes), "GITHUB_BASE_REF": "main",
                            "GITHUB_REPOSITORY": "us/model", "NUMBER": "7", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
                            "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}

    def run(self, script, wanted=0):
        done = subprocess.run(["bash", "-e", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != wanted:
            self.failures.append(f"exit {done.returncode}, expected {wanted}: {script}\n{done.stdout}{done.stderr}")
        return done

    def write(self, spec):
        (self.folder / "specs/train.json").write_text(spec, encoding="utf-8")
        self.run("meshplan plan specs/train.json -o specs/train.plan.json -q")

    def pull_request(self, what, code, method, begins):
        """Runs the steps; `method`: how the comment is sent ("" not at all)."""
        for name in ("asked", "comment"):
            (self.notes / name).unlink(missing_ok=True)
        (self.folder / "comment.md").unlink(missing_ok=True)
        check, diff = steps()
        self.run(check, 2 if code == 2 else 0)
        self.run(diff, code)
        asked = (self.notes / "asked").read_text().splitlines() if (self.notes / "asked").exists() else []
        sent = {"": None, "POST": "api repos/us/model/issues/7/comments -F", "PATCH": "api -X PATCH repos/us/model/issues/comments/41 -F"}[method]
        writes = [line for line in asked if "body=@" in line]
        if len(writes) != bool(method) or (sent and not writes[0].startswith(sent)):
            self.failures.append(f"{what}: gh was asked {asked}, expected {sent}")
        comment = (self.notes / "comment").read_text(encoding="utf-8") if (self.notes / "comment").exists() else ""
        if not comment.startswith(begins) or bool(comment) != bool(begins):
            self.failures.append(f"{what}: the comment begins {comment[:200]!r}")


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        work = Repository(pathlib.Path(arguments[0]).resolve(), folder)
        work.run("git init -q -b main .")
        work.write(SPEC)
        work.run("git add -A; git commit -qm first; git update-ref refs/remotes/origin/main main")
        head = "<!-- meshplan-diff -->\n### Communication plan: "
        work.pull_request("nothing changed", 0, "", "")
        work.write(DEARER)
        work.pull_request("dearer", 1, "POST", head + "dearer\n")
        (work.notes / "id").write_text("41\n42\n")
        work.pull_request("dearer again", 1, "PATCH", head + "dearer\n")
        work.write(SPEC)
        work.pull_request("taken back", 0, "PATCH", head + "none\n\nNothing changes.\n")
        (work.notes / "id").unlink()
        work.run("git rm -q --cached specs/train.plan.json; git commit -qm 'no plan yet'; git update-ref refs/remotes/origin/main main")
        work.pull_request("a new plan", 0, "POST", head + "dearer\n")
        (work.folder / "specs/train.plan.json").write_text("{")
        work.pull_request("a broken plan", 2, "", "")
    print("\n".join(work.failures) or "the workflow does what it should")
    return 1 if work.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
