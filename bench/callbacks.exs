# Every callback and block of Nx's backends, called through Nx on Ferrox and on
# Nx.BinaryBackend in one run, from one element to many.
#
#     MIX_ENV=prod mix run bench/callbacks.exs [NAME ...]
#
# Needs Nx on the code path. Prints BinaryBackend's time over Ferrox's for each
# size, and at the end what is below 1, or below 20 from 1,000 elements on.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Callbacks do
  @sizes [1, 16, 1_000, 10_000]
  # Beyond these a single call of BinaryBackend takes seconds.
  @longest 2.0

  def run(names) do
    unless Code.ensure_loaded?(Nx), do: raise("Nx is not on the code path")

    header = Enum.map(@sizes, &String.pad_leading("#{&1}", 12))
    IO.puts(["BinaryBackend / Ferrox, by elements ", header, "    us, Ferrox"])

    rows =
      for {name, make} <- cases(), names == [] or Enum.any?(names, &String.contains?(name, &1)) do
        row(name, make)
      end

    slow =
      for {name, ratios} <- rows,
          {n, ratio} <- ratios,
          ratio < if(n >= 1_000, do: 20, else: 1),
          do: "#{name} at #{n}: #{Float.round(ratio, 2)}"

    IO.puts("\n#{length(rows)} cases; below the goal: #{length(slow)}")
    Enum.each(slow, &IO.puts("  " <> &1))
  end

  defp row(name, make) do
    results =
      Enum.reduce_while(@sizes, [], fn n, acc ->
        case measure(make, n) do
          {theirs, _ours} = pair when is_float(theirs) and theirs > @longest ->
            {:halt, [{n, pair} | acc]}

          pair ->
            {:cont, [{n, pair} | acc]}
        end
      end)
      |> Enum.reverse()

    ratios = for {n, {theirs, ours}} <- results, theirs, do: {n, theirs / ours}
    columns = for n <- @sizes, do: column(List.keyfind(ratios, n, 0))
    {_, {_, ours}} = List.last(results)
    IO.puts([String.pad_trailing(name, 36), columns, Bench.pad(ours * 1.0e6)])
    {name, ratios}
  end

  defp column(nil), do: String.pad_leading("-", 12)
  defp column({_, ratio}), do: Bench.pad(ratio)

  defp measure(make, n) do
    [theirs, ours] =
      for backend <- [Nx.BinaryBackend, Ferrox.Backend] do
        {fun, args} = make.(n)
        args = Enum.map(args, &Nx.backend_copy(&1, backend))

        call = fn -> apply(fun, args) end
        Nx.global_default_backend(backend)
        once = time_once(backend, call)
        count = trunc(0.02 / max(once || 1.0, 1.0e-7)) |> max(1) |> min(20_000)
        rounds = if once && once > 0.5, do: 1, else: 5
        {backend, if(once, do: call), count, rounds}
      end
      |> interleaved()

    {theirs, ours}
  end

  # Nx.BinaryBackend fails where Ferrox doesn't, as in Fourier transforms of length
  # one: then there is nothing to compare with, and only Ferrox is timed.
  defp time_once(Nx.BinaryBackend, call) do
    Bench.time_once(call)
  rescue
    _ -> nil
  end

  defp time_once(_backend, call), do: Bench.time_once(call)

  defp interleaved(calls) do
    rounds = calls |> Enum.map(&elem(&1, 3)) |> Enum.min()

    Bench.medians(rounds, fn ->
      for {backend, call, count, _} <- calls do
        Nx.global_default_backend(backend)
        call && Bench.time(call, count) / count
      end
    end)
  end

  ## What is measured: a function and its operands, for about n elements

  defp cases do
    unary() ++ binary() ++ shapes() ++ reductions() ++ indexed() ++ windows() ++ linear()
  end

  defp floats(shape, low \\ 0.1, high \\ 0.9) do
    n = Tuple.product(shape)
    data = for i <- 0..(n - 1), into: <<>>, do: <<spread(i, low, high)::float-32-native>>
    Nx.from_binary(data, :f32, backend: Nx.BinaryBackend) |> Nx.reshape(shape)
  end

  # Without an order, and the same in every run.
  defp spread(i, low, high), do: low + rem(i * 7919 + 13, 1009) / 1009 * (high - low)

  defp integers(shape, max \\ 100) do
    n = Tuple.product(shape)
    data = for i <- 0..(n - 1), into: <<>>, do: <<rem(i * 7919 + 13, max)::32-native>>
    Nx.from_binary(data, :s32, backend: Nx.BinaryBackend) |> Nx.reshape(shape)
  end

  defp side(n), do: n |> :math.sqrt() |> round() |> max(1)

  defp unary do
    float = ~w(exp expm1 log log1p sigmoid cos sin tan cosh sinh tanh acos asin atan asinh atanh)a
    float = float ++ ~w(sqrt rsqrt cbrt erf erfc erf_inv negate abs sign floor ceil round)a
    float = float ++ ~w(is_nan is_infinity logical_not conjugate real imag phase)a

    for(op <- float, do: {"#{op} f32", fn n -> {&apply(Nx, op, [&1]), [floats({n})]} end}) ++
      [{"acosh f32", fn n -> {&Nx.acosh/1, [floats({n}, 1.0, 9.0)]} end}] ++
      for op <- ~w(bitwise_not population_count count_leading_zeros)a do
        {"#{op} s32", fn n -> {&apply(Nx, op, [&1]), [integers({n})]} end}
      end ++
      for {from, to} <- [f32: :s32, s32: :bf16, bf16: :f64] do
        {"as_type #{from} to #{to}",
         fn n -> {&Nx.as_type(&1, to), [Nx.as_type(floats({n}, 0, 90), from)]} end}
      end
  end

  defp binary do
    float = ~w(add subtract multiply divide pow atan2 min max remainder)a
    float = float ++ ~w(equal not_equal greater less greater_equal less_equal)a
    float = float ++ ~w(logical_and logical_or logical_xor)a
    integer = ~w(add pow quotient remainder bitwise_and bitwise_or bitwise_xor)a

    for(
      op <- float,
      do: {"#{op} f32", fn n -> {&apply(Nx, op, [&1, &2]), [floats({n}), floats({n})]} end}
    ) ++
      for op <- integer ++ [:left_shift, :right_shift] do
        {"#{op} s32",
         fn n -> {&apply(Nx, op, [&1, Nx.add(&2, 1)]), [integers({n}), integers({n}, 7)]} end}
      end ++
      [
        {"add u8 and bf16",
         fn n ->
           {&Nx.add/2, [Nx.as_type(integers({n}), :u8), Nx.as_type(floats({n}), :bf16)]}
         end},
        {"add row to matrix",
         fn n -> {&Nx.add/2, [floats({side(n), side(n)}), floats({side(n)})]} end},
        {"select", fn n -> {&Nx.select/3, [integers({n}, 2), floats({n}), floats({n})]} end},
        {"clip", fn n -> {&Nx.clip(&1, 0.3, 0.6), [floats({n})]} end}
      ]
  end

  defp shapes do
    square = fn n -> floats({side(n), side(n)}) end

    [
      {"iota", fn n -> {fn -> Nx.iota({n}) end, []} end},
      {"eye", fn n -> {fn -> Nx.eye(side(n)) end, []} end},
      {"constant", fn n -> {fn -> Nx.broadcast(1.5, {n}) end, []} end},
      {"broadcast", fn n -> {&Nx.broadcast(&1, {side(n), side(n)}), [floats({side(n)})]} end},
      {"reshape", fn n -> {&Nx.reshape(&1, {n, 1}), [floats({n})]} end},
      {"transpose", fn n -> {&Nx.transpose/1, [square.(n)]} end},
      {"reverse", fn n -> {&Nx.reverse/1, [floats({n})]} end},
      {"slice", fn n -> {&Nx.slice(&1, [0], [n], strides: [2]), [floats({n})]} end},
      {"put_slice",
       fn n -> {&Nx.put_slice(&1, [0], &2), [floats({n}), floats({div(n, 2) + 1})]} end},
      {"pad", fn n -> {&Nx.pad(&1, 0.0, [{1, 2, 1}]), [floats({n})]} end},
      {"concatenate", fn n -> {&Nx.concatenate([&1, &2]), [floats({n}), floats({n})]} end},
      {"stack", fn n -> {&Nx.stack([&1, &2]), [floats({n}), floats({n})]} end},
      {"bitcast", fn n -> {&Nx.bitcast(&1, :s32), [floats({n})]} end},
      {"to_batched",
       fn n -> {&(&1 |> Nx.to_batched(1) |> Enum.to_list()), [floats({min(n, 1000)})]} end}
    ]
  end

  defp reductions do
    for op <- ~w(sum product reduce_max reduce_min all any argmax argmin mean)a,
        axis <- [nil, 0, 1] do
      name = if axis, do: "#{op} axis #{axis}", else: "#{op}"

      opts =
        if axis,
          do: if(op in [:argmax, :argmin], do: [axis: axis], else: [axes: [axis]]),
          else: []

      {name, fn n -> {&apply(Nx, op, [&1, opts]), [floats({side(n), side(n)})]} end}
    end ++
      for op <- ~w(cumulative_sum cumulative_product cumulative_min cumulative_max)a do
        {"#{op}", fn n -> {&apply(Nx, op, [&1]), [floats({n})]} end}
      end ++
      [
        {"reduce with a function",
         fn n -> {&Nx.reduce(&1, 0, fn a, b -> Nx.add(a, b) end), [floats({n})]} end},
        {"all_close", fn n -> {&Nx.all_close/2, [floats({n}), floats({n})]} end}
      ]
  end

  defp indexed do
    [
      {"gather", fn n -> {&Nx.gather/2, [floats({n}), integers({n, 1}, n)]} end},
      {"take", fn n -> {&Nx.take/2, [floats({n}), integers({n}, n)]} end},
      {"take_along_axis", fn n -> {&Nx.take_along_axis/2, [floats({n}), integers({n}, n)]} end},
      {"indexed_add",
       fn n -> {&Nx.indexed_add/3, [floats({n}), integers({n, 1}, n), floats({n})]} end},
      {"indexed_put",
       fn n -> {&Nx.indexed_put/3, [floats({n}), integers({n, 1}, n), floats({n})]} end},
      {"sort", fn n -> {&Nx.sort/1, [floats({n})]} end},
      {"sort axis 0", fn n -> {&Nx.sort(&1, axis: 0), [floats({side(n), side(n)})]} end},
      {"argsort", fn n -> {&Nx.argsort/1, [floats({n})]} end},
      {"top_k", fn n -> {&Nx.top_k(&1, k: min(n, 5)), [floats({n})]} end}
    ]
  end

  defp windows do
    for op <- ~w(window_sum window_product window_max window_min)a do
      {"#{op}",
       fn n -> {&apply(Nx, op, [&1, {3, 3}, [padding: :same]]), [floats({side(n), side(n)})]} end}
    end ++
      for op <- ~w(window_scatter_max window_scatter_min)a do
        {"#{op}",
         fn n ->
           m = max(side(n), 2)
           source = floats({div(m, 2), div(m, 2)})
           {&apply(Nx, op, [&1, &2, 0.0, {2, 2}, [strides: [2, 2]]]), [floats({m, m}), source]}
         end}
      end ++
      [
        {"window_reduce with a function",
         fn n ->
           {&Nx.window_reduce(&1, 0, {3}, [padding: :same], fn a, b -> Nx.max(a, b) end),
            [floats({n})]}
         end},
        {"conv",
         fn n ->
           {&Nx.conv(&1, &2, padding: :same),
            [floats({1, 1, side(n), side(n)}), floats({2, 1, 3, 3})]}
         end},
        {"conv, grouped",
         fn n ->
           {&Nx.conv(&1, &2, feature_group_size: 2),
            [floats({1, 2, side(n) + 2, side(n) + 2}), floats({2, 1, 3, 3})]}
         end}
      ]
  end

  defp linear do
    positive = fn n ->
      m = side(n)
      a = floats({m, m})
      Nx.add(Nx.dot(a, Nx.transpose(a)), Nx.multiply(m, Nx.eye(m)))
    end

    [
      {"dot", fn n -> {&Nx.dot/2, [floats({side(n), side(n)}), floats({side(n), side(n)})]} end},
      {"dot of vectors", fn n -> {&Nx.dot/2, [floats({n}), floats({n})]} end},
      {"dot, batched",
       fn n ->
         shape = {2, side(n), side(n)}
         {&Nx.dot(&1, [2], [0], &2, [1], [0]), [floats(shape), floats(shape)]}
       end},
      {"fft", fn n -> {&Nx.fft/1, [floats({n})]} end},
      {"ifft", fn n -> {&Nx.ifft/1, [floats({n})]} end},
      {"fft2", fn n -> {&Nx.fft2/1, [floats({side(n), side(n)})]} end},
      {"rfft", fn n -> {&Nx.rfft/1, [floats({n})]} end},
      {"irfft", fn n -> {&Nx.irfft/1, [floats({n})]} end},
      {"triangular_solve",
       fn n ->
         {&Nx.LinAlg.triangular_solve/2, [Nx.tril(positive.(n)), floats({side(n)})]}
       end},
      {"cholesky", fn n -> {&Nx.LinAlg.cholesky/1, [positive.(n)]} end},
      {"solve", fn n -> {&Nx.LinAlg.solve/2, [positive.(n), floats({side(n)})]} end},
      {"lu", fn n -> {&Nx.LinAlg.lu/1, [positive.(n)]} end},
      {"qr", fn n -> {&Nx.LinAlg.qr/1, [positive.(n)]} end},
      {"eigh", fn n -> {&Nx.LinAlg.eigh/1, [positive.(n)]} end},
      {"svd", fn n -> {&Nx.LinAlg.svd/1, [positive.(n)]} end},
      {"determinant", fn n -> {&Nx.LinAlg.determinant/1, [positive.(n)]} end}
    ]
  end
end

Bench.Callbacks.run(System.argv())
