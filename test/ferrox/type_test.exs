defmodule Ferrox.TypeTest do
  use ExUnit.Case, async: true

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.{Golden, Promotion, Type}

  doctest Ferrox.Type

  # A promotion system, and the release of Nx that its golden files come from.
  @golden [nx: "0.13.1", nx_0_9: "0.9.2"]

  @questions ~w(to_aggregate to_complex to_floating to_real to_string
    integer? float? complex? infinite_float?)a

  @constants ~w(min_finite_binary max_finite_binary min_binary max_binary
    nan_binary infinity_binary neg_infinity_binary smallest_positive_normal_binary
    epsilon_binary pi_binary e_binary euler_gamma_binary)a

  for {system, version} <- @golden do
    describe "as Nx #{version}" do
      @describetag system: system, version: version

      test "merge_number/3", %{system: system, version: version} do
        check("nx_merge_number_#{version}.csv", 80, fn number, type ->
          Type.merge_number(type, number, system)
        end)
      end

      test "cast_number!/2", %{version: version} do
        check("nx_cast_number_#{version}.csv", 21, fn number, type ->
          Type.cast_number!(type, number)
        end)
      end

      test "merge/3", %{system: system, version: version} do
        for {left, right, expected} <- Golden.cells("nx_merge_#{version}.csv") do
          [left, right] = Enum.map([left, right], &Type.normalize!(String.to_atom(&1)))
          merged = Type.merge(left, right, system)

          assert Type.to_string(merged) == expected,
                 "merge(#{inspect(left)}, #{inspect(right)}) is #{expected}, got #{inspect(merged)}"
        end
      end

      test "what is told about each type", %{version: version} do
        golden = Golden.json("nx_type_#{version}.json")
        assert map_size(golden["per_type"]) == length(golden["types"])

        for {name, answers} <- golden["per_type"] do
          type = Type.normalize!(String.to_atom(name))
          assert answers["tuple"] == inspect(type)

          asked =
            for fun <- @questions ++ @constants,
                {:ok, expected} <- [Map.fetch(answers, Atom.to_string(fun))] do
              got = Golden.attempt(fn -> apply(Type, fun, [type]) end)

              assert same?(expected, got),
                     "#{fun}(#{inspect(type)}) is #{inspect(expected)}, got #{inspect(got)}"

              fun
            end

          assert length(asked) == map_size(answers) - 1
        end
      end

      test "normalize!/2", %{system: system, version: version} do
        golden = Golden.json("nx_type_#{version}.json")["normalize!"]
        assert map_size(golden) > 40

        for {text, expected} <- golden do
          got = Golden.attempt(fn -> Type.normalize!(Golden.term(text), system) end)

          assert same?(expected, got),
                 "normalize!(#{text}) is #{inspect(expected)}, got #{inspect(got)}"
        end
      end

      test "infer/1", %{version: version} do
        for {text, expected} <- Golden.json("nx_type_#{version}.json")["infer"] do
          got = Golden.attempt(fn -> Type.infer(Golden.term(text)) end)

          assert same?(expected, got),
                 "infer(#{text}) is #{inspect(expected)}, got #{inspect(got)}"
        end
      end
    end
  end

  # Compares every cell of a table whose rows are numbers and whose columns are
  # types.
  defp check(file, rows, fun) do
    cells = Golden.cells(file)
    columns = cells |> Enum.map(&elem(&1, 1)) |> Enum.uniq()
    assert length(cells) == rows * length(columns)

    for {number, name, expected} <- cells do
      # Too long to be written out there.
      expected = if expected == "2^1030", do: inspect(2 ** 1030), else: expected
      type = Type.normalize!(String.to_atom(name))

      got =
        case Golden.attempt(fn -> fun.(Golden.term(number), type) end) do
          {:ok, term} -> Golden.text(term)
          {:error, exception, _message} -> exception
        end

      assert got == expected, "#{file}: #{number} in #{name} is #{expected}, got #{got}"
    end
  end

  defp same?(%{"error" => exception} = expected, {:error, exception, message}),
    do: expected["message"] in [nil, message]

  defp same?(%{"bits" => size, "bitstring" => digits}, {:ok, bits}),
    do: bits == <<String.to_integer(digits, 2)::size(size)>>

  defp same?(%{"bits" => size, "hex_le" => hex}, {:ok, bits}) do
    value = hex |> Base.decode16!(case: :lower) |> :binary.decode_unsigned(:little)
    bits == <<value::size(size)-native>>
  end

  defp same?(expected, {:ok, answer}) when is_boolean(expected), do: answer == expected
  defp same?(expected, {:ok, answer}) when is_binary(answer), do: answer == expected

  defp same?(expected, {:ok, {_, _} = type}),
    do: expected in [inspect(type), Type.to_string(type)]

  defp same?(_expected, _got), do: false

  # The golden files are of two releases; this is whichever is there. The types
  # are those that every release has.
  @tag :nx
  test "as the installed Nx" do
    nx = Nx.Type
    types = Promotion.types(:nx_0_9)
    system = if apply(nx, :merge, [{:f, 64}, {:c, 64}]) == {:c, 128}, do: :nx, else: :nx_0_9

    numbers =
      for power <- 0..65, off <- [-1, 0, 1], sign <- [1, -1], do: sign * (2 ** power + off)

    for left <- types, right <- types do
      assert Type.merge(left, right, system) == apply(nx, :merge, [left, right])
    end

    for type <- types, number <- [1.5 | numbers] do
      assert Type.merge_number(type, number, system) == apply(nx, :merge_number, [type, number])
    end

    for {fun, 1} <- apply(nx, :__info__, [:functions]), type <- types do
      ours = Golden.attempt(fn -> apply(Type, fun, [type]) end)
      theirs = Golden.attempt(fn -> apply(nx, fun, [type]) end)

      # A missing clause names its module.
      without_message = fn
        {:error, "ERR:FunctionClauseError", _message} -> :function_clause
        result -> result
      end

      assert without_message.(ours) == without_message.(theirs), "#{fun}(#{inspect(type)})"
    end
  end

  describe "by default" do
    test "merge/2 and merge_number/2 are those of Nx 0.9" do
      for a <- Promotion.types(:nx_0_9), b <- Promotion.types(:nx_0_9) do
        assert Type.merge(a, b) == Type.merge(a, b, :nx_0_9)
      end

      for a <- Promotion.types(:nx_0_9), n <- [-1, 0, 300, 1.0] do
        assert Type.merge_number(a, n) == Type.merge_number(a, n, :nx_0_9)
      end
    end

    test "merge/2 and merge_number/2 refuse f8_e4m3fn by name" do
      e4m3fn = {:f8_e4m3fn, 8}

      for {left, right} <- [{e4m3fn, {:f, 32}}, {{:f, 32}, e4m3fn}, {e4m3fn, e4m3fn}] do
        assert_raise ArgumentError, ~r/^nx_0_9 does not define .* has no type f8_e4m3fn/, fn ->
          Type.merge(left, right)
        end
      end

      assert_raise ArgumentError, ~r/f8_e4m3fn with 1: it has no type/, fn ->
        Type.merge_number(e4m3fn, 1)
      end
    end

    test "normalize!/1 takes every type that Ferrox has" do
      for type <- Promotion.types(:nx) do
        assert Type.normalize!(type) == type
        assert Type.normalize!(String.to_atom(Type.to_string(type))) == type
      end
    end
  end

  describe "what is no type" do
    test "has no clause where it has none in Nx" do
      for {fun, args} <- [
            merge: [:u8, {:s, 8}],
            merge: [{:k, 8}, {:s, 8}],
            merge_number: [:u8, 1],
            merge_number: [{:u, 8}, "1"],
            merge_number: [{:f, 32}, :nan],
            to_floating: [{:k, 8}],
            integer?: [:u8],
            float?: [:u8],
            complex?: [:u8],
            min_binary: [{:k, 8}],
            to_string: [:u8]
          ] do
        assert_raise FunctionClauseError, fn -> apply(Type, fun, args) end
      end
    end

    test "is an error where Nx makes up an answer" do
      assert_raise ArgumentError, ~r/unknown type {:s, 3}, expected .*:s8/, fn ->
        Type.merge({:s, 3}, {:s, 8})
      end

      assert_raise ArgumentError, ~r/unknown type {:u, 7}/, fn -> Type.merge({:s, 8}, {:u, 7}) end

      assert_raise ArgumentError, ~r/unknown type {:f, 9}/, fn ->
        Type.merge_number({:f, 9}, 1)
      end

      assert_raise FunctionClauseError, fn -> apply(Type, :merge, [{:k, 8}, {:k, 8}]) end
      assert_raise FunctionClauseError, fn -> apply(Type, :to_complex, [:u8]) end
    end

    test "is no constant's" do
      for fun <- [:epsilon_binary, :smallest_positive_normal_binary, :pi_binary] do
        assert_raise ArgumentError, "only floating types are supported, got: :f32", fn ->
          apply(Type, fun, [:f32])
        end
      end
    end
  end

  test "an unknown system is an error that lists the known ones" do
    message = ~r/^unknown promotion system :nx_1, expected one of: :nx, :nx_0_9/

    for call <- [
          fn -> Type.merge({:u, 8}, {:s, 8}, :nx_1) end,
          fn -> Type.merge_number({:u, 8}, 1, :nx_1) end,
          fn -> Type.normalize!(:u8, :nx_1) end
        ] do
      assert_raise ArgumentError, message, call
    end
  end

  describe "nearest_binary/2" do
    @values [pi: 3.141592653589793, e: 2.718281828459045, euler_gamma: 0.5772156649015329]

    # {type, exponent bias, mantissa bits}
    @small [{{:f, 8}, 15, 2}, {{:f8_e4m3fn, 8}, 7, 3}, {{:f, 16}, 15, 10}, {{:bf, 16}, 127, 7}]

    test "is nearest among all values of the small types" do
      for {{_, size} = type, bias, mantissa} <- @small, {constant, value} <- @values do
        nearest =
          0..0x7FFF
          |> Enum.take_while(&(<<&1::size(size)-native>> != Type.max_finite_binary(type)))
          |> Enum.min_by(&abs(decode(&1, bias, mantissa) - value))

        assert Type.nearest_binary(constant, type) == <<nearest::size(size)-native>>,
               "#{constant} in #{inspect(type)}"
      end
    end

    test "is what Elixir's floats round to" do
      for size <- [16, 32, 64], {constant, value} <- @values do
        assert Type.nearest_binary(constant, {:f, size}) == <<value::float-size(size)-native>>
      end
    end

    test "steps from 1 to the next value with epsilon" do
      for {{_, size} = type, bias, mantissa} <- @small do
        one = Bitwise.bsl(bias, mantissa)
        step = decode(one + 1, bias, mantissa) - 1
        <<epsilon::bound_size(size)-native>> = Type.nearest_binary(:epsilon, type)
        assert decode(epsilon, bias, mantissa) == step, inspect(type)
      end
    end

    test "differs from Nx in seven values" do
      different =
        for {type, _, _} <- @small ++ [{{:f, 32}, 0, 0}, {{:f, 64}, 0, 0}],
            constant <- [:epsilon, :pi, :e, :euler_gamma],
            apply(Type, :"#{constant}_binary", [type]) != Type.nearest_binary(constant, type),
            do: {elem(type, 0), constant}

      assert Enum.sort(different) == [
               bf: :e,
               bf: :euler_gamma,
               f: :euler_gamma,
               f8_e4m3fn: :e,
               f8_e4m3fn: :epsilon,
               f8_e4m3fn: :euler_gamma,
               f8_e4m3fn: :pi
             ]
    end

    test "is given for real floats only" do
      assert_raise ArgumentError, "only floating types are supported, got: {:c, 64}", fn ->
        Type.nearest_binary(:pi, {:c, 64})
      end

      assert_raise FunctionClauseError, fn -> apply(Type, :nearest_binary, [:tau, {:f, 32}]) end
    end

    defp decode(bits, bias, mantissa) do
      unit = Bitwise.bsl(1, mantissa)
      exponent = div(bits, unit)
      fraction = rem(bits, unit) / unit

      if exponent == 0,
        do: fraction * :math.pow(2, 1 - bias),
        else: (1 + fraction) * :math.pow(2, exponent - bias)
    end
  end
end
