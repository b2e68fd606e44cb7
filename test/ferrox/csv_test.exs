defmodule Ferrox.CsvTest do
  # Matrices as text: what is read and written, and where errors are. What NumPy's loadtxt reads is compared in
  # test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  doctest Ferrox.Csv

  alias Ferrox.Csv

  defp decode(text, opts \\ []), do: text |> Csv.decode!(opts) |> Ferrox.to_list()
  defp encode(tensor, opts \\ []), do: tensor |> Csv.encode!(opts) |> IO.iodata_to_binary()

  test "numbers of every form" do
    assert decode("1,-2,+3,007") == [[1, -2, 3, 7]]
    floats = "0.5,.5,5.,-.25,1e3,1E-2,+1.5e+2,2.e0"
    assert decode(floats, type: :f64) == [[0.5, 0.5, 5.0, -0.25, 1000.0, 0.01, 150.0, 2.0]]

    assert decode("nan,NaN,-nan,inf,+Inf,-inf,INFINITY,-infinity") ==
             [[:nan, :nan, :nan, :infinity, :infinity, :neg_infinity, :infinity, :neg_infinity]]

    # Floats of 64 bits keep every digit, and large integers are exact.
    assert decode("0.1,1.7976931348623157e308,2.2250738585072014e-308", type: :f64) ==
             [[0.1, 1.7976931348623157e308, 2.2250738585072014e-308]]

    assert decode("18446744073709551615,9007199254740993", type: :u64) ==
             [[18_446_744_073_709_551_615, 9_007_199_254_740_993]]
  end

  test "types are inferred as by tensor/2" do
    assert Csv.decode!("1,2").type == {:s, 32}
    assert Csv.decode!("1,2.0").type == {:f, 32}
    assert Csv.decode!("1,nan").type == {:f, 32}
    assert Csv.decode!("1,2", promotion: :numpy).type == {:s, 64}
    assert Csv.decode!("1,.5", promotion: :numpy).type == {:f, 64}
    assert Csv.decode!("1,0", type: :bool) == Ferrox.tensor([[true, false]], type: :bool)
    assert Csv.decode!("1,0", type: :u2) == Ferrox.tensor([[1, 0]], type: :u2)
  end

  test "ends of lines, empty lines, comments and spaces" do
    assert decode("1,2\r\n3,4\r\n") == [[1, 2], [3, 4]]
    assert decode("\n 1 ,\t2 \n\n3,4\n  \n") == [[1, 2], [3, 4]]
    assert decode("# a, b\n1,2 # first\n#3,4\n5,6") == [[1, 2], [5, 6]]
    assert decode("// a\n1,2// b", comment: "//") == [[1, 2]]
    assert decode("\uFEFF1,2") == [[1, 2]]
    assert decode("7") == [[7]]
    assert decode("1 2\t 3\n  4 5 6 ", delimiter: :whitespace) == [[1, 2, 3], [4, 5, 6]]
    assert decode("1;2", delimiter: ";") == [[1, 2]]
    assert decode("1::2", delimiter: "::") == [[1, 2]]
    assert decode("1\t\t2", delimiter: "\t", empty: 0) == [[1, 0, 2]]
  end

  test "some lines and columns" do
    text = "a,b,c\n1,x,2\n3,y,4"
    assert decode(text, skip_lines: 1, columns: [2, 0]) == [[2, 1], [4, 3]]
    assert decode(text, skip_lines: 2, columns: [0, 0]) == [[3, 3]]
    assert decode("1,,3\n,5,6", empty: :nan) == [[1.0, :nan, 3.0], [:nan, 5.0, 6.0]]
  end

  test "errors have the line and the column" do
    for {text, opts, message} <- [
          {"1,2\n\n3,4x", [], ~s(line 3, column 2: "4x" is no number)},
          {"1,2\r\n3,1_000", [], ~s(line 2, column 2: "1_000" is no number)},
          {"1,\"2\"", [], ~s(line 1, column 2: "\\"2\\"" is no number)},
          {"1,2+3j", [], ~s(line 1, column 2: "2+3j" is no number)},
          {"1,.", [], ~s(line 1, column 2: "." is no number)},
          {"1,e5", [], ~s(line 1, column 2: "e5" is no number)},
          {"1,0x10", [], ~s(line 1, column 2: "0x10" is no number)},
          {"1 2", [], ~s(line 1, column 1: "1 2" is no number)},
          {<<"1,", 255, 254>>, [], "line 1, column 2: <<255, 254>> is no number"},
          {"x,y\n1,2", [], ~s(line 1, column 1: "x" is no number)},
          {"1,,3", [], "line 1, column 2: the field is empty"},
          {"1,2,", [], "line 1, column 3: the field is empty"},
          {"1,2\n3,4,5", [], "line 2 has 3 fields where line 1 has 2"},
          {"a\n1,2\n\n3", [skip_lines: 1], "line 4 has 1 field where line 2 has 2"},
          {"1,2\n3,1e400", [],
           "line 2, column 2: 1e400 is out of the range of floats of 64 bits"},
          {"1,2\n3,99999999999", [],
           "line 2, column 2: 99999999999 does not fit s32; give a wider :type"},
          {"1,2\n3.5,4", [type: :s8],
           "line 2, column 1: 3.5 does not fit s8; give a float :type"},
          {"x,1\ny,-1", [columns: [1], type: :u8], "line 2, column 2: -1 does not fit u8"},
          {"1,2\n3,4", [type: :bool], "line 1, column 2: 2 does not fit bool"},
          {"", [], "there is no line with numbers"},
          {"# 1\n\n", [], "there is no line with numbers"},
          {"1,2", [columns: [2]], ":columns has 2, where lines have 2 fields, from 0 to 1"},
          {"1", [columns: []], ":columns must be a list of integers from 0 on, got: []"},
          {"1", [columns: [-1]], ":columns must be a list of integers"},
          {"1", [skip_lines: -1], ":skip_lines must be an integer that is not negative, got: -1"},
          {"1", [delimiter: "."], ":delimiter must have nothing that numbers or lines have"},
          {"1", [delimiter: ?,], ":delimiter must be a string or :whitespace, got: 44"},
          {"1", [comment: ""], ":comment must be a string or nil"},
          {"1", [empty: "0"], ":empty must be a number, got: \"0\""},
          {"1", [header: true], "unknown option :header"},
          {:file, [], "expected the contents of a file, got: :file"}
        ] do
      raises("csv: " <> message, fn -> Csv.decode!(text, opts) end)
    end
  end

  test "what is written is read as the same numbers, in every type" do
    :rand.seed(:exsss, 3)

    for type <- real_types() ++ [:bool], shape <- [{3, 2}, {4, 1}, {1, 5}] do
      t = for(_ <- 1..Tuple.product(shape), do: :rand.normal()) |> Ferrox.tensor(type: :f64)
      t = t |> Ferrox.multiply(3) |> Ferrox.reshape(shape) |> Ferrox.as_type(type)
      assert t |> encode() |> Csv.decode!(type: type) == t
      assert t |> encode(delimiter: "\t") |> Csv.decode!(type: type, delimiter: "\t") == t

      assert t
             |> encode(delimiter: :whitespace)
             |> Csv.decode!(type: type, delimiter: :whitespace) == t
    end

    t = Ferrox.tensor([[:nan, :infinity], [:neg_infinity, 5.0e-324]], type: :f64)
    assert encode(t) == "nan,inf\n-inf,5.0e-324\n"
    assert t |> encode() |> Csv.decode!(type: :f64) == t
    assert encode(Ferrox.tensor([1, 2])) == "1\n2\n"
    assert encode(Ferrox.tensor([true, false], type: :bool)) == "1\n0\n"
  end

  test "what can't be written is refused" do
    for {tensor, opts, message} <- [
          {Ferrox.tensor(1), [], "a vector or a matrix is written, got a tensor of shape {}"},
          {Ferrox.iota({2, 2, 2}), [],
           "a vector or a matrix is written, got a tensor of shape {2, 2, 2}; see Ferrox.reshape/2"},
          {Ferrox.tensor([Ferrox.Complex.new(1, 2)]), [], "complex numbers aren't written"},
          {[1], [], "expected a Ferrox.Tensor, got: [1]"},
          {Ferrox.iota({2, 2}), [header: ["a"]],
           ":header must be a list of strings, one for each of 2 columns"},
          {Ferrox.iota({2}), [header: ["a,b"]], ~s(the name "a,b" has a delimiter)},
          {Ferrox.iota({2}), [delimiter: "\n"],
           ":delimiter must have nothing that numbers or lines have"},
          {Ferrox.iota({2}), [comment: "#"], "unknown option :comment"}
        ] do
      raises("csv: " <> message, fn -> Csv.encode!(tensor, opts) end)
    end
  end

  test "files" do
    path =
      Path.join(System.tmp_dir!(), "ferrox_csv_test_#{System.unique_integer([:positive])}.csv")

    on_exit(fn -> File.rm(path) end)
    t = Ferrox.tensor([[0.1, 2.0]], type: :f64)
    assert Ferrox.save_csv!(t, path, header: ["a", "b"]) == :ok
    assert Ferrox.load_csv!(path, type: :f64, skip_lines: 1) == t
    File.rm!(path)
    assert_raise File.Error, fn -> Ferrox.load_csv!(path) end
  end
end
