defmodule Ferrox.NpzTest do
  use ExUnit.Case, async: true

  doctest Ferrox.Npz

  alias Ferrox.Npz

  @fixtures Path.expand("../fixtures/npz", __DIR__)

  for file <- ~w(stored.npz compressed.npz) do
    test "#{file} of NumPy is read" do
      expected = %{
        "x" => Ferrox.iota({2, 3}),
        "y" => Ferrox.tensor([0.5, -1.5], type: :f64),
        "z" => Ferrox.tensor(true, type: :bool)
      }

      assert Ferrox.load_npz!(Path.join(@fixtures, unquote(file)), promotion: :numpy) == expected
    end
  end

  test "what was written is read, compressed or not" do
    tensors = %{"a" => Ferrox.iota({100, 3}, type: :f32), "b/c" => Ferrox.tensor(1)}

    for opts <- [[], [compressed: true]],
        do: assert(tensors |> Npz.encode!(opts) |> Npz.decode!() == tensors)
  end

  test "what can't be is refused" do
    for {message, fun} <- [
          {"no archive of the zip format", fn -> Npz.decode!(<<0::800>>) end},
          {"expected a binary", fn -> Npz.decode!(:x) end},
          {"expected a map or a keyword list", fn -> Npz.encode!(1) end},
          {"expected a name and a tensor, got: {:a, 1}", fn -> Npz.encode!(a: 1) end},
          {"a name is given twice",
           fn -> Npz.encode!([{"a", Ferrox.iota({1})}, {:a, Ferrox.iota({1})}]) end},
          {"is no name of a file", fn -> Npz.encode!(%{"../a" => Ferrox.iota({1})}) end},
          {"expected files named *.npy",
           fn ->
             {:ok, {_, archive}} = :zip.zip(~c"a", [{~c"a.txt", "a"}], [:memory])
             Npz.decode!(archive)
           end}
        ] do
      error = assert_raise(ArgumentError, fun)
      assert Exception.message(error) =~ message
    end
  end

  test "a broken archive is refused" do
    archive = File.read!(Path.join(@fixtures, "compressed.npz"))

    for size <- 0..(byte_size(archive) - 1)//7 do
      assert_raise ArgumentError, fn -> Npz.decode!(binary_part(archive, 0, size)) end
    end
  end
end
