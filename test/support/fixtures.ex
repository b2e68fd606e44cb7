defmodule Ferrox.Fixtures do
  @moduledoc """
  The files of `test/fixtures/backend`: calls of a backend's callbacks with what
  they gave, one Erlang term a line.

      {Callback, Arguments, Result}.

  A tensor is `{tensor, Type, Shape, Hex}`, and `{out, Type, Shape}` where only the
  type and the shape count. Data are in hexadecimal, the lowest byte first, types of
  2 and 4 bits filled up with zeros. A result is `{ok, Value}`, what Nx.BinaryBackend
  gave, or `{differs, Classes, Value}`, what Ferrox gives and why (the classes of
  `Ferrox.Differences`), or `{raises, argument_error}`. A function of scalars is
  `{fun, Name}`.
  """

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.Oracle

  @directory Path.expand("../fixtures/backend", __DIR__)

  @doc "The terms of a file."
  @spec read(String.t()) :: [term]
  def read(name) do
    {:ok, terms} = :file.consult(Path.join(@directory, name))
    terms
  end

  @doc "Writes the terms of a file, below a comment."
  @spec write(String.t(), String.t(), [term]) :: :ok
  def write(name, comment, terms) do
    File.mkdir_p!(@directory)
    lines = for term <- terms, do: :io_lib.format("~0p.~n", [term])
    File.write!(Path.join(@directory, name), ["%% ", comment, "\n" | lines])
  end

  @doc "The file of the callbacks that `Nx.Backend` requires in a version of Nx."
  @spec callbacks_file(String.t()) :: String.t()
  def callbacks_file(version), do: "callbacks_#{version}.txt"

  @doc "The file of the callbacks that a version of Nx makes optional, and of its blocks."
  @spec optional_file(String.t()) :: String.t()
  def optional_file(version), do: "optional_#{version}.txt"

  @doc """
  Whether what a callback gave is what is recorded, but for elements of floats that
  differ by no more than algorithms for them do. Those of Nx 0.9 stop early.
  """
  @spec near?(atom, term, term) :: boolean
  def near?(callback, {:tensor, type, shape, a}, {:tensor, type, shape, b}) do
    margin = if callback == :svd, do: 0.01, else: 2.0e-5
    [a, b] = for hex <- [a, b], do: load({:tensor, type, shape, hex}).data.state
    [a, b] = for data <- [a, b], do: Oracle.decode(data, type)
    Enum.zip(a, b) |> Enum.all?(fn {a, b} -> a == b or distance(a, b) <= margin end)
  end

  def near?(name, a, b) when is_tuple(a) and is_tuple(b) and tuple_size(a) == tuple_size(b) do
    [Tuple.to_list(a), Tuple.to_list(b)]
    |> Enum.zip()
    |> Enum.all?(fn {a, b} -> near?(name, a, b) end)
  end

  def near?(_callback, a, b), do: a == b

  # Infinitely far where one isn't finite: atoms are greater than any number.
  defp distance({a, b}, {c, d}), do: max(distance(a, c), distance(b, d))
  defp distance(a, b) when is_number(a) and is_number(b), do: abs(a - b)
  defp distance(_, _), do: :infinity

  @doc "A term with its tensors as they are written."
  @spec dump(term) :: term
  def dump(%{type: type, shape: shape, data: %{state: state}}),
    do: {:tensor, type, shape, hex(state)}

  def dump(%{type: type, shape: shape}), do: {:out, type, shape}
  def dump(%Stream{} = batches), do: batches |> Enum.to_list() |> dump()

  def dump(%{__struct__: module} = struct) do
    case struct |> Map.delete(:__struct__) |> Enum.sort() do
      [] -> {:struct, module}
      fields -> {:struct, module, fields}
    end
  end

  def dump(list) when is_list(list), do: Enum.map(list, &dump/1)
  def dump(fun) when is_function(fun), do: :fun
  def dump(data) when is_bitstring(data), do: {:data, bit_size(data), hex(data)}
  def dump(term) when is_tuple(term), do: term |> Tuple.to_list() |> dump() |> List.to_tuple()
  def dump(term), do: term

  @doc "The term that was written, tensors as maps that Ferrox.Backend takes for tensors."
  @spec load(term) :: term
  def load({:tensor, {_, bits} = type, shape, hex}) do
    data = bits(hex, Tuple.product(shape) * bits)
    %{type: type, shape: shape, names: names(shape), data: %Ferrox.Backend{state: data}}
  end

  def load({:out, type, shape}), do: %{type: type, shape: shape, names: names(shape), data: nil}
  def load({:struct, module}), do: %{__struct__: module}
  def load({:struct, module, fields}), do: Map.merge(load({:struct, module}), Map.new(fields))
  def load({:fun, name}), do: fun(name)
  def load({:data, size, hex}), do: bits(hex, size)
  def load(list) when is_list(list), do: Enum.map(list, &load/1)
  def load(term) when is_tuple(term), do: term |> Tuple.to_list() |> load() |> List.to_tuple()
  def load(term), do: term

  # What Nx's functions do with scalars.
  defp fun(:second), do: fn x, _acc -> x end
  defp fun(:zero), do: fn _x, _acc -> 0 end
  defp fun(op), do: fn x, acc -> apply(Ferrox.Backend, op, [acc, x, acc]) end

  defp names(shape), do: List.duplicate(nil, tuple_size(shape))

  defp hex(data) do
    padding = rem(8 - rem(bit_size(data), 8), 8)
    Base.encode16(<<data::bitstring, 0::size(padding)>>, case: :lower) |> String.to_charlist()
  end

  defp bits(hex, size) do
    <<data::bitstring-bound_size(size), _::bitstring>> =
      hex |> List.to_string() |> Base.decode16!(case: :lower)

    data
  end
end
