defmodule Ferrox.Promotion.Names do
  @moduledoc false
  # The names of the types in Nx, in NumPy and similar libraries, and in the documentation of JAX.
  # JAX's codes count bytes: its `u8` is NumPy's uint64 and Nx's u64.

  alias Ferrox.Promotion

  # `{type, NumPy's name, JAX's code}`, in the order of JAX's documentation.
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

  @doc "Returns `{type, NumPy's name, JAX's code}` of all types that have these names, in JAX's order."
  @spec all() :: [{Promotion.t(), String.t(), String.t()}]
  def all, do: unquote(Macro.escape(@names))

  @doc "Returns NumPy's name of a type, or Nx's where NumPy has none."
  @spec numpy(Promotion.t()) :: String.t()
  def numpy(type)

  @doc "Returns JAX's code of a type, or Nx's name where JAX has none."
  @spec code(Promotion.t()) :: String.t()
  def code(type)

  @doc "Returns the type with NumPy's name, or nil."
  @spec from_numpy(String.t()) :: Promotion.t() | nil
  def from_numpy(name)

  @doc "Returns the type with JAX's code, or nil."
  @spec from_code(String.t()) :: Promotion.t() | nil
  def from_code(code)

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

  @doc "Returns Nx's short name of a type. A weak type ends in a star."
  @spec short(Promotion.t()) :: String.t()
  def short(weak) when weak in [:int, :float, :complex], do: "#{weak}*"
  def short(:bool), do: "bool"
  def short(type), do: Ferrox.Type.to_string(type)
end
