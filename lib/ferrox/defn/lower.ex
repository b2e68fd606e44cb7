defmodule Ferrox.Defn.Lower do
  @moduledoc false
  # Lowers the expressions of Nx to a program of the native library: regions of steps with numbered
  # slots, as `native/ferrox_core/src/graph/source.rs` describes them.
  #
  # Expressions are walked as Nx's evaluator walks them, depth first, arguments from left to right, and
  # each becomes a step when it is first needed. What only a branch of a condition needs is a step of
  # this branch. If an earlier branch may have computed it, its steps are wrapped in an `:unless`. So
  # side effects happen in the evaluator's order, and nothing is computed that the evaluator would
  # not compute.
  #
  # Reshapes and the like are no steps, but the same slot with another shape. Broadcasts are steps only
  # where a consumer isn't elementwise.

  alias Ferrox.{Native, Numbers, Shape}
  alias Ferrox.Backend.{Fourier, LinAlg, Operations}
  alias Ferrox.Defn.{Expression, ReverseLoop}

  @compile {:no_warn_undefined, [Nx, Nx.Defn.Composite, Nx.Defn.Tree]}

  @typep type :: {atom, pos_integer}
  # The number of a slot, or -1 less the number of a literal.
  @typep place :: integer
  @typep operand :: {place, type, tuple}
  # An operand, a broadcast operand whose axes are the last ones of a shape, or several.
  @typep value :: operand | {:broadcast, operand, tuple} | tuple

  @type lowered :: %{
          program: {regions :: [tuple], literals :: [binary]},
          callbacks: [tuple],
          used: [boolean]
        }

  # The maximum number of steps, those of all branches counted.
  @max_steps 1_000_000

  # The maximum number of branches inside of each other. The native library walks them by recursion, and
  # has it as MAX_DEPTH in native/ferrox_nif/src/graph/decode.rs.
  @max_depth 32

  # What takes its arguments as they are needed, or isn't made of arguments alone.
  @lazy [:cond, :while, :fun, :token, :attach_token, :hook, :io_call, :runtime_call, :optional] ++
          [:block, :reduce, :window_reduce]

  defmodule Unsupported do
    @moduledoc false
    defexception [:message]
  end

  @doc """
  The program of a container of expressions, the calls into Elixir that it makes, and which arguments
  it uses.

  `parameters` are the types and shapes of the arguments. Those that are not used have no elements in
  the program. Hooks with a function, and those with a name in `hooks`, are calls; with `:all` all hooks.
  With `math: :fast`, functions of f32 are those that are evaluated in f32, where there is one.

  Raises `Ferrox.Defn.Lower.Unsupported` for expressions that have no native form.
  """
  @spec program(term, [{type, tuple}], map | :all, :exact | :fast) :: lowered
  def program(container, parameters, hooks, math) do
    state = %{
      # Of the region: its steps in reverse order, the values of expressions, whether slots are computed
      # always or maybe where the walk is, those of them that were not when the branch around the walk
      # began, and the operations with their results. An expression that an earlier branch may have
      # computed keeps its slot, so that no other operation's is taken for it.
      code: [],
      values: %{},
      computed: %{},
      gained: [],
      operations: %{},
      common?: true,
      slots: 0,
      parameters: %{},
      root?: true,
      # The number of branches around the walk.
      depth: 0,
      # Of the program.
      used: MapSet.new(),
      steps: 0,
      regions: %{},
      literals: %{},
      callbacks: [],
      hooks: hooks,
      unary: if(math == :fast, do: :fast_unary, else: :unary)
    }

    {0, _results, state} = new_region(parameters, state, &all_dense(container, &1))
    used = for slot <- 0..(length(parameters) - 1)//1, do: slot in state.used
    regions = for number <- 0..(map_size(state.regions) - 1), do: state.regions[number]
    regions = List.update_at(regions, 0, &without_unused(&1, used))
    literals = state.literals |> Enum.sort_by(&elem(&1, 1)) |> Enum.map(&elem(elem(&1, 0), 1))
    %{program: {regions, literals}, callbacks: Enum.reverse(state.callbacks), used: used}
  end

  defp without_unused({parameters, slots, code, results}, used) do
    parameters =
      Enum.zip_with(parameters, used, fn
        parameter, true -> parameter
        _parameter, false -> {{:u, 8}, {0}}
      end)

    {parameters, slots, code, results}
  end

  ## Regions

  # Adds a region with parameters of its own, whose results `fun` lowers.
  defp new_region(parameters, outer, fun) do
    number = map_size(outer.regions)
    slots = length(parameters)

    operands =
      for {{type, shape}, slot} <- Enum.with_index(parameters),
          into: %{},
          do: {slot, {slot, type, shape}}

    {results, inner} =
      fun.(%{
        outer
        | code: [],
          values: %{},
          operations: %{},
          common?: true,
          computed: Map.new(operands, fn {slot, _} -> {slot, :always} end),
          gained: [],
          slots: slots,
          depth: 0,
          parameters: operands,
          root?: number == 0,
          regions: Map.put(outer.regions, number, nil)
      })

    region = {parameters, inner.slots, Enum.reverse(inner.code), results}

    state = %{
      outer
      | steps: inner.steps,
        used: inner.used,
        regions: Map.put(inner.regions, number, region),
        literals: inner.literals,
        callbacks: inner.callbacks
    }

    {number, results, state}
  end

  ## Values

  # Lowers the expressions of a container; returns their values in a list.
  defp all(container, state) do
    [container]
    |> Nx.Defn.Composite.flatten_list()
    |> Enum.map_reduce(state, &lower/2)
  end

  defp all_dense(container, state) do
    {values, state} = all(container, state)
    Enum.map_reduce(values, state, &dense/2)
  end

  # The value of a container: that of an expression, or a tuple of values.
  defp composite(tuple, state) when is_tuple(tuple) do
    {values, state} = tuple |> Tuple.to_list() |> Enum.map_reduce(state, &composite/2)
    {List.to_tuple(values), state}
  end

  defp composite(%{__struct__: Nx.Tensor} = expression, state), do: lower(expression, state)

  defp composite(container, state) do
    {values, state} = all(container, state)
    {List.to_tuple(values), state}
  end

  @spec lower(map, map) :: {value, map}
  defp lower(%{data: %{op: op, args: args, id: id}} = expression, state) do
    case leaf(op, args, expression, state) do
      nil -> computed(id, op, args, expression, state)
      {_value, _state} = lowered -> lowered
    end
  end

  # Expressions that are no steps.
  defp leaf(:constant, [number], %{type: type} = expression, state) do
    {operand, state} = literal(type, {}, Numbers.constant(number, type), state)
    {broadcast(operand, Expression.shape(expression)), state}
  end

  defp leaf(:tensor, [tensor], _expression, state) do
    literal(tensor.type, Expression.shape(tensor), Expression.data(tensor), state)
  end

  defp leaf(:parameter, [index], _expression, state) do
    state = if state.root?, do: %{state | used: MapSet.put(state.used, index)}, else: state
    {Map.fetch!(state.parameters, index), state}
  end

  defp leaf(:metadata, [inner, _metadata], _expression, state), do: composite(inner, state)

  defp leaf(:elem, [tuple, index], _expression, state) do
    {values, state} = lower(tuple, state)
    {elem(values, index), state}
  end

  defp leaf(:attach_token, [token, inner], _expression, state) do
    {_none, state} = lower(token, state)
    lower(inner, state)
  end

  defp leaf(op, [inner | _], expression, state) when op in [:reshape, :squeeze] do
    {value, state} = lower(inner, state)
    reshape(value, Expression.shape(expression), state)
  end

  defp leaf(:bitcast, [inner], %{type: {_, bits} = type} = expression, state) do
    case lower(inner, state) do
      {{place, {_, ^bits}, shape}, state} ->
        {{place, type, shape}, state}

      {{:broadcast, {place, {_, ^bits}, inner_shape}, shape}, state} ->
        {{:broadcast, {place, type, inner_shape}, shape}, state}

      _ ->
        unsupported("bitcast to #{inspect(type)} of another size: #{inspect(expression)}")
    end
  end

  defp leaf(:as_type, [%{type: type} = inner], %{type: type}, state), do: lower(inner, state)

  # A pad by nothing, as gradients of slices have it.
  defp leaf(:pad, [inner, %{data: %{op: :constant}}, paddings], expression, state) do
    if inner.type == expression.type and Enum.all?(paddings, &(&1 == {0, 0, 0})),
      do: lower(inner, state)
  end

  defp leaf(:broadcast, [inner, shape, axes], %{data: %{id: id}}, state) do
    {value, state} = lower(inner, state)
    {{_, type, sizes} = operand, state} = unwrap_or_dense(value, state)
    pairs = Enum.zip(Tuple.to_list(sizes), axes)

    if Enum.uniq(axes) == axes and
         Enum.all?(pairs, fn {size, axis} -> size in [1, elem(shape, axis)] end),
       do: {broadcast(align(operand, axes, tuple_size(shape)), shape), state},
       else: helper({:broadcast, axes}, [operand], {type, shape}, {:broadcast, id}, state)
  end

  defp leaf(_op, _args, _expression, _state), do: nil

  # A literal, which all regions share.
  defp literal(type, shape, data, state) do
    key = {type, Native.whole_bytes(data)}
    number = Map.get(state.literals, key, map_size(state.literals))
    {{-1 - number, type, shape}, put_in(state.literals[key], number)}
  end

  # The operand that a broadcast repeats, with its axes where they are in the broadcast's shape.
  defp align({place, type, shape}, axes, rank) do
    sizes = axes |> Enum.zip(Tuple.to_list(shape)) |> Map.new()
    aligned = for axis <- 0..(rank - 1)//1, do: Map.get(sizes, axis, 1)
    {place, type, aligned |> Enum.drop_while(&(&1 == 1)) |> List.to_tuple()}
  end

  # The operand that a value is, or that it repeats.
  defp unwrap({:broadcast, operand, _shape}), do: operand
  defp unwrap(operand), do: operand

  defp broadcast({_, _, shape} = operand, shape), do: operand
  defp broadcast(operand, shape), do: {:broadcast, operand, shape}

  defp unwrap_or_dense({:broadcast, {_, _, {}} = operand, shape}, state) do
    # All elements are one, so that any shape of ones is the same.
    {place, type, {}} = operand
    ones = Tuple.duplicate(1, tuple_size(shape))
    {{place, type, ones}, state}
  end

  defp unwrap_or_dense(value, state), do: dense(value, state)

  defp reshape({:broadcast, {_, _, {}} = operand, _}, shape, state),
    do: {broadcast(operand, shape), state}

  defp reshape(value, shape, state) do
    {{place, type, _}, state} = dense(value, state)
    {{place, type, shape}, state}
  end

  # The operand that has all elements of a value.
  defp dense({:broadcast, {_, type, inner} = operand, shape} = value, state) do
    step = fn target, state ->
      rank = tuple_size(shape)
      axes = Enum.to_list((rank - tuple_size(inner))..(rank - 1)//1)
      push({:run, {:broadcast, axes}, [operand], [target]}, state)
    end

    once(value, [{type, shape}], state, step)
  end

  defp dense(operand, state), do: {operand, state}

  ## Steps

  # The value of an expression that is a step, from where it is already computed or by adding the step.
  defp computed(id, op, args, expression, state) do
    case state.values do
      %{^id => {value, marker}} ->
        case state.computed do
          %{^marker => :always} ->
            {value, state}

          # If another expression's operation was taken for it, its own slots have no value.
          %{^marker => :maybe} ->
            if own?(marker, id, state),
              do: again(id, op, args, expression, marker, state),
              else: step(id, op, args, expression, state)

          %{} ->
            step(id, op, args, expression, state)
        end

      %{} ->
        step(id, op, args, expression, state)
    end
  end

  defp own?(marker, id, %{values: values}),
    do: marker in [values[{:slots, id}], values[{:slots, {:mark, id}}]]

  # Adds the step. The marker is what is computed when the step has run: its slot, or `{:common, id, slot}`
  # if it is that of another expression; or nil for what is looked up expression by expression.
  defp step(id, op, args, expression, state) do
    case emit(op, args, expression, id, state) do
      {value, nil, state} ->
        {value, state}

      {value, marker, state} ->
        {value, gain(marker, %{state | values: Map.put(state.values, id, {value, marker})})}
    end
  end

  # The state after a slot is computed.
  defp gain(slot, %{computed: computed, gained: gained} = state),
    do: %{state | computed: Map.put(computed, slot, :always), gained: [slot | gained]}

  # Adds the step for when no earlier branch has computed it. Its arguments come before it, each for
  # when it isn't computed, rather than inside of it: a branch that has computed the step has computed
  # them, so that nothing more is computed, and the steps are not as deep as the expression.
  defp again(id, op, args, expression, marker, state) do
    state =
      if op in @lazy,
        do: state,
        else: Enum.reduce(Expression.arguments(expression), state, &elem(lower(&1, &2), 1))

    {value, inner} = step(id, op, args, expression, %{branch(state) | common?: false})
    {value, push_unless(marker, inner, state)}
  end

  # Adds the steps of `inner`, a branch of `state`, for when a slot is not computed.
  defp push_unless(slot, inner, %{common?: common?, code: code, depth: depth} = state) do
    unless_computed = {:unless, slot, Enum.reverse(inner.code)}
    computed = maybe(inner.gained, state.computed)
    gained = inner.gained ++ state.gained
    outer = %{code: code, common?: common?, depth: depth, computed: computed, gained: gained}
    push(unless_computed, gain(slot, Map.merge(inner, outer)))
  end

  # The state at the start of a branch.
  defp branch(%{depth: depth}) when depth == @max_depth,
    do: unsupported("more than #{@max_depth} conditions inside of each other")

  defp branch(state), do: %{state | code: [], gained: [], depth: state.depth + 1}

  # What is computed after steps that may not have run, which compute these slots.
  defp maybe(slots, computed), do: Enum.reduce(slots, computed, &Map.put_new(&2, &1, :maybe))

  # What is computed after a condition: what the first predicate computes, which always runs, what all
  # branches have computed at their ends, and maybe the rest. Which of these slots are new, too.
  defp joined([first | _] = predicates, branches) do
    gained = Enum.flat_map(predicates ++ branches, & &1.gained) |> Enum.uniq()
    in_all? = fn slot -> Enum.all?(branches, &(&1.computed[slot] == :always)) end

    computed = for slot <- gained, in_all?.(slot), into: first.computed, do: {slot, :always}

    {maybe(gained, computed), gained}
  end

  defp push(step, %{steps: steps}) when steps >= @max_steps,
    do: unsupported("more than #{@max_steps} steps, the last of which is #{elem(step, 0)}")

  defp push(step, state), do: %{state | code: [step | state.code], steps: state.steps + 1}

  # The slots of a key, the same ones whenever it is asked.
  defp slots(key, count, state) do
    case state.values do
      %{{:slots, ^key} => first} ->
        {first, state}

      %{} ->
        values = Map.put(state.values, {:slots, key}, state.slots)
        {state.slots, %{state | slots: state.slots + count, values: values}}
    end
  end

  defp targets(key, outs, state) do
    {first, state} = slots(key, length(outs), state)

    targets =
      for {{type, shape}, index} <- Enum.with_index(outs), do: {first + index, type, shape}

    {targets, state}
  end

  # The value of steps that are no expression of Nx, such as the operand that a broadcast gives: `fun`
  # adds them.
  defp once(key, [out], state, fun) do
    {[{slot, _, _} = target], state} = targets(key, [out], state)

    case state.computed do
      %{^slot => :always} ->
        {target, state}

      %{^slot => :maybe} ->
        {target, push_unless(slot, fun.(target, %{branch(state) | common?: false}), state)}

      %{} ->
        {target, gain(slot, fun.(target, state))}
    end
  end

  # Adds an operation with one result, on operands, unless it is there already (common subexpressions). It
  # has a marker of its own then: where only the other one is computed, the side effects of its operands
  # haven't happened.
  defp run(operation, inputs, {type, shape} = out, key, state) do
    common = {operation, inputs, out}

    with true <- state.common?,
         %{^common => {slot, _, _} = target} <- state.operations,
         %{^slot => :always} <- state.computed do
      {target, {:common, key, slot}, state}
    else
      _ ->
        {[{slot, _, _} = target], state} = targets(key, [{type, shape}], state)
        state = %{state | operations: Map.put_new(state.operations, common, target)}
        {target, slot, push({:run, operation, inputs, [target]}, state)}
    end
  end

  defp run_dense(operation, inputs, expression, id, state) do
    {operands, state} = lower_dense(inputs, state)
    run(operation, operands, out(expression), id, state)
  end

  # Adds an operation on what some expressions give, which is an expression of no one's.
  defp helper(operation, inputs, out, key, state),
    do: once(key, [out], state, &push({:run, operation, inputs, [&1]}, &2))

  defp lower_dense(expressions, state) do
    Enum.map_reduce(expressions, state, fn expression, state ->
      {value, state} = lower(expression, state)
      dense(value, state)
    end)
  end

  defp out(%{type: type} = expression), do: {type, Expression.shape(expression)}

  # Adds an elementwise operation. Operands that are broadcast are read as they are; if all of them are
  # smaller than the result, so is the operation, and its result is broadcast.
  defp elementwise(operation, inputs, %{type: type} = expression, id, state) do
    {values, state} = Enum.map_reduce(inputs, state, &lower/2)

    operands = Enum.map(values, &unwrap/1)
    shape = Expression.shape(expression)
    core = operands |> Enum.map(&elem(&1, 2)) |> Enum.reduce(&Shape.broadcast/2)
    {operand, slot, state} = run(operation, operands, {type, core}, id, state)
    {broadcast(operand, shape), slot, state}
  end

  ## Operations

  @unary_ops Operations.unary()
  @binary_ops Operations.binary()

  # The step of an expression: its value, the slot that marks it as computed, and the state.
  defp emit(op, [a], t, id, state) when op in @unary_ops,
    do: elementwise({state.unary, op}, [a], t, id, state)

  defp emit(op, [a, b], t, id, state) when op in @binary_ops,
    do: elementwise({:binary, op}, [a, b], t, id, state)

  defp emit(:as_type, [a], t, id, state), do: elementwise({:as_type}, [a], t, id, state)

  defp emit(op, [a, b, c], t, id, state) when op in [:select, :clip],
    do: elementwise({op}, [a, b, c], t, id, state)

  defp emit(:iota, [nil], t, id, state), do: run({:iota, nil}, [], out(t), id, state)

  # Counts along one axis, which are repeated along the others.
  defp emit(:iota, [axis], %{type: type} = t, id, state) do
    shape = Expression.shape(t)
    ones = List.duplicate(1, tuple_size(shape) - axis - 1)
    out = {type, List.to_tuple([elem(shape, axis) | ones])}
    {operand, slot, state} = run({:iota, 0}, [], out, id, state)
    {broadcast(operand, shape), slot, state}
  end

  defp emit(:eye, [], t, id, state), do: run({:eye}, [], out(t), id, state)

  defp emit(:transpose, [a, axes], t, id, state),
    do: run_dense({:transpose, axes}, [a], t, id, state)

  defp emit(:reverse, [a, axes], t, id, state),
    do: run_dense({:reverse, axes}, [a], t, id, state)

  defp emit(:slice, [a, starts, lengths, strides], t, id, state) do
    {[a], state} = lower_dense([a], state)
    {starts, inputs, state} = starts(starts, 1, state)
    run({:slice, starts, lengths, strides}, [a | inputs], out(t), id, state)
  end

  defp emit(:put_slice, [a, starts, slice], t, id, state) do
    {operands, state} = lower_dense([a, slice], state)
    {starts, inputs, state} = starts(starts, 2, state)
    run({:put_slice, starts}, operands ++ inputs, out(t), id, state)
  end

  defp emit(:concatenate, [tensors, axis], t, id, state) do
    {operands, state} = lower_dense(tensors, state)
    concatenate(operands, axis, out(t), id, state)
  end

  defp emit(:stack, [tensors, axis], t, id, state) do
    {operands, state} = lower_dense(tensors, state)

    operands =
      for {place, type, shape} <- operands, do: {place, type, Tuple.insert_at(shape, axis, 1)}

    concatenate(operands, axis, out(t), id, state)
  end

  defp emit(:pad, [a, value, paddings], t, id, state) do
    if Enum.any?(Tuple.to_list(Expression.shape(t)), &(&1 < 1)),
      do: unsupported("pad without any element left")

    run_dense({:pad, paddings}, [a, value], t, id, state)
  end

  defp emit(op, [a, opts], t, id, state)
       when op in [:sum, :product, :reduce_max, :reduce_min, :all, :any] do
    {[{_, _, shape}] = operands, state} = lower_dense([a], state)
    axes = opts[:axes] || Enum.to_list(0..(tuple_size(shape) - 1)//1)
    # Axes that are kept as ones make no other result: a mean and a variance have the same sum.
    kept = Shape.reduce(shape, axes, false)

    {{place, type, _}, slot, state} =
      run({:reduce, op, axes}, operands, {t.type, kept}, id, state)

    {{place, type, Expression.shape(t)}, slot, state}
  end

  defp emit(op, [a, opts], t, id, state) when op in [:argmax, :argmin] do
    reduction = if op == :argmax, do: :reduce_max, else: :reduce_min
    run_dense({:arg_reduce, reduction, opts[:axis], opts[:tie_break] == :high}, [a], t, id, state)
  end

  defp emit(:dot, [a, a_axes, a_batch, b, b_axes, b_batch], t, id, state),
    do: run_dense({:dot, a_axes, a_batch, b_axes, b_batch}, [a, b], t, id, state)

  defp emit(:conv, [a, kernel, opts], t, id, state),
    do: run_dense({:conv, Operations.conv_options(opts)}, [a, kernel], t, id, state)

  defp emit(op, [a, window, opts], t, id, state)
       when op in [:window_sum, :window_product, :window_max, :window_min],
       do: run_dense({:window, op, Operations.windows(window, opts)}, [a], t, id, state)

  defp emit(op, [a, source, init, window, opts], t, id, state)
       when op in [:window_scatter_max, :window_scatter_min] do
    windows = Operations.windows(window, opts)
    run_dense({:window_scatter, op, windows}, [a, source, init], t, id, state)
  end

  defp emit(:gather, [a, indices, opts], t, id, state),
    do: run_dense({:gather, opts[:axes]}, [a, indices], t, id, state)

  defp emit(op, [a, indices, updates, opts], t, id, state)
       when op in [:indexed_add, :indexed_put] do
    {[a, indices, {place, type, shape}], state} = lower_dense([a, indices, updates], state)
    shape = Operations.updates_shape(shape, elem(indices, 2), elem(a, 2), opts[:axes])
    run({op, opts[:axes]}, [a, indices, {place, type, shape}], out(t), id, state)
  end

  defp emit(op, [a, opts], t, id, state) when op in [:sort, :argsort],
    do: run_dense({op, opts[:axis], opts[:direction] == :desc}, [a], t, id, state)

  defp emit(op, [a, opts], t, id, state) when op in [:fft, :ifft],
    do: fourier(op, a, opts, t, id, state)

  defp emit(:triangular_solve, [a, b, opts], t, id, state),
    do: run_dense({:solve, LinAlg.triangle(opts)}, [a, b], t, id, state)

  # An LU factorization of Nx 0.9, which has its templates among its arguments.
  defp emit(:lu, [outs, a, opts], _t, id, state) when is_tuple(outs),
    do: factor(:lu_0_9, a, opts, outs, id, state)

  ## Folds with a function

  defp emit(:reduce, [a, acc, opts, fun], t, id, state) do
    {[{_, _, shape} = operand], state} = lower_dense([a], state)
    all_axes = Enum.to_list(0..(tuple_size(shape) - 1)//1)
    axes = Enum.sort(opts[:axes] || all_axes)
    order = (all_axes -- axes) ++ axes
    count = axes |> Enum.map(&elem(shape, &1)) |> Enum.product()

    {{_, _, shape} = operand, state} =
      if order == all_axes do
        {operand, state}
      else
        {_, type, _} = operand
        sizes = order |> Enum.map(&elem(shape, &1)) |> List.to_tuple()
        helper({:transpose, order}, [operand], {type, sizes}, {:transposed, id}, state)
      end

    fold(operand, div(Native.size(shape), count), count, acc, fun, t, id, state)
  end

  defp emit(:window_reduce, [a, acc, window, opts, fun], t, id, state) do
    %{type: type} = a
    if acc.type != type, do: unsupported("window_reduce with an accumulator of another type")

    {[operand, {place, _, _}], state} = lower_dense([a, acc], state)
    over = Operations.windows(window, opts)
    shape = List.to_tuple(Tuple.to_list(Expression.shape(t)) ++ Tuple.to_list(window))
    inputs = [operand, {place, type, {}}]

    {elements, state} =
      helper({:window_elements, over}, inputs, {type, shape}, {:windows, id}, state)

    count = Native.size(window)
    fold(elements, div(Native.size(shape), count), count, acc, fun, t, id, state)
  end

  ## Control flow

  defp emit(:cond, [clauses, last], _t, id, state) do
    before = state

    # A predicate is computed before all that follows it, a branch before nothing.
    {clauses, {state, parts}} =
      Enum.map_reduce(clauses, {state, []}, fn {predicate, body}, {state, parts} ->
        {[operand], of_predicate} = lower_dense([predicate], branch(state))
        {results, of_branch} = all_dense(body, %{of_predicate | code: [], gained: []})

        clause = {Enum.reverse(of_predicate.code), operand, Enum.reverse(of_branch.code), results}
        state = %{of_branch | computed: of_predicate.computed, depth: before.depth}
        {clause, {state, [{of_predicate, of_branch} | parts]}}
      end)

    {last_results, of_last} = all_dense(last, branch(state))
    {predicates, branches} = Enum.unzip(parts)
    {computed, gained} = joined(Enum.reverse(predicates), [of_last | branches])

    {targets, state} =
      targets(id, for({_, type, shape} <- last_results, do: {type, shape}), of_last)

    outputs = for {slot, _, _} <- targets, do: slot
    step = {:cond, clauses, {Enum.reverse(of_last.code), last_results}, outputs}
    gained = gained ++ before.gained
    outer = %{code: before.code, depth: before.depth, computed: computed, gained: gained}
    structured(last, targets, push(step, Map.merge(state, outer)))
  end

  defp emit(:while, [initial, _arg, condition, body], _t, id, state) do
    {operands, state} = all_dense(initial, state)
    parts = ReverseLoop.parts(initial, condition, body)

    {results, marker, state} =
      with %{} <- parts,
           {_results, _marker, reversed} = lowered <- reverse_loop(parts, operands, id, state),
           # A call happens in each trip of the loop as it is.
           true <- reversed.callbacks == state.callbacks do
        lowered
      else
        _ -> loop(condition, body, operands, id, state)
      end

    {structured_value(initial, results), marker, state}
  end

  ## Calls into Elixir

  defp emit(:io_call, [inner, spec, template, _ref], _t, id, state) do
    {operands, state} = all_dense(inner, state)
    state = if io?(spec, state), do: io(spec, inner, operands, state), else: state
    {marker, state} = mark(id, state)
    {structured_value(template, operands), marker, state}
  end

  # Nx 0.13.0 has hooks under this name, and those of tokens have expressions of their own.
  defp emit(:hook, [inner, {:token_hook, hooked, spec}, template, _ref], _t, id, state) do
    {operands, state} = all_dense(inner, state)
    {hooked_operands, state} = all_dense(hooked, state)
    state = if io?(spec, state), do: io(spec, hooked, hooked_operands, state), else: state
    {marker, state} = mark(id, state)
    {structured_value(template, operands), marker, state}
  end

  defp emit(:hook, args, t, id, state), do: emit(:io_call, args, t, id, state)

  defp emit(:token, [token], _t, id, state) do
    # The first hook is the last of the list.
    state =
      List.foldr(token.hooks, state, fn %{expr: inner, name: name, callback: callback}, state ->
        spec = {:named, name, callback}

        if io?(spec, state) do
          {operands, state} = all_dense(inner, state)
          io(spec, inner, operands, state)
        else
          inner_hooks(inner, state)
        end
      end)

    {marker, state} = mark(id, state)
    {{}, marker, state}
  end

  # In Nx 0.11, the function takes no options.
  defp emit(:runtime_call, [inner, fun, template | opts], _t, id, state) do
    {operands, state} = all_dense(inner, state)
    leaves = Nx.Defn.Composite.flatten_list([template])
    {targets, state} = targets(id, Enum.map(leaves, &out/1), state)
    state = call({:runtime, fun, template(inner), template, opts}, operands, targets, state)
    structured(template, targets, state)
  end

  ## Compound operations

  defp emit(:block, [block, in_args, default, _fun], t, id, state) do
    args = Enum.take_while(in_args, &(not is_list(&1)))
    %{__struct__: module} = block
    outs = if is_tuple(default), do: default, else: t
    compound(block_name(module), args, Map.from_struct(block), outs, default, id, state)
  end

  defp emit(:optional, [%{data: %{op: name, args: in_args}} = call, default, _fun], _t, id, state) do
    {args, opts} = Enum.split_while(in_args, &(not is_list(&1)))
    opts = if opts == [], do: %{}, else: Map.new(hd(opts))
    outs = if is_tuple(default), do: default, else: call
    name = if name in [:lu, :qr, :eigh, :svd, :solve, :determinant], do: {name, "0.9"}, else: name
    compound(name, args, opts, outs, default, id, state)
  end

  defp emit(op, _args, _t, _id, _state), do: unsupported("#{op}")

  ## Loops

  # Adds a loop with these values at the start; returns its values at the end.
  defp loop(condition, body, operands, id, state) do
    results = Nx.Defn.Composite.flatten_list([body])
    {invariants, state} = invariants(results, passed(results, operands), state)
    initial = operands ++ operands(invariants)
    carries = signature(initial)
    {condition, [_predicate], state} = new_region(carries, state, &all_dense(condition, &1))

    {body, results, state} =
      new_region(carries, state, fn inner ->
        {passed, inner} = pass(invariants, length(operands), inner)
        {results, inner} = all_dense(body, inner)
        {results ++ passed, inner}
      end)

    # Nx writes such gradients of loops over integers.
    if signature(results) != carries,
      do:
        unsupported("a loop whose values have other types or shapes after a trip than before it")

    {[{marker, _, _} | _] = targets, state} = targets(id, carries, state)
    outputs = for {slot, _, _} <- targets, do: slot
    state = push({:while, condition, body, initial, outputs}, state)
    {Enum.take(targets, length(operands)), marker, state}
  end

  # Adds the gradient of a loop; `operands` are the values at the start of the loop that Nx makes of it.
  # Returns those at its end: all but the gradients are as at its start, and the number of trips is zero,
  # unless it was negative.
  defp reverse_loop(%{count: count, forward: forward, backward: backward}, operands, id, state) do
    {values, rest} = Enum.split(operands, count)
    {gradients, [trips, zero | _values]} = Enum.split(rest, count)
    {invariants, state} = invariants(forward ++ backward, passed(forward, values), state)
    [carries, carried_back] = Enum.map([values, gradients], &signature/1)

    add_region = fn results, carries, state ->
      parameters = carries ++ signature(operands(invariants))

      {region, _results, state} =
        new_region(parameters, state, fn inner ->
          {_passed, inner} = pass(invariants, length(carries), inner)
          all_dense(List.to_tuple(results), inner)
        end)

      {region, state}
    end

    {forward, state} = add_region.(forward, carries, state)
    {backward, state} = add_region.(backward, carries ++ carried_back, state)
    {[{marker, _, _} | _] = targets, state} = targets(id, carried_back, state)
    outputs = for {slot, _, _} <- targets, do: slot

    step =
      {:reverse_loop, forward, backward, trips, values, gradients, operands(invariants), outputs}

    {_, type, {}} = zero

    {left, state} =
      helper({:binary, :min}, [trips, zero], {type, {}}, {:left, id}, push(step, state))

    {values ++ targets ++ [left, zero | values], marker, state}
  end

  defp operands(invariants), do: for({_expression, value} <- invariants, do: unwrap(value))

  defp signature(operands), do: for({_, type, shape} <- operands, do: {type, shape})

  ## Loop invariants

  # The operations that are computed before a loop if they are the same in every trip. They, and what
  # their operands may be made of, can't fail, since a loop may also have no trip. What is elementwise
  # is computed again in each trip, as part of a cluster, rather than read from memory, unless it is a
  # function that takes longer.
  @moved [:transpose, :as_type, :reverse, :dot, :conv, :sum, :product] ++
           [:reduce_max, :reduce_min, :all, :any, :argmax, :argmin] ++
           [:exp, :expm1, :log, :log1p, :sigmoid, :cos, :sin, :tan, :tanh, :asin, :acos, :atan] ++
           [:sinh, :cosh, :asinh, :acosh, :atanh, :cbrt, :erf, :erfc, :erf_inv, :phase]
  @total [:reshape, :squeeze, :broadcast, :select] ++
           [:add, :subtract, :multiply, :divide, :max, :min] ++
           [:equal, :not_equal, :less, :less_equal, :greater, :greater_equal] ++
           [:logical_and, :logical_or, :logical_xor, :bitwise_and, :bitwise_or, :bitwise_xor] ++
           Operations.unary() ++ @moved

  # The parameters of a loop's body that it passes on, with the values at the start.
  defp passed(results, operands) do
    for {{result, operand}, index} <- Enum.with_index(Enum.zip(results, operands)),
        match?(%{data: %{op: :parameter, args: [^index]}}, result),
        into: %{},
        do: {index, operand}
  end

  # The expressions of a loop's body that are the same in every trip, and that are steps: pairs of an
  # expression and its value, which is computed before the loop.
  defp invariants(results, parameters, state) do
    {expressions, _seen, _known} = movable(results, parameters, {[], %{}, %{}})

    {invariants, inner} =
      expressions
      |> Enum.reverse()
      |> Enum.map_reduce(%{state | parameters: parameters, root?: false}, fn expression, inner ->
        {value, inner} = lower(expression, inner)
        {{expression, value}, inner}
      end)

    {invariants, %{inner | parameters: state.parameters, root?: state.root?}}
  end

  # The expressions to move of which none is part of another, in reverse order; those that the walk has
  # seen; and of which it knows whether they are the same in every trip.
  defp movable(expressions, parameters, acc) do
    Enum.reduce(expressions, acc, fn %{data: %{id: id}} = expression,
                                     {found, seen, known} = acc ->
      if is_map_key(seen, id) do
        acc
      else
        seen = Map.put(seen, id, true)
        {moves?, known} = moves?(expression, parameters, known)

        if moves?,
          do: {[expression | found], seen, known},
          else: movable(Expression.arguments(expression), parameters, {found, seen, known})
      end
    end)
  end

  # Whether an expression is one to move: numbers stay where they are.
  defp moves?(%{data: %{op: op, args: [inner | _]}} = expression, parameters, known)
       when op in @moved do
    if Native.size(Expression.shape(inner)) > 1,
      do: invariant?(expression, parameters, known),
      else: {false, known}
  end

  defp moves?(_expression, _parameters, known), do: {false, known}

  # Whether an expression is the same in every trip, and can't fail.
  defp invariant?(%{data: %{id: id, op: op, args: args}} = expression, parameters, known) do
    case known do
      %{^id => invariant?} ->
        {invariant?, known}

      %{} when op == :parameter ->
        {is_map_key(parameters, hd(args)), known}

      %{} when op in [:constant, :tensor, :iota, :eye] ->
        {true, known}

      %{} when op in @total ->
        {invariant?, known} =
          Enum.reduce_while(Expression.arguments(expression), {true, known}, fn argument,
                                                                                {true, known} ->
            case invariant?(argument, parameters, known) do
              {true, known} -> {:cont, {true, known}}
              {false, known} -> {:halt, {false, known}}
            end
          end)

        {invariant?, Map.put(known, id, invariant?)}

      %{} ->
        {false, known}
    end
  end

  # The invariants as parameters of the body's region, after its others, and these parameters.
  defp pass(invariants, count, state) do
    invariants
    |> Enum.with_index(count)
    |> Enum.map_reduce(state, fn {{%{data: %{id: id}}, value}, slot}, state ->
      {_, type, shape} = unwrap(value)
      operand = {slot, type, shape}
      value = if match?({:broadcast, _, _}, value), do: put_elem(value, 1, operand), else: operand
      {operand, put_in(state.values[id], {value, slot})}
    end)
  end

  ## Parts of steps

  # What a loop, a condition or a call gives has the structure of a container: one value, or a tuple.
  defp structured(container, [{slot, _, _} | _] = targets, state),
    do: {structured_value(container, targets), slot, state}

  defp structured(_container, [], _state), do: unsupported("a condition or loop without results")

  defp structured_value(%{__struct__: Nx.Tensor}, [operand]), do: operand
  defp structured_value(_container, operands), do: List.to_tuple(operands)

  # A slot that marks that side effects have happened.
  defp mark(id, state) do
    {[{slot, _, _} = target], state} = targets({:mark, id}, [{{:u, 8}, {}}], state)
    {slot, push({:run, {:iota, nil}, [], [target]}, state)}
  end

  defp call(callback, operands, targets, %{callbacks: callbacks} = state) do
    step = {:call, length(callbacks), operands, targets}
    push(step, %{state | callbacks: [callback | callbacks]})
  end

  # What a function of Elixir is given: the container, its tensors without vectorized axes.
  defp template(container),
    do: Nx.Defn.Composite.traverse(container, &(&1 |> Nx.to_template() |> Nx.devectorize()))

  defp io(spec, container, operands, state),
    do: call({:io, spec, template(container)}, operands, [], state)

  defp io?({:fn, _fun}, _state), do: true
  defp io?(_named, %{hooks: :all}), do: true

  defp io?({:named, name, callback}, %{hooks: hooks}),
    do: callback != nil or is_map_key(hooks, name)

  # A hook that isn't called is not computed, but for the hooks inside of it.
  defp inner_hooks(inner, %{hooks: hooks} = state) do
    if Nx.Defn.Tree.has_hooks?(inner, hooks), do: elem(all_dense(inner, state), 1), else: state
  end

  defp starts(starts, next, state) do
    {starts, {inputs, state}} =
      Enum.map_reduce(starts, {[], state}, fn
        start, acc when is_integer(start) ->
          {max(start, 0), acc}

        start, {inputs, state} ->
          {[{place, type, _}], state} = lower_dense([start], state)
          {{:input, next + length(inputs)}, {inputs ++ [{place, type, {}}], state}}
      end)

    {starts, inputs, state}
  end

  defp concatenate(operands, axis, {type, _} = out, id, state) do
    {operands, state} =
      operands
      |> Enum.with_index()
      |> Enum.map_reduce(state, fn {operand, index}, state ->
        cast(operand, type, {:cast, id, index}, state)
      end)

    run({:concatenate, axis}, operands, out, id, state)
  end

  defp cast({_, type, _} = operand, type, _key, state), do: {operand, state}

  defp cast({_, _, shape} = operand, type, key, state),
    do: helper({:as_type}, [operand], {type, shape}, key, state)

  defp fold(operand, rows, count, acc, fun, %{type: type} = t, id, state) do
    %{data: %{op: :fun, args: [_args, body, _mfa]}} = fun
    if elem(type, 1) < 8, do: unsupported("a reduction with a function of #{inspect(type)}")

    {[acc], state} = lower_dense([acc], state)
    {{place, _, _}, state} = cast(operand, type, {:elements, id}, state)
    {{acc_place, _, _}, state} = cast(acc, type, {:accumulator, id}, state)
    scalar = {type, {}}

    {number, _results, state} =
      new_region([scalar, scalar], state, fn inner ->
        {[result], inner} = all_dense(body, inner)
        {result, inner} = cast(result, type, {:folded, id}, inner)
        {[result], inner}
      end)

    {[{slot, _, _} = target], state} = targets(id, [out(t)], state)
    input = {place, type, {rows, count}}
    {target, slot, push({:fold, number, input, {acc_place, type, {}}, target}, state)}
  end

  defp fourier(op, a, opts, t, id, state) do
    {_axis, length} = axis = Fourier.axis_length(Expression.shape(t), opts)
    if length < 1, do: unsupported("#{op} without elements")
    run_dense({:fourier, op, [axis], eps(opts)}, [a], t, id, state)
  end

  defp eps(opts), do: (opts[:eps] || 0.0) * 1.0

  defp factor(name, a, opts, outs, id, state) do
    {operands, state} = lower_dense([a], state)
    templates = if is_tuple(outs), do: Tuple.to_list(outs), else: [outs]
    {targets, state} = targets(id, Enum.map(templates, &out/1), state)
    structured(outs, targets, push({:run, {:factor, name, eps(opts)}, operands, targets}, state))
  end

  ## Compound operations: blocks since Nx 0.12, optional callbacks before

  blocks = [
    {Nx.Block.LogicalNot, :logical_not},
    {Nx.Block.Phase, :phase},
    {Nx.Block.LinAlg.Cholesky, :cholesky},
    {Nx.Block.LinAlg.Solve, :solve},
    {Nx.Block.LinAlg.QR, :qr},
    {Nx.Block.LinAlg.Eigh, :eigh},
    {Nx.Block.LinAlg.SVD, :svd},
    {Nx.Block.LinAlg.LU, :lu},
    {Nx.Block.LinAlg.Determinant, :determinant},
    {Nx.Block.AllClose, :all_close},
    {Nx.Block.CumulativeSum, :cumulative_sum},
    {Nx.Block.CumulativeProduct, :cumulative_product},
    {Nx.Block.CumulativeMin, :cumulative_min},
    {Nx.Block.CumulativeMax, :cumulative_max},
    {Nx.Block.Take, :take},
    {Nx.Block.TakeAlongAxis, :take_along_axis},
    {Nx.Block.TopK, :top_k},
    {Nx.Block.FFT2, :fft2},
    {Nx.Block.IFFT2, :ifft2},
    {Nx.Block.RFFT, :rfft},
    {Nx.Block.IRFFT, :irfft}
  ]

  for {module, name} <- blocks,
      do: defp(block_name(unquote(module)), do: unquote(name))

  defp block_name(_module), do: nil

  defp compound(op, [a], _opts, t, _default, id, state) when op in [:logical_not, :phase],
    do: elementwise({state.unary, op}, [a], t, id, state)

  defp compound(op, [a], opts, t, _default, id, state)
       when op in [:cumulative_sum, :cumulative_product, :cumulative_min, :cumulative_max],
       do: run_dense({:cumulative, op, opts[:axis], !!opts[:reverse]}, [a], t, id, state)

  defp compound(:all_close, [a, b], %{rtol: rtol, atol: atol} = opts, t, _default, id, state)
       when is_number(rtol) and is_number(atol) do
    operation = {:all_close, rtol * 1.0, atol * 1.0, !!opts[:equal_nan]}
    run_dense(operation, [a, b], t, id, state)
  end

  defp compound(op, [a, indices], opts, t, _default, id, state)
       when op in [:take, :take_along_axis],
       do: run_dense({op, opts[:axis]}, [a, indices], t, id, state)

  defp compound(:top_k, [a], _opts, {values, indices}, _default, id, state) do
    {[operand], state} = lower_dense([a], state)
    {[of_values, of_indices], state} = targets(id, [out(values), out(indices)], state)
    state = push({:run, {:top_k}, [operand], [of_indices]}, state)
    axis = tuple_size(Expression.shape(indices)) - 1
    inputs = [operand, of_indices]
    state = push({:run, {:take_along_axis, axis}, inputs, [of_values]}, state)
    {{of_values, of_indices}, elem(of_values, 0), state}
  end

  defp compound(op, [a], opts, t, _default, id, state) when op in [:fft2, :ifft2] do
    axes = Enum.zip(opts[:axes], opts[:lengths])
    op = if op == :fft2, do: :fft, else: :ifft
    run_dense({:fourier, op, axes, eps(opts)}, [a], t, id, state)
  end

  defp compound(op, [a], opts, t, _default, id, state) when op in [:rfft, :irfft],
    do: fourier(op, a, opts, t, id, state)

  defp compound(:solve, [a, b], _opts, t, _default, id, state),
    do: run_dense({:solve, :lu}, [a, b], t, id, state)

  defp compound({:solve, "0.9"}, [a, b], _opts, t, _default, id, state),
    do: run_dense({:solve, :qr}, [a, b], t, id, state)

  defp compound({:determinant, "0.9"}, [a], opts, %{type: type} = t, _default, id, state) do
    wide = %{t | type: Numbers.wide(type)}
    {operand, _slot, state} = factor(:determinant, a, opts, wide, {:wide, id}, state)
    run({:as_type}, [operand], out(t), id, state)
  end

  defp compound(:svd, [a], %{full_matrices?: full?} = opts, outs, _default, id, state),
    do: factor(if(full?, do: :svd, else: :thin_svd), a, Map.delete(opts, :eps), outs, id, state)

  defp compound(op, [a], opts, outs, _default, id, state)
       when op in [:cholesky, :determinant, :lu, :qr, :eigh],
       do: factor(op, a, opts, outs, id, state)

  for op <- [:lu, :qr, :eigh, :svd] do
    defp compound({unquote(op), "0.9"}, [a], opts, outs, _default, id, state),
      do: factor(unquote(:"#{op}_0_9"), a, opts, outs, id, state)
  end

  # The definition that Nx hands over, with the arguments as its parameters.
  defp compound(_op, args, _opts, _outs, default, _id, state) do
    {values, state} = Enum.map_reduce(args, state, &lower/2)
    parameters = for {value, index} <- Enum.with_index(values), into: %{}, do: {index, value}
    {value, inner} = composite(default, %{state | parameters: parameters, root?: false})
    {value, nil, %{inner | parameters: state.parameters, root?: state.root?}}
  end

  @spec unsupported(String.t()) :: no_return
  defp unsupported(what), do: raise(Unsupported, message: what)
end
