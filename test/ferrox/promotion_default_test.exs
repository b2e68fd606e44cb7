defmodule Ferrox.PromotionDefaultTest do
  # Changes the application's configuration, so nothing else runs meanwhile.
  use ExUnit.Case, async: false

  alias Ferrox.Promotion

  setup do
    on_exit(fn -> Application.delete_env(:ferrox, :promotion) end)
  end

  test "the application's configuration is the default, and with/2 goes before it" do
    for promotion <- [[system: :jax, strict: true], {:jax, strict: true}] do
      Application.put_env(:ferrox, :promotion, promotion)
      assert Promotion.current() == [system: :jax, strict: true]
      assert_raise Ferrox.PromotionError, fn -> Promotion.promote(:u8, :s8) end
      assert Promotion.promote(:u8, :s8, strict: false) == {:s, 16}
      assert Promotion.with(:numpy, &Promotion.current/0) == [system: :numpy]
    end

    Application.put_env(:ferrox, :promotion, :ivy)
    assert Promotion.promote(:s32, :f32) == {:f, 64}
  end
end
