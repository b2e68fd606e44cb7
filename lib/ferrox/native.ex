defmodule Ferrox.Native do
  @moduledoc false
  # The native library: one function a family of operations, which hands over the
  # data and raises what went wrong.
  #
  # Tensors are passed as `{type, shape, data}` and results come back as data.

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.Observer

  @on_load :load

  # What each call passes through.
  @compile {:inline, like: 3, data: 3, size: 1, unwrap!: 1}

  @typep type :: {atom, pos_integer}
  @type operand :: {type, tuple, bitstring}
  # The data of a result whose type Nx's rules give. The type is named if it is not that of the operand
  # that a function names.
  @type nx_answer :: bitstring | {type, bitstring}

  # More would be a mistake, and take the machine down.
  @max_threads 256

  # Results of fewer bytes are made without asking how large they may be.
  @least_max_result_bytes 1_000_000

  # The persistent term that says why the library couldn't be loaded.
  @load_error {__MODULE__, :load_error}

  # Loading again, as a recompilation in IEx or a hot upgrade does, keeps the
  # library: the new module gets its NIFs and its compiled programs. A library that
  # has been built anew is refused until the VM starts again, and then the module
  # that is there goes on. Only anonymous functions of a module don't survive that,
  # so this one has none.
  @doc false
  def load do
    path = :filename.join(:code.priv_dir(:ferrox), ~c"native/ferrox_nif")

    case :erlang.load_nif(path, {threads(), machine_code?(), max_result_bytes()}) do
      :ok ->
        # Where the module was purged before, what has been compiled belongs to a library that is gone.
        if Process.whereis(Ferrox.Defn.Cache.Programs), do: Ferrox.Defn.Cache.clear()
        :ok

      {:error, {reason, text}} ->
        # The VM logs this, and gives it to nobody else.
        :persistent_term.put(@load_error, List.to_string(text))
        {:error, {reason, text}}
    end
  end

  defp threads do
    default = min(System.schedulers_online(), @max_threads)

    case Application.get_env(:ferrox, :threads, default) do
      threads when is_integer(threads) and threads in 1..@max_threads -> threads
      other -> misconfigured(:threads, "an integer from 1 to #{@max_threads}", other, default)
    end
  end

  defp machine_code? do
    case Application.get_env(:ferrox, :machine_code, true) do
      wanted? when is_boolean(wanted?) -> wanted?
      other -> misconfigured(:machine_code, "true or false", other, true)
    end
  end

  # Zero for any number.
  defp max_result_bytes do
    case Application.get_env(:ferrox, :max_result_bytes, :infinity) do
      :infinity ->
        0

      bytes when is_integer(bytes) and bytes >= @least_max_result_bytes ->
        bytes

      other ->
        wanted = "an integer from #{@least_max_result_bytes} on, or :infinity"
        misconfigured(:max_result_bytes, wanted, other, :infinity)
        0
    end
  end

  defp misconfigured(key, what, value, default) do
    IO.warn(
      "config :ferrox, #{inspect(key)} must be #{what}, got: #{inspect(value)}; " <>
        "going on with #{inspect(default)}",
      []
    )

    default
  end

  ## The NIFs

  families = [
    binary: 5,
    unary: 4,
    nx_binary: 5,
    nx_unary: 4,
    as_type: 3,
    reduce: 4,
    nx_reduce: 3,
    arg_reduce: 5,
    dot: 8,
    matmul: 7,
    window: 5,
    window_scatter: 6,
    conv: 5,
    select: 5,
    clip: 5,
    transpose: 3,
    broadcast: 3,
    reverse: 3,
    slice: 5,
    concatenate: 4,
    iota: 3,
    eye: 2,
    pad: 5,
    sort: 3,
    argsort: 4,
    top_k: 3,
    gather: 4,
    take: 4,
    take_along_axis: 3,
    indexed: 6,
    put_slice: 4,
    cumulative: 4,
    all_close: 4,
    window_elements: 4,
    fourier: 6,
    solve: 4,
    factor: 4
  ]

  stubs =
    for({name, arity} <- families, kind <- [:normal, :dirty], do: {:"#{name}_#{kind}", arity}) ++
      [
        merge: 3,
        merge_number: 3,
        result_type_normal: 2,
        result_type_dirty: 2,
        promotion_systems: 0,
        promotion_types: 1,
        promotion_lattice: 1,
        promotion_concrete: 2,
        promotion_facts: 1,
        operation_normal: 3,
        operation_dirty: 3,
        supports: 3,
        operations: 0,
        library: 0,
        scratch_memory: 1,
        graph_compile: 1,
        graph_explain: 1,
        graph_measure: 3,
        graph_run_normal: 2,
        graph_resume_normal: 4,
        graph_resume_dirty: 4
      ]

  for {name, arity} <- stubs do
    args = Macro.generate_arguments(arity, __MODULE__)
    @doc false
    def unquote(name)(unquote_splicing(args)) do
      _ = unquote(args)
      :erlang.nif_error(:ferrox_library_not_loaded)
    end
  end

  ## The families

  # The library estimates the work, and does none where it is too much for the
  # scheduler that the process runs on.
  defmacrop call(name, args) do
    {normal, dirty} = {:"#{name}_normal", :"#{name}_dirty"}

    quote do
      case :persistent_term.get(Observer, :off) do
        :off ->
          case unquote(normal)(unquote_splicing(args)) do
            :dirty -> unquote(dirty)(unquote_splicing(args))
            answer -> answer
          end

        mode ->
          Observer.call(mode, unquote(name), unquote(normal), unquote(dirty), unquote(args))
      end
    end
  end

  @doc "`op` is one of the 24 of `Nx.Backend`, `shape` that of the result."
  @spec binary(atom, type, tuple, operand, operand) :: bitstring
  def binary(op, type, shape, left, right) do
    left = like(left, type, shape)
    right = like(right, type, shape)
    call(:binary, [op, type, shape, left, right]) |> data(type, shape)
  end

  @doc """
  `binary/5` in the type that Nx gives the result. An operand is `{type, shape, data}`, or
  `{type, data}` or data alone without what is the given type and the shape of the result; or one is
  a plain number beside data alone.
  """
  @spec nx_binary(atom, type, tuple, nx_operand, nx_operand) :: nx_answer
        when nx_operand: binary | {type, binary} | operand | number
  def nx_binary(op, type, shape, left, right),
    do: call(:nx_binary, [op, type, shape, left, right]) |> unwrap!()

  @doc "`unary/3` of these data in the type that Nx gives the result."
  @spec nx_unary(atom, type, tuple, binary) :: nx_answer
  def nx_unary(op, type, shape, data),
    do: call(:nx_unary, [op, type, shape, data]) |> unwrap!()

  @spec unary(atom, type, operand) :: bitstring
  def unary(op, type, {_, shape, _} = input),
    do: call(:unary, [op, type, shape, like(input, type, shape)]) |> data(type, shape)

  @spec as_type(type, operand) :: bitstring
  def as_type(type, {_, shape, _} = input),
    do: call(:as_type, [type, shape, like(input, type, shape)]) |> data(type, shape)

  ## Promotion

  @doc "The result type of operands as a system has it."
  @spec result_type(term, [term]) :: term
  def result_type(mode, operands) do
    case result_type_normal(mode, operands) do
      :dirty -> result_type_dirty(mode, operands)
      answer -> answer
    end
  end

  @doc "What a system computes for an operation on operands."
  @spec operation(term, atom, [term]) :: term
  def operation(mode, op, operands) do
    case operation_normal(mode, op, operands) do
      :dirty -> operation_dirty(mode, op, operands)
      answer -> answer
    end
  end

  ## Compiled programs

  @doc "A program of the regions and literals that `Ferrox.Defn.Lower` makes."
  @spec compile({[tuple], [binary]}) :: reference
  def compile(program), do: graph_compile(program) |> unwrap!()

  @doc "A program as text."
  @spec explain(reference) :: String.t()
  def explain(program), do: graph_explain(program) |> unwrap!()

  @doc """
  Runs a program some times, or once if it calls functions of Elixir, and gives `{:measured, text,
  results}`: the program as text, with the times that its instructions take.
  """
  @spec measure(reference, tuple, pos_integer) :: run | {:measured, String.t(), [binary]}
  def measure(program, arguments, runs),
    do: graph_measure(program, arguments, runs) |> go_on(program, arguments)

  @typedoc "The data of results, or a run that waits for what a function of Elixir gives."
  @type run :: [binary] | {:call, reference, non_neg_integer, [binary]}

  @doc "Runs a program on the data of its arguments, in whole bytes."
  @spec run(reference, tuple) :: run
  def run(program, arguments),
    do: graph_run_normal(program, arguments) |> go_on(program, arguments)

  @doc "Goes on with a run that waits, given the data that the function gave."
  @spec resume(reference, reference, tuple, [binary]) :: run
  def resume(program, run, arguments, answers) do
    case graph_resume_normal(program, run, arguments, answers) do
      # The library copies the answers, and these are too large for a normal scheduler.
      :dirty -> graph_resume_dirty(program, run, arguments, answers)
      answer -> answer
    end
    |> go_on(program, arguments)
  end

  # A run that is too long for a normal scheduler goes on where it has paused.
  defp go_on({:paused, run}, program, arguments),
    do: graph_resume_dirty(program, run, arguments, nil) |> go_on(program, arguments)

  defp go_on(answer, _program, _arguments), do: unwrap!(answer)

  @doc "The data of a result, of which the library sees whole bytes."
  @spec result(binary, type, tuple) :: bitstring
  def result(answer, type, shape), do: data(answer, type, shape)

  ## Others

  @doc "The type that Nx gives the result of `reduce/5`, and the data."
  @spec nx_reduce(atom, tuple, [non_neg_integer] | nil, operand) :: {type, bitstring}
  def nx_reduce(op, shape, axes, input) do
    {type, _, _} = input = whole(input)

    case call(:nx_reduce, [op, axes, input]) do
      {{_, _} = type, answer} -> {type, data(answer, type, shape)}
      answer -> {type, data(answer, type, shape)}
    end
  end

  @doc "`shape` is that of the result, `axes` nil for all axes."
  @spec reduce(atom, type, tuple, [non_neg_integer] | nil, operand) :: bitstring
  def reduce(op, type, shape, axes, input),
    do: call(:reduce, [op, type, axes, whole(input)]) |> data(type, shape)

  @doc "`op` is `:reduce_max` or `:reduce_min`, `axis` nil for all axes."
  @spec arg_reduce(atom, type, tuple, non_neg_integer | nil, :low | :high, operand) :: bitstring
  def arg_reduce(op, type, shape, axis, tie_break, input) do
    call(:arg_reduce, [op, type, axis, tie_break == :high, whole(input)]) |> data(type, shape)
  end

  @doc "Each side is `{operand, axes to sum over, axes of the batch}`."
  @spec dot(type, tuple, side, side) :: bitstring
        when side: {operand, [non_neg_integer], [non_neg_integer]}
  def dot(type, shape, {left, left_axes, left_batch}, {right, right_axes, right_batch}) do
    {{_, left_shape, left_data}, {_, right_shape, right_data}} = {left, right}

    case matrices(left_shape, left_axes, left_batch, right_shape, right_axes, right_batch) do
      {_, _, _, _} = sizes when is_binary(left_data) and is_binary(right_data) ->
        matmul(type, shape, sizes, like(left, type, left_shape), like(right, type, right_shape))

      _ ->
        {left, right} = {whole(left), whole(right)}

        call(:dot, [type, shape, left, left_axes, left_batch, right, right_axes, right_batch])
        |> data(type, shape)
    end
  end

  @doc "Products of matrices of m by k and of k by n. Operands of the type of the result are data alone."
  @spec matmul(type, tuple, {pos_integer, pos_integer, pos_integer, pos_integer}, side, side) ::
          bitstring
        when side: binary | {type, binary}
  def matmul(type, shape, {batches, m, k, n}, left, right),
    do: call(:matmul, [type, batches, m, k, n, left, right]) |> data(type, shape)

  # `{batches, m, k, n}` for matrices of m by k and of k by n: four numbers are decoded sooner than
  # shapes and axes.
  defp matrices({m, k}, [1], [], {k, n}, [0], []), do: {1, m, k, n}
  defp matrices({m, k}, [1], [], {k}, [0], []), do: {1, m, k, 1}
  defp matrices({k}, [0], [], {k, n}, [0], []), do: {1, 1, k, n}
  defp matrices({k}, [0], [], {k}, [0], []), do: {1, 1, k, 1}
  defp matrices({b, m, k}, [2], [0], {b, k, n}, [1], [0]), do: {b, m, k, n}
  defp matrices(_left, _axes, _batch, _right, _axes2, _batch2), do: nil

  @doc "`over` is `{window shape, padding, strides, dilations}`."
  @spec window(atom, type, tuple, over, operand) :: bitstring
        when over: {tuple, [{integer, integer}], [pos_integer], [pos_integer]}
  def window(op, type, shape, over, input),
    do: call(:window, [op, type, shape, over, whole(input)]) |> data(type, shape)

  @doc "`over` is as for `window/5`; the result has the shape of `input`."
  @spec window_scatter(atom, type, tuple, operand, operand, operand) :: bitstring
  def window_scatter(op, type, over, {_, shape, _} = input, source, init) do
    call(:window_scatter, [op, type, over, whole(input), whole(source), whole(init)])
    |> data(type, shape)
  end

  @doc """
  `options` is `{strides, padding, input_dilation, kernel_dilation, groups,
  permutations}`, groups of features and of the batch, permutations of the input, the
  kernel and the result.
  """
  @spec conv(type, tuple, operand, operand, tuple) :: bitstring
  def conv(type, shape, input, kernel, options),
    do: call(:conv, [type, shape, whole(input), whole(kernel), options]) |> data(type, shape)

  for op <- [:select, :clip] do
    @spec unquote(op)(type, tuple, operand, operand, operand) :: bitstring
    def unquote(op)(type, shape, first, second, third) do
      first = like(first, type, shape)
      second = like(second, type, shape)
      third = like(third, type, shape)
      call(unquote(op), [type, shape, first, second, third]) |> data(type, shape)
    end
  end

  # A single element stays where it is, here and below.
  @spec transpose(tuple, [non_neg_integer], operand) :: bitstring
  def transpose(_shape, _axes, {{_, bits}, _, data}) when bit_size(data) == bits, do: data

  def transpose(shape, axes, {type, _, _} = input),
    do: call(:transpose, [shape, axes, whole(input)]) |> data(type, shape)

  # As many elements as before are the same ones, in the same order.
  @spec broadcast(tuple, [non_neg_integer], operand) :: bitstring
  def broadcast(shape, _axes, {{_, bits}, _, data})
      when (shape == {} or shape == {1} or shape == {1, 1}) and bit_size(data) == bits,
      do: data

  def broadcast(shape, axes, {type, _, _} = input),
    do: call(:broadcast, [shape, axes, whole(input)]) |> data(type, shape)

  @spec reverse(tuple, [non_neg_integer], operand) :: bitstring
  def reverse(_shape, _axes, {{_, bits}, _, data}) when bit_size(data) == bits, do: data

  def reverse(shape, axes, {type, _, _} = input) do
    {dims, axes, input} = as_one_axis(shape, axes, whole(input))
    call(:reverse, [dims, axes, input]) |> data(type, shape)
  end

  # All axes are one, which is decoded sooner.
  defp as_one_axis(shape, axes, {type, _, data} = input) do
    if all_axes?(axes, 0, tuple_size(shape)),
      do: {size(shape), [0], {type, size(shape), data}},
      else: {shape, axes, input}
  end

  defp all_axes?([axis | axes], axis, rank), do: all_axes?(axes, axis + 1, rank)
  defp all_axes?(axes, axis, rank), do: axes == [] and axis == rank

  @doc "`lengths` count elements before the strides leave some out."
  @spec slice(tuple, [integer], [integer], [integer], operand) :: bitstring
  def slice(shape, _starts, _lengths, _strides, {_, shape, data}), do: data

  def slice(shape, starts, lengths, strides, {type, _, _} = input),
    do: call(:slice, [shape, starts, lengths, strides, whole(input)]) |> data(type, shape)

  # Few enough for the VM to put one after the other itself: 64 KB.
  @few_bits 8 * 65_536

  @doc "The operands have the type of the result."
  @spec concatenate(type, tuple, non_neg_integer, [operand]) :: bitstring
  def concatenate({_, bits} = type, shape, axis, operands) do
    if axis == 0 and bits >= 8 and size(shape) * bits <= @few_bits,
      do: operands |> data_of() |> IO.iodata_to_binary(),
      else: join(type, shape, axis, operands)
  end

  defp data_of([]), do: []
  defp data_of([{_, _, data} | operands]), do: [data | data_of(operands)]

  defp join(type, shape, axis, operands) do
    operands = all_whole(operands)
    call(:concatenate, [type, shape, axis, operands]) |> data(type, shape)
  end

  @doc "`axis` is nil for all axes."
  @spec iota(type, tuple, non_neg_integer | nil) :: bitstring
  def iota(type, shape, axis),
    do: call(:iota, [type, shape, axis]) |> data(type, shape)

  @spec eye(type, tuple) :: bitstring
  def eye(type, shape),
    do: call(:eye, [type, shape]) |> data(type, shape)

  @doc "`axes` has one `{axis, length}`, or two."
  @spec fourier(atom, type, tuple, [{non_neg_integer, pos_integer}], number, operand) :: bitstring
  def fourier(op, type, shape, axes, eps, input),
    do: call(:fourier, [op, type, shape, axes, eps * 1.0, whole(input)]) |> data(type, shape)

  @doc "`how` is `:lu`, `:qr` or `{lower, left_side, transform_a}`; the shape is that of `b`."
  @spec solve(:lu | :qr | {boolean, boolean, atom}, type, operand, operand) :: bitstring
  def solve(how, type, a, {_, shape, _} = b),
    do: call(:solve, [how, type, whole(a), whole(b)]) |> data(type, shape)

  @doc "`results` are the types and shapes of what `op` gives."
  @spec factor(atom, [{type, tuple}], number, operand) :: [bitstring]
  def factor(op, results, eps, input) do
    call(:factor, [op, results, eps * 1.0, whole(input)]) |> unwrap!() |> all_data(results)
  end

  @doc "`paddings` are `{low, high, interior}` for each axis."
  @spec pad(type, tuple, [{integer, integer, non_neg_integer}], operand, operand) :: bitstring
  def pad(type, shape, paddings, input, value),
    do: call(:pad, [type, shape, paddings, whole(input), whole(value)]) |> data(type, shape)

  @spec sort(non_neg_integer, boolean, operand) :: bitstring
  def sort(axis, descending?, {type, shape, _} = input),
    do: call(:sort, [axis, descending?, whole(input)]) |> data(type, shape)

  @spec argsort(type, non_neg_integer, boolean, operand) :: bitstring
  def argsort(type, axis, descending?, {_, shape, _} = input),
    do: call(:argsort, [type, axis, descending?, whole(input)]) |> data(type, shape)

  @doc "The places of the largest along the last axis, which is so many long in `shape`."
  @spec top_k(type, tuple, operand) :: bitstring
  def top_k(type, shape, input),
    do: call(:top_k, [type, shape, whole(input)]) |> data(type, shape)

  @spec gather(tuple, [non_neg_integer], operand, operand) :: bitstring
  def gather(shape, axes, {type, _, _} = input, indices),
    do: call(:gather, [shape, axes, whole(input), whole(indices)]) |> data(type, shape)

  @spec take(tuple, non_neg_integer, operand, operand) :: bitstring
  def take(shape, axis, {type, _, _} = input, indices),
    do: call(:take, [shape, axis, whole(input), whole(indices)]) |> data(type, shape)

  @spec take_along_axis(non_neg_integer, operand, operand) :: bitstring
  def take_along_axis(axis, {type, _, _} = input, {_, shape, _} = indices),
    do: call(:take_along_axis, [axis, whole(input), whole(indices)]) |> data(type, shape)

  @doc "`indexed_add`, or `indexed_put`."
  @spec indexed(:indexed_add | :indexed_put, type, [non_neg_integer], operand, operand, operand) ::
          bitstring
  def indexed(op, type, axes, {_, shape, _} = target, indices, updates) do
    {target, indices, updates} = {whole(target), whole(indices), whole(updates)}

    call(:indexed, [op == :indexed_add, type, axes, target, indices, updates])
    |> data(type, shape)
  end

  @spec put_slice(type, [non_neg_integer], operand, operand) :: bitstring
  def put_slice(type, starts, {_, shape, _} = input, slice),
    do: call(:put_slice, [type, starts, whole(input), whole(slice)]) |> data(type, shape)

  @doc "The result has the type and the shape of the operand."
  @spec cumulative(atom, non_neg_integer, boolean, operand) :: bitstring
  def cumulative(op, axis, reverse, {type, shape, _} = input),
    do: call(:cumulative, [op, axis, reverse, whole(input)]) |> data(type, shape)

  @doc "The tolerances are `{relative, absolute, whether NaN equals NaN}`."
  @spec all_close(tuple, {float, float, boolean}, operand, operand) :: binary
  def all_close(shape, tolerances, left, right),
    do: call(:all_close, [shape, tolerances, whole(left), whole(right)]) |> data({:u, 8}, shape)

  @doc """
  The elements of each window; `pad`, of the same type, is outside of the tensor.

  The windows are `{sizes, strides, dilations, padding}`, the shape is that of their
  places followed by the sizes.
  """
  @spec window_elements(tuple, {list, list, list, list}, operand, operand) :: bitstring
  def window_elements(shape, windows, {type, _, _} = input, pad) do
    call(:window_elements, [shape, windows, whole(input), whole(pad)]) |> data(type, shape)
  end

  @doc """
  The answer of the library, or an ArgumentError with its message.
  """
  @spec unwrap!(term) :: term
  def unwrap!({:error, message}), do: raise(ArgumentError, message)
  def unwrap!(answer), do: answer

  ## Bits and bytes

  # Types of 2 and 4 bits may leave the last byte of their data unfilled, and
  # NIFs only see whole bytes.
  defp data(answer, {_, bits}, _shape) when is_binary(answer) and bits >= 8, do: answer

  defp data(answer, {_, bits}, shape) when is_binary(answer) do
    used = size(shape) * bits
    <<data::bitstring-bound_size(used), _::bitstring>> = answer
    data
  end

  defp data({:error, _} = error, _type, _shape), do: unwrap!(error)

  defp all_data([], []), do: []

  defp all_data([answer | answers], [{type, shape} | results]),
    do: [data(answer, type, shape) | all_data(answers, results)]

  # An operand of an elementwise operation without what it has in common with the result: the less
  # there is, the quicker it is decoded.
  defp like({type, shape, data}, type, shape) when is_binary(data), do: data
  defp like({type, shape, data}, _type, shape) when is_binary(data), do: {type, data}
  defp like(operand, _type, _shape), do: whole(operand)

  defp all_whole([]), do: []
  defp all_whole([operand | operands]), do: [whole(operand) | all_whole(operands)]

  defp whole({_, _, data} = operand) when is_binary(data), do: operand

  defp whole({type, shape, data}), do: {type, shape, whole_bytes(data)}

  @doc "The data, filled up to whole bytes."
  @spec whole_bytes(bitstring) :: binary
  def whole_bytes(data) when is_binary(data), do: data

  def whole_bytes(data) do
    padding = 8 - rem(bit_size(data), 8)
    <<data::bitstring, 0::size(padding)>>
  end

  @doc "The number of elements of a shape."
  @spec size(tuple) :: non_neg_integer
  def size({}), do: 1
  def size({a}), do: a
  def size({a, b}), do: a * b
  def size({a, b, c}), do: a * b * c
  def size(shape), do: Tuple.product(shape)
end
