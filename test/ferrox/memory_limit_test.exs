defmodule Ferrox.MemoryLimitTest do
  # Each family in a VM whose address space is limited (ulimit -v): it computes, or raises what there is
  # no memory for, and the VM lives. FERROX_LIMITS is the number of limits; two without it.
  use ExUnit.Case, async: true

  alias Ferrox.{ChildVM, MemoryEdge}

  # MB of memory beyond what the VM has with the operands.
  @least 2
  @most 120
  @flags "+S 1 +SDcpu 1"

  if File.exists?("/proc/self/status") do
    @tag timeout: :infinity
    test "without memory a call is refused, and the VM lives" do
      {output, 0} = ChildVM.run("Ferrox.MemoryEdge.main([])", flags: @flags)
      [_, size] = Regex.run(~r/^size (\d+)$/m, output)
      count = String.to_integer(System.get_env("FERROX_LIMITS", "2"))

      outcomes =
        for k <- 1..count do
          limit = String.to_integer(size) + @least + div((@most - @least) * k, count + 1)
          run(MemoryEdge.names(), limit)
        end

      ended = for {:ended, about} <- List.flatten(outcomes), do: about
      assert ended == [], Enum.join(ended, "\n")
      answers = for {:answer, _name, text} <- List.flatten(outcomes), do: text
      refused = for "refused: " <> message <- answers, do: message
      assert Enum.any?(answers, &(&1 == "computed")) and refused != []
      for message <- refused, do: assert(message =~ ~r/memory|too large/, message)
    end
  end

  # Where the VM ends, the families after the one that ended it.
  defp run([], _limit), do: []

  defp run(names, limit) do
    script = "Ferrox.MemoryEdge.main(#{inspect(names)})"
    {output, status} = ChildVM.run(script, memory: limit, flags: @flags)
    begun = for [_, name] <- Regex.scan(~r/^begin (\w+)$/m, output), do: String.to_atom(name)

    answers =
      for [_, name, text] <- Regex.scan(~r/^end (\w+): (.*)$/m, output),
          do: {:answer, name, text}

    cond do
      status == 0 ->
        answers

      begun == [] ->
        [{:ended, "#{limit} MB: the VM does not start: #{output}"}]

      true ->
        last = List.last(begun)
        rest = names |> Enum.drop_while(&(&1 != last)) |> tl()
        cause = output |> String.split("begin #{last}\n") |> List.last() |> String.slice(0, 600)
        answers ++ [{:ended, "#{limit} MB: #{last} ends the VM: #{cause}"} | run(rest, limit)]
    end
  end
end
