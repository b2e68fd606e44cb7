if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.DifferentialWindowTest do
    # Windows, window scatters and convolutions on Ferrox.Backend against those of
    # the Nx.BinaryBackend that is installed, on random data, shapes and options.
    use Ferrox.DifferentialCase, async: true

    alias Ferrox.{Differences, Generators, Oracle, WindowOracle}

    @cases cases()
    @kept Differences.kept()
    @types types()
    @real Enum.reject(@types, &match?({:c, _}, &1))

    # 0.9 puts values beside padding in the wrong places.
    @scatter_padding Code.ensure_loaded?(Nx.Floating)

    for op <- [:window_sum, :window_product, :window_max, :window_min] do
      test "#{op}", context do
        types = if unquote(op) in [:window_sum, :window_product], do: @types, else: @real

        for type <- types, round <- 1..(6 * @cases) do
          Generators.seed(context.seed, {unquote(op), type, round})
          {shape, window, opts} = windows(:dilated)
          opts = [{:window_dilations, dilations(shape, window, opts)} | opts]

          only =
            if unquote(op) == :window_product,
              do: :everyday,
              else: Generators.pick([:everyday, :any])

          tensor = tensor(type, shape, only)
          call = &apply(Nx, unquote(op), [hd(&1), window, opts])
          met = WindowOracle.met(shape, window, opts)
          values = List.to_tuple(values(tensor))

          compare(context, unquote(op), [tensor], call, opts, fn i, type, got ->
            WindowOracle.explain(unquote(op), type, values, Enum.at(met, i), got)
          end)
        end

        report()
      end
    end

    for op <- [:window_scatter_max, :window_scatter_min] do
      test "#{op}", context do
        for type <- @real, round <- 1..(6 * @cases) do
          Generators.seed(context.seed, {unquote(op), type, round})
          {shape, window, opts} = windows(if(@scatter_padding, do: :padded, else: :plain))
          met = WindowOracle.met(shape, window, opts)
          results = Nx.window_max(Nx.iota(shape, backend: Nx.BinaryBackend), window, opts).shape

          # Ties, or elements of all sorts.
          tensor = tensor(type, shape, Generators.pick([:everyday, :any]))
          tensor = if rem(round, 2) == 0, do: tensor, else: few(tensor)
          source = tensor(Generators.pick(@real), results, :everyday)
          init = tensor(Generators.pick([source.type, {:s, 32}]), {}, :everyday)
          init = if :rand.uniform(2) == 1, do: init, else: %{init | data: zero(init)}
          call = fn [t, s, i] -> apply(Nx, unquote(op), [t, s, i, window, opts]) end

          [start] = values(init)
          places = WindowOracle.scattered(unquote(op), List.to_tuple(values(tensor)), start, met)
          sources = List.to_tuple(values(source))

          compare(context, unquote(op), [tensor, source, init], call, opts, fn i, type, got ->
            terms = [start | Enum.map(Map.get(places, i, []), &elem(sources, &1))]
            WindowOracle.scatter_explained(terms, type, got)
          end)
        end

        report()
      end
    end

    test "conv", context do
      for left <- @types, right <- @types, round <- 1..@cases do
        Generators.seed(context.seed, {:conv, left, right, round})
        {input_shape, kernel_shape, opts} = convolution()
        only = Generators.pick([:everyday, :everyday, :any])
        tensors = [tensor(left, input_shape, only), tensor(right, kernel_shape, only)]
        call = fn [input, kernel] -> Nx.conv(input, kernel, opts) end
        [inputs, weights] = Enum.map(tensors, &List.to_tuple(values(&1)))
        terms = WindowOracle.convolved(input_shape, kernel_shape, opts)
        order = opts[:output_permutation]

        compare(context, :conv, tensors, call, opts, fn i, type, got ->
          terms =
            for {input, weight} <- at(terms, i, order, input_shape, kernel_shape, opts),
                do: [if(input, do: elem(inputs, input), else: 0.0), elem(weights, weight)]

          Differences.dotted(terms, type, got)
        end)
      end

      report()
    end

    ## What is asked

    # A shape, a window that fits, and options with lists for all axes.
    defp windows(kind) do
      shape = Generators.pick([{1}, {9}, {4, 5}, {2, 3, 4}, {1, 5, 6, 2}, {30}])
      rank = tuple_size(shape)
      dims = Tuple.to_list(shape)

      padding =
        for _ <- dims do
          if kind == :plain or :rand.uniform(2) == 1,
            do: {0, 0},
            else: {:rand.uniform(4) - 1, :rand.uniform(4) - 1}
        end

      window =
        for {dim, {low, high}} <- Enum.zip(dims, padding),
            do: :rand.uniform(min(dim + low + high, 5))

      strides = for _ <- 1..rank, do: :rand.uniform(3)
      {shape, List.to_tuple(window), [padding: padding, strides: strides]}
    end

    # Of windows that still fit.
    defp dilations(shape, window, opts) do
      for {dim, size, {low, high}} <-
            Enum.zip([Tuple.to_list(shape), Tuple.to_list(window), opts[:padding]]) do
        most = if size == 1, do: 3, else: div(dim + low + high - 1, size - 1)
        :rand.uniform(min(most, 3))
      end
    end

    defp convolution do
      spatial = Generators.pick([1, 1, 2, 2, 3])
      {feature_groups, batch_groups} = Generators.pick([{1, 1}, {1, 1}, {2, 1}, {3, 1}, {1, 2}])
      channels = :rand.uniform(2)
      filters = max(feature_groups, batch_groups) * :rand.uniform(2)
      some = fn most -> for _ <- 1..spatial, do: :rand.uniform(most) end

      {strides, input_dilation, kernel_dilation, places} =
        {some.(2), some.(2), some.(2), some.(3)}

      {dims, padding} =
        Enum.zip([places, kernel_dilation, input_dilation])
        |> Enum.map(fn {size, kernel_dilation, dilation} ->
          dim = :rand.uniform(4)
          {low, high} = {:rand.uniform(3) - 1, :rand.uniform(3) - 1}
          lacking = (size - 1) * kernel_dilation - (dim - 1) * dilation - low - high
          {dim, {low, high + max(lacking, 0)}}
        end)
        |> Enum.unzip()

      axes = Enum.to_list(0..(spatial + 1))
      [input, kernel, output] = for _ <- 1..3, do: Generators.pick([axes, Enum.shuffle(axes)])

      opts = [
        strides: strides,
        padding: padding,
        input_dilation: input_dilation,
        kernel_dilation: kernel_dilation,
        feature_group_size: feature_groups,
        batch_group_size: batch_groups,
        input_permutation: input,
        kernel_permutation: kernel,
        output_permutation: output
      ]

      {turned([batch_groups * :rand.uniform(2), channels * feature_groups | dims], input),
       turned([filters, channels | places], kernel), opts}
    end

    # The shape that a permutation puts into this order.
    defp turned(dims, permutation),
      do:
        permutation |> Enum.zip(dims) |> Enum.sort() |> Enum.map(&elem(&1, 1)) |> List.to_tuple()

    # The terms of an element of the permuted result.
    defp at(terms, i, order, input_shape, kernel_shape, opts) do
      input = Enum.map(opts[:input_permutation], &elem(input_shape, &1))
      kernel = Enum.map(opts[:kernel_permutation], &elem(kernel_shape, &1))

      spatial =
        for {dim, size, {low, high}, stride, dilation, kernel_dilation} <-
              Enum.zip([
                Enum.drop(input, 2),
                Enum.drop(kernel, 2),
                opts[:padding],
                opts[:strides],
                opts[:input_dilation],
                opts[:kernel_dilation]
              ]) do
          div((dim - 1) * dilation + low + high - (size - 1) * kernel_dilation, stride) + 1
        end

      dims = [div(hd(input), opts[:batch_group_size]), hd(kernel) | spatial]

      canonical =
        List.to_tuple(dims)
        |> Nx.iota(backend: Nx.BinaryBackend)
        |> Nx.transpose(axes: inverse(order))
        |> Nx.to_flat_list()
        |> Enum.at(i)

      Enum.at(terms, canonical)
    end

    defp inverse(order), do: order |> Enum.with_index() |> Enum.sort() |> Enum.map(&elem(&1, 1))

    ## Comparing

    defp compare(context, op, tensors, call, opts, explain) do
      expected = attempt(fn -> call.(tensors) end)
      got = attempt(fn -> call.(Enum.map(tensors, &on_ferrox/1)) end)

      case {expected, got} do
        {_, {:raised, error}} ->
          fail(context, {op, opts}, tensors, "Ferrox raised #{inspect(error)}")

        {expected, {:ok, %{type: {_, bits} = type} = got}} ->
          assert got.data.__struct__ == backend()
          elements = chunks(got.data.state, bits)
          assert length(elements) == Nx.size(got.shape)

          direct =
            case expected do
              {:ok, expected} ->
                assert {got.type, got.shape, got.names} ==
                         {expected.type, expected.shape, expected.names}

                chunks(expected.data.state, bits)

              {:raised, _} ->
                List.duplicate(nil, length(elements))
            end

          for {got, direct, i} <- Enum.zip([elements, direct, 0..(length(elements) - 1)]) do
            why =
              cond do
                direct && Oracle.same?(got, direct, type) -> :equal
                why = explain.(i, type, got) -> why
              end

            if why == :equal or is_map_key(@kept, why),
              do: count(context, op, why, 1),
              else:
                fail(context, {op, opts}, tensors, """
                element #{i} in #{inspect(type)}: Ferrox #{inspect(Oracle.decode(got, type))}, \
                BinaryBackend #{direct && inspect(Oracle.decode(direct, type))}, #{inspect(why)}\
                """)
          end
      end
    end

    defp tensor(type, shape, only),
      do: Differences.tensor(type, shape, Generators.data(type, Nx.size(shape), only: only))

    # So that there are ties.
    defp few(%{type: {kind, _} = type, shape: shape}) do
      values = if kind == :u, do: [0, 1, 2], else: [0, 1, -1]

      data =
        for _ <- 1..Nx.size(shape), into: <<>>, do: Oracle.encode(Generators.pick(values), type)

      Differences.tensor(type, shape, data)
    end

    defp zero(%{type: type}), do: Differences.tensor(type, {}, Oracle.encode(0, type)).data
  end
end
