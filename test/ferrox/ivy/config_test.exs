defmodule Ferrox.Ivy.ConfigTest do
  # Alone, since the application's configuration is everyone's.
  use ExUnit.Case

  alias Ferrox.Ivy
  alias Ferrox.Ivy.{Casting, Default, Profile}

  setup do
    on_exit(fn -> Application.delete_env(:ferrox, :ivy) end)
  end

  test "the application's configuration is below what a process sets" do
    Application.put_env(:ferrox, :ivy,
      backend: {:torch, "2.0.1"},
      precise: false,
      casting: [:up],
      default_int_dtype: "int64",
      default_float_dtype: "bfloat16"
    )

    assert Profile.current().version == "2.0.1"
    assert Ivy.promote_types("int32", "float32") == {:f, 32}
    assert Casting.modes() == [:up]
    assert Default.default_int_dtype() == {:s, 64}
    assert Default.default_dtype() == {:bf, 16}

    Profile.with_backend(nil, fn ->
      Ivy.with_precise_mode(true, fn ->
        assert Profile.current() == nil
        assert Ivy.promote_types("int32", "float32") == {:f, 64}
        Casting.with_casting([], fn -> assert Casting.modes() == [] end)
      end)
    end)

    assert Casting.modes() == [:up]
  end

  test "what is configured is checked" do
    for {setting, value, ask} <- [
          {:backend, :cupy, &Profile.current/0},
          {:precise, "no", &Ivy.precise_mode/0},
          {:casting, [:sideways], &Casting.modes/0},
          {:default_int_dtype, "float32", &Default.default_int_dtype/0},
          {:default_dtype, "int7", &Default.default_dtype/0}
        ] do
      Application.put_env(:ferrox, :ivy, [{setting, value}])
      assert_raise ArgumentError, ask
    end
  end
end
