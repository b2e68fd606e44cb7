defmodule Ferrox.Ops.DotTest do
  # Products of matrices in batches: every type, broadcasting and errors. More values are compared with NumPy's
  # in test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  # A matrix of a batch, whose axes of one are broadcast.
  defp matrix(%{shape: shape} = batch, place) do
    sizes = shape |> Tuple.to_list() |> Enum.drop(-2)

    place
    |> Enum.take(-length(sizes))
    |> Enum.zip_with(sizes, &min(&1, &2 - 1))
    |> Enum.reduce(batch, fn index, batch -> batch[index] end)
  end

  test "a batch has the products of its matrices, in every type" do
    for type <- real_types() ++ [:bool, {:c, 64}, {:c, 128}],
        {left, right, batch} <- [
          {{2, 3, 2, 4}, {2, 3, 4, 5}, [2, 3]},
          {{3, 2, 4}, {2, 1, 4, 5}, [2, 3]},
          {{2, 1, 2, 4}, {3, 4, 5}, [2, 3]},
          {{2, 4}, {2, 3, 4, 5}, [2, 3]},
          {{2, 3, 2, 4}, {4, 5}, [2, 3]}
        ] do
      [left, right] =
        for shape <- [left, right],
            do: shape |> Ferrox.iota() |> Ferrox.remainder(2) |> Ferrox.as_type(type)

      product = Ferrox.matmul(left, right)
      assert product.shape == List.to_tuple(batch ++ [2, 5])

      for i <- 0..1,
          j <- 0..2,
          do: assert(product[i][j] == Ferrox.dot(matrix(left, [i, j]), matrix(right, [i, j])))
    end
  end

  test "the type is that of dot/3 under every system" do
    a = Ferrox.iota({2, 3}, type: :u8)
    b = Ferrox.iota({3}, type: :f16)

    for system <- [:nx, :jax, :numpy] do
      product = Ferrox.matmul(a, b, promotion: system)
      assert product == Ferrox.dot(a, b, promotion: system)
      assert Ferrox.Promotion.with(system, fn -> Ferrox.matmul(a, b) end) == product
    end

    bools = Ferrox.tensor([true, false], type: :bool)

    raises("matmul is not defined for bool under system: :array_api", fn ->
      Ferrox.matmul(bools, bools, promotion: :array_api)
    end)
  end

  test "shapes that don't go together are refused by their axes" do
    raises(
      "matmul: axis 1 of shape {2, 3} and axis 0 of shape {2, 3}, which are summed over",
      fn ->
        Ferrox.matmul(Ferrox.iota({2, 3}), Ferrox.iota({2, 3}))
      end
    )

    raises("matmul: axis 0 of shape {3} and axis 1 of shape {3, 2, 4}", fn ->
      Ferrox.matmul(Ferrox.iota({3}), Ferrox.iota({3, 2, 4}))
    end)

    raises("{2, 2, 3} and {3, 3, 2}, {2} and {3}, don't broadcast together", fn ->
      Ferrox.matmul(Ferrox.iota({2, 2, 3}), Ferrox.iota({3, 3, 2}))
    end)

    raises("matmul expects vectors, matrices or batches of them, got shapes {} and {2}", fn ->
      Ferrox.matmul(2, Ferrox.iota({2}))
    end)

    raises("matmul: unknown option :axes", fn -> Ferrox.matmul(1, 2, axes: [0]) end)
  end

  test "cross/3 and kron/3 of every type" do
    for type <- real_types() ++ [:bool, {:c, 64}] do
      [a, b] = for data <- [[1, 1, 0], [1, 0, 1]], do: Ferrox.as_type(Ferrox.tensor(data), type)
      kron = Ferrox.kron(a, b)
      assert kron == Ferrox.flatten(Ferrox.outer(a, b))
      assert Ferrox.kron(Ferrox.new_axis(a, 0), b) == Ferrox.new_axis(kron, 0)
      # A cross product of products of zeros and ones, in what integers of the type are.
      expected =
        Ferrox.subtract(
          Ferrox.as_type(Ferrox.tensor([1, 0, 0]), type),
          Ferrox.as_type(Ferrox.tensor([0, 1, 1]), type)
        )

      assert Ferrox.cross(a, b) == expected
    end

    assert Ferrox.kron(2, 3) == Ferrox.tensor(6)
    assert Ferrox.kron(2, Ferrox.iota({2})) |> list() == [0, 2]
    big = Ferrox.tensor([2 ** 40, 3, 1], type: :s64)

    assert list(Ferrox.cross(big, Ferrox.tensor([1, 2 ** 20 + 1, 0]))) == [
             -(2 ** 20) - 1,
             1,
             2 ** 60 + 2 ** 40 - 3
           ]

    raises("cross: vectors have three elements, got axis 0 of shape {2, 3}", fn ->
      Ferrox.cross(Ferrox.iota({2, 3}), Ferrox.iota({2, 3}), axis: 0)
    end)

    raises("cross: axis -1 is out of range for shape {}", fn -> Ferrox.cross(1, 2) end)

    raises("cross: shapes {2, 3} of s32 and {5, 3} of s32", fn ->
      Ferrox.cross(Ferrox.iota({2, 3}), Ferrox.iota({5, 3}))
    end)

    bools = Ferrox.tensor([true, false, true], type: :bool)

    raises("cross is not defined for bool", fn ->
      Ferrox.cross(bools, bools, promotion: :numpy)
    end)

    raises("kron is not defined for bool", fn ->
      Ferrox.kron(bools, bools, promotion: :array_api)
    end)

    raises("kron: unknown option :axis", fn -> Ferrox.kron(1, 2, axis: 0) end)
  end
end
