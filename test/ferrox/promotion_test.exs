defmodule Ferrox.PromotionTest do
  use ExUnit.Case, async: true

  alias Ferrox.{Golden, Promotion, Type}

  doctest Ferrox.Promotion

  @golden [nx: "0.13.1", nx_0_9: "0.9.2"]

  for {system, version} <- @golden do
    test "every pair under #{system} is that of Nx #{version}" do
      cells = Golden.cells("nx_merge_#{unquote(version)}.csv")
      types = Promotion.types(unquote(system))
      assert length(cells) == length(types) ** 2

      for {left, right, expected} <- cells do
        left = String.to_atom(left)
        right = String.to_atom(right)
        type = Promotion.promote(left, right, system: unquote(system))

        assert Type.to_string(type) == expected,
               "#{left} with #{right} is #{expected}, got #{inspect(type)}"

        # The fast path, and tuples.
        tuples = Enum.map([left, right], &Type.normalize!/1)

        assert apply(Promotion, :merge, [unquote(system) | tuples]) == type,
               "#{left} with #{right}"
      end
    end
  end

  test "systems/0 lists what Rust has" do
    assert Promotion.systems() == [:nx, :nx_0_9]
    assert length(Promotion.types()) == 20
    assert Promotion.types(:nx) -- Promotion.types(:nx_0_9) == [{:f8_e4m3fn, 8}]
  end

  test "the default is Nx as it is today" do
    assert Promotion.promote(:f64, :c64) == {:c, 128}
    assert Promotion.promote(:f64, :c64, []) == {:c, 128}
    assert Promotion.promote(:f64, :c64, system: :nx_0_9) == {:c, 64}
  end

  describe "laws" do
    # merge/3 counts on the first one where operands have one type.
    test "a type with itself stays" do
      for system <- Promotion.systems(), type <- Promotion.types(system) do
        assert Promotion.lookup(system, type, type) == type, "#{inspect(type)} under #{system}"
      end
    end

    test "operands commute, but for f8_e4m3fn with four floats" do
      assert non_commuting(:nx_0_9) == []

      assert non_commuting(:nx) ==
               for(
                 float <- [f: 8, f: 16, f: 32, f: 64],
                 pair <- [{float, {:f8_e4m3fn, 8}}, {{:f8_e4m3fn, 8}, float}],
                 do: pair
               )
               |> Enum.sort()
    end

    test "grouping doesn't matter, but for eight triples with f8_e4m3fn" do
      assert non_associating(:nx_0_9) == []
      triples = non_associating(:nx)
      assert length(triples) == 8
      assert Enum.all?(triples, &({:f8_e4m3fn, 8} in &1))
    end

    test "the result absorbs its operands" do
      for system <- Promotion.systems(),
          a <- Promotion.types(system),
          b <- Promotion.types(system) do
        merged = Promotion.merge(system, a, b)

        for operand <- [a, b] do
          assert Promotion.merge(system, merged, operand) == merged,
                 "#{inspect(a)} with #{inspect(b)} under #{system}"
        end
      end
    end
  end

  defp non_commuting(system) do
    types = Promotion.types(system)

    Enum.sort(
      for a <- types,
          b <- types,
          Promotion.merge(system, a, b) != Promotion.merge(system, b, a),
          do: {a, b}
    )
  end

  defp non_associating(system) do
    types = Promotion.types(system)
    merge = &Promotion.merge(system, &1, &2)

    for a <- types, b <- types, c <- types, merge.(merge.(a, b), c) != merge.(a, merge.(b, c)) do
      [a, b, c]
    end
  end

  describe "numbers" do
    test "beyond 64 bits are no wider" do
      for system <- Promotion.systems(),
          type <- Promotion.types(system),
          n <- [2 ** 64, 2 ** 100] do
        assert Promotion.merge_number(system, type, n) ==
                 Promotion.merge_number(system, type, 2 ** 64 - 1)

        assert Promotion.merge_number(system, type, -n) ==
                 Promotion.merge_number(system, type, -(2 ** 63))
      end
    end

    test "never make an integer type narrower" do
      for system <- Promotion.systems(),
          {kind, size} = type <- Promotion.types(system),
          kind in [:s, :u],
          power <- 0..70,
          n <- [2 ** power, 2 ** power - 1, -(2 ** power)] do
        {merged, merged_size} = Promotion.merge_number(system, type, n)
        assert merged_size >= size
        assert merged == if(kind == :s or n < 0, do: :s, else: :u)
      end
    end
  end

  describe "bad input" do
    test "an unknown system" do
      message = "unknown promotion system :ny, expected one of: :nx, :nx_0_9"
      assert_raise ArgumentError, message, fn -> Promotion.promote(:u8, :s8, system: :ny) end
      assert_raise ArgumentError, message, fn -> Promotion.types(:ny) end
      assert_raise ArgumentError, message, fn -> Promotion.merge(:ny, {:u, 8}, {:u, 8}) end

      assert_raise ArgumentError, ~r/unknown promotion system "nx"/, fn ->
        Promotion.promote(:u8, :s8, system: "nx")
      end
    end

    test "an unknown type" do
      for bad <- [
            :u1,
            {:u, 1},
            {:u, 8, 8},
            "u8",
            nil,
            8,
            {:tuple, 2},
            {:u, -8},
            {:u, 8.0},
            {"u", 8}
          ] do
        message = ~r/^unknown type #{Regex.escape(inspect(bad))}, expected .*:u2, .*:c128/
        assert_raise ArgumentError, message, fn -> Promotion.promote(bad, :s8) end
        assert_raise ArgumentError, message, fn -> Promotion.promote(:s8, bad) end
        assert_raise ArgumentError, message, fn -> Promotion.merge(:nx, bad, {:s, 8}) end
        assert_raise ArgumentError, message, fn -> Promotion.merge(:nx, {:s, 8}, bad) end
        assert_raise ArgumentError, message, fn -> Promotion.merge_number(:nx, bad, 1) end
      end
    end

    test "an unknown option" do
      assert_raise ArgumentError, "unknown option :strict, expected: :system", fn ->
        Promotion.promote(:u8, :s8, system: :nx, strict: true)
      end

      assert_raise ArgumentError, "expected a keyword list of options, got: :nx", fn ->
        Promotion.promote(:u8, :s8, :nx)
      end
    end

    test "a pair that the system leaves open names both types" do
      assert_raise ArgumentError,
                   "nx_0_9 does not define the promotion of s8 with f8_e4m3fn: it has no type f8_e4m3fn",
                   fn -> Promotion.promote(:s8, :f8_e4m3fn, system: :nx_0_9) end

      assert_raise ArgumentError,
                   "nx does not define the promotion of f32 with a number that is not real",
                   fn -> Promotion.merge_number(:nx, {:f, 32}, Ferrox.Complex.new(1)) end
    end
  end
end
