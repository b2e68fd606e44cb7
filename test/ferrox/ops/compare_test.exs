defmodule Ferrox.Ops.CompareTest do
  # Equality: every type, large integers and errors. More values are compared with NumPy's in
  # test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  @types real_types() ++ [:bool, {:c, 64}, {:c, 128}]

  test "every pair of types" do
    for left <- @types, right <- @types do
      a = Ferrox.as_type(Ferrox.tensor([[0, 1], [1, 1]]), left)
      b = Ferrox.as_type(Ferrox.tensor([0, 1]), right)
      assert Ferrox.isclose(a, b) == Ferrox.tensor([[1, 1], [0, 1]], type: :u8)
      assert Ferrox.isclose(a, b, atol: 1) == Ferrox.tensor([[1, 1], [1, 1]], type: :u8)
      assert Ferrox.array_equal(a[0], b) == Ferrox.tensor(1, type: :u8)
      assert Ferrox.array_equal(a[1], b) == Ferrox.tensor(0, type: :u8)
      assert Ferrox.array_equal(a, b) == Ferrox.tensor(0, type: :u8)
      assert Ferrox.count_nonzero(a) == Ferrox.tensor(3)
      assert Ferrox.count_nonzero(a, axes: [0], keep_axes: true) == Ferrox.tensor([[1, 2]])
    end
  end

  test "is that of all_close/3, element by element, and exact for integers" do
    ends = [
      0,
      1,
      2 ** 53,
      2 ** 53 + 1,
      2 ** 63 - 1,
      2 ** 63,
      2 ** 64 - 1,
      -1,
      -(2 ** 53) - 1,
      -(2 ** 63)
    ]

    typed =
      for n <- ends,
          type <- [:s64, :u64],
          n >= -(2 ** 63) and (n >= 0 or type == :s64),
          type == :u64 or n < 2 ** 63,
          do: {n, Ferrox.tensor(n, type: type)}

    for {n, a} <- typed,
        {m, b} <- typed,
        {rtol, atol} <- [{0, 0}, {0, 0.5}, {0, 1}, {0, 2.0 ** 64}, {1.0e-9, 0}] do
      opts = [rtol: rtol, atol: atol]
      close = Ferrox.isclose(a, b, opts)
      assert close == Ferrox.all_close(a, b, opts), "#{n} #{m} #{rtol} #{atol}"

      if {rtol, atol} == {0, 1},
        do: assert(Ferrox.to_number(close) == if(abs(n - m) <= 1, do: 1, else: 0))
    end
  end

  test "types are those of a system" do
    a = Ferrox.iota({2})

    for system <- [:numpy, :jax, :array_api] do
      assert Ferrox.isclose(a, a, promotion: system).type == :bool
      assert Ferrox.array_equal(a, 1, promotion: system).type == :bool
      assert Ferrox.count_nonzero(a, promotion: system).type == {:s, 64}
    end
  end

  test "what can't be is refused" do
    a = Ferrox.iota({2})

    raises("isclose: :rtol must be a number that is not negative, got: -1", fn ->
      Ferrox.isclose(a, a, rtol: -1)
    end)

    raises("isclose: shapes {2} of s32 and {3} of s32", fn ->
      Ferrox.isclose(a, Ferrox.iota({3}))
    end)

    raises("array_equal: :equal_nan must be a boolean", fn ->
      Ferrox.array_equal(a, a, equal_nan: 1)
    end)

    raises("array_equal: unknown option :rtol", fn -> Ferrox.array_equal(a, a, rtol: 1) end)
    raises("count_nonzero: axis 1 is out of range", fn -> Ferrox.count_nonzero(a, axes: [1]) end)
  end
end
