defmodule Ferrox.Accurate do
  @moduledoc """
  Whether a result is the accurate one where the formula of Nx or Complex loses digits, leaves
  the range or takes another side of a branch cut.

  Real functions are computed here by series and by Newton's steps. Complex ones go by
  their parts, and inverse ones are put into the function that they are the inverse of, which
  shall give the argument, and into their range. Infinities, NaN and what overflows are left to
  the tests of the core, which have tables for them, as they have the exact errors.
  """

  alias Ferrox.Oracle

  @pi :math.pi()

  @doc "Whether `got` is a good value of a function of these values, of a float type."
  @spec good?(atom, [Oracle.value()], Oracle.value(), {atom, pos_integer}) :: boolean
  def good?(op, values, got, type) do
    if Enum.all?([got | values], &finite?/1),
      do: finite_good?(op, values, got, digits(type)),
      else: match?({:c, _}, type) and Enum.any?([got | values], &(not finite?(&1)))
  rescue
    # Beyond the range of :math.
    ArithmeticError -> true
  end

  defp finite?({a, b}), do: is_number(a) and is_number(b)
  defp finite?(x), do: is_number(x)

  # Of the type, with room for the conditions of functions.
  defp digits({:c, 64}), do: 1.0e-6
  defp digits({:f, 64}), do: 1.0e-15
  defp digits({:c, 128}), do: 1.0e-13
  defp digits({:f, 32}), do: 1.0e-7
  defp digits({_, 16}), do: 1.0e-2
  defp digits({_, 8}), do: 0.3

  defp finite_good?(op, values, got, digits) do
    cond do
      not is_tuple(got) and Enum.any?(values, &is_tuple/1) ->
        near?({got, 0.0}, {modulus(hd(values)), 0.0}, digits)

      is_tuple(got) ->
        complex?(op, Enum.map(values, &pair/1), got, digits)

      true ->
        real?(op, hd(values) * 1.0, got, digits)
    end
  end

  defp pair({a, b}), do: {a * 1.0, b * 1.0}
  defp pair(x), do: {x * 1.0, 0.0}

  ## Real functions

  defp real?(:round, x, got, _digits), do: got == 0 and abs(x) < 0.5

  defp real?(op, x, got, digits) do
    want = real(op, x)
    got == want or abs(got - want) <= digits * abs(want) + 5.0e-324
  end

  defp real(:expm1, x) when abs(x) < 0.5, do: series(x, fn term, k -> term * x / k end, 2)
  defp real(:expm1, x), do: :math.exp(x) - 1

  defp real(:log1p, x) when abs(x) < 0.5 do
    s = x / (2 + x)
    2 * Enum.reduce(59..1//-2, 0.0, fn k, sum -> sum * s * s + 1 / k end) * s
  end

  defp real(:log1p, x), do: :math.log(1 + x)

  defp real(:cbrt, x) do
    start = :math.pow(abs(x), 1 / 3)

    if x == 0,
      do: 0.0,
      else: (start - (start - abs(x) / start / start) / 3) * if(x < 0, do: -1, else: 1)
  end

  defp real(:erf_inv, x) when x == 0, do: 0.0

  defp real(:erf_inv, x) do
    a = abs(x)
    slope = fn y -> 2 / :math.sqrt(@pi) * :math.exp(-y * y) end

    step = fn y ->
      lack = if a < 0.5, do: :math.erf(y) - a, else: 1 - a - :math.erfc(y)
      y - lack / slope.(y)
    end

    start =
      if a < 0.5, do: a * :math.sqrt(@pi) / 2, else: :math.sqrt(-:math.log(2 * (1 - a))) * 0.95

    Enum.reduce(1..30, start, fn _, y -> step.(y) end) * if(x < 0, do: -1, else: 1)
  end

  defp real(:sigmoid, x) when x < 0, do: :math.exp(x) / (1 + :math.exp(x))
  defp real(:sigmoid, x), do: 1 / (1 + :math.exp(-x))
  defp real(:rsqrt, x), do: 1 / :math.sqrt(x)
  defp real(:abs, x), do: abs(x)
  defp real(op, x), do: apply(:math, op, [x])

  defp series(first, next, k) do
    Stream.iterate({first, k}, fn {term, k} -> {next.(term, k), k + 1} end)
    |> Enum.take(25)
    |> Enum.reverse()
    |> Enum.reduce(0.0, fn {term, _}, sum -> sum + term end)
  end

  ## Complex functions

  @inverse [log: :exp, log1p: :expm1, sqrt: :square, rsqrt: :inverse_square, cbrt: :cube] ++
             [asin: :sin, acos: :cos, asinh: :sinh, acosh: :cosh]

  # Far from zero, a quarter of a turn and the inverse of the argument.
  defp complex?(op, [z], {x, y}, digits) when op in [:atan, :atanh] do
    if modulus(z) > 1.0e4 do
      {a, b} = over({1.0, 0.0}, z)
      {rest, turn, want} = if op == :atanh, do: {x, y, a}, else: {y, x, -b}

      abs(abs(turn) - @pi / 2) <= 1.0e-6 + 1.1 / modulus(z) and
        abs(rest - want) <= max(digits, 1.0e-7) * abs(want) + 1.5e-45
    else
      function = if op == :atan, do: :tan, else: :tanh
      room = digits * (1 + modulus(z)) * (1 + modulus({x, y}))
      in_range?(op, {x, y}) and near?(forward(function, {x, y}), z, room)
    end
  end

  # Inverse functions lose what is left of an argument beside one.
  defp complex?(op, [z], w, digits) do
    case @inverse[op] do
      nil ->
        near?(w, forward(op, z), digits * (1 + modulus(z)))

      function ->
        back = forward(function, w)
        room = digits * (1 + modulus(w)) * (1 + 1 / max(modulus(z), 1.0e-300) * beside_one(op))
        in_range?(op, w) and near?(back, z, max(room, digits))
    end
  end

  # By the logarithm, whose digits a large exponent takes.
  defp complex?(:pow, [x, y], w, digits) do
    if modulus(x) == 0 do
      true
    else
      {re, im} = times(y, {:math.log(modulus(x)), :math.atan2(elem(x, 1), elem(x, 0))})
      near?(w, forward(:exp, {re, im}), digits * (10 + modulus({re, im})))
    end
  end

  defp beside_one(op) when op in [:acos, :acosh, :log1p, :log], do: 1
  defp beside_one(_), do: 0

  defp in_range?(op, {re, im}) do
    case op do
      op when op in [:log, :log1p] -> abs(im) <= 3.1415928
      op when op in [:sqrt, :rsqrt, :cbrt] -> re >= 0
      op when op in [:asin, :atan] -> abs(re) <= 1.5707964
      op when op in [:asinh, :atanh] -> abs(im) <= 1.5707964
      :acos -> re >= 0 and re <= 3.1415928
      :acosh -> re >= 0 and abs(im) <= 3.1415928
    end
  end

  defp forward(:exp, {x, y}), do: {:math.exp(x) * :math.cos(y), :math.exp(x) * :math.sin(y)}

  defp forward(:expm1, {x, y}) do
    half = :math.sin(y / 2)
    {real(:expm1, x) * :math.cos(y) - 2 * half * half, :math.exp(x) * :math.sin(y)}
  end

  defp forward(:sinh, {x, y}),
    do: {:math.sinh(x) * :math.cos(y), :math.cosh(x) * :math.sin(y)}

  defp forward(:cosh, {x, y}),
    do: {:math.cosh(x) * :math.cos(y), :math.sinh(x) * :math.sin(y)}

  defp forward(:tanh, {x, _}) when abs(x) > 300, do: {x / abs(x), 0.0}
  defp forward(:tanh, z), do: over(forward(:sinh, z), forward(:cosh, z))
  defp forward(:sin, {x, y}), do: turned(forward(:sinh, {-y, x}))
  defp forward(:cos, {x, y}), do: forward(:cosh, {-y, x})
  defp forward(:tan, {x, y}), do: turned(forward(:tanh, {-y, x}))
  defp forward(:square, z), do: times(z, z)
  defp forward(:cube, z), do: times(z, times(z, z))
  defp forward(:inverse_square, z), do: over({1.0, 0.0}, times(z, z))

  defp forward(:sigmoid, {x, _}) when x < -300, do: {0.0, 0.0}

  defp forward(:sigmoid, {x, y}) do
    {a, b} = forward(:exp, {-x, -y})
    over({1.0, 0.0}, {1 + a, b})
  end

  # f(i z) / i
  defp turned({a, b}), do: {b, -a}

  defp times({a, b}, {c, d}), do: {a * c - b * d, a * d + b * c}

  defp over({a, b}, {c, d}) do
    size = modulus({c, d})
    {c, d} = {c / size, d / size}
    {(a * c + b * d) / size, (b * c - a * d) / size}
  end

  defp modulus({a, b}) do
    {a, b} = {abs(a), abs(b)}
    {less, more} = {min(a, b), max(a, b)}
    if more == 0, do: 0.0, else: more * :math.sqrt(1 + less / more * (less / more))
  end

  defp modulus(x), do: abs(x) * 1.0

  defp near?(got, want, digits) do
    {a, b} = got
    {c, d} = want
    modulus({a - c, b - d}) <= digits * max(modulus(want), modulus(got)) + 1.0e-300
  end
end
