defmodule Digits.Nodes do
  @moduledoc """
  Erlang nodes on this machine: this VM, and others that it starts. They listen on
  the loopback address alone, so that no other machine reaches them.

  Where something is amiss, functions give `{:error, line}`.
  """

  @host "127.0.0.1"
  @epmd_timeout 5_000

  @doc """
  Makes this VM a node. It listens on `port`, or on one that is free if that is `nil`.

  Nodes find each other through epmd, which is started if there is none, and stopped
  with this VM.
  """
  def start_this(name, port \\ nil) do
    Application.put_all_env(kernel: kernel_options(port))

    with :ok <- ensure_free(port),
         :ok <- ensure_epmd(),
         :ok <- name_node(full_name(name), &apply/3) do
      # Others must not connect by chance, nor read this from a command line.
      Node.set_cookie(:"#{Base.encode16(:crypto.strong_rand_bytes(16))}")
      :ok
    end
  end

  @doc "This VM is a node no longer."
  def stop_this, do: Node.stop()

  @doc """
  Starts another VM as a node, with the code that is loadable here and these applications,
  and connects to it: `{:ok, node, peer}`. It logs errors alone, and stops with this VM at
  the latest.

  Options: `:port`, as for `start_this/2`; `:paths` in place of the code path of this VM.
  """
  def start(name, applications, options \\ []) do
    port = options[:port]
    arguments = for {key, value} <- kernel_options(port), do: ["-kernel", "#{key}", term(value)]
    arguments = for argument <- List.flatten(arguments), do: to_charlist(argument)

    # The control connection is a pipe: the node stops when this end is gone, however it goes.
    with :ok <- ensure_free(port),
         {:ok, peer, _} <- :peer.start(%{connection: :standard_io, args: arguments}),
         node = full_name(name),
         :ok <- name_node(node, &:peer.call(peer, &1, &2, &3)),
         true = :peer.call(peer, :erlang, :set_cookie, [Node.get_cookie()]),
         true <- Node.connect(node) do
      true = :erpc.call(node, :code, :set_path, [options[:paths] || :code.get_path()])

      for app <- applications,
          do: {:ok, _} = :erpc.call(node, :application, :ensure_all_started, [app])

      :erpc.call(node, :logger, :set_primary_config, [:level, :error])
      {:ok, node, peer}
    else
      {:error, line} when is_binary(line) -> {:error, line}
      other -> {:error, "#{full_name(name)} can't be started: #{inspect(other)}"}
    end
  end

  @doc "Stops a node that `start/3` has started."
  def stop(peer) do
    :peer.stop(peer)
  catch
    # It has gone away before.
    :exit, _reason -> :ok
  end

  @doc """
  Ends a node at once, as if the system had killed it: it stops no application, runs no
  `System.at_exit/1`, and what waits in its ports is lost. Returns when it is gone.
  """
  def kill(node) do
    # The exit status is that of SIGKILL.
    :erpc.call(node, :erlang, :halt, [137, [flush: false]])
  catch
    :error, {:erpc, :noconnection} -> :ok
  end

  defp full_name(name), do: :"#{name}@#{@host}"

  defp kernel_options(nil), do: [inet_dist_use_interface: {127, 0, 0, 1}]

  defp kernel_options(port),
    do: kernel_options(nil) ++ [inet_dist_listen_min: port, inet_dist_listen_max: port]

  defp term(value), do: :io_lib.format("~w", [value]) |> to_string()

  defp ensure_free(nil), do: :ok

  defp ensure_free(port) do
    case :gen_tcp.listen(port, ip: {127, 0, 0, 1}, reuseaddr: true) do
      {:ok, socket} -> :gen_tcp.close(socket)
      {:error, :eaddrinuse} -> {:error, "port #{port} is in use: choose another one"}
      {:error, reason} -> {:error, "port #{port} can't be used: #{:inet.format_error(reason)}"}
    end
  end

  ## epmd, which knows the ports of nodes by their names

  @doc "Starts epmd if there is none."
  def ensure_epmd do
    cond do
      epmd_answers?() ->
        :ok

      executable = find_epmd() ->
        System.cmd(executable, ["-daemon"], env: [{"ERL_EPMD_ADDRESS", @host}])

        if epmd_answers?(20) do
          # Nodes that are not ours keep it alive.
          System.at_exit(fn _ -> System.cmd(executable, ["-kill"], stderr_to_stdout: true) end)
          :ok
        else
          {:error, "epmd can't be started: #{port_of_epmd()}"}
        end

      true ->
        {:error, "epmd is missing, through which nodes find each other: it comes with Erlang"}
    end
  end

  defp port_of_epmd do
    "is port #{System.get_env("ERL_EPMD_PORT", "4369")} in use? ERL_EPMD_PORT chooses another one"
  end

  # It takes a moment to start. Another program on its port may not answer at all.
  defp epmd_answers?(tries \\ 1) do
    task = Task.async(fn -> :erl_epmd.names({127, 0, 0, 1}) end)

    case Task.yield(task, @epmd_timeout) || Task.shutdown(task, :brutal_kill) do
      {:ok, {:ok, _}} ->
        true

      {:ok, {:error, _}} when tries > 1 ->
        Process.sleep(50)
        epmd_answers?(tries - 1)

      _ ->
        false
    end
  end

  # It is on the PATH, or with the VM only.
  defp find_epmd do
    with_vm = [:code.root_dir(), "erts-*", "bin", "epmd"] |> Path.join() |> Path.wildcard()
    Enum.find_value(["epmd" | with_vm], &System.find_executable/1)
  end

  # Makes a VM a node; `call` calls a function there. The VM logs at length why it can't be one.
  defp name_node(node, call) do
    %{level: level} = call.(:logger, :get_primary_config, [])
    call.(:logger, :set_primary_config, [:level, :none])
    result = call.(:net_kernel, :start, [[node, :longnames]])
    call.(:logger, :set_primary_config, [:level, level])

    case result do
      {:ok, _} ->
        :ok

      {:error, {{:shutdown, {:failed_to_start_child, :net_kernel, {:EXIT, :nodistribution}}}, _}} ->
        {:error, "#{node} can't be started: its name is in use, or no port is free"}

      {:error, reason} ->
        {:error, "#{node} can't be started: #{inspect(reason)}"}
    end
  end
end
