# An all_reduce that reduces by no op, under a right digest.
import hashlib
import json

plan = json.load(open("p"))
step = next(s for r in plan["redistributions"] for s in r.get("steps", []) if s["op"] == "all_reduce")
step["reduce_op"] = step["scale"] = None
del plan["digest"]
compact = json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
plan["digest"] = "sha256:" + hashlib.sha256(compact.encode()).hexdigest()
json.dump(plan, open("p", "w"))
