# What a promotion costs, called from Elixir.
#
#     MIX_ENV=prod mix run bench/promotion.exs

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Promotion do
  alias Ferrox.Promotion

  @rounds 15
  @count 500_000

  def run do
    {:f, 16} = Promotion.result_type([:u8, :s8, :f16], system: :jax)
    {:f, 64} = Promotion.promote(:s32, :f32, system: :numpy)

    a = Ferrox.tensor(1.0)

    cases = [
      {"the cheapest NIF", fn -> Ferrox.Native.promotion_concrete(:nx, :bool) end},
      {"merge/3, one type (inside)", fn -> Promotion.merge(:nx, {:f, 32}, {:f, 32}) end},
      {"merge/3, two types (inside)", fn -> Promotion.merge(:nx, {:s, 32}, {:f, 32}) end},
      {"merge/3, jax strict (inside)", fn -> Promotion.merge({:jax, 1}, {:f, 32}, :float) end},
      {"merge_number/3 (inside)", fn -> Promotion.merge_number(:nx, {:u, 8}, -1) end},
      {"promote/2", fn -> Promotion.promote({:s, 32}, {:f, 32}) end},
      {"promote/3, system", fn -> Promotion.promote(:s32, :f32, system: :jax) end},
      {"promote/3, system and option",
       fn -> Promotion.promote(:s32, :int, system: :jax, strict: true) end},
      {"Ferrox.add under nx", fn -> Ferrox.add(a, a) end},
      {"Ferrox.add under jax", fn -> Ferrox.add(a, a, promotion: :jax) end},
      {"Ferrox.add of a number under jax", fn -> Ferrox.add(a, 1.0, promotion: :jax) end},
      {"result_type/2 of three", fn -> Promotion.result_type([:u8, :s8, :f16], system: :jax) end}
    ]

    medians =
      Bench.medians(@rounds, fn -> for {_, fun} <- cases, do: Bench.time(fun, @count) / @count end)

    IO.puts("ns a call (median of #{@rounds} rounds):\n")
    for {{name, _}, time} <- Enum.zip(cases, medians), do: Bench.row(name, [time * 1.0e9])
  end
end

Bench.Promotion.run()
