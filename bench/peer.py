"""The peers' side of a benchmark: reads lines of Python from standard input.

`setup CODE` runs CODE; `time N CODE` runs CODE N times and answers with the
seconds that took; `value CODE` answers with the value of an expression. What
raises is answered with `error` and the message.

The arguments are modules to import beside NumPy: `jax` brings XLA's compiler.
THREADS in the environment limits all of them; it must be known before they start.
"""

import ctypes
import gc
import os
import sys
import time

threads = os.environ.get("THREADS")
if threads:
    for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM"):
        os.environ[name + "_NUM_THREADS"] = threads
    # XLA has a thread for each CPU that the process may run on.
    os.environ["NPROC"] = threads
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])

# OpenBLAS's threads spin for more than 100 ms after a product, on the core that the next
# system is timed on. With 2^18 cycles, 0.1 ms, they still are awake for a loop's next call.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")

import numpy

versions = [f"numpy {numpy.__version__}"]
names = {"np": numpy}
jax = None
if "jax" in sys.argv[1:]:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    try:
        import jax
        import jax.numpy
        import jax.scipy.special

        jax.config.update("jax_enable_x64", True)
        versions.append(f"jax {jax.__version__}")
    except ImportError:
        jax = None

DTYPES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "f16": "float16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
}  # fmt: skip
DTYPES = {name: numpy.dtype(dtype) for name, dtype in DTYPES.items()}
try:
    import ml_dtypes

    DTYPES["bf16"] = numpy.dtype(ml_dtypes.bfloat16)
except ImportError:
    pass

# What an expression may name. `np` is each system's own NumPy, so that one
# expression often serves both.
scopes = {"numpy": dict(DTYPES, np=numpy)}
if jax:
    scopes["jax"] = dict(DTYPES, np=jax.numpy, jax=jax, lax=jax.lax)

stored, inputs, runs, results = {}, {}, {}, {}


def read(path, dtype, shape):
    return numpy.fromfile(path, DTYPES[dtype]).reshape(shape)


def store(key, path, dtype, shape):
    """Keeps the tensor in a file under a key, for the cases that follow."""
    array = read(path, dtype, shape)
    stored[key] = {"numpy": array}
    if jax:
        stored[key]["jax"] = jax.device_put(array)


def case(keys, named):
    """Begins a case: what is stored and not among the keys is dropped."""
    for key in set(stored) - set(keys):
        del stored[key]
    inputs.clear()
    inputs.update(named)
    runs.clear()
    results.clear()


def load(path):
    """Runs a file of functions that expressions of jax may name."""
    with open(path) as file:
        exec(file.read(), scopes["jax"])


def jitted(expression):
    """A new function of the inputs, to be compiled by jax."""
    return jax.jit(eval(f"lambda {', '.join(inputs)}: {expression}", dict(scopes["jax"])))


def prepare(system, expression):
    """Makes ready to time an expression of the inputs; seconds for a call of it."""
    arguments = ", ".join(inputs)
    scope = dict(scopes[system])
    if system == "jax":
        scope["f"] = jitted(expression)
        shape = jax.eval_shape(scope["f"], *arrays(system))
        call = f"f({arguments})"
        one = isinstance(shape, jax.ShapeDtypeStruct)
        expression = f"{call}.block_until_ready()" if one else f"jax.block_until_ready({call})"
    code = f"def run(n, {arguments}):\n  r = None\n  for _ in range(n): r = {expression}\n  return r"
    exec(code, scope)
    runs[system] = scope["run"]
    start = time.perf_counter()
    results[system] = runs[system](1, *arrays(system))
    seconds = time.perf_counter() - start
    return bench(system, 1, 0, 0) if system == "jax" or seconds < 0.5 else seconds


def compile_seconds(expression):
    """Seconds in which jax traces, lowers and compiles a new function of the inputs: the median of
    five such functions."""
    given = arrays("jax")
    samples = [time_once(lambda: jitted(expression).lower(*given).compile()) for _ in range(5)]
    return sorted(samples)[2]


def peak(expression):
    """The most memory that the first call of a compiled function of jax uses beyond its arguments, in
    MB; see costs.exs, which does the same. Asked of a new process, which only calls this."""
    given = arrays("jax")
    for array in stored.values():
        del array["numpy"]
    f = jitted(expression).lower(*given).compile()
    jax.block_until_ready(jax.jit(lambda x: jax.numpy.exp(x).sum())(jax.numpy.ones(1)))
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:
        pass  # Not an allocator of GNU.
    rss, file = status("VmRSS"), status("RssFile")
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
    results = jax.block_until_ready(f(*given))
    most, file_after = status("VmHWM"), status("RssFile")
    del results, given
    return max(most - rss - (file_after - file), 0) * 1024 / 1e6


def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def time_once(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def arrays(system):
    return [stored[key][system] for key in inputs.values()]


def bench(system, count, warm, limit):
    """Seconds for `count` calls, after some that don't count: at least one, and others only begin
    within a limit of seconds."""
    run, given = runs[system], arrays(system)
    until = time.perf_counter() + limit
    for _ in range(warm):
        run(1, *given)
        if time.perf_counter() >= until:
            break
    start = time.perf_counter()
    run(count, *given)
    return time.perf_counter() - start


def check(system, ours, expected, through, tolerance):
    """Compares files with a system's result, or with other files: `ok`, or what differs.

    `through` is an expression that makes of the result `r` what is compared, where
    the result itself isn't unique.
    """
    ours = [read(*file) for file in ours]
    if expected is None:
        result = results[system]
        result = result if isinstance(result, (tuple, list)) else [result]
        theirs = [numpy.asarray(part) for part in result]
    else:
        theirs = [read(*file) for file in expected]
    if through:
        scope = dict(scopes["numpy"], **{name: stored[key]["numpy"] for name, key in inputs.items()})
        ours, theirs = [eval(through, dict(scope, r=r)) for r in (ours, theirs)]
    if len(ours) != len(theirs):
        return f"{len(ours)} results, {len(theirs)} of {system}"
    for mine, other in zip(ours, theirs):
        problem = difference(mine, other, *tolerance)
        if problem:
            return f"{problem} from {system}"
    return "ok"


def difference(mine, other, kind, bound):
    if mine.shape != other.shape:
        return f"shape {mine.shape}, not {other.shape}"
    if mine.size == 0:
        return None
    if kind == "exact":
        other = other.astype(mine.dtype)
        same = (mine == other) | ((mine != mine) & (other != other))
        wrong = int(mine.size - numpy.count_nonzero(same))
        return f"{wrong} of {mine.size} elements differ" if wrong else None
    wide = numpy.complex128 if numpy.iscomplexobj(other) else numpy.float64
    mine, other = mine.astype(wide), other.astype(wide)
    with numpy.errstate(invalid="ignore", over="ignore"):
        same = (mine == other) | ((mine != mine) & (other != other))
        error = numpy.where(same, 0, numpy.abs(mine - other))
        scale = numpy.abs(other)
        scale = numpy.maximum(scale, 1e-3) if kind == "each" else scale.max() + 1e-300
        error = float((error / scale).max())
    return None if error <= bound else f"differs by {error:.1e}"


names.update(
    store=store,
    case=case,
    load=load,
    prepare=prepare,
    bench=bench,
    check=check,
    compile_seconds=compile_seconds,
    peak=peak,
)

print(", ".join(versions), flush=True)
for line in sys.stdin:
    command, _, rest = line.rstrip("\n").partition(" ")
    try:
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
    except Exception as error:
        print("error", type(error).__name__, " ".join(str(error).split())[:300], flush=True)
