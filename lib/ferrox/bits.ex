defmodule Ferrox.Bits do
  @moduledoc false
  # Sizes in patterns of bitstrings.

  @doc """
  `size(variable)` in a pattern, for a variable that was bound before the pattern.

  From Elixir 1.20 on such a variable is pinned, which earlier versions refuse.

      iex> import Ferrox.Bits
      iex> bits = 16
      iex> <<x::bound_size(bits)-little, _::binary>> = <<1, 0, 2>>
      iex> x
      1

  """
  defmacro bound_size({_name, _meta, context} = variable) when is_atom(context) do
    if Version.match?(System.version(), ">= 1.20.0-rc.0"),
      do: quote(do: size(^unquote(variable))),
      else: quote(do: size(unquote(variable)))
  end
end
