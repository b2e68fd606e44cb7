defmodule Ferrox.Npy do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Reads and writes tensors in the `.npy` format of NumPy.

      iex> tensor = Ferrox.tensor([[1, 2], [3, 4]], type: :u8)
      iex> file = tensor |> Ferrox.Npy.encode!() |> IO.iodata_to_binary()
      iex> Ferrox.Npy.decode!(file)
      #Ferrox.Tensor<
        u8[2][2]
        [
          [1, 2],
          [3, 4]
        ]
      >

  `decode!/2` reads the versions 1.0, 2.0 and 3.0 of the format, in either byte order, and with the
  elements in row-major or column-major (Fortran) order. It doesn't read `.npz` archives.
  `encode!/1` writes version 1.0, byte for byte as NumPy 2 does.

  ## Types

  Integers of 8 to 64 bits, f16, f32, f64, c64 and c128 are the same in both libraries. NumPy's
  booleans become bool, or u8 under the promotion systems of Nx, which have no bool (see
  `Ferrox.Promotion`). NumPy doesn't have Ferrox's other types (bf16, f8, f8_e4m3fn, and integers of
  2 and 4 bits), and Ferrox doesn't have NumPy's strings, dates, objects, structures and
  extended-precision floats.

  Files are not trusted: any error in a file raises an `ArgumentError`.
  """

  import Ferrox.Bits, only: [bound_size: 1]
  import Ferrox.Operands, only: [mode!: 2]

  alias Ferrox.{Native, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.Elementwise

  @magic "\x93NUMPY"
  @header_keys ["descr", "fortran_order", "shape"]

  # NumPy's limits: the number of axes, and the size of the header of a file that isn't trusted.
  @max_rank 64
  @max_header_bytes 10_000

  @types_by_code for {code, types} <- [
                       u: [u: 8, u: 16, u: 32, u: 64],
                       i: [s: 8, s: 16, s: 32, s: 64],
                       f: [f: 16, f: 32, f: 64],
                       c: [c: 64, c: 128]
                     ],
                     {_, bits} = type <- types,
                     into: %{},
                     do: {"#{code}#{div(bits, 8)}", type}
  @codes_by_type @types_by_code
                 |> Map.new(fn {code, type} -> {type, code} end)
                 |> Map.put(:bool, "b1")
  @readable_types_by_code Map.put(@types_by_code, "b1", {:u, 8})

  @doc """
  Returns the tensor in the contents of a `.npy` file.

  The data of files in row-major order and in the machine's byte order, as almost all files are,
  aren't copied: the tensor refers to a part of the binary.

  ## Options

    * `:promotion` - the promotion system, which decides whether booleans become bool or u8, see
      `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.Npy.decode!("PNG")
      ** (ArgumentError) npy: not a .npy file: it does not begin with the magic string

  """
  @spec decode!(binary, keyword) :: Tensor.t()
  def decode!(file, opts \\ [])

  def decode!(file, opts) when is_binary(file) do
    facts = opts |> mode!(:npy) |> Promotion.facts()
    {header, data} = split!(file)
    {descr, fortran?, shape} = header |> literal!() |> fields!()
    {type, swap_width} = type!(descr)
    shape = shape!(shape, type, data)
    data = if swap_width > 1, do: swap_bytes(data, swap_width), else: data

    tensor =
      if fortran?,
        do: from_column_major(data, type, shape),
        else: %Tensor{data: data, type: type, shape: shape}

    # As in NumPy, any byte other than 0 is true, so the bytes are cast and not just reinterpreted.
    if facts.bool && String.ends_with?(descr, "b1"),
      do: Elementwise.cast(tensor, :bool),
      else: tensor
  end

  def decode!(other, _opts),
    do: malformed!("expected the contents of a file, got: #{short_inspect(other)}")

  @doc """
  Returns the contents of a `.npy` file as iodata: the header, and the data of the tensor without a
  copy.

  ## Examples

      iex> [_header, data] = Ferrox.Npy.encode!(Ferrox.tensor([1, 2], type: :u8))
      iex> data
      <<1, 2>>

      iex> Ferrox.Npy.encode!(Ferrox.tensor(1.0, type: :bf16))
      ** (ArgumentError) npy: NumPy has no bf16; cast with Ferrox.as_type(tensor, :f32), which holds all of its values

  """
  @spec encode!(Tensor.t()) :: iodata
  def encode!(%Tensor{data: data, type: type, shape: shape}) do
    code = Map.get(@codes_by_type, type) || raise_not_in_numpy!(type)
    rank = tuple_size(shape)
    if rank > @max_rank, do: raise_rank!(rank)

    dict =
      "{'descr': '#{byte_order(type)}#{code}', 'fortran_order': False, 'shape': #{python_tuple(shape)}, }"

    # NumPy reserves 21 digits for the size of the first axis, which grows when data are appended to
    # the file, and then pads the header to a multiple of 64 bytes.
    growth = if rank == 0, do: 0, else: max(0, 21 - byte_size("#{elem(shape, 0)}"))
    length = byte_size(dict) + growth + 1
    padding = 64 - rem(10 + length, 64)

    header =
      <<@magic, 1, 0, length + padding::16-little, dict::binary,
        String.duplicate(" ", growth + padding)::binary, ?\n>>

    [header, data]
  end

  def encode!(other),
    do: raise(ArgumentError, "npy: expected a Ferrox.Tensor, got: #{inspect(other)}")

  @spec raise_not_in_numpy!(Type.t()) :: no_return
  defp raise_not_in_numpy!({kind, bits} = type) do
    wider =
      cond do
        kind in [:s, :u] -> {kind, 8}
        bits == 8 -> {:f, 16}
        true -> {:f, 32}
      end

    raise ArgumentError,
          "npy: NumPy has no #{Type.to_string(type)}; cast with " <>
            "Ferrox.as_type(tensor, :#{Type.to_string(wider)}), which holds all of its values"
  end

  defp byte_order(type) when type in [:bool, {:u, 8}, {:s, 8}], do: "|"
  defp byte_order(_type), do: if(System.endianness() == :little, do: "<", else: ">")

  defp python_tuple({dim}), do: "(#{dim},)"
  defp python_tuple(shape), do: "(#{shape |> Tuple.to_list() |> Enum.join(", ")})"

  ## The parts of a file

  defp split!(<<@magic, major, minor, rest::binary>>) do
    case {major, minor} do
      {1, 0} -> split!(rest, 16)
      version when version in [{2, 0}, {3, 0}] -> split!(rest, 32)
      _ -> malformed!("version #{major}.#{minor} of the format is unknown")
    end
  end

  defp split!(_file), do: malformed!("not a .npy file: it does not begin with the magic string")

  defp split!(rest, bits) do
    case rest do
      <<length::little-bound_size(bits), _::binary>> when length > @max_header_bytes ->
        malformed!(
          "a header of #{length} bytes is longer than the #{@max_header_bytes} that NumPy takes"
        )

      <<length::little-bound_size(bits), header::binary-size(length), data::binary>> ->
        {header, data}

      _ ->
        malformed!("the file ends within the header")
    end
  end

  defp fields!(dict) when is_map(dict) do
    with [_ | _] = missing <- @header_keys -- Map.keys(dict),
         do: malformed!("the header lacks #{Enum.map_join(missing, ", ", &short_inspect/1)}")

    with [key | _] <- Map.keys(dict) -- @header_keys,
         do: malformed!("the header has the unknown key #{short_inspect(key)}")

    unless is_boolean(dict["fortran_order"]) do
      malformed!(
        "fortran_order must be True or False, got: #{short_inspect(dict["fortran_order"])}"
      )
    end

    {dict["descr"], dict["fortran_order"], dict["shape"]}
  end

  defp fields!(other), do: malformed!("the header is not a dict, got: #{short_inspect(other)}")

  # The type, and the size in bytes of the numbers whose bytes must be swapped: 1 for none, and the
  # size of one part for complex numbers.
  defp type!(descr) when is_binary(descr) do
    {order, code} =
      case descr do
        <<order, code::binary>> when order in ~c"<>=|" -> {order, code}
        code -> {?=, code}
      end

    case @readable_types_by_code do
      %{^code => {kind, bits} = type} ->
        width = div(bits, if(kind == :c, do: 16, else: 8))
        {type, if(foreign_byte_order?(order), do: width, else: 1)}

      _ ->
        malformed!("descr #{short_inspect(descr)} is not supported: #{unsupported_reason(code)}")
    end
  end

  defp type!(descr) when is_list(descr),
    do: malformed!("structured arrays are not supported; save each field on its own")

  defp type!(descr), do: malformed!("descr must be a string, got: #{short_inspect(descr)}")

  defp foreign_byte_order?(?<), do: System.endianness() != :little
  defp foreign_byte_order?(?>), do: System.endianness() != :big
  defp foreign_byte_order?(_), do: false

  # NumPy saves the types of the ml_dtypes package without their names.
  defp unsupported_reason(code) when code in ["V1", "V2", "f1"],
    do: "NumPy saves bfloat16, float8 and int4 without saying which; save as float32 or int8"

  for {kinds, reason} <- [
        {~c"V", "raw bytes and structures have no numbers; save each field on its own"},
        {~c"f", "save as float64"},
        {~c"c", "save as complex128"},
        {~c"O", "these are Python objects, not numbers"},
        {~c"SUa", "these are strings, not numbers"},
        {~c"Mm", "these are dates; save as int64"}
      ] do
    defp unsupported_reason(<<kind, _::binary>>) when kind in unquote(kinds), do: unquote(reason)
  end

  defp unsupported_reason(_code), do: "no such type is known"

  defp shape!({:tuple, dims}, {_, bits} = type, data) do
    rank = length(dims)
    if rank > @max_rank, do: raise_rank!(rank)

    for dim <- dims, not is_integer(dim) or dim < 1 do
      cond do
        not is_integer(dim) -> malformed!("shape must hold integers, got: #{short_inspect(dim)}")
        dim < 0 -> malformed!("the shape has the negative size #{short_inspect(dim)}")
        dim == 0 -> malformed!("the array is empty, and Ferrox has no tensors without elements")
      end
    end

    shape = dims |> List.to_tuple() |> Shape.validate!(:npy)

    case byte_size(data) - Native.size(shape) * div(bits, 8) do
      0 ->
        shape

      surplus ->
        data_text = "the data of shape #{inspect(shape)} and type #{Type.to_string(type)}"

        if surplus > 0,
          do: malformed!("#{surplus} bytes follow #{data_text}"),
          else: malformed!("the file ends #{-surplus} bytes before #{data_text} do")
    end
  end

  defp shape!(other, _type, _data),
    do: malformed!("shape must be a tuple, got: #{short_inspect(other)}")

  @spec raise_rank!(non_neg_integer) :: no_return
  defp raise_rank!(rank),
    do: malformed!("#{rank} axes are more than the #{@max_rank} that NumPy has")

  # The data with the bytes of each group of `width` bytes reversed.
  defp swap_bytes(data, width) do
    shape = {div(byte_size(data), width), width}
    Native.reverse(shape, [1], {{:u, 8}, shape, data})
  end

  # Data in column-major order are the row-major data of the transposed tensor.
  defp from_column_major(data, type, shape) do
    transposed = shape |> Tuple.to_list() |> Enum.reverse() |> List.to_tuple()
    Ferrox.transpose(%Tensor{data: data, type: type, shape: transposed})
  end

  ## The header, a Python literal

  # Parses a literal. Dicts become maps, strings become binaries, and tuples become {:tuple, list}.
  defp literal!(header) do
    {term, rest} = header |> skip_whitespace() |> term!()

    case skip_whitespace(rest) do
      "" -> term
      rest -> unreadable!(rest)
    end
  end

  defp term!("{" <> rest) do
    {pairs, _comma?, rest} = items!(rest, ?}, &pair!/1)
    map = Map.new(pairs)
    if map_size(map) < length(pairs), do: malformed!("the header names a key twice")
    {map, rest}
  end

  # A single item in parentheses is a tuple only if a comma follows it.
  defp term!("(" <> rest) do
    case items!(rest, ?), &term!/1) do
      {[item], false, rest} -> {item, rest}
      {items, _comma?, rest} -> {{:tuple, items}, rest}
    end
  end

  defp term!("[" <> rest) do
    {items, _comma?, rest} = items!(rest, ?], &term!/1)
    {items, rest}
  end

  defp term!(<<quote, rest::binary>>) when quote in [?', ?"], do: string!(rest, quote, rest, 0)
  defp term!("True" <> rest), do: {true, rest}
  defp term!("False" <> rest), do: {false, rest}
  defp term!("None" <> rest), do: {nil, rest}
  defp term!("-" <> rest), do: integer!(rest, -1)
  defp term!(rest), do: integer!(rest, 1)

  # Parses items up to the closing character. Returns the items, whether a comma follows the last
  # one, and the rest of the text.
  defp items!(text, close, item!, items \\ [], comma? \\ false) do
    case skip_whitespace(text) do
      <<^close, rest::binary>> ->
        {Enum.reverse(items), comma?, rest}

      text ->
        {item, rest} = item!.(text)
        items = [item | items]

        case skip_whitespace(rest) do
          "," <> rest -> items!(rest, close, item!, items, true)
          <<^close, rest::binary>> -> {Enum.reverse(items), false, rest}
          rest -> unreadable!(rest)
        end
    end
  end

  defp pair!(text) do
    {key, rest} = term!(text)

    case skip_whitespace(rest) do
      ":" <> rest ->
        {value, rest} = rest |> skip_whitespace() |> term!()
        {{key, value}, rest}

      rest ->
        unreadable!(rest)
    end
  end

  # Escape sequences aren't decoded, because no supported type has one in its name.
  defp string!(<<quote, rest::binary>>, quote, text, length),
    do: {binary_part(text, 0, length), rest}

  defp string!(<<?\\, _, rest::binary>>, quote, text, length),
    do: string!(rest, quote, text, length + 2)

  defp string!(<<_, rest::binary>>, quote, text, length),
    do: string!(rest, quote, text, length + 1)

  defp string!("", _quote, text, _length), do: unreadable!(text)

  defp integer!(<<digit, _::binary>> = text, sign) when digit in ?0..?9 do
    {integer, rest} = Integer.parse(text)

    # Python reads 00 as zero, but no other number that begins with a zero.
    if digit == ?0 and integer != 0, do: unreadable!(text)

    # Python 2 writes long integers with the suffix L.
    {sign * integer, String.replace_prefix(rest, "L", "")}
  end

  defp integer!(text, _sign), do: unreadable!(text)

  defp skip_whitespace(<<space, rest::binary>>) when space in ~c" \t\r\n",
    do: skip_whitespace(rest)

  defp skip_whitespace(rest), do: rest

  @spec unreadable!(binary) :: no_return
  defp unreadable!(""), do: malformed!("the header ends too early")

  defp unreadable!(rest),
    do: malformed!("the header can't be read from #{short_inspect(rest)} on")

  # A term of a file for an error message, shortened because it can be of any size.
  defp short_inspect({:tuple, items}), do: short_inspect(List.to_tuple(items))
  defp short_inspect(term), do: inspect(term, limit: 5, printable_limit: 50)

  @spec malformed!(String.t()) :: no_return
  defp malformed!(message), do: raise(ArgumentError, "npy: " <> message)
end
