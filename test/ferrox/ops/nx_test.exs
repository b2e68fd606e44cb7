if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.Ops.NxTest do
    # The functions that the direct API shares with Nx, with the same arguments on Nx.BinaryBackend: of small
    # integers, whose results have the same bits.
    use ExUnit.Case, async: true

    @moduletag :nx

    setup do
      Nx.default_backend(Nx.BinaryBackend)
      :ok
    end

    @types ~w(u8 s16 s32 u64 f32 f64 bf16)a

    @calls [
      fill: [5],
      fill: [300],
      fill: [-1.5],
      fill: [-1, [type: :u8]],
      fill: [{:tensor, [7, 8, 9, 1]}],
      take_diagonal: [[offset: 1]],
      sort: [[axis: 1]],
      sort: [[axis: 0, direction: :desc]],
      argsort: [[axis: 1, stable: true]],
      argsort: [[axis: 0, direction: :desc, stable: true, type: :s64]],
      top_k: [[k: 2]],
      median: [[axis: 0]],
      median: [[axis: 1, keep_axis: true]],
      mode: [],
      mode: [[axis: 0]],
      mode: [[axis: 1, keep_axis: true]],
      cumulative_sum: [[axis: 1]],
      cumulative_sum: [[axis: 0, reverse: true]],
      cumulative_product: [[axis: 1]],
      cumulative_min: [[axis: 1]],
      cumulative_max: [[axis: 0]],
      diff: [[order: 2]],
      diff: [[axis: 0]],
      flatten: [],
      reverse: [[axes: [1]]],
      tile: [[2, 1, 3]],
      pad: [0, [{1, 0, 1}, {-1, 2, 0}]],
      reflect: [[padding_config: [{2, 1}, {0, 5}]]],
      split: [1, [axis: 1]],
      split: [0.5],
      slice_along_axis: [1, 2, [axis: 1]],
      put_slice: [[1, 1], {:tensor, [[7, 8]]}],
      take: [{:tensor, [2, 0, 2]}, [axis: 1]],
      take_along_axis: [{:tensor, [[0, 2, 1, 0]]}, [axis: 0]],
      gather: [{:tensor, [[0, 1], [2, 3]]}],
      indexed_add: [{:tensor, [[0, 1], [0, 1]]}, {:tensor, [5, 6]}],
      indexed_put: [{:tensor, [[2]]}, {:tensor, [[9, 8, 7, 6]]}],
      window_sum: [{2, 2}],
      window_sum: [{2, 3}, [padding: :same, strides: [2, 1]]],
      window_product: [{1, 2}, [padding: [{1, 0}, {0, 2}]]],
      window_max: [{2, 2}, [window_dilations: [1, 2]]],
      window_min: [{2, 2}, [padding: :same, window_dilations: 2, strides: 2]],
      window_mean: [{2, 2}, [padding: :same]]
    ]

    for {{name, arguments}, i} <- Enum.with_index(@calls) do
      test "#{i}: #{name} #{inspect(arguments)}" do
        for type <- @types, data <- [[[3, 1, 2, 0], [5, 0, 4, 4], [2, 2, 9, 1]]] do
          ours =
            apply(Ferrox, unquote(name), [
              Ferrox.tensor(data, type: type)
              | arguments(Ferrox, unquote(Macro.escape(arguments)))
            ])

          theirs =
            apply(Nx, unquote(name), [
              Nx.tensor(data, type: type) | arguments(Nx, unquote(Macro.escape(arguments)))
            ])

          assert list(ours) == Enum.map(list(theirs), &Ferrox.from_nx/1), "#{type}"
        end
      end
    end

    @convolutions [
      [],
      [padding: :same, strides: 2],
      [padding: [{1, 0}, {-1, 2}], strides: [1, 2]],
      [input_dilation: 2, kernel_dilation: [2, 1]],
      [feature_group_size: 2],
      [batch_group_size: 2],
      [input_permutation: [0, 3, 1, 2], padding: :same],
      [kernel_permutation: [1, 0, 2, 3]],
      [output_permutation: [0, 3, 1, 2], strides: [1, 2]]
    ]

    for {opts, i} <- Enum.with_index(@convolutions) do
      test "#{i}: conv #{inspect(opts)}" do
        opts = unquote(opts)
        shape = if opts[:input_permutation], do: {2, 5, 6, 4}, else: {2, 4, 5, 6}
        channels = if opts[:feature_group_size], do: 2, else: 4
        kernel = if opts[:kernel_permutation], do: {channels, 6, 3, 2}, else: {6, channels, 3, 2}

        for {type, kernel_type} <- [{:f32, :f32}, {:f64, :f32}, {:u8, :s16}, {:bf16, :u8}] do
          [ours, theirs] =
            for module <- [Ferrox, Nx] do
              data = [{shape, 7, type}, {kernel, 3, kernel_type}]

              operands =
                for {shape, period, type} <- data do
                  shape
                  |> module.iota(type: :s32)
                  |> module.remainder(period)
                  |> module.as_type(type)
                end

              apply(module, :conv, operands ++ [opts])
            end

          assert ours == Ferrox.from_nx(theirs), "#{type} #{kernel_type}"
        end
      end
    end

    # Nx 0.9 has none.
    if function_exported?(Nx, :pad_outer, 3) do
      test "pad_outer gives the same" do
        for type <- @types,
            kind <- [:cyclic, :mirror, :reflect, :replicate, 7],
            padding <- [[{2, 1}, {0, 0}], [{0, 4}, {5, 2}]] do
          [ours, theirs] =
            for module <- [Ferrox, Nx],
                do: {2, 3} |> module.iota(type: type) |> module.pad_outer(kind, padding)

          assert ours == Ferrox.from_nx(theirs)
        end
      end
    end

    test "logsumexp is near Nx's" do
      # Nx subtracts the largest element in the type of the tensor, which wraps around without a sign.
      for type <- @types -- [:u8, :u64, :bf16],
          opts <- [
            [],
            [axes: [1]],
            [axes: [0], keep_axes: true],
            [axes: [1], exp_scaling_factor: 2]
          ] do
        [ours, theirs] =
          for module <- [Ferrox, Nx],
              do: {2, 3} |> module.iota(type: type) |> module.logsumexp(opts)

        theirs = Ferrox.from_nx(theirs)
        assert {ours.type, ours.shape} == {theirs.type, theirs.shape}
        assert Ferrox.to_number(Ferrox.all_close(ours, theirs, rtol: 1.0e-6)) == 1
      end
    end

    test "matrix_rank gives the same" do
      for matrix <- [[[1, 2], [3, 4]], [[1, 1, 1], [2, 2, 2], [8, 9, 10], [-2, 1, 5]]] do
        theirs = Nx.LinAlg.matrix_rank(Nx.tensor(matrix, backend: Ferrox.Backend))
        assert Ferrox.LinAlg.matrix_rank(Ferrox.tensor(matrix)) == Ferrox.from_nx(theirs)
      end
    end

    test "to_batched gives the same parts" do
      for type <- @types, {size, opts} <- [{2, []}, {3, []}, {2, [leftover: :discard]}] do
        [ours, theirs] =
          for module <- [Ferrox, Nx],
              do:
                {3, 2}
                |> module.iota(type: type)
                |> module.to_batched(size, opts)
                |> Enum.to_list()

        assert ours == Enum.map(theirs, &Ferrox.from_nx/1)
      end
    end

    defp arguments(module, arguments) do
      for argument <- arguments do
        case argument do
          {:tensor, data} -> module.tensor(data, type: :u8)
          other -> other
        end
      end
    end

    defp list(results) when is_tuple(results), do: Tuple.to_list(results)
    defp list(result), do: [result]
  end
end
