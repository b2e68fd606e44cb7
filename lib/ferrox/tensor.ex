defmodule Ferrox.Tensor do
  @moduledoc """
  A tensor of the direct API: data, a type and a shape.

  The data are a binary in native byte order, row after row, as
  `Nx.to_binary/1` gives them; a bitstring for types of 2 and 4 bits. Those of
  `:bool` are bytes of 0 and 1. Make and read tensors with the functions of
  `Ferrox`; the fields may be matched on:

      iex> %Ferrox.Tensor{type: {:u, 8}, shape: {2}, data: <<1, 2>>} = Ferrox.tensor([1, 2], type: :u8)
      iex> :ok
      :ok

  A tensor is weak if nothing has said how large its type is, which only JAX
  tells apart: beside other tensors it gives way as a plain number does, see
  `Ferrox.Promotion`.

      iex> Ferrox.tensor(2, promotion: :jax)
      #Ferrox.Tensor<
        s64, weak: true
        2
      >
      iex> Ferrox.tensor(2, promotion: :jax, type: :s64).weak
      false

  """

  @enforce_keys [:data, :type, :shape]
  defstruct [:data, :type, :shape, weak: false]

  @type t :: %__MODULE__{
          data: bitstring,
          type: Ferrox.Type.t() | :bool,
          shape: tuple,
          weak: boolean
        }
end
