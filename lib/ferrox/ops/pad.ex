defmodule Ferrox.Ops.Pad do
  @moduledoc false
  # Tensors with elements of their own around them, and with those of a value around and between them.

  import Ferrox.Numbers, only: [is_number_term: 1]
  import Ferrox.Operands, only: [native: 1, options!: 3, storage: 1, to_tensor: 2]

  alias Ferrox.{Native, Operands, Shape, Tensor}
  alias Ferrox.Ops.{Create, Elementwise, Index}

  @doc "See `Ferrox.pad/4`."
  @spec pad(term, term, term, keyword) :: Tensor.t()
  def pad(tensor, value, padding, opts) do
    mode = Operands.chosen_mode!(opts, :pad)
    %Tensor{shape: old} = tensor = Operands.tensor!(tensor, mode, :pad)

    if is_struct(value, Tensor) and value.shape != {} do
      raise ArgumentError,
            "pad: the value must be a scalar, got a tensor of shape #{inspect(value.shape)}"
    end

    unless is_list(padding) and not List.improper?(padding) and
             length(padding) == tuple_size(old) and
             Enum.all?(padding, &padding?/1) do
      raise ArgumentError,
            "pad: the padding must be a list of {low, high, interior}, integers of which the last is not " <>
              "negative, for each axis of shape #{inspect(old)}, got: #{inspect(padding)}"
    end

    sizes =
      for {size, {low, high, interior}} <- Enum.zip(Tuple.to_list(old), padding),
          do: size + (size - 1) * interior + low + high

    if Enum.any?(sizes, &(&1 < 1)) do
      raise ArgumentError,
            "pad: nothing is left of shape #{inspect(old)} with padding #{inspect(padding)}"
    end

    shape = Shape.validate!(List.to_tuple(sizes), :pad)
    {tensor, value, type, weak} = Elementwise.together(mode, :select, :pad, tensor, value)
    data = Native.pad(storage(type), shape, padding, native(tensor), native(value))
    %Tensor{data: data, type: type, shape: shape, weak: weak}
  end

  defp padding?({low, high, interior}),
    do: is_integer(low) and is_integer(high) and is_integer(interior) and interior >= 0

  defp padding?(_other), do: false

  @kinds [:cyclic, :mirror, :reflect, :replicate]

  @doc "See `Ferrox.pad_outer/4`."
  @spec outer(term, term, term, keyword) :: Tensor.t()
  def outer(tensor, kind, padding, opts) when kind in @kinds do
    _ = Operands.chosen_mode!(opts, :pad_outer)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :pad_outer)
    around(tensor, kind, padding!(padding, shape, :pad_outer, "the padding"), :pad_outer)
  end

  def outer(tensor, value, padding, opts)
      when is_number_term(value) or is_struct(value, Tensor) do
    %Tensor{shape: shape} = to_tensor(tensor, :pad_outer)
    padding = padding!(padding, shape, :pad_outer, "the padding")
    pad(tensor, value, for({low, high} <- padding, do: {low, high, 0}), opts)
  end

  def outer(_tensor, other, _padding, _opts) do
    raise ArgumentError,
          "pad_outer expects a number, a scalar, or one of #{Enum.map_join(@kinds, ", ", &inspect/1)}, got: " <>
            inspect(other)
  end

  @doc "See `Ferrox.reflect/2`."
  @spec reflect(term, keyword) :: Tensor.t()
  def reflect(tensor, opts) do
    opts = options!(opts, [:padding_config], :reflect)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :reflect)
    padding = padding!(opts[:padding_config], shape, :reflect, ":padding_config")
    around(tensor, :reflect, padding, :reflect)
  end

  defp padding!(padding, shape, name, what) do
    pair? = &match?({low, high} when is_integer(low) and is_integer(high), &1)

    unless is_list(padding) and not List.improper?(padding) and
             length(padding) == tuple_size(shape) and Enum.all?(padding, pair?) do
      raise ArgumentError,
            "#{name}: #{what} must be a list of {low, high}, two integers for each axis of shape " <>
              "#{inspect(shape)}, got: #{inspect(padding)}"
    end

    padding
  end

  # The elements at the places from before the first to after the last one of each axis, which repeat or mirror
  # those within it.
  defp around(%Tensor{shape: shape} = tensor, kind, padding, name) do
    sizes =
      for {size, {low, high}} <- Enum.zip(Tuple.to_list(shape), padding), do: size + low + high

    if Enum.any?(sizes, &(&1 < 1)) do
      raise ArgumentError,
            "#{name}: nothing is left of shape #{inspect(shape)} with padding #{inspect(padding)}"
    end

    Shape.validate!(List.to_tuple(sizes), name)

    for {{low, high}, axis} <- Enum.with_index(padding), {low, high} != {0, 0}, reduce: tensor do
      tensor ->
        size = elem(shape, axis)
        places = Create.arange(-low, size + high, type: {:s, 64}, promotion: :nx)
        Index.take(tensor, within(places, kind, size), axis: axis)
    end
  end

  defp within(places, :replicate, size), do: Elementwise.clip(places, 0, size - 1, promotion: :nx)
  defp within(places, :cyclic, size), do: Elementwise.mod(places, size, promotion: :nx)
  defp within(places, :mirror, size), do: there_and_back(places, 2 * size, 2 * size - 1)
  defp within(places, :reflect, 1), do: Elementwise.step(:multiply, places, 0)
  defp within(places, :reflect, size), do: there_and_back(places, 2 * size - 2, 2 * size - 2)

  # From zero up, and down again from the middle of a period on: what is left to the end.
  defp there_and_back(places, period, last) do
    there = Elementwise.mod(places, period, promotion: :nx)
    Elementwise.step(:min, there, Elementwise.step(:subtract, last, there))
  end
end
