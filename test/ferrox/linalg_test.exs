defmodule Ferrox.LinAlgTest do
  # What the blocks of linear algebra, and the callbacks that they are up to Nx 0.9,
  # make of matrices that they can't do much with. No Nx is needed.
  use ExUnit.Case, async: true

  alias Ferrox.{Backend, Native}

  @moduletag timeout: 20_000
  @types [f: 32, f: 64, c: 64, c: 128, bf: 16]
  @factors [:cholesky, :determinant, :lu, :qr, :eigh, :svd]

  defp tensor(type, shape, numbers) do
    wide = if match?({:c, _}, type), do: {:c, 128}, else: {:f, 64}

    data =
      for number <- numbers, into: <<>> do
        real = float(number)
        if wide == {:c, 128}, do: <<real::binary, 0.0::float-64-native>>, else: real
      end

    data = Native.as_type(type, {wide, {length(numbers)}, data})
    %{template(type, shape) | data: %Backend{state: data}}
  end

  defp float(:nan), do: <<0x7FF8000000000000::64-native>>
  defp float(:infinity), do: <<0x7FF0000000000000::64-native>>
  defp float(:neg_infinity), do: <<0xFFF0000000000000::64-native>>
  defp float(number), do: <<number * 1.0::float-64-native>>

  defp template(type, shape),
    do: %{type: type, shape: shape, names: List.duplicate(nil, tuple_size(shape)), data: nil}

  # Whether each element is a NaN, in whole or in part.
  defp nan(%{type: {kind, bits} = type, shape: shape, data: %{state: state}}) do
    count = Tuple.product(shape)
    wide = if kind == :c, do: {:c, 128}, else: {:f, 64}
    data = if type == wide, do: state, else: Native.as_type(wide, {type, {count}, state})
    assert bit_size(state) == count * bits

    for <<x::64-native <- data>> do
      Bitwise.band(x, 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000
    end
  end

  # Both ways of calling a factorization, with what they give, as a list.
  defp factors(op, matrix, full? \\ true) do
    %{type: type, shape: shape} = matrix
    {batch, [m, n]} = shape |> Tuple.to_list() |> Enum.split(-2)
    k = min(m, n)
    {columns, rows} = if full?, do: {m, n}, else: {k, k}
    out = &template(type, List.to_tuple(batch ++ &1))

    {outs, module, opts} =
      case op do
        :cholesky -> {out.([n, n]), Cholesky, []}
        :determinant -> {out.([]), Determinant, []}
        :lu -> {{out.([n, n]), out.([n, n]), out.([n, n])}, LU, [eps: 1.0e-10]}
        :qr -> {{out.([m, columns]), out.([columns, n])}, QR, [eps: 1.0e-10]}
        :eigh -> {{out.([n]), out.([n, n])}, Eigh, [eps: 1.0e-4]}
        :svd -> {{out.([m, columns]), out.([k]), out.([rows, n])}, SVD, [full_matrices?: full?]}
      end

    block = Map.new([{:__struct__, Module.concat(Nx.Block.LinAlg, module)} | opts])
    former = if op in [:cholesky, :determinant], do: [], else: [opts]

    for call <- [
          fn -> Backend.block(block, outs, [matrix], nil) end,
          fn -> apply(Backend, op, [outs, matrix | former]) end
        ] do
      results = call.()
      results = if is_struct(results) or is_map(results), do: {results}, else: results
      outs = if is_map(outs), do: {outs}, else: outs
      results = Tuple.to_list(results)
      assert Enum.map(results, & &1.shape) == Enum.map(Tuple.to_list(outs), & &1.shape)
      results
    end
  end

  defp real?(type), do: not match?({:c, _}, type)
  defp takes?(op, type), do: op != :svd or real?(type)

  for op <- @factors do
    describe "#{op}" do
      test "of what isn't finite ends, with NaN" do
        for type <- @types,
            takes?(unquote(op), type),
            n <- [1, 2, 3, 4, 7, 40],
            bad <- [:nan, :infinity, :neg_infinity],
            place <- [0, n * n - 1] do
          numbers = for i <- 0..(n * n - 1), do: if(i == place, do: bad, else: rem(i * 7, 5))
          matrix = tensor(type, {n, n}, numbers)

          for results <- factors(unquote(op), matrix), bad == :nan or n > 1 do
            # U is where rows and columns of A are, and P and L may be finite.
            cond do
              unquote(op) in [:qr, :eigh, :svd] ->
                for result <- results, do: assert(Enum.any?(nan(result)))

              bad == :nan ->
                assert Enum.any?(Enum.flat_map(results, &nan/1))

              true ->
                for result <- results, do: nan(result)
            end
          end
        end
      end

      test "of zeros, ones and matrices of a single element" do
        for type <- @types,
            takes?(unquote(op), type),
            n <- [1, 2, 3, 4, 9],
            element <- [0, 1, -2] do
          matrix = tensor(type, {2, n, n}, List.duplicate(element, 2 * n * n))

          for results <- factors(unquote(op), matrix), result <- results do
            singular? = unquote(op) == :cholesky
            assert singular? or not Enum.any?(nan(result))
          end
        end
      end

      # What has elements has as many as its shape says, and Nx has no tensors without.
      test "of no matrices, and of matrices without rows" do
        for type <- @types, takes?(unquote(op), type), shape <- [{0, 3, 3}, {2, 0, 0}, {0, 0}] do
          try do
            for results <- factors(unquote(op), tensor(type, shape, [])), result <- results do
              assert Tuple.product(result.shape) > 0

              assert byte_size(result.data.state) * 8 ==
                       Tuple.product(result.shape) * elem(type, 1)
            end
          rescue
            error in ArgumentError ->
              assert error.message =~ "has no elements, and Nx has no empty tensors"
          end
        end
      end
    end
  end

  for op <- [:qr, :svd] do
    test "#{op} of matrices that are higher than wide, or wider than high" do
      for type <- @types,
          takes?(unquote(op), type),
          {m, n} <- [{1, 5}, {5, 1}, {2, 3}, {3, 2}, {4, 3}, {3, 4}, {9, 4}, {4, 9}],
          full? <- [true, false],
          fill <- [&(&1 * &1), fn _ -> 0 end, fn i -> if(i == 3, do: :nan, else: i) end] do
        numbers = for i <- 0..(m * n - 1), do: fill.(rem(i, 11))

        for results <- factors(unquote(op), tensor(type, {m, n}, numbers), full?),
            result <- results,
            do: assert(Enum.any?(nan(result)) == :nan in numbers)
      end
    end
  end

  test "singular systems are refused, and those of NaN give it" do
    for type <- @types, n <- [1, 2, 3, 9] do
      right = tensor(type, {n}, List.duplicate(1, n))
      zeros = tensor(type, {n, n}, List.duplicate(0, n * n))
      bad = tensor(type, {n, n}, List.duplicate(:nan, n * n))
      block = %{__struct__: Nx.Block.LinAlg.Solve}
      opts = [lower: true, left_side: true, transform_a: :none]

      for call <- [
            &Backend.solve(right, &1, right),
            &Backend.block(block, right, [&1, right], nil),
            &Backend.triangular_solve(right, &1, right, opts)
          ] do
        assert_raise ArgumentError, "can't solve for singular matrix", fn -> call.(zeros) end
        assert Enum.any?(nan(call.(bad)))
      end
    end
  end

  test "complex matrices have no singular values here, as in Nx" do
    assert_raise ArgumentError, ~r/svd/, fn ->
      factors(:svd, tensor({:c, 64}, {2, 2}, [1, 0, 0, 1]))
    end
  end
end
