defmodule Ferrox.PromotionExpressionTest do
  use ExUnit.Case, async: true

  doctest Ferrox.Promotion.Expression

  alias Ferrox.Golden
  alias Ferrox.Promotion.Expression

  # The document's example and its kin, each grouped in both ways.
  test "groupings are those of NumPy 2 and JAX live" do
    live = Golden.json("jax_scalar_weak.json")["x64"]["expressions"]

    for {text, expression} <- [
          {"np.int16(1) + 1 + jnp.int16(1)", {:jax, {:numpy, :s16, 1}, :s16}},
          {"np.int16(1) + (1 + jnp.int16(1))", {:jax, :s16, {:jax, 1, :s16}}},
          {"(np.int16(1) + 1.0) + jnp.int16(1)", {:jax, {:numpy, :s16, 1.0}, :s16}},
          {"np.int16(1) + (1.0 + jnp.int16(1))", {:jax, :s16, {:jax, 1.0, :s16}}},
          {"(np.int16(1) + 1.0) + jnp.float16(1)", {:jax, {:numpy, :s16, 1.0}, :f16}},
          {"np.int16(1) + (1.0 + jnp.float16(1))", {:jax, :s16, {:jax, 1.0, :f16}}},
          {"(np.uint64(1) + np.int64(1)) + jnp.float16(1)", {:jax, {:numpy, :u64, :s64}, :f16}},
          {"np.uint64(1) + (np.int64(1) + jnp.float16(1))", {:jax, :u64, {:jax, :s64, :f16}}}
        ] do
      type = Expression.type(expression)
      %{"dtype" => dtype, "weak" => weak} = Map.fetch!(live, text)
      assert Ferrox.Promotion.weak?(type) == weak, text
      concrete = Ferrox.Promotion.concrete(type, system: :jax)
      assert Ferrox.Promotion.Names.numpy(concrete) == dtype, text
    end
  end

  test "an operation is refused by its own system" do
    assert_raise Ferrox.PromotionError, ~r/under system: :jax, strict: true/, fn ->
      Expression.type({:nx, :u8, {{:jax, strict: true}, :u8, :s8}})
    end

    assert_raise ArgumentError, ~r/unknown promotion system :jacks/, fn ->
      Expression.type({:jacks, :u8, :s8})
    end
  end
end
