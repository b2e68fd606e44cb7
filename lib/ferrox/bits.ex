defmodule Ferrox.Bits do
  @moduledoc false
  # Sizes in patterns of bitstrings, and parts of one size.

  @doc """
  `size(variable)` in a pattern, for a variable that was bound before the pattern.

  From Elixir 1.20 on such a variable is pinned, which earlier versions refuse.

      iex> import Ferrox.Bits
      iex> bits = 16
      iex> <<x::bound_size(bits)-little, _::binary>> = <<1, 0, 2>>
      iex> x
      1

  """
  defmacro bound_size({_name, _meta, context} = variable) when is_atom(context) do
    if Version.match?(System.version(), ">= 1.20.0-rc.0"),
      do: quote(do: size(^unquote(variable))),
      else: quote(do: size(unquote(variable)))
  end

  @doc """
  The parts of a bitstring with some number of bits each, as a stream. Fewer bits at the end are filled up with those at
  the start, or with `leftover` other than `:repeat` left out.

      iex> Enum.to_list(Ferrox.Bits.batches(<<1, 2, 3>>, 16, :repeat))
      [<<1, 2>>, <<3, 1>>]
      iex> Enum.to_list(Ferrox.Bits.batches(<<1, 2, 3>>, 16, :discard))
      [<<1, 2>>]

  """
  @spec batches(bitstring, pos_integer, atom) :: Enumerable.t()
  def batches(bits, size, leftover) do
    full = div(bit_size(bits), size)
    repeat? = leftover == :repeat and rem(bit_size(bits), size) != 0

    Stream.map(0..if(repeat?, do: full, else: full - 1)//1, fn
      ^full ->
        rest = bit_size(bits) - full * size
        <<slice(bits, full * size, rest)::bitstring, slice(bits, 0, size - rest)::bitstring>>

      i ->
        slice(bits, i * size, size)
    end)
  end

  @doc """
  Some bits from a start on, without a copy.

      iex> Ferrox.Bits.slice(<<1, 2, 3>>, 8, 16)
      <<2, 3>>

  """
  @spec slice(bitstring, non_neg_integer, non_neg_integer) :: bitstring
  def slice(bits, start, length) do
    <<_::bitstring-bound_size(start), slice::bitstring-bound_size(length), _::bitstring>> = bits
    slice
  end
end
