# What a promotion costs, called from Elixir.
#
#     MIX_ENV=prod mix run bench/promotion.exs

defmodule Bench.Promotion do
  alias Ferrox.Promotion

  @rounds 15
  @count 500_000

  def run do
    {:f, 16} = Promotion.result_type([:u8, :s8, :f16], system: :jax)
    {:f, 64} = Promotion.promote(:s32, :f32, system: :numpy)

    cases = [
      {"an empty NIF", fn -> Ferrox.Native.empty() end},
      {"merge/3, one type (inside)", fn -> Promotion.merge(:nx, {:f, 32}, {:f, 32}) end},
      {"merge/3, two types (inside)", fn -> Promotion.merge(:nx, {:s, 32}, {:f, 32}) end},
      {"merge/3, jax strict (inside)", fn -> Promotion.merge({:jax, 1}, {:f, 32}, :float) end},
      {"merge_number/3 (inside)", fn -> Promotion.merge_number(:nx, {:u, 8}, -1) end},
      {"promote/2", fn -> Promotion.promote({:s, 32}, {:f, 32}) end},
      {"promote/3, system", fn -> Promotion.promote(:s32, :f32, system: :jax) end},
      {"promote/3, system and option",
       fn -> Promotion.promote(:s32, :int, system: :jax, strict: true) end},
      {"result_type/2 of three", fn -> Promotion.result_type([:u8, :s8, :f16], system: :jax) end}
    ]

    rounds = for _ <- 1..@rounds, do: for({_, fun} <- cases, do: time(fun) / @count)
    medians = rounds |> Enum.zip_with(& &1) |> Enum.map(&Enum.at(Enum.sort(&1), div(@rounds, 2)))
    IO.puts("ns a call (median of #{@rounds} rounds):\n")

    for {{name, _}, ns} <- Enum.zip(cases, medians) do
      figure = :erlang.float_to_binary(ns, decimals: 1)
      IO.puts("  #{String.pad_trailing(name, 34)}#{String.pad_leading(figure, 8)}")
    end
  end

  defp time(fun) do
    Task.async(fn ->
      repeat(fun, div(@count, 10))
      start = System.monotonic_time(:nanosecond)
      repeat(fun, @count)
      System.monotonic_time(:nanosecond) - start
    end)
    |> Task.await(:infinity)
  end

  defp repeat(_fun, 0), do: :ok

  defp repeat(fun, n) do
    fun.()
    repeat(fun, n - 1)
  end
end

Bench.Promotion.run()
