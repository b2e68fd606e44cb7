defmodule Ferrox.Promotion.Query do
  @moduledoc false
  # Queries and answers as text, for `mix ferrox.promote`.

  alias Ferrox.Promotion
  alias Ferrox.Promotion.Names

  @typep answer :: {:ok, String.t()} | {:error, String.t()}

  @doc """
  Answers a line `SYSTEM[,option...]<TAB>OPERAND OPERAND ...` with the name of the resulting type, or
  with the reason why there is none.
  """
  @spec line(String.t()) :: answer
  def line(line) do
    with [system, operands] <- :binary.split(line, "\t"),
         {:ok, mode} <- mode(system) do
      ask(mode, :binary.split(operands, " ", [:global, :trim_all]))
    else
      {:error, message} -> {:error, message}
      _ -> {:error, "expected a system, a tab and operands, got: #{inspect(line)}"}
    end
  end

  @doc """
  Returns the mode for a text such as `jax,strict,x32`.

  The mode is cached in the process dictionary, because many lines of an input have the same one.
  """
  @spec mode(String.t()) :: {:ok, Promotion.mode()} | {:error, String.t()}
  def mode(text) do
    case Process.get({__MODULE__, text}) do
      nil ->
        with {:ok, {system, bits}} <- read_mode(text) do
          mode = {:ok, if(bits == 0, do: system, else: {system, bits})}
          Process.put({__MODULE__, text}, mode)
          mode
        end

      known ->
        known
    end
  end

  defp read_mode(text) do
    [name | flags] = String.split(text, ",")

    case Enum.find(Promotion.switches(), fn {system, _} -> Atom.to_string(system) == name end) do
      {system, switches} ->
        Enum.reduce_while(flags, {:ok, {system, 0}}, fn flag, {:ok, {system, bits}} ->
          case Enum.find(switches, &(elem(&1, 1) == flag)) do
            {bit, _flag, _key, _off, _on} ->
              {:cont, {:ok, {system, Bitwise.bor(bits, bit)}}}

            nil ->
              known = Enum.map_join(switches, ", ", &elem(&1, 1))
              known = if known == "", do: "none", else: known

              {:halt,
               {:error, "unknown option #{inspect(flag)} of #{name}, expected one of: #{known}"}}
          end
        end)

      nil ->
        known = Enum.map_join(Promotion.systems(), ", ", &Atom.to_string/1)
        {:error, "unknown system #{inspect(name)}, expected one of: #{known}"}
    end
  end

  @doc "Answers with the name of the type that operands, given as text, promote to."
  @spec ask(Promotion.mode(), [String.t()]) :: answer
  def ask(mode, operands) do
    case operands(operands, []) do
      {:ok, operands} -> {:ok, name(mode, Promotion.result(mode, operands))}
      error -> error
    end
  rescue
    error in [ArgumentError, Ferrox.PromotionError] -> {:error, Exception.message(error)}
  end

  defp operands([], read), do: {:ok, Enum.reverse(read)}

  defp operands([text | rest], read) do
    case operand(text) do
      :error ->
        {:error,
         "unknown type #{inspect(text)}, expected one such as uint8 or u8, bool, int*, float*, " <>
           "complex*, or a number"}

      operand ->
        operands(rest, [operand | read])
    end
  end

  # Nx's short names. They never clash with NumPy's names.
  short_names =
    for {kind, sizes} <- [
          u: [2, 4, 8, 16, 32, 64],
          s: [2, 4, 8, 16, 32, 64],
          f: [8, 16, 32, 64],
          bf: [16],
          c: [64, 128]
        ],
        size <- sizes,
        do: {"#{kind}#{size}", {kind, size}}

  names =
    for({type, numpy, _code} <- Names.all(), do: {numpy, type}) ++
      short_names ++
      [{"f8_e4m3fn", {:f8_e4m3fn, 8}}, {"int", :int}, {"float", :float}, {"complex", :complex}] ++
      [{"True", true}, {"true", true}, {"False", false}, {"false", false}, {"None", nil}]

  @doc "Returns the operand for a text: a type, `{:array, type}`, a number or nil; or `:error`."
  @spec operand(String.t()) :: term | :error
  def operand(text)

  for {name, operand} <- names do
    def operand(unquote(name)), do: unquote(operand)
  end

  def operand(text) do
    size = byte_size(text) - 2

    case text do
      <<name::binary-size(size), "[]">> when size > 0 ->
        case operand(name) do
          type when is_tuple(type) or type == :bool -> {:array, type}
          _ -> :error
        end

      _ ->
        number(text)
    end
  end

  defp number(text) do
    case Integer.parse(text) do
      {integer, ""} -> integer
      {integer, "j"} -> %{re: 0.0, im: integer * 1.0}
      _ -> float(text)
    end
  end

  defp float(text) do
    case Float.parse(text) do
      {float, ""} -> float
      {float, "j"} -> %{re: 0.0, im: float}
      _ -> non_finite(text)
    end
  rescue
    # The number is larger than any float.
    ArgumentError -> :error
  end

  defp non_finite(text) when text in ["inf", "Inf", "infinity"], do: :infinity
  defp non_finite(text) when text in ["-inf", "-Inf"], do: :neg_infinity
  defp non_finite(text) when text in ["nan", "NaN"], do: :nan
  defp non_finite(_text), do: :error

  @doc "Returns the name of a type: Nx's name under the systems of Nx, else NumPy's."
  @spec name(Promotion.mode(), Promotion.t()) :: String.t()
  def name(mode, type) do
    system = if is_tuple(mode), do: elem(mode, 0), else: mode
    if system in [:nx, :nx_0_9], do: Names.short(type), else: Names.numpy(type)
  end
end
