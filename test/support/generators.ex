defmodule Ferrox.Generators do
  @moduledoc """
  Random tensor data with the values that go wrong first, from `:rand`'s state of
  the process: seed it, and the same data come again.
  """

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.{Oracle, Type}

  @doc "Starts a case's own sequence, which depends on the case and the seed alone."
  @spec seed(integer, term) :: :ok
  def seed(seed, the_case) do
    :rand.seed(:exsss, {seed, :erlang.phash2(the_case), :erlang.phash2({the_case})})
    :ok
  end

  @doc "One of a list."
  @spec pick([term, ...]) :: term
  def pick(list), do: Enum.at(list, :rand.uniform(length(list)) - 1)

  @doc """
  The data of so many elements: special values, everyday ones and arbitrary bits,
  a third of each. With `only: :everyday` numbers that most operations can digest.
  """
  @spec data(Type.t(), non_neg_integer, keyword) :: bitstring
  def data(type, count, opts \\ []) do
    kinds = if opts[:only] == :everyday, do: [:everyday], else: [:special, :everyday, :bits]
    for _ <- 1..count//1, into: <<>>, do: element(pick(kinds), type)
  end

  defp element(kind, {:c, bits}),
    do: element(kind, {:f, div(bits, 2)}) <> element(pick([kind, :everyday]), {:f, div(bits, 2)})

  defp element(:bits, {_, bits}) do
    <<random::bitstring-bound_size(bits), _::bitstring>> = :rand.bytes(8)
    random
  end

  defp element(:everyday, {:s, bits} = type),
    do: Oracle.encode(:rand.uniform(2 * small(bits)) - small(bits), type)

  defp element(:everyday, {:u, bits} = type), do: Oracle.encode(:rand.uniform(small(bits)), type)

  # Few bits, so that products and sums meet ties; or as many as there are.
  defp element(:everyday, type) do
    magnitude =
      if :rand.uniform(2) == 1,
        do: :rand.uniform(64) / pick([1, 2, 4, 8, 16]),
        else: :rand.uniform() * pick([1, 1, 2, 10, 30])

    Oracle.encode(pick([1, -1]) * magnitude, type)
  end

  defp element(:special, type), do: type |> special() |> pick() |> bits(type)

  defp small(bits), do: min(Integer.pow(2, bits - 1) - 1, 20)

  defp bits(data, _type) when is_bitstring(data), do: data
  defp bits(value, type), do: Oracle.encode(value, type)

  defp special({:s, bits}) do
    max = Integer.pow(2, bits - 1) - 1

    Enum.filter(
      [0, 1, -1, 2, -2, max, -max - 1, max - 1, -max, 7, 127, 128],
      &(&1 in (-max - 1)..max)
    )
  end

  defp special({:u, bits}) do
    max = Integer.pow(2, bits) - 1
    Enum.filter([0, 1, 2, 3, 7, 128, div(max, 2), div(max, 2) + 1, max - 1, max], &(&1 <= max))
  end

  defp special({_, bits} = type) do
    smallest = <<1::size(bits)-native>>

    [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, -2.5, 3.0] ++
      [1.0000000000000002, 1.00000011920929, 3.0e-8, -1.0e-17] ++
      [:infinity, :neg_infinity, :nan, smallest] ++
      [Type.max_finite_binary(type), Type.min_finite_binary(type)] ++
      [Type.smallest_positive_normal_binary(type), Type.epsilon_binary(type)]
  end
end
