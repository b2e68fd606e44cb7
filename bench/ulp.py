"""How far results lie from exact ones: what `bench/ulp.exs` asks of the peer.

The exact result is mpmath's with 200 bits; an error is measured in units in the last place
of the exact result's magnitude, which for complex numbers is that of the absolute value.
"""

import mpmath
import numpy
from mpmath import mp

mp.prec = 200

# Of floats and of complex numbers: bits of precision, the smallest normal exponent, the type.
PRECISION = {"f64": (53, -1022, numpy.float64), "c128": (53, -1022, numpy.complex128), "c64": (24, -126, numpy.complex64)}  # fmt: skip

FUNCTIONS = {
    "exp": mp.exp, "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p, "sqrt": mp.sqrt,
    "rsqrt": lambda x: 1 / mp.sqrt(x), "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos,
    "atan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh,
    "acosh": mp.acosh, "atanh": mp.atanh, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "erf": mp.erf, "erfc": mp.erfc, "erf_inv": mp.erfinv, "pow": mp.power, "atan2": mp.atan2,
}  # fmt: skip


def number(x):
    if isinstance(x, numpy.complexfloating):
        return mp.mpc(float(x.real), float(x.imag))
    return mp.mpf(float(x))


def exact(function, arguments, real):
    """None where there is no result of the type."""
    try:
        result = FUNCTIONS[function](*map(number, arguments))
    except (ValueError, ZeroDivisionError, mpmath.libmp.NoConvergence):
        return None
    if real and isinstance(result, mp.mpc):
        return result.real if result.imag == 0 else None
    return result if mp.isfinite(result) else None


def ulp(function, dtype, files):
    """How many inputs have a result within the range, the largest error and its place."""
    precision, least, numpy_type = PRECISION[dtype]
    largest = numpy.finfo(numpy_type).max
    *inputs, results = [numpy.fromfile(file, numpy_type) for file in files]
    count, worst, at = 0, mp.mpf(0), None
    for *arguments, result in zip(*inputs, results):
        best = exact(function, arguments, real=dtype == "f64")
        if best is None or abs(best) > largest:
            continue
        exponent = max(int(mp.floor(mp.log(abs(best), 2))), least) if best else least
        error = abs(number(result) - best) / mp.mpf(2) ** (exponent + 1 - precision)
        error = mp.inf if mp.isnan(error) else error
        count += 1
        if error > worst:
            worst, at = error, arguments
    place = " ".join(str(x) for x in at) if at else "-"
    return f"{count} {float(worst):.4g} {place}"
