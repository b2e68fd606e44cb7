defmodule Ferrox.Golden do
  @moduledoc """
  Reads the golden files of `test/fixtures`, which are CSV and JSON.
  """

  @promotion Path.expand("../fixtures/promotion", __DIR__)

  @doc "The cells of a table of `fixtures/promotion`, as `{row, column, text}`."
  @spec cells(String.t()) :: [{String.t(), String.t(), String.t()}]
  def cells(file) do
    [header | rows] =
      @promotion |> Path.join(file) |> File.read!() |> String.split("\n", trim: true)

    [_corner | columns] = String.split(header, ",")

    for row <- rows,
        [name | texts] = String.split(row, ","),
        {column, text} <- zip!(columns, texts) do
      {name, column, text}
    end
  end

  @doc "The rows of a list of `fixtures/promotion`, without its header."
  @spec rows(String.t()) :: [[String.t()]]
  def rows(file) do
    [_header | rows] =
      @promotion |> Path.join(file) |> File.read!() |> String.split("\n", trim: true)

    Enum.map(rows, &String.split(&1, ","))
  end

  @doc "The text of a file of `fixtures/promotion`."
  @spec read(String.t()) :: String.t()
  def read(file), do: @promotion |> Path.join(file) |> File.read!()

  @doc "A JSON document of `fixtures/promotion`, objects as maps."
  @spec json(String.t()) :: term
  def json(file) do
    {value, rest} = @promotion |> Path.join(file) |> File.read!() |> value()
    "" = skip(rest)
    value
  end

  @doc """
  The term that the golden files write as that text: Elixir's own notation, and
  `complex(1.0;2.0)` and `2^1030`.
  """
  @spec term(String.t()) :: term
  def term("complex(" <> text) do
    [re, im] = text |> String.trim_trailing(")") |> String.split(";")
    Ferrox.Complex.new(term(re), term(im))
  end

  def term("2^" <> exponent), do: Integer.pow(2, String.to_integer(exponent))

  def term(text) do
    {term, _binding} = Code.eval_string(text)
    term
  end

  @doc "A term as the golden files write it, a type by its short name."
  @spec text(term) :: String.t()
  def text({kind, size} = type) when is_atom(kind) and is_integer(size),
    do: Ferrox.Type.to_string(type)

  def text(%{re: re, im: im}), do: "complex(#{inspect(re)};#{inspect(im)})"
  def text(term), do: inspect(term)

  @doc "What the function returns, or the name of the exception it raises with its message."
  @spec attempt(fun) :: {:ok, term} | {:error, String.t(), String.t()}
  def attempt(fun) do
    {:ok, fun.()}
  rescue
    error -> {:error, "ERR:" <> inspect(error.__struct__), Exception.message(error)}
  end

  defp zip!(columns, texts) when length(columns) == length(texts), do: Enum.zip(columns, texts)

  # JSON without escapes beyond those the files have.
  defp value(text) do
    case skip(text) do
      "{" <> rest -> object(skip(rest), %{})
      "[" <> rest -> array(skip(rest), [])
      "\"" <> rest -> string(rest, "")
      "true" <> rest -> {true, rest}
      "false" <> rest -> {false, rest}
      "null" <> rest -> {nil, rest}
      digits -> number(digits)
    end
  end

  defp number(digits) do
    case Integer.parse(digits) do
      {_, "." <> _} -> Float.parse(digits)
      integer -> integer
    end
  end

  defp object("}" <> rest, map), do: {map, rest}

  defp object("," <> rest, map), do: object(skip(rest), map)

  defp object("\"" <> rest, map) do
    {key, rest} = string(rest, "")
    ":" <> rest = skip(rest)
    {value, rest} = value(rest)
    object(skip(rest), Map.put(map, key, value))
  end

  defp array("]" <> rest, items), do: {Enum.reverse(items), rest}
  defp array("," <> rest, items), do: array(rest, items)

  defp array(rest, items) do
    {item, rest} = value(rest)
    array(skip(rest), [item | items])
  end

  defp string("\"" <> rest, text), do: {text, rest}
  defp string("\\\"" <> rest, text), do: string(rest, text <> "\"")
  defp string("\\\\" <> rest, text), do: string(rest, text <> "\\")
  defp string(<<char::utf8, rest::binary>>, text), do: string(rest, <<text::binary, char::utf8>>)

  defp skip(<<space, rest::binary>>) when space in [?\s, ?\n, ?\t, ?\r], do: skip(rest)
  defp skip(rest), do: rest
end
