defmodule Ferrox.SchedulingTest do
  # How long calls hold a normal scheduler: work is estimated before it is done, and the estimate must
  # hold for shapes of any kind. Each case grows until the library leaves it to a dirty scheduler.
  use ExUnit.Case, async: false

  alias Ferrox.Native

  # Estimates are meant to end at half a millisecond, or at a millisecond for work that two threads
  # share; three times as much is a fault. FERROX_HELD prints all cases.
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
      {"eye of small matrices", fn n -> {:eye, [@u, {n, 1, 1}]} end}
    ]
  end

  defp isqrt(n), do: n |> :math.sqrt() |> trunc()

  @tag timeout: 300_000
  test "no call holds a normal scheduler for much longer than it should" do
    held = for {name, call} <- cases(), do: {name, longest(call)}

    if System.get_env("FERROX_HELD") do
      for {name, {us, n}} <- Enum.sort_by(held, &elem(elem(&1, 1), 0), :desc),
          do: IO.puts("#{String.pad_leading("#{us}", 8)} us for #{n}: #{name}")
    end

    too_long = for {name, {us, n}} <- held, us > @most_microseconds, do: {name, us, n}
    assert too_long == []
  end

  # The longest time, and its size, among sizes that double until the call is left to a dirty scheduler.
  defp longest(call) do
    Enum.reduce_while(8..22, {0, 0}, fn power, {longest, size} ->
      n = Bitwise.bsl(1, power)
      {family, arguments} = call.(n)
      nif = :"#{family}_normal"

      case times(nif, arguments) do
        :dirty -> {:halt, {longest, size}}
        us when us > longest -> {:cont, {us, n}}
        _ -> {:cont, {longest, size}}
      end
    end)
  end

  # The least time of several, since other processes run meanwhile.
  defp times(nif, arguments) do
    Enum.reduce_while(1..4, :none, fn _, least ->
      case :timer.tc(Native, nif, arguments) do
        {_, :dirty} -> {:halt, :dirty}
        {us, answer} when is_binary(answer) or is_list(answer) -> {:cont, min(us, least)}
      end
    end)
  end
end
