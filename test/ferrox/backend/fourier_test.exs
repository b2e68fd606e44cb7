if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.Backend.FourierTest do
    # Fourier transforms against Nx.BinaryBackend, which computes them in f64 too,
    # in another order. It loses real tensors of length one, and mixes axes up unless
    # the transform is along one of the last two; so it is given complex tensors with
    # that axis last.
    use ExUnit.Case, async: true

    alias Ferrox.{Differences, Generators}

    @moduletag :nx

    @cases String.to_integer(System.get_env("FERROX_CASES", "4"))

    @types [s: 2, s: 8, s: 32, s: 64, u: 4, u: 16, f: 8, f: 16, bf: 16, f: 32, f: 64] ++
             [c: 64, c: 128]

    setup do
      Nx.default_backend(Ferrox.Backend)
      :ok
    end

    # Integers up to the greatest of their type would drown the others.
    defp pair(type, shape) do
      data = Generators.data(type, Tuple.product(shape), only: :everyday)
      there = Differences.tensor(type, shape, data)
      {Nx.backend_copy(there, Ferrox.Backend), there}
    end

    defp compare(fun, pair), do: compare(fun, fun, pair)

    defp compare(fun, fun_there, {here, there}, single \\ 1.3e-7) do
      # With Nx.BinaryBackend as the default for what an operation creates.
      Nx.default_backend(Nx.BinaryBackend)
      expected = fun_there.(there)
      Nx.default_backend(Ferrox.Backend)
      got = fun.(here)
      assert %Ferrox.Backend{} = got.data
      assert {got.type, got.shape, got.names} == {expected.type, expected.shape, expected.names}
      expected = flat(expected)
      scale = expected |> Enum.map(&abs/1) |> Enum.max()
      bound = if got.type in [{:c, 128}, {:f, 64}], do: 1.0e-13, else: single

      noise = max(1.0e-12, bound / 100) * scale

      for {g, e} <- Enum.zip(flat(got), expected) do
        assert abs(g - e) <= bound * abs(e) + noise,
               "#{inspect(g)} instead of #{inspect(e)}"
      end

      length(expected)
    end

    defp flat(tensor) do
      tensor
      |> Nx.backend_copy(Nx.BinaryBackend)
      |> Nx.to_flat_list()
      |> Enum.flat_map(fn
        %{re: re, im: im} -> [re, im]
        x -> [x]
      end)
    end

    # With the axes last, in order, and complex.
    defp along(t, axes, fun) do
      order = Enum.to_list(0..(Nx.rank(t) - 1)) -- axes
      back = Enum.map(0..(Nx.rank(t) - 1), fn i -> Enum.find_index(order ++ axes, &(&1 == i)) end)

      t
      |> Nx.as_type(Nx.Type.to_complex(t.type))
      |> Nx.transpose(axes: order ++ axes)
      |> fun.()
      |> Nx.transpose(axes: back)
    end

    for op <- [:fft, :ifft] do
      test "#{op} of every type along every axis, cut and filled up" do
        for n <- 1..@cases, type <- @types do
          Generators.seed(n, {unquote(op), type})
          shape = Generators.pick([{7}, {1}, {8}, {3, 5}, {4, 2, 3}])
          axis = Generators.pick(Enum.to_list(0..(tuple_size(shape) - 1)))
          opts = Generators.pick([[], [length: 6], [length: :power_of_two], [length: 2]])

          compare(
            &apply(Nx, unquote(op), [&1, [axis: axis] ++ opts]),
            &along(&1, [axis], fn t -> apply(Nx, unquote(op), [t, opts]) end),
            pair(type, shape)
          )
        end
      end
    end

    test "lengths that are prime, and large" do
      for n <- [13, 37, 64, 97, 100, 1025] do
        Generators.seed(n, :lengths)
        compare(&Nx.fft/1, pair({:f, 32}, {n}))
        compare(&Nx.ifft/1, pair({:c, 128}, {n}))
      end
    end

    test "two axes" do
      for op <- [:fft2, :ifft2], type <- @types do
        Generators.seed(1, {op, type})
        # There the first of both transforms is rounded too.
        two = &apply(Nx, op, [&1])
        compare(two, two, pair(type, {3, 4}), 1.0e-5)

        compare(
          &apply(Nx, op, [&1, [axes: [0, 2], lengths: [2, 6]]]),
          &along(&1, [0, 2], fn t -> apply(Nx, op, [t, [lengths: [2, 6]]]) end),
          pair(type, {3, 2, 4}),
          1.0e-5
        )
      end
    end

    if function_exported?(Nx, :rfft, 2) do
      test "transforms of real numbers and back" do
        for n <- 2..9, type <- [s: 32, u: 8, f: 32, f: 64] do
          Generators.seed(n, {:rfft, type})
          compare(&Nx.rfft/1, pair(type, {2, n}))
          compare(&Nx.rfft(&1, length: 5, axis: 0), pair(type, {n, 3}))
        end

        for n <- 2..6, type <- [c: 64, c: 128, f: 32, s: 32] do
          Generators.seed(n, {:irfft, type})
          compare(&Nx.irfft(&1, length: 7), pair(type, {2, n}))
          compare(&Nx.irfft(&1, length: 4, axis: 0), pair(type, {n, 2}))
        end
      end
    end

    test "inside a defn, of vectorized tensors, and of those of another backend" do
      t = Nx.tensor([[1.0, 2.0, 0.0], [3.0, 1.0, 5.0]])
      expected = Nx.fft(t)
      assert Nx.to_binary(Nx.Defn.jit(&Nx.fft/1).(t)) == Nx.to_binary(expected)
      vectorized = t |> Nx.vectorize(:x) |> Nx.fft() |> Nx.devectorize(keep_names: false)
      assert Nx.to_binary(vectorized) == Nx.to_binary(expected)
      there = Nx.backend_copy(t, Nx.BinaryBackend)

      assert Nx.to_binary(Ferrox.Backend.fft(expected, there, axis: 1, length: 3, eps: 1.0e-10)) ==
               Nx.to_binary(expected)

      two = Nx.fft2(t)
      assert Nx.to_binary(Nx.Defn.jit(&Nx.fft2/1).(t)) == Nx.to_binary(two)
    end

    test "what is not finite stays so" do
      t = Nx.tensor([1.0, :nan, :infinity, 2.0])
      assert Enum.all?(Nx.to_flat_list(Nx.fft(t)), &(&1.re == :nan or &1.im == :nan))
    end
  end
end
