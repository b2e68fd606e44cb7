defmodule Ferrox.NativePrograms do
  @moduledoc """
  Programs as `Ferrox.Native.compile/1` takes them: one for each operation and kind of step, and some that
  are computed together.
  """

  @f {:f, 32}
  @s {:s, 32}
  @u {:u, 8}
  @c {:c, 64}
  @v {@f, {4}}
  @m {@f, {2, 3}}
  @square {@f, {2, 2}}
  @one {@f, {}}
  @image {@f, {1, 1, 3, 3}}
  @over {{2, 2}, [{0, 1}, {1, 0}], [1, 1], [1, 1]}
  @axes [0, 1, 2, 3]
  @large {@f, {70, 100}}

  # An operation with the types and shapes of its operands and results.
  @operations [
    {{:binary, :add}, [@m, @m], [@m]},
    {{:binary, :multiply}, [@m, @one], [@m]},
    {{:unary, :exp}, [@m], [@m]},
    {{:fast_unary, :tanh}, [@m], [@m]},
    {{:as_type}, [@m], [{@s, {2, 3}}]},
    {{:select}, [{@u, {2, 3}}, @m, @one], [@m]},
    {{:clip}, [@m, @one, @one], [@m]},
    {{:transpose, [1, 0]}, [@m], [{@f, {3, 2}}]},
    {{:broadcast, [1, 2]}, [@m], [{@f, {2, 2, 3}}]},
    {{:reverse, [0, 1]}, [@m], [@m]},
    {{:slice, [1, 0], [1, 3], [1, 2]}, [@m], [{@f, {1, 2}}]},
    {{:slice, [{:input, 1}, 0], [1, 3], [1, 2]}, [@m, {@s, {}}], [{@f, {1, 2}}]},
    {{:put_slice, [0, 1]}, [@m, {@f, {1, 2}}], [@m]},
    {{:put_slice, [{:input, 2}, {:input, 2}]}, [@m, {@f, {1, 2}}, {@s, {}}], [@m]},
    {{:concatenate, 0}, [@m, @m], [{@f, {4, 3}}]},
    {{:iota, 1}, [], [@m]},
    {{:iota, nil}, [], [@m]},
    {{:eye}, [], [@m]},
    {{:pad, [{1, 1, 0}, {0, -1, 1}]}, [@m, @one], [{@f, {4, 4}}]},
    {{:reduce, :sum, [0]}, [@m], [{@f, {3}}]},
    {{:arg_reduce, :reduce_max, 1, false}, [@m], [{@s, {2}}]},
    {{:cumulative, :cumulative_sum, 1, false}, [@m], [@m]},
    {{:all_close, 1.0e-5, 1.0e-8, false}, [@m, @m], [{@u, {}}]},
    {{:dot, [1], [], [1], []}, [@m, @m], [@square]},
    {{:conv, {[1, 1], [{0, 0}, {0, 0}], [1, 1], [1, 1], {1, 1}, {@axes, @axes, @axes}}},
     [@image, {@f, {1, 1, 2, 2}}], [{@f, {1, 1, 2, 2}}]},
    {{:window, :window_sum, @over}, [@m], [@m]},
    {{:window_scatter, :window_scatter_max, @over}, [@m, @m, @one], [@m]},
    {{:window_elements, {{1, 2}, [{0, 0}, {0, 0}], [1, 1], [1, 1]}}, [@m, @one],
     [{@f, {2, 2, 1, 2}}]},
    {{:sort, 1, false}, [@m], [@m]},
    {{:argsort, 0, true}, [@m], [{@s, {2, 3}}]},
    {{:top_k}, [@m], [{@s, {2, 2}}]},
    {{:gather, [0]}, [@m, {@s, {2, 1}}], [@m]},
    {{:take, 0}, [@m, {@s, {2, 1}}], [{@f, {2, 1, 3}}]},
    {{:take_along_axis, 1}, [@m, {@s, {2, 1}}], [{@f, {2, 1}}]},
    {{:indexed_add, [0]}, [@m, {@s, {2, 1}}, @m], [@m]},
    {{:indexed_put, [0]}, [@m, {@s, {2, 1}}, @m], [@m]},
    {{:fourier, :fft, [{0, 4}], 1.0e-10}, [@v], [{@c, {4}}]},
    {{:solve, :lu}, [@square, @square], [@square]},
    {{:solve, {true, true, :none}}, [@square, @square], [@square]},
    {{:factor, :qr, 1.0e-10}, [@square], [@square, @square]},
    {{:factor, :cholesky, 1.0e-10}, [@square], [@square]}
  ]

  @doc "The names of the operations that occur."
  def operations, do: for({operation, _, _} <- @operations, uniq: true, do: elem(operation, 0))

  @doc "All programs."
  def all do
    Enum.map(@operations, &program/1) ++
      [
        together(),
        softmax(),
        condition(),
        number_loop(),
        row_loop(),
        general_loop(),
        reverse_loop(),
        fold(),
        call()
      ]
  end

  @doc "Arguments of a program: matrices of f32 that are positive definite, ones of 8 bits, other zeros."
  def arguments({[{parameters, _, _, _} | _], _}) do
    data = for {{kind, bits}, shape} <- parameters, do: data(kind, bits, Tuple.product(shape))
    List.to_tuple(data)
  end

  # Those of a hostile program may be larger than memory: none.
  defp data(_kind, _bits, size) when size > 100_000, do: ""

  defp data(kind, 8, size) when kind in [:s, :u], do: :binary.copy(<<1>>, size)

  defp data(:f, 32, size),
    do: for(k <- 1..size//1, into: <<>>, do: <<2.0 - div(rem(k, 4), 2)::float-32-native>>)

  defp data(_kind, bits, size), do: :binary.copy(<<0>>, div(size * bits, 8))

  defp program({operation, inputs, outputs}) do
    slots = length(inputs)
    {read, written} = {numbered(inputs, 0), numbered(outputs, slots)}
    {[{inputs, slots + length(outputs), [{:run, operation, read, written}], written}], []}
  end

  defp numbered(values, first),
    do: for({{type, shape}, k} <- Enum.with_index(values, first), do: {k, type, shape})

  defp value(slot, {type, shape}), do: {slot, type, shape}

  defp run(operation, inputs, output), do: {:run, operation, inputs, [output]}

  # Elementwise operations, one after the other.
  defp together do
    [x, a, b, c] = for slot <- 0..3, do: value(slot, @large)
    half = {-1, @f, {}}

    code = [
      run({:binary, :multiply}, [x, half], a),
      run({:unary, :exp}, [a], b),
      run({:binary, :add}, [b, x], c)
    ]

    {[{[@large], 4, code, [c]}], [<<0.5::float-32-native>>]}
  end

  # Rows that are folded and read again.
  defp softmax do
    [x, shifted, exp, result] = for slot <- [0, 2, 3, 5], do: value(slot, @large)
    row = {@f, {70}}
    [most, sum] = for slot <- [1, 4], do: value(slot, row)
    column = fn {slot, type, _} -> {slot, type, {70, 1}} end

    code = [
      run({:reduce, :reduce_max, [1]}, [x], most),
      run({:binary, :subtract}, [x, column.(most)], shifted),
      run({:unary, :exp}, [shifted], exp),
      run({:reduce, :sum, [1]}, [exp], sum),
      run({:binary, :divide}, [exp, column.(sum)], result)
    ]

    {[{[@large], 6, code, [result]}], []}
  end

  # A value that both branches may need, and one that is computed after.
  defp condition do
    [x, square, result, again] = for slot <- [0, 2, 3, 4], do: value(slot, @v)
    p = {1, @u, {}}
    squared = run({:binary, :multiply}, [x, x], square)

    code = [
      {:cond, [{[], p, [squared], [square]}], {[], [x]}, [3]},
      {:unless, 2, [squared]},
      run({:binary, :add}, [square, result], again)
    ]

    {[{[@v, {@u, {}}], 5, code, [again]}], []}
  end

  # A loop over numbers.
  defp number_loop do
    [i, x] = [{0, @s, {}}, {1, @f, {}}]
    types = [{@s, {}}, @one]

    counted = {2, @s, {}}

    body = [
      run({:binary, :add}, [i, {-2, @s, {}}], counted),
      run({:binary, :multiply}, [x, x], {3, @f, {}})
    ]

    loop(types, [i, x], {4, body, [counted, {3, @f, {}}]}, [{2, @s, {}}, {3, @f, {}}])
  end

  # A loop over arrays that is computed by rows.
  defp row_loop do
    types = [{@s, {}}, @large]
    [i, x] = [{0, @s, {}}, value(1, @large)]

    body = [
      run({:binary, :add}, [i, {-2, @s, {}}], {2, @s, {}}),
      run({:binary, :multiply}, [x, x], value(3, @large))
    ]

    loop(types, [i, x], {4, body, [{2, @s, {}}, value(3, @large)]}, [
      {2, @s, {}},
      value(3, @large)
    ])
  end

  # A loop with other operations.
  defp general_loop do
    types = [{@s, {}}, @v]
    [i, x] = [{0, @s, {}}, value(1, @v)]

    body = [
      run({:binary, :add}, [i, {-2, @s, {}}], {2, @s, {}}),
      run({:sort, 0, true}, [x], value(3, @v)),
      run({:cumulative, :cumulative_sum, 0, false}, [value(3, @v)], value(4, @v))
    ]

    loop(types, [i, x], {5, body, [{2, @s, {}}, value(4, @v)]}, [{2, @s, {}}, value(3, @v)])
  end

  # As long as the first value is less than three.
  defp loop(types, initial, {slots, body, results}, ends) do
    condition = [run({:binary, :less}, [{0, @s, {}}, {-1, @s, {}}], {2, @u, {}})]
    step = {:while, 1, 2, initial, Enum.map(ends, &elem(&1, 0))}

    regions = [
      {types, 4, [step], ends},
      {types, 3, condition, [{2, @u, {}}]},
      {types, slots, body, results}
    ]

    {regions, [<<3::32-native>>, <<1::32-native>>]}
  end

  # The gradient of a loop of three trips, which adds a number to a matrix.
  defp reverse_loop do
    [x, one, after_trip] = [value(0, @m), value(1, @one), value(2, @m)]
    [gradient, before_trip] = [value(1, @m), value(3, @m)]
    step = {:reverse_loop, 1, 2, {-1, @s, {}}, [x], [gradient], [value(2, @one)], [3]}

    regions = [
      {[@m, @m, @one], 4, [step], [value(3, @m)]},
      {[@m, @one], 3, [run({:binary, :add}, [x, one], after_trip)], [after_trip]},
      {[@m, @m, @one], 4, [run({:binary, :multiply}, [x, gradient], before_trip)], [before_trip]}
    ]

    {regions, [<<3::32-native>>]}
  end

  # A fold with a function that is no operation.
  defp fold do
    [element, accumulator] = [{0, @f, {}}, {1, @f, {}}]

    body = [
      run({:binary, :multiply}, [element, element], {2, @f, {}}),
      run({:binary, :add}, [{2, @f, {}}, accumulator], {3, @f, {}})
    ]

    regions = [
      {[@m, @one], 3, [{:fold, 1, value(0, @m), value(1, @one), {2, @f, {2}}}], [{2, @f, {2}}]},
      {[@one, @one], 4, body, [{3, @f, {}}]}
    ]

    {regions, []}
  end

  # A function of Elixir between two operations.
  defp call do
    [x, a, b, c] = for slot <- 0..3, do: value(slot, @v)

    code = [
      run({:unary, :exp}, [x], a),
      {:call, 7, [a], [b]},
      run({:binary, :add}, [b, x], c)
    ]

    {[{[@v], 4, code, [c]}], []}
  end
end
