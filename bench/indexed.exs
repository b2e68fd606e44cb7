# Padding and operations on indices beside NumPy's, in one run.
#
#     MIX_ENV=prod mix run bench/indexed.exs
#
# NumPy is taken from the `python3` on the PATH, or from PYTHON. Nx isn't needed.
# bench/callbacks.exs compares with Nx.BinaryBackend.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Indexed do
  alias Ferrox.Native

  @rounds 7
  @f32 {:f, 32}

  def run, do: Bench.beside_numpy(@rounds, &compare/1)

  defp compare(peer) do
    for n <- [1_000, 1_000_000] do
      side = n |> :math.sqrt() |> round()
      [vector, places] = [{{n}, @f32}, {{n}, {:s, 32}}]
      matrix = {{side, side}, @f32}

      Bench.setup(
        peer,
        "v = (np.arange(#{n}) % 1009).astype('f4'); i = np.arange(#{n}) * 7919 % #{n}"
      )

      Bench.setup(
        peer,
        "m = (np.arange(#{side * side}) % 1009).astype('f4').reshape(#{side}, #{side})"
      )

      Bench.setup(peer, "rows = np.arange(#{side}) * 7919 % #{side}; i = i.astype('i4')")

      v = operand(vector, fn k -> rem(k, 1009) end)
      i = operand(places, fn k -> rem(k * 7919, n) end)
      m = operand(matrix, fn k -> rem(k, 1009) end)
      rows = operand({{side}, {:s, 32}}, fn k -> rem(k * 7919, side) end)
      i2 = put_elem(i, 1, {n, 1})
      zero = {@f32, {}, <<0.0::float-32-native>>}
      wider = {side + 3, side + 3}

      for {name, shape, ours, theirs} <- [
            {"gather", {n}, fn -> Native.gather({n}, [0], v, i2) end, "v[i]"},
            {"take rows", {side, side}, fn -> Native.take({side, side}, 0, m, rows) end,
             "np.take(m, rows, axis=0)"},
            {"take columns", {side, side}, fn -> Native.take({side, side}, 1, m, rows) end,
             "np.take(m, rows, axis=1)"},
            {"take_along_axis", {n}, fn -> Native.take_along_axis(0, v, i) end,
             "np.take_along_axis(v, i, 0)"},
            {"indexed_add", {n}, fn -> Native.indexed(:indexed_add, @f32, [0], v, i2, v) end,
             "(lambda r: (np.add.at(r, i, v), r)[1])(v.copy())"},
            {"indexed_put", {n}, fn -> Native.indexed(:indexed_put, @f32, [0], v, i2, v) end,
             "(lambda r: (r.__setitem__(i, v), r)[1])(v.copy())"},
            {"pad", wider, fn -> Native.pad(@f32, wider, [{1, 2, 0}, {2, 1, 0}], m, zero) end,
             "np.pad(m, ((1, 2), (2, 1)))"}
          ] do
        Bench.check!(peer, theirs, %Ferrox.Tensor{type: @f32, shape: shape, data: ours.()})
        count = max(div(3_000_000, n), 3)

        times = Bench.medians_beside(@rounds, peer, {ours, count}, {"r = " <> theirs, count})
        Bench.times_row("#{name}, #{n} elements", times, 1.0e6)
      end
    end
  end

  defp operand({shape, {kind, bits} = type}, fun) do
    data =
      for k <- 0..(Native.size(shape) - 1), into: <<>> do
        if kind == :f,
          do: <<fun.(k)::float-size(bits)-native>>,
          else: <<fun.(k)::size(bits)-native>>
      end

    {type, shape, data}
  end
end

Bench.Indexed.run()
