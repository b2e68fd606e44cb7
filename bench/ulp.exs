# How far functions of f64 and of complex numbers are from the exact result, in units in
# the last place: the largest error over inputs that are drawn at random, the same in every run.
#
#     MIX_ENV=prod mix run bench/ulp.exs [COUNT]
#
# COUNT is how many inputs for each function and type, 2,000 by default. The exact results
# are those of mpmath, which the `python3` on the PATH, or PYTHON, must have beside NumPy.
# For types of up to 32 bits every input can be tried: native/ferrox_core/examples/ulp.rs.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Ulp do
  @unary ~w(exp expm1 log log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh
            acosh atanh sigmoid erf erfc erf_inv)a
  # What Nx defines for real numbers only.
  @real ~w(cbrt erf erfc erf_inv atan2)a

  def run(args) do
    count = args |> List.first("2000") |> String.to_integer()
    peer = Bench.peer() || raise "NumPy isn't there"
    Bench.setup(peer, "exec(open('#{Path.join(__DIR__, "ulp.py")}').read())")
    base = Path.join(System.tmp_dir!(), "ferrox_ulp_#{System.pid()}")
    IO.puts("function   type     inputs    max ulp  worst at")

    for type <- [:f64, :c64, :c128],
        {function, arity} <- Enum.map(@unary, &{&1, 1}) ++ [pow: 2, atan2: 2],
        type == :f64 or function not in @real do
      :rand.seed(:exsss, 1)
      inputs = for side <- 1..arity, do: input(type, count, {function, side})

      files =
        for {tensor, k} <- Enum.with_index(inputs ++ [apply(Ferrox, function, inputs)]) do
          path = "#{base}_#{k}"
          File.write!(path, Ferrox.to_binary(tensor))
          path
        end

      list = Enum.map_join(files, ", ", &"'#{&1}'")

      [within, worst, at] =
        peer
        |> Bench.value("ulp('#{function}', '#{type}', [#{list}])")
        |> String.split(" ", parts: 3)

      Enum.each(files, &File.rm!/1)

      IO.puts([
        String.pad_trailing("#{function}", 11),
        String.pad_trailing("#{type}", 6),
        String.pad_leading(within, 9),
        String.pad_leading(worst, 11),
        "  ",
        at
      ])
    end
  end

  # Half of them of any magnitude, half near one.
  defp input(type, count, place) do
    parts = if type == :f64, do: 1, else: 2
    values = for k <- 1..count, _ <- 1..parts, do: value(rem(k, 2), place)
    bits = if type == :c64, do: 32, else: 64
    bytes = for x <- values, into: <<>>, do: <<x::float-size(bits)-native>>
    Ferrox.from_binary(bytes, type)
  end

  # Exponents of a power so that most are within the range.
  defp value(_, {:pow, 2}), do: 8 * :rand.normal()
  defp value(0, _), do: 2 * :rand.uniform() - 1
  defp value(1, _), do: :rand.normal() * :math.pow(2, 60 * :rand.uniform() - 30)
end

Bench.Ulp.run(System.argv())
