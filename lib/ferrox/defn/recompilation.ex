defmodule Ferrox.Defn.Recompilation do
  @moduledoc false
  # Warns of functions that are compiled again and again because they capture other values each time.
  #
  # Two functions are of the same code if they come from the same place in the source; what they have
  # captured may differ. For each code, and arguments of the same types and shapes, a table has the
  # number of compilations whose captured values were not those of the one before, and the captured
  # values of the last. There is one warning for each code, and at most one in `@seconds`.

  require Logger

  @table __MODULE__
  @compilations 8
  @seconds 60
  # When the table has as many rows, those that count compilations are deleted.
  @max_rows 1_000
  # Of a value, this many characters are shown.
  @max_shown 100

  @doc "Makes the table, which belongs to the calling process."
  @spec start() :: :ok
  def start do
    :ets.new(@table, [:named_table, :public])
    :ok
  end

  @doc "Forgets what has been counted."
  @spec clear() :: :ok
  def clear do
    :ets.delete_all_objects(@table)
    :ok
  end

  @doc """
  Counts a compilation of a function, and warns if it is one of many.

  `rest` is what else the compiled function depends on, `stack` the calls that have led to the
  compilation, and `now` a time in seconds.
  """
  @spec note(fun, term, [tuple], integer) :: :ok
  def note(fun, rest, stack, now \\ System.monotonic_time(:second)) do
    {code, captured} = code(fun)

    with true <- captured != [] and :ets.whereis(@table) != :undefined,
         {count, before} when count >= @compilations <- count({code, rest}, captured),
         true <- time_to_warn?(code, now) do
      Logger.warning(message(fun, count, difference(before, captured, []), stack))
    end

    :ok
  end

  # The number of compilations with other captured values than before, and those of the last one.
  defp count(key, captured) do
    case :ets.lookup(@table, key) do
      [{_key, _count, ^captured}] ->
        nil

      [{_key, count, before}] ->
        :ets.insert(@table, {key, count + 1, captured})
        {count + 1, before}

      [] ->
        if :ets.info(@table, :size) >= @max_rows, do: :ets.match_delete(@table, {:_, :_, :_})
        :ets.insert(@table, {key, 1, captured})
        nil
    end
  end

  # Of processes that ask at once for the same code, only one is told to.
  defp time_to_warn?(code, now) do
    recent? =
      case :ets.lookup(@table, :last_warning) do
        [{_key, last}] -> now - last < @seconds
        [] -> false
      end

    if not recent? and :ets.insert_new(@table, {{:warned, code}, now}) do
      :ets.insert(@table, {:last_warning, now})
    else
      false
    end
  end

  defp message(fun, count, {path, before, now}, stack) do
    "#{inspect(fun)}#{caller(stack)} has been compiled #{count} times for arguments of the same types " <>
      "and shapes, because what it captures is different each time: #{named(path)}" <>
      "#{show(now)}, #{show(before)} before. Pass it as an argument instead."
  end

  # Where the function is used: the first call that is none of the compiler, Nx and Elixir.
  defp caller(stack) do
    case Enum.find(stack, fn {module, _, _, _} -> not library?(module) end) do
      nil -> ""
      frame -> ", used in #{Exception.format_stacktrace_entry(frame)},"
    end
  end

  @libraries [:ferrox, :nx, :elixir, :stdlib, :kernel, :erts]

  defp library?(module) do
    case :application.get_application(module) do
      {:ok, application} -> application in @libraries
      :undefined -> module == :erlang
    end
  end

  ## The code of a function, and what it has captured

  # Functions that are evaluated, as in a shell, are all of one module's code: what tells them apart is
  # among the captured values, beside a map of the variables.
  defp code(fun) do
    info = fn item -> fun |> :erlang.fun_info(item) |> elem(1) end
    code = {info.(:module), info.(:new_index), info.(:new_uniq), info.(:arity)}

    case {info.(:module), info.(:env)} do
      {:erl_eval, [state]} when is_tuple(state) ->
        {variables, rest} = state |> Tuple.to_list() |> Enum.split_with(&is_map/1)
        {{code, rest}, Enum.flat_map(variables, &Map.values/1)}

      {_module, captured} ->
        {code, captured}
    end
  end

  ## What has changed

  # The innermost values that differ, and the names on the way to them, the last one first.
  defp difference(a, b, path) when is_function(a) and is_function(b) do
    case {code(a), code(b)} do
      {{code, before}, {code, now}} -> difference(before, now, path)
      _ -> {path, a, b}
    end
  end

  defp difference(%{__struct__: Nx.Tensor} = a, b, path), do: {path, a, b}

  defp difference(a, b, path) when is_map(a) and is_map(b) do
    case Enum.filter(a, fn {key, value} -> Map.fetch(b, key) != {:ok, value} end) do
      [{key, value}] when is_map_key(b, key) and map_size(a) == map_size(b) ->
        difference(value, Map.fetch!(b, key), [key | path])

      _ ->
        {path, a, b}
    end
  end

  defp difference(a, b, path) when is_tuple(a) and is_tuple(b) and tuple_size(a) == tuple_size(b),
    do: only({path, a, b}, Tuple.to_list(a), Tuple.to_list(b))

  defp difference([_ | _] = a, [_ | _] = b, path) do
    if List.improper?(a) or List.improper?(b),
      do: {path, a, b},
      else: only({path, a, b}, a, b)
  end

  defp difference(a, b, path), do: {path, a, b}

  # If lists differ in one element only, the difference of this element.
  defp only({path, _, _} = whole, a, b) do
    with true <- length(a) == length(b),
         [{before, now}] <- Enum.zip(a, b) |> Enum.reject(fn {a, b} -> a === b end) do
      difference(before, now, path)
    else
      _ -> whole
    end
  end

  defp named([]), do: ""
  defp named(path), do: "#{path |> Enum.reverse() |> Enum.map_join(".", &name/1)} is "

  defp name(key) when is_atom(key), do: Atom.to_string(key)
  defp name(key), do: inspect(key, limit: 5, printable_limit: 20)

  defp show(value) do
    text = value |> inspect(limit: 5, printable_limit: 40) |> String.replace(~r/\s+/, " ")

    if String.length(text) > @max_shown,
      do: String.slice(text, 0, @max_shown) <> " ...",
      else: text
  end
end
