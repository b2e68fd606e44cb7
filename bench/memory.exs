# What a program's memory does: the peak of a thousand results of 40 MB with none kept.
# Whether it grows while many processes compute is what soak.exs shows.
#
#     MIX_ENV=prod mix run bench/memory.exs
#
# With Nx and the argument `after`, the memory of the VM after large work, a row of the table in
# guides/backend.md; ELIXIR_ERL_OPTIONS="+MMmcs 2" gives the other rows.
#
#     MIX_ENV=prod mix run bench/memory.exs after
#
# Reads /proc, so Linux only.

defmodule Bench.Memory do
  @compile {:no_warn_undefined, [Nx, Nx.Random]}

  @results 1_000
  @random 47_000_000

  def run(["after"]) do
    unless Code.ensure_loaded?(Nx), do: raise("Nx is not on the code path")
    File.write!("/proc/self/clear_refs", "5")
    test = self()

    # It lives on, and this one looks on as a monitor of the system does.
    spawn_link(fn ->
      Nx.default_backend(Ferrox.Backend)
      Nx.Random.uniform(Nx.Random.key(1), shape: {@random}, type: :f32)
      send(test, :done)
      Process.sleep(:infinity)
    end)

    receive do
      :done -> :ok
    end

    [at_once | later] = [status("VmRSS") | for(ms <- [2_000, 6_000], do: status_after(ms))]
    peak = status("VmHWM")
    IO.puts("#{@random} random numbers of f32, none kept, in a process that lives on:")

    IO.puts(
      "#{peak} MB at most, #{at_once} MB right after, #{Enum.join(later, " and ")} MB 2 and 8 s later"
    )
  end

  def run([]) do
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

  defp status_after(milliseconds) do
    Process.sleep(milliseconds)
    status("VmRSS")
  end

  defp status(name) do
    [_, kb] = Regex.run(~r/#{name}:\s+(\d+) kB/, File.read!("/proc/self/status"))
    div(String.to_integer(kb), 1024)
  end
end

Bench.Memory.run(System.argv())
