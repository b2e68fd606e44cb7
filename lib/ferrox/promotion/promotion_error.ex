defmodule Ferrox.PromotionError do
  @moduledoc since: "0.1.0"
  @moduledoc """
  The error that is raised if a promotion system doesn't define a result for the types of the
  operands.

  Its fields are `operands`, the types in the order in which they were given, and `promotion`, the
  system and its options in the form that `Ferrox.Promotion.with/2` takes.

      iex> Ferrox.Promotion.promote(:f32, :s32, system: :jax, strict: true)
      ** (Ferrox.PromotionError) f32 and s32 have no implicit promotion under system: :jax, strict: true. Cast the operands to the type you want, or set strict: false

      iex> Ferrox.Promotion.promote(:s64, :f32, system: :array_api)
      ** (Ferrox.PromotionError) s64 and f32 have no implicit promotion under system: :array_api. Cast the operands to the type you want, or choose a system that defines it, such as system: :nx

  """

  defexception [:operands, :promotion, :message]

  @typedoc "The error."
  @type t :: %__MODULE__{operands: list, promotion: keyword, message: String.t()}
end
