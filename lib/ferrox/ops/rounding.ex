defmodule Ferrox.Ops.Rounding do
  @moduledoc false
  # Numbers rounded to decimals, with a choice for what is half way between two, and towards zero.

  import Ferrox.Operands, only: [options!: 3, promotion!: 2]

  alias Ferrox.{Numbers, Operands, Promotion, Tensor, Type}
  alias Ferrox.Ops.Elementwise

  @doc "See `Ferrox.round/2`."
  @spec round(term, keyword) :: Tensor.t()
  def round(tensor, []), do: Elementwise.unary(:round, tensor, [])

  def round(tensor, opts) do
    opts = options!(opts, [:decimals, :ties, :promotion], :round)
    mode = promotion!(opts, :round)
    decimals = decimals!(Keyword.get(opts, :decimals, 0))
    ties = ties!(Keyword.get(opts, :ties, :away))

    if decimals == 0 and ties == :away do
      Elementwise.unary(:round, tensor, promotion: mode)
    else
      %Tensor{} = tensor = Operands.tensor!(tensor, mode, :round)
      {_, type, weak, _} = Promotion.operation(mode, :round, [tensor])
      %{(tensor |> Elementwise.cast(type) |> to_decimals(type, decimals, ties)) | weak: weak}
    end
  end

  # The powers of ten that floats of 64 bits have.
  defp decimals!(decimals) when decimals in -308..308, do: decimals

  defp decimals!(other) do
    raise ArgumentError,
          "round: :decimals must be an integer from -308 to 308, got: #{inspect(other)}"
  end

  defp ties!(ties) when ties in [:away, :even], do: ties

  defp ties!(other),
    do: raise(ArgumentError, "round: :ties must be :away or :even, got: #{inspect(other)}")

  defp to_decimals(_tensor, {:c, _} = type, _decimals, _ties),
    do: raise(ArgumentError, "round is not defined for #{Type.to_string(type)}")

  defp to_decimals(tensor, type, decimals, ties) do
    cond do
      Type.float?(type) -> tensor |> float(decimals, ties) |> Elementwise.cast(type)
      decimals >= 0 -> tensor
      true -> tensor |> integer(type, -decimals, ties) |> Elementwise.cast(type)
    end
  end

  defp float(tensor, decimals, ties) do
    wide = Elementwise.cast(tensor, {:f, 64})
    {there, back} = if decimals >= 0, do: {:multiply, :divide}, else: {:divide, :multiply}
    power = 10.0 ** abs(decimals)
    scaled = if decimals == 0, do: wide, else: Elementwise.step(there, wide, power)
    rounded = whole(scaled, ties)
    rounded = if decimals == 0, do: rounded, else: Elementwise.step(back, rounded, power)

    # From here on every float is whole.
    whole? = Elementwise.step(:greater_equal, Elementwise.step(:abs, scaled), 2.0 ** 52)
    Elementwise.select(whole?, wide, rounded, promotion: :nx)
  end

  defp whole(numbers, :away), do: Elementwise.step(:round, numbers)

  # A half lies as far from zero as from the even number that is nearest to it.
  defp whole(numbers, :even) do
    away = Elementwise.step(:round, numbers)
    apart = Elementwise.step(:abs, Elementwise.step(:subtract, away, numbers))
    even = Elementwise.step(:multiply, whole(Elementwise.step(:divide, numbers, 2.0), :away), 2.0)
    Elementwise.select(Elementwise.step(:equal, apart, 0.5), even, away, promotion: :nx)
  end

  # All powers of ten from 10 ** 19 on are more than twice as large as s64's numbers, and as half of u64's.
  defp integer(tensor, {kind, bits}, zeros, ties) when zeros <= 18 do
    type = if {kind, bits} == {:u, 64}, do: {:u, 64}, else: {:s, 64}
    wide = Elementwise.cast(tensor, type)
    power = scalar(10 ** zeros, type)
    quotient = Elementwise.step(:quotient, wide, power)
    rest = Elementwise.step(:remainder, wide, power)
    twice = Elementwise.step(:multiply, Elementwise.step(:abs, rest), scalar(2, type))
    past? = Elementwise.step(:greater, twice, power)
    half? = Elementwise.step(:equal, twice, power)
    odd? = Elementwise.step(:not_equal, Elementwise.step(:remainder, quotient, 2), 0)
    away? = if ties == :away, do: half?, else: Elementwise.step(:logical_and, half?, odd?)
    away? = Elementwise.cast(Elementwise.step(:logical_or, past?, away?), type)
    step = Elementwise.step(:multiply, Elementwise.step(:sign, wide), away?)
    Elementwise.step(:multiply, Elementwise.step(:add, quotient, step), power)
  end

  defp integer(_tensor, type, zeros, _ties) do
    raise ArgumentError,
          "round: :decimals must be at least -18 for integers, got: #{-zeros} for #{Type.to_string(type)}"
  end

  @doc "See `Ferrox.trunc/2`."
  @spec trunc(term, keyword) :: Tensor.t()
  def trunc(tensor, opts) do
    mode = Operands.chosen_mode!(opts, :trunc)
    %Tensor{} = tensor = Operands.tensor!(tensor, mode, :trunc)
    _ = Promotion.type_as(mode, :floor, :trunc, [tensor])
    {_, type, weak, _} = Promotion.operation(mode, :floor, [tensor])
    tensor = Elementwise.cast(tensor, type)

    cond do
      type == :bool or not Type.float?(type) ->
        %{tensor | weak: weak}

      Type.complex?(type) ->
        raise ArgumentError, "trunc is not defined for #{Type.to_string(type)}"

      true ->
        [up, down] = for op <- [:ceil, :floor], do: Elementwise.step(op, tensor)
        negative? = Elementwise.step(:less, tensor, 0)
        %{Elementwise.select(negative?, up, down, promotion: :nx) | weak: weak}
    end
  end

  defp scalar(number, type),
    do: %Tensor{data: Numbers.constant(number, type), type: type, shape: {}}
end
