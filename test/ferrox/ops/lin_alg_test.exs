defmodule Ferrox.Ops.LinAlgTest do
  # Ferrox.LinAlg and Ferrox.FFT: what factors give together, types, and errors. Values that are unique are
  # compared with NumPy's in test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  doctest Ferrox.LinAlg
  doctest Ferrox.FFT

  alias Ferrox.{Complex, FFT, LinAlg}

  defp random(shape, type) do
    numbers = for _ <- 1..Tuple.product(shape), do: :rand.normal()
    t = numbers |> Ferrox.tensor(type: :f64) |> Ferrox.reshape(shape)

    if match?({:c, _}, Ferrox.Type.normalize!(type)),
      do: Ferrox.as_type(Ferrox.complex(t, Ferrox.reverse(t)), type),
      else: Ferrox.as_type(t, type)
  end

  defp close!(a, b, tolerance) do
    {a, b} = {Ferrox.as_type(a, :c128), Ferrox.as_type(b, :c128)}
    difference = Ferrox.abs(Ferrox.subtract(a, b)) |> Ferrox.reduce_max() |> Ferrox.to_number()
    assert difference <= tolerance, "differ by #{inspect(difference)}"
  end

  defp matmul(a, b) do
    rank = Ferrox.rank(a)
    batch = Enum.to_list(0..(rank - 3)//1)
    Ferrox.dot(a, [rank - 1], batch, b, [rank - 2], batch)
  end

  @tolerances [f32: 1.0e-5, f64: 1.0e-13, c64: 1.0e-5, c128: 1.0e-13]

  describe "factorizations" do
    setup do
      :rand.seed(:exsss, 5)
      :ok
    end

    test "multiply to the matrix, for batches too" do
      for {type, tolerance} <- @tolerances, shape <- [{4, 4}, {2, 3, 3}] do
        a = random(shape, type)
        {p, l, u} = LinAlg.lu(a)
        assert p.type == a.type
        close!(matmul(p, matmul(l, u)), a, tolerance)
        assert Ferrox.tril(l) == l and Ferrox.triu(u) == u

        hermitian = Ferrox.add(matmul(a, LinAlg.adjoint(a)), Ferrox.eye(shape, type: type))
        l = LinAlg.cholesky(hermitian)
        close!(matmul(l, LinAlg.adjoint(l)), hermitian, 20 * tolerance)

        {values, vectors} = LinAlg.eigh(hermitian)
        scaled = Ferrox.multiply(vectors, Ferrox.new_axis(values, -2))
        close!(matmul(scaled, LinAlg.adjoint(vectors)), hermitian, 50 * tolerance)
        magnitudes = values |> Ferrox.real() |> Ferrox.abs()
        assert Ferrox.sort(magnitudes, axis: -1, direction: :desc) == magnitudes
      end
    end

    test "of any shape" do
      for {type, tolerance} <- @tolerances,
          shape <- [{4, 2}, {2, 4}, {3, 5, 2}],
          mode <- [:reduced, :complete] do
        a = random(shape, type)
        {q, r} = LinAlg.qr(a, mode: mode)
        close!(matmul(q, r), a, tolerance)
        columns = elem(q.shape, tuple_size(shape) - 1)

        close!(
          matmul(LinAlg.adjoint(q), q),
          Ferrox.broadcast(
            Ferrox.eye(columns),
            q.shape |> put_elem(tuple_size(shape) - 2, columns)
          ),
          tolerance
        )

        if type in [:f32, :f64] do
          {u, s, vt} = LinAlg.svd(a, full_matrices?: mode == :complete)
          k = elem(s.shape, tuple_size(s.shape) - 1)

          {u, vt} =
            {Ferrox.slice_along_axis(u, 0, k, axis: -1),
             Ferrox.slice_along_axis(vt, 0, k, axis: -2)}

          close!(matmul(Ferrox.multiply(u, Ferrox.new_axis(s, -2)), vt), a, 5 * tolerance)
        end
      end
    end

    test "solve systems on both sides" do
      for {type, tolerance} <- @tolerances,
          lower <- [true, false],
          transform <- [:none, :transpose, :conjugate] do
        a = Ferrox.add(random({3, 3}, type), Ferrox.multiply(4, Ferrox.eye(3, type: type)))
        triangle = if lower, do: Ferrox.tril(a), else: Ferrox.triu(a)
        opts = [lower: lower, transform_a: transform]

        seen =
          case transform do
            :none -> triangle
            :transpose -> Ferrox.transpose(triangle)
            :conjugate -> Ferrox.as_type(Ferrox.conjugate(triangle), type)
          end

        b = random({3, 2}, type)
        close!(Ferrox.dot(seen, LinAlg.triangular_solve(a, b, opts)), b, tolerance)
        c = random({2, 3}, type)

        close!(
          Ferrox.dot(LinAlg.triangular_solve(a, c, [left_side: false] ++ opts), seen),
          c,
          tolerance
        )
      end
    end
  end

  test "types are those of a quotient" do
    a = Ferrox.tensor([[2, 0], [0, 4]], type: :u8)
    assert Ferrox.type(LinAlg.invert(a)) == {:f, 32}
    assert Ferrox.type(LinAlg.invert(a, promotion: :numpy)) == {:f, 64}
    assert Ferrox.type(LinAlg.norm(Ferrox.as_type(a, :c64))) == {:f, 32}
    assert Ferrox.type(LinAlg.matrix_power(a, 2)) == {:u, 8}
    assert Ferrox.type(LinAlg.invert(Ferrox.as_type(a, :bf16))) == {:bf, 16}
    assert Ferrox.type(FFT.fft(Ferrox.as_type(a, :f64))) == {:c, 128}
    assert Ferrox.type(FFT.irfft(a, promotion: :numpy)) == {:f, 64}

    raises("determinant is not defined for u8 under", fn ->
      LinAlg.determinant(a, promotion: :array_api)
    end)

    raises("fft is not defined for u8 under", fn -> FFT.fft(a, promotion: :array_api) end)
  end

  test "the logarithm of a determinant has no range" do
    for type <- ~w(f16 bf16 f32 f64 c64 c128)a do
      t = Ferrox.multiply(Ferrox.eye({50, 50}, type: type), Ferrox.tensor(0.25, type: type))
      {sign, logarithm} = LinAlg.slogdet(Ferrox.reverse(t, axes: [0]))
      assert sign.type == t.type
      # A reversal of 50 rows is one of 25 pairs.
      assert Ferrox.to_number(Ferrox.real(sign)) == -1.0
      assert logarithm.type == Ferrox.abs(t).type
      assert_in_delta Ferrox.to_number(logarithm), 50 * :math.log(0.25), 0.3
    end

    {sign, logarithm} = LinAlg.slogdet(Ferrox.tensor([[1, 2], [2, 4]]))
    assert {Ferrox.to_number(sign), Ferrox.to_number(logarithm)} == {0.0, :neg_infinity}
    assert Ferrox.to_number(elem(LinAlg.slogdet(Ferrox.tensor([[:nan]])), 1)) == :nan
  end

  test "a condition number is infinite for singular matrices" do
    assert Ferrox.to_number(LinAlg.cond(Ferrox.tensor([[0, 0], [0, 0]]))) == :infinity
    assert Ferrox.to_number(LinAlg.cond(Ferrox.tensor([[1, 0], [0, 0]]))) == :infinity
    assert Ferrox.to_number(LinAlg.cond(Ferrox.tensor([[1, 0], [0, 0]]), ord: -2)) == 0.0
    assert Ferrox.to_number(LinAlg.cond(Ferrox.tensor([[1, :nan], [0, 1]]))) == :nan
    assert Ferrox.shape(LinAlg.cond(Ferrox.iota({5, 3, 2, 4}))) == {5, 3}
    assert LinAlg.cond(Ferrox.eye(2), promotion: :numpy).type == {:f, 64}
  end

  test "a rank goes by the precision of the type" do
    for {type, rank} <- [f64: 3, f32: 2, f16: 1, bf16: 1] do
      t = Ferrox.make_diagonal(Ferrox.tensor([1.0, 1.0e-4, 1.0e-8], type: type))
      assert LinAlg.matrix_rank(t) == Ferrox.tensor(rank, type: :u32)
      assert LinAlg.matrix_rank(t, promotion: :jax) == Ferrox.tensor(rank, type: :s64)
    end
  end

  test "frequencies have the default float of a system, and those of a transform" do
    assert FFT.fftfreq(5).type == {:f, 32}
    assert FFT.rfftfreq(5, promotion: :numpy).type == {:f, 64}
    assert FFT.fftfreq(5, type: :f16).type == {:f, 16}
    # A wave of 3 cycles in 8 samples of distance 0.5.
    wave = Ferrox.cos(Ferrox.multiply(Ferrox.iota({8}), 2 * :math.pi() * 3 / 8))
    place = wave |> FFT.rfft() |> Ferrox.abs() |> Ferrox.argmax() |> Ferrox.to_number()
    assert Ferrox.to_number(FFT.rfftfreq(8, d: 0.5)[place]) == 0.75
    raises("fftfreq: the length must be a positive integer, got: 0", fn -> FFT.fftfreq(0) end)

    raises("rfftfreq: :d must be a number other than zero, got: 0", fn ->
      FFT.rfftfreq(4, d: 0)
    end)

    raises("fftfreq: frequencies are floats, got type: s32", fn -> FFT.fftfreq(4, type: :s32) end)
  end

  test "shifts of every type are undone by their inverse" do
    for type <- real_types() ++ [:bool, {:c, 64}], shape <- [{5}, {4, 3}] do
      t = shape |> Ferrox.iota() |> Ferrox.remainder(2) |> Ferrox.as_type(type)
      assert t |> FFT.fftshift() |> FFT.ifftshift() == t
      assert t |> FFT.ifftshift(axes: [0]) |> FFT.fftshift(axes: [0]) == t
    end

    assert FFT.fftshift(3) == Ferrox.tensor(3)

    raises("fftshift: axis 1 is out of range", fn -> FFT.fftshift(Ferrox.iota({2}), axes: [1]) end)

    raises("ifftshift: unknown option :axis", fn -> FFT.ifftshift(Ferrox.iota({2}), axis: 1) end)
  end

  test "small values of a transform stay" do
    t = Ferrox.tensor([1.0e-12, 2.0e-12])
    assert Ferrox.to_list(Ferrox.real(FFT.fft(t))) |> Enum.all?(&(&1 != 0.0))
    assert Ferrox.to_list(Ferrox.real(FFT.fft(t, eps: 1.0e-10))) == [0.0, 0.0]
    assert Ferrox.shape(FFT.fft(Ferrox.iota({5}), length: :power_of_two)) == {8}
  end

  test "what can't be is refused" do
    wide = Ferrox.iota({2, 3})
    complex = Ferrox.tensor([[Complex.new(1, 2)]])

    for name <- ~w(cholesky lu eigh determinant invert slogdet eigvalsh)a do
      raises("#{name} expects square matrices, got a tensor of shape {2, 3}", fn ->
        apply(LinAlg, name, [wide])
      end)

      raises("#{name} expects matrices, got a tensor of shape {3}", fn ->
        apply(LinAlg, name, [Ferrox.iota({3})])
      end)
    end

    raises("matrix_power expects square", fn -> LinAlg.matrix_power(wide, 2) end)

    raises("the power must be an integer, got: 0.5", fn ->
      LinAlg.matrix_power(Ferrox.eye(2), 0.5)
    end)

    raises("svd is not defined for c64: the numbers must be real", fn -> LinAlg.svd(complex) end)

    raises("cond is not defined for c64: the numbers must be real", fn -> LinAlg.cond(complex) end)

    raises("cond expects square matrices, got", fn -> LinAlg.cond(wide, ord: 1) end)
    raises("cond expects matrices, got", fn -> LinAlg.cond(Ferrox.iota({2})) end)
    raises(":ord 3 is no norm", fn -> LinAlg.cond(Ferrox.eye(2), ord: 3) end)
    raises("matrix_rank is not defined for c64", fn -> LinAlg.matrix_rank(complex) end)

    raises("matrix_rank: :eps must be a number that is not negative, got: -1", fn ->
      LinAlg.matrix_rank(wide, eps: -1)
    end)

    raises("qr: :mode must be", fn -> LinAlg.qr(wide, mode: :full) end)

    raises("solve: the right side of shape {3} does not go with", fn ->
      LinAlg.solve(Ferrox.eye(2), Ferrox.iota({3}))
    end)

    raises(":transform_a must be", fn ->
      LinAlg.triangular_solve(Ferrox.eye(2), Ferrox.iota({2}), transform_a: :t)
    end)

    raises("least_squares expects a matrix", fn ->
      LinAlg.least_squares(wide, Ferrox.iota({3}))
    end)

    raises(":ord 3 is no norm along 2 axes", fn -> LinAlg.norm(wide, ord: 3) end)
    raises("solve", fn -> LinAlg.solve(Ferrox.tensor([[1, 1], [1, 1]]), Ferrox.iota({2})) end)

    raises("rfft expects a tensor of real numbers, got: c64", fn -> FFT.rfft(complex) end)
    raises("fft: axis -1 is out of range for shape {}", fn -> FFT.fft(1) end)

    raises("a length must be a positive integer or :power_of_two, got: 0", fn ->
      FFT.fft(wide, length: 0)
    end)

    raises("pass a :length", fn -> FFT.irfft(Ferrox.iota({1})) end)
    raises("fft2: :axes must be two axes", fn -> FFT.fft2(wide, axes: [0]) end)
    raises("fft2: :lengths must be a list of two", fn -> FFT.fft2(wide, lengths: 3) end)
    raises(":eps must be a number", fn -> FFT.fft(wide, eps: -1) end)
  end
end
