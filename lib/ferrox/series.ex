defmodule Ferrox.Series do
  @moduledoc false
  # Tensors from and to the series of Explorer.
  #
  # Explorer is asked when a function is called, not when Ferrox is compiled: it is no dependency
  # of Ferrox, in any environment.

  alias Ferrox.Promotion.Names
  alias Ferrox.Tensor

  @compile {:no_warn_undefined, Explorer.Series}

  # The types of numbers that a series can have.
  @types for(
           {kind, sizes} <- [u: [8, 16, 32, 64], s: [8, 16, 32, 64], f: [32, 64]],
           size <- sizes,
           do: {kind, size}
         )

  @doc "See `Ferrox.from_series/1`."
  @spec from_series(struct) :: Tensor.t()
  def from_series(%{__struct__: Explorer.Series, dtype: dtype} = series) do
    type = if dtype == :boolean, do: :bool, else: Explorer.Series.iotype(series)
    if type not in [:bool | @types], do: no_numbers!(dtype)

    size = Explorer.Series.size(series)
    nils = Explorer.Series.nil_count(series)

    if size == 0 do
      raise ArgumentError, "from_series: the series is empty; a tensor has at least one element"
    end

    if nils > 0 do
      raise ArgumentError,
            "from_series: #{nils} of #{size} elements are nil, which no tensor has; " <>
              "see Explorer.Series.fill_missing/2"
    end

    # One chunk of Arrow memory is one binary, which this function returns as it is.
    data = series |> Explorer.Series.to_iovec() |> IO.iodata_to_binary()
    %Tensor{data: data, type: type, shape: {size}}
  end

  def from_series(other) do
    raise ArgumentError, "from_series expects an Explorer.Series, got: #{inspect(other)}"
  end

  defp no_numbers!(:string) do
    raise ArgumentError,
          "from_series: a series of strings has no numbers; " <>
            "Explorer.Series.cast(series, :category) numbers them"
  end

  defp no_numbers!(dtype) do
    raise ArgumentError,
          "from_series: no type of tensor has the elements of a series of #{inspect(dtype)}"
  end

  @doc "See `Ferrox.to_series/1`."
  @spec to_series(Tensor.t()) :: struct
  def to_series(%Tensor{data: data, type: type, shape: shape}) do
    if not Code.ensure_loaded?(Explorer.Series) do
      raise ArgumentError,
            "to_series needs Explorer, which isn't there: add :explorer to the dependencies"
    end

    if tuple_size(shape) != 1 do
      raise ArgumentError,
            "to_series: a series has one axis, but the tensor has the shape #{inspect(shape)}; " <>
              "see Ferrox.flatten/1"
    end

    if type not in [:bool | @types] do
      raise ArgumentError,
            "to_series: a series can't have the type #{Names.short(type)}; as_type/2 gives one of " <>
              Enum.map_join(@types, ", ", &Names.short/1)
    end

    # Explorer reads the elements where they are, so they must be aligned as the processor wants
    # it. The data of a whole binary are; part of another binary may begin anywhere.
    data =
      if :binary.referenced_byte_size(data) == byte_size(data), do: data, else: :binary.copy(data)

    Explorer.Series.from_binary(data, if(type == :bool, do: :boolean, else: type))
  end
end
