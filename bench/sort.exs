# Sorts beside NumPy's, from short rows to one long one, in one run.
#
#     MIX_ENV=prod mix run bench/sort.exs
#
# NumPy is taken from the `python3` on the PATH, or from PYTHON. Nx isn't needed.
# bench/callbacks.exs compares with Nx.BinaryBackend.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Sort do
  alias Ferrox.Native

  @rounds 7

  def run, do: Bench.beside_numpy(@rounds, &compare/1)

  defp compare(peer) do
    for {type, kind} <- [{{:f, 32}, "f4"}, {{:f, 64}, "f8"}, {{:s, 32}, "i4"}, {{:u, 8}, "u1"}],
        {shape, axis} <- [{{1_000}, 0}, {{1_000, 100}, 1}, {{300, 300}, 0}, {{1_000_000}, 0}] do
      {_, bits} = type
      data = data(type, Native.size(shape))
      operand = {type, shape, data}
      path = Path.join(System.tmp_dir!(), "ferrox_bench_sort_#{System.pid()}")
      File.write!(path, data)

      Bench.setup(
        peer,
        "a = np.fromfile(#{inspect(path)}, '#{kind}').reshape(#{Bench.dims(shape)})"
      )

      File.rm!(path)

      for {name, ours, theirs, type} <- [
            {"sort", fn -> Native.sort(axis, false, operand) end, "np.sort(a, axis=#{axis})",
             type},
            {"argsort", fn -> Native.argsort({:s, 64}, axis, false, operand) end,
             "np.argsort(a, axis=#{axis}, kind='stable')", {:s, 64}}
          ] do
        Bench.check!(peer, theirs, %Ferrox.Tensor{type: type, shape: shape, data: ours.()})
        count = max(div(300_000, Native.size(shape)), 1)
        times = Bench.medians_beside(@rounds, peer, {ours, count}, {"r = " <> theirs, count})
        name = "#{name} #{kind} (#{bits}) #{inspect(shape)} along #{axis}"
        Bench.times_row(name, times, 1.0e6)
      end
    end
  end

  # Everywhere in the type, the same in every run.
  defp data(type, size) do
    :rand.seed(:exsss, {1, 2, 3})
    for _ <- 1..size, into: <<>>, do: element(type)
  end

  defp element({:f, bits}), do: <<:rand.normal()::float-size(bits)-native>>
  defp element({_, bits}), do: <<:rand.uniform(1_000_000_007)::size(bits)-native>>
end

Bench.Sort.run()
