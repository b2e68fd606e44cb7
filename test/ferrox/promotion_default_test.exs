defmodule Ferrox.PromotionDefaultTest do
  # Changes the application's configuration, so nothing else runs meanwhile.
  use ExUnit.Case, async: false

  alias Ferrox.Promotion

  setup do
    on_exit(fn ->
      Application.delete_env(:ferrox, :promotion)
      Promotion.global_default([])
    end)
  end

  test "the application's configuration is the default, and with/2 goes before it" do
    for promotion <- [[system: :jax, strict: true], {:jax, strict: true}] do
      Application.put_env(:ferrox, :promotion, promotion)
      Promotion.global_default([])
      assert Promotion.current() == [system: :jax, strict: true]
      assert_raise Ferrox.PromotionError, fn -> Promotion.promote(:u8, :s8) end
      assert Promotion.promote(:u8, :s8, strict: false) == {:s, 16}
      assert Promotion.with(:numpy, &Promotion.current/0) == [system: :numpy]
    end

    Application.put_env(:ferrox, :promotion, :ivy)
    # Read once only.
    assert Promotion.current() == [system: :jax, strict: true]
    Promotion.global_default([])
    assert Promotion.promote(:s32, :f32) == {:f, 64}
    Promotion.global_default(precise: false)
    assert Promotion.current() == [system: :ivy, precise: false]
  end

  test "global_default/1 changes what is in effect and returns what was" do
    assert Promotion.global_default({:jax, x64: false}) == [system: :nx]
    assert Promotion.current() == [system: :jax, x64: false]
    assert %Ferrox.Tensor{type: {:s, 32}, weak: true} = Ferrox.tensor(1)
    assert Task.await(Task.async(fn -> Ferrox.type(Ferrox.less(1, 2)) end)) == :bool
    assert Promotion.with(:nx, fn -> Ferrox.type(Ferrox.less(1, 2)) end) == {:u, 8}
    assert Ferrox.type(Ferrox.add(Ferrox.tensor([1]), 1.5, promotion: :numpy)) == {:f, 64}
    assert Promotion.global_default(:nx) == [system: :jax, x64: false]
    assert Ferrox.tensor(1).weak == false

    assert_raise ArgumentError, ~r/unknown promotion system :ny/, fn ->
      Promotion.global_default(:ny)
    end
  end

  test "a configuration that is none says so" do
    for bad <- [:ny, {:jax, strict: 1}, [x64: false], "jax", {"jax", []}] do
      Application.put_env(:ferrox, :promotion, bad)
      assert_raise ArgumentError, fn -> Promotion.global_default([]) end
    end
  end
end
