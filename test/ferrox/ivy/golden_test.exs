defmodule Ferrox.Ivy.GoldenTest do
  # Every answer of a live Ivy that the oracle files hold; where Ferrox answers
  # otherwise on purpose, the test says so.
  use ExUnit.Case, async: true

  alias Ferrox.{Golden, Ivy}
  alias Ferrox.Ivy.{Casting, Default, Dtype, Functions, Profile, Support, Version}

  @lists for prefix <- ["", "numeric_", "int_", "uint_", "float_", "complex_"],
             do: "#{prefix}dtypes"

  defmodule Decorated do
    # ivy_behaviour.json, "decorators"; the version is the file's.
    use Ferrox.Ivy.Support, version: "2.0.1"

    @unsupported_dtypes [{"2.0.1 and below", ["float16"]}]
    def float16(x), do: x
    @unsupported_dtypes [{"2.0.1 and below", ["unsigned", "bfloat16", "float16"]}]
    def unsigned(x), do: x
    @supported_dtypes [{"2.0.1 and below", ["float"]}]
    def float(x), do: x
    @supported_dtypes [{"2.0.1 and below", ["float", "int32"]}]
    def float_int32(x), do: x
    @unsupported_dtypes [{"2.0.1 and below", ["complex"]}]
    def complex(x), do: x
    @unsupported_dtypes [{"2.0.1 and below", []}]
    def unsupported_empty(x), do: x
    @supported_dtypes [{"2.0.1 and below", []}]
    def supported_empty(x), do: x
    @unsupported_dtypes [{"2.0.1 and below", ["valid"]}]
    def valid(x), do: x
    def none(x), do: x
    @supported_dtypes [{"2.0.1 and below", ["float"]}]
    @unsupported_dtypes [{"2.0.1 and below", ["float16"]}]
    def both(x), do: x
  end

  @decorated %{
    "unsupported {\"2.0.1 and below\": (float16,)}" => :float16,
    "unsupported (unsigned,bfloat16,float16)" => :unsigned,
    "supported (float,)" => :float,
    "supported (float,int32)" => :float_int32,
    "unsupported (complex,)" => :complex,
    "unsupported () empty" => :unsupported_empty,
    "supported () empty" => :supported_empty,
    "unsupported (valid,)" => :valid,
    "no decorator" => :none,
    "both supported(float) and unsupported(float16)" => :both
  }

  defmodule Composed do
    # ivy_functions.json: what calls what, what is said by backend and by device,
    # and what a block gives.
    use Ferrox.Ivy.Support, version: "2.0.1"

    @unsupported_dtypes [{"2.0.1 and below", ["float16"]}]
    def prim_a(x), do: x
    @unsupported_dtypes [{"2.0.1 and below", ["complex", "uint8"]}]
    def prim_b(x), do: x
    @calls [prim_a: 1, prim_b: 1]
    def comp(x), do: prim_b(prim_a(x))
    @calls [prim_a: 1]
    def comp_alias(x), do: prim_a(x)
    @calls [comp: 1, outer: 1]
    def outer(x), do: comp(x)

    @unsupported_dtypes [jax: ["float64", "unsigned"]]
    def attribute(x), do: x
    @supported_dtypes [jax: ["float"]]
    def supported_attribute(x), do: x

    @unsupported_device_and_dtypes [{"2.6.0 and below", [cpu: ["int8", "int16", "uint8"]]}]
    def on_cpu(x), do: x
    @unsupported_device_and_dtypes [{"2.6.0 and below", [all: ["complex64"], cpu: ["int8"]]}]
    def on_all(x), do: x

    def before(x), do: x

    with_unsupported_dtypes [{"2.0.1 and below", ["complex"]}] do
      def f1(x), do: x
      def f2(x), do: x
    end

    # Two that the golden file asks about and Ferrox.Ivy.Functions doesn't have,
    # as the document declares them.
    @unsupported_dtypes [{"2.0.1 and below", []}]
    def cumsum(x), do: x

    @unsupported_dtypes [
      torch: ["float16"],
      tensorflow: ["complex"],
      paddle: ["complex", "uint8", "int8", "int16", "float16"]
    ]
    def einops_reduce(x), do: x
  end

  describe "ivy_behaviour.json" do
    setup do: {:ok, golden: Golden.json("ivy_behaviour.json")}

    test "the constructors of data types", %{golden: golden} do
      classes = [
        {"Dtype", :all},
        {"IntDtype", :int},
        {"UintDtype", :uint},
        {"FloatDtype", :float},
        {"ComplexDtype", :complex}
      ]

      compared =
        for {name, class} <- classes, {text, expected} <- golden["dtype_constructor"][name] do
          # Ivy's ComplexDtype alone doesn't take Python's class of its kind.
          expected =
            if {name, text} == {"ComplexDtype", "complex (object)"},
              do: "complex64",
              else: error(expected)

          assert answer(fn -> Dtype.new!(object(text), class) end) == expected, "#{name}(#{text})"
        end

      assert length(compared) == 5 * 17
    end

    test "the order of data types", %{golden: golden} do
      operators = %{
        "<" => &Dtype.less?/2,
        "<=" => &Dtype.less_equal?/2,
        ">" => &Dtype.greater?/2,
        ">=" => &Dtype.greater_equal?/2
      }

      compared =
        for {pair, answers} <- golden["dtype_order_operators"]["cases"],
            {operator, expected} <- answers do
          [left, right] = String.split(pair, "?")
          assert operators[operator].(left, right) == expected, "#{left} #{operator} #{right}"
        end

      assert length(compared) == 9 * 4
    end

    test "predicates", %{golden: golden} do
      predicates = %{
        "is_bool_dtype" => &Ivy.bool_dtype?/1,
        "is_int_dtype" => &Ivy.int_dtype?/1,
        "is_uint_dtype" => &Ivy.uint_dtype?/1,
        "is_float_dtype" => &Ivy.float_dtype?/1,
        "is_complex_dtype" => &Ivy.complex_dtype?/1
      }

      compared =
        for {name, predicate} <- predicates, {text, expected} <- golden["predicates"][name] do
          assert predicate.(input(text)) == expected, "#{name}(#{text})"
        end

      assert length(compared) == 5 * 13
    end

    test "bits", %{golden: golden} do
      assert map_size(golden["dtype_bits"]) == 15
      for {name, bits} <- golden["dtype_bits"], do: assert(Ivy.dtype_bits(name) == bits)
    end

    test "promotion of nil, of what is no type, and of the array API alone", %{golden: golden} do
      promote = &answer(fn -> Ivy.promote_types(&1, &2, &3) end)

      assert %{
               "promote(None,int8)" => promote.(nil, "int8", []),
               "promote(int8,None)" => promote.("int8", nil, []),
               "promote(int8,\"int7\")" => promote.("int8", "int7", []),
               "array_api only bool,int8" => promote.("bool", "int8", array_api: true),
               "array_api only int8,uint8" => promote.("int8", "uint8", array_api: true),
               "array_api only float32,complex64" =>
                 promote.("float32", "complex64", array_api: true)
             } == Map.new(golden["promote_types_extra"], fn {key, text} -> {key, error(text)} end)
    end

    test "the stack of precise modes", %{golden: golden} do
      mixed = fn -> Ivy.as_ivy_dtype(Ivy.promote_types("float32", "int32")) end

      steps =
        for step <- ["initial", "set False", "set True", "unset", "unset", "unset on empty stack"] do
          case step do
            "set False" -> Ivy.set_precise_mode(false)
            "set True" -> Ivy.set_precise_mode(true)
            "unset" <> _ -> Ivy.unset_precise_mode()
            "initial" -> :ok
          end

          [step, Ivy.precise_mode(), mixed.()]
        end

      for {[step | expected], [step, mode, type]} <- Enum.zip(golden["precise_mode_stack"], steps) do
        assert expected in [[mode], [mode, type]], step
      end

      assert ["set_precise_mode(\"x\")", "ERR:" <> _] = Enum.at(golden["precise_mode_stack"], 6)
      assert answer(fn -> Ivy.set_precise_mode("x") end) == :error
      # Nothing here can be assigned to, which is what the last entry is about.
      assert length(golden["precise_mode_stack"]) == 8
    end

    test "operands that are numbers", %{golden: golden} do
      compared =
        for {backend, modes} <- golden["promote_types_of_inputs"],
            {mode, answers} <- modes,
            {name, literals} <- answers,
            {text, expected} <- literals do
          operands =
            if name == "_scalar_scalar",
              do: text |> String.split(",") |> Enum.map(&input/1),
              else: [tensor(name), input(text)]

          if nil in operands do
            :bool_tensors_missing
          else
            [left, right] = operands

            result =
              Profile.with_backend(String.to_atom(backend), fn ->
                Ivy.with_precise_mode(mode == "precise", fn ->
                  answer(fn ->
                    {left, right} = Ivy.promote_types_of_inputs(left, right)
                    assert left.type == right.type
                    left.type
                  end)
                end)
              end)

            assert result == error(expected), "#{backend}, #{mode}: #{name} with #{text}"
          end
        end

      # Of numpy 14 types with 6 numbers and 16 pairs of numbers, of jax 15.
      assert length(compared) == 2 * (14 * 6 + 16) + 2 * (15 * 6 + 16)
      refute :bool_tensors_missing in compared
    end

    test "two tensors", %{golden: golden} do
      assert golden["type_promote_arrays"] == %{
               "int8 array, float32 array" => ["float32", "float32"]
             }

      {left, right} = Ivy.type_promote_arrays(tensor("int8"), tensor("float32"))
      assert {left.type, right.type} == {{:f, 32}, {:f, 32}}
    end

    # Ivy asks its backend; the document has its own table, which wins.
    test "result_type is Ivy's table, not the backend's", %{golden: golden} do
      for {text, live} <- golden["result_type_live"]["cases"]["jax"], text != "int8" do
        names = String.split(text, ",")
        folded = Enum.reduce(tl(names), hd(names), &Ivy.promote_types(&2, &1))
        assert Ivy.result_type(names) == folded
        differs = text in ["int32,float32", "float16,int16", "int8,uint8,float16"]
        assert Ivy.as_ivy_dtype(folded) != live == differs, text
      end

      # Ivy refuses a single operand.
      assert Ivy.result_type(["int8"]) == {:s, 8}
    end

    test "default_dtype and its kin", %{golden: golden} do
      cases = golden["default_dtype"]["cases"]

      for {text, expected} <- cases do
        assert answer(fn -> default(text) end) == expected, text
      end

      assert map_size(cases) == 73
    end

    test "infer_dtype", %{golden: golden} do
      cases = golden["infer_dtype"]["cases"]

      for {text, expected} <- cases,
          do: assert(answer(fn -> inferred(text) end) == expected, text)

      assert map_size(cases) == 20
    end

    test "ranges of versions", %{golden: golden} do
      cases = golden["version_resolution"]["cases"]

      for %{"version" => version, "result" => expected} = row <- cases do
        # The order of the keys in the file is that of the dictionary.
        ranges = row["dict"] |> Map.to_list() |> ordered(row)
        result = attempt(fn -> Version.resolve(ranges, version) end)
        assert result == error(expected), inspect(row)
      end

      assert length(cases) == 28
    end

    test "classes of data types", %{golden: golden} do
      classes = %{
        "valid" => :all,
        "numeric" => :numeric,
        "float" => :float,
        "integer" => :int,
        "unsigned" => :uint,
        "complex" => :complex
      }

      compared =
        for {backend, sets} <- golden["typesets"], {class, expected} <- sets do
          valid = Profile.valid(String.to_atom(backend), classes[class])
          assert names(valid) == expected, "#{backend}: #{class}"
        end

      assert length(compared) == 2 * 6
    end

    test "declared support", %{golden: golden} do
      compared =
        for {text, expected} <- golden["decorators"]["cases"], name = @decorated[text] do
          function = {Decorated, name, 1}

          assert attempt(fn ->
                   names(Support.function_supported_dtypes(function, backend: :jax))
                 end) ==
                   error(expected["supported"]),
                 text

          assert attempt(fn ->
                   names(Support.function_unsupported_dtypes(function, backend: :jax))
                 end) == error(expected["unsupported"]),
                 text
        end

      assert length(compared) == map_size(golden["decorators"]["cases"]) - 1

      # The eleventh is an unknown name, which Ivy ignores.
      assert_raise ArgumentError, ~r/unknown data type "foo"/, fn ->
        defmodule Unknown do
          use Ferrox.Ivy.Support
          @unsupported_dtypes [{"2.0.1 and below", ["foo"]}]
          def f(x), do: x
        end
      end
    end
  end

  describe "ivy_dtypes.json" do
    setup do: {:ok, golden: Golden.json("ivy_dtypes.json")}

    test "all types, and those without a backend", %{golden: golden} do
      for list <- @lists do
        all = apply(Ivy, :"all_#{list}", [])
        assert Enum.map(all, &Ivy.as_ivy_dtype/1) == golden["all"]["all_#{list}"]
        assert apply(Ivy, :"valid_#{list}", []) == all
        assert Enum.map(all, &Ivy.as_ivy_dtype/1) == golden["no_backend"]["valid_#{list}"]
        assert apply(Ivy, :"invalid_#{list}", []) == golden["no_backend"]["invalid_#{list}"]
      end

      assert Enum.map(Profile.valid_devices(), &to_string/1) ==
               golden["no_backend"]["valid_devices"]

      assert Enum.map(Profile.invalid_devices(), &to_string/1) ==
               golden["no_backend"]["invalid_devices"]
    end

    test "what each backend lists, version by version", %{golden: golden} do
      compared =
        for {name, lists} <- golden["backends"],
            {list, versions} <- lists,
            is_map(versions),
            [validity, class] = String.split(list, "_", parts: 2),
            {range, expected} <- versions do
          backend = {String.to_atom(name), hd(String.split(range, " "))}
          types = apply(Ivy, :"#{validity}_#{class}", [backend])
          assert names(types) == Enum.sort(expected), "#{name} #{range}: #{list}"
        end

      assert length(compared) == 78

      for {name, %{"valid_devices" => valid, "invalid_devices" => invalid}} <- golden["backends"] do
        backend = String.to_atom(name)
        assert Enum.map(Profile.valid_devices(backend), &to_string/1) == valid
        assert Enum.map(Profile.invalid_devices(backend), &to_string/1) == List.wrap(invalid)
      end
    end

    test "what changes when a backend is set", %{golden: golden} do
      for {name, live} <- golden["live"] do
        backend = String.to_atom(name)

        Profile.with_backend(backend, fn ->
          for list <- @lists do
            assert names(apply(Ivy, :"valid_#{list}", [])) == Enum.sort(live["valid_#{list}"])
            assert names(apply(Ivy, :"invalid_#{list}", [])) == Enum.sort(live["invalid_#{list}"])

            assert apply(Ivy, :"all_#{list}", []) |> length() ==
                     length(golden["all"]["all_#{list}"])
          end

          missing =
            for type <- golden["all"]["all_dtypes"], Profile.fetch_dtype(type) == :error, do: type

          assert missing == live["names_missing_from_namespace"]

          for {type, bits} <- live["dtype_bits"], do: assert(Ivy.dtype_bits(type) == bits)

          for {type, closest} <- live["closest_valid_dtype"],
              do: assert(Ivy.as_ivy_dtype(Ivy.closest_valid_dtype(type)) == closest)

          # Ivy can't read the name of an invalid type, so that its valid_dtype raises.
          for {type, valid} <- live["valid_dtype_fn"] do
            assert Ivy.valid_dtype?(type) == (valid == true)
            assert Ivy.invalid_dtype?(type) == (valid != true)
          end
        end)

        for type <- golden["all"]["all_dtypes"],
            do: assert({:ok, _} = Profile.fetch_dtype(type))
      end
    end

    test "defaults", %{golden: golden} do
      compared =
        for {text, expected} <- golden["defaults"] do
          result =
            answer_in_process(fn ->
              for setting <- String.split(text, [" and ", " then "]), do: set(setting)

              for name <- ~w(default_dtype default_int_dtype default_uint_dtype
                             default_float_dtype default_complex_dtype),
                  into: %{} do
                {name, Ivy.as_ivy_dtype(apply(Default, String.to_atom(name), []))}
              end
            end)

          assert result == error(expected), text
        end

      assert length(compared) == 18
    end
  end

  describe "ivy_functions.json" do
    setup do: {:ok, golden: Golden.json("ivy_functions.json")}

    test "what functions don't support", %{golden: golden} do
      compared =
        for backend <- [:numpy, :jax],
            {name, expected} <- golden["#{backend}_unsupported"] do
          assert names(Support.function_unsupported_dtypes(function(name), backend: backend)) ==
                   expected,
                 "#{backend}: #{name}"
        end

      assert length(compared) == 2 * 19
    end

    test "functions composed of others", %{golden: golden} do
      for {text, expected} <- golden["compositional_example"]["result"] do
        case String.split(text, " ") do
          [name, "recurse=False"] ->
            unsupported =
              Support.function_unsupported_dtypes({Composed, String.to_atom(name), 1},
                backend: :jax,
                recurse: false
              )

            assert names(unsupported) == expected, text

          # Ivy misses what is bound to a variable; it is declared here.
          ["comp_alias"] ->
            assert names(
                     Support.function_unsupported_dtypes(&Composed.comp_alias/1, backend: :jax)
                   ) ==
                     ["float16"]

          [name] ->
            function = {Composed, String.to_atom(name), 1}

            assert names(Support.function_supported_dtypes(function, backend: :jax)) ==
                     expected["supported"],
                   text

            assert names(Support.function_unsupported_dtypes(function, backend: :jax)) ==
                     expected["unsupported"],
                   text
        end
      end
    end

    test "attributes by backend", %{golden: golden} do
      for backend <- ["jax", "numpy"],
          {key, expected} <- golden["attribute_example"]["result"][backend] do
        ask = %{
          "supported" => &Support.function_supported_dtypes/2,
          "unsupported" => &Support.function_unsupported_dtypes/2
        }

        assert names(ask[key].(&Composed.attribute/1, backend: String.to_atom(backend))) ==
                 expected
      end

      # Ivy ignores what is supported unless something is unsupported too.
      assert Support.function_supported_dtypes(&Composed.supported_attribute/1, backend: :jax) ==
               Ivy.all_float_dtypes()
    end

    test "by device", %{golden: golden} do
      by_device = fn types ->
        Map.new(types, fn {device, types} -> {to_string(device), names(types)} end)
      end

      %{"cpu:(int8,int16,uint8)" => on_cpu, "cpu:(int8,int16,uint8) supported" => supported} =
        golden["device_and_dtypes"]["result"]

      assert by_device.(
               Support.function_unsupported_devices_and_dtypes(&Composed.on_cpu/1, backend: :jax)
             ) == on_cpu

      assert by_device.(
               Support.function_supported_devices_and_dtypes(&Composed.on_cpu/1, backend: :jax)
             ) == supported

      # Beside "all" Ivy forgets what the other key said, if it comes last.
      expected =
        golden["device_and_dtypes"]["result"]["all:(complex64,) + cpu:(int8,)"]
        |> Map.update!("cpu", &Enum.sort(["complex64" | &1]))

      assert by_device.(
               Support.function_unsupported_devices_and_dtypes(&Composed.on_all/1, backend: :jax)
             ) == expected
    end

    test "blocks", %{golden: golden} do
      result = golden["context_manager"]["result_unsupported"]

      for {name, function} <- [{"before", :before}, {"f1", :f1}, {"f2", :f2}] do
        assert names(Support.function_unsupported_dtypes({Composed, function, 1}, backend: :jax)) ==
                 result[name]
      end
    end
  end

  test "ivy_casting_live.csv" do
    rows = Golden.rows("ivy_casting_live.csv")

    differences =
      for [modes, unsupported, input, live, expected] <- rows do
        result = Casting.substitute(input, group(unsupported), casting(modes))

        assert text(result) == expected,
               "#{modes}: #{input} with #{unsupported} unsupported is #{inspect(result)}"

        live != expected
      end

    # Ivy picks unsupported types, and tries but one of two modes.
    assert length(differences) == 568
    assert Enum.count(differences, & &1) == 138
  end

  test "the tables" do
    compared =
      for {file, opts} <- [
            {"ivy_promotion_precise.csv", []},
            {"ivy_promotion_nonprecise.csv", [precise: false]},
            {"ivy_promotion_array_api_only.csv", [array_api: true]}
          ],
          {left, right, expected} <- Golden.cells(file) do
        assert answer(fn -> Ivy.promote_types(left, right, opts) end) == error(expected)
      end

    assert length(compared) == 3 * 225

    compared =
      for {file, opts} <- [
            {"ivy_can_cast.csv", []},
            {"ivy_can_cast_nonprecise.csv", [precise: false]}
          ],
          {from, to, expected} <- Golden.cells(file) do
        assert Ivy.can_cast?(from, to, opts) == (expected == "1"), "#{file}: #{from} to #{to}"
      end

    assert length(compared) == 2 * 225

    rows = Golden.rows("ivy_frontend_promotion.csv")

    for [frontend, left, right, expected] <- rows do
      result = Ivy.Frontend.promote_types(left, right, String.to_atom(frontend))
      assert Dtype.name(result) == expected, "#{frontend}: #{left} with #{right}"
    end

    assert length(rows) == 916
  end

  ## The golden files' notation

  # What raises is :error, a type Ivy's name.
  defp answer(fun) do
    case attempt(fun) do
      :error -> :error
      type -> Dtype.name(type)
    end
  end

  defp attempt(fun) do
    fun.()
  rescue
    _ in [ArgumentError, Ferrox.PromotionError] -> :error
  end

  # In a process of its own, which takes its settings with it.
  defp answer_in_process(fun), do: Task.await(Task.async(fn -> attempt(fun) end))

  defp error("ERR:" <> _), do: :error
  defp error(other), do: other

  defp names(types), do: types |> Enum.map(&Dtype.name/1) |> Enum.sort()

  defp text(nil), do: "none"
  defp text(type), do: Dtype.name(type)

  defp object(text) do
    case String.split(text, " (object)") do
      ["8", ""] -> 8
      ["None", ""] -> nil
      [kind, ""] -> String.to_atom(kind)
      [name] -> name
    end
  end

  defp input("[True]"), do: [true]
  defp input("[1j]"), do: [Ferrox.Complex.new(0, 1)]
  defp input("[1,1j]"), do: [1, Ferrox.Complex.new(0, 1)]
  defp input("1j"), do: Ferrox.Complex.new(0, 1)
  defp input("1e39+1e39j"), do: Ferrox.Complex.new(1.0e39, 1.0e39)
  defp input("1e39+1j"), do: Ferrox.Complex.new(1.0e39, 1)
  defp input("inf"), do: :infinity
  defp input("nan"), do: :nan
  defp input("True"), do: true
  defp input("False"), do: false
  defp input("()"), do: {}

  defp input(text) do
    case String.split(text, " array") do
      [name, ""] ->
        tensor(name)

      [text] ->
        if text =~ ~r/^[a-z]+[0-9]*$/,
          do: text,
          else: text |> elixir() |> Golden.term()
    end
  end

  # A minus binds less than a power in Python, and a float needs no point.
  defp elixir(text) do
    text
    |> String.replace(~r/-(\d+\*\*\d+)/, "-(\\1)")
    |> String.replace(~r/(?<![.\d])(\d+)e/, "\\1.0e")
  end

  defp tensor(name), do: Ferrox.as_type(Ferrox.tensor([1, 0]), Dtype.new!(name))

  defp default("()"), do: Default.default_dtype()
  defp default("item=" <> text), do: Default.default_dtype(item: input(text))
  defp default("dtype=float16"), do: Default.default_dtype(dtype: "float16")
  defp default("dtype=float16,item=1"), do: Default.default_dtype(dtype: "float16", item: 1)

  defp default("[default int=int64] " <> rest),
    do: Default.with_default_int_dtype("int64", fn -> default(rest) end)

  defp default("[default=int16] " <> rest),
    do: Default.with_default_dtype("int16", fn -> default(rest) end)

  defp default(call) do
    [_, name, argument] = Regex.run(~r/^(\w+)\((.*)\)$/, call)
    function = String.to_atom(name)

    case String.split(argument, "=") do
      [type] -> apply(Default, function, [type])
      ["input", text] -> apply(Default, function, [[input: input(text)]])
      [key, type] -> apply(Default, function, [[{String.to_atom(key), type}]])
    end
  end

  defp inferred("[default=int16] f(1.0)"),
    do: Default.with_default_dtype("int16", fn -> Default.infer_dtype([1.0]) end)

  defp inferred("zeros((2,)).dtype"), do: Functions.zeros({2}).type
  defp inferred("full((2,),1).dtype"), do: Functions.full({2}, 1).type
  defp inferred("full((2,),1.0).dtype"), do: Functions.full({2}, 1.0).type
  defp inferred("full((2,),True).dtype"), do: Functions.full({2}, true).type
  defp inferred("arange(3).dtype"), do: Functions.arange(0, 3).type
  defp inferred("arange(0,3,0.5).dtype"), do: Functions.arange(0, 3, 0.5).type
  defp inferred("prod(uint8 array).dtype"), do: Functions.prod(tensor("uint8")).type
  defp inferred("sum(int8 array).dtype"), do: Functions.sum(tensor("int8")).type
  defp inferred("sum(float16 array).dtype"), do: Functions.sum(tensor("float16")).type
  defp inferred("cos(int32 array).dtype"), do: Functions.cos(tensor("int32")).type
  defp inferred("f()"), do: Default.infer_dtype([])
  defp inferred("f(1, [int8 array])"), do: Default.infer_dtype([1, [tensor("int8")]])
  defp inferred("f(x=uint8 array)"), do: Default.infer_dtype([], x: tensor("uint8"))

  defp inferred("f(" <> rest) do
    {opts, args} =
      rest
      |> String.trim_trailing(")")
      |> String.split(", ")
      |> Enum.split_with(&(&1 =~ "="))

    args = Enum.map(args, &input/1)
    Default.infer_dtype(args, for("dtype=" <> type <- opts, do: {:dtype, type}))
  end

  defp set("initial"), do: :ok
  defp set("after " <> setting), do: set(setting)

  defp set("Default" <> _ = manager) do
    [_, name, type] = Regex.run(~r/^(\w+)\((\w+)\)$/, manager)
    apply(Default, String.to_atom("set_" <> Macro.underscore(name)), [type])
  end

  defp set(setting) do
    [_, name, type] = Regex.run(~r/^(\w+)\((\w+)\)$/, setting)
    apply(Default, String.to_atom(name), [type])
  end

  # Maps have no order; the file's rows are told by their text.
  defp ordered(pairs, _row) when length(pairs) < 2, do: pairs

  defp ordered(pairs, row) do
    keys = Enum.map(pairs, &elem(&1, 0))
    text = Golden.read("ivy_behaviour.json")
    [_, section] = String.split(text, "\"version_resolution\"")
    _ = row

    Enum.sort_by(pairs, fn {key, _} ->
      # Where the keys stand in the first row that has all of them.
      section
      |> String.split("\"dict\"")
      |> Enum.find(fn part -> Enum.all?(keys, &String.contains?(part, "\"#{&1}\": [")) end)
      |> :binary.match("\"#{key}\": [")
      |> elem(0)
    end)
  end

  defp function(name) when name in ~w(cumsum einops_reduce acosh hypot logit var) do
    {Composed, String.to_atom(name), 1}
  end

  defp function(name) do
    name = String.to_atom(name)
    [arity | _] = for {^name, arity} <- Functions.__info__(:functions), do: arity
    arity = if name in [:prod, :clip], do: Keyword.fetch!([prod: 2, clip: 3], name), else: arity
    {Functions, name, arity}
  end

  defp casting("none"), do: []
  defp casting("cast"), do: :all
  defp casting(modes), do: modes |> String.split("+") |> Enum.map(&String.to_atom/1)

  defp group(text) do
    Enum.flat_map(String.split(text, "+"), fn
      "all" -> Dtype.all()
      "all float" -> Dtype.all(:float)
      "all int" -> Dtype.all(:int)
      "all uint" -> Dtype.all(:uint)
      "complex" -> Dtype.all(:complex)
      name -> [name]
    end)
  end
end
