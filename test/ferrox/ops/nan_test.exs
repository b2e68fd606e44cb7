defmodule Ferrox.Ops.NaNTest do
  # Reductions without NaN, finite numbers, derivatives, integrals and weighted means: every type, edges and
  # errors. More values are compared with NumPy's in test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  alias Ferrox.Complex

  @integers for type <- ~w(u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64)a,
                do: Ferrox.Type.normalize!(type)
  @floats for type <- ~w(f8 f8_e4m3fn f16 bf16 f32 f64)a, do: Ferrox.Type.normalize!(type)

  test "integers have no NaN, and reductions are those of all" do
    for type <- @integers ++ [:bool] do
      t = Ferrox.as_type(Ferrox.tensor([[1, 0, 1], [0, 0, 0]]), type)
      assert Ferrox.nansum(t, axes: [1]) == Ferrox.sum(t, axes: [1])
      assert Ferrox.nanmax(t, keep_axes: true) == Ferrox.reduce_max(t, keep_axes: true)
      assert Ferrox.nanmin(t) == Ferrox.reduce_min(t)
      assert Ferrox.nanmean(t) == Ferrox.mean(t)
      assert Ferrox.nanvar(t, axes: [0]) == Ferrox.variance(t, axes: [0])
      assert Ferrox.nanstd(t, ddof: 1) == Ferrox.standard_deviation(t, ddof: 1)
      assert list(Ferrox.nanmedian(t, axis: 1)) == [1.0, 0.0]
      assert Ferrox.nan_to_num(t) == t
      assert Ferrox.isfinite(t) == Ferrox.full({2, 3}, 1, type: :u8)
    end
  end

  test "every type of floats, with rows of NaN alone" do
    for type <- @floats do
      t = Ferrox.tensor([[1.0, :nan, 3.0], [:nan, :nan, :nan]], type: type)

      as! = fn got, type, numbers -> assert {got.type, list(got)} == {type, numbers} end
      same! = &as!.(&1, type, &2)
      float! = &as!.(&1, Ferrox.mean(t).type, &2)
      same!.(Ferrox.nansum(t, axes: [1]), [4.0, 0.0])
      same!.(Ferrox.nanmax(t, axes: [1]), [3.0, :nan])
      same!.(Ferrox.nanmin(t, axes: [-1], keep_axes: true), [1.0, :nan])
      assert Ferrox.nanmin(t, axes: [-1], keep_axes: true).shape == {2, 1}
      float!.(Ferrox.nanmean(t, axes: [1]), [2.0, :nan])
      float!.(Ferrox.nanvar(t, axes: [1]), [1.0, :nan])
      float!.(Ferrox.nanvar(t, axes: [1], ddof: 2), [:nan, :nan])
      float!.(Ferrox.nanstd(t), [1.0])
      float!.(Ferrox.nanmedian(t, axis: 1, keep_axis: true), [2.0, :nan])
      float!.(Ferrox.nanmedian(t, keep_axis: true), [2.0])
      assert Ferrox.nanmedian(t, keep_axis: true).shape == {1, 1}
      assert Ferrox.nanmedian(t, axis: 1, keep_axis: true).shape == {2, 1}
      assert list(Ferrox.isfinite(t)) == [1, 0, 1, 0, 0, 0]
      assert list(Ferrox.nan_to_num(t)) == [1.0, 0.0, 3.0, 0.0, 0.0, 0.0]
    end
  end

  test "infinities are numbers, but not finite" do
    t = Ferrox.tensor([:neg_infinity, :nan, :infinity])
    assert list(Ferrox.nanmax(t)) == [:infinity]
    assert list(Ferrox.nanmin(t)) == [:neg_infinity]
    assert list(Ferrox.nanmax(Ferrox.tensor([:neg_infinity, :nan]))) == [:neg_infinity]
    assert list(Ferrox.nanmedian(Ferrox.tensor([:infinity, :nan, :infinity]))) == [:infinity]
    assert list(Ferrox.isfinite(t)) == [0, 0, 0]
    assert Ferrox.isfinite(t, promotion: :numpy).type == :bool

    assert list(Ferrox.nan_to_num(t, nan: 7)) == [
             -3.4028234663852886e38,
             7.0,
             3.4028234663852886e38
           ]

    assert list(Ferrox.nan_to_num(t, posinf: 1, neginf: :neg_infinity)) == [
             :neg_infinity,
             0.0,
             1.0
           ]
  end

  test "scalars" do
    assert Ferrox.nansum(2.5) == Ferrox.tensor(2.5)
    assert Ferrox.nanmean(3) == Ferrox.tensor(3.0)
    assert Ferrox.nanmax(Ferrox.tensor(:nan)) == Ferrox.tensor(:nan)
    assert Ferrox.nanmedian(7) == Ferrox.tensor(7.0)
    assert Ferrox.weighted_mean(5, 2) == Ferrox.tensor(5.0)
  end

  test "complex numbers are NaN if a part is" do
    t = Ferrox.tensor([Complex.new(1, 2), Complex.new(:nan, 0), Complex.new(3, :infinity)])
    assert list(Ferrox.isfinite(t)) == [1, 0, 0]
    assert list(Ferrox.nansum(t[0..1])) == [Complex.new(1.0, 2.0)]

    assert list(Ferrox.nan_to_num(t)) == [
             Complex.new(1.0, 2.0),
             Complex.new(0.0, 0.0),
             Complex.new(3.0, 3.4028234663852886e38)
           ]
  end

  test "weights lie along their axes, in any order" do
    t = Ferrox.iota({2, 3, 4}, type: :f64)
    weights = Ferrox.iota({4, 2}, type: :f64)

    whole =
      weights |> Ferrox.transpose() |> Ferrox.reshape({2, 1, 4}) |> Ferrox.broadcast({2, 3, 4})

    assert Ferrox.weighted_mean(t, weights, axes: [2, 0]) ==
             Ferrox.weighted_mean(t, whole, axes: [0, 2])

    assert Ferrox.weighted_mean(t, whole, axes: [0, 2], keep_axes: true).shape == {1, 3, 1}
    assert list(Ferrox.weighted_mean(Ferrox.tensor([1, 2]), Ferrox.tensor([0, 0]))) == [:nan]
  end

  test "what can't be is refused" do
    {t, z} = {Ferrox.iota({2, 3}), Ferrox.tensor([Complex.new(1, 2)])}
    raises("nansum: unknown option :axis", fn -> Ferrox.nansum(t, axis: 0) end)

    raises("nanmax is not defined for c64: complex numbers have no order", fn ->
      Ferrox.nanmax(z)
    end)

    raises("nanmedian is not defined for c64: complex numbers have no order", fn ->
      Ferrox.nanmedian(z)
    end)

    raises("nanvar: :ddof must be an integer that is not negative, got: -1", fn ->
      Ferrox.nanvar(t, ddof: -1)
    end)

    raises("nanmean: axis 2 is out of range", fn -> Ferrox.nanmean(t, axes: [2]) end)

    raises("nan_to_num: :nan must be a number or a scalar, got: #Ferrox.Tensor<", fn ->
      Ferrox.nan_to_num(2.5, nan: t)
    end)

    raises(
      "weighted_mean: weights of shape {2} have neither the shape of the tensor, {2, 3}, nor",
      fn -> Ferrox.weighted_mean(t, Ferrox.iota({2}), axes: [1]) end
    )

    raises("trapezoid: :x must be a vector of 3 elements", fn ->
      Ferrox.trapezoid(t, x: Ferrox.iota({2}))
    end)

    raises("trapezoid: axis 0 of shape {1} has one element", fn -> Ferrox.trapezoid(z) end)
    raises("trapezoid: axis -1 is out of range for shape {}", fn -> Ferrox.trapezoid(1) end)

    raises("trapezoid: :dx must be a number that is not zero, got: nil", fn ->
      Ferrox.trapezoid(t, dx: nil)
    end)

    raises("gradient: :spacing must be a number that is not zero, got: 0", fn ->
      Ferrox.gradient(t, spacing: 0)
    end)
  end
end
