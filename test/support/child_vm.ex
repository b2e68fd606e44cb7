defmodule Ferrox.ChildVM do
  @moduledoc """
  Elixir in a VM of its own, which may end: with the code of this one, and a limit of its memory.
  """

  @doc """
  Evaluates a script. Returns what it printed and the exit status.

  `:memory` is the most address space in MB, `:flags` are those of the VM.
  """
  @spec run(String.t(), keyword) :: {String.t(), non_neg_integer}
  def run(script, opts \\ []) do
    paths = Enum.flat_map(:code.get_path(), &["-pa", List.to_string(&1)])
    # The carriers of a VM reserve much address space of their own.
    flags = "+MIscs 64 +SDio 1 +A 1 " <> Keyword.get(opts, :flags, "")
    command = [System.find_executable("elixir"), "--erl", flags] ++ paths ++ ["-e", script]
    run_limited(opts[:memory], command)
  end

  defp run_limited(nil, [program | arguments]),
    do: System.cmd(program, arguments, stderr_to_stdout: true)

  defp run_limited(mb, command) do
    limited = "ulimit -v $1; shift; exec \"$@\""
    System.cmd("sh", ["-c", limited, "sh", "#{mb * 1_000}" | command], stderr_to_stdout: true)
  end
end
