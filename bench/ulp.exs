# How far functions of f64 and of complex numbers are from the exact result, in units in the last
# place: the largest error over inputs of every binade and either sign, close to zeros, poles,
# branch cuts and where results leave the range, and drawn at random, the same in every run.
#
#     MIX_ENV=prod mix run bench/ulp.exs [--type TYPE] [--guide] [FUNCTION ...]
#
# prints a line for each function and type, of all types or one of f64, c64 and c128; with --guide
# it also writes the tables of guides/accuracy.md. The exact results are those of mpmath, which the
# `python3` on the PATH, or PYTHON, must have beside NumPy. All functions take some twenty minutes.
# For types of up to 32 bits every input can be tried: native/ferrox_core/examples/ulp.rs.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Ulp do
  @unary ~w(exp expm1 log log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh
            acosh atanh sigmoid erf erfc erf_inv)a
  @binary ~w(pow atan2)a
  # What Nx defines for real numbers only.
  @real ~w(erf erfc erf_inv atan2)a
  @types ~w(f64 c64 c128)a

  def run(args) do
    {opts, names} = OptionParser.parse!(args, strict: [type: :string, guide: :boolean])
    types = if type = opts[:type], do: [String.to_existing_atom(type)], else: @types
    peer = Bench.peer() || raise "NumPy isn't there"
    Bench.setup(peer, "exec(open('#{Path.join(__DIR__, "ulp.py")}').read())")
    IO.puts("function type   inputs   max ulp  of |f|  worst at")

    rows =
      for type <- types,
          function <- @unary ++ @binary,
          names == [] or to_string(function) in names,
          type == :f64 or function not in @real do
        [count, worst, distance, at] = measure(peer, function, type)
        far = if type == :f64, do: "", else: distance
        columns = [{to_string(function), -8}, {to_string(type), -5}, {count, 8}]
        columns = columns ++ [{worst, 9}, {far, 7}, {"  " <> at, 0}]
        IO.puts(for {text, width} <- columns, do: [pad(text, width), " "])
        {type, function, worst, distance, String.to_integer(count)}
      end

    if opts[:guide], do: guide(rows)
  end

  defp pad(text, width) when width < 0, do: String.pad_trailing(text, -width)
  defp pad(text, width), do: String.pad_leading(text, width)

  # How many inputs have a result, the largest error of a part and of the absolute value, and
  # where the former is.
  defp measure(peer, function, type) do
    base = Path.join(System.tmp_dir!(), "ferrox_ulp_#{System.pid()}")
    sides = if function in @binary, do: 2, else: 1
    files = for side <- 1..sides, do: "#{base}_#{side}"
    result = base <> "_result"
    Bench.value(peer, "inputs('#{function}', '#{type}', #{list(files)})")
    inputs = for file <- files, do: file |> File.read!() |> Ferrox.from_binary(type)
    File.write!(result, Ferrox.to_binary(apply(Ferrox, function, inputs)))
    answer = Bench.value(peer, "ulp('#{function}', '#{type}', #{list(files ++ [result])})")
    Enum.each([result | files], &File.rm!/1)
    String.split(answer, " ", parts: 4)
  end

  defp list(files), do: "[" <> Enum.map_join(files, ", ", &"'#{&1}'") <> "]"

  # Each table stands between two comments.
  defp guide(rows) do
    path = Path.join(__DIR__, "../guides/accuracy.md")
    reals = for {:f64, function, worst, _, count} <- rows, do: [code(function), worst, "#{count}"]

    complexes =
      for {:c64, function, single, _, _} <- rows,
          {:c128, ^function, double, distance, count} <- rows,
          do: [code(function), single, double, distance, "#{count}"]

    text =
      path
      |> File.read!()
      |> put("f64", ["Function", "Largest error", "Inputs"], reals)
      |> put(
        "complex",
        ["Function", "c64", "c128", "c128, of \\|f\\|", "Inputs of c128"],
        complexes
      )

    File.write!(path, text)
  end

  defp code(function), do: "`#{function}`"

  defp put(text, name, head, rows) do
    table = Enum.map_join([head, Enum.map(head, fn _ -> "---" end) | rows], "\n", &line/1)
    [before, rest] = String.split(text, "<!-- #{name} -->\n", parts: 2)
    [_, rest] = String.split(rest, "<!-- end -->", parts: 2)
    before <> "<!-- #{name} -->\n" <> table <> "\n<!-- end -->" <> rest
  end

  defp line(cells), do: "| " <> Enum.join(cells, " | ") <> " |"
end

Bench.Ulp.run(System.argv())
