defmodule Ferrox.SchedulingTest do
  # How long calls hold a normal scheduler: work is estimated before it is done, and the estimate must
  # hold for shapes of any kind. Each case grows until the library leaves it to a dirty scheduler.
  use ExUnit.Case, async: false

  alias Ferrox.Native

  # Estimates are meant to end at half a millisecond, or at a millisecond for work that two threads
  # share; three times as much is a fault. FERROX_HELD=1 prints all cases, and
  # FERROX_HELD=name those whose name has that in it.
  @most_microseconds 3000

  @f {:f, 32}
  @c {:c, 128}
  @u {:u, 8}

  # Integers that are ones and floats of an ordinary size: some processors take a hundred times as long for
  # numbers that are not normalized, such as the rounding errors of very small ones.
  defp tensor({kind, bits} = type, shape) do
    byte = if kind in [:s, :u], do: 1, else: 0x3F
    {type, shape, :binary.copy(<<byte>>, div(Tuple.product(shape) * bits, 8))}
  end

  # Elements that are not in order, below 251.
  defp mixed({_, bits} = type, shape) do
    bytes = div(Tuple.product(shape) * bits, 8)
    pattern = for i <- 0..1023, into: <<>>, do: <<rem(i * 167, 251)>>
    {type, shape, binary_part(:binary.copy(pattern, div(bytes, 1024) + 1), 0, bytes)}
  end

  # What each case calls for a size: a NIF and its arguments.
  defp cases do
    one = tensor(@f, {})
    pads = fn low, high -> [{0, 0, 0}, {low, high, 0}] end

    [
      {"pad of short rows",
       fn n -> {:pad, [@u, {n, 2}, pads.(0, 1), tensor(@u, {n, 1}), tensor(@u, {})]} end},
      {"pad of f32 rows by a negative number",
       fn n -> {:pad, [@f, {n, 1}, pads.(-1, 0), tensor(@f, {n, 2}), one]} end},
      {"pad that moves rows",
       fn n -> {:pad, [@f, {n, 2}, pads.(-1, 1), tensor(@f, {n, 2}), one]} end},
      {"pad of many axes",
       fn n ->
         {:pad,
          [
            @u,
            {n, 2, 2, 2},
            [{0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {0, 1, 0}],
            tensor(@u, {n, 1, 1, 1}),
            tensor(@u, {})
          ]}
       end},
      {"outer product of c128",
       fn n ->
         n = isqrt(n)
         {:dot, [@c, {n, n}, tensor(@c, {n}), [], [], tensor(@c, {n}), [], []]}
       end},
      {"outer product of c128 as a product of matrices",
       fn n ->
         n = isqrt(n)
         {:matmul, [@c, 1, n, 1, n, elem(tensor(@c, {n}), 2), elem(tensor(@c, {n}), 2)]}
       end},
      {"outer product of f32",
       fn n ->
         n = isqrt(n)
         {:matmul, [@f, 1, n, 1, n, elem(tensor(@f, {n}), 2), elem(tensor(@f, {n}), 2)]}
       end},
      {"outer multiplication of c128",
       fn n ->
         n = isqrt(n)
         {:binary, [:multiply, @c, {n, n}, tensor(@c, {n, 1}), tensor(@c, {1, n})]}
       end},
      {"outer addition of u8",
       fn n ->
         {:binary, [:add, @u, {n, 2}, tensor(@u, {n, 1}), tensor(@u, {1, 2})]}
       end},
      {"batches of small products",
       fn n ->
         n = div(n, 8) + 1
         {:matmul, [@f, n, 2, 2, 2, elem(tensor(@f, {n, 4}), 2), elem(tensor(@f, {n, 4}), 2)]}
       end},
      {"product of one row and long columns of c128",
       fn n -> {:matmul, [@c, 1, 1, n, 1, elem(tensor(@c, {n}), 2), elem(tensor(@c, {n}), 2)]} end},
      {"concatenate of many tensors",
       fn n ->
         n = div(n, 8) + 1
         {:concatenate, [@u, {n}, 0, List.duplicate(tensor(@u, {1}), n)]}
       end},
      {"concatenate of short rows",
       fn n -> {:concatenate, [@u, {n, 2}, 1, [tensor(@u, {n, 1}), tensor(@u, {n, 1})]]} end},
      {"sort of short rows", fn n -> {:sort, [1, false, mixed(@f, {div(n, 2) + 1, 2})]} end},
      {"sort of short columns", fn n -> {:sort, [0, false, mixed(@f, {2, div(n, 2) + 1})]} end},
      {"sort of a row", fn n -> {:sort, [0, true, mixed(@f, {n})]} end},
      {"sort of u8", fn n -> {:sort, [0, true, mixed(@u, {n})]} end},
      {"argsort of short rows",
       fn n -> {:argsort, [{:s, 64}, 1, false, mixed(@f, {div(n, 2) + 1, 2})]} end},
      {"argsort of rows of 40",
       fn n -> {:argsort, [{:s, 64}, 1, false, mixed(@f, {div(n, 40) + 1, 40})]} end},
      {"argsort of f64", fn n -> {:argsort, [{:s, 64}, 0, false, mixed({:f, 64}, {n})]} end},
      {"top_k of short rows",
       fn n -> {:top_k, [{:s, 32}, {div(n, 3) + 1, 1}, mixed(@f, {div(n, 3) + 1, 3})]} end},
      {"all_close of u8",
       fn n -> {:all_close, [{}, {1.0e-5, 1.0e-8, false}, tensor(@u, {n}), tensor(@u, {n})]} end},
      {"all_close of c128",
       fn n -> {:all_close, [{}, {1.0e-5, 1.0e-8, false}, tensor(@c, {n}), tensor(@c, {n})]} end},
      {"all_close of s64 and f32",
       fn n ->
         {:all_close, [{}, {1.0e-5, 1.0e-8, true}, tensor({:s, 64}, {n}), tensor(@f, {n})]}
       end},
      {"sum of empty rows", fn n -> {:reduce, [:sum, @f, [1], {@f, {n, 0}, <<>>}]} end},
      {"sum of short rows", fn n -> {:reduce, [:sum, @f, [1], tensor(@f, {n, 1})]} end},
      {"sum of u8 rows of 2", fn n -> {:reduce, [:sum, {:u, 64}, [1], tensor(@u, {n, 2})]} end},
      {"product of short columns",
       fn n -> {:reduce, [:product, @f, [0], tensor(@f, {2, div(n, 2) + 1})]} end},
      {"sum of c128 in short runs",
       fn n -> {:reduce, [:sum, @c, [0, 2], tensor(@c, {2, div(n, 4) + 1, 2})]} end},
      {"argmax of short rows",
       fn n -> {:arg_reduce, [:reduce_max, {:s, 64}, 1, false, tensor(@f, {n, 1})]} end},
      {"cumulative sum of short rows",
       fn n -> {:cumulative, [:cumulative_sum, 1, false, tensor(@f, {n, 2})]} end},
      {"cumulative sum of c128",
       fn n -> {:cumulative, [:cumulative_sum, 0, true, tensor(@c, {n})]} end},
      {"transpose of many axes",
       fn n ->
         rank = min(n, 200_000)
         shape = Tuple.duplicate(1, rank)
         {:transpose, [shape, Enum.to_list((rank - 1)..0//-1), tensor(@u, shape)]}
       end},
      {"transpose of narrow planes",
       fn n -> {:transpose, [{2, n}, [1, 0], tensor(@u, {n, 2})]} end},
      {"transpose of c128", fn n -> {:transpose, [{3, n}, [1, 0], tensor(@c, {n, 3})]} end},
      {"reverse of short rows", fn n -> {:reverse, [{n, 2}, [1], tensor(@u, {n, 2})]} end},
      {"broadcast of columns", fn n -> {:broadcast, [{n, 2}, [0, 1], tensor(@c, {n, 1})]} end},
      {"slice of short rows",
       fn n -> {:slice, [{n, 1}, [0, 1], [n, 2], [1, 2], tensor(@u, {n, 3})]} end},
      {"window sum of short rows",
       fn n ->
         over = {{1, 2}, [{0, 0}, {0, 0}], [1, 1], [1, 1]}
         {:window, [:window_sum, @f, {n, 1}, over, tensor(@f, {n, 2})]}
       end},
      {"elements of windows",
       fn n ->
         windows = {[1, 1], [1, 1], [1, 1], [{0, 0}, {0, 0}]}
         {:window_elements, [{n, 1, 1, 1}, windows, tensor(@u, {n, 1}), tensor(@u, {})]}
       end},
      {"elements of long windows",
       fn n ->
         windows = {[64], [1], [1], [{0, 63}]}
         n = div(n, 64) + 1
         {:window_elements, [{n, 64}, windows, tensor(@c, {n}), tensor(@c, {})]}
       end},
      {"gather of single elements",
       fn n ->
         {:gather, [{n}, [0], tensor(@u, {16}), {{:u, 8}, {n, 1}, :binary.copy(<<1>>, n)}]}
       end},
      {"indexed_add to a large target",
       fn n ->
         indices = {{:s, 64}, {1, 1}, <<0::64>>}
         {:indexed, [true, @f, [0], tensor(@f, {n}), indices, tensor(@f, {1})]}
       end},
      {"indexed_put of rows of one",
       fn n ->
         indices = {{:s, 64}, {n, 1}, :binary.copy(<<0>>, 8 * n)}
         {:indexed, [false, @u, [0], tensor(@u, {1, 1}), indices, tensor(@u, {n, 1})]}
       end},
      {"put_slice of short rows",
       fn n -> {:put_slice, [@u, [0, 1], tensor(@u, {n, 2}), tensor(@u, {n, 1})]} end},
      {"fft of short rows",
       fn n -> {:fourier, [:fft, @c, {n, 2}, [{1, 2}], 0.0, tensor(@f, {n, 2})]} end},
      {"as_type of u4",
       fn n -> {:as_type, [{:f, 64}, {n}, {{:u, 4}, {n}, :binary.copy(<<1>>, div(n + 1, 2))}]} end},
      {"select of c128",
       fn n -> {:select, [@c, {n}, tensor(@u, {n}), tensor(@c, {n}), tensor(@c, {})]} end},
      {"cholesky of many matrices",
       fn n ->
         n = div(n, 4) + 1
         {:factor, [:cholesky, [{@f, {n, 1, 1}}], 1.0e-10, tensor(@f, {n, 1, 1})]}
       end},
      {"iota along an axis", fn n -> {:iota, [@u, {n, 1}, 1]} end},
      {"eye of few columns", fn n -> {:eye, [@u, {n, 1}]} end},
      {"eye of small matrices", fn n -> {:eye, [@u, {n, 1, 1}]} end},
      {"exp of f64", fn n -> {:unary, [:exp, {:f, 64}, {n}, tensor({:f, 64}, {n})]} end},
      {"erf_inv of f16", fn n -> {:unary, [:erf_inv, {:f, 16}, {n}, tensor({:f, 16}, {n})]} end},
      {"tan of c128", fn n -> {:unary, [:tan, @c, {n}, tensor(@c, {n})]} end},
      {"negate of u8", fn n -> {:unary, [:negate, @u, {n}, tensor(@u, {n})]} end},
      {"clip of bf16",
       fn n ->
         bf = {:bf, 16}
         {:clip, [bf, {n, 1}, tensor(bf, {n, 1}), tensor(bf, {}), tensor(bf, {})]}
       end},
      {"clip of s64 between rows",
       fn n ->
         s = {:s, 64}
         {:clip, [s, {n, 2}, tensor(s, {n, 2}), tensor(s, {n, 1}), tensor(s, {1, 2})]}
       end},
      {"take of single elements",
       fn n -> {:take, [{n}, 0, tensor(@u, {16}), {@u, {n}, :binary.copy(<<1>>, n)}]} end},
      {"take of short rows",
       fn n ->
         {:take, [{1, n, 2}, 1, tensor(@c, {1, 9, 2}), {@u, {n}, :binary.copy(<<8>>, n)}]}
       end},
      {"take_along_axis of short rows",
       fn n ->
         {:take_along_axis, [1, tensor(@f, {n, 2}), {@u, {n, 1}, :binary.copy(<<1>>, n)}]}
       end},
      {"take_along_axis of columns",
       fn n ->
         {:take_along_axis, [0, tensor(@c, {2, n}), {@u, {1, n}, :binary.copy(<<1>>, n)}]}
       end},
      {"window_scatter of short rows",
       fn n ->
         over = {{1, 2}, [{0, 0}, {0, 0}], [1, 2], [1, 1]}
         input = tensor(@f, {n, 2})
         {:window_scatter, [:window_scatter_max, @f, over, input, tensor(@f, {n, 1}), one]}
       end},
      {"window_scatter of long windows",
       fn n ->
         over = {{64}, [{0, 63}], [1], [1]}
         {:window_scatter, [:window_scatter_min, @f, over, mixed(@f, {n}), tensor(@f, {n}), one]}
       end},
      {"conv of small images",
       fn n ->
         n = div(n, 8) + 1
         {:conv, [@f, {n, 1, 2, 2}, tensor(@f, {n, 1, 3, 3}), tensor(@f, {1, 1, 2, 2}), conv(1)]}
       end},
      {"conv of many channels",
       fn n ->
         n = div(n, 8) + 1
         {:conv, [@f, {1, 1, 2, 2}, tensor(@f, {1, n, 3, 3}), tensor(@f, {1, n, 2, 2}), conv(1)]}
       end},
      {"conv of many filters",
       fn n ->
         n = div(n, 8) + 1
         {:conv, [@c, {1, n, 2, 2}, tensor(@c, {1, 1, 3, 3}), tensor(@c, {n, 1, 2, 2}), conv(1)]}
       end},
      {"conv of many groups",
       fn n ->
         n = div(n, 16) + 1
         {:conv, [@f, {1, n, 2, 2}, tensor(@f, {1, n, 3, 3}), tensor(@f, {n, 1, 2, 2}), conv(n)]}
       end},
      {"solve of many systems",
       fn n ->
         n = div(n, 4) + 1
         {:solve, [:lu, @f, mixed(@f, {n, 2, 2}), tensor(@f, {n, 2})]}
       end},
      {"triangular solve with many columns",
       fn n ->
         ones =
           for k <- 0..3, into: <<>>, do: <<if(k in [0, 3], do: 1.0, else: 0.0)::float-32-native>>

         {:solve, [{true, true, :none}, @f, {@f, {2, 2}, ones}, tensor(@f, {2, n})]}
       end},
      {"qr of a tall matrix",
       fn n ->
         results = [{@f, {n, 1}}, {@f, {1, 1}}]
         {:factor, [:qr, results, 1.0e-10, tensor(@f, {n, 1})]}
       end}
    ] ++ many_axes() ++ lists() ++ programs()
  end

  defp conv(groups) do
    axes = [0, 1, 2, 3]
    {[1, 1], [{0, 0}, {0, 0}], [1, 1], [1, 1], {groups, 1}, {axes, axes, axes}}
  end

  # Shapes of many axes of one element, but for every second axis of a reduction.
  defp many_axes do
    shaped = fn family ->
      fn n ->
        rank = min(div(n, 16), 100_000)
        shape = Tuple.duplicate(1, rank)
        family.(rank, shape, tensor(@u, shape))
      end
    end

    half = fn rank -> Enum.to_list(0..(rank - 1)//2) end

    [
      {"sum over every second of many axes",
       shaped.(fn rank, _shape, tensor -> {:reduce, [:sum, {:u, 64}, half.(rank), tensor]} end)},
      {"dot of every second of many axes",
       shaped.(fn rank, _shape, tensor ->
         shape = Tuple.duplicate(1, 2 * (rank - length(half.(rank))))
         {:dot, [@u, shape, tensor, half.(rank), [], tensor, half.(rank), []]}
       end)},
      {"gather along every second of many axes",
       shaped.(fn rank, _shape, tensor ->
         axes = half.(rank)
         indices = {@u, {1, length(axes)}, :binary.copy(<<0>>, length(axes))}
         {:gather, [Tuple.duplicate(1, 1 + rank - length(axes)), axes, tensor, indices]}
       end)},
      {"indexed_add along every second of many axes",
       shaped.(fn rank, _shape, tensor ->
         axes = half.(rank)
         indices = {@u, {1, length(axes)}, :binary.copy(<<0>>, length(axes))}
         updates = tensor(@u, Tuple.duplicate(1, 1 + rank - length(axes)))
         {:indexed, [true, @u, axes, tensor, indices, updates]}
       end)},
      {"reverse of every second of many axes",
       shaped.(fn rank, shape, tensor -> {:reverse, [shape, half.(rank), tensor]} end)},
      {"broadcast to many axes",
       shaped.(fn rank, shape, tensor ->
         {:broadcast, [shape, Enum.to_list(0..(rank - 1)), tensor]}
       end)},
      {"slice of many axes",
       shaped.(fn rank, shape, tensor ->
         ones = List.duplicate(1, rank)
         {:slice, [shape, List.duplicate(0, rank), ones, ones, tensor]}
       end)},
      {"pad of many axes of one element",
       shaped.(fn rank, shape, tensor ->
         {:pad, [@u, shape, List.duplicate({0, 0, 0}, rank), tensor, tensor(@u, {})]}
       end)},
      {"window sum of many axes",
       shaped.(fn rank, shape, tensor ->
         ones = List.duplicate(1, rank)
         over = {shape, List.duplicate({0, 0}, rank), ones, ones}
         {:window, [:window_sum, @u, shape, over, tensor]}
       end)},
      {"sort along the first of many axes",
       shaped.(fn _rank, _shape, tensor -> {:sort, [0, false, tensor]} end)},
      {"addition of many axes",
       shaped.(fn _rank, shape, tensor -> {:binary, [:add, @u, shape, tensor, tensor]} end)},
      {"argmax along the first of many axes",
       shaped.(fn _rank, _shape, tensor ->
         {:arg_reduce, [:reduce_max, {:s, 64}, 0, false, tensor]}
       end)}
    ]
  end

  # Lists of any length that are promoted.
  defp lists do
    [
      {"result type of many operands", fn n -> {:result_type, [:nx, List.duplicate(@f, n)]} end},
      {"operation on many operands",
       fn n -> {:operation, [:nx, :concatenate, List.duplicate(@f, n)]} end}
    ]
  end

  # Runs of programs, which pause where they have done much work.
  defp programs do
    f32 = fn slot, shape -> {slot, @f, shape} end

    run = fn regions, literals, n ->
      {:graph_run, [Native.compile({regions, literals}), {elem(tensor(@f, {n}), 2)}]}
    end

    [
      {"program of one operation",
       fn n ->
         [a, b] = for slot <- 0..1, do: f32.(slot, {n})
         run.([{[{@f, {n}}], 2, [{:run, {:unary, :exp}, [a], [b]}], [b]}], [], n)
       end},
      {"program of several operations",
       fn n ->
         [a, b, c, d] = for slot <- 0..3, do: f32.(slot, {n})

         steps = [
           {:run, {:sort, 0, false}, [a], [b]},
           {:run, {:reverse, [0]}, [b], [c]},
           {:run, {:cumulative, :cumulative_sum, 0, false}, [c], [d]}
         ]

         run.([{[{@f, {n}}], 4, steps, [d]}], [], n)
       end},
      {"program over many axes",
       fn n ->
         rank = min(div(n, 16), 100_000)
         shape = Tuple.duplicate(1, rank)
         axes = Enum.to_list(0..(rank - 1)//2)
         kept = Tuple.duplicate(1, rank - length(axes))
         steps = [{:run, {:reduce, :sum, axes}, [{0, @u, shape}], [{1, @u, kept}]}]
         program = Native.compile({[{[{@u, shape}], 2, steps, [{1, @u, kept}]}], []})
         {:graph_run, [program, {<<1>>}]}
       end},
      {"program whose result is a literal",
       fn n -> run.([{[{@f, {n}}], 1, [], [f32.(-1, {n})]}], [elem(tensor(@f, {n}), 2)], n) end},
      {"program whose result comes from a loop",
       fn n ->
         [a, b] = for slot <- 0..1, do: f32.(slot, {n})
         one = f32.(-1, {})
         first = {:run, {:slice, [0], [1], [1]}, [a], [f32.(1, {1})]}
         less = {:run, {:binary, :less}, [f32.(1, {1}), one], [{2, @u, {1}}]}
         all = {:run, {:reduce, :all, [0]}, [{2, @u, {1}}], [{3, @u, {}}]}

         run.(
           [
             {[{@f, {n}}], 2, [{:while, 1, 2, [a], [1]}], [b]},
             {[{@f, {n}}], 4, [first, less, all], [{3, @u, {}}]},
             {[{@f, {n}}], 3,
              [
                {:run, {:reverse, [0]}, [a], [b]},
                {:run, {:binary, :add}, [b, one], [f32.(2, {n})]}
              ], [f32.(2, {n})]}
           ],
           [<<1.0::float-32-native>>],
           n
         )
       end},
      {"loop that replaces elements of an array",
       fn n ->
         s = {:s, 32}
         array = f32.(1, {n})
         loop = {:while, 1, 2, [{-1, s, {}}, f32.(0, {n})], [1, 2]}
         less = {:run, {:binary, :less}, [{0, s, {}}, {-2, s, {}}], [{2, @u, {}}]}
         add = {:run, {:binary, :add}, [{0, s, {}}, {-3, s, {}}], [{2, s, {}}]}
         replaced = [array, f32.(-4, {1}), {0, s, {}}]
         put = {:run, {:put_slice, [{:input, 2}]}, replaced, [f32.(3, {n})]}
         state = [{s, {}}, {@f, {n}}]

         run.(
           [
             {[{@f, {n}}], 3, [loop], [f32.(2, {n})]},
             {state, 3, [less], [{2, @u, {}}]},
             {state, 4, [add, put], [{2, s, {}}, f32.(3, {n})]}
           ],
           [<<0::32-native>>, <<40::32-native>>, <<1::32-native>>, <<1.0::float-32-native>>],
           n
         )
       end},
      {"values of a call",
       fn n ->
         [a, b] = for slot <- 0..1, do: f32.(slot, {n})
         reverse = {:run, {:reverse, [0]}, [a], [b]}
         call = {:call, 0, [b], [f32.(2, {1})]}
         run.([{[{@f, {n}}], 3, [reverse, call], [b, f32.(2, {1})]}], [], n)
       end},
      {"answers of a call",
       fn n ->
         call = {:call, 0, [], [f32.(0, {n})]}
         program = Native.compile({[{[], 1, [call], [f32.(0, {n})]}], []})
         data = elem(tensor(@f, {n}), 2)

         {:graph_resume,
          fn ->
            {:call, run, 0, []} = Native.run(program, {})
            [program, run, {}, [data]]
          end}
       end}
    ]
  end

  defp isqrt(n), do: n |> :math.sqrt() |> trunc()

  @tag timeout: 300_000
  test "no call holds a normal scheduler for much longer than it should" do
    chosen = System.get_env("FERROX_HELD", "")

    held =
      for {name, call} <- cases(),
          chosen in ["", "1"] or name =~ chosen,
          do: {name, longest(call)}

    if System.get_env("FERROX_HELD") do
      for {name, {us, n}} <- Enum.sort_by(held, &elem(elem(&1, 1), 0), :desc),
          do: IO.puts("#{String.pad_leading("#{us}", 8)} us for #{n}: #{name}")
    end

    too_long = for {name, {us, n}} <- held, us > @most_microseconds, do: {name, us, n}
    assert too_long == []
  end

  # The longest time, and its size, among sizes that double until the call is left to a dirty scheduler.
  defp longest(call) do
    Enum.reduce_while(8..22, {0, 0}, fn power, longest ->
      n = Bitwise.bsl(1, power)
      {family, arguments} = call.(n)
      {us, answer} = least_time(nif(family), arguments)
      {if(answer == :left, do: :halt, else: :cont), max(longest, {us, n})}
    end)
  end

  defp nif(family), do: :"#{family}_normal"

  # The least time of several, since other processes run meanwhile, and whether the call is done or left to
  # a dirty scheduler. Finding that out, or a part of a run, takes time too.
  defp least_time(nif, arguments) do
    Enum.reduce_while(1..20, {:infinity, nil}, fn try, least ->
      arguments = if is_function(arguments), do: arguments.(), else: arguments
      {us, answer} = :timer.tc(Native, nif, arguments)
      least = min(least, {us, kind(answer)})
      {if(try >= 4 and elem(least, 0) <= @most_microseconds, do: :halt, else: :cont), least}
    end)
  end

  defp kind(:dirty), do: :left
  defp kind({:paused, _run}), do: :left
  defp kind(answer) when is_binary(answer) or is_list(answer), do: :done
  defp kind({:call, _run, _number, _values}), do: :done
  defp kind({kind, bits}) when is_atom(kind) and is_integer(bits), do: :done
  defp kind({:concatenate, _result, _weak?, _operands}), do: :done
end
