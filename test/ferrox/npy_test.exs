defmodule Ferrox.NpyTest do
  use ExUnit.Case, async: true

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.{Npy, Tensor}

  doctest Npy

  @fixtures Path.expand("../fixtures/npy", __DIR__)

  # Those of NumPy's types that Ferrox has.
  @types [u: 8, u: 16, u: 32, u: 64, s: 8, s: 16, s: 32, s: 64] ++
           [f: 16, f: 32, f: 64, c: 64, c: 128]

  defp fixture(name), do: File.read!(Path.join(@fixtures, name <> ".npy"))

  defp encode(tensor), do: tensor |> Npy.encode!() |> IO.iodata_to_binary()

  # A file of version 1.0 with that header, whatever it says.
  defp file(header, data \\ ""),
    do: <<"\x93NUMPY", 1, 0, byte_size(header)::16-little, header::binary, data::binary>>

  defp header(fields \\ []) do
    fields = Keyword.merge([descr: "'<f4'", order: "False", shape: "(2, 3)"], fields)

    "{'descr': #{fields[:descr]}, 'fortran_order': #{fields[:order]}, 'shape': #{fields[:shape]}, }\n"
  end

  defp refuse(file, message) do
    error = assert_raise ArgumentError, fn -> Npy.decode!(file) end
    assert error.message =~ message
    assert String.starts_with?(error.message, "npy: ")
    assert String.valid?(error.message)
  end

  describe "decode!/1" do
    test "reads what NumPy writes, in every type" do
      for {kind, bits} = type <- @types do
        code = %{u: "u", s: "i", f: "f", c: "c"}[kind] <> Integer.to_string(div(bits, 8))
        first = if kind == :u, do: 0, else: -2
        expected = Enum.map(0..5, &(first + &1))

        assert %Tensor{type: ^type, shape: {2, 3}} = tensor = Npy.decode!(fixture(code))
        assert tensor == expected |> Ferrox.tensor(type: type) |> Ferrox.reshape({2, 3})
      end
    end

    test "reads booleans as u8" do
      assert Npy.decode!(fixture("bool")) == Ferrox.tensor([1, 0, 1], type: :u8)
    end

    test "reads scalars" do
      assert Npy.decode!(fixture("scalar")) == Ferrox.tensor(2.5, type: :f64)
    end

    test "reads the other byte order" do
      assert Npy.decode!(fixture("big_endian_i4")) == Ferrox.tensor([1, -2, 1_073_741_824])
      assert Ferrox.to_list(Npy.decode!(fixture("big_endian_f8"))) == [0.1, :neg_infinity, :nan]

      parts = for z <- Ferrox.to_list(Npy.decode!(fixture("big_endian_c8"))), do: {z.re, z.im}
      assert parts == [{1.0, 2.0}, {-3.0, -4.0}]
    end

    test "reads column-major order" do
      assert Npy.decode!(fixture("fortran")) == Ferrox.iota({2, 3, 4})
      assert Npy.decode!(fixture("fortran_big_endian")) == Ferrox.iota({2, 3}, type: :u16)

      # With a single axis the orders are the same.
      data = <<1::32-little, 2::32-little>>
      file = file(header(descr: "'<i4'", order: "True", shape: "(2,)"), data)
      assert Npy.decode!(file) == Ferrox.tensor([1, 2])
    end

    test "reads versions 2.0 and 3.0" do
      for name <- ["version_2", "version_3"] do
        assert Npy.decode!(fixture(name)) == Ferrox.iota({2, 3}, type: :f32)
      end
    end

    test "does not copy data that need no change" do
      file = fixture("long")
      tensor = Npy.decode!(file)
      assert tensor == Ferrox.iota({100}, type: :s16)
      assert :binary.referenced_byte_size(tensor.data) == byte_size(file)
    end

    test "reads a header in any layout that Python reads" do
      data = <<1::32-little, 2::32-little>>

      for header <- [
            ~s|{"shape":(2,),"fortran_order":False,"descr":"<i4"}|,
            ~s|\t{ 'descr' : '<i4' ,\n 'shape' : ( 2 , ) , 'fortran_order' : False } \r\n|,
            # As Python 2 writes it.
            ~s|{'descr': '<i4', 'fortran_order': False, 'shape': (2L,), }|,
            ~s|{'descr': '=i4', 'fortran_order': False, 'shape': (2,), }|,
            ~s|{'descr': 'i4', 'fortran_order': False, 'shape': (2,), }|,
            ~s|{'descr': ('<i4'), 'fortran_order': False, 'shape': ((2),)}|
          ] do
        assert Npy.decode!(file(header, data)) == Ferrox.tensor([1, 2])
      end
    end

    test "says why a type of NumPy is refused" do
      refuse(fixture("strings"), ~s(descr "<U3" is not supported: these are strings))
      refuse(fixture("bytes"), ~s(descr "|S3" is not supported: these are strings))
      refuse(fixture("dates"), "save as int64")
      refuse(fixture("structured"), "structured arrays are not supported")
      refuse(fixture("long_double"), "save as float64")
      refuse(fixture("bfloat16"), "save as float32")
      refuse(file(header(descr: "'|O'")), "Python objects")
      refuse(file(header(descr: "'<f1'")), "save as float32")
      refuse(file(header(descr: "'<c32'")), "save as complex128")
      refuse(file(header(descr: "'<V8'")), "raw bytes")
      refuse(file(header(descr: "'<q9'")), "no such type is known")
      refuse(file(header(descr: "''")), "no such type is known")
      refuse(file(header(descr: "4")), "descr must be a string, got: 4")
      refuse(file(header(descr: "('<f4', (2,))")), "descr must be a string, got: {\"<f4\",")
    end

    test "says what is wrong with a file" do
      refuse("", "not a .npy file")
      refuse("PK\x03\x04", "not a .npy file")
      refuse("\x93NUMPX" <> binary_part(fixture("f4"), 6, 146), "not a .npy file")
      refuse("\x93NUMPY", "not a .npy file")
      refuse("\x93NUMPY\x04\x00\x00\x00\x00\x00", "version 4.0 of the format is unknown")
      refuse("\x93NUMPY\x01\x01\x00\x00", "version 1.1 of the format is unknown")
      refuse("\x93NUMPY\x01\x00", "ends within the header")
      refuse("\x93NUMPY\x01\x00\x05\x00{}", "ends within the header")
      refuse("\x93NUMPY\x02\x00\x05\x00", "ends within the header")
      refuse("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF{}", "a header of 4294967295 bytes is longer")

      refuse(file(""), "the header ends too early")
      refuse(file("{'descr': '<f4'"), "the header ends too early")
      refuse(file("{'descr': '<f4"), "can't be read from \"<f4\" on")
      refuse(file("{'descr' '<f4'}"), "can't be read from \"'<f4'}\" on")
      refuse(file("{'shape': (,)}"), "can't be read from \",)}\" on")
      refuse(file("{'shape': f(2)}"), "can't be read from \"f(2)}\" on")
      refuse(file(header() <> "x"), "can't be read from \"x\" on")
      refuse(file("(1, 2)"), "the header is not a dict, got: {1, 2}")
      refuse(file("{}"), ~s(the header lacks "descr", "fortran_order", "shape"))
      refuse(file("{'descr': '<f4', 'shape': ()}"), ~s(the header lacks "fortran_order"))
      refuse(file("{'descr': 1, 'descr': 2}"), "the header names a key twice")

      refuse(
        file("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': None}"),
        ~s(the header has the unknown key "x")
      )

      refuse(file(header(order: "0")), "fortran_order must be True or False, got: 0")
      refuse(file(header(shape: "6")), "shape must be a tuple, got: 6")
      refuse(file(header(shape: "(6)")), "shape must be a tuple, got: 6")
      refuse(file(header(shape: "[6]")), "shape must be a tuple, got: [6]")
      refuse(file(header(shape: "(2, '3')")), "shape must hold integers, got: \"3\"")
      refuse(file(header(shape: "(2, True)")), "shape must hold integers, got: true")
      refuse(file(header(shape: "(2, -3)")), "the shape has the negative size -3")
      refuse(file(header(shape: "(2, 03)")), "can't be read from \"03)")
      refuse(file(header(shape: "(2, -03)")), "can't be read from \"03)")
      refuse(file(header(shape: "(02L, 3)")), "can't be read from \"02L")
      refuse(file(header(shape: "(2, 00)")), "the array is empty")
      refuse(file(header(shape: "(2, 0)")), "the array is empty")
      refuse(fixture("empty"), "the array is empty")

      huge = "(4294967296, 4294967296, 4294967296)"
      refuse(file(header(shape: huge)), "does not fit into memory")

      ones = "(" <> String.duplicate("1, ", 65) <> ")"
      refuse(file(header(shape: ones)), "65 axes are more than the 64 that NumPy has")

      f4 = fixture("f4")
      about = "the data of shape {2, 3} and type f32"
      refuse(binary_part(f4, 0, byte_size(f4) - 1), "the file ends 1 bytes before #{about}")
      refuse(f4 <> "xy", "2 bytes follow #{about}")
    end

    test "shows no more of a file than an error can do with" do
      long = String.duplicate("x", 5000)

      for header <- [long, "'#{long}'", header(descr: "'#{long}'"), "{'#{long}': 1}"] do
        error = assert_raise ArgumentError, fn -> Npy.decode!(file(header)) end
        assert byte_size(error.message) < 300
      end
    end

    test "raises nothing but ArgumentError, wherever a file is cut or changed" do
      for name <- ["f4", "version_2", "fortran", "scalar", "structured"] do
        file = fixture(name)

        for length <- 0..(byte_size(file) - 1) do
          assert_raise ArgumentError, fn -> Npy.decode!(binary_part(file, 0, length)) end
        end

        for at <- 0..(byte_size(file) - 1), byte <- 0..255 do
          <<before::binary-bound_size(at), _, rest::binary>> = file
          assert sound?(<<before::binary, byte, rest::binary>>)
        end
      end
    end

    test "makes no atoms of what a file says" do
      for n <- 1..200 do
        name = "ferrox_npy_atom_#{n}"
        assert sound?(file(header(descr: "'<#{name}'")))
        assert sound?(file("{'#{name}': #{name}}"))

        # How many atoms there are says nothing: other tests run at the same time.
        for text <- [name, "<" <> name, "'#{name}'"],
            do: assert_raise(ArgumentError, fn -> String.to_existing_atom(text) end)
      end
    end

    defp sound?(file) do
      %Tensor{data: data, type: {_, bits}, shape: shape} = Npy.decode!(file)
      bit_size(data) == Tuple.product(shape) * bits
    rescue
      ArgumentError -> true
    end
  end

  describe "encode!/1" do
    test "writes the bytes that NumPy writes" do
      for name <- ~w(u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16 scalar long) do
        assert name |> fixture() |> Npy.decode!() |> encode() == fixture(name)
      end
    end

    test "is undone by decode!/1 in every type" do
      for type <- @types, shape <- [{}, {1}, {7}, {3, 1}, {2, 3, 4}, {1, 1, 1, 1, 12_345}] do
        tensor = Ferrox.as_type(Ferrox.iota(shape), type)
        file = encode(tensor)
        assert Npy.decode!(file) == tensor
        assert rem(byte_size(file) - byte_size(tensor.data), 64) == 0
      end
    end

    test "keeps the bits of NaN and of negative zero" do
      data = <<0x7FC00001::32-native, 0xFF800001::32-native, 0x80000000::32-native>>
      assert Npy.decode!(encode(Ferrox.from_binary(data, :f32))).data == data
    end

    test "does not copy the data" do
      tensor = Ferrox.iota({1000})
      assert [_header, data] = Npy.encode!(tensor)
      assert :erts_debug.same(data, tensor.data)
    end

    test "says what to cast to where NumPy has no such type" do
      for {type, wider} <- [
            u2: :u8,
            u4: :u8,
            s2: :s8,
            s4: :s8,
            bf16: :f32,
            f8: :f16,
            f8_e4m3fn: :f16
          ] do
        tensor = Ferrox.tensor([1], type: type)
        message = "npy: NumPy has no #{type}; cast with Ferrox.as_type(tensor, :#{wider})"
        error = assert_raise ArgumentError, fn -> Npy.encode!(tensor) end
        assert error.message =~ message
        assert tensor |> Ferrox.as_type(wider) |> encode() |> Npy.decode!()
      end
    end

    test "refuses more axes than NumPy has" do
      most = Ferrox.reshape(Ferrox.tensor([1]), Tuple.duplicate(1, 64))
      assert Npy.decode!(encode(most)) == most

      more = Ferrox.reshape(most, Tuple.duplicate(1, 65))
      assert_raise ArgumentError, ~r/npy: 65 axes/, fn -> Npy.encode!(more) end
    end
  end
end
