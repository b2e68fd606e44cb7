"""How far results lie from exact ones: what `bench/ulp.exs` asks of the peer.

Inputs are drawn here, the same in every run. The exact result is mpmath's, computed with twice
the bits until all of an f64 stand firm in each part. An error is measured in units in the last
place (ulp) of the exact result, those of subnormal numbers being the least; that of a complex
number in each of its parts, and of its distance in those of the absolute value.
"""

import math
import random

import mpmath
import numpy
from mpmath import mp

# Of floats and of complex numbers: bits of precision, the smallest normal exponent, the types
# of numbers and of their parts.
FORMATS = {
    "f64": (53, -1022, numpy.float64, numpy.float64),
    "c64": (24, -126, numpy.complex64, numpy.float32),
    "c128": (53, -1022, numpy.complex128, numpy.float64),
}  # fmt: skip


def cube_root(x):
    if isinstance(x, mp.mpc):
        return mp.exp(mp.log(x) / 3)
    return mp.sign(x) * mp.cbrt(abs(x))


FUNCTIONS = {
    "exp": mp.exp, "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p,
    "sqrt": mp.sqrt, "rsqrt": lambda x: 1 / mp.sqrt(x), "cbrt": cube_root,
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos,
    "atan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh,
    "acosh": mp.acosh, "atanh": mp.atanh, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "erf": mp.erf, "erfc": mp.erfc, "erf_inv": mp.erfinv, "pow": mp.power, "atan2": mp.atan2,
}  # fmt: skip

# Where functions have zeros, poles, cuts and branch points, where they over- and underflow, and
# where an implementation may change from one formula to another.
PLACES = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 6.0, 20.0, 22.0, 28.0, 40.0, 88.72, 103.97, 350.0, 708.4, 709.78, 710.47, 745.13]  # fmt: skip
PLACES += [k * math.log(2) / 2 for k in (1, 2, 3, 5, 64, 1024)]
PLACES += [k * math.pi / 2 for k in (*range(1, 9), 100, 10**6, 10**15)]


def near(place):
    """The place and what is close to it, by powers of two, on both sides."""
    yield place
    for k in range(1, 54):
        yield place * (1 - 2.0**-k)
        yield place * (1 + 2.0**-k)


def magnitudes(draw, least, most, each):
    """Some of every binade."""
    for exponent in range(least, most):
        for _ in range(each):
            yield math.ldexp(1 + draw.random(), exponent)


def reals(draw):
    positive = [x for place in PLACES for x in near(place)]
    positive += magnitudes(draw, -1074, 1024, 2)
    positive += [draw.uniform(0, most) for most in (1, 4, 30, 800) for _ in range(1500)]
    return [sign * x for x in positive for sign in (1, -1)] + [0.0, -0.0]


# Directions as cosine and sine, all in the first octant: the axis and the diagonal, and close to
# them.
OCTANT = [(1.0, 0.0), (1.0, 1.0)] + [(1.0, 2.0**-k) for k in (1, 4, 9, 20, 30, 52, 200, 1000)]
OCTANT += [(1.0, 1 - 2.0**-k) for k in (4, 20, 52)]


# Of complex arguments, which take mpmath longest.
MOST = 6_000


def complexes(draw, least, most):
    """Rings of every eighth binade, in all octants; places on either axis and close to them;
    circles on which real parts vanish."""
    points = []
    for size in magnitudes(draw, least, most, 1):
        directions = [(math.cos(a), math.sin(a)) for a in (draw.uniform(0, math.pi / 4) for _ in range(2))]
        exponent = math.frexp(size)[1]
        chosen = OCTANT + directions if exponent % 8 == 0 else directions
        points += [(size * x, size * y) for x, y in chosen]
    for place in PLACES:
        for k in (2, 8, 20, 30, 50):
            for x in (place * (1 - 2.0**-k), place, place * (1 + 2.0**-k)):
                points += [(x, 0.0), (x, 2.0**-k), (x, 2.0 ** -(2 * k)), (x, 2.0**-900), (x, draw.uniform(0, 4))]
    for _ in range(400):
        angle, off = draw.uniform(0, math.pi / 2), 1 + draw.choice((-1, 0, 1)) * 2.0 ** -draw.randint(1, 60)
        points += [(off * math.cos(angle), off * math.sin(angle))]
        points += [(off * math.cos(2 * angle) - 1, off * math.sin(2 * angle))]
        points += [(-math.log(abs(math.cos(angle))) * off, angle)]
        points += [(draw.uniform(0, 3), draw.uniform(0, 3)), (draw.uniform(0, 720), draw.uniform(0, 720))]
    points += [(y, x) for x, y in points]
    points = [complex(a * x, b * y) for x, y in points for a in (1, -1) for b in (1, -1)]
    return draw.sample(points, MOST)


def powers(draw):
    """Exponents so that most results are in range, and any."""
    pairs = []
    for size in magnitudes(draw, -1074, 1024, 4):
        log = abs(math.log(size)) or 1.0
        y = draw.choice((1, -1)) * draw.choice((draw.uniform(0, 740) / log, draw.randint(0, 60), draw.random()))
        pairs.append((size, y))
    for _ in range(4000):
        x = 1 + draw.choice((1, -1)) * 2.0 ** -draw.randint(1, 52)
        pairs.append((x, draw.uniform(-700, 700) / math.log(x)))
        pairs.append((-float(draw.randint(1, 9)), float(draw.randint(-300, 300))))
    return pairs


def angles(draw):
    sizes = list(magnitudes(draw, -1074, 1024, 2))
    others = sizes[:]
    draw.shuffle(others)
    close = [x * 2.0 ** draw.uniform(-60, 60) for x in sizes]
    pairs = [*zip(sizes, others), *zip(sizes, close)]
    return [(a * x, b * y) for x, y in pairs for a in (1, -1) for b in (1, -1)]


def complex_powers(draw):
    pairs = []
    for _ in range(12000):
        x = 2.0 ** draw.uniform(-30, 30) * complex(draw.gauss(0, 1), draw.gauss(0, 1))
        y = 2.0 ** draw.uniform(-20, 4) * complex(draw.gauss(0, 1), draw.choice((0, 1)) * draw.gauss(0, 1))
        pairs.append((x, y))
    return pairs


def inputs(function, dtype, files):
    """Writes the arguments of a function of one or two, and answers how many there are."""
    draw = random.Random(function)
    is_real = dtype == "f64"
    if function == "pow":
        arguments = powers(draw) if is_real else complex_powers(draw)
    elif function == "atan2":
        arguments = angles(draw)
    elif is_real:
        arguments = [(x,) for x in reals(draw)]
    else:
        least, most = (-149, 127) if dtype == "c64" else (-1074, 1023)
        arguments = [(z,) for z in complexes(draw, least, most)]
    for values, file in zip(zip(*arguments), files):
        with numpy.errstate(over="ignore"):
            numpy.array(values).astype(FORMATS[dtype][2]).tofile(file)
    return str(len(arguments))


# Stand for a zero, whose sign chooses a side of a branch cut: what differs between them is zero.
SPECKS = [mp.mpf(2) ** -1200, mp.mpf(2) ** -1300]


def part(x, speck):
    x = float(x)
    return mp.mpf(x) if x else math.copysign(1, x) * speck


def number(x, speck):
    if isinstance(x, numpy.complexfloating):
        return mp.mpc(part(x.real, speck), part(x.imag, speck))
    return mp.mpf(float(x))


def has_zero(x):
    return isinstance(x, numpy.complexfloating) and (x.real == 0 or x.imag == 0)


def parts(x):
    return (x.real, x.imag) if isinstance(x, mp.mpc) else (x,)


def computed(function, arguments, precision, speck):
    """None where there is no number."""
    mp.prec = precision
    try:
        result = FUNCTIONS[function](*[number(x, speck) for x in arguments])
    except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
        return None
    return result if mp.isfinite(result) else None


def firm(a, b):
    """Whether a part stands firm; one that vanishes may have lost its digits."""
    return b != 0 and abs(a - b) <= abs(b) * mp.mpf(2) ** -70


def exact(function, arguments):
    """None where there is no number, a complex one where there is no real one."""
    if any(map(has_zero, arguments)):
        both = [computed(function, arguments, 3000, speck) for speck in SPECKS]
        if None in both:
            return None
        pairs = list(zip(*map(parts, map(mp.mpc, both))))
        # What shrinks with what stands for a zero is one, what grows is infinite.
        if any(not firm(a, b) and abs(b) > abs(a) * mp.mpf(2) ** -40 for a, b in pairs):
            return None
        return mp.mpc(*[b if firm(a, b) else mp.mpf(0) for a, b in pairs])
    last, precision = None, 160
    while precision < 6000:
        result = computed(function, arguments, precision, SPECKS[0])
        if result is None:
            return None
        if last is not None and all(firm(a, b) for a, b in zip(parts(last), parts(result))):
            return result
        last, precision = result, 2 * precision
    # What is zero at so many bits is zero.
    return last


def distance(got, best, precision, least):
    """In units in the last place of the best."""
    exponent = max(mp.frexp(abs(best))[1] - 1, least) if best else least
    return abs(got - best) / mp.mpf(2) ** (exponent + 1 - precision)


def ulp(function, dtype, files):
    """How many inputs have a result, the largest error of a part and where it is, and for complex
    numbers the largest distance."""
    precision, least, numpy_type, part_type = FORMATS[dtype]
    largest = mp.mpf(float(numpy.finfo(part_type).max))
    unit = mp.mpf(2) ** (mp.frexp(largest)[1] - precision)
    *all_inputs, results = [numpy.fromfile(file, numpy_type) for file in files]
    count, worst, at, farthest = 0, mp.mpf(0), None, mp.mpf(0)
    for *arguments, result in zip(*all_inputs, results):
        if not numpy.all(numpy.isfinite(arguments)):
            continue
        best = exact(function, arguments)
        if best is None or dtype == "f64" and isinstance(best, mp.mpc) and best.imag != 0:
            continue
        got = (result.real, result.imag) if dtype != "f64" else (result,)
        bests = parts(best)[: len(got)]
        error = mp.mpf(0)
        for g, b in zip(got, bests):
            g = float(g)
            if abs(b) >= largest + unit / 2:
                # Beyond the range only infinity is right.
                off = mp.mpf(0) if math.isinf(g) and (g > 0) == (b > 0) else mp.inf
            elif math.isfinite(g):
                off = distance(mp.mpf(g), b, precision, least)
            else:
                # Infinity is as good as a number where the last one is the nearest but for an ulp.
                off = (largest + unit - abs(b)) / unit if math.isinf(g) and (g > 0) == (b > 0) else mp.inf
            error = max(error, off)
        if dtype != "f64" and all(map(math.isfinite, map(float, got))) and all(abs(b) < largest for b in bests):
            difference = mp.hypot(mp.mpf(float(got[0])) - bests[0], mp.mpf(float(got[1])) - bests[1])
            size = mp.hypot(*bests)
            farthest = max(farthest, distance(size + difference, size, precision, least))
        count += 1
        if error > worst:
            worst, at = error, arguments
    place = " ".join(str(x) for x in at) if at else "-"
    return f"{count} {float(worst):.3g} {float(farthest):.3g} {place}"
