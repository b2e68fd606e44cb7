defmodule Ferrox.Ivy.Version do
  @moduledoc """
  Which entry of a list of version ranges holds for a version.

  A range is a version, `"2.0.1 and below"`, `"2.0.1 and above"` or
  `"1.2 to 1.8"`, the ends included. Versions are compared number by number, a
  shorter one before what it begins: `1.9` < `1.9.0` < `1.10`.

  The order of the list counts, so it is a list of pairs and no map:

    1. an entry that is the version itself, wherever it stands;
    2. else the first range that the version lies in;
    3. else the last entry.

  Ivy's decorators take a dictionary of ranges, see `Ferrox.Ivy.Support`.
  """

  @typedoc "A version, or a range of versions."
  @type range :: String.t()

  @doc """
  The value of the entry that holds for a version.

  ## Examples

      iex> ranges = [{"1.0.0 to 1.5.0", :a}, {"1.6.0 and above", :b}]
      iex> for version <- ["1.5.0", "1.5.1", "9.0"], do: Ferrox.Ivy.Version.resolve(ranges, version)
      [:a, :b, :b]

  An entry for one version wins against a range before it, and is no range of
  its own: the next version is in the range again.

      iex> ranges = [{"2.0.1 and below", :a}, {"1.12.1", :b}]
      iex> for version <- ["1.11.0", "1.12.1", "1.13.0", "2.1.0"], do: Ferrox.Ivy.Version.resolve(ranges, version)
      [:a, :b, :a, :b]

      iex> Ferrox.Ivy.Version.resolve([{"2.0.1 and below", :a}], "2.0.0rc1")
      ** (ArgumentError) invalid version "2.0.0rc1", expected numbers with dots between them, such as "2.0.1"

      iex> Ferrox.Ivy.Version.resolve([], "2.0")
      ** (ArgumentError) expected at least one range of versions, got an empty list

  """
  @spec resolve([{range, value}], String.t()) :: value when value: term
  def resolve(ranges, version)

  def resolve([], _version) do
    raise ArgumentError, "expected at least one range of versions, got an empty list"
  end

  def resolve([{_, _} | _] = ranges, version) do
    case List.keyfind(ranges, version, 0) do
      {_, value} ->
        value

      nil ->
        numbers = numbers!(version)
        inside = Enum.find(ranges, fn {range, _value} -> inside?(parse!(range), numbers) end)
        {_, value} = inside || List.last(ranges)
        value
    end
  end

  def resolve(map, _version) when is_map(map) do
    raise ArgumentError,
          "expected a list of pairs, since the order of the ranges counts, got: #{inspect(map)}"
  end

  def resolve(other, _version) do
    raise ArgumentError, "expected a list of {range, value}, got: #{inspect(other)}"
  end

  # What holds at compile time: a range that can't be read.
  @doc false
  @spec validate!(term) :: :ok
  def validate!(range) do
    parse!(range)
    :ok
  end

  # Were it this version, it would have been found as it is written.
  defp inside?({:exactly, _version}, _numbers), do: false
  defp inside?({:below, bound}, numbers), do: numbers <= bound
  defp inside?({:above, bound}, numbers), do: numbers >= bound
  defp inside?({:between, low, high}, numbers), do: low <= numbers and numbers <= high

  defp parse!(range) when is_binary(range) do
    case String.split(range, " ") do
      [version] -> {:exactly, numbers!(version)}
      [version, "and", "below"] -> {:below, numbers!(version)}
      [version, "and", "above"] -> {:above, numbers!(version)}
      [low, "to", high] -> {:between, numbers!(low), numbers!(high)}
      _ -> invalid!(range)
    end
  end

  defp parse!(other), do: invalid!(other)

  defp invalid!(range) do
    raise ArgumentError,
          "invalid range of versions #{inspect(range)}, expected such as \"2.0.1\", " <>
            "\"2.0.1 and below\", \"2.0.1 and above\" or \"1.2 to 1.8\""
  end

  defp numbers!(version) when is_binary(version) do
    version
    |> String.split(".")
    |> Enum.map(fn part ->
      case Integer.parse(part) do
        {number, ""} when number >= 0 -> number
        _ -> invalid_version!(version)
      end
    end)
  end

  defp numbers!(other), do: invalid_version!(other)

  defp invalid_version!(version) do
    raise ArgumentError,
          "invalid version #{inspect(version)}, expected numbers with dots between them, " <>
            "such as \"2.0.1\""
  end
end
