defmodule Ferrox.Oracle do
  @moduledoc """
  An independent reading and writing of tensor data, and IEEE 754 arithmetic, in
  plain Elixir.

  Values are integers, floats, `:infinity`, `:neg_infinity`, `:nan`, and
  `{re, im}` for complex numbers. A narrow float is exact as an Elixir float.
  """

  import Bitwise
  import Ferrox.Bits, only: [bound_size: 1]

  @compile {:no_warn_undefined, [Complex]}

  @type value :: number | :infinity | :neg_infinity | :nan | {value, value}

  # Bits of precision and the exponent of the smallest normal number.
  @formats %{
    {:f, 64} => {53, -1022},
    {:f, 32} => {24, -126},
    {:bf, 16} => {8, -126},
    {:f, 16} => {11, -14},
    {:f, 8} => {3, -14},
    {:f8_e4m3fn, 8} => {4, -6}
  }

  defguardp is_infinite(x) when x == :infinity or x == :neg_infinity
  defguardp is_zero(x) when is_number(x) and x == 0

  ## Bits

  @doc "The values of data."
  @spec decode(bitstring, {atom, pos_integer}) :: [value]
  def decode(data, {:s, bits}), do: for(<<x::bound_size(bits)-signed-native <- data>>, do: x)
  def decode(data, {:u, bits}), do: for(<<x::bound_size(bits)-unsigned-native <- data>>, do: x)

  def decode(data, {:c, bits}) do
    data |> decode({:f, div(bits, 2)}) |> Enum.chunk_every(2) |> Enum.map(&List.to_tuple/1)
  end

  def decode(data, {_, bits} = type) do
    for <<x::bound_size(bits)-unsigned-native <- data>>, do: decode_float(x, bits, type)
  end

  defp decode_float(x, bits, type) do
    {precision, emin} = Map.fetch!(@formats, type)
    fraction = precision - 1
    magnitude = x &&& (1 <<< (bits - 1)) - 1
    {exponent, mantissa} = {magnitude >>> fraction, magnitude &&& (1 <<< fraction) - 1}
    largest = (1 <<< (bits - precision)) - 1
    negative? = x != magnitude

    cond do
      type == {:f8_e4m3fn, 8} and magnitude == 0x7F -> :nan
      type != {:f8_e4m3fn, 8} and exponent == largest and mantissa != 0 -> :nan
      type != {:f8_e4m3fn, 8} and exponent == largest and negative? -> :neg_infinity
      type != {:f8_e4m3fn, 8} and exponent == largest -> :infinity
      exponent == 0 -> scale(mantissa, emin - fraction, negative?)
      true -> scale(mantissa + (1 <<< fraction), emin - fraction + exponent - 1, negative?)
    end
  end

  # An exact product, by way of the bits of an f64.
  defp scale(mantissa, exponent, negative?) do
    <<float::float-64>> =
      <<if(negative?, do: 1, else: 0)::1, nearest(mantissa, exponent, {:f, 64})::63>>

    float
  end

  @doc "The data of a value, floats rounded to nearest with ties to even, integers wrapped."
  @spec encode(value, {atom, pos_integer}) :: bitstring
  def encode({re, im}, {:c, bits}),
    do: encode(re, {:f, div(bits, 2)}) <> encode(im, {:f, div(bits, 2)})

  def encode(value, {:c, _} = type), do: encode({value, 0.0}, type)
  def encode(value, {kind, bits}) when kind in [:s, :u], do: <<value::size(bits)-native>>

  def encode(value, {_, bits} = type) do
    {sign, magnitude} =
      case value do
        :nan -> {0, nan(type)}
        :infinity -> {0, infinity(type)}
        :neg_infinity -> {1, infinity(type)}
        number -> finite(number, type)
      end

    <<(sign <<< (bits - 1)) + magnitude::size(bits)-native>>
  end

  defp finite(integer, type) when is_integer(integer),
    do: {if(integer < 0, do: 1, else: 0), nearest(abs(integer), 0, type)}

  defp finite(float, type) do
    <<sign::1, exponent::11, mantissa::52>> = <<float::float-64>>

    if exponent == 0,
      do: {sign, nearest(mantissa, -1074, type)},
      else: {sign, nearest(mantissa + (1 <<< 52), exponent - 1075, type)}
  end

  # The bits of the float that is nearest to mantissa * 2 ** exponent.
  defp nearest(0, _exponent, _type), do: 0

  defp nearest(mantissa, exponent, type) do
    {precision, emin} = Map.fetch!(@formats, type)
    smallest = emin - precision + 1
    place = max(length(Integer.digits(mantissa, 2)) + exponent - precision, smallest)
    units = shift_to_even(mantissa, place - exponent)
    min(((place - smallest) <<< (precision - 1)) + units, infinity(type))
  end

  defp shift_to_even(mantissa, shift) when shift <= 0, do: mantissa <<< -shift

  defp shift_to_even(mantissa, shift) do
    {down, rest, half} = {mantissa >>> shift, mantissa &&& (1 <<< shift) - 1, 1 <<< (shift - 1)}
    if rest > half or (rest == half and (down &&& 1) == 1), do: down + 1, else: down
  end

  # E4M3FN has no infinity; Nx gives its largest value.
  defp infinity({:f8_e4m3fn, 8}), do: 0x7E

  defp infinity({_, bits} = type) do
    {precision, _} = Map.fetch!(@formats, type)
    (1 <<< (bits - 1)) - (1 <<< (precision - 1))
  end

  defp nan({:f8_e4m3fn, 8}), do: 0x7F
  defp nan(type), do: infinity(type) + 1

  @doc "The elements of a shape as those of the shape that it is broadcast to."
  @spec broadcast([term], tuple, tuple) :: [term]
  def broadcast(elements, shape, shape), do: elements

  def broadcast(elements, from, to) do
    dims = List.duplicate(1, tuple_size(to) - tuple_size(from)) ++ Tuple.to_list(from)
    expand(elements, dims, Tuple.to_list(to))
  end

  defp expand(elements, [], []), do: elements

  defp expand(elements, [dim | dims], [size | sizes]) do
    parts =
      elements
      |> Enum.chunk_every(max(div(length(elements), dim), 1))
      |> Enum.map(&expand(&1, dims, sizes))

    parts = if dim == size, do: parts, else: List.duplicate(hd(parts), size)
    Enum.concat(parts)
  end

  @doc """
  A sum, difference, product, quotient or remainder, as a float that any type of at most 51 bits
  is rounded from as from the exact value: an odd last bit stands for what is beyond it.
  """
  @spec exact(atom, number, number) :: float
  def exact(op, a, b) do
    {{p, q}, {r, s}} = {ratio(a), ratio(b)}

    case op do
      :add -> to_odd(p * s + r * q, q * s)
      :subtract -> to_odd(p * s - r * q, q * s)
      :multiply -> to_odd(p * r, q * s)
      :divide -> if r < 0, do: to_odd(-p * s, -q * r), else: to_odd(p * s, q * r)
      :remainder -> signed(to_odd(rem(p * s, r * q), q * s), a)
    end
  end

  defp signed(zero, a) when zero == 0 and a < 0, do: -0.0
  defp signed(value, _a), do: value

  defp ratio(x) when is_integer(x), do: {x, 1}
  defp ratio(x), do: Float.ratio(x)

  defp to_odd(0, _), do: 0.0
  defp to_odd(p, q) when p < 0, do: -to_odd(-p, q)

  defp to_odd(p, q) do
    # 53 or 54 bits of the quotient.
    shift = length(Integer.digits(q, 2)) - length(Integer.digits(p, 2)) + 53
    {p, q} = if shift > 0, do: {p <<< shift, q}, else: {p, q <<< -shift}
    {whole, rest} = {div(p, q), rem(p, q)}
    excess = length(Integer.digits(whole, 2)) - 53
    lost? = rest != 0 or (excess > 0 and (whole &&& (1 <<< excess) - 1) != 0)
    scale(whole >>> excess ||| if(lost?, do: 1, else: 0), excess - shift, false)
  end

  @doc "A value rounded to a type and read again."
  @spec round_to(value, {atom, pos_integer}) :: value
  def round_to(value, type), do: value |> encode(type) |> decode(type) |> hd()

  @doc """
  The data of a value converted to a type: towards zero and wrapped to integers,
  which have their limits for infinities and 0 for NaN.
  """
  @spec convert(value, {atom, pos_integer}) :: bitstring
  def convert({re, _im}, {kind, _} = type) when kind != :c, do: convert(re, type)

  def convert(value, {kind, bits} = type) when kind in [:s, :u] do
    max = (1 <<< if(kind == :s, do: bits - 1, else: bits)) - 1

    case value do
      :nan -> encode(0, type)
      :infinity -> encode(max, type)
      :neg_infinity -> encode(if(kind == :s, do: -max - 1, else: 0), type)
      number -> encode(trunc(number), type)
    end
  end

  def convert(value, type), do: encode(value, type)

  @doc """
  Whether a value may be a sum of products, each a list of one or two factors,
  that was accumulated with so many bits of precision and rounded to a type.
  """
  @spec sum_of_products?(value, [[value]], {atom, pos_integer}, pos_integer) :: boolean
  def sum_of_products?(got, terms, type, precision) do
    {finite, special} = Enum.split_with(terms, fn factors -> Enum.all?(factors, &is_number/1) end)

    # In units of 2 ** -2148, which every product is a multiple of.
    exact = for factors <- finite, do: factors |> Enum.map(&units/1) |> scaled()
    {total, size} = {Enum.sum(exact), exact |> Enum.map(&abs/1) |> Enum.sum()}
    error = ((size * length(terms)) >>> precision) + margin(total, type)
    # Then a sum in between may be infinite, whatever comes after it.
    overflow? = size + error >= 1 <<< (2148 + 127) or nearest(size, -2148, type) >= infinity(type)

    cond do
      overflow? and (is_atom(got) or type == {:f8_e4m3fn, 8}) -> true
      special != [] -> got == round_to(total(special), type)
      is_atom(got) -> false
      true -> abs((units(got) <<< 1074) - total) <= error
    end
  end

  @doc "A sum of products in IEEE 754."
  @spec total([[value]]) :: value
  def total(terms) do
    terms
    |> Enum.map(fn factors -> Enum.reduce(factors, 1.0, &ieee(:multiply, &2, &1)) end)
    |> Enum.reduce(&ieee(:add, &2, &1))
  end

  defp scaled([x]), do: x <<< 1074
  defp scaled([x, y]), do: x * y

  # Half a unit in the last place of the type.
  defp margin(total, type) do
    {precision, emin} = Map.fetch!(@formats, type)
    (abs(total) >>> precision) + (1 <<< (2148 + emin - precision))
  end

  @doc "Whether two elements are the same bits, or both NaN, part by part if complex."
  @spec same?(bitstring, bitstring, {atom, pos_integer}) :: boolean
  def same?(bits, bits, _type), do: true
  def same?(_, _, {kind, _}) when kind in [:s, :u], do: false

  def same?(left, right, {:c, bits}) do
    half = div(bits, 16)
    <<a::binary-bound_size(half), b::binary-bound_size(half)>> = left
    <<c::binary-bound_size(half), d::binary-bound_size(half)>> = right
    same?(a, c, {:f, half * 8}) and same?(b, d, {:f, half * 8})
  end

  def same?(left, right, type), do: decode(left, type) == [:nan] and decode(right, type) == [:nan]

  @doc """
  How many floats of the type lie from one element to the other; infinite where
  one of them is NaN. Of complex numbers the greater distance of the parts.
  """
  @spec ulps(bitstring, bitstring, {atom, pos_integer}) :: non_neg_integer | :infinity
  def ulps(bits, bits, _type), do: 0

  def ulps(left, right, {:c, bits}) do
    half = div(bits, 16)
    <<a::binary-bound_size(half), b::binary-bound_size(half)>> = left
    <<c::binary-bound_size(half), d::binary-bound_size(half)>> = right
    # An atom is greater than every number.
    max(ulps(a, c, {:f, half * 8}), ulps(b, d, {:f, half * 8}))
  end

  def ulps(left, right, {_, bits} = type) do
    case {decode(left, type), decode(right, type)} do
      {[:nan], [:nan]} -> 0
      {[:nan], _} -> :infinity
      {_, [:nan]} -> :infinity
      _ -> abs(place(left, bits) - place(right, bits))
    end
  end

  # Floats as consecutive integers in their order.
  defp place(data, bits) do
    <<x::bound_size(bits)-unsigned-native>> = data
    magnitude = x &&& (1 <<< (bits - 1)) - 1
    if x == magnitude, do: magnitude, else: -magnitude
  end

  ## Arithmetic

  @doc """
  Real arithmetic as IEEE 754 and C's `fmod`, `pow` and `atan2` define it, in
  64 bits. Integers are converted.
  """
  @spec ieee(atom, value, value) :: value
  def ieee(op, a, b) when is_integer(a), do: ieee(op, round_to(a, {:f, 64}), b)
  def ieee(op, a, b) when is_integer(b), do: ieee(op, a, round_to(b, {:f, 64}))

  def ieee(:pow, a, _) when is_number(a) and a == 1, do: 1.0
  def ieee(:pow, _, b) when is_zero(b), do: 1.0
  def ieee(_, a, b) when a == :nan or b == :nan, do: :nan

  def ieee(:subtract, a, b), do: ieee(:add, a, negate(b))

  def ieee(:add, a, b) when is_infinite(a), do: if(b == negate(a), do: :nan, else: a)
  def ieee(:add, _, b) when is_infinite(b), do: b
  def ieee(:add, a, b), do: finite_or(fn -> a + b end, infinity_like(sign(a)))

  def ieee(:multiply, a, b) when is_infinite(a) and is_zero(b), do: :nan
  def ieee(:multiply, a, b) when is_zero(a) and is_infinite(b), do: :nan

  def ieee(:multiply, a, b) when is_infinite(a) or is_infinite(b),
    do: infinity_like(sign(a) * sign(b))

  def ieee(:multiply, a, b), do: finite_or(fn -> a * b end, infinity_like(sign(a) * sign(b)))

  def ieee(:divide, a, b) when is_infinite(a) and is_infinite(b), do: :nan
  def ieee(:divide, a, b) when is_zero(a) and is_zero(b), do: :nan
  def ieee(:divide, a, b) when is_infinite(a) or is_zero(b), do: infinity_like(sign(a) * sign(b))
  def ieee(:divide, a, b) when is_infinite(b), do: 0.0 * sign(a) * sign(b)
  def ieee(:divide, a, b), do: finite_or(fn -> a / b end, infinity_like(sign(a) * sign(b)))

  def ieee(:remainder, a, b) when is_infinite(a) or is_zero(b), do: :nan
  def ieee(:remainder, a, b) when is_infinite(b), do: a
  def ieee(:remainder, a, b), do: :math.fmod(a, b)

  def ieee(:pow, a, :infinity), do: growth(magnitude(a), 1)
  def ieee(:pow, a, :neg_infinity), do: growth(magnitude(a), -1)
  def ieee(:pow, :infinity, b), do: if(b > 0, do: :infinity, else: 0.0)

  def ieee(:pow, :neg_infinity, b) do
    magnitude = if b > 0, do: :infinity, else: 0.0
    if odd?(b), do: negate(magnitude), else: magnitude
  end

  def ieee(:pow, a, b) when is_zero(a) and b < 0,
    do: if(odd?(b), do: infinity_like(sign(a)), else: :infinity)

  def ieee(:pow, a, b) when a < 0 do
    cond do
      odd?(b) -> negate(ieee(:pow, negate(a), b))
      whole?(b) -> ieee(:pow, negate(a), b)
      true -> :nan
    end
  end

  def ieee(:pow, a, b), do: finite_or(fn -> :math.pow(a, b) end, :infinity)

  def ieee(:atan2, a, b) when is_infinite(a) or is_infinite(b) do
    quarter =
      case {magnitude(a), b} do
        {:infinity, :infinity} -> 0.7853981633974483
        {:infinity, :neg_infinity} -> 2.356194490192345
        {:infinity, _} -> 1.5707963267948966
        {_, :infinity} -> 0.0
        {_, :neg_infinity} -> 3.141592653589793
      end

    quarter * sign(a)
  end

  def ieee(:atan2, a, b), do: :math.atan2(a, b)

  defp growth(a, _) when is_number(a) and a == 1, do: 1.0
  defp growth(a, 1), do: if(a == :infinity or a > 1, do: :infinity, else: 0.0)
  defp growth(a, -1), do: if(a == :infinity or a > 1, do: 0.0, else: :infinity)

  defp whole?(x), do: abs(x) >= 9.0e15 or trunc(x) == x
  defp odd?(x), do: abs(x) < 9_007_199_254_740_992 and whole?(x) and rem(trunc(x), 2) != 0

  @doc "Functions of one real number, exact to the last place or so, in 64 bits."
  @spec ieee(atom, value) :: value
  def ieee(op, x) when is_integer(x), do: ieee(op, round_to(x, {:f, 64}))
  def ieee(_, :nan), do: :nan
  def ieee(:exp, :infinity), do: :infinity
  def ieee(:exp, :neg_infinity), do: 0.0
  def ieee(:exp, x), do: finite_or(fn -> :math.exp(x) end, :infinity)
  def ieee(:expm1, :neg_infinity), do: -1.0
  def ieee(:expm1, x) when is_zero(x), do: x
  def ieee(:expm1, x) when is_number(x) and abs(x) < 0.5, do: expm1_series(x)
  def ieee(:expm1, x), do: ieee(:subtract, ieee(:exp, x), 1.0)
  def ieee(:log, :infinity), do: :infinity
  def ieee(:log, x) when is_zero(x), do: :neg_infinity
  def ieee(:log, x) when x == :neg_infinity or x < 0, do: :nan
  def ieee(:log, x), do: :math.log(x)
  def ieee(:log1p, x) when is_zero(x), do: x
  def ieee(:log1p, x) when is_number(x) and abs(x) < 0.5, do: log1p_series(x)
  def ieee(:log1p, x), do: ieee(:log, ieee(:add, x, 1.0))
  def ieee(:sqrt, :infinity), do: :infinity
  def ieee(:sqrt, x) when x == :neg_infinity or x < 0, do: :nan
  def ieee(:sqrt, x), do: :math.sqrt(x)
  def ieee(:rsqrt, x), do: ieee(:divide, 1.0, ieee(:sqrt, x))
  def ieee(:sigmoid, x), do: ieee(:divide, 1.0, ieee(:add, 1.0, ieee(:exp, negate(x))))
  def ieee(:tanh, x) when is_infinite(x), do: 1.0 * sign(x)
  def ieee(:tanh, x), do: :math.tanh(x)
  def ieee(op, x) when op in [:asin, :acos] and (is_infinite(x) or abs(x) > 1), do: :nan
  def ieee(op, x) when op in [:asin, :acos], do: apply(:math, op, [x])
  def ieee(:atan, x) when is_infinite(x), do: 1.5707963267948966 * sign(x)
  def ieee(:cosh, x) when is_infinite(x), do: :infinity
  def ieee(:cosh, x), do: finite_or(fn -> :math.cosh(x) end, :infinity)
  def ieee(op, x) when op in [:sinh, :asinh, :cbrt] and is_infinite(x), do: x
  def ieee(:sinh, x), do: finite_or(fn -> :math.sinh(x) end, infinity_like(sign(x)))
  def ieee(:acosh, :infinity), do: :infinity
  def ieee(:acosh, x) when x == :neg_infinity or x < 1, do: :nan
  def ieee(:atanh, x) when is_infinite(x) or abs(x) > 1, do: :nan
  def ieee(op, x) when op in [:atanh, :erf_inv] and abs(x) == 1, do: infinity_like(sign(x))
  def ieee(:erf, x) when is_infinite(x), do: 1.0 * sign(x)
  def ieee(:erfc, x) when is_infinite(x), do: 1.0 - sign(x)
  def ieee(:erf_inv, x) when is_infinite(x) or abs(x) > 1, do: :nan

  # As Nx approximates it; only asked where Nx is.
  def ieee(:erf_inv, x), do: 1.0 * Complex.erf_inv(x)
  def ieee(:cbrt, x) when x < 0, do: -:math.pow(-x, 1 / 3)
  def ieee(:cbrt, x), do: :math.pow(x, 1 / 3)

  def ieee(op, x) when op in [:atan, :asinh, :acosh, :atanh, :erf, :erfc],
    do: apply(:math, op, [x])

  def ieee(op, x) when op in [:sin, :cos, :tan] and is_infinite(x), do: :nan
  def ieee(op, x) when op in [:sin, :cos, :tan], do: apply(:math, op, [x])
  def ieee(op, x) when op in [:floor, :ceil, :round] and is_infinite(x), do: x
  def ieee(:abs, {_, _} = z), do: modulus(z)
  def ieee(:abs, x), do: magnitude(x)
  def ieee(:negate, x), do: negate(x)
  def ieee(:sign, x) when is_zero(x), do: x
  def ieee(:sign, x), do: 1.0 * sign(x)

  # Whole numbers keep the sign of what they were.
  def ieee(:floor, x), do: with_sign(:math.floor(x), x)
  def ieee(:ceil, x), do: with_sign(:math.ceil(x), x)
  def ieee(:round, x) when abs(x) >= 9.0e15, do: x
  def ieee(:round, x), do: with_sign(1.0 * round(x), x)

  defp with_sign(result, x), do: if(sign(result) == sign(x), do: result, else: negate(result))

  defp expm1_series(x) do
    x * (1.0 + Enum.reduce(20..2//-1, 0.0, fn n, rest -> (1.0 + rest) * x / n end))
  end

  # 2 atanh(x / (2 + x))
  defp log1p_series(x) do
    s = x / (2.0 + x)
    2.0 * s * Enum.reduce(41..3//-2, 0.0, fn n, rest -> s * s * (1.0 / n + rest) end) + 2.0 * s
  end

  @doc """
  Complex arithmetic by the formulas of Elixir's `Complex`, every step as IEEE 754
  has it. A list, where more than one answer is right.
  """
  @spec complex(atom, [value]) :: [{value, value}]
  def complex(:divide, [a, b]) do
    {a, b} = {parts(a), parts(b)}
    {{ar, ai}, {br, bi}} = {a, b}
    squares = add(multiply(br, br), multiply(bi, bi))

    textbook =
      {divide(add(multiply(ar, br), multiply(ai, bi)), squares),
       divide(subtract(multiply(ai, br), multiply(ar, bi)), squares)}

    cond do
      not (is_number(br) and is_number(bi)) or (br == 0 and bi == 0) ->
        [textbook]

      is_number(ar) and is_number(ai) ->
        [textbook, exact_quotient(a, b)]

      squares == :infinity ->
        scale = 1.0 / max(abs(br), abs(bi))
        [textbook | complex(:divide, [a, {br * scale, bi * scale}])]

      true ->
        [textbook]
    end
  end

  # Far out on the branch cut rounding decides about the sign.
  def complex(:atanh, [z]) do
    {re, im} = formula(:atanh, [parts(z)])
    if is_number(im) and abs(im) > 1.57079632679489, do: [{re, im}, {re, -im}], else: [{re, im}]
  end

  def complex(op, values), do: [formula(op, Enum.map(values, &parts/1))]

  @doc "The real and the imaginary part."
  @spec parts(value) :: {value, value}
  def parts({re, im}), do: {re, im}
  def parts(re), do: {re, 0.0}

  defp formula(:add, [{a, b}, {c, d}]), do: {add(a, c), add(b, d)}
  defp formula(:subtract, [{a, b}, {c, d}]), do: {subtract(a, c), subtract(b, d)}

  defp formula(:multiply, [{a, b}, {c, d}]),
    do: {subtract(multiply(a, c), multiply(b, d)), add(multiply(b, c), multiply(a, d))}

  defp formula(:divide, values), do: values |> then(&complex(:divide, &1)) |> List.last()
  defp formula(:rsqrt, [z]), do: formula(:divide, [{1.0, 0.0}, formula(:sqrt, [z])])

  defp formula(:sqrt, [{a, b} = z]) do
    cond do
      a == :nan or b == :nan -> {:nan, :nan}
      is_infinite(b) -> {:infinity, b}
      a == :infinity -> {:infinity, 0.0}
      a == :neg_infinity -> {0.0, :infinity}
      a == 0 and b == 0 -> z
      true -> root(z)
    end
  end

  defp formula(:atan2, [{a, _}, {b, _}]), do: {ieee(:atan2, a, b), 0.0}

  defp formula(:pow, [{a, b}, {:infinity, d}]) when a == 0 and b == 0 and d == 0, do: {0.0, 0.0}

  defp formula(:pow, [x, {c, d}]) when c == -1 and d == 0,
    do: formula(:divide, [{1.0, 0.0}, x])

  defp formula(:pow, [x, {c, d}]) do
    {rho, theta} = {modulus(x), ieee(:atan2, elem(x, 1), elem(x, 0))}
    scale = multiply(ieee(:pow, rho, c), ieee(:exp, multiply(negate(d), theta)))
    angle = add(multiply(c, theta), multiply(d, ieee(:log, rho)))
    {multiply(scale, ieee(:cos, angle)), multiply(scale, ieee(:sin, angle))}
  end

  defp formula(:exp, [{:neg_infinity, _}]), do: {0.0, 0.0}

  defp formula(:exp, [{a, b}]) do
    r = ieee(:exp, a)
    {multiply(r, ieee(:cos, b)), multiply(r, ieee(:sin, b))}
  end

  defp formula(:expm1, [z]), do: formula(:subtract, [formula(:exp, [z]), {1.0, 0.0}])
  defp formula(:log, [{a, b}]), do: {ieee(:log, modulus({a, b})), ieee(:atan2, b, a)}
  defp formula(:log1p, [{a, b}]), do: formula(:log, [{add(a, 1.0), b}])

  defp formula(:sin, [{a, b}]),
    do: {multiply(ieee(:sin, a), cosh(b)), multiply(ieee(:cos, a), sinh(b))}

  defp formula(:cos, [{a, b}]),
    do: {multiply(ieee(:cos, a), cosh(b)), multiply(negate(ieee(:sin, a)), sinh(b))}

  # Where what is divided would overflow.
  defp formula(:tan, [{a, b}]) when is_number(a) and is_number(b) and abs(b) > 350,
    do: {0.0, 1.0 * sign(b)}

  defp formula(:tan, [z]), do: formula(:divide, [formula(:sin, [z]), formula(:cos, [z])])

  # Where the exponentials would overflow.
  defp formula(:tanh, [{a, _}]) when is_infinite(a) or (is_number(a) and abs(a) > 350),
    do: {1.0 * sign(a), 0.0}

  defp formula(:tanh, [{a, b} = z]) do
    {plus, minus} = {formula(:exp, [z]), formula(:exp, [{negate(a), negate(b)}])}
    half = fn {re, im} -> {divide(re, 2.0), divide(im, 2.0)} end

    formula(:divide, [
      half.(formula(:subtract, [plus, minus])),
      half.(formula(:add, [plus, minus]))
    ])
  end

  # Where the exponential would overflow.
  defp formula(:sigmoid, [{a, b} = z]) when is_number(a) and is_number(b) and a < -700,
    do: formula(:exp, [z])

  defp formula(:sigmoid, [{a, b}]) do
    {re, im} = formula(:exp, [{negate(a), negate(b)}])
    formula(:divide, [{1.0, 0.0}, {add(re, 1.0), im}])
  end

  defp formula(op, [{a, b} = z]) when op in [:sinh, :cosh] do
    fold = if op == :sinh, do: :subtract, else: :add
    {re, im} = formula(fold, [formula(:exp, [z]), formula(:exp, [{negate(a), negate(b)}])])
    {divide(re, 2.0), divide(im, 2.0)}
  end

  defp formula(op, [{a, b}]) when op in [:asin, :acos] and not (is_number(a) and is_number(b)),
    do: {:nan, :nan}

  defp formula(:asin, [z]) do
    root = formula(:sqrt, [formula(:subtract, [{1.0, 0.0}, square(z)])])
    formula(:multiply, [{-0.0, -1.0}, formula(:log, [formula(:add, [turned(z), root])])])
  end

  defp formula(:acos, [z]) do
    root = formula(:sqrt, [formula(:subtract, [square(z), {1.0, 0.0}])])
    formula(:multiply, [{-0.0, -1.0}, formula(:log, [formula(:add, [z, root])])])
  end

  defp formula(:atan, [z]) do
    minus = formula(:log, [formula(:subtract, [{1.0, 0.0}, turned(z)])])
    plus = formula(:log, [formula(:add, [{1.0, 0.0}, turned(z)])])
    formula(:multiply, [{0.0, 0.5}, formula(:subtract, [minus, plus])])
  end

  defp formula(op, [z]) when op in [:asinh, :acosh] do
    fold = if op == :asinh, do: :add, else: :subtract
    root = formula(:sqrt, [formula(fold, [square(z), {1.0, 0.0}])])
    formula(:log, [formula(:add, [z, root])])
  end

  defp formula(:atanh, [z]) do
    ratio =
      formula(:divide, [
        formula(:add, [{1.0, 0.0}, z]),
        formula(:subtract, [{1.0, 0.0}, z])
      ])

    formula(:multiply, [{0.5, 0.0}, formula(:log, [ratio])])
  end

  defp formula(:cbrt, [{a, b} = z]) do
    {r, angle} = {ieee(:cbrt, modulus(z)), divide(ieee(:atan2, b, a), 3.0)}

    if angle == 0,
      do: {r, 0.0},
      else: formula(:multiply, [{r, 0.0}, {ieee(:cos, angle), ieee(:sin, angle)}])
  end

  defp formula(_, _), do: {:unknown, :unknown}

  defp square(z), do: formula(:multiply, [z, z])
  defp turned(z), do: formula(:multiply, [{0.0, 1.0}, z])

  # Scaled so that the magnitude neither overflows nor vanishes.
  defp root({a, b}) do
    scale = if max(abs(a), abs(b)) > 1.0, do: 0.25, else: :math.pow(2, 200)
    {x, y} = {a * scale, b * scale}
    w = :math.sqrt((modulus({x, y}) + abs(x)) / 2) / :math.sqrt(scale)

    cond do
      a >= 0 -> {w, b / (2.0 * w)}
      b >= 0 -> {b / (2.0 * w), w}
      true -> {-b / (2.0 * w), -w}
    end
  end

  defp add(a, b), do: ieee(:add, a, b)
  defp subtract(a, b), do: ieee(:subtract, a, b)
  defp multiply(a, b), do: ieee(:multiply, a, b)
  defp divide(a, b), do: ieee(:divide, a, b)
  defp cosh(x) when is_infinite(x), do: :infinity
  defp cosh(:nan), do: :nan
  defp cosh(x), do: finite_or(fn -> :math.cosh(x) end, :infinity)
  defp sinh(x) when not is_number(x), do: x
  defp sinh(x), do: finite_or(fn -> :math.sinh(x) end, infinity_like(sign(x)))

  @doc "The magnitude of a complex number."
  @spec modulus({value, value}) :: value
  def modulus({a, b}) when is_infinite(a) or is_infinite(b), do: :infinity
  def modulus({a, b}) when a == :nan or b == :nan, do: :nan
  def modulus({a, b}) when is_zero(a), do: abs(b)
  def modulus({a, b}) when is_zero(b), do: abs(a)

  def modulus({a, b}) do
    {small, large} = {min(abs(a), abs(b)), max(abs(a), abs(b))}
    ratio = small / large
    multiply(large, :math.sqrt(1.0 + ratio * ratio))
  end

  # Correctly rounded, from exact integers in units of 2 ** -1074.
  defp exact_quotient({a, b}, {c, d}) do
    [a, b, c, d] = Enum.map([a, b, c, d], &units/1)
    squares = c * c + d * d
    {ratio(a * c + b * d, squares), ratio(b * c - a * d, squares)}
  end

  defp ratio(numerator, denominator) do
    # Enough bits for every f64; what is left sticks to the last one.
    scaled = abs(numerator) <<< 1200
    {quotient, rest} = {div(scaled, denominator), rem(scaled, denominator)}
    sticky = quotient <<< 1 ||| if(rest == 0, do: 0, else: 1)
    bits = nearest(sticky, -1201, {:f, 64})
    [value] = decode(<<bits::64-native>>, {:f, 64})
    if numerator < 0, do: negate(value), else: value
  end

  @doc "A finite number as an exact count of 2 ** -1074."
  @spec units(number) :: integer
  def units(integer) when is_integer(integer), do: integer <<< 1074

  def units(float) do
    <<sign::1, exponent::11, mantissa::52>> = <<float::float-64>>

    magnitude = if exponent == 0, do: mantissa, else: (mantissa + (1 <<< 52)) <<< (exponent - 1)

    if sign == 1, do: -magnitude, else: magnitude
  end

  @doc "Minus the value."
  @spec negate(value) :: value
  def negate(:nan), do: :nan
  def negate(:infinity), do: :neg_infinity
  def negate(:neg_infinity), do: :infinity
  def negate(x), do: -1.0 * x

  @doc "1, or -1 for what has a minus sign."
  @spec sign(value) :: 1 | -1
  def sign(:infinity), do: 1
  def sign(:neg_infinity), do: -1
  def sign(x) when is_integer(x), do: if(x < 0, do: -1, else: 1)

  def sign(x) do
    <<sign::1, _::63>> = <<x::float-64>>
    1 - 2 * sign
  end

  defp magnitude(:nan), do: :nan
  defp magnitude(x) when is_infinite(x), do: :infinity
  defp magnitude(x), do: abs(x)

  defp infinity_like(1), do: :infinity
  defp infinity_like(-1), do: :neg_infinity

  # Elixir raises where the result would be infinite.
  defp finite_or(fun, overflow) do
    fun.()
  rescue
    ArithmeticError -> overflow
  end
end
