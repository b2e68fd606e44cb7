defmodule Ferrox.PromotionTest do
  use ExUnit.Case, async: true

  alias Ferrox.{Golden, Promotion, Type}

  doctest Ferrox.Promotion
  doctest Ferrox.PromotionError

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

  @systems [:nx, :nx_0_9, :jax, :numpy, :array_api, :ivy] ++
             [:ivy_torch, :ivy_paddle, :ivy_numpy, :ivy_jax, :ivy_onnx, :ivy_mxnet] ++
             [:ivy_tensorflow]
  @nx [:nx, :nx_0_9]

  test "systems/0 lists what Rust has" do
    assert Promotion.systems() == @systems
    assert length(Promotion.types()) == 20
    assert Promotion.types(:nx) -- Promotion.types(:nx_0_9) == [{:f8_e4m3fn, 8}]
  end

  test "the default is Nx as it is today" do
    assert Promotion.promote(:f64, :c64) == {:c, 128}
    assert Promotion.promote(:f64, :c64, []) == {:c, 128}
    assert Promotion.promote(:f64, :c64, system: :nx_0_9) == {:c, 64}
  end

  describe "laws" do
    # operation/3 counts on the first one where operands have one type.
    test "a type with itself stays" do
      for system <- Promotion.systems(),
          type <- Promotion.types(system),
          not Promotion.weak?(type) do
        assert Promotion.merge(system, type, type) == type, "#{inspect(type)} under #{system}"
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
      for system <- @nx,
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
      for system <- @nx,
          type <- Promotion.types(system),
          n <- [2 ** 64, 2 ** 100] do
        assert Promotion.merge_number(system, type, n) ==
                 Promotion.merge_number(system, type, 2 ** 64 - 1)

        assert Promotion.merge_number(system, type, -n) ==
                 Promotion.merge_number(system, type, -(2 ** 63))
      end
    end

    test "never make an integer type narrower" do
      for system <- @nx,
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
      message =
        "unknown promotion system :ny, expected one of: " <>
          Enum.map_join(@systems, ", ", &inspect/1)

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
      assert_raise ArgumentError, "unknown option :strict of :nx, expected: :system", fn ->
        Promotion.promote(:u8, :s8, system: :nx, strict: true)
      end

      assert_raise ArgumentError, "expected a keyword list of options, got: [1]", fn ->
        Promotion.promote(:u8, :s8, [1])
      end

      message = "invalid value for option :scalar: :new, expected :nep50 or :legacy"

      assert_raise ArgumentError, message, fn ->
        Promotion.promote(:u8, :s8, system: :numpy, scalar: :new)
      end

      assert_raise ArgumentError, ~r/the system is given twice/, fn ->
        Promotion.types({:jax, system: :nx})
      end
    end

    test "a pair that the system leaves open names both types" do
      assert_raise ArgumentError,
                   ~r/^nx_0_9 does not define the promotion of s8 with f8_e4m3fn: it has no type f8_e4m3fn, only u2, /,
                   fn -> Promotion.promote(:s8, :f8_e4m3fn, system: :nx_0_9) end

      error =
        assert_raise Ferrox.PromotionError, fn ->
          Promotion.result_type([:u64, 1, :s8], system: :array_api)
        end

      assert error.operands == [{:u, 64}, :int, {:s, 8}]
      assert error.promotion == [system: :array_api]
      assert error.message =~ "u64, int* and s8 have no implicit promotion"
    end

    test "no operands, and what is none" do
      for system <- @systems do
        assert_raise ArgumentError, "expected at least one operand", fn ->
          Promotion.result_type([], system: system)
        end
      end

      assert_raise ArgumentError, "expected a list of operands, got: :u8", fn ->
        apply(Promotion, :result_type, [:u8])
      end

      assert_raise ArgumentError, ~r/^unknown type "uint7"/, fn ->
        Promotion.result_type([1, "uint7"])
      end

      assert_raise ArgumentError, "nil stands for no type under system: :nx", fn ->
        Promotion.result_type([:u8, nil], system: :nx)
      end

      assert_raise ArgumentError, ~r/^no type holds 1 under system: :array_api/, fn ->
        Promotion.result_type([1], system: :array_api)
      end
    end

    test "a number that no type holds" do
      for {system, number} <- [
            jax: 2 ** 63,
            jax: -(2 ** 100),
            numpy: 2 ** 64,
            ivy: 2 ** 64,
            array_api: 256
          ] do
        message = ~r/#{number} (is out of the range|under)/

        assert_raise ArgumentError, message, fn ->
          Promotion.result_type([:u8, number], system: system)
        end
      end

      assert Promotion.result_type([:u8, 256], system: :jax) == {:u, 8}
      assert Promotion.result_type([:u8, 2 ** 64], system: :nx) == {:u, 64}
    end

    test "with/2 takes a function" do
      assert_raise ArgumentError, "expected a function without arguments, got: 1", fn ->
        Promotion.with(:jax, 1)
      end

      assert_raise ArgumentError, ~r/unknown promotion system/, fn ->
        Promotion.with(:jacks, fn -> 1 end)
      end
    end
  end

  describe "what is in effect" do
    test "nests, refines and is restored after a raise" do
      assert Promotion.current() == [system: :nx]

      Promotion.with([system: :jax, x64: false], fn ->
        assert Promotion.promote(:u32, :s32) == {:s, 32}

        catch_error(
          Promotion.with([strict: true], fn ->
            assert Promotion.current() == [system: :jax, strict: true, x64: false]
            Promotion.promote(:u32, :s32)
          end)
        )

        assert Promotion.current() == [system: :jax, x64: false]
        assert Promotion.promote(:u32, :s32, x64: true) == {:s, 64}
        assert Promotion.with([x64: true], &Promotion.current/0) == [system: :jax]

        assert Promotion.with({:ivy, precise: false}, fn -> Promotion.promote(:s32, :f32) end) ==
                 {:f, 32}

        catch_throw(Promotion.with(:numpy, fn -> throw(:out) end))
        assert Promotion.promote(:s32, :f32, system: :nx) == {:f, 32}
        assert Task.await(Task.async(&Promotion.current/0)) == [system: :nx]
      end)

      assert Promotion.current() == [system: :nx]
    end
  end

  describe "strict" do
    test "names the types in order, the mode and both remedies" do
      error =
        assert_raise Ferrox.PromotionError, fn ->
          Promotion.result_type([:s32, 1.0, :u8], system: :jax, strict: true)
        end

      assert error.operands == [{:s, 32}, :float, {:u, 8}]
      assert error.promotion == [system: :jax, strict: true]

      assert error.message ==
               "s32, float* and u8 have no implicit promotion under system: :jax, strict: true. " <>
                 "Cast the operands to the type you want, or set strict: false"
    end
  end
end
