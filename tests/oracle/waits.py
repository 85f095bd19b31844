"""Checks that wait for defects of issue 15 to be mended: a change that mends one sets its constant,
and goes away with the last of them."""

NEVER_BEATEN = False      # part 2, defect 2: greedy, graph or an alternative beats the optimal plan
VERIFY_RECOUNTS = False   # part 3, defect 7: verify believes figures
