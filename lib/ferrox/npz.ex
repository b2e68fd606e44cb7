defmodule Ferrox.Npz do
  @moduledoc since: "0.1.0"
  @moduledoc """
  NumPy's `.npz` files: archives of `.npy` files, each under a name.

  `Ferrox.load_npz!/2` and `Ferrox.save_npz!/2` read and write them. Archives are those of `numpy.savez` and
  `numpy.savez_compressed`; written ones are not compressed unless that is asked for. See `Ferrox.Npy` for the
  types.

      iex> tensors = %{"x" => Ferrox.tensor([1, 2]), "y" => Ferrox.tensor(0.5)}
      iex> tensors |> Ferrox.Npz.encode!() |> Ferrox.Npz.decode!() == tensors
      true

  """

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.{Npy, Tensor}

  @doc """
  The tensors of an archive, by their names.

  ## Options

    * `:promotion` - the system, see `Ferrox.Npy.decode!/2`

  ## Examples

      iex> Ferrox.Npz.decode!("no archive")
      ** (ArgumentError) npz: the data are no archive of the zip format, or damaged

  """
  @spec decode!(binary, keyword) :: %{String.t() => Tensor.t()}
  def decode!(archive, opts \\ [])

  def decode!(archive, opts) when is_binary(archive) do
    for {name, data} <- files(archive), into: %{} do
      unless Path.extname(name) == ".npy" do
        raise ArgumentError, "npz: expected files named *.npy, got: #{inspect(name)}"
      end

      {Path.rootname(name), Npy.decode!(data, opts)}
    end
  end

  def decode!(other, _opts),
    do: raise(ArgumentError, "npz: expected a binary, got: #{inspect(other)}")

  # The names and the data of the files in an archive, as its directory at the end lists them. OTP's :zip
  # goes by the headers before the files, whose sizes NumPy leaves to the directory.
  defp files(archive) do
    with {at, _} <- :binary.matches(archive, "PK\x05\x06") |> List.last(),
         <<_::binary-bound_size(at), "PK\x05\x06", _::48, count::16-little, size::32-little,
           start::32-little, comment::16-little, _::binary-size(comment)>> <- archive,
         <<_::binary-bound_size(start), directory::binary-bound_size(size), _::binary>> <- archive do
      entries(directory, count, archive)
    else
      _ -> malformed!()
    end
  end

  defp entries(_directory, 0, _archive), do: []

  defp entries(
         <<"PK\x01\x02", _::32, flags::16-little, method::16-little, _::32, crc::32-little,
           packed::32-little, size::32-little, name_size::16-little, extra::16-little,
           comment::16-little, _::64, offset::32-little, name::binary-size(name_size),
           _::binary-size(extra), _::binary-size(comment), rest::binary>>,
         count,
         archive
       ) do
    if Bitwise.band(flags, 1) == 1, do: raise(ArgumentError, "npz: the archive is encrypted")

    with <<_::binary-bound_size(offset), "PK\x03\x04", _::176, name_size::16-little,
           extra::16-little, _::binary-size(name_size), _::binary-size(extra),
           data::binary-bound_size(packed),
           _::binary>> <-
           archive,
         data when is_binary(data) <- unpack(method, data, size),
         true <- byte_size(data) == size and :erlang.crc32(data) == crc do
      [{name, data} | entries(rest, count - 1, archive)]
    else
      _ -> malformed!()
    end
  end

  defp entries(_directory, _count, _archive), do: malformed!()

  # The data of a file that is stored or deflated, or nil.
  defp unpack(0, data, _size), do: data

  defp unpack(8, data, size) do
    stream = :zlib.open()

    try do
      :ok = :zlib.inflateInit(stream, -15)
      inflate(:zlib.safeInflate(stream, data), stream, [], size)
    rescue
      ErlangError -> nil
    after
      :zlib.close(stream)
    end
  end

  defp unpack(_method, _data, _size), do: nil

  # No more than the size that the directory names.
  defp inflate({done?, data}, stream, before, size) do
    left = size - IO.iodata_length(data)

    cond do
      left < 0 -> nil
      done? == :finished -> IO.iodata_to_binary([before | data])
      true -> inflate(:zlib.safeInflate(stream, []), stream, [before | data], left)
    end
  end

  @spec malformed!() :: no_return
  defp malformed!,
    do: raise(ArgumentError, "npz: the data are no archive of the zip format, or damaged")

  @doc """
  The archive of tensors, given as a map or a keyword list.

  ## Options

    * `:compressed` - `false` by default

  ## Examples

      iex> archive = Ferrox.Npz.encode!([x: Ferrox.iota({1000})], compressed: true)
      iex> byte_size(archive) < 4000
      true

  """
  @spec encode!(Enumerable.t(), keyword) :: binary
  def encode!(tensors, opts \\ []) do
    opts = Ferrox.Operands.options!(opts, [:compressed], :npz)
    compressed? = Ferrox.Operands.boolean!(opts, :compressed, :npz)
    files = for entry <- entries!(tensors), do: file!(entry)
    names = for {name, _data} <- files, do: name

    if names != Enum.uniq(names) do
      raise ArgumentError, "npz: a name is given twice: #{inspect(hd(names -- Enum.uniq(names)))}"
    end

    compress = if compressed?, do: :all, else: []
    {:ok, {_name, archive}} = :zip.zip(~c"tensors.npz", files, [:memory, compress: compress])
    archive
  end

  defp entries!(tensors) when is_map(tensors) and not is_struct(tensors), do: Map.to_list(tensors)
  defp entries!(tensors) when is_list(tensors), do: tensors

  defp entries!(other) do
    raise ArgumentError,
          "npz: expected a map or a keyword list of tensors, got: #{inspect(other)}"
  end

  defp file!({name, %Tensor{} = tensor}) when is_atom(name) or is_binary(name) do
    name = to_string(name)

    if name == "" or not String.valid?(name) or Path.type(name) != :relative or
         ".." in Path.split(name) do
      raise ArgumentError, "npz: #{inspect(name)} is no name of a file in an archive"
    end

    {String.to_charlist(name <> ".npy"), tensor |> Npy.encode!() |> IO.iodata_to_binary()}
  end

  defp file!(other) do
    raise ArgumentError, "npz: expected a name and a tensor, got: #{inspect(other)}"
  end
end
