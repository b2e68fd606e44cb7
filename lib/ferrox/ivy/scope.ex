defmodule Ferrox.Ivy.Scope do
  @moduledoc false
  # What Ivy keeps in global stacks: one stack a setting and process. Below them
  # lies the application's configuration, `config :ferrox, ivy: [precise: false]`.

  @spec push(atom, term) :: :ok
  def push(setting, value) do
    Process.put({__MODULE__, setting}, [value | stack(setting)])
    :ok
  end

  # Nothing to take off an empty stack.
  @spec pop(atom) :: :ok
  def pop(setting) do
    case stack(setting) do
      [] -> :ok
      [_] -> Process.delete({__MODULE__, setting})
      [_ | rest] -> Process.put({__MODULE__, setting}, rest)
    end

    :ok
  end

  @spec stack(atom) :: list
  def stack(setting), do: Process.get({__MODULE__, setting}, [])

  # The top of the stack, else what is configured, once it has been checked.
  @spec fetch(atom, (term -> term)) :: {:ok, term} | :error
  def fetch(setting, check) do
    case Process.get({__MODULE__, setting}) do
      [value | _] -> {:ok, value}
      nil -> configured(setting, check)
    end
  end

  defp configured(setting, check) do
    with [_ | _] = settings <- Application.get_env(:ferrox, :ivy, []),
         {:ok, value} <- Keyword.fetch(settings, setting) do
      {:ok, check.(value)}
    else
      _ -> :error
    end
  end

  # Whatever the function pushes and pops, the stack is afterwards as it was.
  @spec run(atom, term, fun) :: term
  def run(setting, value, fun) when is_function(fun, 0) do
    before = stack(setting)
    push(setting, value)

    try do
      fun.()
    after
      if before == [],
        do: Process.delete({__MODULE__, setting}),
        else: Process.put({__MODULE__, setting}, before)
    end
  end

  def run(_setting, _value, other) do
    raise ArgumentError, "expected a function without arguments, got: #{inspect(other)}"
  end
end
