"""NumPy's side of a benchmark: reads lines of Python from standard input.

`setup CODE` runs CODE; `time N CODE` runs CODE N times and answers with the
seconds that took; `value CODE` answers with the value of an expression.
"""

import sys
import time

import numpy

names = {"np": numpy}
print(f"numpy {numpy.__version__}", flush=True)
for line in sys.stdin:
    command, _, rest = line.rstrip("\n").partition(" ")
    if command == "setup":
        exec(rest, names)
        print("ok", flush=True)
    elif command == "value":
        print(eval(rest, names), flush=True)
    elif command == "time":
        count, _, code = rest.partition(" ")
        exec(f"def run(n):\n  for _ in range(n): {code}", names)
        start = time.perf_counter()
        names["run"](int(count))
        print(time.perf_counter() - start, flush=True)
