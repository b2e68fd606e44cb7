defmodule Ferrox.Npy do
  @moduledoc """
  Tensors to and from the `.npy` format of NumPy.

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

  Versions 1.0, 2.0 and 3.0 of the format are read, in either byte order and
  with the elements in row-major or column-major (Fortran) order; `.npz`
  archives are not. What is written is version 1.0, byte for byte as NumPy 2
  writes it.

  ## Types

  Integers of 8 to 64 bits, f16, f32, f64, c64 and c128 are the same in both.
  NumPy's booleans are bool, and u8 under the Nx systems, which have no bool
  (see `Ferrox.Promotion`). NumPy has no other types of Ferrox (bf16, the
  two of f8, integers of 2 and 4 bits), and Ferrox none of NumPy's strings,
  dates, objects, structures and extended-precision floats.

  Files are not trusted: whatever is wrong with one raises an `ArgumentError`.
  """

  alias Ferrox.{Native, Operands, Promoted, Promotion, Shape, Tensor, Type}

  @magic "\x93NUMPY"
  @keys ["descr", "fortran_order", "shape"]

  # NumPy's own limits: on axes, and on headers of files that it doesn't trust.
  @max_rank 64
  @max_header 10_000

  @types %{
    "u1" => {:u, 8},
    "u2" => {:u, 16},
    "u4" => {:u, 32},
    "u8" => {:u, 64},
    "i1" => {:s, 8},
    "i2" => {:s, 16},
    "i4" => {:s, 32},
    "i8" => {:s, 64},
    "f2" => {:f, 16},
    "f4" => {:f, 32},
    "f8" => {:f, 64},
    "c8" => {:c, 64},
    "c16" => {:c, 128}
  }
  @codes @types |> Map.new(fn {code, type} -> {type, code} end) |> Map.put(:bool, "b1")
  @readable Map.put(@types, "b1", {:u, 8})

  @doc """
  The tensor in the contents of a `.npy` file.

  The data of files in row-major order and in the machine's byte order, which
  nearly all are, aren't copied: they are a part of the binary.

  ## Options

    * `:promotion` - the system that says whether there is a bool, see
      `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.Npy.decode!("PNG")
      ** (ArgumentError) npy: not a .npy file: it does not begin with the magic string

  """
  @spec decode!(binary, keyword) :: Tensor.t()
  def decode!(file, opts \\ [])

  def decode!(file, opts) when is_binary(file) do
    facts = opts |> Operands.mode!(:npy) |> Promotion.facts()
    {header, data} = split!(file)
    {descr, fortran?, shape} = header |> literal!() |> fields!()
    {type, swapped} = type!(descr)
    shape = shape!(shape, type, data)
    data = if swapped > 1, do: swap(data, swapped), else: data

    tensor =
      if fortran?,
        do: rows(data, type, shape),
        else: %Tensor{data: data, type: type, shape: shape}

    # NumPy takes any byte but 0 for true.
    if facts.bool && String.ends_with?(descr, "b1"),
      do: Promoted.cast(tensor, :bool),
      else: tensor
  end

  def decode!(other, _opts),
    do: malformed!("expected the contents of a file, got: #{show(other)}")

  @doc """
  The contents of a `.npy` file, with the data of the tensor as they are.

  ## Examples

      iex> [_header, data] = Ferrox.Npy.encode!(Ferrox.tensor([1, 2], type: :u8))
      iex> data
      <<1, 2>>

      iex> Ferrox.Npy.encode!(Ferrox.tensor(1.0, type: :bf16))
      ** (ArgumentError) npy: NumPy has no bf16; cast with Ferrox.as_type(tensor, :f32), which holds all of its values

  """
  @spec encode!(Tensor.t()) :: iodata
  def encode!(%Tensor{data: data, type: type, shape: shape}) do
    code = Map.get(@codes, type) || raise_not_in_numpy!(type)
    rank = tuple_size(shape)
    if rank > @max_rank, do: raise_rank!(rank)

    dict =
      "{'descr': '#{order(type)}#{code}', 'fortran_order': False, 'shape': #{python(shape)}, }"

    # NumPy leaves room for the first axis to grow when a file is appended to.
    growth = if rank == 0, do: 0, else: max(0, 21 - digits(elem(shape, 0)))
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

  defp order(:bool), do: "|"
  defp order({_, 8}), do: "|"
  defp order(_type), do: if(System.endianness() == :little, do: "<", else: ">")

  defp python({dim}), do: "(#{dim},)"
  defp python(shape), do: "(#{shape |> Tuple.to_list() |> Enum.join(", ")})"

  defp digits(dim), do: dim |> Integer.to_string() |> byte_size()

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
      <<length::little-size(bits), _::binary>> when length > @max_header ->
        malformed!(
          "a header of #{length} bytes is longer than the #{@max_header} that NumPy takes"
        )

      <<length::little-size(bits), header::binary-size(length), data::binary>> ->
        {header, data}

      _ ->
        malformed!("the file ends within the header")
    end
  end

  defp fields!(dict) when is_map(dict) do
    case {@keys -- Map.keys(dict), Map.keys(dict) -- @keys} do
      {[], []} -> :ok
      {[], [key | _]} -> malformed!("the header has the unknown key #{show(key)}")
      {missing, _} -> malformed!("the header lacks #{Enum.map_join(missing, ", ", &show/1)}")
    end

    unless is_boolean(dict["fortran_order"]) do
      malformed!("fortran_order must be True or False, got: #{show(dict["fortran_order"])}")
    end

    {dict["descr"], dict["fortran_order"], dict["shape"]}
  end

  defp fields!(other), do: malformed!("the header is not a dict, got: #{show(other)}")

  # The type, and the size in bytes of the numbers whose bytes are to be reversed.
  defp type!(descr) when is_binary(descr) do
    {order, code} =
      case descr do
        <<order, code::binary>> when order in ~c"<>=|" -> {order, code}
        code -> {?=, code}
      end

    case @readable do
      %{^code => {kind, bits} = type} ->
        width = div(bits, if(kind == :c, do: 16, else: 8))
        {type, if(foreign?(order), do: width, else: 1)}

      _ ->
        malformed!("descr #{show(descr)} is not supported: #{reason(code)}")
    end
  end

  defp type!(descr) when is_list(descr),
    do: malformed!("structured arrays are not supported; save each field on its own")

  defp type!(descr), do: malformed!("descr must be a string, got: #{show(descr)}")

  defp foreign?(?<), do: System.endianness() != :little
  defp foreign?(?>), do: System.endianness() != :big
  defp foreign?(_), do: false

  # What ml_dtypes adds to NumPy is saved without its name.
  defp reason(code) when code in ["V1", "V2", "f1"],
    do: "NumPy saves bfloat16, float8 and int4 without saying which; save as float32 or int8"

  defp reason("V" <> _),
    do: "raw bytes and structures have no numbers; save each field on its own"

  defp reason("f" <> _), do: "save as float64"
  defp reason("c" <> _), do: "save as complex128"
  defp reason("O" <> _), do: "these are Python objects, not numbers"
  defp reason(<<kind, _::binary>>) when kind in ~c"SUa", do: "these are strings, not numbers"
  defp reason(<<kind, _::binary>>) when kind in ~c"Mm", do: "these are dates; save as int64"
  defp reason(_code), do: "no such type is known"

  defp shape!({:tuple, dims}, {_, bits} = type, data) do
    rank = length(dims)
    if rank > @max_rank, do: raise_rank!(rank)

    Enum.each(dims, fn dim ->
      cond do
        not is_integer(dim) -> malformed!("shape must hold integers, got: #{show(dim)}")
        dim < 0 -> malformed!("the shape has the negative size #{show(dim)}")
        dim == 0 -> malformed!("the array is empty, and Ferrox has no tensors without elements")
        true -> :ok
      end
    end)

    shape = dims |> List.to_tuple() |> Shape.validate!(:npy)
    needed = Native.size(shape) * div(bits, 8)

    case byte_size(data) - needed do
      0 ->
        shape

      more when more > 0 ->
        malformed!("#{more} bytes follow the data of #{about(shape, type)}")

      less ->
        malformed!("the file ends #{-less} bytes before the data of #{about(shape, type)} do")
    end
  end

  defp shape!(other, _type, _data), do: malformed!("shape must be a tuple, got: #{show(other)}")

  defp about(shape, type), do: "shape #{inspect(shape)} and type #{Type.to_string(type)}"

  @spec raise_rank!(non_neg_integer) :: no_return
  defp raise_rank!(rank),
    do: malformed!("#{rank} axes are more than the #{@max_rank} that NumPy has")

  defp swap(data, width) do
    shape = {div(byte_size(data), width), width}
    Native.reverse(shape, [1], {{:u, 8}, shape, data})
  end

  # Column-major data are the rows of the transposed tensor.
  defp rows(data, type, shape) do
    transposed = shape |> Tuple.to_list() |> Enum.reverse() |> List.to_tuple()
    Ferrox.transpose(%Tensor{data: data, type: type, shape: transposed})
  end

  ## The header, a literal of Python

  # Dicts become maps, strings binaries, lists lists, and tuples {:tuple, list}.
  defp literal!(header) do
    {term, rest} = header |> skip() |> term!()

    case skip(rest) do
      "" -> term
      rest -> unreadable!(rest)
    end
  end

  defp term!("{" <> rest) do
    {pairs, _comma?, rest} = items!(skip(rest), ?}, &pair!/1, [])
    map = Map.new(pairs)
    if map_size(map) < length(pairs), do: malformed!("the header names a key twice")
    {map, rest}
  end

  # Parentheses make a tuple of a single item only with a comma.
  defp term!("(" <> rest) do
    case items!(skip(rest), ?), &term!/1, []) do
      {[item], false, rest} -> {item, rest}
      {items, _comma?, rest} -> {{:tuple, items}, rest}
    end
  end

  defp term!("[" <> rest) do
    {items, _comma?, rest} = items!(skip(rest), ?], &term!/1, [])
    {items, rest}
  end

  defp term!(<<quote, rest::binary>>) when quote in [?', ?"], do: string!(rest, quote, rest, 0)
  defp term!("True" <> rest), do: {true, rest}
  defp term!("False" <> rest), do: {false, rest}
  defp term!("None" <> rest), do: {nil, rest}
  defp term!("-" <> rest), do: integer!(rest, -1)
  defp term!(rest), do: integer!(rest, 1)

  defp items!(<<close, rest::binary>>, close, _item!, []), do: {[], false, rest}

  defp items!(text, close, item!, items) do
    {item, rest} = item!.(text)
    items = [item | items]

    case skip(rest) do
      <<^close, rest::binary>> ->
        {Enum.reverse(items), false, rest}

      "," <> rest ->
        case skip(rest) do
          <<^close, rest::binary>> -> {Enum.reverse(items), true, rest}
          rest -> items!(rest, close, item!, items)
        end

      rest ->
        unreadable!(rest)
    end
  end

  defp pair!(text) do
    {key, rest} = term!(text)

    case skip(rest) do
      ":" <> rest ->
        {value, rest} = rest |> skip() |> term!()
        {{key, value}, rest}

      rest ->
        unreadable!(rest)
    end
  end

  # Escapes stay as they are: no type that is read has any in its name.
  defp string!(<<quote, rest::binary>>, quote, text, length),
    do: {binary_part(text, 0, length), rest}

  defp string!(<<?\\, _, rest::binary>>, quote, text, length),
    do: string!(rest, quote, text, length + 2)

  defp string!(<<_, rest::binary>>, quote, text, length),
    do: string!(rest, quote, text, length + 1)

  defp string!("", _quote, text, _length), do: unreadable!(text)

  defp integer!(<<digit, _::binary>> = text, sign) when digit in ?0..?9 do
    {integer, rest} = Integer.parse(text)

    # Python 2 marks long integers.
    case rest do
      "L" <> rest -> {sign * integer, rest}
      rest -> {sign * integer, rest}
    end
  end

  defp integer!(text, _sign), do: unreadable!(text)

  defp skip(<<space, rest::binary>>) when space in ~c" \t\r\n", do: skip(rest)
  defp skip(rest), do: rest

  @spec unreadable!(binary) :: no_return
  defp unreadable!(""), do: malformed!("the header ends too early")
  defp unreadable!(rest), do: malformed!("the header can't be read from #{show(rest)} on")

  # As much of a term from a file as an error can do with.
  defp show({:tuple, items}), do: show(List.to_tuple(items))
  defp show(term), do: inspect(term, limit: 5, printable_limit: 50)

  @spec malformed!(String.t()) :: no_return
  defp malformed!(message), do: raise(ArgumentError, "npy: " <> message)
end
