defmodule Ferrox.Ivy.SupportTest do
  use ExUnit.Case, async: true

  alias Ferrox.Ivy
  alias Ferrox.Ivy.{Casting, Dtype, Functions, Kernels, Profile, Support}

  defmodule Ops do
    use Ferrox.Ivy.Support, version: "2.0.1"

    def earlier(x), do: x

    with_unsupported_dtypes [{"2.0.1 and below", ["float16"]}, {"2.1.0", []}] do
      def plain(x), do: x
      def several(0, x), do: x
      def several(_n, x), do: x
      def options(x, opts \\ []), do: {x, opts}
    end

    def later(x), do: x

    with_unsupported_dtypes [{"2.0.1 and below", ["complex"]}] do
      @unsupported_devices [:gpu]
      def nested(x, y), do: {x, [y]}

      with_unsupported_device_and_dtypes [{"2.0.1 and below", [cpu: ["int8"]]}] do
        def on_cpu(x), do: x
      end
    end

    @unsupported_dtypes [{"2.0.1 and below", ["float16"]}]
    @ret_dtype_target [0]
    def cast_back(x), do: x

    @unsupported_dtypes [{"2.0.1 and below", ["float16"]}]
    def creates(n, opts), do: Ferrox.tensor([n], type: Dtype.new!(opts[:dtype]))

    @calls [plain: 1, cycle_b: 1]
    def cycle_a(x), do: cycle_b(x)
    @calls [cycle_a: 1, on_cpu: 1]
    def cycle_b(x), do: if(x, do: x, else: cycle_a(x))

    @unsupported_dtypes [{"2.0.1 and below", ["bfloat16"]}]
    @compositional [cycle_b: 1]
    def mixed(x), do: x

    @supported_devices [:cpu, :tpu]
    def devices(x), do: x

    @calls [&Ferrox.exp/1, &Ferrox.floor/1, {Ferrox, :bitwise_and, 2}]
    def of_ferrox(x), do: x

    @unsupported_dtypes [{"2.0.1 and below", ["float16"]}]
    defp hidden(x), do: x
    def shown(x), do: hidden(x)

    def calls_own(x), do: plain(x)
  end

  defmodule Frontend do
    use Ferrox.Ivy.Support, version: :torch

    @unsupported_dtypes [{"2.1 and below", ["int8"]}, {"2.2 and above", ["float16", "bfloat16"]}]
    def trace(x), do: x
  end

  defmodule Current do
    use Ferrox.Ivy.Support

    @unsupported_dtypes [{"2.0.1 and below", ["float16"]}, {"2.1 and above", ["int8"]}]
    def f(x), do: x
    @supported_dtypes [torch: [{"2.0 and below", ["float"]}, {"2.1 and above", ["integer"]}]]
    @unsupported_dtypes [jax: ["bool"]]
    def g(x), do: x
  end

  @float16 Ferrox.tensor([1.5, 2.5], type: :f16)

  test "a call with an unsupported type raises, and says what, where and what else" do
    assert_raise ArgumentError,
                 ~r/SupportTest.Ops.plain\/1 doesn't support float16 in version 2.0.1, only int8,.*float32/,
                 fn -> Ops.plain(@float16) end

    Profile.with_backend(:torch, fn ->
      assert_raise ArgumentError, ~r/under torch 2.0.1/, fn -> Ops.plain(@float16) end
    end)

    assert Ops.plain(Ferrox.tensor([1.0])).type == {:f, 32}
    assert Ops.plain(1) == 1
    assert_raise ArgumentError, fn -> Ops.several(0, @float16) end
    assert_raise ArgumentError, fn -> Ops.options(@float16) end
    assert_raise ArgumentError, fn -> Ops.options(@float16, axis: 1) end
    assert_raise ArgumentError, fn -> Ops.shown(@float16) end
    assert_raise ArgumentError, fn -> Ops.calls_own(@float16) end
    assert Ops.options(1) == {1, []}
    assert Ops.earlier(@float16) == @float16
    assert Ops.later(@float16) == @float16
  end

  test "tensors in lists, tuples and options are checked as well" do
    complex = Ferrox.tensor([1], type: :c64)
    assert_raise ArgumentError, fn -> Ops.nested(1, [{2, complex}]) end
    assert_raise ArgumentError, fn -> Ops.options(1, weights: @float16) end
  end

  test "blocks nest, add to a definition's own attributes, and refuse the same one" do
    assert Support.function_unsupported_devices(&Ops.nested/2, backend: :torch) == [:gpu, :tpu]
    assert Support.function_unsupported_dtypes(&Ops.on_cpu/1) == Dtype.all(:complex)

    assert_raise ArgumentError, ~r/doesn't support int8/, fn ->
      Ops.on_cpu(Ferrox.tensor([1], type: :s8))
    end

    assert_raise ArgumentError, ~r/Twice.f\/1 declares unsupported_dtypes twice/, fn ->
      defmodule Twice do
        use Ferrox.Ivy.Support

        with_unsupported_dtypes ["int8"] do
          @unsupported_dtypes ["int16"]
          def f(x), do: x
        end
      end
    end
  end

  test "frontends have the version that Ivy takes them to have" do
    assert Support.function_unsupported_dtypes(&Frontend.trace/1) == [{:bf, 16}, {:f, 16}]
  end

  test "without a version the backend's is meant" do
    assert Support.function_unsupported_dtypes(&Current.f/1) == []
    assert Current.f(@float16) == @float16

    assert Support.function_unsupported_dtypes(&Current.f/1, backend: {:jax, "2.0.0"}) ==
             [{:f, 16}]

    assert Support.function_unsupported_dtypes(&Current.f/1, backend: {:jax, "2.3"}) == [{:s, 8}]

    assert Support.function_supported_dtypes(&Current.g/1, backend: {:torch, "1.9"}) ==
             Dtype.all(:float)

    assert Support.function_supported_dtypes(&Current.g/1, backend: {:torch, "2.2"}) ==
             [{:s, 8}, {:s, 16}, {:s, 32}, {:s, 64}, {:u, 8}]

    # One backend has what is supported, another what isn't: no contradiction.
    assert Support.function_unsupported_dtypes(&Current.g/1, backend: :jax) == [:bool]
    assert Support.function_unsupported_dtypes(&Current.g/1, backend: :numpy) == [{:bf, 16}]
  end

  test "calls in a circle" do
    for function <- [&Ops.cycle_a/1, &Ops.cycle_b/1] do
      assert Support.function_unsupported_dtypes(function, recurse: false) == []
    end

    for function <- [&Ops.cycle_a/1, &Ops.cycle_b/1] do
      assert Support.function_unsupported_dtypes(function) == [{:f, 16}, {:c, 64}, {:c, 128}]
    end

    assert Support.function_supported_devices_and_dtypes(&Ops.cycle_b/1, backend: :numpy) ==
             %{cpu: Dtype.all() -- [{:bf, 16}, {:f, 16}, {:c, 64}, {:c, 128}, {:s, 8}]}
  end

  test "partial mixed functions answer for both" do
    assert Support.function_unsupported_dtypes(&Ops.mixed/1) ==
             %{compositional: [{:f, 16}, {:c, 64}, {:c, 128}], primary: [{:bf, 16}]}

    assert %{compositional: composed, primary: primary} =
             Support.function_supported_dtypes(&Ops.mixed/1)

    assert {:bf, 16} in composed and {:f, 16} in primary
    assert_raise ArgumentError, fn -> Ops.mixed(Ferrox.tensor([1.0], type: :bf16)) end
  end

  test "devices" do
    assert Support.function_supported_devices(&Ops.devices/1, backend: :torch) == [:cpu]

    assert Support.function_unsupported_devices(&Ops.devices/1, backend: :torch) == [
             :gpu,
             :tpu
           ]

    assert Support.function_supported_devices(&Ferrox.add/2, backend: :torch) == [:cpu, :gpu]
  end

  test "under :ferrox the kernels are asked, also those of composed functions" do
    assert Support.function_supported_dtypes(&Ops.of_ferrox/1, backend: :ferrox) ==
             Dtype.all(:int) ++ [:bool]

    # A backend of another library knows nothing of Ferrox's kernels.
    assert Support.function_supported_dtypes(&Ops.of_ferrox/1, backend: :jax) == Dtype.all()

    Profile.with_backend(:ferrox, fn ->
      assert Ivy.valid_dtypes() == Dtype.all()

      assert_raise ArgumentError, ~r/bitwise_and\/2 doesn't support float32 under ferrox/, fn ->
        Functions.bitwise_and(Ferrox.tensor([1.0]), 1)
      end
    end)
  end

  test "what a kernel says is what its operation does" do
    for op <-
          [:add, :bitwise_and, :quotient, :remainder, :atan2, :left_shift, :max, :floor] ++
            [:negate, :bitwise_not, :exp, :sum, :reduce_max, :argmax],
        type <- Dtype.all(),
        type != :bool do
      x = Ferrox.as_type(Ferrox.tensor([1]), type)
      {:arity, arity} = op |> arity() |> Function.info(:arity)

      does =
        try do
          apply(Ferrox, op, List.duplicate(x, arity))
          true
        rescue
          ArgumentError -> false
        end

      assert Kernels.supports?(op, type) == does, "#{op} of #{inspect(type)}"
    end
  end

  defp arity(op) when op in [:floor, :negate, :bitwise_not, :exp, :sum, :reduce_max, :argmax],
    do: Function.capture(Ferrox, op, 1)

  defp arity(op), do: Function.capture(Ferrox, op, 2)

  describe "casting" do
    test "each mode casts tensors, and results stay in the type" do
      for {mode, type} <- [up: {:f, 32}, down: {:bf, 16}, all: {:f, 32}] do
        result = Casting.with_casting(mode, fn -> Ops.plain(@float16) end)
        assert result.type == type
        assert Ferrox.to_list(result) == [1.5, 2.5]
      end

      # No float16 alone is left without any float.
      assert_raise ArgumentError, fn ->
        Casting.with_casting(:cross, fn -> Ops.plain(@float16) end)
      end
    end

    test "a type given as dtype: is replaced, and the result cast back" do
      assert_raise ArgumentError, fn -> Ops.creates(1, dtype: "float16") end

      Casting.with_casting(:up, fn ->
        assert Ops.creates(1, dtype: "float16").type == {:f, 16}
        # 100,000 passes through float32, and is an infinity on its way back.
        assert Ferrox.to_list(Ops.creates(1.0e5, dtype: "float16")) == [:infinity]
        assert Ops.creates(1, dtype: "int8").type == {:s, 8}
      end)
    end

    test "results go back to the type of the arguments that are named" do
      assert Casting.with_casting(:up, fn -> Ops.cast_back(@float16) end).type == {:f, 16}
    end

    test "the document's functions under torch" do
      Profile.with_backend({:torch, "2.0.1"}, fn ->
        for {mode, type} <- [up: {:f, 32}, down: {:bf, 16}, all: {:f, 32}] do
          assert_raise ArgumentError, fn -> Functions.expm1(@float16) end
          result = Casting.with_casting(mode, fn -> Functions.expm1(@float16) end)
          assert result.type == type

          [expected | _] = Ferrox.to_list(Ferrox.expm1(Ferrox.as_type(@float16, type)))
          assert [^expected | _] = Ferrox.to_list(result)
        end

        x = Ferrox.tensor([12, 9], type: :f16)
        assert_raise ArgumentError, fn -> Functions.lcm(x, x) end

        result =
          Casting.with_casting(:cross, fn -> Functions.lcm(x, Ferrox.tensor([8.0, 6.0])) end)

        assert {result.type, Ferrox.to_list(result)} == {{:s, 32}, [24, 18]}

        assert_raise ArgumentError, fn -> Functions.prod(Ferrox.tensor([1], type: :u8)) end
      end)

      # A later version isn't in any range, so that the last entry still holds.
      Profile.with_backend({:torch, "2.2"}, fn ->
        assert_raise ArgumentError, ~r/torch 2.2/, fn -> Functions.expm1(@float16) end
      end)

      assert Functions.expm1(@float16).type == {:f, 16}
    end

    test "the default type of the other kind is what crosscasting takes" do
      floats = Dtype.all(:float)
      ints = Dtype.all(:int)

      Ivy.Default.with_default_int_dtype("int64", fn ->
        assert Casting.substitute("float16", floats, :cross) == {:s, 64}
        assert Casting.substitute("float16", ["int64" | floats], :cross) == nil
      end)

      Ivy.Default.with_default_float_dtype("bfloat16", fn ->
        assert Casting.substitute("uint8", ints, :cross) == {:bf, 16}
      end)

      # Which integers there are is the backend's: torch has but one unsigned.
      Profile.with_backend(:torch, fn ->
        torch = ints -- [u: 16, u: 32, u: 64]
        assert Casting.substitute("uint8", torch, :cross) == {:f, 32}
        assert Casting.substitute("uint8", ["uint8"], :up) == nil
      end)

      assert Casting.substitute("uint8", ["uint8"], :up) == {:u, 16}
    end

    test "a substitute is supported, and of the same group but for crosscasting" do
      :rand.seed(:exsss, {1, 2, 3})

      for _ <- 1..2_000 do
        type = Enum.random(Dtype.all())
        unsupported = Enum.take_random(Dtype.all(), :rand.uniform(15))
        modes = Enum.take_random([:up, :down, :cross], :rand.uniform(4) - 1)

        case Casting.substitute(type, unsupported, modes) do
          nil ->
            assert type in unsupported

          ^type ->
            assert type not in unsupported

          other ->
            assert type in unsupported and other not in unsupported
            if :cross not in modes, do: assert(elem(other, 0) in [elem(type, 0), :f, :bf])

            # What one mode finds alone, it finds with others, or they something.
            assert Enum.any?(modes, &(Casting.substitute(type, unsupported, &1) == other))
        end
      end
    end

    test "modes are of the process, and restored" do
      Casting.upcast_data_types()

      assert_raise RuntimeError, fn ->
        Casting.with_casting([:down], fn ->
          Casting.crosscast_data_types()
          assert Casting.modes() == [:cross, :down]
          raise "on purpose"
        end)
      end

      assert Casting.modes() == [:up]
      assert Task.await(Task.async(&Casting.modes/0)) == []

      assert_raise ArgumentError, fn ->
        apply(Casting, :cast_data_types, ["yes"])
      end
    end
  end

  test "what can't be declared" do
    for {attribute, value, message} <- [
          {:unsupported_dtypes, [{"2.0.1 or so", ["int8"]}], ~r/invalid range of versions/},
          {:unsupported_dtypes, [{"2.x and below", ["int8"]}], ~r/invalid version "2.x"/},
          {:unsupported_dtypes, Macro.escape(%{"2.0" => ["int8"]}), ~r/the order of the ranges/},
          {:unsupported_dtypes, ["int9"], ~r/unknown data type "int9"/},
          {:unsupported_dtypes, "int8", ~r/is a list/},
          {:supported_dtypes, [{"2.0", "int8"}], ~r/expected a list/},
          {:supported_dtypes, [torch: ["int8"], cupy: []], ~r/unknown backend :cupy/},
          {:supported_devices, [:abacus], ~r/unknown device :abacus/},
          {:unsupported_device_and_dtypes, [{"2.0", [abacus: ["int8"]]}], ~r/unknown device/},
          {:ret_dtype_target, [-1], ~r/positions of arguments/},
          {:kernel, "add", ~r/name of an operation/},
          {:calls, ["f"], ~r/expected a function/}
        ] do
      code =
        quote do
          defmodule unquote(Module.concat(__MODULE__, "Bad#{System.unique_integer([:positive])}")) do
            use Ferrox.Ivy.Support
            @unquote(attribute)(unquote(value))
            def f(x), do: x
          end
        end

      assert_raise ArgumentError, message, fn -> Code.eval_quoted(code) end
    end

    for opts <- [[version: :cupy], [versions: "2.0"]] do
      assert_raise ArgumentError, fn ->
        Code.eval_quoted(
          quote do
            defmodule unquote(
                        Module.concat(__MODULE__, "Opts#{System.unique_integer([:positive])}")
                      ) do
              use Ferrox.Ivy.Support, unquote(opts)
            end
          end
        )
      end
    end
  end

  test "what can't be asked" do
    for {ask, message} <- [
          {fn -> Support.function_supported_dtypes(fn x -> x end) end, ~r/function of a module/},
          {fn -> Support.function_supported_dtypes(:add) end, ~r/expected a function/},
          {fn -> Support.function_supported_dtypes(&Ferrox.add/2, backend: :cupy) end,
           ~r/unknown backend/},
          {fn -> Support.function_supported_dtypes(&Ferrox.add/2, deep: true) end, ~r/:deep/},
          {fn -> Support.function_supported_dtypes(&Ferrox.add/2, recurse: 1) end, ~r/:recurse/},
          {fn -> Casting.substitute("int9", [], :up) end, ~r/unknown data type/},
          {fn -> Casting.with_casting([], :not_a_function) end, ~r/function without arguments/}
        ] do
      assert_raise ArgumentError, message, ask
    end
  end
end
