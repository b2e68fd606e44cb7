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
end
