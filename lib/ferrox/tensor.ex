defmodule Ferrox.Tensor do
  @moduledoc since: "0.1.0"
  @moduledoc """
  A tensor of the direct API: its data, type and shape.

  The data are a binary in native byte order and row-major order, as `Nx.to_binary/1` returns
  them; for types of 2 and 4 bits they are a bitstring. The elements of type `:bool` are bytes with
  the value 0 or 1. Create and read tensors with the functions of `Ferrox`. Matching on the fields
  is allowed:

      iex> %Ferrox.Tensor{type: {:u, 8}, shape: {2}, data: <<1, 2>>} = Ferrox.tensor([1, 2], type: :u8)
      iex> :ok
      :ok

  A tensor is weak if the size of its type was not specified, but is a default. Only the
  promotion system of JAX has weak tensors: together with another tensor, a weak one takes the
  other's type, as a plain number does. See `Ferrox.Promotion`.

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

  @typedoc "A tensor."
  @type t :: %__MODULE__{
          data: bitstring,
          type: Ferrox.Type.t() | :bool,
          shape: tuple,
          weak: boolean
        }
end
