defmodule Ferrox.Promotion.Names do
  @moduledoc false
  # What the types are called: by Nx, by NumPy and its kin, and in the documents
  # of JAX, which count bytes: their `u8` is NumPy's uint64 and Nx's u64.

  @names [
    {:bool, "bool", "b1"},
    {{:u, 8}, "uint8", "u1"},
    {{:u, 16}, "uint16", "u2"},
    {{:u, 32}, "uint32", "u4"},
    {{:u, 64}, "uint64", "u8"},
    {{:s, 8}, "int8", "i1"},
    {{:s, 16}, "int16", "i2"},
    {{:s, 32}, "int32", "i4"},
    {{:s, 64}, "int64", "i8"},
    {{:bf, 16}, "bfloat16", "bf"},
    {{:f, 16}, "float16", "f2"},
    {{:f, 32}, "float32", "f4"},
    {{:f, 64}, "float64", "f8"},
    {{:c, 64}, "complex64", "c8"},
    {{:c, 128}, "complex128", "c16"},
    {:int, "int*", "i*"},
    {:float, "float*", "f*"},
    {:complex, "complex*", "c*"}
  ]

  # Every type that has NumPy's and JAX's name, in the order of JAX's document.
  def all, do: unquote(Macro.escape(@names))

  for {type, numpy, code} <- @names do
    def numpy(unquote(Macro.escape(type))), do: unquote(numpy)
    def code(unquote(Macro.escape(type))), do: unquote(code)
    def from_numpy(unquote(numpy)), do: unquote(Macro.escape(type))
    def from_code(unquote(code)), do: unquote(Macro.escape(type))
  end

  def numpy(other), do: short(other)
  def code(other), do: short(other)
  def from_numpy(_other), do: nil
  def from_code(_other), do: nil

  # Nx's, with a star for the weak types.
  def short(weak) when weak in [:int, :float, :complex], do: "#{weak}*"
  def short(:bool), do: "bool"
  def short(type), do: Ferrox.Type.to_string(type)
end
