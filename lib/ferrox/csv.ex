defmodule Ferrox.Csv do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Reads and writes matrices as text: a row on each line, its numbers separated by commas or something else.

      iex> Ferrox.Csv.decode!("1,2.5\\n3,-4e-1\\n")
      #Ferrox.Tensor<
        f32[2][2]
        [
          [1.0, 2.5],
          [3.0, -0.4]
        ]
      >

  Nothing is guessed: what is no number, a row that is longer or shorter than the first one, and a number that
  the type doesn't hold raise an `ArgumentError` with the line and the column, which is the number of the field.
  What is written is read as the same numbers.

  ## Numbers

  Integers and floats are written as in most languages: `12`, `-3`, `+1`, `0.5`, `.5`, `5.`, `1e-3`. Infinities
  and NaN are `inf`, `infinity` and `nan`, in letters of any case. Spaces around them don't matter. There are no
  quotes, no complex numbers, and no commas within a number.

  Text, such as names in the first line or a column of labels, is left out by `:skip_lines` and `:columns`. Tables
  with more than numbers are for Explorer: see `Ferrox.from_series/1`.
  """

  import Ferrox.Numbers, only: [is_number_term: 1]

  alias Ferrox.{Numbers, Operands, Shape, Tensor}
  alias Ferrox.Ops.Create

  @doc """
  The matrix in a text, which has two axes always. Empty lines are left out.

  ## Options

    * `:delimiter` - what is between two numbers, a string; `","` by default. `:whitespace` stands for any number
      of spaces and tabs
    * `:skip_lines` - how many lines are left out at the start; 0 by default
    * `:comment` - from where on a line is left out, a string; `"#"` by default, `nil` for nothing
    * `:columns` - the columns to read, a list of numbers from 0 on, in the order of the result; all by default
    * `:empty` - the number for a field without anything in it, such as `:nan`; by default it raises
    * `:type` - inferred from the numbers by default, as in `Ferrox.tensor/2`
    * `:promotion` - the system that infers it, see `Ferrox.Promotion`

  ## Examples

      iex> text = "height;name;weight\\n172;Ann;70.5\\n180;Bob;\\n"
      iex> opts = [delimiter: ";", skip_lines: 1, columns: [0, 2], empty: :nan, type: :f64]
      iex> Ferrox.Csv.decode!(text, opts) |> Ferrox.to_list()
      [[172.0, 70.5], [180.0, :nan]]

      iex> Ferrox.Csv.decode!("1,2\\n3,four\\n")
      ** (ArgumentError) csv: line 2, column 2: "four" is no number

      iex> Ferrox.Csv.decode!("1,2\\n3\\n")
      ** (ArgumentError) csv: line 2 has 1 field where line 1 has 2

      iex> Ferrox.Csv.decode!("1,300", type: :u8)
      ** (ArgumentError) csv: line 1, column 2: 300 does not fit u8; give a wider :type, or as_type/2 to wrap around

  """
  @spec decode!(binary, keyword) :: Tensor.t()
  def decode!(text, opts \\ [])

  def decode!(text, opts) when is_binary(text) do
    known = [:delimiter, :skip_lines, :comment, :columns, :empty, :type, :promotion]
    opts = Operands.options!(opts, known, :csv)
    mode = Operands.promotion!(opts, :csv)
    type = Operands.type_option(opts, mode, :csv)
    split = opts |> Keyword.get(:delimiter, ",") |> delimiter!() |> splitter()
    columns = columns!(opts[:columns])
    empty = empty!(opts[:empty])

    rows = for {line, number} <- lines(text, opts), do: {number, split.(line)}
    width = width!(rows, columns)

    numbers =
      for {line, fields} <- rows,
          {field, column} <- chosen(fields, columns),
          do: number!(field, empty, line, column)

    type = type || Create.infer(mode, numbers)
    shape = Shape.validate!({length(rows), width}, :csv)
    %Tensor{data: encode!(numbers, type, rows, columns), type: type, shape: shape}
  end

  def decode!(other, _opts) do
    raise ArgumentError, "csv: expected the contents of a file, got: #{inspect(other)}"
  end

  ## Lines and fields

  # What is left of each line, with its number.
  defp lines(text, opts) do
    skip = Keyword.get(opts, :skip_lines, 0)

    unless is_integer(skip) and skip >= 0 do
      raise ArgumentError,
            "csv: :skip_lines must be an integer that is not negative, got: #{inspect(skip)}"
    end

    uncommented = uncommented(Keyword.get(opts, :comment, "#"))

    # Some programs write a mark of the byte order before the first line.
    text = with <<0xFEFF::utf8, rest::binary>> <- text, do: rest

    for {line, number} <- text |> :binary.split(["\r\n", "\n"], [:global]) |> Enum.with_index(1),
        number > skip,
        line = uncommented.(line),
        String.trim(line) != "",
        do: {line, number}
  end

  defp uncommented(nil), do: & &1

  defp uncommented(comment) when is_binary(comment) and comment != "",
    do: &hd(:binary.split(&1, comment))

  defp uncommented(other) do
    raise ArgumentError, "csv: :comment must be a string or nil, got: #{inspect(other)}"
  end

  defp delimiter!(:whitespace), do: :whitespace

  defp delimiter!(delimiter) when is_binary(delimiter) and delimiter != "" do
    if delimiter =~ ~r/[0-9+\-.\r\n]/ do
      raise ArgumentError,
            "csv: :delimiter must have nothing that numbers or lines have, got: #{inspect(delimiter)}"
    end

    delimiter
  end

  defp delimiter!(other) do
    raise ArgumentError,
          "csv: :delimiter must be a string or :whitespace, got: #{inspect(other)}"
  end

  defp splitter(:whitespace), do: &String.split/1

  defp splitter(delimiter) do
    fn line -> for field <- :binary.split(line, delimiter, [:global]), do: String.trim(field) end
  end

  defp columns!(nil), do: nil

  defp columns!([_ | _] = columns) do
    if List.improper?(columns) or not Enum.all?(columns, &(is_integer(&1) and &1 >= 0)),
      do: refuse_columns!(columns),
      else: columns
  end

  defp columns!(other), do: refuse_columns!(other)

  @spec refuse_columns!(term) :: no_return
  defp refuse_columns!(columns) do
    raise ArgumentError,
          "csv: :columns must be a list of integers from 0 on, got: #{inspect(columns, charlists: :as_lists)}"
  end

  # How many numbers a row has.
  defp width!([], _columns), do: raise(ArgumentError, "csv: there is no line with numbers")

  defp width!([{first, fields} | rows], columns) do
    width = length(fields)

    for {line, fields} <- rows, (count = length(fields)) != width do
      raise ArgumentError,
            "csv: line #{line} has #{fields(count)} where line #{first} has #{width}"
    end

    if columns != nil and Enum.max(columns) >= width do
      raise ArgumentError,
            "csv: :columns has #{Enum.max(columns)}, where lines have #{fields(width)}, from 0 to #{width - 1}"
    end

    if columns, do: length(columns), else: width
  end

  defp fields(1), do: "1 field"
  defp fields(count), do: "#{count} fields"

  # The fields to read, with the numbers of their columns from one on.
  defp chosen(fields, nil), do: Enum.with_index(fields, 1)

  defp chosen(fields, columns) do
    fields = List.to_tuple(fields)
    for column <- columns, do: {elem(fields, column), column + 1}
  end

  ## Numbers

  defp empty!(empty) do
    unless empty == nil or (is_number_term(empty) and not is_map(empty)) do
      raise ArgumentError, "csv: :empty must be a number, got: #{inspect(empty)}"
    end

    empty
  end

  defp number!("", nil, line, column) do
    raise ArgumentError,
          "csv: line #{line}, column #{column}: the field is empty; :empty says which number it stands for"
  end

  defp number!("", empty, _line, _column), do: empty

  defp number!(field, _empty, line, column) do
    case Integer.parse(field) do
      {integer, ""} -> integer
      _ -> float!(field, line, column)
    end
  end

  @names for {name, number} <- [nan: :nan, inf: :infinity, infinity: :infinity],
             {sign, number} <- [{"", number}, {"+", number}, {"-", number}],
             into: %{},
             do:
               {"#{sign}#{name}",
                if({sign, number} == {"-", :infinity}, do: :neg_infinity, else: number)}

  # Most floats have digits on both sides of a point, as Erlang wants them.
  defp float!(field, line, column), do: plain_float(field) || other_float!(field, line, column)

  defp plain_float(text) do
    String.to_float(text)
  rescue
    ArgumentError -> nil
  end

  defp other_float!(field, line, column) do
    case Regex.run(~r/\A([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?\z/, field) do
      [_, sign, whole, fraction | exponent] when whole != "" or fraction != "" ->
        exponent = List.first(exponent) || "0"

        plain_float("#{sign}#{digits(whole)}.#{digits(fraction)}e#{exponent}") ||
          raise ArgumentError,
                "csv: line #{line}, column #{column}: #{field} is out of the range of floats of 64 bits"

      _ ->
        with nil <- @names[String.downcase(field)] do
          raise ArgumentError,
                "csv: line #{line}, column #{column}: #{inspect(field)} is no number"
        end
    end
  end

  defp digits(""), do: "0"
  defp digits(digits), do: digits

  defp encode!(numbers, type, rows, columns) do
    Numbers.encode(numbers, type, :csv)
  rescue
    ArgumentError ->
      places =
        for {line, fields} <- rows, {_, column} <- chosen(fields, columns), do: {line, column}

      numbers |> Enum.zip(places) |> Enum.each(&fits!(&1, type))
  end

  defp fits!({number, {line, column}}, type) do
    Numbers.encode([number], type, :csv)
  rescue
    error in ArgumentError ->
      "csv: " <> problem = Exception.message(error)
      reraise ArgumentError, "csv: line #{line}, column #{column}: #{problem}", __STACKTRACE__
  end

  ## Writing

  @doc """
  The text of a matrix, as iodata; of a vector, one number on each line. Floats are written with as many digits
  as tell them from all others of 64 bits, bools as 1 and 0.

  ## Options

    * `:delimiter` - what is between two numbers, a string; `","` by default
    * `:header` - the names of the columns, a list of strings, for the first line

  ## Examples

      iex> Ferrox.tensor([[1, 2], [3, 4]]) |> Ferrox.Csv.encode!() |> IO.iodata_to_binary()
      "1,2\\n3,4\\n"
      iex> t = Ferrox.tensor([[0.5, :nan]])
      iex> t |> Ferrox.Csv.encode!(delimiter: ";", header: ["a", "b"]) |> IO.iodata_to_binary()
      "a;b\\n0.5;nan\\n"

  """
  @spec encode!(Tensor.t(), keyword) :: iodata
  def encode!(tensor, opts \\ [])

  def encode!(%Tensor{type: {:c, _}}, _opts) do
    raise ArgumentError,
          "csv: complex numbers aren't written; Ferrox.real/1 and Ferrox.imag/1 are their parts"
  end

  def encode!(%Tensor{shape: shape} = tensor, opts) when tuple_size(shape) in [1, 2] do
    opts = Operands.options!(opts, [:delimiter, :header], :csv)
    width = if tuple_size(shape) == 1, do: 1, else: elem(shape, 1)

    delimiter =
      case delimiter!(Keyword.get(opts, :delimiter, ",")) do
        :whitespace -> " "
        delimiter -> delimiter
      end

    rows =
      for row <- tensor |> Ferrox.to_flat_list() |> Enum.chunk_every(width),
          do: [row |> Enum.map(&text/1) |> Enum.intersperse(delimiter), ?\n]

    [header(opts[:header], width, delimiter) | rows]
  end

  def encode!(%Tensor{shape: shape}, _opts) do
    raise ArgumentError,
          "csv: a vector or a matrix is written, got a tensor of shape #{inspect(shape)}; see Ferrox.reshape/2"
  end

  def encode!(other, _opts) do
    raise ArgumentError, "csv: expected a Ferrox.Tensor, got: #{inspect(other)}"
  end

  defp text(true), do: "1"
  defp text(false), do: "0"
  defp text(:nan), do: "nan"
  defp text(:infinity), do: "inf"
  defp text(:neg_infinity), do: "-inf"
  defp text(number), do: to_string(number)

  defp header(nil, _width, _delimiter), do: []

  defp header(names, width, delimiter) do
    unless is_list(names) and length(names) == width and Enum.all?(names, &is_binary/1) do
      raise ArgumentError,
            "csv: :header must be a list of strings, one for each of #{width} columns, got: #{inspect(names)}"
    end

    for name <- names, String.contains?(name, [delimiter, "\n", "\r"]) do
      raise ArgumentError,
            "csv: the name #{inspect(name)} has a delimiter or the end of a line in it"
    end

    [Enum.intersperse(names, delimiter), ?\n]
  end
end
