defmodule Ferrox.OpsPromotionTest do
  # Operations go by the promotion that is in effect.
  use Ferrox.DirectCase, async: true

  alias Ferrox.{Golden, Promotion, Tensor}
  alias Ferrox.Promotion.Names

  # Each system, with each choice of its options.
  @modes for {system, switches} <- [
               nx: [],
               nx_0_9: [],
               jax: [strict: true, x64: false],
               numpy: [scalar: :legacy],
               array_api: [],
               ivy: [precise: false, array_api: true],
               ivy_torch: [],
               ivy_paddle: [],
               ivy_numpy: [],
               ivy_jax: [],
               ivy_onnx: [],
               ivy_mxnet: [],
               ivy_tensorflow: []
             ],
             options <-
               Enum.reduce(switches, [[]], fn s, all -> all ++ Enum.map(all, &[s | &1]) end),
             do: {system, options}

  test "every system is asked" do
    assert @modes |> Keyword.keys() |> Enum.uniq() == Promotion.systems()
  end

  describe "the type of an operation is that of its operands' promotion" do
    @cases String.to_integer(System.get_env("FERROX_CASES", "150"))

    for {system, options} <- @modes do
      test "under #{system} #{inspect(options)}" do
        promotion = {unquote(system), unquote(options)}
        :rand.seed(:exsss, {17, 4, 2})

        counts =
          for _ <- 1..@cases do
            operands = for _ <- 1..Enum.random(2..3), do: operand(promotion)
            compare(promotion, operands)
          end

        # Both happen, but where a system answers everything or hardly anything.
        assert Enum.count(counts, &(&1 == :same)) > 0
      end
    end
  end

  # Operations in which a type means nothing but itself.
  defp compare(promotion, operands) do
    expected = attempt(fn -> Promotion.result_type(operands, promotion) end)
    option = [promotion: promotion]

    results =
      case operands do
        [a, b] ->
          if is_struct(a, Tensor) or is_struct(b, Tensor) do
            [select: attempt(fn -> Ferrox.select(true, a, b, option) end)] ++
              if(expected in [:error, :bool],
                do: [],
                else: [
                  add: attempt(fn -> Ferrox.add(a, b, option) end),
                  multiply: attempt(fn -> Ferrox.multiply(a, b, promotion: mode(promotion)) end),
                  with:
                    attempt(fn -> Promotion.with(promotion, fn -> Ferrox.subtract(a, b) end) end)
                ]
              )
          else
            []
          end

        [a, b, c] ->
          if Enum.all?([a, b, c], &match?(%Tensor{shape: {_}}, &1)),
            do: [
              concatenate: attempt(fn -> Ferrox.concatenate([a, b, c], option) end),
              stack: attempt(fn -> Ferrox.stack([a, b, c], option) end)
            ],
            else: []
      end

    for {op, result} <- results do
      case {expected, result} do
        {:error, :error} ->
          :ok

        {type, %Tensor{} = tensor} when type != :error ->
          assert {tensor.type, tensor.weak} ==
                   {Promotion.concrete(type, promotion),
                    Promotion.weak?(type) and elem(promotion, 0) == :jax},
                 "#{op} of #{inspect(operands)} under #{inspect(promotion)}: #{inspect(type)}"

        # Only a value can be the reason.
        _ ->
          flunk("#{op} of #{inspect(operands)}: #{inspect(expected)} and #{inspect(result)}")
      end
    end

    if expected == :error, do: :refused, else: :same
  end

  # As a keyword list.
  defp mode({system, options}), do: [{:system, system} | options]

  defp attempt(fun) do
    fun.()
  rescue
    error in [ArgumentError, Ferrox.PromotionError] ->
      refute error.message == ""
      :error
  end

  defp operand(promotion) do
    types = Promotion.types(promotion) ++ [:bool]

    case :rand.uniform(10) do
      n when n <= 5 -> Ferrox.full({2}, 1, type: strong(types), promotion: :nx)
      n when n <= 7 -> Ferrox.tensor(1, type: strong(types), promotion: :nx)
      8 -> Ferrox.full({2}, Enum.random([1, 1.0]), promotion: :jax)
      9 -> Enum.random([1, 0, 100, true, false, 1.0, 2.5, :nan, :infinity])
      10 -> Enum.random([Ferrox.Complex.new(1, 2), 1.0e3, 300, -1])
    end
  end

  defp strong(types), do: types |> Enum.reject(&Promotion.weak?/1) |> Enum.random()

  test "before NumPy 2 the value of a scalar beside an array decides" do
    rows = Golden.rows("numpy_legacy_scalars.csv")
    assert length(rows) > 500
    legacy = [promotion: {:numpy, scalar: :legacy}]

    for [array, scalar, value, expected] <- rows do
      type = Names.from_numpy(scalar)
      array = Ferrox.full({2}, 1, type: Names.from_numpy(array))
      scalar = Ferrox.tensor(number(value), type: type)

      for operands <- [[array, scalar], [scalar, array]] do
        result = apply(Ferrox, :select, [true | operands] ++ [legacy])
        assert Names.numpy(result.type) == expected, "#{inspect(operands)} is #{expected}"
      end
    end
  end

  defp number(text) do
    case Integer.parse(text) do
      {integer, ""} -> integer
      _ -> text |> Float.parse() |> elem(0)
    end
  end

  test "two of Ivy's frontends let a scalar adopt an array's type of its kind" do
    s8 = Ferrox.tensor([1], type: :s8)
    f16 = Ferrox.tensor([1], type: :f16)
    s64 = Ferrox.tensor(1, type: :s64)

    for system <- [:ivy_torch, :ivy_numpy] do
      assert Ferrox.type(Ferrox.add(s8, s64, promotion: system)) == {:s, 8}
      assert Ferrox.type(Ferrox.add(s64, s8, promotion: system)) == {:s, 8}
      assert Ferrox.type(Ferrox.add(f16, Ferrox.tensor(1.0), promotion: system)) == {:f, 16}
      # Of another kind, or beside another scalar, it counts as it is.
      s8_scalar = Ferrox.tensor(1, type: :s8)
      assert Ferrox.type(Ferrox.add(s8_scalar, s64, promotion: system)) == {:s, 64}
    end

    # bf16 is a kind of its own.
    bf16 = Ferrox.tensor([1], type: :bf16)
    f32 = Ferrox.tensor(1, type: :f32)
    assert Ferrox.type(Ferrox.add(bf16, f32, promotion: :ivy_torch)) == {:f, 32}
    assert Ferrox.type(Ferrox.add(s8, s64, promotion: :ivy_jax)) == {:s, 64}
  end

  test "a system with options, in each form" do
    a = Ferrox.tensor([1], type: :s32)

    for promotion <- [
          {:ivy, precise: false},
          [system: :ivy, precise: false],
          {:ivy, [precise: false]}
        ] do
      assert Ferrox.type(Ferrox.add(a, Ferrox.tensor([1.0]), promotion: promotion)) == {:f, 32}
    end

    assert Ferrox.type(Ferrox.add(a, Ferrox.tensor([1.0]), promotion: :ivy)) == {:f, 64}

    # Options alone refine what is in effect.
    Promotion.with(:ivy, fn ->
      assert Ferrox.type(Ferrox.add(a, Ferrox.tensor([1.0]), promotion: [precise: false])) ==
               {:f, 32}
    end)
  end

  test "what is in effect is restored after a raise in an operation" do
    assert_raise Ferrox.PromotionError, fn ->
      Promotion.with(:array_api, fn ->
        Ferrox.add(Ferrox.tensor([1]), Ferrox.tensor([1.0]))
      end)
    end

    assert Ferrox.type(Ferrox.add(Ferrox.tensor([1]), Ferrox.tensor([1.0]))) == {:f, 32}
  end

  test "the Array API refuses what it leaves open" do
    Promotion.with(:array_api, fn ->
      int = Ferrox.tensor([1, 2])
      assert int.type == {:s, 64}

      for fun <- [
            fn -> Ferrox.add(int, Ferrox.tensor([1.0])) end,
            fn -> Ferrox.add(int, 1.5) end,
            fn -> Ferrox.add(Ferrox.tensor([true]), 1) end,
            fn -> Ferrox.add(int, Ferrox.tensor([1], type: :u64)) end,
            fn -> Ferrox.less(int, 1.5) end,
            fn -> Ferrox.concatenate([int, Ferrox.tensor([true])]) end
          ] do
        assert_raise Ferrox.PromotionError,
                     ~r/no implicit promotion under system: :array_api/,
                     fun
      end

      for op <- [:exp, :sqrt, :mean],
          do: raises("#{op} is not defined for s64 under", fn -> apply(Ferrox, op, [int]) end)

      raises("divide is not defined for s64 under system: :array_api", fn ->
        Ferrox.divide(int, 2)
      end)

      raises("logical_and is not defined for s64", fn -> Ferrox.logical_and(int, int) end)
      assert Ferrox.type(Ferrox.add(1, 2)) == {:s, 64}
    end)
  end

  test "literals have each system's own types" do
    for {system, int, float, bool} <- [
          {:nx, {:s, 32}, {:f, 32}, {:u, 8}},
          {:nx_0_9, {:s, 32}, {:f, 32}, {:u, 8}},
          {:jax, {:s, 64}, {:f, 64}, :bool},
          {{:jax, x64: false}, {:s, 32}, {:f, 32}, :bool},
          {:numpy, {:s, 64}, {:f, 64}, :bool},
          {:array_api, {:s, 64}, {:f, 64}, :bool},
          {:ivy, {:s, 32}, {:f, 32}, :bool}
        ] do
      type = &Ferrox.type(Ferrox.tensor(&1, promotion: system))
      assert {type.(1), type.([1, 2])} == {int, int}
      assert {type.(1.0), type.([1, 2.0]), type.(:nan)} == {float, float, float}
      assert {type.(true), type.([true, false])} == {bool, bool}
      assert type.([true, 2]) == int
      assert Ferrox.type(Ferrox.iota({2}, promotion: system)) == int
      assert Ferrox.type(Ferrox.full({2}, 1.5, promotion: system)) == float
      assert Ferrox.type(1, promotion: system) == int
    end
  end

  describe "bool" do
    @table [[false, false, true, true], [false, true, false, true]]

    setup do
      [a, b] = for row <- @table, do: Ferrox.tensor(row, type: :bool)
      %{a: a, b: b}
    end

    test "is stored as bytes of 0 and 1 and read as booleans", %{a: a, b: b} do
      assert Ferrox.to_binary(b) == <<0, 1, 0, 1>>
      assert Ferrox.to_list(a) == [false, false, true, true]
      assert Ferrox.to_flat_list(Ferrox.reshape(b, {2, 2})) == [false, true, false, true]
      assert Ferrox.to_list(Ferrox.reshape(b, {2, 2})) == [[false, true], [false, true]]
      assert Ferrox.to_number(Ferrox.tensor(true, type: :bool)) == true
      assert Ferrox.byte_size(b) == 4
      assert Ferrox.type(b) == :bool
      assert inspect(b) == "#Ferrox.Tensor<\n  bool[4]\n  [false, true, false, true]\n>"
      assert inspect(Ferrox.tensor(true, type: :bool)) == "#Ferrox.Tensor<\n  bool\n  true\n>"
      assert Ferrox.from_binary(<<0, 1>>, :bool) == Ferrox.tensor([false, true], type: :bool)
      assert Ferrox.tensor([0, 1, true], type: :bool) |> Ferrox.to_list() == [false, true, true]
      raises("the bytes of bool are 0 and 1", fn -> Ferrox.from_binary(<<2>>, :bool) end)

      raises("tensor: 2 does not fit bool; as_type/2 makes true", fn ->
        Ferrox.tensor(2, type: :bool)
      end)

      raises("tensor: 1.0 does not fit bool", fn -> Ferrox.tensor([1.0], type: :bool) end)
    end

    test "is cast to every type and from every type", %{b: b} do
      for type <- Promotion.types(:nx) do
        cast = Ferrox.as_type(b, type)
        assert cast == Ferrox.tensor([0, 1, 0, 1], type: type)
        assert Ferrox.as_type(cast, :bool) == b
      end

      assert Ferrox.as_type(b, :bool) == b

      for {list, type} <- [
            {[0.0, -0.0, 0.5, :nan], :f32},
            {[0, 256, -1, 3], :s32},
            {[:infinity, 0.0, 1.0e-40, 1.0], :f64}
          ] do
        expected = for x <- list, do: not (is_number(x) and x == 0)
        assert Ferrox.to_list(Ferrox.as_type(Ferrox.tensor(list, type: type), :bool)) == expected
      end

      complex = Ferrox.tensor([Ferrox.Complex.new(0, 0), Ferrox.Complex.new(0, 2)])
      assert Ferrox.to_list(Ferrox.as_type(complex, :bool)) == [false, true]
    end

    test "has the arithmetic of truth under JAX and NumPy", %{a: a, b: b} do
      for system <- [:numpy, :jax, :ivy] do
        table = fn op -> Ferrox.to_list(apply(Ferrox, op, [a, b, [promotion: system]])) end
        assert table.(:add) == [false, true, true, true]
        assert table.(:max) == [false, true, true, true]
        assert table.(:multiply) == [false, false, false, true]
        assert table.(:min) == [false, false, false, true]
        assert table.(:bitwise_and) == [false, false, false, true]
        assert table.(:bitwise_or) == [false, true, true, true]
        assert table.(:bitwise_xor) == [false, true, true, false]
        assert table.(:logical_and) == [false, false, false, true]
        assert table.(:logical_xor) == [false, true, true, false]
        assert table.(:equal) == [true, false, false, true]
        assert table.(:less) == [false, true, false, false]
        assert table.(:pow) == [1, 0, 1, 1]
        assert table.(:left_shift) == [0, 0, 1, 2]

        one = fn op -> Ferrox.to_list(apply(Ferrox, op, [b, [promotion: system]])) end
        assert one.(:bitwise_not) == [true, false, true, false]
        assert one.(:logical_not) == [true, false, true, false]
        assert one.(:abs) == [false, true, false, true]
        assert one.(:floor) == [false, true, false, true]
        assert [1.0, _, 1.0, _] = one.(:exp)

        for op <- [:negate, :sign] do
          raises("#{op} is not defined for bool under system: #{inspect(system)}", fn ->
            apply(Ferrox, op, [a, [promotion: system]])
          end)
        end

        raises("subtract is not defined for bool", fn ->
          Ferrox.subtract(a, b, promotion: system)
        end)

        assert Ferrox.to_list(Ferrox.add(a, true, promotion: system)) == List.duplicate(true, 4)

        assert Ferrox.to_list(Ferrox.multiply(false, a, promotion: system)) ==
                 List.duplicate(false, 4)
      end

      assert Ferrox.to_list(Ferrox.round(b, promotion: :numpy)) == [0.0, 1.0, 0.0, 1.0]

      raises("remainder on s32 and s32", fn ->
        Ferrox.remainder(Ferrox.tensor([1]), Ferrox.tensor([0]))
      end)
    end

    test "meets numbers and other types as the system says", %{b: b} do
      assert Ferrox.add(b, 1, promotion: :numpy) == Ferrox.tensor([1, 2, 1, 2], type: :s64)
      assert %Tensor{type: {:s, 64}, weak: true} = Ferrox.add(b, 1, promotion: :jax)
      assert Ferrox.add(b, 1.5, promotion: :ivy).type == {:f, 32}
      s8 = Ferrox.tensor([1, 2, 3, 4], type: :s8)
      assert Ferrox.to_list(Ferrox.multiply(b, s8, promotion: :numpy)) == [0, 2, 0, 4]
      assert Ferrox.type(Ferrox.multiply(b, s8, promotion: :jax)) == {:s, 8}
      assert Ferrox.to_list(Ferrox.divide(b, 2, promotion: :numpy)) == [0.0, 0.5, 0.0, 0.5]
    end

    test "is reduced as the system says" do
      t = Ferrox.tensor([[true, false], [true, true]], type: :bool)

      for {promotion, int} <- [
            {:numpy, {:s, 64}},
            {:jax, {:s, 64}},
            {{:jax, x64: false}, {:s, 32}},
            {:ivy, {:s, 32}}
          ] do
        opts = [promotion: promotion]
        assert Ferrox.sum(t, opts) == Ferrox.tensor(3, type: int)
        assert Ferrox.product(t, opts) == Ferrox.tensor(0, type: int)
        assert Ferrox.to_list(Ferrox.sum(t, [axes: [1]] ++ opts)) == [1, 2]
        assert Ferrox.to_number(Ferrox.mean(t, opts)) == 0.75
        assert Ferrox.to_list(Ferrox.reduce_max(t, [axes: [1]] ++ opts)) == [true, true]

        assert Ferrox.to_list(Ferrox.reduce_min(t, [axes: [1], keep_axes: true] ++ opts)) == [
                 [false],
                 [true]
               ]

        assert Ferrox.to_number(Ferrox.all(t, opts)) == false
        assert Ferrox.to_number(Ferrox.any(t, opts)) == true
        assert Ferrox.to_list(Ferrox.argmax(t, [axis: 1] ++ opts)) == [0, 0]
        assert Ferrox.to_list(Ferrox.argmin(t, [axis: 1, tie_break: :high] ++ opts)) == [1, 1]
      end

      many = Ferrox.full({300}, true, type: :bool)
      assert Ferrox.to_number(Ferrox.sum(many, promotion: :numpy)) == 300
      raises("argmax: an index is no bool", fn -> Ferrox.argmax(many, type: :bool) end)
      raises("sum is not defined for bool", fn -> Ferrox.sum(many, promotion: :array_api) end)

      raises("argmax is not defined for bool", fn ->
        Ferrox.argmax(many, promotion: :array_api)
      end)

      raises("clip is not defined for bool", fn ->
        Ferrox.clip(many, false, true, promotion: :array_api)
      end)

      raises("dot is not defined for bool", fn ->
        Ferrox.dot(many, many, promotion: :array_api)
      end)
    end

    test "is selected, clipped, joined and multiplied", %{a: a, b: b} do
      opts = [promotion: :numpy]
      assert Ferrox.to_list(Ferrox.select(a, 1, 2)) == [2, 2, 1, 1]
      assert Ferrox.to_list(Ferrox.select(a, b, true, opts)) == [true, true, false, true]
      assert Ferrox.type(Ferrox.select(a, b, 0, opts)) == {:s, 64}
      assert Ferrox.to_list(Ferrox.clip(b, true, true, opts)) == List.duplicate(true, 4)
      joined = Ferrox.concatenate([a, b], opts)
      assert joined.type == :bool
      assert Ferrox.to_list(Ferrox.slice(joined, [2], [3])) == [true, true, false]
      assert Ferrox.type(Ferrox.concatenate([a, Ferrox.iota({1}, type: :s8)], opts)) == {:s, 8}
      assert Ferrox.type(Ferrox.stack([a, b], opts)) == :bool
      assert Ferrox.to_list(Ferrox.stack([true, false], opts)) == [true, false]
      assert Ferrox.dot(a, b, opts) == Ferrox.tensor(true, type: :bool)
      # 256 products of bools are true, though as many u8 would wrap around to 0.
      many = Ferrox.full({256}, true, type: :bool)
      assert Ferrox.to_number(Ferrox.dot(many, many, opts)) == true
      assert Ferrox.to_number(Ferrox.dot(many, true, opts) |> Ferrox.all(opts)) == true
    end

    test "keeps its type where only the shape changes", %{a: a} do
      for system <- [:nx, :numpy], t = Ferrox.reshape(a, {2, 2}) do
        Promotion.with(system, fn ->
          for changed <- [
                Ferrox.transpose(t),
                Ferrox.new_axis(t, 0),
                Ferrox.squeeze(Ferrox.new_axis(t, 0)),
                Ferrox.broadcast(t, {3, 2, 2}),
                Ferrox.slice(t, [0, 0], [2, 1], strides: [2, 1]),
                Ferrox.tensor(t)
              ] do
            assert changed.type == :bool
            assert Ferrox.to_flat_list(changed) |> Enum.all?(&is_boolean/1)
          end

          assert Ferrox.to_list(Ferrox.transpose(t)) == [[false, true], [false, true]]
        end)
      end
    end

    test "creation" do
      assert Ferrox.to_list(Ferrox.eye(2, type: :bool)) == [[true, false], [false, true]]
      assert Ferrox.to_list(Ferrox.full({2}, true, promotion: :numpy)) == [true, true]

      assert Ferrox.to_list(Ferrox.broadcast(Ferrox.tensor(true, type: :bool), {2})) == [
               true,
               true
             ]

      raises("iota: bool does not count past 1", fn -> Ferrox.iota({2}, type: :bool) end)
    end

    test "is a u8 under Nx's systems", %{a: a, b: b} do
      for system <- [:nx, :nx_0_9], opts = [promotion: system] do
        assert Ferrox.add(a, b, opts) == Ferrox.tensor([0, 1, 1, 2], type: :u8)
        assert Ferrox.add(a, 1, opts) == Ferrox.tensor([1, 1, 2, 2], type: :u8)
        assert Ferrox.add(1.5, a, opts).type == {:f, 32}
        assert Ferrox.less(a, b, opts) == Ferrox.tensor([0, 1, 0, 0], type: :u8)
        assert Ferrox.logical_not(a, opts) == Ferrox.tensor([1, 1, 0, 0], type: :u8)
        assert Ferrox.negate(b, opts) == Ferrox.tensor([0, 255, 0, 255], type: :u8)
        assert Ferrox.bitwise_not(b, opts).type == {:u, 8}
        assert Ferrox.exp(a, opts).type == {:f, 32}
        assert Ferrox.abs(a, opts).type == {:u, 8}
        assert Ferrox.sum(a, opts) == Ferrox.tensor(2, type: :u32)
        assert Ferrox.reduce_max(a, opts) == Ferrox.tensor(1, type: :u8)
        assert Ferrox.mean(a, opts) == Ferrox.tensor(0.5, type: :f32)
        assert Ferrox.all(a, opts) == Ferrox.tensor(0, type: :u8)
        assert Ferrox.argmax(a, opts) == Ferrox.tensor(2, type: :s32)
        assert Ferrox.dot(a, b, opts) == Ferrox.tensor(1, type: :u8)
        assert Ferrox.select(a, a, b, opts) == Ferrox.tensor([0, 1, 1, 1], type: :u8)
        assert Ferrox.clip(a, 0, 1, opts).type == {:u, 8}
        assert Ferrox.concatenate([a, b], opts).type == {:u, 8}
        assert Promotion.result_type([a, 2], system: system) == {:u, 8}
      end
    end

    test "goes to .npy files and back" do
      t = Ferrox.tensor([[true, false, true]], type: :bool)
      file = IO.iodata_to_binary(Ferrox.Npy.encode!(t))
      assert file =~ "'descr': '|b1'"
      assert Ferrox.Npy.decode!(file, promotion: :numpy) == t
      assert Ferrox.Npy.decode!(file) == Ferrox.tensor([[1, 0, 1]], type: :u8)
      path = Path.join(System.tmp_dir!(), "ferrox_bool_#{System.pid()}.npy")
      Ferrox.save_npy!(t, path)
      assert Promotion.with(:jax, fn -> Ferrox.load_npy!(path) end) == t
      assert Ferrox.load_npy!(path, promotion: :ivy) == t
      File.rm!(path)
      # NumPy takes any byte but 0 for true.
      odd = binary_part(file, 0, byte_size(file) - 3) <> <<2, 0, 255>>
      assert Ferrox.Npy.decode!(odd, promotion: :numpy) == t
    end

    if Code.ensure_loaded?(Nx) do
      test "is a u8 of Nx", %{b: b} do
        assert b |> Ferrox.to_nx() |> Nx.to_flat_list() == [0, 1, 0, 1]
        assert Nx.type(Ferrox.to_nx(b)) == {:u, 8}
      end
    end
  end

  describe "values" do
    test "are computed in the type of the result" do
      s64 = Ferrox.tensor([2 ** 53 + 1], type: :s64)
      assert Ferrox.to_list(Ferrox.divide(s64, 1, promotion: :numpy)) == [9_007_199_254_740_992.0]
      s8 = Ferrox.tensor([100], type: :s8)
      u8 = Ferrox.tensor([100], type: :u8)
      assert Ferrox.to_list(Ferrox.add(s8, u8, promotion: :numpy)) == [200]

      assert Ferrox.to_list(
               Ferrox.sum(Ferrox.concatenate([s8, s8]), promotion: :ivy)
               |> Ferrox.reshape({1})
             ) == [-56]

      assert Ferrox.to_number(Ferrox.sum(Ferrox.concatenate([s8, s8]), promotion: :numpy)) == 200

      assert Ferrox.to_list(Ferrox.sqrt(Ferrox.tensor([2], type: :s8), promotion: :numpy)) == [
               1.4140625
             ]

      assert Ferrox.to_list(Ferrox.sqrt(Ferrox.tensor([2], type: :s8), promotion: :jax)) == [
               1.4142135381698608
             ]

      # JAX wraps a number around; a comparison sees it as it is.
      assert Ferrox.to_list(Ferrox.add(u8, 256, promotion: :jax)) == [100]
      assert Ferrox.to_list(Ferrox.less(u8, 256, promotion: :numpy)) == [true]
    end

    test "the parts of complex numbers don't go by the promotion in effect" do
      complex = Ferrox.from_binary(<<1.5::float-64-native, 2.5::float-64-native>>, :c128)

      for mode <- [:nx, {:jax, x64: false}, :ivy_mxnet] do
        Promotion.with(mode, fn ->
          for {part, value} <- [real: 1.5, imag: 2.5] do
            tensor = apply(Ferrox, part, [complex])
            assert {tensor.type, Ferrox.to_flat_list(tensor)} == {{:f, 64}, [value]}
          end

          zeros = Ferrox.imag(Ferrox.from_binary(<<1.5::float-64-native>>, :f64))
          assert {zeros.type, Ferrox.to_flat_list(zeros)} == {{:f, 64}, [0.0]}
        end)
      end
    end

    test "a mean of many f16 does not overflow" do
      t = Ferrox.full({1000}, 1000, type: :f16)
      assert Ferrox.to_number(Ferrox.mean(t, promotion: :numpy)) == 1000.0
      assert Ferrox.type(Ferrox.mean(t, promotion: :numpy)) == {:f, 16}
    end
  end

  describe "bad input" do
    @unary ~w(negate sign floor ceil round bitwise_not exp expm1 log log1p sqrt rsqrt sin cos tan
              tanh sigmoid is_nan is_infinity logical_not abs sum product reduce_max reduce_min
              all any mean argmax argmin reshape transpose squeeze)a
    @binary ~w(add subtract multiply divide pow remainder quotient min max bitwise_and bitwise_or
               bitwise_xor left_shift right_shift atan2 equal not_equal greater less greater_equal
               less_equal logical_and logical_or logical_xor dot)a

    test "what is no tensor names the operation" do
      for bad <- [:bad, "1", [1], {1}, nil, %{}], promotion <- [:nx, :jax] do
        Promotion.with(promotion, fn ->
          for op <- @unary -- [:reshape] do
            raises("#{op}: expected a Ferrox.Tensor or a number, got: #{inspect(bad)}", fn ->
              apply(Ferrox, op, [bad])
            end)
          end

          for op <- @binary, operands <- [[bad, 1], [1, bad], [Ferrox.tensor([1]), bad]] do
            raises("#{op}: expected a Ferrox.Tensor or a number, got: #{inspect(bad)}", fn ->
              apply(Ferrox, op, operands)
            end)
          end

          for {op, fun} <- [
                select: fn -> Ferrox.select(bad, 1, 2) end,
                select: fn -> Ferrox.select(true, bad, 2) end,
                clip: fn -> Ferrox.clip(bad, 1, 2) end,
                clip: fn -> Ferrox.clip(1, 1, bad) end,
                concatenate: fn -> Ferrox.concatenate([bad]) end,
                stack: fn -> Ferrox.stack([1, bad]) end,
                reshape: fn -> Ferrox.reshape(bad, {1}) end,
                broadcast: fn -> Ferrox.broadcast(bad, {1}) end,
                new_axis: fn -> Ferrox.new_axis(bad, 0) end,
                slice: fn -> Ferrox.slice(bad, [0], [1]) end,
                as_type: fn -> Ferrox.as_type(bad, :u8) end,
                shape: fn -> Ferrox.shape(bad) end,
                type: fn -> Ferrox.type(bad) end,
                byte_size: fn -> Ferrox.byte_size(bad) end,
                dot: fn -> Ferrox.dot(bad, [0], 1, [0]) end
              ] do
            raises("#{op}: expected a Ferrox.Tensor or a number, got: #{inspect(bad)}", fun)
          end
        end)
      end
    end

    test "readers take tensors only" do
      for op <- [:to_list, :to_flat_list, :to_binary, :to_number], bad <- [1, [1], nil, "x"] do
        raises("#{op} expects a Ferrox.Tensor, got: #{inspect(bad)}", fn ->
          apply(Ferrox, op, [bad])
        end)
      end

      raises("save_npy! expects a Ferrox.Tensor, got: 1", fn -> Ferrox.save_npy!(1, "x") end)
      raises("npy: expected a Ferrox.Tensor", fn -> Ferrox.Npy.encode!(1) end)
      raises("npy: expected the contents of a file", fn -> Ferrox.Npy.decode!(:x) end)

      raises("from_binary expects a binary or bitstring, got: [1]", fn ->
        Ferrox.from_binary([1], :u8)
      end)
    end

    test "types that are none name the operation" do
      for bad <- [:u7, {:f, 33}, "u8", :int, 8, {:u, 8, 8}] do
        for {op, fun} <- [
              tensor: fn -> Ferrox.tensor([1], type: bad) end,
              full: fn -> Ferrox.full({1}, 1, type: bad) end,
              iota: fn -> Ferrox.iota({1}, type: bad) end,
              eye: fn -> Ferrox.eye(1, type: bad) end,
              as_type: fn -> Ferrox.as_type(1, bad) end,
              from_binary: fn -> Ferrox.from_binary(<<1>>, bad) end,
              argmax: fn -> Ferrox.argmax(1, type: bad) end
            ] do
          op = if op == :full, do: :tensor, else: op
          raises("#{op}: invalid numerical type: #{inspect(bad)}", fun)
        end
      end
    end

    test "lists that are none" do
      t = Ferrox.iota({2, 3})

      for bad <- [{0, 0}, [0 | 0], 0, nil, [0]] do
        raises("slice: starts must have one entry for each axis", fn ->
          Ferrox.slice(t, bad, [1, 1])
        end)

        raises("slice: lengths must have one entry", fn -> Ferrox.slice(t, [0, 0], bad) end)
      end

      raises("slice: strides must have one entry", fn ->
        Ferrox.slice(t, [0, 0], [1, 1], strides: {1, 1})
      end)

      raises("sum: :axes must be a list of axes, got: [0 | 1]", fn ->
        Ferrox.sum(t, axes: [0 | 1])
      end)

      raises("sum: :axes must be a list of axes, got: {0}", fn -> Ferrox.sum(t, axes: {0}) end)
      raises("transpose: :axes must be a list of axes", fn -> Ferrox.transpose(t, axes: 0) end)
      raises("dot: :axes must be a list of axes", fn -> Ferrox.dot(t, 0, t, 0) end)

      raises("concatenate: the list of tensors is improper", fn -> Ferrox.concatenate([t | t]) end)

      raises("tensor: the list is improper", fn -> Ferrox.tensor([1 | 2]) end)
      raises("tensor: the list is improper", fn -> Ferrox.tensor([[1, 2], [1 | 2]]) end)
      raises("concatenate expects a list", fn -> Ferrox.concatenate({t, t}) end)
    end

    test "options that are none" do
      t = Ferrox.iota({2})

      for op <- @unary -- [:reshape] do
        raises("#{op}: unknown option :typ", fn -> apply(Ferrox, op, [t, [typ: 1]]) end)

        raises("#{op} expects a keyword list of options, got: :x", fn ->
          apply(Ferrox, op, [t, :x])
        end)
      end

      for op <- @binary do
        raises("#{op}: unknown option :typ", fn -> apply(Ferrox, op, [t, t, [typ: 1]]) end)

        raises("#{op} expects a keyword list of options, got: {:x}", fn ->
          apply(Ferrox, op, [t, t, {:x}])
        end)
      end

      for op <- @binary -- [:dot], bad <- [:ny, {:ny, []}, [system: :ny], {"jax", []}] do
        raises("unknown promotion system", fn -> apply(Ferrox, op, [t, t, [promotion: bad]]) end)
      end

      for op <- @unary -- [:reshape, :transpose, :squeeze] do
        raises("unknown promotion system :ny", fn -> apply(Ferrox, op, [t, [promotion: :ny]]) end)
      end

      raises("add: :promotion must be a system, got: \"jax\"", fn ->
        Ferrox.add(t, t, promotion: "jax")
      end)

      raises("unknown option :strict of :nx", fn ->
        Ferrox.add(t, t, promotion: {:nx, strict: true})
      end)

      raises("unknown option :x64 of :nx", fn -> Ferrox.add(t, t, promotion: [x64: false]) end)

      raises("invalid value for option :x64", fn ->
        Ferrox.add(t, t, promotion: {:jax, x64: 1})
      end)

      raises("expected a keyword list of options", fn ->
        Ferrox.add(t, t, promotion: {:jax, 1.5})
      end)
    end

    test "with/2" do
      for bad <- [
            {:ny, []},
            [system: :ny],
            {"jax", []},
            {:jax, x65: true},
            {:jax, :strict},
            {:jax},
            "jax",
            1,
            [1],
            [:jax | :nx],
            {:jax, 9},
            {:nx, 1}
          ] do
        assert_raise ArgumentError, fn -> Promotion.with(bad, fn -> :ran end) end
        assert_raise ArgumentError, fn -> Promotion.promote(:u8, :s8, bad) end
        assert_raise ArgumentError, fn -> Promotion.types(bad) end
      end
    end
  end
end
