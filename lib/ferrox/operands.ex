defmodule Ferrox.Operands do
  @moduledoc false
  # What the direct API is given: options, types, and tensors or numbers in
  # their place.

  import Ferrox.Numbers, only: [is_number_term: 1]

  alias Ferrox.{Numbers, Promotion, Tensor, Type}
  alias Ferrox.Promotion.Results

  @doc """
  The promotion that the options ask for, else what is in effect.

  A macro, since every operation asks, and most have no options.
  """
  defmacro mode!(opts, op) do
    quote do
      case unquote(opts) do
        [] -> Ferrox.Promotion.in_effect()
        opts -> Ferrox.Operands.chosen_mode!(opts, unquote(op))
      end
    end
  end

  @doc "The promotion that the options ask for, of which `:promotion` is the only one known."
  @spec chosen_mode!(term, atom) :: Promotion.mode()
  def chosen_mode!(opts, op), do: opts |> options!([:promotion], op) |> promotion!(op)

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

  @doc "A positive integer; `what` names it in the error."
  @spec positive!(term, String.t(), atom) :: pos_integer
  def positive!(integer, _what, _op) when is_integer(integer) and integer > 0, do: integer

  def positive!(other, what, op),
    do: raise(ArgumentError, "#{op}: #{what} must be a positive integer, got: #{inspect(other)}")

  @doc "A number that is not negative; `what` names it in the error."
  @spec not_negative!(term, String.t(), atom) :: number
  def not_negative!(number, _what, _op) when is_number(number) and number >= 0, do: number

  def not_negative!(other, what, op) do
    raise ArgumentError,
          "#{op}: #{what} must be a number that is not negative, got: #{inspect(other)}"
  end

  @doc "A type that a tensor can have."
  @spec type!(term, atom) :: Type.t() | :bool
  def type!(:bool, _op), do: :bool

  def type!(given, op) do
    Type.fetch(given) ||
      raise ArgumentError,
            "#{op}: invalid numerical type: #{inspect(given)}, expected :bool or one of Ferrox.Type's"
  end

  @doc "Refuses types whose numbers have no order."
  @spec ordered!(Type.t() | :bool, atom) :: :ok
  def ordered!({:c, _} = type, op) do
    raise ArgumentError,
          "#{op} is not defined for #{Type.to_string(type)}: complex numbers have no order"
  end

  def ordered!(_type, _op), do: :ok

  @doc "The type that holds a tensor's data."
  @spec storage(Type.t() | :bool) :: Type.t()
  def storage(:bool), do: {:u, 8}
  def storage(type), do: type

  @doc "What the native code takes."
  @spec native(Tensor.t()) :: Ferrox.Native.operand()
  def native(%Tensor{type: :bool, shape: shape, data: data}), do: {{:u, 8}, shape, data}
  def native(%Tensor{type: type, shape: shape, data: data}), do: {type, shape, data}

  @doc "The type that the options ask for, as far as the system has types of that size, or nil."
  @spec type_option(keyword, Promotion.mode(), atom) :: Type.t() | :bool | nil
  def type_option(opts, mode, op) do
    if given = opts[:type], do: Results.narrow(mode, type!(given, op))
  end

  @doc "The tensor, or the one that a number stands for under a system."
  @spec tensor!(term, Promotion.mode(), atom) :: Tensor.t()
  def tensor!(%Tensor{} = tensor, _mode, _op), do: tensor

  def tensor!(number, mode, op) when is_number_term(number) do
    facts = Promotion.facts(mode)
    literal = Results.literal(facts, number)
    type = Results.concrete(facts, literal)
    weak = facts.weak and Promotion.weak?(literal)
    %Tensor{data: Numbers.encode([number], type, op), type: type, shape: {}, weak: weak}
  end

  def tensor!(other, _mode, op), do: refuse!(other, op)

  @doc "`tensor!/3` under the system in effect, for operations in which the type doesn't matter."
  @spec to_tensor(term, atom) :: Tensor.t()
  def to_tensor(%Tensor{} = tensor, _op), do: tensor
  def to_tensor(number, op), do: tensor!(number, Promotion.in_effect(), op)

  @doc "The operand, if it is a tensor or a number."
  @spec check!(term, atom) :: Tensor.t() | Numbers.number_term()
  def check!(%Tensor{} = tensor, _op), do: tensor
  def check!(number, _op) when is_number_term(number), do: number
  def check!(other, op), do: refuse!(other, op)

  @spec refuse!(term, atom) :: no_return
  defp refuse!(other, op) do
    raise ArgumentError, "#{op}: expected a Ferrox.Tensor or a number, got: #{inspect(other)}"
  end
end
