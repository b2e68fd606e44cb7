defmodule Ferrox.Defn.Cache do
  @moduledoc false
  # Compiled functions, by key. The number of entries is bounded, and several processes that ask for the
  # same function at once compile it once.
  #
  # Entries are read from an ETS table without a message. The process that owns it decides who compiles,
  # and which entries go: the oldest that has not been read since it was last spared (the clock, or
  # second-chance, algorithm).

  use GenServer

  @table __MODULE__
  @default_size 1_000

  @doc false
  @spec start_link(keyword) :: GenServer.on_start()
  def start_link(opts \\ []) do
    GenServer.start_link(__MODULE__, opts, name: __MODULE__)
  end

  @doc "The value of a key. `compile` computes it if no process has; its exceptions are not kept."
  @spec fetch(term, fun) :: term
  def fetch(key, compile) do
    case lookup(key) do
      {:ok, value} -> value
      :error -> compile(key, compile)
    end
  end

  @doc "The number of entries."
  @spec size() :: non_neg_integer
  def size do
    case :ets.info(@table, :size) do
      :undefined -> 0
      size -> size
    end
  end

  @doc "Forgets all entries."
  @spec clear() :: :ok
  def clear, do: GenServer.call(server(), :clear)

  defp lookup(key) do
    case :ets.lookup(@table, key) do
      [{_key, value, used}] ->
        :atomics.put(used, 1, 1)
        {:ok, value}

      [] ->
        :error
    end
  rescue
    # The application isn't started.
    ArgumentError -> :error
  end

  defp compile(key, compile) do
    case GenServer.call(server(), {:begin, key}, :infinity) do
      {:ready, value} ->
        value

      {:compile, token} ->
        try do
          compile.()
        else
          value ->
            GenServer.call(server(), {:done, token, {:ok, value}}, :infinity)
            value
        catch
          kind, reason ->
            GenServer.call(server(), {:done, token, :error}, :infinity)
            :erlang.raise(kind, reason, __STACKTRACE__)
        end
    end
  end

  # The owner of the table. Scripts that use Ferrox from the code path may not have started it.
  defp server do
    case Process.whereis(__MODULE__) do
      nil ->
        {:ok, _} = Application.ensure_all_started(:ferrox)
        __MODULE__

      _pid ->
        __MODULE__
    end
  end

  ## The owner of the table

  @impl GenServer
  def init(opts) do
    :ets.new(@table, [:named_table, :protected, read_concurrency: true])
    size = opts[:size] || Application.get_env(:ferrox, :compiler_cache_size, @default_size)
    {:ok, %{size: size, keys: :queue.new(), pending: %{}, keys_by_token: %{}}}
  end

  @impl GenServer
  def handle_call({:begin, key}, {pid, _} = from, state) do
    case {lookup(key), state.pending} do
      {{:ok, value}, _pending} ->
        {:reply, {:ready, value}, state}

      # A function that calls itself while it is compiled must not wait for itself.
      {:error, %{^key => {_token, ^pid, _waiting}}} ->
        {:reply, {:compile, :nested}, state}

      {:error, %{^key => {token, owner, waiting}}} ->
        {:noreply, put_in(state.pending[key], {token, owner, [from | waiting]})}

      {:error, %{}} ->
        {token, state} = begin(key, pid, [], state)
        {:reply, {:compile, token}, state}
    end
  end

  def handle_call({:done, :nested, _result}, _from, state), do: {:reply, :ok, state}

  def handle_call({:done, token, result}, _from, state) do
    Process.demonitor(token, [:flush])
    {:reply, :ok, finish(token, result, state)}
  end

  def handle_call(:clear, _from, state) do
    :ets.delete_all_objects(@table)
    {:reply, :ok, %{state | keys: :queue.new()}}
  end

  @impl GenServer
  def handle_info({:DOWN, token, :process, _pid, _reason}, state),
    do: {:noreply, finish(token, :error, state)}

  def handle_info(_message, state), do: {:noreply, state}

  defp begin(key, pid, waiting, state) do
    token = Process.monitor(pid)
    state = put_in(state.pending[key], {token, pid, waiting})
    {token, put_in(state.keys_by_token[token], key)}
  end

  defp finish(token, result, state) do
    case Map.pop(state.keys_by_token, token) do
      {nil, _} ->
        state

      {key, keys_by_token} ->
        {{^token, _pid, waiting}, pending} = Map.pop!(state.pending, key)
        state = %{state | pending: pending, keys_by_token: keys_by_token}
        finish(key, result, Enum.reverse(waiting), state)
    end
  end

  defp finish(key, {:ok, value}, waiting, state) do
    Enum.each(waiting, &GenServer.reply(&1, {:ready, value}))
    state = make_room(state)
    :ets.insert(@table, {key, value, :atomics.new(1, [])})
    %{state | keys: :queue.in(key, state.keys)}
  end

  # The next process that waits compiles.
  defp finish(_key, :error, [], state), do: state

  defp finish(key, :error, [{pid, _} = next | waiting], state) do
    {token, state} = begin(key, pid, Enum.reverse(waiting), state)
    GenServer.reply(next, {:compile, token})
    state
  end

  defp make_room(%{size: size, keys: keys} = state) do
    if :ets.info(@table, :size) < size, do: state, else: make_room(:queue.out(keys), state)
  end

  defp make_room({:empty, keys}, state), do: %{state | keys: keys}

  defp make_room({{:value, key}, keys}, state) do
    case :ets.lookup(@table, key) do
      [{_key, _value, used}] ->
        if :atomics.exchange(used, 1, 0) == 1 do
          make_room(%{state | keys: :queue.in(key, keys)})
        else
          :ets.delete(@table, key)
          make_room(%{state | keys: keys})
        end

      [] ->
        make_room(%{state | keys: keys})
    end
  end
end
