defmodule Ferrox.Ivy.Version do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Finds the entry of a list of version ranges that applies to a version.

  A range is a single version, `"2.0.1 and below"`, `"2.0.1 and above"` or `"1.2 to 1.8"`. The bounds
  belong to the range. Versions are compared number by number, and a version precedes its own
  extensions: `1.9` < `1.9.0` < `1.10`.

  The entry that applies is the first of these:

    1. the entry for this single version, at any place in the list;
    2. the first range that contains the version;
    3. the last entry.

  The order matters, so the ranges are a list of pairs and not a map, unlike the dictionaries that
  Ivy's decorators take. See `Ferrox.Ivy.Support`.
  """

  @typedoc "A version, or a range of versions."
  @type range :: String.t()

  @doc """
  Returns the value of the entry that applies to a version.

  ## Examples

      iex> ranges = [{"1.0.0 to 1.5.0", :a}, {"1.6.0 and above", :b}]
      iex> for version <- ["1.5.0", "1.5.1", "9.0"], do: Ferrox.Ivy.Version.resolve(ranges, version)
      [:a, :b, :b]

  An entry for a single version takes precedence over a range before it, and applies to no other
  version: the next version is in the range again.

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
        numbers = parse_version!(version)

        {_, value} =
          Enum.find(ranges, List.last(ranges), fn {range, _value} ->
            inside?(parse_range!(range), numbers)
          end)

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

  # resolve/2 has already looked for an entry with exactly this version.
  defp inside?({:exactly, _version}, _numbers), do: false
  defp inside?({:below, bound}, numbers), do: numbers <= bound
  defp inside?({:above, bound}, numbers), do: numbers >= bound
  defp inside?({:between, low, high}, numbers), do: low <= numbers and numbers <= high

  @doc false
  @spec parse_range!(term) :: tuple
  def parse_range!(range) when is_binary(range) do
    case String.split(range, " ") do
      [version] -> {:exactly, parse_version!(version)}
      [version, "and", "below"] -> {:below, parse_version!(version)}
      [version, "and", "above"] -> {:above, parse_version!(version)}
      [low, "to", high] -> {:between, parse_version!(low), parse_version!(high)}
      _ -> raise_invalid_range!(range)
    end
  end

  def parse_range!(other), do: raise_invalid_range!(other)

  @spec raise_invalid_range!(term) :: no_return
  defp raise_invalid_range!(range) do
    raise ArgumentError,
          "invalid range of versions #{inspect(range)}, expected such as \"2.0.1\", " <>
            "\"2.0.1 and below\", \"2.0.1 and above\" or \"1.2 to 1.8\""
  end

  defp parse_version!(version) when is_binary(version) do
    version
    |> String.split(".")
    |> Enum.map(fn part ->
      case Integer.parse(part) do
        {number, ""} when number >= 0 -> number
        _ -> raise_invalid_version!(version)
      end
    end)
  end

  defp parse_version!(other), do: raise_invalid_version!(other)

  @spec raise_invalid_version!(term) :: no_return
  defp raise_invalid_version!(version) do
    raise ArgumentError,
          "invalid version #{inspect(version)}, expected numbers with dots between them, " <>
            "such as \"2.0.1\""
  end
end
