if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.DefnOperations do
    @moduledoc """
    The operations that random functions are made of: functions of Nx with the kinds of their arguments,
    which `Ferrox.DefnArguments` makes.
    """

    import Ferrox.DefnArguments

    # Operations whose arguments depend on each other are functions of this module.
    functions = [
      elementwise: [
        {Nx,
         ~w(exp expm1 log log1p sigmoid sin cos tan tanh asin acos atan sinh cosh asinh acosh)a ++
           ~w(atanh sqrt rsqrt negate abs conjugate real imag phase is_nan is_infinity)a ++
           ~w(logical_not)a, [:any]},
        {Nx, ~w(sign floor ceil round erf erfc erf_inv cbrt)a, [:real]},
        {Nx, ~w(log2 log10)a, [:any]},
        {Nx, ~w(bitwise_not population_count count_leading_zeros)a, [:integer]},
        {Nx, ~w(add subtract multiply divide equal not_equal)a, [:any, :like]},
        {Nx, ~w(logical_and logical_or logical_xor)a, [:any, :like]},
        {Nx, ~w(less less_equal greater greater_equal remainder atan2 min max)a,
         [:real, {:like, :real}]},
        {Nx, ~w(quotient bitwise_and bitwise_or bitwise_xor)a, [:integer, {:like, :integer}]},
        {Nx, ~w(left_shift right_shift)a, [:integer, :bits]},
        {Nx, ~w(pow)a, [:any, {:like, :float}]},
        {Nx, ~w(clip)a, [:real, {:scalar, :real}, {:scalar, :real}]},
        {Nx, ~w(clip)a, [:real, {:of, [0, -1, 0.5]}, {:of, [1, 2, 3.5]}]},
        {Nx, ~w(complex)a, [:float, {:like, :float}]},
        {Nx, ~w(as_type)a, [:real, :type]},
        {__MODULE__, ~w(select as_complex bitcast softmax norm)a, [:values]}
      ],
      shape: [
        {Nx, ~w(flatten)a, [:any]},
        {Nx, ~w(reverse)a, [:any, [axes: :axes]]},
        {Nx, ~w(transpose)a, [:any, [axes: :permutation]]},
        {Nx, ~w(squeeze)a, [:any]},
        {Nx, ~w(new_axis)a, [:any, :new_axis]},
        {Nx, ~w(tile)a, [:any, :repetitions]},
        {Nx, ~w(pad)a, [:any, {:scalar, :as_before}, :padding]},
        {Nx, ~w(reflect)a, [{:ranked, :any}, [padding_config: {:always, :reflection}]]},
        {Nx, ~w(diff)a, [{:ranked, :real}, [axis: :axis, order: {:of, [1, 1, 2]}]]},
        {Nx, ~w(tril triu)a, [{:plane, :any}, [k: {:of, [-1, 0, 1]}]]},
        {Nx, ~w(take_diagonal)a, [{:plane, :any}, [offset: {:of, [-1, 0, 1]}]]},
        {Nx, ~w(make_diagonal)a, [{:flat, :any}, [offset: {:of, [-2, 0, 1]}]]},
        {Nx, ~w(outer)a, [{:few, :any}, {:flat, :any}]},
        {Nx, ~w(slice_along_axis)a, [{:ranked, :any}, :start, 1, [axis: :axis]]},
        {Nx, ~w(vectorize)a, [{:ranked, {:few, :any}}, :vector_axis]},
        {Nx, ~w(devectorize)a, [:any]},
        {Nx, ~w(rename)a, [:any, :names]},
        {__MODULE__, ~w(reshape broadcast slice dynamic_slice put_slice put_diagonal)a,
         [:values]},
        {__MODULE__, ~w(concatenate stack split revectorize broadcast_vectors)a, [:values]}
      ],
      creation: [
        {Nx, ~w(iota)a, [:shape, [type: :type, axis: :axis_of_shape]]},
        {Nx, ~w(eye)a, [:matrix_shape, [type: :type]]},
        {Nx, ~w(tri)a, [{:of, [1, 3, 4]}, {:of, [2, 4]}, [k: {:of, [-1, 1]}]]},
        {Nx, ~w(linspace)a,
         [{:scalar, :float}, {:scalar, :float}, [n: {:always, 5}, endpoint: :boolean]]},
        {Nx, ~w(broadcast)a, [{:of, [0, 1, 2, -1, 0.5, 1.0e10]}, :shape]},
        {Nx, ~w(fill)a, [:any, {:scalar, :real}]},
        {__MODULE__, ~w(captured)a, [:values]}
      ],
      reduction: [
        {Nx, ~w(sum product mean)a, [:any, [axes: :axes, keep_axes: :boolean]]},
        {Nx, ~w(reduce_max reduce_min all any)a, [:real, [axes: :axes, keep_axes: :boolean]]},
        {Nx, ~w(argmax argmin)a, [:real, [tie_break: {:of, [:low, :high]}]]},
        # Without an axis, Nx gives vectorized tensors wrong shapes if axes are kept.
        {Nx, ~w(argmax argmin)a,
         [
           {:ranked, :real},
           [
             axis: {:always, :axis},
             keep_axis: :boolean,
             tie_break: {:of, [:low, :high]},
             type: :type
           ]
         ]},
        {Nx, ~w(variance standard_deviation)a,
         [:any, [axes: :axes, keep_axes: :boolean, ddof: {:of, [0, 1]}]]},
        {Nx, ~w(logsumexp)a, [:real, [axes: :axes, keep_axes: :boolean]]},
        {Nx, ~w(median mode)a, [{:ranked, :real}, [axis: :axis, keep_axis: :boolean]]},
        {Nx, ~w(weighted_mean)a, [:real, :fit, [axes: :axes, keep_axes: :boolean]]},
        {Nx, ~w(cumulative_sum cumulative_product cumulative_max cumulative_min)a,
         [{:ranked, :real}, [axis: :axis, reverse: :boolean]]},
        {Nx, ~w(sort argsort)a,
         [
           {:ranked, :real},
           [axis: :axis, direction: {:of, [:asc, :desc]}, stable: :boolean]
         ]},
        {Nx, ~w(top_k)a, [{:ranked, :real}, [k: :of_last]]},
        {Nx, ~w(all_close)a, [:real, {:like, :real}, [atol: 0.5, equal_nan: :boolean]]},
        {Nx, ~w(covariance)a, [:matrix, [ddof: {:of, [0, 1]}]]},
        {__MODULE__, ~w(fold)a, [:values]}
      ],
      window: [
        {Nx, ~w(window_sum window_max window_min window_product window_mean)a,
         [
           :real,
           :dilated_window,
           [strides: :strides, padding: :window_padding, window_dilations: :strides]
         ]},
        {__MODULE__, ~w(window_scatter window_fold conv)a, [:values]}
      ],
      index: [
        {Nx, ~w(take)a, [{:ranked, :any}, :indices, [axis: :axis]]},
        {__MODULE__, ~w(take_along_axis gather indexed)a, [:values]}
      ],
      product: [
        {__MODULE__, ~w(dot)a, [:values]},
        {Nx, ~w(dot)a, [:square, :fit]},
        {Nx, ~w(dot)a, [{:plane, :any}, {:scalar, :any}]},
        {Nx, ~w(fft ifft)a, [{:ranked, :any}, [length: {:of, [3, 4, 8]}, axis: :axis]]},
        {Nx, ~w(rfft)a, [{:ranked, :real}, [length: {:of, [3, 4, 8]}, axis: :axis]]},
        {Nx, ~w(irfft)a, [{:ranked, :any}, [length: {:of, [3, 4, 8]}, axis: :axis]]},
        {Nx, ~w(fft2 ifft2)a, [{:plane, :any}, [lengths: {:of, [[2, 4], [3, 3]]}]]}
      ],
      linear: [
        {Nx.LinAlg, ~w(determinant invert lu)a, [:square]},
        {Nx.LinAlg, ~w(cholesky)a, [:positive]},
        {Nx.LinAlg, ~w(eigh)a, [:positive]},
        {Nx.LinAlg, ~w(qr)a, [:matrix, [mode: {:of, [:reduced, :complete]}]]},
        {Nx.LinAlg, ~w(svd)a, [:matrix, [full_matrices?: :boolean]]},
        {Nx.LinAlg, ~w(pinv matrix_rank adjoint)a, [:matrix]},
        {Nx.LinAlg, ~w(matrix_power)a, [:square, {:of, [0, 1, 3, -1]}]},
        {Nx.LinAlg, ~w(norm)a, [:matrix, [ord: {:of, [:frobenius, 1, -1, :inf, :neg_inf]}]]},
        {Nx.LinAlg, ~w(solve)a, [:square, :fit]},
        {Nx.LinAlg, ~w(least_squares)a, [:square, :fit_rows]},
        {Nx.LinAlg, ~w(triangular_solve)a,
         [
           :positive,
           :fit,
           [lower: :boolean, left_side: :boolean, transform_a: {:of, [:none, :transpose]}]
         ]}
      ],
      random: [
        {Nx.Random, ~w(uniform normal gumbel)a, [:key, [shape: :shape, type: :float_type]]},
        {Nx.Random, ~w(uniform normal)a, [:key, 0.5, 2.0, [shape: :shape, type: :float_type]]},
        {Nx.Random, ~w(randint)a, [:key, {:of, [0, -5]}, {:of, [3, 100]}, [shape: :shape]]},
        {Nx.Random, ~w(split)a, [:key, [parts: {:of, [2, 3]}]]},
        {Nx.Random, ~w(fold_in)a, [:key, {:of, [0, 7]}]},
        {Nx.Random, ~w(multivariate_normal)a,
         [:key, :mean, :covariance, [method: {:of, [:cholesky, :eigh, :svd]}]]},
        {Nx.Random, ~w(choice)a, [:key, {:ranked, {:few, :any}}, [samples: 3, axis: 0]]},
        {Nx.Random, ~w(shuffle)a,
         [:key, {:ranked, {:few, :any}}, [axis: {:of, [0, -1]}, independent: :boolean]]}
      ],
      call: [
        {__MODULE__, ~w(hook runtime)a, [:values]},
        {Nx.Defn.Kernel, ~w(stop_grad)a, [:any]}
      ]
    ]

    # Those that the release of Nx has.
    there? = fn module, name, kinds ->
      module == __MODULE__ or
        (Code.ensure_loaded?(module) and function_exported?(module, name, length(kinds)))
    end

    @functions for {group, rows} <- functions,
                   do:
                     {group,
                      for {module, names, kinds} <- rows,
                          names = Enum.filter(names, &there?.(module, &1, kinds)),
                          names != [] do
                        {module, names, kinds}
                      end}

    @weights [elementwise: 10, shape: 8, creation: 1, reduction: 5, window: 1, index: 2] ++
               [product: 1, linear: 1, random: 1, call: 1]
    @groups Enum.flat_map(@weights, fn {group, weight} -> List.duplicate(group, weight) end)

    # What has a gradient, and results of f32 if its operands are.
    @of_f32 [elementwise: ~w(exp tanh sqrt negate abs sigmoid log1p sin cos erf add subtract)a] ++
              [elementwise: ~w(multiply divide min max atan2 select clip softmax norm)a] ++
              [shape: ~w(flatten transpose reverse slice concatenate stack pad tile diff)a] ++
              [reduction: ~w(sum product mean reduce_max variance logsumexp)a, product: ~w(dot)a]

    @doc "A random operation: its group, its place in it, and its function."
    def random do
      group = Enum.random(@groups)
      rows = @functions[group]
      row = :rand.uniform(length(rows)) - 1
      {_module, names, _kinds} = Enum.at(rows, row)
      {group, row, Enum.random(names)}
    end

    @doc "A random operation with a gradient, which gives f32 for f32."
    def random_of_f32 do
      {group, names} = Enum.random(@of_f32)
      name = Enum.random(names)
      {group, Enum.find_index(@functions[group], fn {_, names, _} -> name in names end), name}
    end

    @doc "All operations."
    def all do
      for {group, rows} <- @functions,
          {{_, names, _}, row} <- Enum.with_index(rows),
          name <- names,
          do: {group, row, name}
    end

    @doc "The result of an operation on some of the values."
    def run({group, row, name}, values) do
      {module, _names, kinds} = @functions |> Keyword.fetch!(group) |> Enum.at(row)
      args = Enum.reduce(kinds, [], &(&2 ++ [argument(&1, values, &2)]))
      apply(module, name, args)
    end

    ## Operations whose arguments depend on each other

    def select(values) do
      {a, p} = {pick(values), pick(values)}
      b = values |> pick() |> like(a)
      Nx.select(if(Nx.rank(p) > Nx.rank(a), do: first(p), else: like(p, a)), a, b)
    end

    def as_complex(values), do: Nx.as_type(pick(values), Enum.random([:c64, :c128]))

    # Which bits a NaN has depends on the order of operands.
    def bitcast(values) do
      %{type: {kind, bits}} = a = values |> pick() |> real()

      a =
        if kind in [:s, :u],
          do: a,
          else: Nx.select(Nx.is_nan(a), 0, a) |> Nx.as_type({kind, bits})

      Nx.bitcast(a, Enum.random(for {_, ^bits} = type <- real_types(), do: type))
    end

    def softmax(values) do
      {a, axes} = last_axis(values)
      exp = Nx.exp(Nx.subtract(a, Nx.reduce_max(a, axes: axes, keep_axes: true)))
      Nx.divide(exp, Nx.sum(exp, axes: axes, keep_axes: true))
    end

    def norm(values) do
      {a, axes} = last_axis(values)
      mean = Nx.mean(a, axes: axes, keep_axes: true)
      Nx.divide(Nx.subtract(a, mean), Nx.add(Nx.variance(a, axes: axes, keep_axes: true), 1))
    end

    defp last_axis(values) do
      a = values |> pick() |> real() |> inexact()
      {a, if(Nx.rank(a) == 0, do: [], else: [-1])}
    end

    def reshape(values) do
      %{shape: shape} = a = pick(values)
      size = Tuple.product(shape)
      reversed = shape |> Tuple.to_list() |> Enum.reverse() |> List.to_tuple()
      Nx.reshape(a, Enum.random([{size}, {1, size}, {:auto, 1}, reversed, {div(size, 2), 2}]))
    end

    def broadcast(values) do
      %{shape: shape} = a = values |> pick() |> few(40)
      sizes = Tuple.to_list(shape)
      axes = Nx.axes(a)

      # Nx names axes of vectorized tensors twice.
      case Enum.random([:lead | if(a.vectorized_axes == [], do: [:trail], else: [])]) do
        :lead -> Nx.broadcast(a, List.to_tuple(Enum.random([[2], [2, 4]]) ++ sizes))
        :trail -> Nx.broadcast(a, List.to_tuple(sizes ++ [3]), axes: axes)
      end
    end

    def slice(values) do
      a = pick(values)
      {starts, lengths} = part(a)

      Nx.slice(a, starts, lengths,
        strides: Enum.random([1, for(_ <- starts, do: Enum.random(1..2))])
      )
    end

    def dynamic_slice(values) do
      a = pick(values)
      {starts, lengths} = part(a)
      Nx.slice(a, Enum.map(starts, &dynamic(&1, values)), lengths)
    end

    def put_slice(values) do
      a = pick(values)
      {starts, lengths} = part(a)
      update = values |> pick() |> resize(List.to_tuple(lengths))
      Nx.put_slice(a, Enum.map(starts, &dynamic(&1, values)), update)
    end

    # A start as it is, or as a tensor, which may be outside.
    defp dynamic(start, values),
      do: Enum.random([start, values |> pick() |> scalar() |> index(9)])

    # The starts and lengths of a part of a tensor.
    defp part(%{shape: shape}) do
      Enum.unzip(
        for size <- Tuple.to_list(shape) do
          start = Enum.random([0, div(size, 2)])
          {start, Enum.random(Enum.uniq([1, size - start]))}
        end
      )
    end

    def put_diagonal(values) do
      %{shape: shape} = a = values |> pick() |> few(40) |> plane()
      size = Enum.min(Tuple.to_list(shape))
      Nx.put_diagonal(a, values |> pick() |> resize({size}))
    end

    defp plane(a) do
      %{shape: shape} = a = ranked(a, 2)
      rank = tuple_size(shape)
      Nx.reshape(a, {div(Tuple.product(shape), elem(shape, rank - 1)), elem(shape, rank - 1)})
    end

    def concatenate(values) do
      a = values |> pick() |> ranked(1)
      axis = Enum.random(Nx.axes(a))

      others =
        for _ <- 1..Enum.random(1..2) do
          sizes = put_elem(a.shape, axis, Enum.random([1, 2, elem(a.shape, axis)]))
          Enum.random([a, values |> pick() |> resize(sizes)])
        end

      Nx.concatenate([a | others], axis: axis)
    end

    def stack(values) do
      a = pick(values)
      others = for _ <- 1..Enum.random(1..2), do: values |> pick() |> resize(a.shape)
      Nx.stack([a | others], axis: Enum.random([-1 | Enum.to_list(0..Nx.rank(a))]))
    end

    def split(values) do
      a = values |> pick() |> ranked(1)
      axis = Enum.random(Nx.axes(a))
      Nx.split(a, Enum.random([1, 0.5, -1]), axis: axis)
    end

    def revectorize(values) do
      a = pick(values)
      size = Enum.product(Keyword.values(a.vectorized_axes))
      Nx.revectorize(a, [{vector_name(size), size}])
    end

    def broadcast_vectors(values),
      do:
        List.to_tuple(
          Nx.broadcast_vectors([pick(values), pick(values)],
            align_ranks: Enum.random([true, false])
          )
        )

    # A tensor that the function has captured: the evaluator computes on Nx.BinaryBackend until there is
    # an operand of another.
    def captured(values) do
      type = Enum.random(real_types())
      shape = Enum.random([pick(values).shape, {3}, {2, 3}])
      numbers = for i <- 1..min(Tuple.product(shape), 50), do: rem(i * i, 3)

      numbers
      |> Nx.tensor(type: type)
      |> resize(shape)
      |> Nx.add(Nx.logical_not(first(pick(values))))
    end

    def fold(values) do
      a = values |> pick() |> foldable() |> few(5)

      fun =
        Enum.random([
          &Nx.add/2,
          &Nx.max/2,
          &Nx.subtract/2,
          fn x, acc -> Nx.add(Nx.multiply(acc, 2), x) end
        ])

      options = argument([axes: :axes, keep_axes: :boolean], values, [a])
      Nx.reduce(a, Nx.tensor(Enum.random([0, 1]), type: a.type), options, fun)
    end

    def window_fold(values) do
      a = values |> pick() |> foldable() |> few(4)
      options = argument([strides: :strides, padding: :window_padding], values, [a])
      window = argument(:window, values, [a])
      fun = Enum.random([&Nx.add/2, &Nx.max/2, fn x, acc -> Nx.subtract(acc, x) end])
      Nx.window_reduce(a, Nx.tensor(1, type: a.type), window, options, fun)
    end

    # Reductions with a function of types below a byte have no native form.
    defp foldable(%{type: {_, bits}} = value) when bits < 8, do: Nx.as_type(value, :s32)
    defp foldable(value), do: real(value)

    def window_scatter(values) do
      a = values |> pick() |> real()
      window = argument(:window, values, [a])
      options = argument([strides: :strides, padding: :window_padding], values, [a])
      source = values |> pick() |> real() |> resize(Nx.window_max(a, window, options).shape)
      name = Enum.random([:window_scatter_max, :window_scatter_min])
      apply(Nx, name, [a, source, Enum.random([0, 1.5]), window, options])
    end

    def conv(values) do
      rank = Enum.random(1..2)
      {groups, batch_groups} = Enum.random([{1, 1}, {1, 1}, {2, 1}, {1, 2}])
      spatial = for _ <- 1..rank, do: Enum.random([4, 5, 9])
      window = for _ <- 1..rank, do: Enum.random(1..3)
      channels = Enum.random([1, 3])
      a = values |> pick() |> resize(List.to_tuple([2, channels * groups | spatial]))
      kernel = values |> pick() |> resize(List.to_tuple([4, channels | window]))
      steps = fn -> Enum.random([1, 2, for(_ <- spatial, do: Enum.random(1..2))]) end
      padding = [:valid, :same, for(_ <- spatial, do: Enum.random([{0, 0}, {1, 2}, {2, 0}]))]

      Nx.conv(a, kernel,
        strides: steps.(),
        padding: Enum.random(padding),
        input_dilation: steps.(),
        kernel_dilation: steps.(),
        feature_group_size: groups,
        batch_group_size: batch_groups
      )
    end

    def dot(values) do
      %{shape: shape} = a = values |> pick() |> few(30) |> ranked(1)
      batch = if tuple_size(shape) > 1, do: Enum.random([[], [0]]), else: []
      contracted = Enum.take_random(Nx.axes(a) -- batch, :rand.uniform(2))
      sizes = &for(axis <- &1, do: elem(shape, axis))
      free = Enum.random([[], [2], [3, 1]])
      b = values |> pick() |> resize(List.to_tuple(sizes.(batch) ++ free ++ sizes.(contracted)))
      first = length(batch ++ free)

      Nx.dot(
        a,
        contracted,
        batch,
        b,
        Enum.to_list(first..(first + length(contracted) - 1)//1),
        batch
      )
    end

    def take_along_axis(values) do
      %{shape: shape} = a = values |> pick() |> ranked(1)
      axis = Enum.random(Nx.axes(a))
      indices = values |> pick() |> resize(put_elem(shape, axis, 2)) |> index(elem(shape, axis))
      Nx.take_along_axis(a, indices, axis: axis)
    end

    def gather(values) do
      {a, axes, indices, _shape} = indices(values)
      Nx.gather(a, indices, axes: axes)
    end

    def indexed(values) do
      {a, axes, indices, shape} = indices(values)
      updates = values |> pick() |> resize(shape)
      apply(Nx, Enum.random([:indexed_add, :indexed_put]), [a, indices, updates, [axes: axes]])
    end

    # A tensor, some of its axes, indices of it along these, and the shape of what is there.
    defp indices(values) do
      %{shape: shape} = a = values |> pick() |> ranked(1)
      axes = Nx.axes(a) |> Enum.take_random(:rand.uniform(2)) |> Enum.sort()
      seed = values |> pick() |> few(3) |> Nx.flatten()
      count = elem(seed.shape, 0)

      indices =
        for axis <- axes, do: seed |> Nx.add(axis) |> index(elem(shape, axis)) |> Nx.new_axis(-1)

      rest = for axis <- Nx.axes(a) -- axes, do: elem(shape, axis)
      {a, axes, Nx.concatenate(indices, axis: -1), List.to_tuple([count | rest])}
    end

    # The values that hooks are given are sent to the process that runs the program, without names, which
    # the evaluator may have forgotten. Each hook of a
    # program has a name of its own. Nx gives the evaluator wrong shapes for vectorized values, here
    # and in `runtime/1`.
    def hook(values) do
      name = :rand.uniform(1_000_000_000)
      kernel = Nx.Defn.Kernel
      hook = if function_exported?(kernel, :io_call, 3), do: :io_call, else: :hook
      %{vectorized_axes: axes} = a = pick(values)
      send_unnamed = &send(self(), {name, %{&1 | names: List.duplicate(nil, Nx.rank(&1))}})
      hooked = apply(kernel, hook, [Nx.devectorize(a), :"hook_#{name}", send_unnamed])
      Nx.vectorize(hooked, axes)
    end

    def runtime(values) do
      %{vectorized_axes: axes} = a = pick(values)
      a = Nx.devectorize(a)

      negated =
        if function_exported?(Nx, :runtime_call, 3),
          do: apply(Nx, :runtime_call, [a, a, &__MODULE__.negated/2]),
          else: Nx.negate(a)

      Nx.vectorize(negated, axes)
    end

    def negated(x, _opts), do: Nx.negate(x)
  end
end
