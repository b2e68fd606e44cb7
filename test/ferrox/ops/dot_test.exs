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
end
