defmodule Ferrox.NativeHostileTest do
  # Every NIF with terms that no caller of this project makes. It may refuse them or compute
  # something, but it doesn't panic. FERROX_FUZZ is the number of minutes; without it, a fixed seed
  # gives a few seconds.
  use ExUnit.Case, async: true

  import Bitwise, only: [<<<: 2]

  alias Ferrox.Native

  @f {:f, 32}
  @m {@f, {2, 3}, :binary.copy(<<1.0::float-32-native>>, 6)}
  @v {@f, {4}, :binary.copy(<<2.0::float-32-native>>, 4)}
  @one {@f, {}, <<1.0::float-32-native>>}
  @u4 {{:u, 4}, {3}, <<0x12, 0x30>>}
  @square {@f, {2, 2}, for(x <- [2.0, 1.0, 1.0, 2.0], into: <<>>, do: <<x::float-32-native>>)}
  @index {{:s, 64}, {2, 1}, <<0::64, 1::64-native>>}
  @image {@f, {1, 1, 3, 3}, :binary.copy(<<1.0::float-32-native>>, 9)}
  @empty {@f, {0, 3}, <<>>}
  @over {{2, 2}, [{0, 1}, {1, 0}], [1, 1], [1, 1]}
  @conv {[1, 1], [{0, 0}, {0, 0}], [1, 1], [1, 1], {1, 1},
         {[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]}}

  # A call of each family; where an empty tensor takes another way, one with that too.
  @families [
    binary: [:add, @f, {2, 3}, @m, @one],
    binary: [:add, @f, {0, 3}, @empty, @one],
    binary: [:add, {:u, 4}, {3}, @u4, @u4],
    nx_binary: [:multiply, @f, {2, 3}, @m, @m],
    nx_binary: [:multiply, @f, 4, elem(@v, 2), 2],
    unary: [:exp, @f, {2, 3}, @m],
    nx_unary: [:exp, @f, {4}, elem(@v, 2)],
    as_type: [{:s, 32}, {2, 3}, @m],
    reduce: [:sum, @f, [0], @m],
    reduce: [:reduce_max, @f, [0, 1], @m],
    nx_reduce: [:sum, [1], @m],
    arg_reduce: [:reduce_max, {:s, 32}, 1, false, @m],
    dot: [@f, {2, 2}, @m, [1], [], @m, [1], []],
    dot: [@f, {0, 0}, @empty, [1], [], @empty, [1], []],
    matmul: [@f, 1, 2, 2, 2, elem(@square, 2), elem(@square, 2)],
    window: [:window_sum, @f, {2, 3}, @over, @m],
    window: [:window_max, @f, {2, 3}, @over, @m],
    window_scatter: [:window_scatter_max, @f, @over, @m, @m, @one],
    conv: [@f, {1, 1, 2, 2}, @image, {@f, {1, 1, 2, 2}, elem(@square, 2)}, @conv],
    select: [@f, {2, 3}, @m, @one, @m],
    clip: [@f, {2, 3}, @m, @one, @one],
    transpose: [{3, 2}, [1, 0], @m],
    broadcast: [{2, 2, 3}, [1, 2], @m],
    reverse: [{2, 3}, [0, 1], @m],
    slice: [{1, 2}, [1, 0], [1, 3], [1, 2], @m],
    concatenate: [@f, {4, 3}, 0, [@m, @m]],
    iota: [@f, {2, 3}, 1],
    eye: [@f, {2, 3}],
    pad: [@f, {4, 4}, [{1, 1, 0}, {0, -1, 1}], @m, @one],
    sort: [1, false, @m],
    argsort: [{:s, 64}, 0, true, @m],
    top_k: [{:s, 32}, {2, 2}, @m],
    gather: [{2, 3}, [0], @m, @index],
    take: [{2, 1, 3}, 0, @m, @index],
    take_along_axis: [1, @m, @index],
    indexed: [true, @f, [0], @m, @index, @m],
    indexed: [false, @f, [0], @m, @index, @m],
    indexed: [true, @f, [0], @empty, {{:s, 64}, {0, 1}, <<>>}, @empty],
    indexed: [
      true,
      @f,
      [0],
      {@f, {3}, <<0::96>>},
      {{:s, 64}, {1, 1}, <<0::64>>},
      {@f, {1}, <<0::32>>}
    ],
    put_slice: [@f, [0, 1], @m, {@f, {1, 2}, <<0::64>>}],
    cumulative: [:cumulative_sum, 1, false, @m],
    all_close: [{}, {1.0e-5, 1.0e-8, false}, @m, @m],
    window_elements: [{2, 2, 1, 2}, {[1, 2], [1, 1], [1, 1], [{0, 0}, {0, 0}]}, @m, @one],
    fourier: [:fft, {:c, 64}, {4}, [{0, 4}], 1.0e-10, @v],
    fourier: [:fft, {:c, 64}, {2, 3}, [{0, 2}, {1, 3}], 1.0e-10, @m],
    solve: [:lu, @f, @square, @square],
    solve: [{true, true, :none}, @f, @square, @square],
    factor: [:qr, [{@f, {2, 2}}, {@f, {2, 2}}], 1.0e-10, @square],
    factor: [:cholesky, [{@f, {2, 2}}], 1.0e-10, @square]
  ]

  @others [
    merge: [:nx, @f, {:u, 8}],
    merge_number: [:nx, @f, 3],
    result_type: [:nx, [@f, 3, {:array, {:u, 8}}]],
    promotion_types: [:nx],
    promotion_lattice: [:jax],
    promotion_concrete: [:jax, :int],
    promotion_facts: [{:numpy, 0}],
    operation: [:nx, :add, [@f, @f]],
    supports: [:add, @f, [@f, @f]]
  ]

  @calls (for {name, arguments} <- @families, kind <- [:normal, :dirty] do
            {:"#{name}_#{kind}", arguments}
          end) ++ @others

  @numbers [0, 1, 2, 3, -1, 0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FFFF_FFFF] ++
             [1 <<< 60, 1 <<< 61, 1 <<< 62, -(1 <<< 60), -(1 <<< 63), 1 <<< 64]
  @terms [nil, :none, 0.5, {}, [], "", <<0::3>>, {1, 2}, {0, 3}, [0], [0, 0], {@f, {0}, ""}]

  test "valid calls are answered" do
    for {name, arguments} <- @calls do
      answer = apply(Native, name, arguments)
      refute match?({:error, _}, answer), "#{name}: #{inspect(answer)}"
    end
  end

  @tag timeout: :infinity
  test "hostile terms don't make the library panic" do
    :rand.seed(:exsss, {40, 2, 1})

    case System.get_env("FERROX_FUZZ") do
      nil ->
        for _ <- 1..400, call <- @calls, do: attack(call)

      minutes ->
        :rand.seed(:exsss)
        attack_until(System.monotonic_time(:second) + 60 * String.to_integer(minutes))
    end
  end

  defp attack_until(time) do
    if System.monotonic_time(:second) < time do
      for call <- @calls, do: attack(call)
      attack_until(time)
    end
  end

  defp attack({name, arguments}) do
    # Faults of several sizes together need the same number in several places.
    Process.put(:numbers, if(one_of?(2), do: @numbers, else: [Enum.random(@numbers)]))
    count = :rand.uniform(4)
    hostile = Enum.reduce(1..count, arguments, fn _, terms -> inside(terms) end)
    hostile = if one_of?(2), do: Enum.map(hostile, &with_data/1), else: hostile

    if length(hostile) == length(arguments) do
      try do
        apply(Native, name, hostile)
      rescue
        ArgumentError -> :refused
        error -> flunk("#{name} with #{inspect(hostile)}: #{Exception.message(error)}")
      end
    end
  end

  # An operand with as many bytes as its shape says.
  defp with_data({{_, bits} = type, shape, data} = operand)
       when bits in [2, 4, 8, 16, 32, 64, 128] and is_tuple(shape) and is_binary(data) do
    dims = Tuple.to_list(shape)

    if Enum.all?(dims, &(is_integer(&1) and &1 in 0..5)) do
      {type, shape, :binary.copy(<<0>>, div(Enum.product(dims) * bits + 7, 8))}
    else
      operand
    end
  end

  defp with_data(other), do: other

  # A term with one of its parts replaced, left out, repeated, or with an improper end.
  defp spoiled([_ | _] = list), do: if(one_of?(3), do: spoiled_list(list), else: inside(list))

  defp spoiled(tuple) when is_tuple(tuple) and tuple != {} do
    cond do
      one_of?(8) -> Enum.random(@terms)
      one_of?(8) -> tuple |> Tuple.to_list() |> spoiled_list() |> as_tuple()
      true -> tuple |> Tuple.to_list() |> inside() |> as_tuple()
    end
  end

  defp spoiled(number) when is_integer(number), do: Enum.random(Process.get(:numbers))
  defp spoiled(_), do: Enum.random(@terms ++ @numbers)

  defp inside(list) do
    List.update_at(list, :rand.uniform(length(list)) - 1, &spoiled/1)
  rescue
    # An improper list.
    ArgumentError -> list
  end

  defp spoiled_list(list) do
    case :rand.uniform(5) do
      1 -> tl(list)
      2 -> [hd(list) | list]
      3 -> improper(list)
      4 -> []
      5 -> Enum.random(@terms)
    end
  end

  defp improper([_ | tail] = list) when is_list(tail) do
    Enum.reduce(Enum.reverse(list), :tail, &[&1 | &2])
  rescue
    _ -> list
  end

  defp improper(list), do: list

  defp as_tuple(list) when is_list(list) do
    List.to_tuple(list)
  rescue
    ArgumentError -> list
  end

  defp as_tuple(other), do: other

  defp one_of?(n), do: :rand.uniform(n) == 1
end
