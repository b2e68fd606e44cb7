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

  ## Elements

  As in Nx, `tensor[index]` takes an integer, a range with a positive step, a tensor of integers (see
  `Ferrox.take/3`), or a list with one integer, range or scalar tensor for each of the first axes. Negative
  integers count from the end, and an axis with a single index is dropped. It also takes a mask, a tensor of
  type `:bool` with the sizes of all axes or of the first ones: see `Ferrox.extract/2`, whose mask may have
  other types.

      iex> t = Ferrox.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
      iex> Ferrox.to_list(t[1])
      [4, 5, 6]
      iex> Ferrox.to_list(t[1..2])
      [[4, 5, 6], [7, 8, 9]]
      iex> Ferrox.to_list(t[[0..-1//2, -1]])
      [3, 9]
      iex> Ferrox.to_list(t[Ferrox.tensor([2, 0])])
      [[7, 8, 9], [1, 2, 3]]
      iex> Ferrox.to_list(t[Ferrox.greater(t, 6, promotion: :numpy)])
      [7, 8, 9]

  Tensors are neither `Enumerable` nor `Collectable`: `Ferrox.to_flat_list/1` gives the elements, and
  `Ferrox.put_slice/4`, `Ferrox.indexed_put/4` and `Ferrox.select/4` other tensors with some replaced.

  """

  @behaviour Access

  @enforce_keys [:data, :type, :shape]
  defstruct [:data, :type, :shape, weak: false]

  @typedoc "A tensor."
  @type t :: %__MODULE__{
          data: bitstring,
          type: Ferrox.Type.t() | :bool,
          shape: tuple,
          weak: boolean
        }

  @doc false
  @impl Access
  @spec fetch(t, term) :: {:ok, t}
  def fetch(tensor, index), do: {:ok, Ferrox.Ops.Index.fetch(tensor, index)}

  @doc false
  @impl Access
  @spec get_and_update(t, term, fun) :: no_return
  def get_and_update(_tensor, _index, _fun) do
    raise ArgumentError,
          "tensors can't be updated through Access; use Ferrox.put_slice/4 or Ferrox.indexed_put/4"
  end

  @doc false
  @impl Access
  @spec pop(t, term) :: no_return
  def pop(_tensor, _index),
    do: raise(ArgumentError, "elements can't be popped off a tensor; use Ferrox.slice/4")
end
