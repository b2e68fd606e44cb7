defmodule Ferrox.Tensor do
  @moduledoc """
  A tensor of the direct API: data, a type and a shape.

  The data are a binary in native byte order, row after row, as
  `Nx.to_binary/1` gives them; a bitstring for types of 2 and 4 bits. Make and
  read tensors with the functions of `Ferrox`; the fields may be matched on:

      iex> %Ferrox.Tensor{type: {:u, 8}, shape: {2}, data: <<1, 2>>} = Ferrox.tensor([1, 2], type: :u8)
      iex> :ok
      :ok

  """

  @enforce_keys [:data, :type, :shape]
  defstruct [:data, :type, :shape]

  @type t :: %__MODULE__{data: bitstring, type: Ferrox.Type.t(), shape: tuple}
end
