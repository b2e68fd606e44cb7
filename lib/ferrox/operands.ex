defmodule Ferrox.Operands do
  @moduledoc false
  # What the direct API is given: options, types, and tensors or numbers in
  # their place.

  import Ferrox.Numbers, only: [is_number_term: 1]

  alias Ferrox.{Numbers, Promotion, Tensor, Type}
  alias Ferrox.Promotion.Results

  @doc "The promotion that the options ask for, else what is in effect."
  @spec mode!(term, atom) :: Promotion.mode()
  def mode!([], _op), do: Promotion.in_effect()
  def mode!(opts, op), do: opts |> options!([:promotion], op) |> promotion!(op)

  @doc "The same where the options have been looked at."
  @spec promotion!(keyword, atom) :: Promotion.mode()
  def promotion!(opts, op) do
    case Keyword.get(opts, :promotion, []) do
      mode when is_atom(mode) or is_list(mode) or is_tuple(mode) -> Promotion.mode(mode)
      other -> raise ArgumentError, "#{op}: :promotion must be a system, got: #{inspect(other)}"
    end
  end

  @doc "The options, if all of them are known."
  @spec options!(term, [atom], atom) :: keyword
  def options!(opts, known, op),
    do: if(known?(opts, known), do: opts, else: refuse_options!(opts, known, op))

  defp known?([], _known), do: true

  defp known?([{key, _value} | opts], known),
    do: :lists.member(key, known) and known?(opts, known)

  defp known?(_opts, _known), do: false

  @spec refuse_options!(term, [atom], atom) :: no_return
  defp refuse_options!(opts, known, op) do
    unless Keyword.keyword?(opts) do
      raise ArgumentError, "#{op} expects a keyword list of options, got: #{inspect(opts)}"
    end

    {unknown, _value} = Enum.find(opts, fn {key, _value} -> key not in known end)

    raise ArgumentError,
          "#{op}: unknown option #{inspect(unknown)}, known are #{Enum.map_join(known, ", ", &inspect/1)}"
  end

  @spec boolean!(keyword, atom, atom) :: boolean
  def boolean!(opts, key, op) do
    case Keyword.get(opts, key, false) do
      boolean when is_boolean(boolean) ->
        boolean

      other ->
        raise ArgumentError, "#{op}: #{inspect(key)} must be a boolean, got: #{inspect(other)}"
    end
  end

  @doc "A type that a tensor can have."
  @spec type!(term, atom) :: Type.t() | :bool
  def type!(:bool, _op), do: :bool

  def type!(given, op) do
    Type.fetch(given) ||
      raise ArgumentError,
            "#{op}: invalid numerical type: #{inspect(given)}, expected :bool or one of Ferrox.Type's"
  end

  @doc "The type that holds a tensor's data."
  @spec storage(Type.t() | :bool) :: Type.t()
  def storage(:bool), do: {:u, 8}
  def storage(type), do: type

  @doc "What the native code takes."
  @spec native(Tensor.t()) :: Ferrox.Native.operand()
  def native(%Tensor{type: :bool, shape: shape, data: data}), do: {{:u, 8}, shape, data}
  def native(%Tensor{type: type, shape: shape, data: data}), do: {type, shape, data}

  @doc "The tensor, or the one that the number stands for."
  @spec tensor!(term, Promotion.mode(), atom) :: Tensor.t()
  def tensor!(%Tensor{} = tensor, _mode, _op), do: tensor

  def tensor!(number, mode, op) when is_number_term(number) do
    facts = Promotion.facts(mode)
    stored(facts, Results.literal(facts, number), {}, &Numbers.encode([number], &1, op))
  end

  def tensor!(other, _mode, op), do: refuse!(other, op)

  @doc "Raises unless it is a tensor or a number."
  @spec check!(term, atom) :: :ok
  def check!(%Tensor{}, _op), do: :ok
  def check!(number, _op) when is_number_term(number), do: :ok
  def check!(other, op), do: refuse!(other, op)

  @spec refuse!(term, atom) :: no_return
  def refuse!(other, op) do
    raise ArgumentError, "#{op}: expected a Ferrox.Tensor or a number, got: #{inspect(other)}"
  end

  @doc "The tensor of a type that may be weak, of the data that the function gives."
  @spec stored(map, Promotion.t(), tuple, (Type.t() | :bool -> bitstring)) :: Tensor.t()
  def stored(facts, node, shape, fun) do
    type = Results.concrete(facts, node)
    weak = facts.weak and Promotion.weak?(node)
    %Tensor{data: fun.(type), type: type, shape: shape, weak: weak}
  end
end
