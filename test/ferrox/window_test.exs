defmodule Ferrox.WindowTest do
  # Windows and convolutions of Ferrox.Backend: what is refused, and where there is
  # an Nx, gradients through them.
  use ExUnit.Case, async: true

  import Bitwise

  alias Ferrox.Backend

  defp tensor(type, shape, numbers) do
    data = for x <- numbers, into: <<>>, do: Ferrox.Oracle.encode(x, type)
    names = List.duplicate(nil, tuple_size(shape))
    %{type: type, shape: shape, names: names, data: %Backend{state: data}}
  end

  defp out(type, shape), do: %{type: type, shape: shape, names: [], data: nil}

  test "a NaN that arithmetic makes has the bits that Nx writes" do
    infinite = tensor({:f, 32}, {2}, [:infinity, :neg_infinity])
    opts = [padding: [{0, 0}], strides: [1], window_dilations: [1]]
    sum = Backend.window_sum(out({:f, 32}, {1}), infinite, {2}, opts)
    assert sum.data.state == Ferrox.Type.nan_binary({:f, 32})

    zero = tensor({:f, 64}, {2}, [:infinity, 0])
    product = Backend.window_product(out({:f, 64}, {1}), zero, {2}, opts)
    assert product.data.state == Ferrox.Type.nan_binary({:f, 64})
  end

  describe "what is refused, without Nx" do
    @good [padding: [{0, 0}, {0, 0}], strides: [1, 1], window_dilations: [1, 1]]

    test "windows" do
      t = tensor({:s, 32}, {2, 3}, 1..6)
      sum = &Backend.window_sum(out({:s, 32}, &1), t, &2, Keyword.merge(@good, &3))
      assert <<12::32-native, 16::32-native>> = sum.({1, 2}, {2, 2}, []).data.state

      assert_raise ArgumentError,
                   "window_sum: window {3, 2} is larger than the padded tensor of shape {2, 3} in axis 0",
                   fn -> sum.({1, 2}, {3, 2}, []) end

      for {shape, window, opts} <- [
            {{1, 2}, {2, 2}, window_dilations: [2, 1]},
            {{1, 2}, {2, 2}, padding: [{-1, 0}, {0, 0}]},
            {{1, 2}, {2, 2}, strides: [0, 1]},
            {{1, 2}, {2, 2}, strides: [-1, 1]},
            {{1, 2}, {2, 2}, strides: [1]},
            {{1, 2}, {2, 2}, padding: [{0, 1 <<< 70}, {0, 0}]},
            {{1, 2}, {2, 2}, padding: [{0, 1 <<< 62}, {0, 0}]},
            {{1, 2}, {0, 2}, []},
            {{1, 2}, {2}, []},
            {{0, 2}, {3, 2}, []},
            {{2, 2}, {2, 2}, []},
            {{1 <<< 40, 1 <<< 40}, {2, 2}, []}
          ] do
        assert_raise ArgumentError, fn -> sum.(shape, window, opts) end
      end

      c = tensor({:c, 64}, {2, 3}, 1..6)

      assert_raise ArgumentError, ~r/window_max is not defined for c64/, fn ->
        Backend.window_max(out({:c, 64}, {1, 2}), c, {2, 2}, @good)
      end
    end

    test "results that memory can't hold, and windows that would take forever" do
      t = tensor({:f, 32}, {2}, [1, 2])
      far = 1 <<< 58

      assert_raise ArgumentError, fn ->
        Backend.window_sum(out({:f, 32}, {far}), t, {2},
          padding: [{far, -1}],
          strides: [1],
          window_dilations: [1]
        )
      end

      opts = [padding: [{far, far}], strides: [far], window_dilations: [1]]
      sum = Backend.window_sum(out({:f, 32}, {2}), t, {far}, opts)
      assert sum.data.state == <<0.0::32-float-native, 3.0::32-float-native>>
    end

    test "window scatters" do
      t = tensor({:s, 32}, {4}, 1..4)
      source = tensor({:s, 32}, {2}, [10, 20])
      zero = tensor({:s, 32}, {}, [0])
      opts = [padding: [{0, 0}], strides: [2]]
      scatter = &Backend.window_scatter_max(out({:s, 32}, {4}), t, &1, &2, &3, opts)

      assert scatter.(source, zero, {2}).data.state ==
               tensor({:s, 32}, {4}, [0, 10, 0, 20]).data.state

      for {source, init, window} <- [
            {source, zero, {5}},
            {source, zero, {1, 1}},
            {t, zero, {2}},
            {source, source, {2}},
            {tensor({:f, 32}, {2}, [1, 2]), zero, {2}}
          ] do
        assert_raise ArgumentError, fn -> scatter.(source, init, window) end
      end
    end

    test "convolutions" do
      input = tensor({:f, 32}, {1, 2, 4}, 1..8)
      kernel = tensor({:f, 32}, {1, 2, 2}, [1, 0, 0, 1])

      good = [
        strides: [1],
        padding: [{0, 0}],
        input_dilation: [1],
        kernel_dilation: [1],
        feature_group_size: 1,
        batch_group_size: 1,
        input_permutation: [0, 1, 2],
        kernel_permutation: [0, 1, 2],
        output_permutation: [0, 1, 2]
      ]

      conv = &Backend.conv(out({:f, 32}, &1), input, kernel, Keyword.merge(good, &2))
      assert conv.({1, 1, 3}, []).data.state == tensor({:f, 32}, {3}, [7, 9, 11]).data.state

      for {shape, opts} <- [
            {{1, 1, 4}, []},
            {{1, 1, 1}, kernel_dilation: [4]},
            {{1, 1, 3}, strides: [0]},
            {{1, 1, 3}, input_dilation: [0]},
            {{1, 1, 3}, padding: [{-3, 0}]},
            {{1, 1, 3}, padding: []},
            {{1, 1, 3}, batch_group_size: 2},
            {{1, 1, 3}, feature_group_size: 0},
            {{1, 1, 3}, input_permutation: [0, 1, 1]},
            {{1, 1, 3}, input_permutation: [0, 1]},
            {{1, 1, 3}, output_permutation: [2, 1, 3]}
          ] do
        assert_raise ArgumentError, fn -> conv.(shape, opts) end
      end
    end
  end

  if Code.ensure_loaded?(Nx) do
    describe "gradients" do
      @describetag :nx

      # Gradients of sums pad, and those of scatters gather.
      missing =
        for {name, arity} <- [pad: 4, gather: 4],
            error =
              (try do
                 apply(Backend, name, List.duplicate(nil, arity))
               rescue
                 error in RuntimeError -> Exception.message(error)
                 _ -> nil
               end),
            do: error

      @missing List.first(missing) || false

      # BinaryBackend adds up what it scatters in f32.
      defp same_gradient(shapes, type \\ :f64, fun) do
        tensors =
          for {shape, i} <- Enum.with_index(shapes) do
            # Without ties, and with little to round.
            size = Tuple.product(shape)
            numbers = for k <- 0..(size - 1), do: rem(k * (7 + 4 * i) + 3, size) / 4 - i
            Nx.tensor(numbers, type: type, backend: Nx.BinaryBackend) |> Nx.reshape(shape)
          end

        wrt = fn tensors ->
          Nx.Defn.grad(List.to_tuple(tensors), fn tensors ->
            tensors |> Tuple.to_list() |> fun.() |> Nx.multiply(0.5) |> Nx.sin() |> Nx.sum()
          end)
        end

        expected = Nx.with_default_backend(Nx.BinaryBackend, fn -> wrt.(tensors) end)

        got =
          Nx.with_default_backend(Backend, fn ->
            wrt.(Enum.map(tensors, &Nx.backend_copy(&1, Backend)))
          end)

        for {expected, got} <- Enum.zip(Tuple.to_list(expected), Tuple.to_list(got)) do
          assert %Backend{} = got.data
          assert got.shape == expected.shape

          for {a, b} <- Enum.zip(Nx.to_flat_list(expected), Nx.to_flat_list(got)),
              do: assert_in_delta(a, b, 1.0e-6)
        end
      end

      # 0.9 can't scatter f64, and not rightly where there is padding.
      @padded if Code.ensure_loaded?(Nx.Floating), do: [[padding: [{1, 0}, {0, 1}]]], else: []

      test "through window_max and window_min" do
        for op <- [:window_max, :window_min], opts <- [[], [strides: [2, 1]] | @padded] do
          same_gradient([{5, 4}], :f32, fn [t] -> apply(Nx, op, [t, {2, 2}, opts]) end)
        end
      end

      @tag skip: @missing
      test "through window_sum and window_mean" do
        for opts <- [[], [strides: [2, 1]], [padding: :same], [window_dilations: [2, 1]]] do
          same_gradient([{5, 4}], fn [t] -> Nx.window_sum(t, {2, 2}, opts) end)
          same_gradient([{5, 4}], fn [t] -> Nx.window_mean(t, {2, 2}, opts) end)
        end
      end

      @tag skip: @missing
      test "through window scatters" do
        same_gradient([{4, 4}, {2, 2}], :f32, fn [t, source] ->
          Nx.window_scatter_max(t, source, 0, {2, 2}, strides: [2, 2])
        end)
      end

      test "through convolutions" do
        for {input, kernel, opts} <- [
              {{2, 3, 5}, {4, 3, 2}, []},
              {{2, 3, 5, 4}, {4, 3, 2, 2}, [padding: :same]},
              {{2, 3, 5, 4}, {4, 3, 2, 2}, [strides: [2, 1], padding: [{1, 1}, {0, 1}]]},
              {{2, 3, 5, 4}, {4, 3, 2, 2}, [kernel_dilation: [2, 1], input_dilation: [1, 2]]},
              {{2, 4, 5, 4}, {4, 1, 2, 2}, [feature_group_size: 4]},
              {{2, 4, 5, 4}, {6, 2, 2, 2}, [feature_group_size: 2, strides: [2, 2]]},
              {{4, 3, 5, 4}, {4, 3, 2, 2}, [batch_group_size: 2]},
              {{2, 5, 4, 3}, {2, 2, 3, 4},
               [
                 input_permutation: [0, 3, 1, 2],
                 kernel_permutation: [3, 2, 0, 1],
                 output_permutation: [0, 3, 1, 2]
               ]}
            ] do
          same_gradient([input, kernel], fn [t, k] -> Nx.conv(t, k, opts) end)
        end
      end
    end
  end
end
