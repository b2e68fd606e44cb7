defmodule Ferrox.PromotionResultsTest do
  # What operations give in live libraries, operation by operation.
  use ExUnit.Case, async: true

  alias Ferrox.{Golden, Promotion}
  alias Ferrox.Promotion.Names

  doctest Ferrox.Promotion.Results

  @modes %{
    "numpy" => :numpy,
    "array_api" => :array_api,
    "jax" => :jax,
    "jax-x32" => {:jax, x64: false}
  }

  @ordered ~w(sign floor ceil round min max reduce_max reduce_min argmax argmin clip) ++
             ~w(less less_equal greater greater_equal remainder)

  for {system, promotion} <- @modes do
    test "under #{system}" do
      promotion = unquote(Macro.escape(promotion))
      rows = for [unquote(system) | row] <- Golden.rows("results.csv"), do: row
      assert length(rows) > 700

      wrong =
        for [op, type, expected] <- rows,
            expected = expected(unquote(system), op, type, expected),
            got = run(op, Names.from_numpy(type), promotion),
            got != expected,
            do: "#{op} of #{type} is #{expected}, got #{got}"

      assert wrong == []
    end
  end

  @mixed Map.merge(@modes, %{
           "jax-strict" => {:jax, strict: true},
           "jax-x32-strict" => {:jax, strict: true, x64: false}
         })

  # FERROX_MIXED names another file that mixed.py has written.
  test "random operations on two operands" do
    file = System.get_env("FERROX_MIXED", "mixed.csv")
    rows = Golden.rows(file)
    assert length(rows) > 2000

    wrong =
      for [system, op, left, right, live] <- rows,
          # JAX has rules of its own for powers to integers.
          not (op == "pow" and system =~ "jax"),
          promotion = Map.fetch!(@mixed, system),
          expected = expected(system, op, "#{left} #{right}", live),
          got = mixed(op, left, right, promotion),
          got != expected,
          do: "#{op} of #{left} and #{right} under #{system} is #{expected}, got #{got}"

    assert wrong == []
  end

  defp mixed(op, left, right, promotion) do
    Promotion.with(promotion, fn ->
      [a, b] = Enum.map([left, right], &operand/1)

      result =
        case op do
          "select" -> Ferrox.select(true, a, b)
          "clip" -> Ferrox.clip(a, b, b)
          op -> apply(Ferrox, String.to_existing_atom(op), [a, b])
        end

      Names.numpy(result.type) <> if(result.weak, do: "*", else: "")
    end)
  rescue
    ArgumentError -> "error"
    Ferrox.PromotionError -> "error"
  end

  defp operand("1j"), do: Ferrox.Complex.new(0, 1)
  defp operand("True"), do: true

  defp operand(text) do
    name = String.trim_trailing(text, "[]")
    shape = if name == text, do: {}, else: {2}

    case Names.from_numpy(name) do
      nil -> Golden.term(text)
      type when type in [:int, :float, :complex] -> Ferrox.full(shape, literal(type))
      type -> Ferrox.full(shape, 1, type: type)
    end
  end

  # Where Ferrox differs, each for a reason.
  defp expected(system, op, type, live) do
    jax? = system =~ "jax"
    complex? = type =~ "complex" or type =~ "1j"

    cond do
      # As in Nx, a quotient is one of integers.
      op == "quotient" and type =~ "float" -> "error"
      # Ferrox has no order of complex numbers, nor have most of these libraries.
      op in @ordered and complex? -> "error"
      # An angle is only that of real numbers, and 1j is none.
      op == "atan2" and type =~ "1j" -> "error"
      # A bool is never weak, though comparisons of weak values carry the flag there.
      String.starts_with?(live, "bool") -> "bool"
      # An integer power loses the flag there, unlike all other elementwise operations.
      jax? and op == "pow" and type == "int*" -> live <> "*"
      true -> live
    end
  end

  @two ~w(add subtract multiply pow remainder quotient min max divide atan2 bitwise_and) ++
         ~w(bitwise_or bitwise_xor left_shift right_shift equal not_equal less less_equal) ++
         ~w(greater greater_equal logical_and logical_or logical_xor dot)

  defp run(op, type, promotion) do
    Promotion.with(promotion, fn ->
      x =
        if Promotion.weak?(type),
          do: Ferrox.full({2}, literal(type)),
          else: Ferrox.full({2}, 1, type: type)

      result = apply_op(op, x)
      assert bit_size(result.data) == Ferrox.size(result) * bits(result.type)
      Names.numpy(result.type) <> if(result.weak, do: "*", else: "")
    end)
  rescue
    error in ArgumentError ->
      assert error.message =~ "is not defined for"
      "error"
  end

  defp bits(:bool), do: 8
  defp bits({_, bits}), do: bits

  defp literal(:int), do: 1
  defp literal(:float), do: 1.0
  defp literal(:complex), do: Ferrox.Complex.new(1, 0)

  defp apply_op(op, x) when op in @two, do: apply(Ferrox, String.to_existing_atom(op), [x, x])
  defp apply_op("concatenate", x), do: Ferrox.concatenate([x, x])
  defp apply_op("stack", x), do: Ferrox.stack([x, x])
  defp apply_op("select", x), do: Ferrox.select(Ferrox.tensor([true, true]), x, x)

  defp apply_op("clip", x) do
    first = x |> Ferrox.slice([0], [1]) |> Ferrox.squeeze()
    Ferrox.clip(x, first, first)
  end

  defp apply_op("reshape", x), do: Ferrox.reshape(x, {1, 2})
  defp apply_op("broadcast", x), do: Ferrox.broadcast(x, {2, 2})
  defp apply_op(op, x), do: apply(Ferrox, String.to_existing_atom(op), [x])
end
