defmodule Ferrox.NativeFuzz do
  @moduledoc """
  Calls every NIF with terms that no caller of this project makes, which may be refused or computed. A
  fault is a panic, an answer that is no result and no error, a VM that ends, or a call that doesn't.

  `main/1` runs in a VM of its own, since that may end.
  """

  import Bitwise, only: [<<<: 2]

  alias Ferrox.{Native, NativePrograms}

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
    promotion_systems: [],
    operations: [],
    library: [],
    scratch_memory: [false],
    merge: [:nx, @f, {:u, 8}],
    merge: [{:jax, 1}, :int, {:bf, 16}],
    merge_number: [:nx, @f, 3],
    result_type_normal: [:nx, [@f, 3, {:array, {:u, 8}}]],
    result_type_normal: [:numpy, [{:u, 8}, 3.5, {:array, {:s, 8}}, :bool]],
    result_type_dirty: [:nx, [@f, 3, {:array, {:u, 8}}]],
    promotion_types: [:nx],
    promotion_lattice: [:jax],
    promotion_concrete: [:jax, :int],
    promotion_facts: [{:numpy, 0}],
    operation_normal: [:nx, :add, [@f, @f]],
    operation_dirty: [:nx, :add, [@f, @f]],
    supports: [:add, @f, [@f, @f]]
  ]

  @numbers [0, 1, 2, 3, -1, 0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FFFF_FFFF] ++
             [
               1 <<< 34,
               1 <<< 40,
               1 <<< 60,
               1 <<< 61,
               1 <<< 62,
               -(1 <<< 60),
               -(1 <<< 63),
               1 <<< 64
             ]
  @terms [nil, :none, true, 0.5, {}, [], "", <<0::3>>, {1, 2}, {0, 3}, [0], [0, 0]] ++
           [{@f, {0}, ""}, {:f, 33}, {:q, 8}]
  @types [f: 32, f: 64, bf: 16, f: 16, f: 8, f8_e4m3fn: 8, c: 64, c: 128] ++
           [u: 2, u: 4, u: 8, u: 64, s: 2, s: 4, s: 8, s: 32, s: 64]

  # Seconds without an answer after which a call hangs.
  @patience 60
  # Milliseconds after which a run of a program is ended: it may have an endless loop.
  @run_ms 200
  # How often a run is continued on a normal scheduler.
  @resumes 5

  @doc "Names and numbers of arguments of the NIFs that are called."
  def nifs, do: for({name, arguments} <- calls(), uniq: true, do: {name, length(arguments)})

  @doc "A call of each NIF that is answered."
  def calls do
    families =
      for {name, arguments} <- @families,
          kind <- [:normal, :dirty],
          do: {:"#{name}_#{kind}", arguments}

    families ++ @others ++ Enum.flat_map(NativePrograms.all(), &program_calls/1)
  end

  defp program_calls(source) do
    program = Native.graph_compile(source)
    arguments = NativePrograms.arguments(source)

    [
      graph_compile: [source],
      graph_explain: [program],
      graph_measure: [program, arguments, 2],
      graph_run_normal: [program, arguments]
    ] ++
      case Native.graph_run_normal(program, arguments) do
        {:call, run, _number, values} ->
          {:call, other, _number, _values} = Native.graph_run_normal(program, arguments)

          [
            graph_resume_normal: [program, run, arguments, values],
            graph_resume_dirty: [program, other, arguments, values]
          ]

        _ ->
          []
      end
  end

  @doc """
  Attacks with a seed, for some rounds or minutes, and prints the faults.

  What is called is written to a file before, so that it is known if the VM ends.
  """
  def main([seed, kind, count, path]) do
    sources = NativePrograms.all() ++ lowered()
    :rand.seed(:exsss, seed)
    {:ok, file} = :file.open(path, [:write, :raw, :binary])
    done = :counters.new(1, [])
    spawn(fn -> watch(done, 0, path) end)
    Process.put(:state, {file, done})
    calls = calls()

    round = fn ->
      Enum.each(calls, &attack/1)
      Enum.each(sources, &attack_program/1)
    end

    case kind do
      :rounds -> for _ <- 1..count, do: round.()
      :minutes -> round_until(round, System.monotonic_time(:second) + 60 * count)
    end

    IO.puts("done: #{:counters.get(done, 1)} calls, #{length(sources)} programs")
  end

  @doc "The call in the file that `main/1` writes."
  def last_call(path) do
    with {:ok, binary} <- File.read(path), do: :erlang.binary_to_term(binary)
  rescue
    ArgumentError -> :unknown
  end

  defp round_until(round, time) do
    round.()
    if System.monotonic_time(:second) < time, do: round_until(round, time)
  end

  defp watch(done, before, path) do
    Process.sleep(@patience * 1_000)

    case :counters.get(done, 1) do
      ^before ->
        IO.puts(
          "fault: no answer for #{@patience} seconds: #{inspect(last_call(path), limit: :infinity)}"
        )

        :erlang.halt(3, flush: false)

      now ->
        watch(done, now, path)
    end
  end

  # Programs that the compiler makes of random functions of Nx.
  if Code.ensure_loaded?(Nx.Defn) do
    defp lowered do
      for app <- [:nx, :ferrox], do: {:ok, _} = Application.ensure_all_started(app)

      for seed <- 1..60, do: lower(seed)
      [_ | _] = for entry <- :ets.tab2list(Ferrox.Defn.Cache.Programs), do: elem(entry, 0)
    end

    # Some of these functions are no good ones.
    defp lower(seed) do
      {program, inputs} = Ferrox.DefnPrograms.random(seed, 8)
      fun = &Ferrox.DefnPrograms.run(program, &1)
      Nx.Defn.compile(fun, [inputs], compiler: Ferrox)
    rescue
      _ -> :none
    end
  else
    defp lowered, do: []
  end

  ## Attacks

  defp attack({name, arguments}) do
    hostile = hostile(arguments)
    # Those that may have an endless loop to run on a dirty scheduler.
    call = if name in [:graph_measure, :graph_resume_dirty], do: &limited/2, else: &call/2
    if length(hostile) == length(arguments), do: call.(name, hostile)
  end

  defp hostile(arguments) do
    # Faults of several sizes together need the same number in several places.
    Process.put(:numbers, if(one_of?(2), do: @numbers, else: [Enum.random(@numbers)]))
    hostile = Enum.reduce(1..:rand.uniform(4), arguments, fn _, terms -> inside(terms) end)
    if one_of?(2), do: Enum.map(hostile, &with_data/1), else: hostile
  end

  # Programs that are accepted are run.
  defp attack_program(source) do
    [hostile | _] = hostile([source]) ++ [source]

    with program when is_reference(program) <- call(:graph_compile, [hostile]) do
      call(:graph_explain, [program])

      arguments =
        try do
          NativePrograms.arguments(hostile)
        rescue
          _ -> {}
        end

      :graph_run_normal |> call([program, arguments]) |> go_on(program, arguments, @resumes)
      if one_of?(4), do: limited(:graph_measure, [program, arguments, :rand.uniform(3)])
    end
  end

  defp go_on({:paused, run}, program, arguments, 0),
    do: limited(:graph_resume_dirty, [program, run, arguments, nil])

  defp go_on({:paused, run}, program, arguments, left),
    do: resume(run, program, arguments, nil, left)

  defp go_on({:call, run, _number, values}, program, arguments, left) when left > 0,
    do: resume(run, program, arguments, values, left)

  defp go_on(_answer, _program, _arguments, _left), do: :ok

  # With another program, other arguments or other answers now and then.
  defp resume(run, program, arguments, answers, left) do
    other = Process.put(:program, program) || program
    program = if one_of?(6), do: other, else: program

    [arguments, answers] =
      if one_of?(3), do: hostile([arguments, answers]) |> pair(), else: [arguments, answers]

    :graph_resume_normal
    |> call([program, run, arguments, answers])
    |> go_on(program, arguments, left - 1)
  end

  defp pair([_, _] = list), do: list
  defp pair(_), do: [{}, []]

  defp call(name, arguments) do
    note(name, arguments)
    checked(name, arguments, answer(name, arguments))
  end

  # In a process that is ended, as an endless program is by its caller.
  defp limited(name, arguments) do
    note(name, arguments)
    {pid, monitor} = spawn_monitor(fn -> exit({:answer, answer(name, arguments)}) end)

    receive do
      {:DOWN, ^monitor, _, ^pid, {:answer, answer}} -> checked(name, arguments, answer)
    after
      @run_ms ->
        Process.exit(pid, :kill)

        receive do
          {:DOWN, ^monitor, _, ^pid, _} -> :ended
        end
    end
  end

  defp note(name, arguments) do
    {file, done} = Process.get(:state)
    :ok = :file.pwrite(file, 0, :erlang.term_to_binary({name, arguments}))
    :counters.add(done, 1, 1)
  end

  defp checked(name, arguments, answer) do
    if not valid?(answer), do: fault(name, arguments, answer)
    answer
  end

  defp answer(name, arguments) do
    apply(Native, name, arguments)
  rescue
    ArgumentError -> :refused
    error -> {:fault, Exception.message(error)}
  end

  defp valid?({:fault, _}), do: false
  defp valid?({:error, message}), do: is_binary(message) or is_atom(message) or is_tuple(message)
  defp valid?(_), do: true

  defp fault(name, arguments, answer) do
    IO.puts(
      "fault: #{name} answers #{inspect(answer)}: #{inspect(arguments, limit: :infinity, printable_limit: :infinity)}"
    )
  end

  ## Hostile terms

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

  defp spoiled({kind, bits} = type) when is_atom(kind) and is_integer(bits),
    do: if(one_of?(4), do: inside_tuple(type), else: Enum.random(@types))

  defp spoiled(tuple) when is_tuple(tuple) and tuple != {} do
    cond do
      one_of?(8) -> Enum.random(@terms)
      one_of?(8) -> tuple |> Tuple.to_list() |> spoiled_list() |> as_tuple()
      true -> inside_tuple(tuple)
    end
  end

  defp spoiled(data) when is_bitstring(data) do
    case :rand.uniform(5) do
      1 -> binary_part(data, 0, max(byte_size(data) - 1, 0))
      2 -> <<data::bitstring, 0>>
      3 -> <<data::bitstring, 1::1>>
      4 -> :binary.copy(<<Enum.random([0, 1, 127, 128, 255])>>, byte_size(data))
      5 -> Enum.random(@terms)
    end
  end

  defp spoiled(number) when is_integer(number), do: Enum.random(Process.get(:numbers))
  defp spoiled(_), do: Enum.random(@terms ++ @numbers)

  defp inside_tuple(tuple), do: tuple |> Tuple.to_list() |> inside() |> as_tuple()

  defp inside([]), do: []

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
