defmodule Ferrox.Ops.RoundingTest do
  # Decimals and ties: every type, edges and errors. More values are compared with NumPy's in
  # test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  describe "round/2" do
    test "gives halves to both sides, or to even numbers" do
      for type <- ~w(f8 f8_e4m3fn f16 bf16 f32 f64)a do
        t = Ferrox.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, 0.75], type: type)
        away = Ferrox.round(t)
        assert {away.type, list(away)} == {t.type, [1, 2, 3, -1, -2, -3, 0, 1]}
        even = Ferrox.round(t, ties: :even)
        assert {even.type, list(even)} == {t.type, [0, 2, 2, 0, -2, -2, 0, 1]}
        assert Ferrox.round(t, ties: :away, decimals: 0) == away
        assert Ferrox.round(t, decimals: 2) == t
      end
    end

    test "keeps infinities and NaN" do
      t = Ferrox.tensor([:infinity, :neg_infinity, :nan], type: :f64)

      for opts <- [[ties: :even], [ties: :even, decimals: -1], [decimals: -1], [decimals: 3]],
          do: assert(list(Ferrox.round(t, opts)) == [:infinity, :neg_infinity, :nan])
    end

    test "keeps numbers that have no such decimals" do
      large = [1.0e300, -1.7976931348623157e308, 123_456_789_012_345_678.0, 0.1]
      t = Ferrox.tensor(large, type: :f64)
      assert list(Ferrox.round(t, decimals: 17)) == large
      assert list(Ferrox.round(t, decimals: 308)) == large
      # -2 * 10 ** 308 is past the last float.
      assert list(Ferrox.round(t, decimals: -308)) == [0.0, :neg_infinity, 0.0, 0.0]
    end

    test "rounds integers before the point, exactly" do
      for type <- ~w(s8 s16 s32 s64)a do
        t = Ferrox.tensor([15, 25, -15, -25, 14, -16, 0, 104], type: type)
        assert list(Ferrox.round(t, decimals: -1)) == [20, 30, -20, -30, 10, -20, 0, 100]
        even = Ferrox.round(t, decimals: -1, ties: :even)
        assert {even.type, list(even)} == {t.type, [20, 20, -20, -20, 10, -20, 0, 100]}
        assert list(Ferrox.round(t, decimals: -3)) == List.duplicate(0, 8)
        assert Ferrox.round(t, decimals: 3) == t
      end

      last = 0xFFFF_FFFF_FFFF_FFFF
      most = Ferrox.tensor([last, 5 * 10 ** 18], type: :u64)

      # Past the last integer, it wraps around.
      assert list(Ferrox.round(most, decimals: -1)) == [last + 5 - 2 ** 64, 5 * 10 ** 18]

      most = Ferrox.tensor([0x7FFF_FFFF_FFFF_FFFF, -0x7FFF_FFFF_FFFF_FFFF], type: :s64)
      assert list(Ferrox.round(most, decimals: -18)) == [9 * 10 ** 18, -9 * 10 ** 18]
      assert list(Ferrox.round(Ferrox.tensor(127, type: :s8), decimals: -1)) == [130 - 256]
    end

    test "has the type of a system" do
      bools = Ferrox.tensor([true, false], type: :bool)
      assert Ferrox.round(bools, decimals: 1, promotion: :numpy).type == {:f, 16}
      assert Ferrox.round(1.25, decimals: 1, promotion: :jax).weak
      assert Ferrox.round(1.25, decimals: 1, promotion: :numpy).type == {:f, 64}
    end

    test "refuses what it can't do" do
      for wrong <- [1.5, 309, nil, :two],
          do:
            raises(
              "round: :decimals must be an integer from -308 to 308, got: #{inspect(wrong)}",
              fn ->
                Ferrox.round(1.5, decimals: wrong)
              end
            )

      raises("round: :ties must be :away or :even, got: :odd", fn ->
        Ferrox.round(1, ties: :odd)
      end)

      raises("at least -18 for integers, got: -19 for s32", fn ->
        Ferrox.round(Ferrox.tensor([1]), decimals: -19)
      end)

      for opts <- [[], [decimals: 1], [ties: :even]] do
        raises("round is not defined for c64", fn ->
          Ferrox.round(Ferrox.Complex.new(1.5, 2.5), opts)
        end)
      end

      raises("unknown option :digits", fn -> Ferrox.round(1.5, digits: 2) end)
    end
  end
end
