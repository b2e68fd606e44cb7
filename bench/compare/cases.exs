# What is compared. A case is a row:
#
#     row(name, inputs, call, "a + b", options)
#
# Inputs are `name: {type, shape, range}`. The call is one of
#
#   * `{operation, more arguments}`: of Ferrox's own API, and of Nx for BinaryBackend;
#   * a function that is given Ferrox or Nx, then the inputs;
#   * `{:defn, function}`: a function of Nx.Defn, which is compiled;
#   * `{:nx, function}`: what only the backend has, given tensors of Nx;
#   * `{:nx, function, {results, function}}`: where there is no Nx, the second is called
#     with `{type, shape, data}` of each input, and gives the data of the results, whose
#     types and shapes are listed.
#
# The expression is Python's, of the inputs. `np` is NumPy or jax.numpy, and types
# (`f32`) have their names. Options:
#
#   * `:numpy`, `:jax` - another expression for one of them, nil to leave it out
#   * `:bound` - `:exact` (the default), `{:each, bound}` of every element's relative
#     error, or `{:whole, bound}` of the largest error over the largest element
#   * `:binary_bound` - the same for BinaryBackend, which truncates to bf16
#   * `:evaluator` - nil to leave out Nx's evaluator of a whole program
#   * `:through` - a Python expression of the results `r` to compare in their stead,
#     where they aren't unique
#   * `:work` - if the time doesn't grow with the largest input: what it grows with
#   * `:panel` - where it is drawn, if not with its group

defmodule Bench.Cases do
  @compile {:no_warn_undefined, [Nx, Nx.LinAlg]}

  alias Ferrox.Native

  @groups [
    binary: "binary, one type",
    mixed: "binary, mixed types",
    broadcast: "broadcast",
    unary: "unary",
    cast: "casts",
    reduce: "reductions",
    layout: "layout",
    dot: "dot",
    conv: "convolution and pooling",
    sort: "sort",
    fft: "fft and linear algebra",
    small: "small tensors",
    programs: "whole programs"
  ]

  @sizes [1, 1_000, 100_000, 1_000_000, 10_000_000]
  @sides [64, 256, 512, 1_024, 2_048]

  # The types of a group, at all of its sizes and among the small tensors.
  @binary_types [:u8, :s32, :s64, :bf16, :f16, :f32, :f64, :c64]
  @broadcast_types [:f32, :s32]
  @unary_types [:f32, :f64, :bf16]
  @reduce_types [:f32, :f64, :s32, :bf16]
  @layout_types [:f32, :u8]
  @dot_types [:f32, :f64, :bf16, :s32, :s8]
  @sort_types [:f32, :s32, :f64]
  @fft_types [:c64, :c128]
  @linalg_types [:f32, :f64]

  @doc "Names of groups and what they are called."
  def groups, do: @groups

  @doc "The groups with these names, all for none; or an error that says which there are."
  def named([]), do: {:ok, Keyword.keys(@groups)}

  def named(names) do
    known = Keyword.keys(@groups)

    case Enum.reject(names, &(&1 in Enum.map(known, fn group -> "#{group}" end))) do
      [] -> {:ok, Enum.filter(known, &("#{&1}" in names))}
      [name | _] -> {:error, "there is no group #{name}: #{Enum.join(known, " ")}"}
    end
  end

  @doc "The rows of a group; with `quick: true` a few that stand for all."
  def rows(group, opts \\ []) do
    rows = Enum.map(group(group), &Map.put(&1, :group, group))
    rows = Enum.map(rows, &Map.put_new(&1, :panel, @groups[group]))
    if opts[:quick], do: few(rows), else: rows
  end

  # Of middling size one of each kind, which a name's first word tells, or two where
  # there are few kinds; another type and size for the next kind.
  defp few(rows) do
    kinds =
      rows
      |> Enum.filter(&(&1.work <= 20_000_000 and &1.elements in 16..200_000))
      |> Enum.group_by(&hd(String.split(&1.name)))
      |> Enum.sort()

    for {{_, rows}, k} <- Enum.with_index(kinds),
        part <- if(length(kinds) > 6, do: [k], else: [k, k + div(length(rows), 2) + 1]),
        uniq: true,
        do: Enum.at(rows, rem(part, length(rows)))
  end

  defp group(:binary), do: binary(@sizes, @binary_types)
  defp group(:mixed), do: mixed(@sizes)
  defp group(:broadcast), do: broadcast(@sizes, @broadcast_types)
  defp group(:unary), do: unary(@sizes, @unary_types)
  defp group(:cast), do: cast(@sizes)
  defp group(:reduce), do: reduce(@sizes, @reduce_types)
  defp group(:layout), do: layout(@sizes, @layout_types)
  defp group(:dot), do: dot(@sides, @dot_types)
  defp group(:conv), do: conv(layers()) ++ pool(pools())
  defp group(:sort), do: sort(@sizes, @sort_types)

  defp group(:fft) do
    fft(for(k <- 10..20//2, do: Integer.pow(2, k)), @fft_types) ++
      linalg([8, 32, 128, 512], @linalg_types)
  end

  # Whole programs are functions of Nx.Defn, which can't be compiled without Nx.
  defp group(:programs) do
    programs = Bench.Programs

    if Code.ensure_loaded?(programs) do
      for {name, inputs, fun, expression, opts} <- apply(programs, :all, []),
          do: row(name, inputs, {:defn, fun}, expression, [numpy: nil] ++ opts)
    else
      []
    end
  end

  defp group(:small) do
    sizes = [1, 16]

    Enum.concat([
      binary(sizes, @binary_types),
      mixed(sizes),
      broadcast(sizes, @broadcast_types),
      unary(sizes, @unary_types),
      cast(sizes),
      reduce(sizes, @reduce_types),
      layout(sizes, @layout_types),
      dot([1, 4], @dot_types),
      conv([{{1, 1, 1, 1}, {1, 1, 1, 1}, 1, 0, 1}, {{1, 1, 4, 4}, {1, 1, 3, 3}, 1, 1, 1}]),
      pool([
        {:max, {1, 1, 1, 1}, {1, 1, 1, 1}, 1, 0},
        {:max, {1, 1, 4, 4}, {1, 1, 2, 2}, 2, 0},
        {:mean, {1, 1, 1, 1}, {1, 1, 1, 1}, 1, 0},
        {:mean, {1, 1, 4, 4}, {1, 1, 2, 2}, 2, 0}
      ]),
      sort(sizes, @sort_types),
      fft(sizes, @fft_types),
      linalg([1, 4], @linalg_types)
    ])
    |> Enum.map(&Map.put(&1, :panel, @groups[:small]))
  end

  ## The groups

  defp binary(sizes, types) do
    for type <- types,
        {op, python} <- [
          add: "a + b",
          multiply: "a * b",
          divide: "a / b",
          pow: "np.power(a, b)",
          max: "np.maximum(a, b)",
          less: "np.less(a, b)"
        ],
        not (type == :c64 and op in [:max, :less]),
        n <- sizes do
      {left, right} = operands(op, type)
      bound = if op in [:pow, :divide] or type == :c64, do: bound(type), else: :exact

      # Of integers Nx gives f32, the others f64.
      peers =
        if op == :divide and integer?(type) do
          [
            numpy: "np.divide(a, b, dtype=f32)",
            jax: "a.astype(f32) / b.astype(f32)",
            bound: bound(:f32)
          ]
        else
          [bound: bound]
        end

      inputs = [a: {type, {n}, left}, b: {type, {n}, right}]
      row("#{op} #{type}", inputs, {op, []}, python, peers)
    end
  end

  defp operands(:pow, type),
    do: if(integer?(type), do: {{0, 5}, {0, 3}}, else: {{0.1, 8}, {-2, 2}})

  defp operands(:divide, :u8), do: {{0, 255}, {1, 100}}
  defp operands(:divide, _), do: {{-1000, 1000}, {1, 100}}
  defp operands(_, :u8), do: {{0, 255}, {0, 255}}
  defp operands(_, _), do: {{-100, 100}, {-100, 100}}

  defp mixed(sizes) do
    for {left, right, numpy} <- [
          {:u8, :f32, "a OP b"},
          {:s8, :u8, "a OP b"},
          {:bf16, :f16, "a.astype(f32) OP b.astype(f32)"},
          {:s64, :f32, "np.FUN(a, b, dtype=f32)"},
          {:f32, :f64, "a OP b"}
        ],
        {op, sign} <- [add: "+", multiply: "*"],
        n <- sizes do
      numpy = numpy |> String.replace("OP", sign) |> String.replace("FUN", "#{op}")
      inputs = [a: {left, {n}, {0, 100}}, b: {right, {n}, {0, 100}}]
      row("#{op} #{left}, #{right}", inputs, {op, []}, "a #{sign} b", numpy: numpy)
    end
  end

  defp broadcast(sizes, types) do
    for type <- types,
        {name, op, python, left, right} <- [
          {"add a row", :add, "a + b", [:rows, :columns], [1, :columns]},
          {"add a column", :add, "a + b", [:rows, :columns], [:rows, 1]},
          {"add a scalar", :add, "a + b", [:rows, :columns], []},
          {"outer product", :multiply, "a * b", [:rows, 1], [1, :columns]}
        ],
        n <- sizes do
      {rows, columns} = matrix(n)
      dims = fn list -> List.to_tuple(for d <- list, do: dim(d, rows, columns)) end
      inputs = [a: {type, dims.(left), {-100, 100}}, b: {type, dims.(right), {-100, 100}}]
      row("#{name} #{type}", inputs, {op, []}, python, shape: {rows, columns})
    end
  end

  defp dim(:rows, rows, _), do: rows
  defp dim(:columns, _, columns), do: columns
  defp dim(dim, _, _), do: dim

  defp unary(sizes, types) do
    for type <- types,
        {op, python, range, peers} <- [
          {:exp, "np.exp(a)", {-8, 8}, []},
          {:log, "np.log(a)", {0.01, 100}, []},
          {:tanh, "np.tanh(a)", {-4, 4}, []},
          {:sigmoid, "1 / (1 + np.exp(-a))", {-8, 8}, [jax: "jax.nn.sigmoid(a)"]},
          {:sqrt, "np.sqrt(a)", {0, 100}, []},
          {:sin, "np.sin(a)", {-8, 8}, []},
          {:erf, "jax.scipy.special.erf(a)", {-3, 3}, [numpy: nil]}
        ],
        n <- sizes do
      row(
        "#{op} #{type}",
        [a: {type, {n}, range}],
        {op, []},
        python,
        [bound: bound(type)] ++ peers
      )
    end
  end

  defp cast(sizes) do
    for {from, to} <- [
          {:u8, :f32},
          {:f32, :u8},
          {:s32, :f32},
          {:f32, :s32},
          {:s64, :f32},
          {:s64, :s32},
          {:s32, :u8},
          {:f32, :f64},
          {:f64, :f32},
          {:f32, :bf16},
          {:bf16, :f32},
          {:f32, :f16},
          {:f16, :f32},
          {:s32, :bf16},
          {:f16, :s32},
          {:bf16, :f16},
          {:f64, :f16}
        ],
        n <- sizes do
      # XLA goes by way of f32, and rounds twice.
      peers = if {from, to} == {:f64, :f16}, do: [jax: nil], else: []
      inputs = [a: {from, {n}, {0, 100}}]
      row("#{from} to #{to}", inputs, {:as_type, [to]}, "a.astype(#{to})", peers)
    end
  end

  defp reduce(sizes, types) do
    for type <- types,
        {op, numpy, options} <- [
          {:sum, "sum", if(type == :s32, do: ", dtype=s32", else: "")},
          {:reduce_max, "max", ""},
          {:argmax, "argmax", ""},
          {:mean, "mean", if(type == :s32, do: ", dtype=f32", else: "")}
        ],
        {name, axis} <- [{"all", nil}, {"first axis", 0}, {"last axis", 1}],
        n <- sizes do
      opts = if op == :argmax, do: [axis: axis], else: [axes: axis && [axis]]
      python = "np.#{numpy}(a, axis=#{axis || "None"}#{options})"

      bound =
        cond do
          op == :mean and type == :s32 -> {:whole, whole(:f32)}
          op in [:sum, :mean] -> whole_of(type)
          true -> :exact
        end

      row(
        "#{numpy} #{type}, #{name}",
        [a: {type, matrix(n), {0, 100}}],
        {op, [opts]},
        python,
        [bound: bound] ++ no_numpy(type)
      )
    end ++ cumulative(sizes, types)
  end

  defp cumulative(sizes, types) do
    for type <- types, type != :bf16, n <- sizes do
      range = if integer?(type), do: {-100, 100}, else: {0, 1}

      row(
        "cumulative sum #{type}",
        [a: {type, {n}, range}],
        {:nx, &Nx.cumulative_sum(&1),
         {[{type, {n}}], &Native.cumulative(:cumulative_sum, 0, false, &1)}},
        "np.cumsum(a, dtype=#{type})",
        # The peers add up in the type itself.
        bound:
          case type do
            :f32 -> {:whole, 1.0e-3}
            :f64 -> {:whole, 1.0e-11}
            _ -> :exact
          end
      )
    end
  end

  defp layout(sizes, types) do
    for type <- types, n <- sizes, row <- layouts(type, n), do: row
  end

  defp layouts(type, n) do
    {rows, columns} = shape = matrix(n)
    full = type(type)
    a = [a: {type, shape, {0, 100}}]
    ab = a ++ [b: {type, shape, {0, 100}}]
    v = [a: {type, {n}, {0, 100}}]
    i = {:s32, {n, 1}, {0, n - 1}}
    wider = {rows + 2, columns + 2}
    edges = [{1, 1, 0}, {1, 1, 0}]
    zero = {full, {}, if(type == :u8, do: <<0>>, else: <<0.0::float-32-native>>)}

    [
      row("transpose #{type}", a, {:transpose, []}, "a.T", numpy: "np.ascontiguousarray(a.T)"),
      row(
        "concatenate rows #{type}",
        ab,
        fn m, a, b -> m.concatenate([a, b], axis: 0) end,
        "np.concatenate((a, b), 0)",
        []
      ),
      row(
        "concatenate columns #{type}",
        ab,
        fn m, a, b -> m.concatenate([a, b], axis: 1) end,
        "np.concatenate((a, b), 1)",
        []
      ),
      row(
        "transpose to rows of 3 #{type}",
        [a: {type, {3, max(div(n, 3), 1)}, {0, 100}}],
        {:transpose, []},
        "a.T",
        numpy: "np.ascontiguousarray(a.T)"
      ),
      row(
        "concatenate to rows of 2 #{type}",
        [
          a: {type, {max(div(n, 2), 1), 1}, {0, 100}},
          b: {type, {max(div(n, 2), 1), 1}, {0, 100}}
        ],
        fn m, a, b -> m.concatenate([a, b], axis: 1) end,
        "np.concatenate((a, b), 1)",
        []
      ),
      row(
        "slice with strides #{type}",
        a,
        {:slice, [[0, 0], [rows, columns], [strides: [2, 3]]]},
        "a[::2, ::3]",
        numpy: "np.ascontiguousarray(a[::2, ::3])"
      ),
      row(
        "pad #{type}",
        a,
        {:nx, &Nx.pad(&1, 0, edges),
         {[{type, wider}], &Native.pad(full, wider, edges, &1, zero)}},
        "np.pad(a, 1)",
        []
      ),
      row(
        "reverse #{type}",
        a,
        {:nx, &Nx.reverse(&1), {[{type, shape}], &Native.reverse(shape, [0, 1], &1)}},
        "a[::-1, ::-1]",
        numpy: "np.ascontiguousarray(a[::-1, ::-1])"
      ),
      row(
        "gather #{type}",
        v ++ [i: i],
        {:nx, &Nx.gather(&1, &2), {[{type, {n}}], &Native.gather({n}, [0], &1, &2)}},
        "a[i[:, 0]]",
        []
      ),
      row(
        "take rows #{type}",
        a ++ [i: {:s32, {rows}, {0, rows - 1}}],
        {:nx, &Nx.take(&1, &2, axis: 0), {[{type, shape}], &Native.take(shape, 0, &1, &2)}},
        "np.take(a, i, axis=0)",
        []
      ),
      row(
        "take columns #{type}",
        a ++ [i: {:s32, {columns}, {0, columns - 1}}],
        {:nx, &Nx.take(&1, &2, axis: 1), {[{type, shape}], &Native.take(shape, 1, &1, &2)}},
        "np.take(a, i, axis=1)",
        []
      ),
      row(
        "indexed_add #{type}",
        v ++ [i: i, b: {type, {n}, {0, 100}}],
        {:nx, &Nx.indexed_add(&1, &2, &3),
         {[{type, {n}}], &Native.indexed(:indexed_add, full, [0], &1, &2, &3)}},
        "a.at[i[:, 0]].add(b)",
        numpy: "(lambda r: (np.add.at(r, i[:, 0], b), r)[1])(a.copy())",
        bound: if(type == :u8, do: :exact, else: bound(type))
      )
    ]
  end

  defp dot(sides, types) do
    for {kind, axes} <- [
          {"square", {[1], [], [0], []}},
          {"tall", {[1], [], [0], []}},
          {"batched", {[2], [0], [1], [0]}},
          {"matrix with vector", {[1], [], [0], []}}
        ],
        type <- types,
        side <- sides do
      {left, right, work} = products(kind, side)
      {left_axes, left_batch, right_axes, right_batch} = axes
      range = if integer?(type), do: {-100, 100}, else: {-1, 1}

      row(
        "#{kind} #{type}",
        [a: {type, left, range}, b: {type, right, range}],
        fn m, a, b -> m.dot(a, left_axes, left_batch, b, right_axes, right_batch) end,
        "np.matmul(a, b)",
        [bound: whole_of(type), work: work] ++ no_numpy(type)
      )
    end
  end

  # All have as many elements as the square of the side.
  defp products("square", n), do: {{n, n}, {n, n}, n * n * n}

  defp products("tall", n) do
    side = n |> div(2) |> max(1) |> min(32)
    {{div(n * n, side), side}, {side, side}, n * n * side}
  end

  defp products("batched", n) do
    side = max(div(n, 4), min(n, 2))
    batch = div(n * n, side * side)
    {{batch, side, side}, {batch, side, side}, n * n * side}
  end

  defp products("matrix with vector", n), do: {{n, n}, {n}, n * n}

  # Input and kernel in Nx's order, stride, padding, feature groups.
  defp layers do
    [
      {{1, 1, 28, 28}, {8, 1, 3, 3}, 1, 1, 1},
      {{1, 256, 14, 14}, {256, 256, 1, 1}, 1, 0, 1},
      {{1, 128, 28, 28}, {128, 128, 3, 3}, 1, 1, 1},
      {{1, 3, 224, 224}, {64, 3, 7, 7}, 2, 3, 1},
      {{1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
      {{1, 64, 56, 56}, {128, 64, 3, 3}, 2, 1, 1},
      {{1, 64, 56, 56}, {128, 64, 1, 1}, 2, 0, 1},
      {{1, 512, 7, 7}, {512, 512, 3, 3}, 1, 1, 1},
      {{1, 32, 112, 112}, {32, 1, 3, 3}, 1, 1, 32},
      {{8, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
      {{32, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1}
    ]
  end

  defp conv(layers) do
    for {input, kernel, stride, pad, groups} <- layers do
      {batch, _, height, width} = input
      {filters, channels, rows, columns} = kernel

      places =
        for {d, k} <- [{height, rows}, {width, columns}], do: div(d + 2 * pad - k, stride) + 1

      out = List.to_tuple([batch, filters | places])
      both = &[&1, &1]
      axes = [0, 1, 2, 3]

      native =
        {both.(stride), both.({pad, pad}), both.(1), both.(1), {groups, 1}, {axes, axes, axes}}

      opts = [strides: both.(stride), padding: both.({pad, pad}), feature_group_size: groups]

      # Patches by a view, then a product of matrices: NumPy has no convolution of its own.
      windows =
        "np.lib.stride_tricks.sliding_window_view(np.pad(a, ((0, 0), (0, 0), (#{pad}, #{pad}), " <>
          "(#{pad}, #{pad}))), b.shape[2:], (2, 3))[:, :, ::#{stride}, ::#{stride}]"

      numpy =
        if groups == 1,
          do:
            "np.ascontiguousarray(np.tensordot(#{windows}, b, ((1, 4, 5), (1, 2, 3)))" <>
              ".transpose(0, 3, 1, 2))",
          else: "np.einsum('nchwij,cij->nchw', #{windows}, b[:, 0], optimize=True)"

      row(
        "conv #{rows}x#{columns} by #{stride}, #{filters} filters" <>
          if(groups > 1, do: ", depthwise", else: ""),
        [a: {:f32, input, {-1, 1}}, b: {:f32, kernel, {-1, 1}}],
        {:nx, &Nx.conv(&1, &2, opts),
         {[{:f32, out}], &Native.conv({:f, 32}, out, &1, &2, native)}},
        "lax.conv_general_dilated(a, b, (#{stride}, #{stride}), " <>
          "((#{pad}, #{pad}), (#{pad}, #{pad})), feature_group_count=#{groups})",
        numpy: numpy,
        bound: {:whole, 1.0e-5},
        shape: input,
        work: Tuple.product(out) * channels * rows * columns
      )
    end
  end

  # What is taken of each window, input, window, stride, padding.
  defp pools do
    [
      {:max, {1, 8, 28, 28}, {1, 1, 2, 2}, 2, 0},
      {:mean, {1, 512, 7, 7}, {1, 1, 7, 7}, 1, 0},
      {:max, {1, 64, 112, 112}, {1, 1, 3, 3}, 2, 1},
      {:max, {1, 64, 112, 112}, {1, 1, 2, 2}, 2, 0},
      {:mean, {8, 64, 112, 112}, {1, 1, 2, 2}, 2, 0}
    ]
  end

  defp pool(pools) do
    for {kind, shape, window, stride, pad} <- pools do
      {_, _, rows, columns} = window
      edges = [{0, 0}, {0, 0}, {pad, pad}, {pad, pad}]
      strides = [1, 1, stride, stride]
      opts = [strides: strides, padding: edges]
      op = if kind == :max, do: :window_max, else: :window_mean

      # NumPy has no pooling of its own: a maximum over a view of the windows.
      windows =
        "np.lib.stride_tricks.sliding_window_view(" <>
          "np.pad(a, ((0, 0), (0, 0), (#{pad}, #{pad}), (#{pad}, #{pad})), " <>
          "constant_values=#{if pad > 0, do: "-np.inf", else: "0"}), (#{rows}, #{columns}), (2, 3))" <>
          "[:, :, ::#{stride}, ::#{stride}]"

      python = fn init, fold ->
        "lax.reduce_window(a, #{init}, #{fold}, (1, 1, #{rows}, #{columns}), " <>
          "(1, 1, #{stride}, #{stride}), ((0, 0), (0, 0), (#{pad}, #{pad}), (#{pad}, #{pad})))"
      end

      jax =
        if kind == :max,
          do: python.("-np.inf", "lax.max"),
          else: python.("0.0", "lax.add") <> " / #{rows * columns}"

      row(
        "#{kind} of #{rows}x#{columns} by #{stride}",
        [a: {:f32, shape, {-1, 1}}],
        {:nx, fn a -> apply(Nx, op, [a, window, opts]) end},
        jax,
        numpy: "#{windows}.#{kind}((-2, -1))",
        bound: {:whole, 1.0e-6}
      )
    end
  end

  defp sort(sizes, types) do
    for type <- types, n <- sizes, row <- sorts(type, n), do: row
  end

  defp sorts(type, n) do
    range = if integer?(type), do: {-1_000_000_000, 1_000_000_000}, else: {-1, 1}
    inputs = [a: {type, {n}, range}]
    k = min(n, 10)

    [
      row(
        "sort #{type}",
        inputs,
        {:nx, &Nx.sort(&1), {[{type, {n}}], &Native.sort(0, false, &1)}},
        "np.sort(a)",
        []
      ),
      # Which of equal elements comes first is left open.
      row(
        "argsort #{type}",
        inputs,
        {:nx, &Nx.argsort(&1), {[{:s32, {n}}], &Native.argsort({:s, 32}, 0, false, &1)}},
        "np.argsort(a)",
        jax: "np.argsort(a, stable=False)",
        through: "[a[r[0]]]"
      ),
      row(
        "top_k #{type}, k = #{k}",
        inputs,
        {:nx, &Nx.top_k(&1, k: k), {[{type, {k}}, {:s32, {k}}], &native_top_k(&1, k)}},
        "lax.top_k(a, #{k})",
        numpy:
          "(lambda i: (lambda j: (a[j], j))(i[np.argsort(a[i])[::-1]]))" <>
            "(np.argpartition(a, #{n - k})[#{n - k}:])",
        through: "[r[0], a[r[1]]]"
      )
    ]
  end

  defp native_top_k(input, k) do
    places = Native.top_k({:s, 32}, {k}, input)
    [Native.take_along_axis(0, input, {{:s, 32}, {k}, places}), places]
  end

  defp fft(sizes, types) do
    for type <- types, n <- sizes do
      eps = if type == :c64, do: 1.0e-5, else: 1.0e-10

      row(
        "fft #{type}",
        [a: {type, {n}, {-1, 1}}],
        {:nx, &Nx.fft(&1, eps: eps),
         {[{type, {n}}], &Native.fourier(:fft, type(type), {n}, [{0, n}], eps, &1)}},
        "np.fft.fft(a)",
        bound: {:whole, if(type == :c64, do: 1.0e-4, else: 1.0e-10)},
        panel: "fft"
      )
    end
  end

  defp linalg(sides, types) do
    for type <- types,
        {name, python, kind, call, through} <- [
          {"cholesky", "np.linalg.cholesky(a)", :positive, &Nx.LinAlg.cholesky/1, nil},
          {"solve", "np.linalg.solve(a, b)", :positive, &Nx.LinAlg.solve/2, nil},
          {"qr", "np.linalg.qr(a)", {-1, 1}, &Nx.LinAlg.qr/1, "[r[0] @ r[1], np.abs(r[1])]"},
          {"svd", "np.linalg.svd(a)", {-1, 1}, &Nx.LinAlg.svd/1, "[r[1], (r[0] * r[1]) @ r[2]]"},
          {"eigh", "np.linalg.eigh(a)", :symmetric, &Nx.LinAlg.eigh/1,
           "[np.sort(r[0]), (r[1] * r[0]) @ r[1].T]"}
        ],
        side <- sides do
      inputs = [a: {type, {side, side}, kind}]
      inputs = if name == "solve", do: inputs ++ [b: {type, {side}, {-1, 1}}], else: inputs

      row("#{name} #{type}", inputs, {:nx, call, factor(name, type, side)}, python,
        bound: {:whole, if(type == :f32, do: 1.0e-4, else: 1.0e-11)},
        # Signs are free, and Nx puts the largest eigenvalue first.
        through: through,
        # Its iterations end earlier.
        binary_bound: {:whole, 1.0e-4},
        work: side * side * side,
        panel: "linear algebra"
      )
    end
  end

  defp factor("solve", type, n),
    do: {[{type, {n}}], &Native.solve(:lu, type(type), &1, &2)}

  defp factor(name, type, n) do
    shapes =
      case name do
        "cholesky" -> [{n, n}]
        "qr" -> [{n, n}, {n, n}]
        "svd" -> [{n, n}, {n}, {n, n}]
        "eigh" -> [{n}, {n, n}]
      end

    results = for shape <- shapes, do: {type(type), shape}

    {for(shape <- shapes, do: {type, shape}),
     &Native.factor(String.to_atom(name), results, 0, &1)}
  end

  ## Parts of rows

  defp row(name, inputs, call, python, opts) do
    shapes = for {_, {_, shape, _}} <- inputs, do: shape
    shape = opts[:shape] || Enum.max_by(shapes, &Native.size/1)
    elements = Native.size(shape)

    row = %{
      name: name,
      inputs: inputs,
      call: call,
      numpy: Keyword.get(opts, :numpy, without(python, ["jax.", "lax.", ".at["])),
      jax: Keyword.get(opts, :jax, python),
      evaluator: Keyword.get(opts, :evaluator, :defn),
      bound: opts[:bound] || :exact,
      binary_bound: opts[:binary_bound] || if(name =~ "bf16", do: bound(:bf16)),
      through: opts[:through],
      shape: shape,
      elements: elements,
      work: opts[:work] || elements
    }

    if panel = opts[:panel], do: Map.put(row, :panel, panel), else: row
  end

  defp without(python, parts), do: if(String.contains?(python, parts), do: nil, else: python)

  # In bf16 NumPy adds up in bf16: no answer to compare.
  defp no_numpy(:bf16), do: [numpy: nil]
  defp no_numpy(_), do: []

  # Within which systems agree that round differently on the way: some thirty units in the last
  # place of f32, four of halves. How exact ours are, bench/ulp.exs tells.
  defp bound(:f64), do: {:each, 1.0e-12}
  defp bound(:f32), do: {:each, 4.0e-6}
  defp bound(:f16), do: {:each, 4.0e-3}
  defp bound(:bf16), do: {:each, 3.2e-2}
  defp bound(:c64), do: {:each, 1.0e-4}
  defp bound(_integer), do: :exact

  # Of sums, whose order is free.
  defp whole_of(type), do: if(integer?(type), do: :exact, else: {:whole, whole(type)})

  defp whole(:f64), do: 1.0e-12
  defp whole(:f32), do: 1.0e-5
  defp whole(:bf16), do: 1.6e-2

  @doc "A type's name as Ferrox's and Nx's tuple."
  def type(type) do
    {kind, bits} = type |> Atom.to_string() |> String.split_at(if type == :bf16, do: 2, else: 1)
    {String.to_atom(kind), String.to_integer(bits)}
  end

  defp integer?(type), do: elem(type(type), 0) in [:s, :u]

  # Rows and columns of about as many elements, the same for every type.
  defp matrix(1), do: {1, 1}
  defp matrix(16), do: {4, 4}
  defp matrix(1_000), do: {25, 40}
  defp matrix(100_000), do: {250, 400}
  defp matrix(1_000_000), do: {1_000, 1_000}
  defp matrix(10_000_000), do: {2_500, 4_000}

  ## Inputs

  @doc "Makes an input; the same for the same type, shape, range and seed, on every machine."
  def input({type, shape, :positive}, seed) do
    {n, n} = shape
    a = input({type, shape, {-1, 1}}, seed)
    Ferrox.add(Ferrox.dot(a, Ferrox.transpose(a)), Ferrox.multiply(Ferrox.eye(n, type: type), n))
  end

  def input({type, shape, :symmetric}, seed) do
    a = input({type, shape, {-1, 1}}, seed)
    Ferrox.add(a, Ferrox.transpose(a))
  end

  def input({type, shape, range}, seed) when type in [:c64, :c128] do
    part = if type == :c64, do: :f32, else: :f64
    parts = input({part, {2 * Native.size(shape)}, range}, seed)
    parts |> Ferrox.to_binary() |> Ferrox.from_binary(type) |> Ferrox.reshape(shape)
  end

  def input({type, shape, {least, most}}, seed) do
    unit = Ferrox.multiply(Ferrox.as_type(hash(Native.size(shape), seed), :f64), 2.0 ** -32)
    width = if integer?(type), do: most - least + 1, else: most - least
    scaled = unit |> Ferrox.multiply(width) |> Ferrox.add(least)
    scaled = if integer?(type), do: Ferrox.floor(scaled), else: scaled
    scaled |> Ferrox.as_type(type) |> Ferrox.reshape(shape)
  end

  # Random enough that a branch or a sort can't guess, and made by whole tensors.
  defp hash(n, seed) do
    x =
      Ferrox.add(
        Ferrox.iota({n}, type: :u32),
        Ferrox.tensor(seed * 0x9E3779B1, type: :u64) |> Ferrox.as_type(:u32)
      )

    x = x |> mix(16) |> Ferrox.multiply(Ferrox.tensor(0x7FEB352D, type: :u32))
    x = x |> mix(15) |> Ferrox.multiply(Ferrox.tensor(0x846CA68B, type: :u32))
    mix(x, 16)
  end

  defp mix(x, bits),
    do: Ferrox.bitwise_xor(x, Ferrox.right_shift(x, Ferrox.tensor(bits, type: :u32)))
end
