if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.Backend.CornersTest do
    # Where the usual formula of a function loses digits, leaves the range on the way, or picks
    # the wrong side of a branch cut: the right values, through Nx. Whole ranges are tried by
    # the tests of the core; these are values that users of array libraries have reported.
    use ExUnit.Case, async: false

    @moduletag :nx

    setup do
      Nx.default_backend(Ferrox.Backend)
      :ok
    end

    defp flat(tensor), do: Nx.to_flat_list(tensor)
    defp pairs(tensor), do: Enum.zip(flat(Nx.real(tensor)), flat(Nx.imag(tensor)))
    defp complex(pairs, type), do: pairs |> Enum.map(&number/1) |> Nx.tensor(type: type)
    defp number({re, im}), do: Complex.new(re, im)

    # From raw bits, so that zeros keep their sign.
    defp raw(integers, {_, bits} = type),
      do: for(i <- integers, into: <<>>, do: <<i::size(bits)-native>>) |> Nx.from_binary(type)

    defp assert_close(got, want, tolerance) do
      assert length(got) == length(want)

      for {got, want} <- Enum.zip(got, want) do
        case {got, want} do
          {{a, b}, {c, d}} -> assert_close([a, b], [c, d], tolerance)
          {same, same} -> :ok
          _ -> assert abs(got - want) <= tolerance * abs(want), "#{got} is not #{want}"
        end
      end
    end

    describe "determinants" do
      test "of rows that are nearly equal" do
        # (a - b)² (a + 2 b)
        {a, b} = {52_000.5, 51_996.25}
        rows = [[a, b, b], [b, a, b], [b, b, a]]

        for type <- [:f32, :f64] do
          got = Nx.LinAlg.determinant(Nx.tensor(rows, type: type))
          assert_close(flat(got), [2_817_623.5625], 1.0e-2)
        end

        for {rows, want} <- [{[[4097, 4098], [4096, 4097]], 1.0}, {[[1, 2], [3, 4]], -2.0}],
            type <- [:f32, :f64, :c64, :c128] do
          got = Nx.LinAlg.determinant(Nx.tensor(rows, type: type))
          assert flat(Nx.real(got)) == [want]
        end
      end

      test "whose factors leave the range" do
        for {diagonal, type, want} <- [
              {[1.0e20, 1.0e20, 1.0e-20], :f32, 1.0e20},
              {[1.0e30, 1.0e30, 1.0e-30, 1.0e-30], :f32, 1.0},
              {[1.0e200, 1.0e200, 1.0e-200], :f64, 1.0e200},
              {[1.0e200, 1.0e200, 1.0e-200, 1.0e-200], :f64, 1.0},
              {[1.0e-200, 1.0e-200, 1.0e200, 1.0e200], :f64, 1.0},
              {[1.0e200, 1.0e-200], :c128, 1.0},
              {[1.0e-200, 1.0e-200, 1.0e-200, 1.0e200, 1.0e200, 1.0e200], :c128, 1.0}
            ] do
          got = Nx.LinAlg.determinant(Nx.make_diagonal(Nx.tensor(diagonal, type: type)))
          assert_close(flat(Nx.real(got)), [want], 1.0e-5)
        end
      end
    end

    describe "factorizations" do
      test "eigenvalues of an arrow whose shaft vanishes" do
        rows =
          for i <- 1..5 do
            for j <- 1..5 do
              cond do
                i == j -> 1.0e-200 * i
                i == 1 or j == 1 -> 1.0
                true -> 0.0
              end
            end
          end

        for type <- [:f64, :c128, :f32, :c64] do
          {values, vectors} = Nx.LinAlg.eigh(Nx.tensor(rows, type: type))
          values = values |> Nx.real() |> flat() |> Enum.sort()
          tolerance = if type in [:f32, :c64], do: 1.0e-6, else: 1.0e-14

          for {got, want} <- Enum.zip(values, [-2.0, 0.0, 0.0, 0.0, 2.0]),
              do: assert_in_delta(got, want, tolerance)

          product = Nx.dot(Nx.LinAlg.adjoint(vectors), vectors)
          assert Nx.to_number(Nx.all_close(product, Nx.eye(5), atol: 1.0e-6)) == 1
        end
      end

      test "small eigenvalues beside large ones" do
        {values, _} =
          Nx.LinAlg.eigh(Nx.make_diagonal(Nx.tensor([1.0, 1.0e-20, 1.0e-30, 2.0], type: :f64)))

        assert_close(flat(values), [2.0, 1.0, 1.0e-20, 1.0e-30], 1.0e-9)

        block = [[1.0, 0.0, 0.0], [0.0, 2.0e-20, 1.0e-20], [0.0, 1.0e-20, 2.0e-20]]
        {values, _} = Nx.LinAlg.eigh(Nx.tensor(block, type: :f64))
        assert_close(flat(values), [1.0, 3.0e-20, 1.0e-20], 1.0e-9)
      end

      test "small pivots are no rounding errors" do
        cholesky = fn rows -> flat(Nx.LinAlg.cholesky(Nx.tensor(rows, type: :f64))) end
        assert_close(cholesky.([[1.0, 0.0], [0.0, 1.0e-36]]), [1.0, 0.0, 0.0, 1.0e-18], 3.0e-16)

        assert_close(
          cholesky.([[1.0, 1.0e-18], [1.0e-18, 1.0e-34]]),
          [1.0, 0.0, 1.0e-18, 1.0e-17 * :math.sqrt(0.99)],
          1.0e-9
        )

        graded = Nx.make_diagonal(Nx.tensor([1.0, 1.0e-20], type: :f64))
        {_, r} = Nx.LinAlg.qr(graded)
        assert_close(Enum.map(flat(r), &abs/1), [1.0, 0.0, 0.0, 1.0e-20], 1.0e-9)
        solution = Nx.LinAlg.solve(graded, Nx.tensor([1.0, 1.0], type: :f64))
        assert_close(flat(solution), [1.0, 1.0e20], 1.0e-9)
      end
    end

    describe "real functions" do
      test "expm1 and log1p near zero" do
        x = Nx.tensor([1.0e-15, 1.0e-17, -1.0e-8], type: :f64)
        assert_close(flat(Nx.expm1(x)), [1.0e-15, 1.0e-17, -9.99999995e-9], 1.0e-15)
        assert_close(flat(Nx.log1p(x)), [1.0e-15, 1.0e-17, -1.000000005e-8], 1.0e-15)
      end

      test "cube roots of cubes" do
        for type <- [:f32, :f64] do
          got = flat(Nx.cbrt(Nx.tensor([1000.0, 64.0, 125.0, -27.0, 343.0], type: type)))
          assert got == [10.0, 4.0, 5.0, -3.0, 7.0]
        end

        assert_close(flat(Nx.cbrt(Nx.tensor([1.0e300], type: :f64))), [1.0e100], 3.0e-16)
      end

      test "the inverse error function near zero and one" do
        x = Nx.tensor([1.0e-20, 0.2, 0.999, -1.0e-12], type: :f64)

        want = [
          8.862269254527580e-21,
          0.17914345462129166,
          2.3267537655135246,
          -8.86226925452758e-13
        ]

        assert_close(flat(Nx.erf_inv(x)), want, 3.0e-16)

        # Those of Nx's doctests, which are rounded there from the sixth digit on.
        got = flat(Nx.erf_inv(Nx.tensor([0.1, 0.5, 0.9], type: :f64)))
        assert_close(got, [0.08885599049425769, 0.4769362762044699, 1.1630871536766743], 3.0e-16)
      end

      test "odd functions keep the sign of a zero" do
        odd =
          [:sin, :tan, :asin, :atan, :sinh, :tanh, :asinh, :atanh, :expm1, :log1p] ++
            [:erf, :erf_inv, :cbrt, :sqrt, :floor, :ceil, :round, :sign]

        types = [f: 64, f: 32, f: 16, bf: 16, f: 8]

        types =
          if function_exported?(Nx.Type, :f8_e4m3fn?, 1),
            do: [{:f8_e4m3fn, 8} | types],
            else: types

        for {_, bits} = type <- types, function <- odd do
          zero = Bitwise.bsl(1, bits - 1)
          result = apply(Nx, function, [raw([zero], type)])

          assert Nx.to_binary(result) == <<zero::size(bits)-native>>,
                 "#{function} of #{inspect(type)}"
        end
      end
    end

    describe "complex functions" do
      test "acosh has no negative real part" do
        z = complex([{-2.0, 0.5}, {-2.0, -0.5}, {2.0, -0.5}, {-0.5, 3.0}], :c128)

        want = [
          {1.3618009008578458, 2.863838397032079},
          {1.3618009008578458, -2.863838397032079},
          {1.3618009008578458, -0.27775425655771396},
          {1.8301947623375088, 1.7278009215838388}
        ]

        assert_close(pairs(Nx.acosh(z)), want, 1.0e-15)
      end

      test "exponentials that overflow along the axis are not NaN" do
        for type <- [:c64, :c128], re <- [1001.0, 800.0] do
          z = complex([{re, 0.0}], type)
          assert pairs(Nx.exp(z)) == [{:infinity, 0.0}]
          assert pairs(Nx.expm1(z)) == [{:infinity, 0.0}]
          assert pairs(Nx.sinh(z)) == [{:infinity, 0.0}]
          assert pairs(Nx.cosh(z)) == [{:infinity, 0.0}]
        end
      end

      test "tiny arguments are what odd functions give" do
        x = 1.0e-20
        z = complex([{x, x}], :c64)

        for function <- [:sinh, :sin, :tanh, :tan, :expm1, :log1p, :asinh, :atanh, :asin, :atan],
            do: assert_close(pairs(apply(Nx, function, [z])), [{x, x}], 1.0e-7)
      end

      test "asinh of large arguments in the left half plane" do
        z = complex([{-1.0, -101_999.0}, {-3.0, -3_498_384.0}, {-1.0e10, 1.0}], :c64)

        want = [
          {-12.225865468880756, -1.57078652277721},
          {-15.760958886111359, -1.5707954692561016},
          {-23.718998110500402, 1.0e-10}
        ]

        assert_close(pairs(Nx.asinh(z)), want, 1.0e-6)
      end

      test "the sign of a zero chooses the side of the cut" do
        for {type, bits} <- [c64: 32, c128: 64] do
          parts = for x <- [-1.0, -0.0, -4.0, 0.0], into: <<>>, do: <<x::float-size(bits)-native>>
          z = Nx.from_binary(parts, type)
          assert flat(Nx.imag(Nx.sqrt(z))) == [-1.0, 2.0]
          assert [below, above] = flat(Nx.imag(Nx.log(z)))
          assert_in_delta(below, -:math.pi(), 1.0e-6)
          assert_in_delta(above, :math.pi(), 1.0e-6)
        end
      end
    end

    describe "integers of 64 bits" do
      test "become f32 with one rounding" do
        above_a_tie = 36_028_799_166_447_617
        signed = Nx.tensor([above_a_tie, -above_a_tie], type: :s64)
        want = [36_028_801_313_931_264.0, -36_028_801_313_931_264.0]
        assert flat(Nx.as_type(signed, :f32)) == want

        unsigned = Nx.tensor([9_223_372_586_610_589_697, 18_446_744_073_709_551_615], type: :u64)
        huge = [9_223_373_136_366_403_584.0, 18_446_744_073_709_551_616.0]
        assert flat(Nx.as_type(unsigned, :f32)) == huge

        for {integers, want} <- [{signed, want}, {unsigned, huge}] do
          assert flat(Nx.add(integers, Nx.tensor([0.0, 0.0]))) == want
          assert flat(Nx.subtract(integers, Nx.tensor([0.0, 0.0]))) == want
          assert flat(Nx.multiply(integers, Nx.tensor([1.0, 1.0]))) == want
          assert flat(Nx.divide(integers, Nx.tensor([1.0, 1.0]))) == want
          assert flat(Nx.max(integers, Nx.tensor([:neg_infinity, :neg_infinity]))) == want
        end
      end
    end

    describe "results without elements are refused" do
      if function_exported?(Nx, :irfft, 2) do
        test "by irfft of one element" do
          for {shape, axis} <- [{{1}, 0}, {{3, 1}, 1}, {{1, 2}, 0}] do
            assert_raise ArgumentError, ~r/irfft: one element along axis #{axis}.*:length/, fn ->
              Nx.irfft(Nx.broadcast(Nx.tensor(1.0), shape), axis: axis)
            end
          end

          assert flat(Nx.irfft(Nx.tensor([3.0]), length: 1)) == [3.0]
        end
      end

      test "by pad that cuts off all there is" do
        for {low, high} <- [{-3, -3}, {0, -6}, {-5, -3}] do
          assert_raise ArgumentError, ~r/pad: nothing is left of a tensor of shape \{6\}/, fn ->
            Nx.pad(Nx.iota({6}), 0, [{low, high, 0}])
          end
        end
      end
    end
  end
end
