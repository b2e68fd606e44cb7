# What a program's memory does: the peak of a thousand results of 40 MB with none kept.
# Whether it grows while many processes compute is what soak.exs shows.
#
#     MIX_ENV=prod mix run bench/memory.exs
#
# Reads /proc, so Linux only.

defmodule Bench.Memory do
  @results 1_000

  def run do
    a = Ferrox.iota({10_000_000}, type: :f32)
    # The kernel notes the most that there was from here on.
    File.write!("/proc/self/clear_refs", "5")
    start = status("VmRSS")
    # Without a collection by hand: the process lives on, as a server does.
    Enum.each(1..@results, fn _ -> Ferrox.add(a, a) end)
    peak = status("VmHWM")
    IO.puts("#{@results} results of 40 MB, none kept: #{start} MB before, #{peak} MB at most,")
    IO.puts("#{peak - start} MB above the start")
  end

  defp status(name) do
    [_, kb] = Regex.run(~r/#{name}:\s+(\d+) kB/, File.read!("/proc/self/status"))
    div(String.to_integer(kb), 1024)
  end
end

Bench.Memory.run()
