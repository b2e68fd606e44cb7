defmodule Ferrox.Defn.Cache do
  @moduledoc false
  # What has been compiled, by key. The number of entries is bounded, and the number of bytes that they
  # keep. Several processes that ask for the same key at once compile it once. There is one cache of
  # functions, and one of native programs, which several functions may share.
  #
  # Entries are read from an ETS table without a message. The process that owns it decides who compiles,
  # and which entries go: the oldest that has not been read since it was last spared (the clock, or
  # second-chance, algorithm).

  use GenServer

  alias Ferrox.Defn.Recompilation

  @typedoc """
  A cache: of functions, by what they are and what they are told of their arguments, or of native
  programs, by all that they are built from.
  """
  @type cache :: :functions | :programs

  @caches [:functions, :programs]
  @default_size 1_000
  @default_bytes 1_073_741_824

  @doc false
  @spec child_spec(cache) :: Supervisor.child_spec()
  def child_spec(cache), do: %{id: name(cache), start: {__MODULE__, :start_link, [cache]}}

  @doc false
  @spec start_link(cache) :: GenServer.on_start()
  def start_link(cache), do: GenServer.start_link(__MODULE__, cache, name: name(cache))

  # The name of the process, and of its table.
  defp name(:functions), do: Ferrox.Defn.Cache.Functions
  defp name(:programs), do: Ferrox.Defn.Cache.Programs

  @doc """
  The value of a key. `compile` computes it if no process has, and the number of bytes that it keeps;
  its exceptions are not kept.

      iex> Ferrox.Defn.Cache.fetch(:functions, :a_key, fn -> {:compiled, 0} end)
      :compiled
      iex> Ferrox.Defn.Cache.fetch(:functions, :a_key, fn -> raise "it is there" end)
      :compiled
  """
  @spec fetch(cache, term, fun) :: term
  def fetch(cache, key, compile) do
    case lookup(name(cache), key) do
      {:ok, value} -> value
      :error -> compile(name(cache), key, compile)
    end
  end

  @doc """
  The number of entries.

      iex> Ferrox.Defn.Cache.clear()
      iex> Ferrox.Defn.Cache.fetch(:programs, :a_key, fn -> {:built, 0} end)
      iex> Ferrox.Defn.Cache.size(:programs)
      1
  """
  @spec size(cache) :: non_neg_integer
  def size(cache) do
    case :ets.info(name(cache), :size) do
      :undefined -> 0
      size -> size
    end
  end

  @doc """
  Forgets all entries of all caches.

      iex> Ferrox.Defn.Cache.fetch(:programs, :a_key, fn -> {:built, 0} end)
      iex> Ferrox.Defn.Cache.clear()
      :ok
      iex> Ferrox.Defn.Cache.size(:programs)
      0
  """
  @spec clear() :: :ok
  def clear do
    for cache <- @caches, do: :ok = GenServer.call(server(name(cache)), :clear)
    :ok
  end

  defp lookup(name, key) do
    case :ets.lookup(name, key) do
      [{_key, value, used, _bytes}] ->
        :atomics.put(used, 1, 1)
        {:ok, value}

      [] ->
        :error
    end
  rescue
    # The application isn't started.
    ArgumentError -> :error
  end

  defp compile(name, key, compile) do
    case GenServer.call(server(name), {:begin, key}, :infinity) do
      {:ready, value} ->
        value

      {:compile, token} ->
        try do
          compile.()
        else
          {value, bytes} ->
            GenServer.call(server(name), {:done, token, {:ok, value, bytes}}, :infinity)
            value
        catch
          kind, reason ->
            GenServer.call(server(name), {:done, token, :error}, :infinity)
            :erlang.raise(kind, reason, __STACKTRACE__)
        end
    end
  end

  # The owner of the table. Scripts that use Ferrox from the code path may not have started it.
  defp server(name) do
    if Process.whereis(name) == nil, do: {:ok, _} = Application.ensure_all_started(:ferrox)
    name
  end

  ## The owner of the table

  @impl GenServer
  def init(cache) do
    if cache == :functions, do: Recompilation.start()
    table = :ets.new(name(cache), [:named_table, :protected, read_concurrency: true])

    {:ok,
     %{
       table: table,
       size: Application.get_env(:ferrox, :compiler_cache_size, @default_size),
       max_bytes: Application.get_env(:ferrox, :compiler_cache_bytes, @default_bytes),
       bytes: 0,
       keys: :queue.new(),
       pending: %{},
       keys_by_token: %{}
     }}
  end

  @impl GenServer
  def handle_call({:begin, key}, {pid, _} = from, state) do
    case {lookup(state.table, key), state.pending} do
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
    :ets.delete_all_objects(state.table)
    Recompilation.clear()
    {:reply, :ok, %{state | keys: :queue.new(), bytes: 0}}
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

  defp finish(key, {:ok, value, bytes}, waiting, state) do
    Enum.each(waiting, &GenServer.reply(&1, {:ready, value}))
    state = make_room(%{state | bytes: state.bytes + bytes})
    :ets.insert(state.table, {key, value, :atomics.new(1, []), bytes})
    %{state | keys: :queue.in(key, state.keys)}
  end

  # The next process that waits compiles.
  defp finish(_key, :error, [], state), do: state

  defp finish(key, :error, [{pid, _} = next | waiting], state) do
    {token, state} = begin(key, pid, Enum.reverse(waiting), state)
    GenServer.reply(next, {:compile, token})
    state
  end

  # Deletes entries until there is room for one more, whose bytes are counted already. The newest entry
  # stays, however large it is.
  defp make_room(%{table: table, keys: keys} = state) do
    if :ets.info(table, :size) < state.size and state.bytes <= state.max_bytes,
      do: state,
      else: make_room(:queue.out(keys), state)
  end

  defp make_room({:empty, keys}, state), do: %{state | keys: keys}

  defp make_room({{:value, key}, keys}, state) do
    case :ets.lookup(state.table, key) do
      [{_key, _value, used, bytes}] ->
        if :atomics.exchange(used, 1, 0) == 1 do
          make_room(%{state | keys: :queue.in(key, keys)})
        else
          :ets.delete(state.table, key)
          make_room(%{state | keys: keys, bytes: state.bytes - bytes})
        end

      [] ->
        make_room(%{state | keys: keys})
    end
  end
end
