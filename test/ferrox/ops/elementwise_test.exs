defmodule Ferrox.Ops.ElementwiseTest do
  # Divisions that round down: every type, signs of zeros, weak types and errors. More values are compared
  # with NumPy's in test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  alias Ferrox.Complex

  test "divisions round down in every type" do
    for {kind, _} = type <- real_types() do
      t = Ferrox.tensor([1, 1, 0], type: type)

      assert {Ferrox.floor_divide(t, t[0]), Ferrox.mod(t, t[0])} ==
               {t, Ferrox.full({3}, 0, type: type)}

      if kind != :u do
        one = Ferrox.negate(t[0])
        assert list(Ferrox.as_type(Ferrox.floor_divide(t, one), :s8)) == [-1, -1, 0]
        assert Ferrox.floor_divide(t, one).type == type
      end
    end
  end

  test "integers at their limits" do
    last = 18_446_744_073_709_551_615
    t = Ferrox.tensor([last, last - 1], type: :u64)
    assert list(Ferrox.floor_divide(t, 2)) == [div(last, 2), div(last, 2)]
    assert list(Ferrox.mod(t, Ferrox.tensor([10, 10], type: :u64))) == [5, 4]
    least = Ferrox.tensor([-9_223_372_036_854_775_808], type: :s64)
    assert list(Ferrox.floor_divide(least, 10)) == [-922_337_203_685_477_581]
    assert list(Ferrox.mod(least, 10)) == [2]
    assert list(Ferrox.floor_divide(least, -1)) == list(least)
  end

  test "zeros have a sign" do
    bits = &Ferrox.to_list(Ferrox.less(Ferrox.divide(1.0, &1), 0))
    zeros = Ferrox.tensor([0.0, -0.0])
    assert bits.(Ferrox.mod(zeros, 2.0)) == [0, 0]
    assert bits.(Ferrox.mod(zeros, -2.0)) == [1, 1]
    assert bits.(Ferrox.floor_divide(zeros, 2.0)) == [0, 1]
    assert bits.(Ferrox.floor_divide(zeros, -2.0)) == [1, 0]

    assert bits.(Ferrox.floor_divide(Ferrox.tensor([1.0, -1.0]), Ferrox.tensor([2.0, -2.0]))) == [
             0,
             0
           ]
  end

  test "shapes are broadcast, numbers are operands, and types those of a remainder" do
    assert Ferrox.mod(Ferrox.iota({2, 1}), Ferrox.tensor([1, 2, 3])).shape == {2, 3}
    assert Ferrox.mod(-7, 3) == Ferrox.tensor(2)
    assert Ferrox.floor_divide(-7, 2.0) == Ferrox.tensor(-4.0)
    assert Ferrox.floor_divide(7, Ferrox.tensor([2.0], type: :f16)).type == {:f, 16}
    assert Ferrox.mod(7, 2, promotion: :jax).weak

    assert Ferrox.floor_divide(
             Ferrox.tensor([true], type: :bool),
             Ferrox.tensor([true], type: :bool),
             promotion: :numpy
           ).type == {:s, 8}
  end

  test "what can't be is refused" do
    raises("integer division by zero", fn -> Ferrox.mod(Ferrox.tensor([1]), 0) end)

    raises("integer division by zero", fn ->
      Ferrox.floor_divide(Ferrox.tensor([1]), Ferrox.tensor([0]))
    end)

    raises("mod: shapes {2} of s32 and {3} of s32 don't broadcast", fn ->
      Ferrox.mod(Ferrox.iota({2}), Ferrox.iota({3}))
    end)

    raises("floor_divide: expected a Ferrox.Tensor or a number, got: [1]", fn ->
      Ferrox.floor_divide([1], 1)
    end)

    raises("mod is not defined for c64: complex numbers have no order", fn ->
      Ferrox.mod(Ferrox.tensor([Complex.new(1, 2)]), 2)
    end)
  end

  test "square/2, reciprocal/2, angles and trace/2 of every type" do
    for type <- real_types() ++ [:bool, {:c, 64}] do
      t = Ferrox.as_type(Ferrox.tensor([[1, 0], [1, 1]]), type)
      assert Ferrox.square(t) == Ferrox.multiply(t, t)
      assert Ferrox.reciprocal(t).type == Ferrox.divide(1, t).type
      assert Ferrox.trace(t) == Ferrox.sum(Ferrox.take_diagonal(t))
      assert Ferrox.trace(t, offset: -1).type == Ferrox.sum(t).type

      if type != {:c, 64} do
        assert {Ferrox.degrees(t).type, Ferrox.radians(t).type} ==
                 {Ferrox.sin(t).type, Ferrox.sin(t).type}

        assert Ferrox.trunc(t) == Ferrox.floor(t)
      end
    end

    bools = Ferrox.tensor([[true, false], [true, true]], type: :bool)
    assert Ferrox.trace(bools, offset: -1, promotion: :numpy) == Ferrox.tensor(1, type: :s64)
    assert Ferrox.to_number(Ferrox.degrees(:math.pi(), promotion: :numpy)) == 180.0
    assert Ferrox.degrees(1, promotion: :jax).weak
    assert Ferrox.square(2, promotion: :jax).weak
    assert Ferrox.reciprocal(2, promotion: :jax).weak

    assert Ferrox.to_number(Ferrox.reciprocal(Ferrox.Complex.new(0, 2))) ==
             Ferrox.Complex.new(0.0, -0.5)
  end

  test "trunc/2 keeps what is no fraction, and the sign of zero" do
    t = Ferrox.tensor([-0.5, 0.5, :infinity, :neg_infinity, :nan, 1.0e300], type: :f64)
    assert [low, high, :infinity, :neg_infinity, :nan, 1.0e300] = list(Ferrox.trunc(t))
    assert {<<low::float>>, <<high::float>>} == {<<-0.0::float>>, <<0.0::float>>}
    assert Ferrox.trunc(1.5, promotion: :jax).weak
  end

  test "fmax/3 and fmin/3 leave NaN out, in every type" do
    for type <- real_types() ++ [:bool] do
      [a, b] =
        for data <- [[[1, 0], [1, 1]], [0, 1]], do: Ferrox.as_type(Ferrox.tensor(data), type)

      assert Ferrox.fmax(a, b) == Ferrox.max(a, b)
      assert Ferrox.fmin(b, a) == Ferrox.min(b, a)

      if type != :bool and Ferrox.Type.float?(type) do
        nan = Ferrox.tensor(:nan, type: type)
        assert Ferrox.fmax(a, nan) == a
        assert Ferrox.fmin(nan, a) == a
        assert list(Ferrox.fmax(nan, nan)) == [:nan]
      end
    end

    assert Ferrox.fmin(Ferrox.tensor([1, 2]), :nan) |> list() == [1.0, 2.0]
    assert Ferrox.fmax(1, 2.5, promotion: :jax).weak
  end

  test "derived functions refuse what they can't do" do
    complex = Ferrox.tensor(Ferrox.Complex.new(1, 2))

    for name <- [:fmax, :fmin],
        do: raises("#{name} is not defined for c64", fn -> apply(Ferrox, name, [complex, 1]) end)

    for name <- [:degrees, :radians, :trunc],
        do: raises("#{name} is not defined for c64", fn -> apply(Ferrox, name, [complex]) end)

    raises("trace: :offset must be from -1 to 2 for matrices", fn ->
      Ferrox.trace(Ferrox.iota({2, 3}), offset: 3)
    end)

    raises("trace expects a tensor of at least two axes", fn -> Ferrox.trace(Ferrox.iota({2})) end)

    raises("square is not defined for bool under system: :array_api", fn ->
      Ferrox.square(Ferrox.tensor(true, type: :bool), promotion: :array_api)
    end)

    raises("degrees is not defined for s32 under system: :array_api", fn ->
      Ferrox.degrees(Ferrox.iota({2}), promotion: :array_api)
    end)

    raises("reciprocal is not defined for s32 under system: :array_api", fn ->
      Ferrox.reciprocal(Ferrox.iota({2}), promotion: :array_api)
    end)

    raises("reciprocal: unknown option :axis", fn -> Ferrox.reciprocal(2, axis: 1) end)

    raises("fmax: shapes {2} of s32 and {3} of s32", fn ->
      Ferrox.fmax(Ferrox.iota({2}), Ferrox.iota({3}))
    end)
  end
end
