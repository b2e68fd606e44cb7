defmodule Ferrox.Observer do
  @moduledoc false
  # Counts the calls of the native library and reports them as events, as far as `Ferrox.observe/1` asks
  # for it.
  #
  # Everything that calls the library looks up the mode first, the persistent term of this name, and goes
  # on by itself if that is `:off` or not there. The lookup is all that a call costs then.

  alias Ferrox.Native

  @compile {:no_warn_undefined, :telemetry}

  @type mode :: :off | :stats | :events
  @typep family :: atom

  @modes [:off, :stats, :events]

  # The families of `Ferrox.Native`, and compiled programs.
  @families [:binary, :unary, :as_type, :select, :clip, :reduce, :arg_reduce, :cumulative] ++
              [:all_close, :dot, :conv, :window, :window_scatter, :window_elements] ++
              [:transpose, :broadcast, :reverse, :slice, :concatenate, :pad, :put_slice] ++
              [:sort, :argsort, :top_k, :gather, :take, :take_along_axis, :indexed] ++
              [:iota, :eye, :fourier, :solve, :factor, :program]

  # The counters are made once: replacing a persistent term that isn't an atom collects the garbage of all
  # processes.
  @counters {__MODULE__, :counters}
  @numbers [:calls, :dirty_calls, :time, :bytes]

  @doc "See `Ferrox.observe/1`."
  @spec observe(mode) :: :ok
  def observe(mode) when mode in @modes do
    if mode == :events, do: start_telemetry()
    if mode != :off and counters() == nil, do: reset()
    :persistent_term.put(__MODULE__, mode)
  end

  def observe(other) do
    raise ArgumentError,
          "expected one of: #{Enum.map_join(@modes, ", ", &inspect/1)}, got: #{inspect(other)}"
  end

  defp start_telemetry do
    if match?({:error, _}, Application.ensure_all_started(:telemetry)) do
      raise ArgumentError,
            "events need the application :telemetry, which isn't there: add it to the " <>
              "dependencies (Nx brings it), or take observe(:stats)"
    end
  end

  @doc "See `Ferrox.stats/0`."
  @spec stats() :: map
  def stats do
    {_version, _instructions, threads, _machine_code, _debug?} = Native.library()
    counters = counters()

    families =
      for {family, first} <- first_counters(),
          counters != nil,
          numbers = numbers(counters, first),
          numbers.calls > 0,
          into: %{},
          do: {family, numbers}

    %{threads: threads, scratch_bytes: Native.scratch_memory(false), families: families}
  end

  defp numbers(counters, first) do
    @numbers
    |> Enum.with_index(fn name, index -> {name, :counters.get(counters, first + index)} end)
    |> Map.new()
    |> Map.update!(:time, &System.convert_time_unit(&1, :native, :nanosecond))
  end

  @doc "See `Ferrox.reset_stats/0`."
  @spec reset() :: :ok
  def reset do
    size = length(@families) * length(@numbers)
    _ = Native.scratch_memory(true)

    case counters() do
      nil -> :persistent_term.put(@counters, :counters.new(size, [:write_concurrency]))
      counters -> Enum.each(1..size, &:counters.put(counters, &1, 0))
    end
  end

  defp counters, do: :persistent_term.get(@counters, nil)

  # The number of a family's first counter.
  for {family, index} <- Enum.with_index(@families) do
    defp first_counter(unquote(family)), do: unquote(index * length(@numbers) + 1)
  end

  defp first_counters, do: for(family <- @families, do: {family, first_counter(family)})

  @doc """
  Calls the library: the NIF for normal schedulers, and the one for dirty ones if that is its answer.
  """
  @spec call(:stats | :events, atom, atom, atom, [term]) :: term
  def call(mode, name, normal, dirty, args) do
    start = System.monotonic_time()

    {scheduler, answer} =
      case apply(Native, normal, args) do
        :dirty -> {:dirty, apply(Native, dirty, args)}
        answer -> {:normal, answer}
      end

    duration = System.monotonic_time() - start

    if not match?({:error, _}, answer) do
      family = family(name)
      bytes = bytes(answer)
      count(family, scheduler, duration, bytes)
      if mode == :events, do: report(family, name, args, scheduler, duration, bytes)
    end

    answer
  end

  @doc """
  Runs a compiled program, of this function and with these types and shapes of its parameters, or goes
  on with it.
  """
  @spec program(:stats | :events, term, [{{atom, pos_integer}, tuple}], fun) :: Native.run()
  def program(mode, function, parameters, run) do
    start = System.monotonic_time()
    answer = run.()
    duration = System.monotonic_time() - start
    bytes = bytes(answer)
    count(:program, nil, duration, bytes)

    if mode == :events,
      do: execute(:program, :program, parameters, duration, bytes, %{function: function})

    answer
  end

  defp count(family, scheduler, duration, bytes) do
    # Counters that are reset meanwhile may miss a part of a call.
    counters = counters()
    first = first_counter(family)
    :counters.add(counters, first, 1)
    if scheduler == :dirty, do: :counters.add(counters, first + 1, 1)
    :counters.add(counters, first + 2, duration)
    :counters.add(counters, first + 3, bytes)
  end

  defp report(family, name, args, scheduler, duration, bytes) do
    operands = operands(name, args)
    execute(family, operation(name, args), operands, duration, bytes, %{scheduler: scheduler})
  end

  defp execute(family, operation, operands, duration, bytes, others) do
    {types, shapes} = Enum.unzip(operands)
    {_version, _instructions, threads, _machine_code, _debug?} = Native.library()

    metadata = %{
      family: family,
      operation: operation,
      types: types,
      shapes: shapes,
      scheduler: nil,
      threads: threads,
      function: nil
    }

    measurements = %{duration: duration, bytes: bytes}
    :telemetry.execute([:ferrox, :operation, :stop], measurements, Map.merge(metadata, others))
  end

  # What the library gives: data, with their type, or several of them.
  defp bytes(data) when is_binary(data), do: byte_size(data)
  defp bytes({_type, data}) when is_binary(data), do: byte_size(data)
  defp bytes({:call, _run, _number, values}), do: bytes(values)
  defp bytes(answers) when is_list(answers), do: answers |> Enum.map(&bytes/1) |> Enum.sum()

  ## What the arguments of a NIF say

  @spec family(atom) :: family
  defp family(:nx_binary), do: :binary
  defp family(:nx_unary), do: :unary
  defp family(:nx_reduce), do: :reduce
  defp family(:matmul), do: :dot
  defp family(name), do: name

  defp operation(:arg_reduce, [:reduce_max | _]), do: :argmax
  defp operation(:arg_reduce, [:reduce_min | _]), do: :argmin
  defp operation(:indexed, [true | _]), do: :indexed_add
  defp operation(:indexed, [false | _]), do: :indexed_put
  defp operation(:solve, [{_lower, _left, _transform} | _]), do: :triangular_solve
  defp operation(:solve, _args), do: :solve

  @named [:binary, :unary, :nx_binary, :nx_unary, :reduce, :nx_reduce, :cumulative] ++
           [:window, :window_scatter, :fourier, :factor]

  defp operation(name, [op | _]) when name in @named, do: op
  defp operation(name, _args), do: family(name)

  # The types and shapes of the operands that are tensors. What an operand of an elementwise operation
  # has in common with the result is only in the result.
  defp operands(:matmul, [type, batches, m, k, n, left, right]) do
    batch = if batches == 1, do: [], else: [batches]

    operands([left], type, List.to_tuple(batch ++ [m, k])) ++
      operands([right], type, List.to_tuple(batch ++ [k, n]))
  end

  defp operands(name, [_op, type, shape | rest])
       when name in [:binary, :unary, :nx_binary, :nx_unary],
       do: operands(rest, type, shape)

  defp operands(name, [type, shape | rest]) when name in [:as_type, :select, :clip],
    do: operands(rest, type, shape)

  defp operands(_name, args), do: operands(args, nil, nil)

  defp operands(args, type, shape), do: Enum.flat_map(args, &operand(&1, type, shape))

  defp operand(data, type, shape) when is_binary(data), do: [{type, shape}]
  defp operand({type, data}, _type, shape) when is_binary(data), do: [{type, shape}]

  defp operand({type, shape, data}, _type, _shape) when is_binary(data) do
    [{type, if(is_integer(shape), do: {shape}, else: shape)}]
  end

  defp operand([_ | _] = operands, type, shape), do: operands(operands, type, shape)
  defp operand(_argument, _type, _shape), do: []
end
