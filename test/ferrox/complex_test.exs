defmodule Ferrox.ComplexTest do
  use ExUnit.Case, async: true

  require Ferrox.Complex

  alias Ferrox.Complex, as: C

  doctest Ferrox.Complex

  # The struct of the package, whether it is there or not.
  defp packaged(re, im), do: %{__struct__: Complex, re: re, im: im}

  test "new/2 makes the package's struct where there is one" do
    expected = if Code.ensure_loaded?(Complex), do: Complex, else: Ferrox.Complex
    assert %{__struct__: ^expected, re: 1.0, im: 2.0} = C.new(1, 2)
  end

  test "new/2 makes floats and keeps what no float is" do
    assert C.parts(C.new(2)) == {2.0, 0.0}
    assert C.parts(C.new(:infinity, :nan)) == {:infinity, :nan}
    assert C.parts(C.new(-1.5, :neg_infinity)) == {-1.5, :neg_infinity}

    assert_raise ArithmeticError, "bad argument in arithmetic expression", fn ->
      apply(C, :new, [nil])
    end

    assert_raise ArithmeticError, fn -> apply(C, :new, [C.new(1)]) end
    assert_raise ArithmeticError, fn -> apply(C, :new, [1, :foo]) end
    assert_raise ArithmeticError, fn -> C.new(2 ** 1030) end
  end

  test "both structs are complex numbers" do
    for complex <- [%C{re: 1, im: -0.5}, packaged(1, -0.5)] do
      assert C.is_complex(complex)
      assert C.parts(complex) == {1.0, -0.5}
      assert C.to_string(complex) == "1-0.5i"
      assert Ferrox.Type.infer(complex) == {:c, 64}
    end

    for other <- [1, 1.0, :nan, nil, %{re: 1.0, im: 1.0}, 1..2, "1+2i"] do
      refute C.is_complex(other)
    end
  end

  test "real numbers have parts as well" do
    assert C.parts(3) == {3.0, 0.0}
    assert C.parts(:nan) == {:nan, 0.0}
    assert_raise FunctionClauseError, fn -> apply(C, :parts, [nil]) end
  end

  @printed [
    {1.0, 2.0, "1.0+2.0i"},
    {-1.0, -2.5, "-1.0-2.5i"},
    {0.0, -0.0, "0.0+0.0i"},
    {0, 0, "0.0+0.0i"},
    {1, -2, "1-2i"},
    {:infinity, :neg_infinity, "Inf-Infi"},
    {:neg_infinity, :infinity, "-Inf+Infi"},
    {:nan, :nan, "NaN+NaNi"},
    {1.0e-10, -1.0e300, "1.0e-10-1.0e300i"}
  ]

  test "prints as the package does" do
    for {re, im, text} <- @printed do
      own = %C{re: re, im: im}
      assert inspect(own) == text
      assert "#{own}" == text

      if Code.ensure_loaded?(Complex) do
        assert inspect(packaged(re, im)) == text
        assert C.to_string(packaged(re, im)) == text
      end
    end
  end
end
