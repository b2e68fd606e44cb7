defmodule Ferrox.PromotionGoldenTest do
  # Every answer of a live system that the oracle files hold.
  use ExUnit.Case, async: true

  alias Ferrox.{Golden, Promotion}
  alias Ferrox.Promotion.Names

  @tables [
    {:jax, [], "jax_promotion.csv", 324},
    {:jax, [x64: false], "jax_promotion_x32_result.csv", 324},
    {:jax, [strict: true], "jax_strict.csv", 324},
    {:numpy, [], "numpy_promotion.csv", 196},
    {:numpy, [scalar: :legacy], "numpy_promotion.csv", 196},
    {:array_api, [], "array_api_promotion.csv", 169},
    {:ivy, [], "ivy_promotion_precise.csv", 225},
    {:ivy, [precise: true], "ivy_promotion_precise.csv", 225},
    {:ivy, [precise: false], "ivy_promotion_nonprecise.csv", 225},
    {:ivy, [array_api: true], "ivy_promotion_array_api_only.csv", 225},
    {:ivy, [array_api: true, precise: false], "ivy_promotion_array_api_only.csv", 225},
    {:ivy_torch, [], "torch_promotion_from_ivy_frontend.csv", 144},
    {:ivy_onnx, [], "torch_promotion_from_ivy_frontend.csv", 144}
  ]

  for {system, opts, file, count} <- @tables do
    test "every pair under #{system} #{inspect(opts)} is that of #{file}" do
      opts = [{:system, unquote(system)} | unquote(opts)]
      cells = Golden.cells(unquote(file))
      assert length(cells) == unquote(count)

      for {left, right, expected} <- cells do
        for given <- [[left, right], Enum.map([left, right], &Names.numpy(type(&1)))],
            [left, right] = Enum.map(given, &type/1) do
          assert answer(fn -> Promotion.promote(left, right, opts) end) == type(expected),
                 "#{inspect(left)} with #{inspect(right)}"

          assert answer(fn -> Promotion.result_type([left, right], opts) end) == type(expected),
                 "#{inspect(left)} with #{inspect(right)}"
        end
      end
    end
  end

  test "every pair of Ivy's frontends" do
    rows = Golden.rows("ivy_frontend_promotion.csv")
    assert length(rows) == 916

    for [frontend, left, right, expected] <- rows do
      system = String.to_existing_atom("ivy_" <> frontend)

      assert Promotion.promote(left, right, system: system) == type(expected),
             "#{frontend}: #{left} with #{right}"
    end

    known =
      MapSet.new(rows, fn [frontend, left, right, _] -> {"ivy_" <> frontend, left, right} end)

    # What the file doesn't have is refused.
    refused =
      for frontend <- ~w(ivy_numpy ivy_mxnet ivy_paddle),
          {_, left, _} <- Enum.take(Names.all(), 15),
          {_, right, _} <- Enum.take(Names.all(), 15),
          not MapSet.member?(known, {frontend, left, right}) do
        system = String.to_existing_atom(frontend)
        assert answer(fn -> Promotion.promote(left, right, system: system) end) == nil
      end

    assert length(refused) == 3 * 225 - 210 - 72 - 121
    assert Promotion.promote(:u8, :u8, system: :ivy_tensorflow) == {:u, 8}
    assert answer(fn -> Promotion.promote(:u8, :u16, system: :ivy_tensorflow) end) == nil
  end

  describe "JAX" do
    for {mode, opts} <- [{"x64", []}, {"x32", [x64: false]}] do
      test "numbers beside arrays, #{mode}" do
        golden = Golden.json("jax_scalar_weak.json")[unquote(mode)]

        for {code, answers} <- golden["array_plus_python_literal"],
            {literal, answer} <- answers do
          opts = [{:system, :jax} | unquote(opts)]
          result = Promotion.result_type([{:array, type(code)}, literal(literal)], opts)
          assert_live(result, answer, opts)
        end

        for {literal, answer} <- golden["asarray_literal"] do
          opts = [{:system, :jax} | unquote(opts)]
          assert_live(Promotion.result_type([literal(literal)], opts), answer, opts)
        end
      end

      test "result_type of several operands, #{mode}" do
        golden = Golden.json("jax_scalar_weak.json")[unquote(mode)]["result_type"]
        opts = [{:system, :jax} | unquote(opts)]

        compared =
          for {text, answer} <- golden,
              text =~ ~r/^[a-z0-9_,.]+$/i,
              not (text =~ ~r/int4|float8|array|np\./) do
            operands = text |> String.split(",") |> Enum.map(&python/1)
            assert_live(Promotion.result_type(operands, opts), answer, opts)
          end

        assert length(compared) == 22
      end
    end

    test "strict promotion of several operands" do
      for {text, answer} <- Golden.json("jax_strict.json")["n_ary"] do
        operands = text |> String.split(",") |> Enum.map(&type/1)
        result = answer(fn -> Promotion.result_type(operands, system: :jax, strict: true) end)
        assert result == ((answer["allowed"] && type(answer["result"])) || nil), text
      end
    end

    test "68 of 324 pairs are allowed under strict" do
      types = Promotion.types(:jax)

      allowed =
        for a <- types,
            b <- types,
            type = answer(fn -> Promotion.promote(a, b, system: :jax, strict: true) end),
            do: type

      assert length(allowed) == 68
    end

    test "operands commute and associate" do
      for opts <- [[], [x64: false], [strict: true]] do
        opts = [{:system, :jax} | opts]
        types = Promotion.types(opts)
        assert length(types) == 18
        merge = fn a, b -> a && b && answer(fn -> Promotion.promote(a, b, opts) end) end
        merged = for a <- types, b <- types, into: %{}, do: {{a, b}, merge.(a, b)}

        for a <- types, b <- types do
          assert merged[{a, b}] == merged[{b, a}]
          for c <- types, do: assert(merged[{merged[{a, b}], c}] == merged[{a, merged[{b, c}]}])
        end
      end
    end

    test "weak results and nil" do
      assert Promotion.result_type([nil, :s8], system: :jax) == {:f, 64}
      assert Promotion.result_type([nil, :s8], system: :jax, x64: false) == {:f, 32}
      assert Promotion.result_type([:u64, :s64], system: :jax) == :float
      assert Promotion.result_type([:u64, :s64], system: :jax, x64: false) == {:s, 32}
      assert Promotion.result_type([true, 1], system: :jax) == :int
    end
  end

  describe "NumPy" do
    test "numbers beside scalars and arrays, before and after NumPy 2" do
      golden = Golden.json("numpy_scalar.json")

      compared =
        for {version, rule} <- [{"numpy_2.4.6", :nep50}, {"numpy_1.26.4", :legacy}],
            {name, answers} <- golden[version],
            {literal, answer} <- answers,
            {how, expected} <- answer do
          operand = if how == "array", do: {:array, name}, else: name

          result =
            Promotion.result_type([operand, literal(literal)], system: :numpy, scalar: rule)

          assert result == type(expected), "#{version}: #{how} #{name} with #{literal}"
        end

      assert length(compared) == 2 * 14 * 4 * 2
    end
  end

  test "the array API's numbers" do
    for {name, answers} <- Golden.json("array_api_scalar.json")["cases"],
        {literal, expected} <- answers do
      result =
        answer(fn -> Promotion.result_type([name, literal(literal)], system: :array_api) end)

      assert result == type(expected), "#{name} with #{literal}"
    end
  end

  describe "Ivy" do
    test "numbers beside arrays and numbers" do
      golden = Golden.json("ivy_behaviour.json")["promote_types_of_inputs"]

      for {mode, precise} <- [{"precise", true}, {"nonprecise", false}],
          {name, answers} <- golden["jax"][mode],
          {text, expected} <- answers do
        # The literals of pairs, or one beside the array.
        operands =
          if name == "_scalar_scalar",
            do: text |> String.split(",") |> Enum.map(&literal/1),
            else: [name, literal(text)]

        opts = [system: :ivy, precise: precise]

        assert answer(fn -> Promotion.result_type(operands, opts) end) == type(expected),
               "#{mode}: #{inspect(operands)}"
      end
    end

    test "can_cast is what promotion keeps" do
      for {file, opts} <- [
            {"ivy_can_cast.csv", [system: :ivy]},
            {"ivy_can_cast_nonprecise.csv", [system: :ivy, precise: false]},
            {"array_api_can_cast.csv", [system: :array_api]}
          ],
          {from, to, expected} <- Golden.cells(file) do
        result = answer(fn -> Promotion.promote(from, to, opts) end)
        assert result == type(to) == (expected == "1"), "#{file}: #{from} to #{to}"
      end
    end

    test "nil is nothing" do
      assert Promotion.result_type([nil, :s8], system: :ivy) == {:s, 8}
      assert Promotion.result_type([:s8, nil], system: :ivy) == {:s, 8}
    end

    test "the tables commute and don't associate, in 40 and 64 triples" do
      for {precise, count} <- [{true, 40}, {false, 64}] do
        types = for {type, _, _} <- Enum.take(Names.all(), 15), do: type
        merge = &Promotion.promote(&1, &2, system: :ivy, precise: precise)
        for a <- types, b <- types, do: assert(merge.(a, b) == merge.(b, a))

        triples =
          for a <- types,
              b <- types,
              c <- types,
              merge.(merge.(a, b), c) != merge.(a, merge.(b, c)),
              do: 1

        assert length(triples) == count
      end
    end
  end

  test "one table of names" do
    compared =
      for [code, numpy, _, ivy, short | rest] <- Golden.rows("dtype_names.csv"), code != "" do
        type = type(code)
        assert Names.code(type) == code
        if List.last(rest) == "1", do: assert(Promotion.weak?(type))
        if numpy != "", do: assert(Promotion.fetch(numpy) == type)
        if ivy != "", do: assert(Names.numpy(type) == ivy)
        if short != "", do: assert(Names.short(type) == short)
      end

    assert length(compared) == 18
  end

  defp assert_live(result, %{"dtype" => dtype, "weak" => weak}, opts) do
    assert {Promotion.concrete(result, opts), Promotion.weak?(result)} == {type(dtype), weak}
  end

  defp answer(fun) do
    fun.()
  rescue
    Ferrox.PromotionError -> nil
    ArgumentError -> nil
  end

  defp type(name), do: Names.from_numpy(name) || Names.from_code(name)

  defp literal("1j"), do: Ferrox.Complex.new(0, 1)
  defp literal("True"), do: true
  defp literal(text), do: Golden.term(text)

  # As the golden file writes Python's types and values.
  defp python(kind) when kind in ~w(int float complex), do: String.to_existing_atom(kind)
  defp python("bool_"), do: :bool
  defp python("None"), do: nil
  defp python("3j"), do: Ferrox.Complex.new(0, 3)
  defp python(text), do: type(text) || literal(text)
end
