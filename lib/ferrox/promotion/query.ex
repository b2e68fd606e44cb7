defmodule Ferrox.Promotion.Query do
  @moduledoc false
  # Queries and answers as text, for `mix ferrox.promote`.

  import Ferrox.Bits, only: [bound_size: 1]

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
    with nil <- Process.get({__MODULE__, text}),
         {:ok, _} = mode <- read_mode(text) do
      Process.put({__MODULE__, text}, mode)
      mode
    end
  end

  defp read_mode(text) do
    [name | flags] = String.split(text, ",")

    case Enum.find(Promotion.switches(), fn {system, _} -> Atom.to_string(system) == name end) do
      {system, switches} ->
        known = for {_bit, flag, _key, _off, _on} <- switches, do: flag
        bits = Enum.sum(for {bit, flag, _key, _off, _on} <- switches, flag in flags, do: bit)

        case Enum.find(flags, &(&1 not in known)) do
          nil -> {:ok, if(bits == 0, do: system, else: {system, bits})}
          flag -> {:error, unknown("option", flag, " of #{name}", known)}
        end

      nil ->
        {:error, unknown("system", name, "", Promotion.systems())}
    end
  end

  defp unknown(what, text, where, known) do
    known = if known == [], do: "none", else: Enum.join(known, ", ")
    "unknown #{what} #{inspect(text)}#{where}, expected one of: #{known}"
  end

  @doc "Answers with the name of the type that operands, given as text, promote to."
  @spec ask(Promotion.mode(), [String.t()]) :: answer
  def ask(mode, operands) do
    {:ok, name(mode, Promotion.result(mode, Enum.map(operands, &operand!/1)))}
  rescue
    error in [ArgumentError, Ferrox.PromotionError] -> {:error, Exception.message(error)}
  end

  defp operand!(text) do
    with :error <- operand(text) do
      raise ArgumentError,
            "unknown type #{inspect(text)}, expected one such as uint8 or u8, bool, int*, " <>
              "float*, complex*, or a number"
    end
  end

  ints = [2, 4, 8, 16, 32, 64]

  # Nx's short names never clash with NumPy's names.
  names =
    for({type, numpy, _code} <- Names.all(), do: {numpy, type}) ++
      for(
        {kind, sizes} <- [u: ints, s: ints, f: [8, 16, 32, 64], bf: [16], c: [64, 128]],
        size <- sizes,
        do: {"#{kind}#{size}", {kind, size}}
      ) ++
      [{"f8_e4m3fn", {:f8_e4m3fn, 8}}, {"int", :int}, {"float", :float}, {"complex", :complex}] ++
      [{"True", true}, {"true", true}, {"False", false}, {"false", false}, {"None", nil}] ++
      [{"inf", :infinity}, {"Inf", :infinity}, {"infinity", :infinity}] ++
      [{"-inf", :neg_infinity}, {"-Inf", :neg_infinity}, {"nan", :nan}, {"NaN", :nan}]

  @doc "Returns the operand for a text: a type, `{:array, type}`, a number or nil; or `:error`."
  @spec operand(String.t()) :: term | :error
  def operand(text)

  for {name, operand} <- names do
    def operand(unquote(name)), do: unquote(operand)
  end

  def operand(text) do
    size = byte_size(text) - 2

    case text do
      <<name::binary-bound_size(size), "[]">> when size > 0 ->
        case operand(name) do
          type when is_tuple(type) or type == :bool -> {:array, type}
          _ -> :error
        end

      _ ->
        number(text)
    end
  end

  defp number(text) do
    with :error <- parse(text, Integer), do: parse(text, Float)
  rescue
    # The number is larger than any float.
    _ in [ArgumentError, ArithmeticError] -> :error
  end

  defp parse(text, module) do
    case module.parse(text) do
      {number, ""} -> number
      {number, "j"} -> %{re: 0.0, im: number * 1.0}
      _ -> :error
    end
  end

  @doc "Returns the name of a type: Nx's name under the systems of Nx, else NumPy's."
  @spec name(Promotion.mode(), Promotion.t()) :: String.t()
  def name(mode, type) do
    system = if is_tuple(mode), do: elem(mode, 0), else: mode
    if system in [:nx, :nx_0_9], do: Names.short(type), else: Names.numpy(type)
  end
end
