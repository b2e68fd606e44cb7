defmodule Ferrox.IvyTest do
  use ExUnit.Case, async: true

  doctest Ferrox.Ivy
  doctest Ferrox.Ivy.Dtype
  doctest Ferrox.Ivy.Profile
  doctest Ferrox.Ivy.Default
  doctest Ferrox.Ivy.Frontend
  doctest Ferrox.Ivy.Version
  doctest Ferrox.Ivy.Kernels
  doctest Ferrox.Ivy.Support
  doctest Ferrox.Ivy.Casting
  doctest Ferrox.Ivy.Functions

  alias Ferrox.Ivy
  alias Ferrox.Ivy.{Default, Dtype, Functions, Profile}

  describe "settings" do
    test "are of the process, nest, and are restored after a raise" do
      Ivy.set_precise_mode(true)

      assert_raise RuntimeError, fn ->
        Profile.with_backend(:torch, fn ->
          Default.with_default_float_dtype("float16", fn ->
            Ivy.with_precise_mode(false, fn ->
              Ivy.set_precise_mode(true)
              Ivy.set_precise_mode(false)
              Default.set_default_int_dtype("int8")
              raise "on purpose"
            end)
          end)
        end)
      end

      assert Ivy.precise_mode()
      assert Profile.current() == nil
      assert Default.default_float_dtype() == {:f, 32}
      # Nothing was around this one.
      assert Default.default_int_dtype() == {:s, 8}
      Default.unset_default_int_dtype()
      Ivy.unset_precise_mode()

      Ivy.with_precise_mode(false, fn ->
        assert Task.await(Task.async(&Ivy.precise_mode/0))
      end)
    end

    test "a stack gives back what was set before, and is harmless when empty" do
      for {set, unset, get, types} <- [
            {&Default.set_default_dtype/1, &Default.unset_default_dtype/0,
             &Default.default_dtype/0, [:s16, :u8, :bool]},
            {&Default.set_default_int_dtype/1, &Default.unset_default_int_dtype/0,
             &Default.default_int_dtype/0, [:s16, :u8]},
            {&Default.set_default_uint_dtype/1, &Default.unset_default_uint_dtype/0,
             &Default.default_uint_dtype/0, [:u64, :u8]},
            {&Default.set_default_float_dtype/1, &Default.unset_default_float_dtype/0,
             &Default.default_float_dtype/0, [:bf16, :f64]},
            {&Default.set_default_complex_dtype/1, &Default.unset_default_complex_dtype/0,
             &Default.default_complex_dtype/0, [:c128, :c64]}
          ] do
        before = get.()

        steps =
          for type <- types do
            set.(type)
            get.()
          end

        assert steps == Enum.map(types, &Dtype.new!/1)

        for type <- tl(Enum.reverse(steps)) do
          unset.()
          assert get.() == type
        end

        for _ <- 1..3, do: unset.()
        assert get.() == before
      end
    end

    test "the promotion that Ferrox is told is heard" do
      Ferrox.Promotion.with([system: :ivy, precise: false], fn ->
        assert Ivy.promote_types("int32", "float32") == {:f, 32}

        assert Ivy.with_precise_mode(true, fn -> Ivy.promote_types("int32", "float32") end) ==
                 {:f, 64}
      end)

      Ferrox.Promotion.with(:jax, fn ->
        assert Ivy.promote_types("int32", "float32") == {:f, 64}
      end)
    end
  end

  test "every profile parts the types into valid and invalid ones, and so its classes" do
    for backend <- Profile.backends() -- [:mxnet] do
      for class <- [:all, :int, :uint, :float, :complex] do
        valid = Profile.valid(backend, class)
        invalid = Profile.invalid(backend, class)
        assert Enum.sort(valid ++ invalid) == Enum.sort(Dtype.all(class))
      end

      for type <- Dtype.all() do
        closest = Ivy.closest_valid_dtype(type, backend)
        assert Ivy.valid_dtype?(closest, backend)
        assert Ivy.closest_valid_dtype(closest, backend) == closest
        if Ivy.valid_dtype?(type, backend), do: assert(closest == type)
      end
    end
  end

  test "laws of promotion" do
    for precise <- [true, false] do
      promote = &Ivy.promote_types(&1, &2, precise: precise)

      for a <- Dtype.all(), b <- Dtype.all() do
        assert promote.(a, b) == promote.(b, a)
        assert promote.(a, a) == a
        assert promote.(promote.(a, b), a) == promote.(a, b)
        assert Ivy.can_cast?(a, promote.(a, b), precise: precise)
        assert Ivy.result_type([a, b], precise: precise) == promote.(a, b)
      end

      types = Dtype.all()

      triples =
        for a <- types,
            b <- types,
            c <- types,
            promote.(promote.(a, b), c) != promote.(a, promote.(b, c)),
            do: {a, b, c}

      assert length(triples) == if(precise, do: 40, else: 64)
    end
  end

  test "inputs promote to one type, that of their types where both are tensors" do
    for left <- Dtype.all(), right <- Dtype.all() do
      {a, b} =
        {Ferrox.as_type(Ferrox.tensor([1, 0]), left), Ferrox.as_type(Ferrox.tensor(1), right)}

      {x, y} = Ivy.promote_types_of_inputs(a, b)
      assert x.type == y.type and x.type == Ivy.promote_types(left, right)
      assert {x, y} == Ivy.type_promote_arrays(a, b)
      assert Ferrox.shape(x) == {2} and Ferrox.shape(y) == {}
    end
  end

  test "numbers as inputs follow the defaults in effect" do
    bool = Ferrox.as_type(Ferrox.tensor([1, 0]), :bool)

    Default.with_default_int_dtype("int16", fn ->
      Default.with_default_float_dtype("bfloat16", fn ->
        assert {%{type: {:s, 16}}, _} = Ivy.promote_types_of_inputs(bool, 1)
        assert {%{type: {:bf, 16}}, _} = Ivy.promote_types_of_inputs(1.0, bool)
        assert {%{type: {:f, 32}}, _} = Ivy.promote_types_of_inputs(1, 1.0)

        assert {%{type: {:s, 8}}, _} =
                 Ivy.promote_types_of_inputs(Ferrox.tensor([1], type: :s8), 1)
      end)
    end)

    {x, y} = Ivy.promote_types_of_inputs(Ferrox.tensor([1, 2], type: :s8), [3, 4])
    assert {x.type, Ferrox.to_list(y)} == {{:s, 8}, [3, 4]}
    {_, y} = Ivy.promote_types_of_inputs(Ferrox.tensor([1.0], type: :f16), 100_000)
    assert Ferrox.to_number(y) == :infinity
    {_, y} = Ivy.promote_types_of_inputs(Ferrox.tensor([1], type: :s8), :nan)
    assert {y.type, Ferrox.to_number(y)} == {{:f, 64}, :nan}

    for {type, number} <- [s8: 128, s8: -129, u64: 2 ** 64, u64: -1, s64: 2 ** 63] do
      assert_raise ArgumentError, ~r/out of the range/, fn ->
        Ivy.promote_types_of_inputs(Ferrox.tensor([1], type: type), number)
      end
    end
  end

  test "a frontend's inputs" do
    int8 = Ferrox.tensor([1], type: :s8)

    for {frontend, other, type} <- [
          {:torch, Ferrox.tensor(1, type: :s64), {:s, 8}},
          {:torch, Ferrox.tensor([1], type: :s64), {:s, 64}},
          {:torch, 1, {:s, 8}},
          {:torch, 1.0, {:f, 32}},
          {:numpy, Ferrox.tensor(1, type: :u64), {:s, 8}},
          {:jax, Ferrox.tensor(1, type: :s64), {:s, 64}},
          {:torch, Ferrox.tensor(1.0, type: :f16), {:f, 16}}
        ] do
      assert {%{type: ^type}, %{type: ^type}} =
               Ivy.Frontend.promote_types_of_inputs(int8, other, frontend)

      assert {%{type: ^type}, %{type: ^type}} =
               Ivy.Frontend.promote_types_of_inputs(other, int8, frontend)
    end

    # bfloat16 is a kind of its own.
    assert {%{type: {:f, 32}}, _} =
             Ivy.Frontend.promote_types_of_inputs(
               Ferrox.tensor([1.0], type: :bf16),
               Ferrox.tensor(1.0, type: :f16),
               :torch
             )
  end

  test "limits of the types" do
    for {type, eps, max, smallest} <- [
          {"float16", 2.0 ** -10, 65_504.0, 2.0 ** -14},
          {"bfloat16", 2.0 ** -7, 3.3895313892515355e38, 2.0 ** -126},
          {"float32", 2.0 ** -23, 3.4028234663852886e38, 2.0 ** -126},
          {"float64", 2.0 ** -52, 1.7976931348623157e308, 2.0 ** -1022},
          {"complex64", 2.0 ** -23, 3.4028234663852886e38, 2.0 ** -126}
        ] do
      assert %{eps: ^eps, max: ^max, smallest_normal: ^smallest, min: min} = Ivy.finfo(type)
      assert min == -max
    end

    assert %{min: 0, max: 18_446_744_073_709_551_615} = Ivy.iinfo(Ferrox.tensor([1], type: :u64))
  end

  test "integer functions of every integer type are Elixir's" do
    for type <- Dtype.all(:int), a <- [0, 1, 12, 100], b <- [1, 7, 18, 90] do
      signs = if elem(type, 0) == :s, do: [{a, b}, {-a, b}, {a, -b}, {-a, -b}], else: [{a, b}]

      for {a, b} <- signs do
        x = Ferrox.tensor([a], type: type)
        assert [Integer.floor_div(a, b)] == Ferrox.to_list(Functions.floor_divide(x, b))
        assert [Integer.gcd(a, b)] == Ferrox.to_list(Functions.gcd(x, b))
        lcm = div(abs(a * b), Integer.gcd(a, b))
        {_, max} = {0, Ivy.iinfo(type).max}
        if lcm <= max, do: assert([lcm] == Ferrox.to_list(Functions.lcm(x, b)))
      end
    end
  end

  test "bad input says what was given and what is possible" do
    for {fun, message} <- [
          {fn -> Ivy.promote_types("int7", "int8") end, ~r/"int7", expected one of int8/},
          {fn -> Ivy.promote_types({:u, 4}, "int8") end, ~r/unknown data type \{:u, 4\}/},
          {fn -> Ivy.promote_types(nil, nil) end, ~r/nil and nil/},
          {fn -> Ivy.promote_types("int8", "int8", strict: true) end,
           ~r/:strict, expected :precise/},
          {fn -> Ivy.result_type("int8") end, ~r/expected a list/},
          {fn -> Ivy.astype([1], "int8") end, ~r/expected a Ferrox.Tensor/},
          {fn -> Ivy.dtype(1) end, ~r/expected a Ferrox.Tensor/},
          {fn -> Profile.fetch!({:torch, "nightly"}) end, ~r/invalid version "nightly"/},
          {fn -> Profile.fetch!({:torch, 2}) end, ~r/unknown backend \{:torch, 2\}/},
          {fn -> Profile.fetch!("torch") end,
           ~r/unknown backend "torch", expected one of :ferrox/},
          {fn -> Profile.with_backend(:torch, :not_a_function) end, ~r/without arguments/},
          {fn -> Default.default_dtype(items: 1) end,
           ~r/unknown option :items, expected one of :dtype, :item/},
          {fn -> Default.default_dtype(item: self()) end, ~r/expected a tensor, a number/},
          {fn -> apply(Default, :default_dtype, ["int8"]) end, ~r/keyword list/},
          {fn -> Default.set_default_int_dtype("float32") end, ~r/float32 is no integer type/},
          {fn -> Dtype.new!("int8", :integer) end, ~r/unknown class of data types :integer/},
          {fn -> Ivy.broadcast_arrays([Ferrox.iota({2}), Ferrox.iota({3})]) end,
           ~r/\{2\} and \{3\}/},
          {fn -> Functions.arange(0, :ten) end, ~r/arange expects numbers/},
          {fn -> Ivy.int_dtype?("int9") end, ~r/unknown data type "int9"/}
        ] do
      assert_raise ArgumentError, message, fun
    end

    Profile.with_backend(:torch, fn ->
      for fun <- [
            fn -> Ivy.promote_types("uint16", "int8") end,
            fn -> Ivy.astype(Ferrox.tensor([1]), "uint16") end,
            fn -> Default.set_default_uint_dtype("uint32") end,
            fn -> Ivy.as_ivy_dtype("uint64") end,
            fn -> Ivy.as_native_dtype("uint64") end
          ] do
        assert_raise ArgumentError, ~r/torch 2.2 has no data type uint/, fun
      end
    end)
  end
end
