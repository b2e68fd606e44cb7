defmodule Ferrox.Ops.WindowTest do
  # Windows and convolutions: every type, edges and errors. Values are compared with NumPy's in
  # test/ferrox/numpy_test.exs, and with Nx's in test/ferrox/ops/nx_test.exs.
  use Ferrox.DirectCase, async: true

  alias Ferrox.Complex

  describe "windows" do
    test "are of every type" do
      for type <- real_types() do
        t = Ferrox.as_type(Ferrox.tensor([1, 0, 1, 0, 0]), type)

        for {name, expected} <- [
              window_sum: [1, 1, 1, 0],
              window_product: [0, 0, 0, 0],
              window_max: [1, 1, 1, 0],
              window_min: [0, 0, 0, 0]
            ] do
          result = apply(Ferrox, name, [t, {2}])

          assert {result.type, list(Ferrox.as_type(result, :s32))} == {type, expected},
                 "#{name} #{inspect(type)}"
        end

        assert list(Ferrox.window_mean(t, {2})) == [0.5, 0.5, 0.5, 0.0]
        windows = Ferrox.sliding_window_view(t, {3})
        assert windows == Ferrox.as_type(Ferrox.tensor([[1, 0, 1], [0, 1, 0], [1, 0, 0]]), type)
      end
    end

    test "of bools and of complex numbers" do
      t = Ferrox.tensor([true, false, false], type: :bool)
      assert Ferrox.window_max(t, {2}) == Ferrox.tensor([true, false], type: :bool)
      assert Ferrox.window_sum(t, {2}) == Ferrox.tensor([1, 0], type: :u8)
      assert Ferrox.window_sum(t, {2}, promotion: :numpy) == Ferrox.tensor([1, 0], type: :s64)
      assert Ferrox.sliding_window_view(t, {2}).type == :bool
      z = Ferrox.tensor([Complex.new(1, 2), Complex.new(3, -1)])
      assert list(Ferrox.window_mean(z, {2})) == [Complex.new(2.0, 0.5)]
      raises("window_max", fn -> Ferrox.window_max(z, {2}) end)
    end

    test "of integers at their limits, whose means don't wrap around" do
      last = 18_446_744_073_709_551_615
      t = Ferrox.tensor([last, last], type: :u64)
      assert list(Ferrox.window_sum(t, {2})) == [last - 1]
      assert list(Ferrox.window_max(t, {2}, padding: [{1, 1}])) == [last, last, last]
      assert list(Ferrox.window_mean(t, {2}, promotion: :numpy)) == [last * 1.0]

      assert list(Ferrox.window_mean(Ferrox.tensor([255, 255, 254], type: :u8), {3})) == [
               254.6666717529297
             ]

      low = Ferrox.tensor([-128, -128], type: :s8)
      assert list(Ferrox.window_min(low, {1}, padding: [{1, 0}])) == [127, -128, -128]
    end

    test "propagate NaN to the windows that have it" do
      t = Ferrox.tensor([1.0, :nan, 2.0, 3.0])
      assert list(Ferrox.window_max(t, {2})) == [:nan, :nan, 3.0]
      assert list(Ferrox.window_sum(t, {2})) == [:nan, :nan, 5.0]
    end

    test "of a scalar, and of the whole tensor" do
      assert Ferrox.window_sum(5, {}) == Ferrox.tensor(5)
      assert Ferrox.sliding_window_view(5, {}) == Ferrox.tensor(5)
      t = Ferrox.iota({2, 3})
      assert Ferrox.window_sum(t, {2, 3}) == Ferrox.tensor([[15]])
      assert Ferrox.sliding_window_view(t, {2, 3}) == Ferrox.reshape(t, {1, 1, 2, 3})

      assert Ferrox.sliding_window_view(t, {1, 2}, strides: [1, 5], window_dilations: 2).shape ==
               {2, 1, 1, 2}
    end

    test "that can't be are refused" do
      t = Ferrox.iota({3, 3})

      raises("window_sum: a window has a size for each axis of shape {3, 3}, got: {2}", fn ->
        Ferrox.window_sum(t, {2})
      end)

      raises("window_sum expects a shape, a tuple of positive integers, got: 2", fn ->
        Ferrox.window_sum(t, 2)
      end)

      raises("window_max: :strides must be a positive integer or a list of 2", fn ->
        Ferrox.window_max(t, {1, 1}, strides: [1])
      end)

      raises("window_max: :window_dilations must be a positive integer", fn ->
        Ferrox.window_max(t, {1, 1}, window_dilations: 0)
      end)

      raises("window_mean: :padding must be :valid, :same or a list of {low, high}", fn ->
        Ferrox.window_mean(t, {1, 1}, padding: 1)
      end)

      raises("window_min: a window of shape {1, 1}, which is 1 long", fn ->
        Ferrox.window_min(t, {1, 1}, padding: [{-2, -1}, {0, 0}])
      end)

      raises("which is 5 long along an axis with its dilation, does not fit into 3", fn ->
        Ferrox.window_min(t, {3, 1}, window_dilations: 2)
      end)

      raises("sliding_window_view: unknown option :padding", fn ->
        Ferrox.sliding_window_view(t, {1, 1}, padding: :same)
      end)

      raises("sliding_window_view: a window of shape {4, 1}", fn ->
        Ferrox.sliding_window_view(t, {4, 1})
      end)

      for {key, value} <- [
            strides: 2 ** 70,
            window_dilations: 2 ** 70,
            padding: [{2 ** 70, -(2 ** 70)}, {0, 0}]
          ] do
        raises("window_sum: #{inspect(key)} must be", fn ->
          Ferrox.window_sum(t, {1, 1}, [{key, value}])
        end)
      end

      assert Ferrox.window_sum(t, {1, 1}, strides: 2 ** 62) == Ferrox.tensor([[0]])

      raises("does not fit into memory", fn ->
        Ferrox.window_sum(t, {1, 1}, padding: [{2 ** 62, 0}, {0, 0}])
      end)
    end
  end

  describe "convolutions" do
    test "of every type" do
      for type <- real_types() do
        [a, b] = for data <- [[1, 0, 1], [0, 1]], do: Ferrox.as_type(Ferrox.tensor(data), type)
        result = Ferrox.convolve(a, b)
        assert {result.type, list(Ferrox.as_type(result, :s32))} == {type, [0, 1, 0, 1]}
        assert list(Ferrox.as_type(Ferrox.correlate(a, b), :s32)) == [0, 1]
        conv = Ferrox.conv(Ferrox.reshape(a, {1, 1, 3}), Ferrox.reshape(b, {1, 1, 2}))
        assert {conv.shape, list(conv)} == {{1, 1, 2}, [0.0, 1.0]}
      end
    end

    test "of integers wrap around" do
      t = Ferrox.tensor([200, 100], type: :u8)

      assert Ferrox.convolve(t, Ferrox.tensor([2, 1], type: :u8)) ==
               Ferrox.tensor([144, 144, 100], type: :u8)

      last = Ferrox.tensor([18_446_744_073_709_551_615], type: :u64)
      assert Ferrox.convolve(last, last) == Ferrox.tensor([1], type: :u64)
    end

    test "of many trues are true" do
      t = Ferrox.full({256}, 1, type: :bool)
      assert Ferrox.correlate(t, t, promotion: :numpy) == Ferrox.tensor([true], type: :bool)
    end

    test "that can't be are refused" do
      v = Ferrox.iota({3})

      raises("convolve expects two vectors, got a tensor of shape {3, 1}", fn ->
        Ferrox.convolve(v, Ferrox.iota({3, 1}))
      end)

      raises("correlate expects two vectors, got a tensor of shape {}", fn ->
        Ferrox.correlate(v, 1)
      end)

      raises("convolve: :mode must be :full, :same or :valid, got: :all", fn ->
        Ferrox.convolve(v, v, mode: :all)
      end)

      {t, k} = {Ferrox.iota({1, 2, 4, 4}), Ferrox.iota({3, 2, 2, 2})}
      raises("conv expects {batch, channels, ...} and a kernel", fn -> Ferrox.conv(v, v) end)
      raises("conv expects {batch, channels, ...}", fn -> Ferrox.conv(t, v) end)

      raises(
        "conv: shapes {1, 2, 4, 4} and {3, 1, 2, 2} have channels that don't go together",
        fn -> Ferrox.conv(t, Ferrox.iota({3, 1, 2, 2})) end
      )

      raises("groups don't divide", fn -> Ferrox.conv(t, k, feature_group_size: 2) end)
      raises("groups don't divide", fn -> Ferrox.conv(t, k, batch_group_size: 3) end)

      raises("conv: :feature_group_size must be a positive integer, got: 0", fn ->
        Ferrox.conv(t, k, feature_group_size: 0)
      end)

      raises("conv: :strides must be a positive integer or a list of 2", fn ->
        Ferrox.conv(t, k, strides: [1, 1, 1])
      end)

      raises("conv: a kernel of shape {3, 2, 2, 2}, which is 5 long", fn ->
        Ferrox.conv(t, k, kernel_dilation: 4)
      end)

      raises("conv: :input_permutation must name each of 4 axes once, got: [0]", fn ->
        Ferrox.conv(t, k, input_permutation: [0])
      end)

      raises("conv: unknown option :stride", fn -> Ferrox.conv(t, k, stride: 1) end)
    end
  end
end
