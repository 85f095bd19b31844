# A step that claims to receive and hold next to nothing; totals and digest are redone.
import hashlib
import json

plan = json.load(open("p"))
total = plan["totals"]
forged = next(r for r in plan["redistributions"] if len(r.get("steps", [])) == 1 and r["totals"]["wire_bytes"] > 1)
step = forged["steps"][0]
total["wire_bytes"] += forged["count"] * (1 - step["wire_bytes"])
total["lower_bound_bytes"] -= forged["count"] * forged["totals"]["lower_bound_bytes"]
step["wire_bytes"] = step["peak_bytes"] = 1
forged["totals"].update(wire_bytes=1, peak_bytes=1, lower_bound_bytes=0)
total["peak_bytes"] = max(r["totals"]["peak_bytes"] for r in plan["redistributions"] if "totals" in r)
del plan["digest"]
compact = json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
plan["digest"] = "sha256:" + hashlib.sha256(compact.encode()).hexdigest()
json.dump(plan, open("p", "w"))
