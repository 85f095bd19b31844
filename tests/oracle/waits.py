"""Checks that wait for defects of issue 15 to be mended: a change that mends one sets its constant,
and goes away with the last of them."""

NO_SIGNALS = True         # defect 1: a trace across meshes read past a mesh's dims
TIME_IS_BOUNDED = False   # part 5, defect 3: a second of processor a redistribution
BOUNDS_HOLD = False       # part 6, defect 6: bounds above the plans that they belong to
GAPS_HOLD = False         # part 2: a gap above the plan's time less its bound
PACKING_COUNTED = False   # defect 2: shards over mesh dims of size 1; slices below a reduce_scatter
NEVER_BEATEN = False      # part 2, defect 2: greedy, graph or an alternative beats the optimal plan
VERIFY_RECOUNTS = False   # part 3, defect 7: verify believes figures
