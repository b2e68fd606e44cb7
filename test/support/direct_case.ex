defmodule Ferrox.DirectCase do
  @moduledoc "A test case of the direct API."

  use ExUnit.CaseTemplate

  using do
    quote do
      import Ferrox.DirectCase
    end
  end

  @doc "Asserts that a function raises an `ArgumentError` with a message that has, or matches, `message`."
  @spec raises(String.t() | Regex.t(), fun) :: true
  def raises(message, fun) do
    error = assert_raise(ArgumentError, fun)
    assert Exception.message(error) =~ message
  end

  @doc "The elements of a tensor, in row-major order."
  @spec list(Ferrox.Tensor.t()) :: list
  def list(tensor), do: Ferrox.to_flat_list(tensor)

  @doc "The types of integers and of real floats."
  @spec real_types() :: [Ferrox.Type.t()]
  def real_types do
    for type <- ~w(u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64 f8 f8_e4m3fn f16 bf16 f32 f64)a,
        do: Ferrox.Type.normalize!(type)
  end
end
